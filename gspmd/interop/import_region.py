"""The scalar regions of reductions, scatters, sorts and maps.

MLIR's may read scalars around them where ours are closed. A constant is written again inside; any other scalar becomes
one more operand of the op, which holds it at every place, and one more parameter of the region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.interop.import_scope import Scope, one
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Region, Value
from gspmd.ops.elementwise import CONVERT
from gspmd.ops.layout import BROADCAST_IN_DIM


@dataclass(frozen=True, slots=True)
class ScalarRegion:
    """A region on its way in: its results, and the scalars `outers` that it reads from around it."""

    scope: Scope
    results: tuple[Value, ...]
    outers: tuple[Value, ...]

    @property
    def params(self) -> tuple[Value, ...]:
        """The parameters that MLIR's region has."""
        return tuple(self.scope.builder.params)

    def closed(self) -> Region:
        """The region of an op that has no room for more operands."""
        if self.outers:
            raise Unsupported("the region uses a value from outside it that is no constant")
        return self.scope.region([], self.results)

    def mapped(self) -> Region:
        """The region of an op that gives it one parameter an operand."""
        return self.scope.region(self.outers, self.results)

    def compared(self) -> Region:
        """The region of an op that gives it two parameters an operand, next to each other."""
        inner = self.scope.inner(self.outers)
        more = [x for v in inner for x in (v, _like(v))]
        return self.scope.closed((*self.params, *more), self.results)

    def folded(self) -> Region:
        """The region of an op that gives it what is held of all operands, then what is new, and takes what to hold."""
        inner = self.scope.inner(self.outers)
        half = len(self.params) // 2
        params = (*self.params[:half], *inner, *self.params[half:], *map(_like, inner))
        return self.scope.closed(params, (*self.results, *inner))


def scalar_region(v: Visit, number: int) -> Region:
    """A region of an op that has no room for more operands."""
    return read_region(v, number).closed()


def read_region(v: Visit, number: int) -> ScalarRegion:
    """A region of an op; raises Unsupported if it reads an array from around it."""
    scope = v.scope.inside(isolated=True)
    results = v.importer.block(scope, v.op.regions[number].blocks[0])
    return ScalarRegion(scope, tuple(one(r) for r in results), tuple(scope.captures()))


def promoted(v: Visit, values: Sequence[Value], dtypes: Sequence[DType]) -> tuple[Value, ...]:
    """Operands in the dtypes that the region computes in."""
    pairs = zip(values, dtypes, strict=True)
    return tuple(x if x.type.dtype == d else CONVERT(v.builder, x, dtype=d) for x, d in pairs)


def everywhere(v: Visit, scalars: Sequence[Value], shape: tuple[int, ...]) -> tuple[Value, ...]:
    """Scalars repeated to a shape."""
    return tuple(BROADCAST_IN_DIM(v.builder, x, shape=ResultShape(shape), dims=()) if shape else x for x in scalars)


def _like(value: Value) -> Value:
    return Value(value.type, value.name)
