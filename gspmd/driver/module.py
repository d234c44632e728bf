"""`Module`: a program as users hold it, with the nesting of its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from gspmd.array import Array
from gspmd.driver.arguments import accept, argument_type, input_label
from gspmd.driver.functions import configuration
from gspmd.frontend.trace import trace as trace_function
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.interop.export_stablehlo import Dialect, export_stablehlo
from gspmd.ir.errors import ExecutionError, UsageError
from gspmd.ir.graph import Program
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array as NumpyArray
from gspmd.ir.printer import print_program
from gspmd.ir.types import TensorType
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import executor_for

_SHOWN = 100  # characters of a nesting in a message


class Module:
    """A program at the stage where it was made or loaded.

    Without trees (a program read from text) it takes its inputs as separate arguments, and hands out a bare result
    where there is one and a tuple where there are several. `donate` are the arguments that a call of the compiled
    program may use up, unless `compile` is told others.
    """

    def __init__(
        self,
        program: Program,
        in_tree: TreeDef | None = None,
        out_tree: TreeDef | None = None,
        donate: Sequence[int] = (),
    ) -> None:
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donate = tuple(donate)
        self._executor: Executor | None = None

    def __repr__(self) -> str:
        return f"Module({self.program.name}, {self.program.stage})"

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that the program is annotated for, if any."""
        return self.program.mesh

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """The types of the whole arrays that go in, flat."""
        return self.program.inputs

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of the whole arrays that come out, flat."""
        return self.program.outputs

    def text(self) -> str:
        """The program in the IR's text format."""
        return print_program(self.program)

    def to_stablehlo(self, shardings: Dialect = "hlo") -> str:
        """The program as StableHLO text: with annotations on whole arrays, or per device with collectives.

        Annotations are XLA's (`"hlo"`: `mhlo.sharding`) or Shardy's (`"sdy"`), which say more: open dimensions,
        priorities, groups, barriers, and of a propagated program the sharding of every op.
        Raises UsageError at the stages between, and for all that cannot be written, each with its line.
        """
        return export_stablehlo(self.program, shardings)

    def run(self, *arguments: Any) -> Any:
        """Run on one device (a program at a local stage: on all devices of its mesh, in this process)."""
        return self.unflatten(self.run_flat(self.whole(arguments)))

    def run_flat(self, arrays: Sequence[NumpyArray]) -> list[NumpyArray]:
        """What `run` computes, from leaves to leaves: whole arrays of the input types."""
        if self._executor is None:
            self._executor = executor_for(self.program)
        return self._executor.run_whole(arrays)

    def flatten(self, arguments: tuple[Any, ...]) -> list[Any]:
        """The leaves of a call's arguments; raises ExecutionError if they nest otherwise than the program's."""
        leaves, tree = flatten(arguments)
        if self.in_tree is not None and tree != self.in_tree:
            raise ExecutionError(
                f"the arguments nest as {_short(tree)}, but the program takes {_short(self.in_tree)}",
                rule="call.C2",
                fix="numpy.asarray makes an array of a list" if len(leaves) > len(self.input_types) else "",
            )
        if len(leaves) != len(self.input_types):
            raise ExecutionError(f"the program takes {len(self.input_types)} arrays, got {len(leaves)}", rule="call.C2")
        return leaves

    def accept(self, arguments: tuple[Any, ...]) -> list[Array | NumpyArray]:
        """The leaves of a call's arguments, each of the type of its input; raises ExecutionError if one is not."""
        inputs = zip(self.flatten(arguments), self.input_types, self.program.body.params, strict=True)
        return [accept(x, t, input_label(i, v.name)) for i, (x, t, v) in enumerate(inputs)]

    def whole(self, arguments: tuple[Any, ...]) -> list[NumpyArray]:
        """The leaves of a call's arguments as whole NumPy arrays; sharded ones are put together."""
        return [np.asarray(x) for x in self.accept(arguments)]

    def nest(self, leaves: list[Any]) -> tuple[Any, ...]:
        """The arguments of a call from their leaves."""
        return tuple(leaves) if self.in_tree is None else self.in_tree.unflatten(leaves)

    def leaves_of(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The numbers of the leaves of some arguments; raises UsageError for an argument that is not there."""
        sizes = [1] * len(self.input_types) if self.in_tree is None else [child.size for child in self.in_tree.children]
        if any(not 0 <= i < len(sizes) for i in positions):
            raise UsageError(f"donate={list(positions)}, but {self.program.name} takes {len(sizes)} arguments")
        starts = [0, *accumulate(sizes)]
        return tuple(leaf for i in positions for leaf in range(starts[i], starts[i + 1]))

    def unflatten(self, results: list[Any]) -> Any:
        """The results in the function's own nesting."""
        if self.out_tree is not None:
            return self.out_tree.unflatten(results)
        return results[0] if len(results) == 1 else tuple(results)


def _short(tree: TreeDef) -> str:
    text = tree.text()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def trace(function: Any, *types: Any, **keywords: Any) -> Module:
    """Trace a function of tensors into a module; arguments are types (`TensorType`) or arrays, nested as it takes them.

    Of arrays only the types matter; 64-bit NumPy data counts as 32 bits wide unless `enable_x64` is on. A jitted
    function brings its mesh and its donated arguments along. Raises TraceError, naming the line, for what a traced
    function cannot do.
    """
    if not callable(function):
        raise UsageError(f"trace takes a function, not {type(function).__name__}", loc=user_location())
    own = configuration(function)
    leaves, tree = flatten((types, keywords))
    positional, named = tree.unflatten([argument_type(x) for x in leaves])
    if own is None:
        traced = trace_function(function, *positional, **named)
    else:
        traced = trace_function(own.function, *positional, mesh=own.mesh, **named)
    return Module(traced.program, traced.in_tree, traced.out_tree, () if own is None else own.donate)
