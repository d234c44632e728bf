"""One module for each op that works element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from tests.interop.dialects.case import INT4, Case, floats, generic

X, Y = floats(3, 4), floats(3, 4, seed=1)
P, Q = np.abs(X), np.abs(Y)
N, J = np.array([[5, -7, 100], [3, 0, -1]], np.int32), np.array([[2, 3, 7], [-2, 9, -1]], np.int32)
S = np.array([[1, 3, 31], [0, 40, 2]], np.int32)
C = (X + 1j * Y).astype(np.complex64)
ODD = np.array([1.5, np.inf, -np.inf, np.nan, -0.0], np.float32)


def _as(dtype: Any) -> Any:
    return lambda x: x.astype(dtype)


def _away(x: Any) -> Any:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _shift_logical(x: Any, s: Any) -> Any:
    return np.where(s < 32, x.view(np.uint32) >> np.minimum(s, 31).astype(np.uint32), 0).astype(np.uint32).view(x.dtype)


def _mulhi(x: Any, y: Any) -> Any:
    bits = 8 * x.dtype.itemsize
    flat = [int(a) * int(b) >> bits for a, b in zip(x.ravel(), y.ravel(), strict=True)]
    return np.array(flat, x.dtype).reshape(x.shape)


def _kernel(z: Any) -> Any:
    """With w the kernel, asin(z) is complex(atan2(Re z, Re w), sign(Im z) Im w)."""
    s = np.arcsin(z.astype(np.complex128))
    return (np.cosh(s.imag) * np.cos(s.real) + 1j * np.abs(s.imag)).astype(z.dtype)


UNARY: dict[str, tuple[Any, Any]] = {
    "stablehlo.abs": (np.abs, X), "stablehlo.cbrt": (np.cbrt, X), "stablehlo.ceil": (np.ceil, 9 * X),
    "stablehlo.cosine": (np.cos, X), "stablehlo.exponential": (np.exp, X),
    "stablehlo.exponential_minus_one": (np.expm1, X), "stablehlo.floor": (np.floor, 9 * X),
    "stablehlo.imag": (np.imag, C), "stablehlo.is_finite": (np.isfinite, ODD), "stablehlo.log": (np.log, P),
    "stablehlo.log_plus_one": (np.log1p, P), "stablehlo.logistic": (sp.expit, X), "stablehlo.negate": (np.negative, X),
    "stablehlo.not": (np.invert, N), "stablehlo.real": (np.real, C), "stablehlo.rsqrt": (lambda x: 1 / np.sqrt(x), P),
    "stablehlo.popcnt": (lambda x: np.bitwise_count(x.view(np.uint32)).astype(np.int32), N),
    "stablehlo.count_leading_zeros": (lambda x: np.array([[29, 0, 25], [30, 32, 0]], np.int32), N),
    "stablehlo.round_nearest_afz": (_away, np.array([0.5, 1.5, -2.5, 3.2], np.float32)),
    "stablehlo.round_nearest_even": (np.round, np.array([0.5, 1.5, -2.5, 3.2], np.float32)),
    "stablehlo.sign": (np.sign, X), "stablehlo.sine": (np.sin, X), "stablehlo.sqrt": (np.sqrt, P),
    "stablehlo.tan": (np.tan, X), "stablehlo.tanh": (np.tanh, X), "stablehlo.convert": (_as(np.int8), 9 * X),
    "stablehlo.bitcast_convert": (lambda x: x.view(np.int32), X),
    "chlo.acos": (np.arccos, X), "chlo.acosh": (np.arccosh, 1 + P), "chlo.asin": (np.arcsin, X),
    "chlo.asinh": (np.arcsinh, X), "chlo.atan": (np.arctan, X), "chlo.atanh": (np.arctanh, X),
    "chlo.bessel_i1e": (sp.i1e, X), "chlo.conj": (np.conj, C), "chlo.cosh": (np.cosh, X), "chlo.digamma": (sp.psi, P),
    "chlo.erf": (sp.erf, X), "chlo.erf_inv": (sp.erfinv, X), "chlo.erfc": (sp.erfc, X), "chlo.is_inf": (np.isinf, ODD),
    "chlo.is_neg_inf": (np.isneginf, ODD), "chlo.is_pos_inf": (np.isposinf, ODD), "chlo.lgamma": (sp.gammaln, P),
    "chlo.sinh": (np.sinh, X), "chlo.square": (np.square, X), "chlo.tan": (np.tan, X),
    "chlo._asin_acos_kernel": (_kernel, C),
}  # fmt: skip
BINARY: dict[str, tuple[Any, Any, Any]] = {
    "stablehlo.add": (np.add, X, Y), "stablehlo.and": (np.bitwise_and, N, J), "stablehlo.atan2": (np.arctan2, X, Y),
    "stablehlo.complex": (lambda a, b: (a + 1j * b).astype(np.complex64), X, Y),
    "stablehlo.divide": (np.divide, X, Y), "stablehlo.maximum": (np.maximum, X, Y),
    "stablehlo.minimum": (np.minimum, X, Y), "stablehlo.multiply": (np.multiply, X, Y),
    "stablehlo.or": (np.bitwise_or, N, J), "stablehlo.power": (np.power, P, Y),
    "stablehlo.remainder": (np.fmod, N, np.where(J == 0, 1, J).astype(np.int32)),
    "stablehlo.shift_left": (lambda a, s: np.where(s < 32, a << np.minimum(s, 31), 0).astype(np.int32), N, S),
    "stablehlo.shift_right_arithmetic": (lambda a, s: a >> np.minimum(s, 31), N, S),
    "stablehlo.shift_right_logical": (_shift_logical, N, S),
    "stablehlo.subtract": (np.subtract, X, Y), "stablehlo.xor": (np.bitwise_xor, N, J),
    "chlo.next_after": (np.nextafter, X, Y), "chlo.zeta": (lambda a, b: sp.zeta(a, b).astype(a.dtype), 1 + P, Q),
    "chlo.polygamma": (lambda n, b: sp.polygamma(n, b).astype(b.dtype), np.array([1, 2, 3], np.float32), P[0, :3]),
    "chlo.mulhi": (_mulhi, N * 30000001, J * 40000003),
}  # fmt: skip

CASES: list[Case] = [generic(op, want, x, terms=256) for op, (want, x) in UNARY.items()]
CASES += [generic(op, want, x, y, terms=256) for op, (want, x, y) in BINARY.items()]
CASES += [
    generic("chlo.mulhi", _mulhi, np.array([-(2**63), 2**63 - 1, 5**27]), np.array([-1, 2**63 - 1, -(7**22)])),
    generic("stablehlo.add", np.add, np.array([1, -2, 3], INT4), np.array([4, 5, -6], INT4)),
    generic(
        "stablehlo.select", lambda p, x, y: np.where(p, x, y), X > 0, X, Y
    ),
    generic("stablehlo.select", lambda p, x, y: x if p else y, np.array(False), X, Y),
    generic("stablehlo.clamp", lambda a, x, b: np.clip(x, a, b), np.float32(-0.3), X, np.float32(0.4)),
    generic(
        "stablehlo.compare", np.less, X, Y,
        attrs="comparison_direction = #stablehlo<comparison_direction LT>",
    ),
    generic(
        "stablehlo.compare", lambda x, y: np.array([True, False]),
        np.array([-0.0, np.nan], np.float32), np.array([0.0, 1.0], np.float32),
        attrs="comparison_direction = #stablehlo<comparison_direction LT>, "
        "compare_type = #stablehlo<comparison_type TOTALORDER>",
    ),
    generic(
        "stablehlo.reduce_precision", lambda x: x.astype(np.float16).astype(np.float32), X,
        attrs="exponent_bits = 5 : i32, mantissa_bits = 10 : i32",
    ),
]  # fmt: skip


def _spread(op: str, x: Any, y: Any, attrs: str = "") -> Case:
    plain = op.replace("broadcast_", "") if "power" not in op else "stablehlo.power"
    found = BINARY.get(plain) or BINARY[plain.replace("chlo.", "stablehlo.")]
    want = found[0]
    dims = y.shape != x.shape and y.ndim == 1 and y.shape[0] == x.shape[0]
    wide = (lambda a, b: want(a, b[:, None])) if dims else want
    return generic(op, wide, x, y, attrs=attrs or ("broadcast_dimensions = array<i64: 0>" if dims else ""), terms=256)


_NAMES = (
    "add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or", "polygamma",
    "power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor", "zeta",
)  # fmt: skip
_OF_INTEGERS = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "remainder")
for _name in _NAMES:
    _integers = _name in _OF_INTEGERS
    _x, _y = (N, np.array([2, 3], np.int32)) if _integers else (1 + P, Q[:, 0])
    if _name == "polygamma":
        _x, _y = np.array([[1], [2]], np.float32), Q[0]
    CASES.append(_spread(f"chlo.broadcast_{_name}", _x, _y))
CASES += [
    generic("chlo.broadcast_add", np.add, X, Y[0]),
    generic("chlo.broadcast_multiply", np.multiply, np.float32(3), X),
    generic("chlo.broadcast_select", lambda p, x, y: np.where(p, x, y), X[0] > 0, X, np.float32(7)),
    generic("chlo.broadcast_select", lambda p, x, y: np.where(p, x, y), np.array(True), X, Y[:1]),
    generic(
        "chlo.broadcast_compare", np.greater, X, Y[0],
        attrs="comparison_direction = #chlo<comparison_direction GT>",
    ),
]  # fmt: skip
