"""CHLO's scan: a loop over one dimension, which carries values and writes one slice of every output at each step."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.interop.import_scope import Bound, Scope, all_leaves
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Region, Value
from gspmd.ir.types import TensorType
from gspmd.ops.control import WHILE, WhileAttrs
from gspmd.ops.elementwise import ADD, COMPARE, SUBTRACT
from gspmd.ops.layout import RESHAPE
from gspmd.ops.literal import full, scalar
from gspmd.ops.slicing import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE


def read_scan(v: Visit) -> Sequence[Bound]:
    """A scan as a while whose carries are a counter, the inputs, the outputs so far and the carries."""
    inputs_, inits = v.ints("operandSegmentSizes")
    outputs_, _ = v.ints("resultSegmentSizes")
    v.read.add("is_associative")  # the order of the steps is kept all the same
    dim: int = v.value("dimension")
    reverse: bool = v.value("is_reverse", False)
    inputs, carried = v.operands[:inputs_], v.operands[inputs_ : inputs_ + inits]
    kinds = [t for t in v.results[:outputs_] if isinstance(t, TensorType)]
    steps: set[int] = {x.type.shape[dim] for x in inputs} | {t.shape[dim] for t in kinds}
    if v.has("scan_dim_size"):
        steps.add(v.value("scan_dim_size"))
    if len(steps) != 1:
        raise Unsupported(f"a scan of {sorted(steps)} steps")
    (count,) = steps
    b = v.builder
    outputs = [full(b, 0, t.dtype, t.shape) for t in kinds]
    body = _Body(v, dim, count, reverse, inputs, outputs, carried)
    carries = (scalar(b, 0, "i32"), *inputs, *outputs, *carried, *body.outers)
    cond = _condition(carries, count)
    found = v.emit(WHILE, carries, WhileAttrs(count), (cond, body.region))
    first = 1 + len(inputs)
    return found[first : first + len(outputs) + len(carried)]


def _condition(carries: Sequence[Value], count: int) -> Region:
    b = Builder()
    params = [b.param(x.type.bare, x.name) for x in carries]
    return b.region([COMPARE(b, params[0], scalar(b, count, "i32"), direction="LT")])


class _Body:
    """The body of the loop around the scan's region; `outers` are what the region reads from around it."""

    def __init__(
        self,
        v: Visit,
        dim: int,
        count: int,
        reverse: bool,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        carried: Sequence[Value],
    ) -> None:
        scope: Scope = v.scope.inside()
        b = scope.builder
        counter = b.param(TensorType(DTYPES["i32"], ()), "step")
        xs, ys, cs = ([b.param(x.type.bare, x.name) for x in each] for each in (inputs, outputs, carried))
        step = SUBTRACT(b, scalar(b, count - 1, "i32"), counter) if reverse else counter
        slices = [_slice(b, x, step, dim) for x in xs]
        block = v.op.regions[0].blocks[0]
        results = all_leaves(v.importer.block(scope, block, [*slices, *cs]))
        written = [_write(b, y, new, step, dim) for y, new in zip(ys, results[: len(ys)], strict=True)]
        after = ADD(b, counter, scalar(b, 1, "i32"))
        self.outers = scope.captures()
        self.region = scope.region(self.outers, [after, *xs, *written, *results[len(ys) :]], carried=True)


def _starts(b: Builder, rank: int, step: Value, dim: int) -> list[Value]:
    zero = scalar(b, 0, "i32")
    return [step if d == dim else zero for d in range(rank)]


def _slice(b: Builder, x: Value, step: Value, dim: int) -> Value:
    """The slice at a step, without the dimension."""
    shape = x.type.shape
    sizes = ResultShape((*shape[:dim], 1, *shape[dim + 1 :]))
    taken = DYNAMIC_SLICE(b, x, *_starts(b, len(shape), step, dim), sizes=sizes)
    return RESHAPE(b, taken, shape=ResultShape(shape[:dim] + shape[dim + 1 :]))


def _write(b: Builder, x: Value, new: Value, step: Value, dim: int) -> Value:
    shape = new.type.shape
    update = RESHAPE(b, new, shape=ResultShape((*shape[:dim], 1, *shape[dim:])))
    return DYNAMIC_UPDATE_SLICE(b, x, update, *_starts(b, x.type.rank, step, dim))


HANDLERS = {"chlo.scan": read_scan}
