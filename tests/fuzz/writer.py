"""A random program under construction, whose values are known: what would overflow or leave a domain is taken back.

Every op is run as it is appended. A step that gives anything but finite numbers of moderate size, or fails, is undone,
so that no NaN hides what comes behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import PROPAGATION_BARRIER, SHARDING_CONSTRAINT, SHARDING_GROUP
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker
from tests.fuzz.inputs import argument
from tests.fuzz.layouts import Rng, one_in, random_sharding
from tests.ops.inputs import Array

# Elements of a value, and how large its numbers may be.
MOST_ELEMENTS = 4096
_MOST = 1e4
# Ops that fail on arguments they do not like.
_FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AssertionError)


class Rejected(Exception):
    """A step that cannot be taken here."""


class Writer:
    """One region: its values so far, with the array that each stands for."""

    def __init__(self, rng: Rng, mesh: Mesh, seed: int, outer: Writer | None = None) -> None:
        self.rng, self.mesh, self.seed, self.outer = rng, mesh, seed, outer
        self.b = Builder()
        self.values: list[Value] = []
        self.known: dict[Value, Array] = {}
        self.names = 0 if outer is None else 100
        self.depth = 0 if outer is None else outer.depth + 1
        self.walker = Walker(LockstepTransport(Mesh({"only": 1})))

    # -- parameters --------------------------------------------------------------------------------------------------

    def take(self, type_: TensorType, kind: str = "x") -> Value:
        """A new parameter, annotated half of the time; inside a region a constant, since regions see nothing else."""
        self.names += 1
        array = argument(f"{kind}{self.names}", type_, self.seed)
        if self.outer is not None:
            raise Rejected("a region has the parameters that it has")
        sharding = self.sharding(type_.rank) if self.rng.integers(3) else None
        value = self.b.param(type_.with_sharding(sharding), f"{kind}{self.names}")
        self.known[value] = array
        self.values.append(value)
        return value

    def param(self, shape: tuple[int, ...]) -> Value:
        """A parameter of f32."""
        return self.take(TensorType("f32", shape))

    def given(self, type_: TensorType, array: Array) -> Value:
        """A parameter of a region, whose first argument is known."""
        value = self.b.param(type_.bare)
        self.known[value] = array
        self.values.append(value)
        return value

    # -- choices -----------------------------------------------------------------------------------------------------

    def pick(self, *options: int) -> int:
        """One of the numbers."""
        return int(self.rng.choice(options))

    def below(self, n: int) -> int:
        """A number in [0, n)."""
        return int(self.rng.integers(n))

    def some(self, values: Sequence[Value]) -> Value:
        """One of the values, a late one as a rule."""
        late = values[-4:] if self.rng.integers(3) else values
        return late[self.below(len(late))]

    def sharding(self, rank: int) -> Sharding:
        """A random annotation."""
        return random_sharding(self.rng, self.mesh, rank)

    # -- steps -------------------------------------------------------------------------------------------------------

    def emit(
        self, op: OpDef[Any], operands: Sequence[Value], attrs: Attrs | None = None, regions: tuple[Region, ...] = ()
    ) -> tuple[Value, ...]:
        """Append an op and run it; raises Rejected if the results are not fit to go on with."""
        start = len(self.b.nodes)
        try:
            results = op.emit(self.b, tuple(operands), op.attrs() if attrs is None else attrs, regions)
        except GspmdError as error:
            raise Rejected(str(error)) from None
        node = self.b.nodes[start]
        if any(v.type.size > MOST_ELEMENTS for v in results):
            raise Rejected("too large")
        self._evaluate(node)
        return results

    def __call__(self, op: OpDef[Any], *operands: Value, regions: tuple[Region, ...] = (), **attrs: Any) -> Value:
        """Append an op with one result."""
        (value,) = self.emit(op, operands, op.attrs(**attrs), regions)
        return value

    def attempt(self, step: Callable[[], Sequence[Value]]) -> bool:
        """Take a step, or leave everything as it was; its results are values to go on with."""
        nodes, params, values, names = len(self.b.nodes), len(self.b.params), len(self.values), self.names
        try:
            made = step()
            for value in made:
                if value.type.size > MOST_ELEMENTS or not _moderate(self.known[value]):
                    raise Rejected("too large, or no number")
        except Rejected:
            del self.b.nodes[nodes:], self.b.params[params:], self.values[values:]
            self.names = names
            return False
        self.values += [self._marked(v) for v in made if dtype_kind(v.type.dtype) is not None]
        return True

    def _evaluate(self, node: Node) -> None:
        distinct = tuple(dict.fromkeys(node.operands))
        try:
            with np.errstate(all="ignore"):
                region = Region(distinct, (node,), node.results)
                results = self.walker.run(region, [[self.known[v]] for v in distinct])
        except (GspmdError, *_FAILURES) as error:
            raise Rejected(str(error)) from None
        finally:
            self.walker._prepared.clear()  # pyright: ignore[reportPrivateUsage]
        for value, shards in zip(node.results, results, strict=True):
            self.known[value] = np.asarray(shards[0])

    def _marked(self, value: Value) -> Value:
        """The value, now and then with an annotation, in a group, or behind a barrier."""
        choice = self.below(20)
        if choice < 7:
            return self(SHARDING_CONSTRAINT, value, sharding=self.sharding(value.type.rank))
        if choice == 7 and one_in(self.rng, 2):
            return self(PROPAGATION_BARRIER, value, allowed=("none", "forward", "backward")[self.below(3)])
        if choice in (8, 9) and self.outer is None:
            exact, sizes = choice == 8, "_".join(map(str, value.type.shape))
            return self(SHARDING_GROUP, value, group=f"{'e' if exact else 'g'}{sizes}", exact=exact)
        return value


def _moderate(x: Array) -> bool:
    if x.size == 0 or dtype_kind(x.dtype) in ("bool", "int", "uint"):
        return True
    with np.errstate(all="ignore"):
        wide = np.abs(x.astype(np.complex128))
        return bool(np.isfinite(wide).all() and wide.max() < _MOST)


def shape_of(numbers: Sequence[int]) -> ResultShape:
    """Sizes as an attribute."""
    return ResultShape(tuple(map(int, numbers)))
