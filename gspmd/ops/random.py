"""Random bits (StableHLO: rng_bit_generator; JAX: threefry2x32).

They depend on a state and on each element's place in the whole array, never on how the array is split: a device makes
the block that it holds (`random_block`). Numbers of a distribution are ordinary ops on bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, Dense
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES, DType, dtype_kind
from gspmd.ir.graph import Region, Value
from gspmd.ir.opdef import Array, Localizer, OpDef, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import random as kernels
from gspmd.ops.bits import BITCAST_CONVERT
from gspmd.ops.elementwise import MAXIMUM, OR, REMAINDER, SHIFT_RIGHT_LOGICAL
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.literal import CONSTANT, scalar
from gspmd.ops.rules import require, require_count
from gspmd.ops.special import ERF_INV

ALGORITHMS = ("DEFAULT", "PHILOX", "THREE_FRY")
_U32, _U64 = DTYPES["u32"], DTYPES["u64"]


@dataclass(frozen=True, slots=True)
class RngBitGeneratorAttrs(Attrs):
    """The shape and dtype of the bits; DEFAULT is Philox, as in XLA on CPUs."""

    shape: tuple[int, ...]
    dtype: DType
    algorithm: str = "DEFAULT"


@dataclass(frozen=True, slots=True)
class RandomBlockAttrs(Attrs):
    """The whole array's shape, the block's, the dtype and the algorithm."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    dtype: DType
    algorithm: str = "DEFAULT"


def _infer_bits(op: str, state: TensorType, shape: tuple[int, ...], dtype: DType, algorithm: str) -> Types:
    """C1: the algorithm. C2: the state. C3: the dtype."""
    require(algorithm in ALGORITHMS, f"{op}.C1", f"algorithm {algorithm!r} is none of {', '.join(ALGORITHMS)}")
    lengths = (2,) if algorithm == "THREE_FRY" else (2, 3)
    ok = state.dtype == _U64 and state.rank == 1 and state.shape[0] in lengths
    require(ok, f"{op}.C2", f"the state of {algorithm} is u64 of {lengths} elements, got {state.bare.text()}")
    ok = dtype_kind(dtype) in ("int", "uint") and dtype.name not in ("int2", "int4", "uint2", "uint4")
    require(ok, f"{op}.C3", f"bits come as integers of 8 to 64 bits, not as {dtype}")
    return state.bare, TensorType(dtype, shape)


# -- rng_bit_generator -----------------------------------------------------------------------------------------------


def _generator_infer(types: Types, attrs: RngBitGeneratorAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("rng_bit_generator", types, 1)
    return _infer_bits("rng_bit_generator", types[0], attrs.shape, attrs.dtype, attrs.algorithm)


def _generator_rule(types: Types, results: Types, attrs: RngBitGeneratorAttrs) -> Rule:
    rank = len(attrs.shape)
    factors = (*(Factor(n, position=True) for n in attrs.shape), Factor(types[0].shape[0], "whole"))
    return Rule(factors, (((rank,),),), (((rank,),), identity_map(rank)))


def _generator_kernel(attrs: RngBitGeneratorAttrs, state: Array) -> tuple[Array, Array]:
    origin = (0,) * len(attrs.shape)
    return kernels.random_block(attrs.algorithm != "THREE_FRY", attrs.dtype, state, attrs.shape, origin, attrs.shape)


def _generator_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """The block that starts at this device's offsets."""
    attrs, b = ctx.node.attrs, ctx.builder
    assert isinstance(attrs, RngBitGeneratorAttrs)
    sizes = ctx.local_result(1).shape
    if sizes == attrs.shape:
        return RNG_BIT_GENERATOR.emit(b, operands, attrs)
    starts = [ctx.offset(d) if ctx.axes_of(d) else scalar(b, 0, "i32") for d in range(len(sizes))]
    return RANDOM_BLOCK.emit(
        b, (*operands, *starts), RandomBlockAttrs(attrs.shape, sizes, attrs.dtype, attrs.algorithm)
    )


RNG_BIT_GENERATOR = OpDef(
    "rng_bit_generator",
    RngBitGeneratorAttrs,
    _generator_infer,
    rule=_generator_rule,
    kernel=_generator_kernel,
    localize=_generator_localize,
    examples=(
        "rng_bit_generator(u64[2]) shape=[4, 7] dtype=u32",
        "rng_bit_generator(u64[2]) shape=[6, 5] dtype=u64 algorithm=DEFAULT",
        "rng_bit_generator(u64[3]) shape=[3, 4, 5] dtype=u8 algorithm=PHILOX",
        "rng_bit_generator(u64[2]) shape=[5, 7] dtype=u32 algorithm=THREE_FRY",
        "rng_bit_generator(u64[2]) shape=[3, 6] dtype=i16 algorithm=THREE_FRY",
        "rng_bit_generator(u64[2]) shape=[9] dtype=i64 algorithm=THREE_FRY",
        "rng_bit_generator(u64[2]) shape=[] dtype=u32 algorithm=THREE_FRY",
    ),
    doc="A new state, and random bits that depend on the state and on each element's place.",
)


# -- random_block ----------------------------------------------------------------------------------------------------


def _block_infer(types: Types, attrs: RandomBlockAttrs, regions: tuple[Region, ...]) -> Types:
    """C4: a start and a size for every dimension."""
    rank = len(attrs.shape)
    require_count("random_block", types, rank + 1)
    require(len(attrs.sizes) == rank, "random_block.C4", f"{len(attrs.sizes)} sizes for a rank of {rank}")
    for i, t in enumerate(types[1:], 1):
        ok = t.rank == 0 and dtype_kind(t.dtype) == "int"
        require(ok, "random_block.C5", f"starts are integer scalars, but operand {i} is {t.bare.text()}")
    return _infer_bits("random_block", types[0], attrs.sizes, attrs.dtype, attrs.algorithm)


def _block_rule(types: Types, results: Types, attrs: RandomBlockAttrs) -> Rule:
    """A block starts where it is told to: no device can draw a part of it."""
    rank = len(attrs.sizes)
    factors = tuple(Factor(n, "whole") for n in (*attrs.sizes, types[0].shape[0]))
    starts = ((),) * rank
    return Rule(factors, (((rank,),), *starts), (((rank,),), identity_map(rank)))


def _block_kernel(attrs: RandomBlockAttrs, state: Array, *starts: Array) -> tuple[Array, Array]:
    places = [int(s) for s in starts]
    return kernels.random_block(attrs.algorithm != "THREE_FRY", attrs.dtype, state, attrs.shape, places, attrs.sizes)


RANDOM_BLOCK = OpDef(
    "random_block",
    RandomBlockAttrs,
    _block_infer,
    rule=_block_rule,
    kernel=_block_kernel,
    examples=(
        "random_block(u64[2], i32[], i32[]) shape=[8, 7] sizes=[2, 7] dtype=u32",
        "random_block(u64[2], i32[], i32[]) shape=[8, 7] sizes=[8, 3] dtype=u32 algorithm=THREE_FRY",
    ),
    doc="The block at some place of what rng_bit_generator gives: what one device makes of it.",
)


# -- threefry2x32 ----------------------------------------------------------------------------------------------------


def _threefry_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    """C1: u32. C2: the counters have one shape. C3: the keys have it too, or are scalars."""
    require_count("threefry2x32", types, 4)
    for i, t in enumerate(types):
        require(t.dtype == _U32, "threefry2x32.C1", f"takes u32, but operand {i} is {t.bare.text()}")
    shape = types[2].shape
    require(types[3].shape == shape, "threefry2x32.C2", f"counters of shapes {list(shape)} and {list(types[3].shape)}")
    for t in types[:2]:
        require(t.shape in ((), shape), "threefry2x32.C3", f"a key of shape {list(t.shape)} for {list(shape)} counters")
    return types[2].bare, types[2].bare


def _threefry_rule(types: Types, results: Types, attrs: Attrs) -> Rule:
    maps = identity_map(types[2].rank)
    return Rule(tuple(map(Factor, types[2].shape)), tuple(maps if t.shape else () for t in types), (maps, maps))


def _threefry_kernel(attrs: Attrs, k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    return kernels.threefry2x32(k0, k1, x0, x1)


THREEFRY2X32 = OpDef(
    "threefry2x32",
    Attrs,
    _threefry_infer,
    rule=_threefry_rule,
    kernel=_threefry_kernel,
    examples=(
        "threefry2x32(u32[], u32[], u32[4, 7], u32[4, 7])",
        "threefry2x32(u32[6, 5], u32[], u32[6, 5], u32[6, 5])",
        "threefry2x32(u32[], u32[9], u32[9], u32[9])",
    ),
    doc="Pairs of u32 (operands 2 and 3) mixed under a key (operands 0 and 1), place by place.",
)


# -- numbers ---------------------------------------------------------------------------------------------------------


def uniform_from_bits(builder: Builder, bits: Value, dtype: DType) -> Value:
    """Numbers in [0, 1) of a float dtype from random unsigned integers: top bits become the mantissa, as in JAX."""
    mantissa = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}[dtype.name]
    width = 8 * bits.type.dtype.itemsize
    drawn = Expression(builder, bits).convert(DTYPES[f"u{8 * dtype.itemsize}"])
    ones = drawn.number(int(np.ones((), dtype).view(drawn.dtype)))
    filled = drawn.apply(SHIFT_RIGHT_LOGICAL, drawn.number(width - mantissa)).apply(OR, ones)
    return (filled.apply(BITCAST_CONVERT, dtype=dtype) - 1).value


def draw(builder: Builder, low: Value, high: Value, shape: Sequence[int], distribution: str, seed: int) -> Value:
    """StableHLO's rng: UNIFORM in [low, high), or NORMAL with mean `low` and deviation `high`, scalars of one dtype.

    The specification leaves the generator open; here the numbers follow from the seed, which should differ from one
    application to the next.
    """
    dtype = low.type.dtype
    wide = tuple(shape)
    state = CONSTANT(builder, value=Dense(np.array([seed, 0], np.uint64)))
    width = 64 if dtype.itemsize == 8 else 32
    attrs = RngBitGeneratorAttrs(wide, DTYPES[f"u{width}"])
    bits = RNG_BIT_GENERATOR.emit(builder, (state,), attrs)[1]
    first, second = (Expression(builder, v).spread(wide) if wide else Expression(builder, v) for v in (low, high))
    if dtype_kind(dtype) not in ("float",):
        span = (second - first).convert(bits.type.dtype)
        return (first + Expression(builder, bits).apply(REMAINDER, span).convert(dtype)).value
    compute = DTYPES["f64" if width == 64 else "f32"]
    unit = Expression(builder, uniform_from_bits(builder, bits, compute))
    if distribution == "NORMAL":
        centred = (unit * 2 - 1).apply(MAXIMUM, unit.number(float(np.nextafter(compute.type(-1), compute.type(0)))))
        normal = centred.apply(ERF_INV) * float(np.sqrt(2))
        return (first + second * normal.convert(dtype)).value
    return (first + (second - first) * unit.convert(dtype)).value


FAMILY: tuple[OpDef[Any], ...] = (RNG_BIT_GENERATOR, RANDOM_BLOCK, THREEFRY2X32)
