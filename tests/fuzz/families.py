"""Ops whose attributes are drawn rather than taken from examples: sizes, starts, windows, contracted dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gspmd.ir.attrs import Groups, Window, WindowDim
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Value
from gspmd.ir.types import TensorType
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.elementwise import ADD, MAXIMUM, MINIMUM, MULTIPLY, SUBTRACT, TANH
from gspmd.ops.indexing import GATHER, SCATTER
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE, TRANSPOSE
from gspmd.ops.literal import IOTA
from gspmd.ops.moving import CONCATENATE, PAD, REVERSE, SLICE
from gspmd.ops.reduce import REDUCE
from gspmd.ops.slicing import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE
from gspmd.ops.window import CONVOLUTION, CUMULATIVE_REDUCE
from gspmd.ops.window.pooling import REDUCE_WINDOW
from tests.fuzz.fit import fit, number
from tests.fuzz.layouts import one_in
from tests.fuzz.writer import Rejected, Writer, shape_of

Maker = Callable[[Writer, Value], Value]


def _numeric(x: Value) -> bool:
    return dtype_kind(x.type.dtype) in ("int", "uint", "float") and x.type.dtype.itemsize >= 1


def _need(holds: bool) -> None:
    if not holds:
        raise Rejected("the operand does not fit")


def _other(w: Writer, shape: Sequence[int], like: Value, kind: str = "x") -> Value:
    """A second operand: a value made to fit, or a parameter."""
    wanted = TensorType(like.type.dtype, tuple(shape))
    same = [v for v in w.values if v.type.bare == wanted]
    if same and w.below(2):
        return w.some(same)
    return fit(w, w.some(w.values), wanted) if w.outer is not None or w.below(2) else w.take(wanted, kind)


def _indices(w: Writer, shape: Sequence[int]) -> Value:
    wanted = TensorType(("i32", "i64", "u8")[w.below(3)], tuple(shape))
    ints = [v for v in w.values if dtype_kind(v.type.dtype) in ("int", "uint")]
    if w.outer is not None or (ints and one_in(w.rng, 4)):
        return fit(w, w.some(ints or w.values), wanted)
    return w.take(wanted, "i")


def _binary(w: Writer, x: Value) -> Value:
    _need(_numeric(x))
    op = (ADD, MULTIPLY, SUBTRACT, MAXIMUM, MINIMUM)[w.below(5)]
    pair = (x, _other(w, x.type.shape, x))
    return w(op, *(pair if w.below(2) else pair[::-1]))


def _dot(w: Writer, x: Value) -> Value:
    _need(_numeric(x) and 0 < x.type.rank < 4)
    dims = [int(d) for d in w.rng.permutation(x.type.rank)]
    contract = dims[: 1 + w.below(min(2, len(dims)))]
    batch = dims[len(contract) :][: w.below(2)]
    labels = [*("c" + str(d) for d in contract), *("b" + str(d) for d in batch), *("n" * w.below(3))]
    order = [labels[i] for i in w.rng.permutation(len(labels))]
    shape = [w.pick(1, 2, 3, 5, 6) if a == "n" else x.type.shape[int(a[1:])] for a in order]
    y = _other(w, shape, x)
    return w(
        DOT_GENERAL, x, y,
        lhs_contract=tuple(contract), rhs_contract=tuple(order.index(f"c{d}") for d in contract),
        lhs_batch=tuple(batch), rhs_batch=tuple(order.index(f"b{d}") for d in batch),
    )  # fmt: skip


def _reduce(w: Writer, x: Value) -> Value:
    _need(_numeric(x) and x.type.rank > 0)
    dims = tuple(d for d in range(x.type.rank) if w.below(2)) or (w.below(x.type.rank),)
    return w(REDUCE, x, dims=dims, monoid=("add", "max", "min", "add")[w.below(4)])


def _broadcast(w: Writer, x: Value) -> Value:
    at = w.below(x.type.rank + 1)
    dims = tuple(d + (d >= at) for d in range(x.type.rank))
    shape = (*x.type.shape[:at], w.pick(1, 2, 3, 5), *x.type.shape[at:])
    return w(BROADCAST_IN_DIM, x, shape=shape_of(shape), dims=dims)


def _reshape(w: Writer, x: Value) -> Value:
    n, shape = x.type.size, list[int]()
    for _ in range(w.below(3)):
        shape.append(w.pick(*(q for q in range(1, n + 1) if n % q == 0)) if n else 1)
        n //= shape[-1]
    return w(RESHAPE, x, shape=shape_of((*shape, n)))


def _slice(w: Writer, x: Value) -> Value:
    start = tuple(w.below(max(n // 2, 1)) for n in x.type.shape)
    limit = tuple(int(w.rng.integers(min(a + 1, n), n + 1)) for a, n in zip(start, x.type.shape, strict=True))
    return w(SLICE, x, start=start, limit=limit, stride=tuple(w.pick(1, 1, 2, 3) for _ in start))


def _pad(w: Writer, x: Value) -> Value:
    low, high = (tuple(w.pick(0, 0, 1, 2, -1, 3) for _ in x.type.shape) for _ in range(2))
    gap = tuple(w.pick(0, 0, 1, 2) for _ in x.type.shape)
    return w(PAD, x, number(w, x.type.dtype, w.pick(0, 1)), low=low, high=high, interior=gap)


def _concatenate(w: Writer, x: Value) -> Value:
    _need(x.type.rank > 0)
    d = w.below(x.type.rank)
    others: list[Value] = []
    for _ in range(1 + w.below(2)):
        if one_in(w.rng, 3):
            others.append(x)
            continue
        shape = [w.pick(1, 2, n) if i == d else n for i, n in enumerate(x.type.shape)]
        others.append(_other(w, shape, x))
    parts = [x, *others]
    return w(CONCATENATE, *(parts[i] for i in w.rng.permutation(len(parts))), dimension=d)


def _dynamic_slice(w: Writer, x: Value) -> Value:
    sizes = tuple(int(w.rng.integers(min(n, 1), n + 1)) for n in x.type.shape)
    return w(DYNAMIC_SLICE, x, *_starts(w, len(sizes)), sizes=shape_of(sizes))


def _starts(w: Writer, count: int) -> list[Value]:
    fixed = w.outer is not None or w.below(2)
    kind = TensorType("i32", ())
    return [number(w, kind.dtype, w.pick(-1, 0, 2, 9, 1)) if fixed else w.take(kind, "i") for _ in range(count)]


def _update(w: Writer, x: Value) -> Value:
    sizes = tuple(int(w.rng.integers(min(n, 1), n + 1)) for n in x.type.shape)
    return w(DYNAMIC_UPDATE_SLICE, x, _other(w, sizes, x), *_starts(w, len(sizes)))


def _addressing(w: Writer, x: Value) -> tuple[list[int], list[int], list[int], int]:
    """Addressed dims, those of them that are collapsed, slice sizes, and the rank of the batch of indices."""
    _need(0 < x.type.rank < 4 and x.type.size > 0)
    dims = [int(d) for d in w.rng.permutation(x.type.rank)][: 1 + w.below(min(2, x.type.rank))]
    sizes = [int(w.rng.integers(1, n + 1)) if d in dims else n for d, n in enumerate(x.type.shape)]
    collapsed = sorted(d for d in range(x.type.rank) if (d in dims and w.below(2)))
    for d in collapsed:
        sizes[d] = 1
    return dims, collapsed, sizes, w.below(3)


def _gather(w: Writer, x: Value) -> Value:
    dims, collapsed, sizes, rank = _addressing(w, x)
    batch = [w.pick(1, 2, 3, 5, 7) for _ in range(rank)]
    at = w.below(rank + 1)
    indices = _indices(w, [*batch[:at], len(dims), *batch[at:]])
    kept = x.type.rank - len(collapsed)
    offset = sorted(int(d) for d in w.rng.choice(kept + rank, kept, replace=False))
    return w(
        GATHER, x, indices, offset_dims=tuple(offset), collapsed_slice_dims=tuple(collapsed), operand_batching_dims=(),
        indices_batching_dims=(), start_index_map=tuple(dims), index_vector_dim=at, slice_sizes=tuple(sizes),
    )  # fmt: skip


def _scatter(w: Writer, x: Value) -> Value:
    _need(_numeric(x))
    dims, inserted, sizes, rank = _addressing(w, x)
    batch = [w.pick(1, 2, 3, 5, 7) for _ in range(rank)]
    at = w.below(rank + 1)
    indices = _indices(w, [*batch[:at], len(dims), *batch[at:]])
    windows = [n for d, n in enumerate(sizes) if d not in inserted]
    places = sorted(int(d) for d in w.rng.choice(len(windows) + rank, len(windows), replace=False))
    rest, shape = iter(batch), list[int]()
    for d in range(len(windows) + rank):
        shape.append(windows[places.index(d)] if d in places else next(rest))
    monoids = ("add", "add", "max", "min", "mul", "set")
    return w(
        SCATTER, x, indices, _other(w, shape, x), update_window_dims=tuple(places),
        inserted_window_dims=tuple(inserted), input_batching_dims=(),
        scatter_indices_batching_dims=(), scatter_dims_to_operand_dims=tuple(dims),
        index_vector_dim=at, monoid=monoids[w.below(len(monoids))],
    )  # fmt: skip


def _window_dim(w: Writer, n: int) -> WindowDim:
    if one_in(w.rng, 3):
        return WindowDim()
    size = w.pick(1, 2, 3, 4, min(n, 7) or 1)
    return WindowDim(
        size, w.pick(1, 1, 2, 3), w.pick(1, 1, 1, 2), w.pick(1, 1, 1, 2), w.pick(0, 0, 1, 2, -1), w.pick(0, 1, 3, -1)
    )


def _pool(w: Writer, x: Value) -> Value:
    _need(_numeric(x) and x.type.rank > 0)
    window = Window(_window_dim(w, n) for n in x.type.shape)
    return w(REDUCE_WINDOW, x, window=window, monoid=("add", "max", "min")[w.below(3)])


def _convolution(w: Writer, x: Value) -> Value:
    """Batch, one or two dimensions of space, features; groups now and then."""
    _need(dtype_kind(x.type.dtype) == "float" and 3 <= x.type.rank <= 4 and x.type.size > 0)
    spec = tuple(int(d) for d in w.rng.permutation(x.type.rank))
    features, batch = x.type.shape[spec[1]], x.type.shape[spec[0]]
    window = Window(_window_dim(w, x.type.shape[d]) for d in spec[2:])
    groups = w.pick(*(g for g in range(1, 5) if features % g == 0)) if w.below(2) else 1
    batches = w.pick(*(g for g in range(1, 5) if batch % g == 0)) if groups == 1 and one_in(w.rng, 3) else 1
    rhs_spec = tuple(int(d) for d in w.rng.permutation(x.type.rank))
    shape = [0] * x.type.rank
    shape[rhs_spec[0]], shape[rhs_spec[1]] = w.pick(1, 2, 3) * groups * batches, features // groups
    for d, dim in zip(rhs_spec[2:], window, strict=True):
        shape[d] = dim.size
    out_spec = tuple(int(d) for d in w.rng.permutation(x.type.rank))
    return w(
        CONVOLUTION, x, _other(w, shape, x), window=window, lhs_spec=spec, rhs_spec=rhs_spec, out_spec=out_spec,
        feature_group_count=Groups(groups), batch_group_count=Groups(batches),
    )  # fmt: skip


def _iota(w: Writer, x: Value) -> Value:
    _need(x.type.rank > 0 and _numeric(x))
    return w(ADD, x, w(IOTA, shape=shape_of(x.type.shape), dtype=x.type.dtype, dimension=w.below(x.type.rank)))


def _cumulate(w: Writer, x: Value) -> Value:
    _need(x.type.rank > 0 and _numeric(x))
    monoid = ("add", "max", "min")[w.below(3)]
    return w(CUMULATIVE_REDUCE, x, dim=w.below(x.type.rank), monoid=monoid, reverse=bool(w.below(2)))


def _tanh(w: Writer, x: Value) -> Value:
    _need(dtype_kind(x.type.dtype) == "float")
    return w(TANH, x)


def _transpose(w: Writer, x: Value) -> Value:
    return w(TRANSPOSE, x, permutation=tuple(int(d) for d in w.rng.permutation(x.type.rank)))


def _reverse(w: Writer, x: Value) -> Value:
    return w(REVERSE, x, dims=tuple(d for d in range(x.type.rank) if w.below(2)))


MAKERS: tuple[Maker, ...] = (
    *(_binary, _dot, _dot, _reduce, _reduce, _broadcast, _reshape, _reshape, _slice, _pad, _concatenate, _transpose),
    *(_dynamic_slice, _update, _gather, _gather, _scatter, _scatter, _pool, _convolution, _iota, _cumulate, _tanh),
    _reverse,
)
