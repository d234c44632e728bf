"""The list of programs: what JAX's users call most, and what lowers in unusual ways."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as sp
from jax import lax

from tests.xla.sweep import program_structures
from tests.xla.sweep.programs import ALL, FC, LOW, C, F, Lowered, N


def _svd(x: Any) -> Any:
    """The singular values, and the matrix put together again: vectors are known up to their signs."""
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return s, (u * s[None, :].astype(u.dtype)) @ v


def _eigh(x: Any) -> Any:
    w, v = jnp.linalg.eigh(x)
    return w, (v * w[None, :].astype(v.dtype)) @ v.conj().T


def _eig(x: Any) -> Any:
    w, v = jnp.linalg.eig(x)
    return (v * w[None, :]) @ jnp.linalg.inv(v)


def _schur(x: Any) -> Any:
    t, z = jax.scipy.linalg.schur(x)
    return z @ t @ z.conj().T


def _hessenberg(x: Any) -> Any:
    return jax.scipy.linalg.hessenberg(x, calc_q=False)


_ELEMENTWISE = (
    *(Lowered(f"lax.{n}", getattr(lax, n), "real:24", LOW + C, 8) for n in
      ("sin", "cos", "tan", "tanh", "sinh", "cosh", "exp", "expm1", "asinh", "atan", "logistic", "square", "exp2")),
    *(Lowered(f"lax.{n}", getattr(lax, n), "positive:24", LOW + C, 8) for n in ("log", "log1p", "sqrt", "rsqrt")),
    *(Lowered(f"lax.{n}", getattr(lax, n), "unit:24", LOW + C, 8) for n in ("asin", "acos", "atanh")),
    Lowered("lax.acosh", lambda x: lax.acosh(x + 1), "positive:24", LOW + C, 8),
    Lowered("lax.cbrt", lax.cbrt, "real:24", LOW, 8),
    *(Lowered(f"lax.{n}", getattr(lax, n), "wide:64", LOW, 1, 0.0) for n in ("sign", "round", "floor", "ceil", "abs",
                                                                            "neg", "is_finite")),
    Lowered("lax.round_even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "wide:64", LOW, 1, 0.0),
    *(Lowered(f"lax.{n}", getattr(lax, n), "real:24", LOW, 64) for n in ("erf", "erfc")),
    Lowered("lax.erf_inv", lax.erf_inv, "unit:24", LOW, 64),
    *(Lowered(f"lax.{n}", getattr(lax, n), "positive:24", LOW, 64) for n in
      ("lgamma", "digamma", "bessel_i0e", "bessel_i1e")),
    Lowered("lax.nextafter", lax.nextafter, "wide:64 wide:64", F, 1, 0.0),
    Lowered("lax.atan2", lax.atan2, "real:24 real:24", LOW, 8),
    Lowered("lax.pow", lax.pow, "positive:24 real:24", FC, 64),
    Lowered("lax.pow_int", lambda x: lax.pow(x, 3), "real:24", LOW, 8),
    *(Lowered(f"lax.integer_pow_{k}", lambda x, k=k: lax.integer_pow(x, k), "positive:24", LOW + C, 32) for k in
      (0, 1, 2, 3, 5, 8, -1, -2, -3)),
    *(Lowered(f"lax.integer_pow_{k}", lambda x, k=k: lax.integer_pow(x, k), "real:24", N, 1) for k in (0, 2, 3, 5)),
    Lowered("lax.rem", lax.rem, "real:24 positive:24", LOW, 8),
    Lowered("lax.div_int", lax.div, "wide:64 wide:64", N, 1),
    Lowered("lax.rem_int", lax.rem, "wide:64 wide:64", N, 1),
    Lowered("lax.mulhi", lax.mulhi, "wide:64 wide:64", ("i32", "u32", "i64", "u64", "i8"), 1),
    Lowered("lax.population_count", lax.population_count, "wide:64", ("i8", "u8", "i32", "u32", "i64"), 1),
    Lowered("lax.clz", lax.clz, "wide:64", ("i8", "u8", "i32", "u32", "i64"), 1),
    Lowered("lax.shift", lambda x, y: (lax.shift_left(x, y), lax.shift_right_arithmetic(x, y),
                                       lax.shift_right_logical(x, y)), "wide:64 wide:64", N, 1),
    Lowered("lax.clamp", lambda a, x, b: lax.clamp(a, x, b), "real real:24 positive", LOW + N, 1),
    Lowered("lax.conj", lax.conj, "real:24", C, 1),
    Lowered("lax.complex", lambda x, y: lax.complex(x, y) * 2, "real:24 real:24", F, 1),
    Lowered("lax.real_imag", lambda x: (lax.real(x), lax.imag(x), jnp.angle(x), abs(x)), "real:24", C, 8),
    Lowered("lax.reduce_precision", lambda x: lax.reduce_precision(x, 5, 3), "wide:64", LOW, 1, 0.0),
    Lowered("lax.convert", lambda x: tuple(x.astype(t) for t in (jnp.bool_, jnp.int8, jnp.uint16, jnp.int32,
            jnp.float16, jnp.bfloat16, jnp.float32, jnp.float8_e4m3fn, jnp.float8_e5m2)), "real:24",
            ("bool", "i8", "i32", "i64", "u8", "u32", *LOW), 1),
    Lowered("lax.bitcast", lambda x: lax.bitcast_convert_type(x, jnp.uint8), "wide:24", ("f32", "i16", "f64"), 1),
    Lowered("lax.select_n", lambda i, a, b, c: lax.select_n(i % 3, a, b, c),
            "i32=positive:24 real:24 real:24 real:24", ALL[1:], 1),
)  # fmt: skip

_SPECIAL = (
    *(Lowered(f"sp.{n}", getattr(sp, n), "positive:16 positive:16", F, 4096) for n in
      ("gammainc", "gammaincc", "beta", "betaln", "xlogy", "xlog1py")),
    Lowered("lax.igamma_grad_a", lax.igamma_grad_a, "positive:8 positive:8", F, 10000),
    Lowered("lax.random_gamma_grad", lax.random_gamma_grad, "positive:8 positive:8", F, 40000),
    Lowered("sp.betainc", sp.betainc, "positive:16 positive:16 fraction:16", F, 4096),
    Lowered("sp.zeta", lambda x, q: sp.zeta(x + 1.5, q), "positive:16 positive:16", F, 256),
    Lowered("sp.polygamma", lambda x: sp.polygamma(2, x), "positive:16", F, 1024),
    *(Lowered(f"sp.{n}", getattr(sp, n), "real:16", F, 256) for n in
      ("i0", "i0e", "i1", "i1e", "expit", "log_ndtr", "ndtr", "erf", "erfc", "sinc") if hasattr(sp, n)),
    *(Lowered(f"sp.{n}", getattr(sp, n), "fraction:16", F, 256) for n in ("ndtri", "logit", "entr", "erfinv")),
    *(Lowered(f"sp.{n}", getattr(sp, n), "positive:16", F, 1024) for n in
      ("gammaln", "digamma", "factorial", "gamma", "exp1", "expi", "spence")),
    Lowered("sp.multigammaln", lambda x: sp.multigammaln(x + 3, 2), "positive:16", F, 256),
    Lowered("sp.logsumexp", lambda x: sp.logsumexp(x, axis=1), "real:4x6", F, 64),
    Lowered("sp.kl_div", sp.kl_div, "positive:16 positive:16", F, 256),
    Lowered("sp.rel_entr", sp.rel_entr, "positive:16 positive:16", F, 256),
    Lowered("sp.expn", lambda x: sp.expn(2, x), "positive:8", ("f32",), 4096),
    Lowered("sp.hyp1f1", lambda a, b, x: sp.hyp1f1(a, b, x), "positive:6 positive:6 fraction:6", F, 10000),
    Lowered("sp.bessel_jn", lambda x: sp.bessel_jn(x, v=3), "positive:6", ("f32",), 10000),
    Lowered("sp.poch", sp.poch, "positive:8 positive:8", F, 4096),
    Lowered("sp.softmax", lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x), jax.nn.gelu(x), jax.nn.softplus(x),
            jax.nn.silu(x), jax.nn.elu(x), jax.nn.selu(x), jax.nn.swish(x), jax.nn.celu(x)), "real:4x6", LOW, 64),
)  # fmt: skip

_REDUCTIONS = (
    *(Lowered(f"jnp.{n}", lambda x, n=n: getattr(jnp, n)(x, axis=1), "unit:4x5x3", LOW + N + C, 64) for n in
      ("sum", "prod", "mean", "cumsum", "cumprod")),
    *(Lowered(f"jnp.{n}", lambda x, n=n: getattr(jnp, n)(x, axis=1), "real:4x5x3", LOW + N, 64) for n in
      ("max", "min", "argmax", "argmin", "var", "std", "median", "ptp", "nanmax", "nansum", "sort", "argsort")),
    *(Lowered(f"lax.{n}", lambda x, n=n: (getattr(lax, n)(x, axis=0), getattr(lax, n)(x, axis=1, reverse=True)),
              "unit:6x5", LOW, 64) for n in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")),
    Lowered("lax.cumsum_int", lambda x: lax.cumsum(x, reverse=True), "wide:9", N, 1),
    Lowered("jnp.percentile", lambda x: jnp.percentile(x, jnp.array([10.0, 50.0, 77.0]), axis=0), "real:9x3", F, 16),
    Lowered("jnp.any_all", lambda x: (jnp.any(x, axis=0), jnp.all(x, axis=1), jnp.count_nonzero(x)), "real:4x5", ALL,
            1),
    Lowered("jnp.quantile", lambda x: jnp.quantile(x, 0.3, axis=1), "real:3x8", F, 16),
    Lowered("lax.argmax_nan", lambda x: (lax.argmax(x, 1, jnp.int32), lax.argmin(x, 0, jnp.int32)), "wide:6x6", LOW, 1),
    Lowered("lax.reduce_and", lambda x: (lax.reduce_and(x, (0,)), lax.reduce_or(x, (1,)), lax.reduce_xor(x, (0, 1))),
            "wide:4x5", ("bool", "i32", "u8"), 1),
    Lowered("lax.top_k", lambda x: lax.top_k(x, 3), "real:4x9", LOW + N, 1),
    Lowered("lax.approx_max_k", lambda x: lax.approx_max_k(x, 3), "real:4x9", F, 1),
    Lowered("lax.approx_min_k", lambda x: lax.approx_min_k(x, 2), "real:4x9", F, 1),
    Lowered("lax.sort_several", lambda x, y: lax.sort((x, y), num_keys=2), "real:4x9 real:4x9", ALL[1:], 1),
    Lowered("jnp.lexsort", lambda x, y: jnp.lexsort((x, y)), "real:9 real:9", F, 1),
    Lowered("jnp.unique", lambda x: jnp.unique(x, size=8, fill_value=0), "i32=real:12", ("i32",), 1),
    Lowered("jnp.searchsorted", lambda x, y: jnp.searchsorted(jnp.sort(x), y), "real:9 real:5", LOW, 1),
    Lowered("jnp.histogram", lambda x: jnp.histogram(x, bins=4)[0], "real:30", F, 1),
    Lowered("jnp.bincount", lambda x: jnp.bincount(abs(x), length=6), "i32=real:12", ("i32",), 1),
    Lowered("jnp.digitize", lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), "real:12", F, 1),
    Lowered("jax.ops.segment_sum", lambda x, i: jax.ops.segment_sum(x, abs(i) % 4, 4), "real:9x2 i32=index:9", FC, 64),
    Lowered("jax.ops.segment_max", lambda x, i: jax.ops.segment_max(x, abs(i) % 4, 4), "real:9x2 i32=index:9", F, 64),
)  # fmt: skip

_LINALG = (
    Lowered("linalg.cholesky", lambda x: jnp.linalg.cholesky(x), "definite:2x4x4", FC, 256),
    Lowered("linalg.cholesky_upper", lambda x: jnp.linalg.cholesky(x, upper=True), "definite:4x4", FC, 256),
    Lowered("linalg.qr", lambda x: jnp.linalg.qr(x), "regular:2x5x3", FC, 1024),
    Lowered("linalg.qr_wide", lambda x: jnp.linalg.qr(x, mode="complete"), "regular:3x5", FC, 1024),
    Lowered("linalg.qr_pivoting", lambda x: jax.scipy.linalg.qr(x, pivoting=True), "regular:4x3", FC, 1024),
    Lowered("linalg.qr_r", lambda x: jnp.linalg.qr(x, mode="r"), "regular:5x3", FC, 1024),
    Lowered("linalg.lu", lambda x: tuple(jax.scipy.linalg.lu(x)), "regular:4x4", FC, 1024),
    Lowered("linalg.lu_factor", lambda x: jax.scipy.linalg.lu_factor(x), "regular:4x4", FC, 1024),
    Lowered("lax.lu", lambda x: lax.linalg.lu(x), "regular:3x5", FC, 1024),
    Lowered("linalg.svd_values", lambda x: jnp.linalg.svd(x, compute_uv=False), "regular:2x5x3", FC, 1024),
    Lowered("linalg.svd", _svd, "regular:5x3", FC, 1024),
    Lowered("linalg.eigh", _eigh, "definite:4x4", FC, 4096),
    Lowered("linalg.eigvalsh", lambda x: jnp.linalg.eigvalsh(x), "definite:3x4x4", FC, 4096),
    Lowered("linalg.eig", _eig,
            "regular:4x4", FC, 10000),
    Lowered("linalg.eigvals", lambda x: jnp.sum(jnp.linalg.eigvals(x)), "regular:4x4", FC, 4096),
    Lowered("linalg.solve", jnp.linalg.solve, "regular:2x4x4 real:2x4x3", FC, 1024),
    Lowered("linalg.inv", jnp.linalg.inv, "regular:2x4x4", FC, 1024),
    Lowered("linalg.det", lambda x: (jnp.linalg.det(x), *jnp.linalg.slogdet(x)), "regular:2x4x4", FC, 1024),
    Lowered("linalg.pinv", jnp.linalg.pinv, "regular:5x3", FC, 4096),
    Lowered("linalg.lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], "regular:5x3 real:5x2", F, 4096),
    Lowered("linalg.norm", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, 2), jnp.linalg.norm(x, "nuc"),
            jnp.linalg.norm(x, 1), jnp.linalg.cond(x)), "regular:4x4", FC, 4096),
    Lowered("linalg.matrix_power", lambda x: jnp.linalg.matrix_power(x, 5), "regular:3x3", FC, 1024),
    Lowered("linalg.matrix_rank", jnp.linalg.matrix_rank, "regular:4x3", FC, 1),
    Lowered("linalg.expm", jax.scipy.linalg.expm, "unit:3x3", FC, 4096),
    Lowered("linalg.sqrtm", lambda x: jnp.real(jax.scipy.linalg.sqrtm(x)), "definite:3x3", F, 10000),
    Lowered("linalg.schur", _schur, "regular:3x3",
            F, 4096),
    Lowered("linalg.hessenberg", _hessenberg, "regular:4x4", FC, 4096),
    Lowered("linalg.polar", lambda x: jax.scipy.linalg.polar(x), "regular:3x3", F, 4096),
    Lowered("lax.tridiagonal", lambda x: lax.linalg.tridiagonal(x)[1:3], "definite:4x4", F, 4096),
    Lowered("lax.tridiagonal_solve", lambda a, b, c, d: lax.linalg.tridiagonal_solve(
        a.at[0].set(0), b + 6, c.at[-1].set(0), d), "real:5 positive:5 real:5 real:5x2", F, 1024),
    Lowered("lax.householder_product", lax.linalg.householder_product, "unit:5x3 fraction:3", FC, 1024),
    Lowered("linalg.triangular_solve", lambda a, b: tuple(lax.linalg.triangular_solve(
        a, b, left_side=True, lower=low, transpose_a=t, conjugate_a=t, unit_diagonal=u) for low in (True, False)
        for t in (True, False) for u in (True, False)), "regular:2x4x4 real:2x4x3", FC, 1024),
    Lowered("linalg.cho_solve", lambda a, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b),
            "definite:4x4 real:4x2", FC, 4096),
    Lowered("linalg.block_diag", lambda a, b: jax.scipy.linalg.block_diag(a, b), "real:2x3 real:3x2", FC, 1),
    Lowered("linalg.toeplitz", lambda a: jax.scipy.linalg.toeplitz(a), "real:5", F, 1),
    Lowered("linalg.multi_dot", lambda a, b, c: jnp.linalg.multi_dot([a, b, c]), "real:3x4 real:4x5 real:5x2", FC, 256),
    Lowered("linalg.kron", jnp.kron, "real:3x4 real:2x2", FC, 1),
    Lowered("jnp.roots", lambda x: jnp.sort(jnp.abs(jnp.roots(x, strip_zeros=False))), "positive:4", F, 10000),
)  # fmt: skip

PROGRAMS: tuple[Lowered, ...] = (*_ELEMENTWISE, *_SPECIAL, *_REDUCTIONS, *_LINALG, *program_structures.PROGRAMS)
