"""Modules of ops that move, contract, look up and transform, and of constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from tests.interop.dialects.case import Case, floats, generic, module

X, Y = floats(3, 4), floats(4, 5, seed=1)
B1, B2 = floats(2, 3, 4, seed=2), floats(2, 4, 5, seed=3)
ROWS = np.array([2, 0, 9, -1], np.int64)
SPD = (np.eye(3) * 3 + floats(3, 3, seed=5) @ floats(3, 3, seed=5).T).astype(np.float32)


def _dense(*numbers: int) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def _conv(x: Any, w: Any) -> Any:
    return np.stack([np.einsum("bck,ock->bo", x[:, :, i : i + 2], w) for i in range(3)], 2)


def _ragged_rows(x: Any, y: Any, sizes: Any) -> Any:
    out, start = np.zeros((x.shape[0], y.shape[2]), x.dtype), 0
    for g, n in enumerate(sizes):
        out[start : start + n] = x[start : start + n] @ y[g]
        start += n
    return out


def _ragged_contracted(x: Any, y: Any, sizes: Any) -> Any:
    ends = np.cumsum(sizes)
    return np.stack([x[:, e - n : e] @ y[e - n : e] for n, e in zip(sizes, ends, strict=True)])


def _ragged_stacks(x: Any, y: Any, sizes: Any) -> Any:
    """A size for each group and each row of the stack."""
    return np.stack([_ragged_rows(x[i], y[:, i], sizes[i]) for i in range(len(x))])


def _ragged(text: str) -> str:
    return f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{text}>"


def _select(x: Any, i: Any) -> Any:
    return np.take(x, np.clip(i, 0, x.shape[1] - 1), 1)


GATHER = (
    "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>"
)
CONV = (
    "dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 1 : i64, "
    "batch_group_count = 1 : i64"
)
DOT = (
    "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
    "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>"
)
RAGGED_ROWS = (
    "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], "
    "rhs_group_dimensions = [0]"
)
RAGGED_STACKS = (
    "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], "
    "rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]"
)
RAGGED_CONTRACTED = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1]"
RAGGED_BATCH = (
    "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
    "rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0]"
)
LONG = floats(7, 4, seed=6)
SIZES = np.array([3, 0, 2], np.int32)
SPOILED = np.concatenate([floats(5, 5, seed=7), np.full((2, 5), np.inf, np.float32)])

CASES: list[Case] = [
    generic("stablehlo.broadcast", lambda x: np.broadcast_to(x, (2, 3, 4)), X, attrs=f"broadcast_sizes = {_dense(2)}"),
    generic("stablehlo.broadcast_in_dim", lambda x: np.broadcast_to(x[:, None], (4, 5)), X[0],
            attrs=f"broadcast_dimensions = {_dense(0)}"),
    generic("stablehlo.reshape", lambda x: x.reshape(2, 6), X),
    generic("stablehlo.transpose", np.transpose, X, attrs=f"permutation = {_dense(1, 0)}"),
    generic("stablehlo.reverse", lambda x: x[:, ::-1], X, attrs=f"dimensions = {_dense(1)}"),
    generic("stablehlo.slice", lambda x: x[1:3, 0:4:2], X,
            attrs=f"start_indices = {_dense(1, 0)}, limit_indices = {_dense(3, 4)}, strides = {_dense(1, 2)}"),
    generic("stablehlo.pad", lambda x, f: np.pad(x, ((1, 0), (0, 2)), constant_values=f), X, np.float32(7),
            attrs=f"edge_padding_low = {_dense(1, 0)}, edge_padding_high = {_dense(0, 2)}, "
            f"interior_padding = {_dense(0, 0)}"),
    generic("stablehlo.concatenate", lambda *xs: np.concatenate(xs, 1), X, X[:, :1], attrs="dimension = 1 : i64"),
    generic("stablehlo.iota", lambda: np.broadcast_to(np.arange(4), (3, 4)), attrs="iota_dimension = 1 : i64"),
    generic("stablehlo.dynamic_slice", lambda x, i, j: x[1:3, 2:4], X, np.int32(1), np.int32(9),
            attrs=f"slice_sizes = {_dense(2, 2)}"),
    generic("stablehlo.dynamic_update_slice",
            lambda x, u, i, j: np.concatenate([x[:1], np.hstack([x[1:, :2], u])]), X, floats(2, 2), np.int32(1),
            np.int32(2)),
    generic("stablehlo.get_dimension_size", lambda x: np.int32(4), X, attrs="dimension = 1 : i64"),
    generic("stablehlo.gather", lambda x, i: x[np.clip(i[:, 0], 0, 2)], X, ROWS[:, None], attrs=GATHER),
    generic("stablehlo.torch_index_select", lambda x, i: _select(x, i), X, ROWS,
            attrs="dim = 1 : i64, batch_dims = 0 : i64"),
    generic("stablehlo.torch_index_select", lambda x, i: np.stack([x[b][:, i[b]] for b in range(2)]), B1,
            np.array([[3, 0], [1, 1]], np.int32), attrs="dim = 2 : i64, batch_dims = 1 : i64"),
    generic("stablehlo.dot", np.matmul, X, Y),
    generic("stablehlo.dot", np.matmul, X, Y[:, 0]),
    generic("stablehlo.dot_general", np.matmul, B1, B2, attrs=DOT),
    generic("stablehlo.einsum", lambda x, y: np.einsum("bij,bjk->kib", x, y), B1, B2,
            attrs='einsum_config = "bij,bjk->kib"'),
    generic("stablehlo.einsum", lambda x, y: np.einsum("...ij,...jk->i...k", x, y), B1, B2,
            attrs='einsum_config = "...ij,...jk->i...k"'),
    generic("stablehlo.einsum", lambda x, y: np.einsum("ii,kl->li", x, y), SPD, X, attrs='einsum_config = "ii,kl->li"'),
    generic("stablehlo.einsum", lambda x, y: np.einsum("ij,ij->", x, y), X, X, attrs='einsum_config = "ij,ij->"'),
    generic("stablehlo.unary_einsum", lambda x: np.einsum("bij->jb", x), B1, attrs='einsum_config = "bij->jb"'),
    generic("stablehlo.unary_einsum", lambda x: np.einsum("iij->ji", x), floats(3, 3, 2),
            attrs='einsum_config = "iij->ji"'),
    generic("stablehlo.unary_einsum", np.trace, SPD, attrs='einsum_config = "ii->"'),
    generic("chlo.ragged_dot", _ragged_rows, LONG, floats(3, 4, 5), SIZES, attrs=_ragged(RAGGED_ROWS)),
    generic("chlo.ragged_dot", _ragged_stacks, floats(2, 7, 4), floats(3, 2, 4, 5),
            np.array([[3, 0, 2], [1, 5, 1]], np.int32),
            attrs=_ragged(RAGGED_STACKS)),
    generic("chlo.ragged_dot", _ragged_contracted, floats(3, 7), SPOILED, SIZES, attrs=_ragged(RAGGED_CONTRACTED)),
    generic("chlo.ragged_dot", lambda x, y, s: x @ y, B1, B2, np.array([1, 1], np.int32), attrs=_ragged(RAGGED_BATCH)),
    generic("stablehlo.convolution", _conv, floats(1, 3, 4), floats(2, 3, 2, seed=4), attrs=CONV),
    generic("stablehlo.fft", lambda x: np.fft.rfft(x).astype(np.complex64), X, terms=256,
            attrs=f"fft_type = #stablehlo<fft_type RFFT>, fft_length = {_dense(4)}"),
    generic("stablehlo.cholesky", np.linalg.cholesky, SPD, attrs="lower = true"),
    generic("stablehlo.triangular_solve", lambda a, b: sl.solve_triangular(a, b, lower=True), np.tril(SPD), X,
            terms=256, attrs="left_side = true, lower = true, unit_diagonal = false, "
            "transpose_a = #stablehlo<transpose NO_TRANSPOSE>"),
    generic("chlo.top_k", lambda x: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2].astype(np.int32)), X,
            attrs="k = 2 : i64"),
    generic("chlo.constant_like", lambda x: np.full_like(x, 2.5), X, attrs="value = 2.5 : f32"),
    *(module(f"{d}.constant", f'%r = "{d}.constant"() {{value = dense<[1.0, -2.0]> : $0}} : () -> $0\nreturn %r : $0',
             lambda: np.array([1, -2], np.float32)) for d in ("stablehlo", "chlo", "sdy")),
]  # fmt: skip


# -- normalisation -----------------------------------------------------------------------------------------------------


def _moments(x: Any) -> tuple[Any, Any]:
    return x.mean((0, 1)), x.var((0, 1))


def _inference(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    return ((x - mean) / np.sqrt(variance + 0.25) * scale + offset).astype(np.float32)


def _training(x: Any, scale: Any, offset: Any) -> tuple[Any, ...]:
    mean, variance = _moments(x)
    return _inference(x, scale, offset, mean, variance), mean, variance


def _grad(x: Any, scale: Any, mean: Any, variance: Any, ct: Any) -> tuple[Any, ...]:
    """The textbook's, over the elements of each feature."""
    n, root = x.shape[0] * x.shape[1], np.sqrt(variance + 0.25)
    normal = (x - mean) / root
    by_scale, by_offset = (ct * normal).sum((0, 1)), ct.sum((0, 1))
    by_x = scale / root / n * (n * ct - by_offset - normal * by_scale)
    return tuple(a.astype(np.float32) for a in (by_x, by_scale, by_offset))


_NORM = "epsilon = 0.25 : f32, feature_index = 2 : i64"
_OF = floats(3, seed=1), floats(3, seed=2)
_IMAGES = floats(4, 5, 3)
CASES += [
    generic("stablehlo.batch_norm_training", _training, _IMAGES, *_OF, attrs=_NORM, terms=256),
    generic("stablehlo.batch_norm_inference", _inference, _IMAGES, *_OF, floats(3), np.abs(floats(3)), attrs=_NORM,
            terms=256),
    generic("stablehlo.batch_norm_grad", _grad, _IMAGES, _OF[0], *_moments(_IMAGES), floats(4, 5, 3, seed=3),
            attrs=_NORM, terms=1024),
]  # fmt: skip
