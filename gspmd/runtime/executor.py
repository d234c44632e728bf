"""Runs a whole program: global stages on whole arrays, local stages on shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array, Shards
from gspmd.ir.types import TensorType
from gspmd.runtime.layout import assemble, distribute
from gspmd.runtime.memory import keep_freed_memory
from gspmd.runtime.transport import Channel, LockstepTransport
from gspmd.runtime.walker import Walker

_ONE_DEVICE = Mesh({})


def check_arguments(types: Sequence[TensorType], names: Sequence[str], arrays: Sequence[object]) -> None:
    """Raise ExecutionError unless there is one array of the right shape and dtype for each input."""
    if len(arrays) != len(types):
        raise ExecutionError(f"the program takes {len(types)} arrays, got {len(arrays)}")
    for i, (type_, array) in enumerate(zip(types, arrays, strict=True)):
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
        if shape != type_.shape or dtype != type_.dtype:
            name = f"argument {i}" + (f" (%{names[i]})" if names[i] else "")
            raise ExecutionError(
                f"{name} must be {type_.bare.text()}, got {dtype}{list(shape) if shape is not None else ''}",
                rule="call.C1",
            )


class Executor:
    """A program and the walker that runs it, ready to be called again and again."""

    def __init__(self, program: Program, channel: Channel | None = None) -> None:
        """A global program runs on one device; a local one on the devices of `channel`."""
        keep_freed_memory()
        self.program = program
        local = channel if program.is_local else None
        self.channel: Channel = local or LockstepTransport(_ONE_DEVICE)
        self.walker = Walker(self.channel)

    def run_shards(self, arguments: list[Shards]) -> list[Shards]:
        """Run on shards that are laid out as the program's inputs say; the list is emptied, so that they may die."""
        self.channel.begin()
        return self.walker.run(self.program.body, arguments, consume=True)

    def run_whole(self, arrays: Sequence[Array], fill: object = 0) -> list[Array]:
        """Run on whole arrays and put the results together; needs all shards here. `fill` goes into padding cells.

        Results share no memory with the arguments or one another.
        """
        program = self.program
        check_arguments(program.inputs, [v.name for v in program.body.params], arrays)
        if not program.is_local:
            given = [np.asarray(x) for x in arrays]
            return detached([shards[0] for shards in self.run_shards([[x] for x in given])], given)
        indices = self.channel.indices
        arguments = [distribute(np.asarray(x), t, indices, fill) for x, t in zip(arrays, program.inputs, strict=True)]
        results = self.run_shards(arguments)
        return [assemble(shards, t) for shards, t in zip(results, program.outputs, strict=True)]


def detached(results: Sequence[Array], borrowed: Iterable[Array]) -> list[Array]:
    """Results that may be handed out: copies of those that lie in borrowed memory, in a constant, or in one another.

    A result that is a small part of a large buffer is copied too, so that the buffer can be freed.
    """
    taken = {id(_root(x)) for x in borrowed}
    out: list[Array] = []
    for x in results:
        root = _root(x)
        if id(root) in taken or not x.flags.writeable or root.nbytes > 2 * x.nbytes:
            x = root = x.copy()
        taken.add(id(root))
        out.append(x)
    return out


def _root(x: Array) -> Array:
    """The array that owns the memory, as far as NumPy knows."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x
