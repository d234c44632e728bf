"""Modules of ops with regions: monoids, any other region, several operands, and scalars read from around them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.interop.dialects.case import Case, floats, folding, generic, module

X = floats(3, 4)
N = np.array([[5, -7, 12, 3], [3, 0, -1, 8], [9, 9, 2, -4]], np.int32)
ZERO, ONE, WORST = np.float32(0), np.float32(1), np.float32(-np.inf)
AT = np.array([[1], [0], [1], [9], [1]], np.int32)
ROWS, NEW = floats(4, 3, seed=2), floats(5, 3, seed=3)
BF = ml_dtypes.bfloat16

# (a, i), (b, j) -> the larger value and its index, the first of equals
PICK = """({ ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
  %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
  %k = stablehlo.select %g, %i, %j : tensor<i1>, tensor<i32>
  stablehlo.return %v, %k : tensor<f32>, tensor<i32>
})"""
# p, q -> 2 p + q
DOUBLING = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %d = stablehlo.add %p, %p : tensor<f32>
  %s = stablehlo.add %d, %q : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
# p, q -> p * q * c of an argument c
SCALED = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %d = stablehlo.multiply %p, %q : tensor<f32>
  %s = stablehlo.multiply %d, %c : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
# bf16 summed in f32
WIDENED = """({ ^bb0(%p: tensor<bf16>, %q: tensor<bf16>):
  %a = stablehlo.convert %p : (tensor<bf16>) -> tensor<f32>
  %b = stablehlo.convert %q : (tensor<bf16>) -> tensor<f32>
  %s = stablehlo.add %a, %b : tensor<f32>
  %r = stablehlo.convert %s : (tensor<f32>) -> tensor<bf16>
  stablehlo.return %r : tensor<bf16>
})"""
SECOND = "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):\nstablehlo.return %q : tensor<f32>\n})"
HELD = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %n = stablehlo.negate %p : tensor<f32>
  stablehlo.return %n : tensor<f32>
})"""


def _comparing(direction: str, dtype: str = "f32") -> str:
    t = f"tensor<{dtype}>"
    return (
        f"({{ ^bb0(%p: {t}, %q: {t}):\n%s = stablehlo.compare {direction}, %p, %q : ({t}, {t}) -> tensor<i1>\n"
        "stablehlo.return %s : tensor<i1>\n})"
    )


# -- reduce ------------------------------------------------------------------------------------------------------------

ALONG = "dimensions = array<i64: 1>"


def _pick(x: Any, i: Any, *_: Any) -> tuple[Any, Any]:
    at = np.argmax(x, 1)[:, None]
    return np.take_along_axis(x, at, 1)[:, 0], np.take_along_axis(i, at, 1)[:, 0]


CASES: list[Case] = [
    generic("stablehlo.reduce", lambda x, z: x.sum(1), X, ZERO, attrs=ALONG, regions=folding("stablehlo.add")),
    generic("stablehlo.reduce", lambda x, z: x.max(1), X, WORST, attrs=ALONG, regions=folding("stablehlo.maximum")),
    generic("stablehlo.reduce", lambda x, z: np.minimum(x.min(1), z), X, np.float32(-0.3), attrs=ALONG,
            regions=folding("stablehlo.minimum")),
    generic("stablehlo.reduce", lambda x, z: np.bitwise_xor.reduce(x, 1), N, np.int32(0), attrs=ALONG,
            regions=folding("stablehlo.xor", "i32")),
    generic("stablehlo.reduce", lambda x, z: np.bitwise_and.reduce(x, 1) & z, N, np.int32(7), attrs=ALONG,
            regions=folding("stablehlo.and", "i32")),
    generic("stablehlo.reduce", lambda x, z: (x.astype(np.float32).sum(1)).astype(BF), X.astype(BF), BF(0), attrs=ALONG,
            regions=WIDENED),
    generic("stablehlo.reduce", _pick, X, N, WORST, np.int32(-1), attrs=ALONG, regions=PICK),
    generic("stablehlo.reduce", lambda x, i, z, o: (x.sum(1), i.prod(1).astype(np.int32)), X, N, ZERO, np.int32(1),
            attrs=ALONG, regions="""({ ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
              %s = stablehlo.add %a, %b : tensor<f32>
              %k = stablehlo.multiply %j, %i : tensor<i32>
              stablehlo.return %s, %k : tensor<f32>, tensor<i32>
            })"""),
    module("stablehlo.reduce", f"""%r = "stablehlo.reduce"(%x, %z) {SCALED} {{{ALONG}}} : ($x, $z) -> $0
             return %r : $0""", lambda x, z, c: z * x.prod(1) * c**4, x=X, z=ONE, c=np.float32(1.5)),
]  # fmt: skip

# -- reduce_window -----------------------------------------------------------------------------------------------------

PAIRS = "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>"
RUNNING = "window_dimensions = array<i64: 1, 4>, padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>"


def _pairs(x: Any) -> Any:
    return x.reshape(3, 2, 2)


def _pick_pairs(x: Any, i: Any, *_: Any) -> tuple[Any, ...]:
    at = np.argmax(_pairs(x), 2)[..., None]
    return tuple(np.take_along_axis(_pairs(a), at, 2)[..., 0] for a in (x, i))


_WINDOWS: list[Case] = [
    generic("stablehlo.reduce_window", lambda x, z: _pairs(x).sum(2), X, ZERO, attrs=PAIRS,
            regions=folding("stablehlo.add")),
    generic("stablehlo.reduce_window", lambda x, z: x.cumsum(1), X, ZERO, attrs=RUNNING,
            regions=folding("stablehlo.add")),
    generic("stablehlo.reduce_window", lambda x, z: np.maximum(_pairs(x).max(2), z), X, np.float32(0.2), attrs=PAIRS,
            regions=folding("stablehlo.maximum")),
    generic("stablehlo.reduce_window", lambda x, z: np.maximum(np.maximum.accumulate(x, 1), z), X, np.float32(0.2),
            attrs=RUNNING, regions=folding("stablehlo.maximum")),
    generic("stablehlo.reduce_window", lambda x, z: _pairs(x).sum(2) + z, X, ONE, attrs=PAIRS,
            regions=folding("stablehlo.add")),
    generic("stablehlo.reduce_window", _pick_pairs, X, N, WORST, np.int32(-1), attrs=PAIRS, regions=PICK),
    module("stablehlo.reduce_window", f"""%r = "stablehlo.reduce_window"(%x, %z) {SCALED} {{{PAIRS}}} : ($x, $z) -> $0
             return %r : $0""", lambda x, z, c: z * _pairs(x).prod(2) * c**2, x=X, z=ONE, c=np.float32(1.5)),
]  # fmt: skip
CASES += _WINDOWS

# -- scatter -----------------------------------------------------------------------------------------------------------

PUT = (
    "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
)


def _scattered(fold: Any) -> Any:
    """The rows with updates folded in, one after the other."""

    def scatter(x: Any, at: Any, new: Any, *more: Any) -> Any:
        out = x.copy()
        for (i,), u in zip(at, new, strict=True):
            if 0 <= i < len(out):
                out[i] = fold(out[i], u, *more)
        return out

    return scatter


def _pick_rows(x: Any, i: Any, at: Any, new: Any, j: Any) -> tuple[Any, Any]:
    x, i = x.copy(), i.copy()
    for (row,), u, k in zip(at, new, j, strict=True):
        if row < len(x):
            less = u > x[row]
            x[row], i[row] = np.where(less, u, x[row]), np.where(less, k, i[row])
    return x, i


def _scatter(fold: Any, region: str, x: Any = ROWS, new: Any = NEW) -> Case:
    return generic("stablehlo.scatter", _scattered(fold), x, AT, new, attrs=PUT, regions=region)


def _scattered_narrow(x: Any, at: Any, new: Any) -> Any:
    return _scattered(np.add)(x.astype(np.float32), at, new.astype(np.float32)).astype(BF)


_NUMBERS = np.arange(12, dtype=np.int32).reshape(4, 3) * 7, np.arange(15, dtype=np.int32).reshape(5, 3) * 3
CASES += [
    _scatter(np.add, folding("stablehlo.add")),
    _scatter(np.multiply, folding("stablehlo.multiply")),
    _scatter(np.maximum, folding("stablehlo.maximum")),
    _scatter(np.minimum, folding("stablehlo.minimum")),
    _scatter(np.subtract, folding("stablehlo.subtract")),
    _scatter(np.divide, folding("stablehlo.divide")),
    _scatter(lambda a, u: u, SECOND),
    _scatter(lambda a, u: -a, HELD),
    _scatter(lambda a, u: 2 * a + u, DOUBLING),
    _scatter(np.bitwise_and, folding("stablehlo.and", "i32"), *_NUMBERS),
    _scatter(np.bitwise_or, folding("stablehlo.or", "i32"), *_NUMBERS),
    _scatter(np.bitwise_xor, folding("stablehlo.xor", "i32"), *_NUMBERS),
    _scatter(np.logical_or, folding("stablehlo.or", "i1"), ROWS > 0, NEW > 0),
    _scatter(np.logical_xor, folding("stablehlo.xor", "i1"), ROWS > 0, NEW > 0),
    generic("stablehlo.scatter", _scattered_narrow, ROWS.astype(BF), AT, NEW.astype(BF), attrs=PUT, regions=WIDENED),
    generic("stablehlo.scatter", _pick_rows, ROWS, _NUMBERS[0], AT, NEW, _NUMBERS[1], attrs=PUT, regions=PICK),
    generic("stablehlo.scatter", lambda x, y, a, u, w: (_scattered(np.add)(x, a, u), _scattered(np.maximum)(y, a, w)),
            ROWS, ROWS, AT, NEW, NEW, attrs=PUT, regions="""({
            ^bb0(%a: tensor<f32>, %i: tensor<f32>, %b: tensor<f32>, %j: tensor<f32>):
              %s = stablehlo.add %a, %b : tensor<f32>
              %k = stablehlo.maximum %j, %i : tensor<f32>
              stablehlo.return %s, %k : tensor<f32>, tensor<f32>
            })"""),
    module("stablehlo.scatter", f"""%r = "stablehlo.scatter"(%x, %i, %u) {SCALED} {{{PUT}}} : ($x, $i, $u) -> $0
             return %r : $0""", lambda x, i, u, c: _scattered(lambda a, b: a * b * c)(x, i, u),
           x=ROWS, i=AT, u=NEW, c=np.float32(1.5)),
]  # fmt: skip

# -- select_and_scatter ------------------------------------------------------------------------------------------------

_SELECTED = "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>"


def _winners(x: Any, source: Any, init: Any, last: bool = False) -> Any:
    out = np.full_like(_pairs(x), init)
    at = (1 - np.argmax(_pairs(x)[..., ::-1], 2) if last else np.argmax(_pairs(x), 2))[..., None]
    np.put_along_axis(out, at, source[..., None] + init, 2)
    return out.reshape(x.shape)


def _select_and_scatter(select: str, scatter: str, init: Any, want: Any = _winners) -> Case:
    regions = f"({select[1:-1]}, {scatter[1:-1]})"
    source = floats(3, 2, seed=4)
    return generic("stablehlo.select_and_scatter", want, X, source, init, attrs=_SELECTED, regions=regions)


CASES += [
    _select_and_scatter(_comparing("GE"), folding("stablehlo.add"), ZERO),
    _select_and_scatter(_comparing("GE"), folding("stablehlo.add"), ONE),
    _select_and_scatter(_comparing("GE"), folding("stablehlo.maximum"), WORST,
                        lambda x, s, z: np.where(_winners(x, s, ZERO) != 0, _winners(x, s, ZERO), WORST)),
    _select_and_scatter(_comparing("LE"), folding("stablehlo.add"), ZERO, lambda x, s, z: _winners(-x, s, z)),
]  # fmt: skip

# -- sort and map ------------------------------------------------------------------------------------------------------

_BY_DISTANCE = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %a = stablehlo.subtract %p, %c : tensor<f32>
  %b = stablehlo.subtract %q, %c : tensor<f32>
  %d = stablehlo.abs %a : tensor<f32>
  %e = stablehlo.abs %b : tensor<f32>
  %s = stablehlo.compare LT, %d, %e : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %s : tensor<i1>
})"""
_BY_SECOND = """({ ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
  %s = stablehlo.compare GT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %s : tensor<i1>
})"""
_STABLE = "dimension = 1 : i64, is_stable = true"


def _by_second(x: Any, i: Any) -> tuple[Any, Any]:
    order = np.argsort(-i, 1, kind="stable")
    return np.take_along_axis(x, order, 1), np.take_along_axis(i, order, 1)


def _by_distance(x: Any, c: Any) -> Any:
    return np.take_along_axis(x, np.argsort(np.abs(x - c), 1, kind="stable"), 1)


CASES += [
    generic("stablehlo.sort", lambda x: np.sort(x, 1), X, attrs=_STABLE, regions=_comparing("LT")),
    generic("stablehlo.sort", lambda x: -np.sort(-x, 0), X, attrs="dimension = 0 : i64", regions=_comparing("GT")),
    generic("stablehlo.sort", _by_second, X, N, attrs=_STABLE, regions=_BY_SECOND),
    module("stablehlo.sort", f"""%r = "stablehlo.sort"(%x) {_BY_DISTANCE} {{{_STABLE}}} : ($x) -> $0
             return %r : $0""", _by_distance, x=X, c=np.float32(0.3)),
    generic("stablehlo.map", lambda x, y: 2 * x + y, X, X + 1, attrs="dimensions = array<i64: 0, 1>", regions=DOUBLING),
    module("stablehlo.map", f"""%r = "stablehlo.map"(%x, %x) {SCALED} {{dimensions = array<i64: 0, 1>}} : ($x, $x) -> $0
             return %r : $0""", lambda x, c: x * x * c, x=X, c=np.float32(0.3)),
]  # fmt: skip
