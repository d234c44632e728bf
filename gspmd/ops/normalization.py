"""Batch normalisation (StableHLO: batch_norm_training, batch_norm_inference, batch_norm_grad).

The dimensions that are averaged over are split like any other: each device sums its own, and all add up the sums
(factors of kind `select`: every device does its part, then all together).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.axes import Axes
from gspmd.ir.dtypes import DTYPES, DType
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, OpDef, Types
from gspmd.ir.rule import Factor, FactorKind, Rule, TensorMap, identity_map
from gspmd.kernels import normalization as kernels
from gspmd.kernels.finite import is_narrow
from gspmd.ops.collective import ALL_REDUCE
from gspmd.ops.elementwise import RSQRT
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import scalar
from gspmd.ops.reduce import REDUCE
from gspmd.ops.rules import require, require_count, require_kind

E = Expression


@dataclass(frozen=True, slots=True)
class BatchNormAttrs(Attrs):
    """What is added to the variance, and the dimension that is not averaged over."""

    epsilon: float
    feature: int


def _infer(op: str, types: Types, attrs: BatchNormAttrs, count: int, full: tuple[int, ...] = (0,)) -> None:
    """C1: floats. C2: the feature dim. C3: one dtype; the operands in `full` have one shape, the others are vectors."""
    require_count(op, types, count)
    x = types[0].bare
    require_kind(op, "C1", x, "f")
    require(0 <= attrs.feature < x.rank, f"{op}.C2", f"feature {attrs.feature} of a rank of {x.rank}")
    for i, t in enumerate(types):
        wanted = x if i in full else x.with_shape((x.shape[attrs.feature],))
        require(t.bare == wanted, f"{op}.C3", f"operand {i} is {t.bare.text()}, wanted is {wanted.text()}")


def _rule(
    attrs: BatchNormAttrs, types: Types, results: Types, kind: FactorKind, linear: tuple[tuple[int, ...], ...] = ()
) -> Rule:
    x = types[0]
    factors = tuple(Factor(n, "pass" if d == attrs.feature else kind) for d, n in enumerate(x.shape))
    full, vector = identity_map(x.rank), ((attrs.feature,),)

    def maps(types_: Types) -> tuple[TensorMap, ...]:
        return tuple(full if t.shape == x.shape else vector for t in types_)

    return Rule(factors, maps(types), maps(results), linear, 8 * x.size if kind == "select" else 0)


# -- formulas --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sums:
    """How vectors and sums over the averaged dimensions are written for operands of one shape.

    `whole` makes a local sum the whole one; `real` puts zeros where the operand is padding.
    """

    feature: int
    shape: tuple[int, ...]
    count: int
    whole: Callable[[E], E]
    real: Callable[[E], E]

    def total(self, x: E) -> E:
        """The sums, a vector."""
        dims = tuple(d for d in range(len(self.shape)) if d != self.feature)
        masked = self.real(x)
        return self.whole(masked.apply(REDUCE, dims=dims) if dims else masked)

    def spread(self, vector: E) -> E:
        """A vector along the feature dimension."""
        return vector.apply(BROADCAST_IN_DIM, shape=ResultShape(self.shape), dims=(self.feature,))


def _training(sums: _Sums, x: E, scale: E, offset: E, epsilon: float) -> tuple[E, E, E]:
    mean = sums.total(x) / sums.count
    centred = x - sums.spread(mean)
    variance = sums.total(centred * centred) / sums.count
    root = sums.spread((variance + epsilon).apply(RSQRT))
    return centred * root * sums.spread(scale) + sums.spread(offset), mean, variance


def _grad(sums: _Sums, x: E, scale: E, mean: E, variance: E, ct: E, epsilon: float) -> tuple[E, E, E]:
    centred, root = x - sums.spread(mean), (variance + epsilon).apply(RSQRT)
    total, along = sums.total(ct), sums.total(ct * centred)
    inner = ct - sums.spread(total / sums.count) - centred * sums.spread(along * root * root / sums.count)
    return inner * sums.spread(scale * root), along * root, total


def _compute_dtype(dtype: DType) -> DType:
    return DTYPES["f32"] if is_narrow(dtype) else dtype


def _whole_sums(builder: Any, like: Value, feature: int) -> _Sums:
    shape = like.type.shape
    count = like.type.size // max(shape[feature], 1)
    return _Sums(feature, shape, count, lambda x: x, lambda x: x)


def _local_sums(ctx: Localizer, like: Value, feature: int) -> _Sums:
    """Sums over all devices that hold a part."""
    whole = ctx.node.operands[0].type
    split = [d for d in range(whole.rank) if d != feature and ctx.axes_of(d)]
    axes: Axes = tuple(a for d in split for a in ctx.axes_of(d))

    def real(x: E) -> E:
        for d in split:
            x = E(x.builder, ctx.mask(x.value, d, d, scalar(x.builder, 0, x.dtype)))
        return x

    def add_up(x: E) -> E:
        return x.apply(ALL_REDUCE, axes=axes, monoid="add")

    return _Sums(feature, like.type.shape, whole.size // max(whole.shape[feature], 1), add_up, real)


def _localize(op: OpDef[Any], formula: Callable[..., tuple[E, ...]]) -> Callable[..., Sequence[Value]]:
    """The op itself where no averaged dimension is split, else the formula with sums over devices."""

    def localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
        attrs, x = ctx.node.attrs, operands[0]
        assert isinstance(attrs, BatchNormAttrs)
        if not any(ctx.axes_of(d) for d in range(x.type.rank) if d != attrs.feature):
            return op.emit(ctx.builder, operands, attrs)
        wide = _compute_dtype(x.type.dtype)
        given = [E(ctx.builder, v).convert(wide) for v in operands]
        found = formula(_local_sums(ctx, x, attrs.feature), *given, attrs.epsilon)
        return [e.convert(x.type.dtype).value for e in found]

    return localize


# -- the ops ---------------------------------------------------------------------------------------------------------


def _training_infer(types: Types, attrs: BatchNormAttrs, regions: tuple[Region, ...]) -> Types:
    _infer("batch_norm_training", types, attrs, 3)
    return types[0].bare, types[1].bare, types[1].bare


def _training_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """Written out, so that it has a gradient itself; mean and variance have cotangents too."""
    attrs, b = node.attrs, gradient.builder
    assert isinstance(attrs, BatchNormAttrs)
    if all(ct is None for ct in cotangents):
        return [None] * 3
    dtype = node.operands[0].type.dtype
    wide = _compute_dtype(dtype)
    x, scale, _ = (E(b, v).convert(wide) for v in node.operands)
    mean, variance = (E(b, v).convert(wide) for v in node.results[1:])
    ct, mean_ct, variance_ct = (None if v is None else E(b, v).convert(wide) for v in cotangents)
    sums = _whole_sums(b, node.operands[0], attrs.feature)
    back, scale_ct, offset_ct = x.number(0), scale.number(0), scale.number(0)
    if ct is not None:
        back, scale_ct, offset_ct = _grad(sums, x, scale, mean, variance, ct, attrs.epsilon)
    if mean_ct is not None:
        back = back + sums.spread(mean_ct / sums.count)
    if variance_ct is not None:
        back = back + (x - sums.spread(mean)) * sums.spread(variance_ct * (2 / max(sums.count, 1)))
    return [e.convert(dtype).value for e in (back, scale_ct, offset_ct)]


def _training_kernel(attrs: BatchNormAttrs, x: Array, scale: Array, offset: Array) -> tuple[Array, Array, Array]:
    return kernels.training(x, scale, offset, attrs.epsilon, attrs.feature)


def _training_rule(types: Types, results: Types, attrs: BatchNormAttrs) -> Rule:
    return _rule(attrs, types, results, "select")


def _training_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    return _localize(BATCH_NORM_TRAINING, _training)(ctx, operands)


BATCH_NORM_TRAINING = OpDef(
    "batch_norm_training",
    BatchNormAttrs,
    _training_infer,
    rule=_training_rule,
    kernel=_training_kernel,
    localize=_training_localize,
    vjp=_training_vjp,
    examples=(
        "batch_norm_training(f32[6, 5, 4], f32[4], f32[4]) epsilon=0.001 feature=2",
        "batch_norm_training(f64[2, 3, 4, 5], f64[3], f64[3]) epsilon=0.5 feature=1",
        "batch_norm_training(bf16[4, 7], bf16[4], bf16[4]) epsilon=0.001 feature=0",
    ),
    doc="Normalises by mean and variance over all dims but the feature; times operand 1 plus operand 2; and the two.",
)


def _inference_infer(types: Types, attrs: BatchNormAttrs, regions: tuple[Region, ...]) -> Types:
    _infer("batch_norm_inference", types, attrs, 5)
    return (types[0].bare,)


def _inference_rule(types: Types, results: Types, attrs: BatchNormAttrs) -> Rule:
    return _rule(attrs, types, results, "pass")


def _inference_kernel(
    attrs: BatchNormAttrs, x: Array, scale: Array, offset: Array, mean: Array, variance: Array
) -> Array:
    return kernels.inference(x, scale, offset, mean, variance, attrs.epsilon, attrs.feature)


def _inference_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    attrs, b, (given,) = node.attrs, gradient.builder, cotangents
    assert isinstance(attrs, BatchNormAttrs)
    if given is None:
        return [None] * 5
    dtype = given.type.dtype
    wide = _compute_dtype(dtype)
    x, scale, _, mean, variance = (E(b, v).convert(wide) for v in node.operands)
    ct, sums = E(b, given).convert(wide), _whole_sums(b, given, attrs.feature)
    root = (variance + attrs.epsilon).apply(RSQRT)
    total, along = sums.total(ct), sums.total(ct * (x - sums.spread(mean)))
    found = (
        ct * sums.spread(scale * root),
        along * root,
        total,
        -(total * scale * root),
        along * scale * root * root * root * -0.5,
    )
    return [e.convert(dtype).value for e in found]


BATCH_NORM_INFERENCE = OpDef(
    "batch_norm_inference",
    BatchNormAttrs,
    _inference_infer,
    rule=_inference_rule,
    kernel=_inference_kernel,
    vjp=_inference_vjp,
    examples=(
        "batch_norm_inference(f32[6, 5, 4], f32[4], f32[4], f32[4], f32[4]) epsilon=0.001 feature=2",
        "batch_norm_inference(f64[5, 3, 2], f64[3], f64[3], f64[3], f64[3]) epsilon=0.5 feature=1",
        "batch_norm_inference(bf16[4, 7], bf16[4], bf16[4], bf16[4], bf16[4]) epsilon=0.001 feature=0",
    ),
    doc="Normalises by a given mean and variance (operands 3 and 4) along the feature; times operand 1 plus operand 2.",
)


def _grad_infer(types: Types, attrs: BatchNormAttrs, regions: tuple[Region, ...]) -> Types:
    _infer("batch_norm_grad", types, attrs, 5, (0, 4))
    return types[0].bare, types[1].bare, types[1].bare


def _grad_rule(types: Types, results: Types, attrs: BatchNormAttrs) -> Rule:
    """Linear in the cotangent."""
    return _rule(attrs, types, results, "select", ((4,),))


def _grad_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    raise TypeRuleError(
        "batch_norm_grad has no gradient",
        rule="batch_norm_grad.D1",
        loc=node.loc,
        fix="differentiate batch_norm_training, whose gradient is written out",
    )


def _grad_kernel(
    attrs: BatchNormAttrs, x: Array, scale: Array, mean: Array, variance: Array, ct: Array
) -> tuple[Array, Array, Array]:
    return kernels.gradient(x, scale, mean, variance, ct, attrs.epsilon, attrs.feature)


def _grad_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    return _localize(BATCH_NORM_GRAD, _grad)(ctx, operands)


BATCH_NORM_GRAD = OpDef(
    "batch_norm_grad",
    BatchNormAttrs,
    _grad_infer,
    rule=_grad_rule,
    kernel=_grad_kernel,
    localize=_grad_localize,
    vjp=_grad_vjp,
    examples=(
        "batch_norm_grad(f32[6, 5, 4], f32[4], f32[4], f32[4], f32[6, 5, 4]) epsilon=0.001 feature=2",
        "batch_norm_grad(f64[5, 3, 2], f64[3], f64[3], f64[3], f64[5, 3, 2]) epsilon=0.5 feature=1",
    ),
    doc="The cotangents of operand, scale and offset of batch_norm_training, given the one of its first result.",
)

FAMILY: tuple[OpDef[Any], ...] = (BATCH_NORM_TRAINING, BATCH_NORM_INFERENCE, BATCH_NORM_GRAD)
