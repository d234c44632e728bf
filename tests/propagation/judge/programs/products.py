"""Products and reductions."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.propagation.judge.programs.make import ODD, X4, XYZ, case, marked


def mm(a: Any, b: Any) -> Any:
    return a @ b


def ein(spec: str) -> Any:
    return lambda *xs: gnp.einsum(spec, *xs)


def mlp(x: Any, w: Any, v: Any) -> Any:
    return gnp.maximum(x @ w, 0.0) @ v


def variance(x: Any) -> Any:
    return ((x - x.mean(axis=-1, keepdims=True)) ** 2).mean(axis=-1)


CASES = (
    case("dot_rows", mm, "f32[512@x, 256]", "f32[256, 1024]"),
    case("dot_columns", mm, "f32[512, 256]", "f32[256, 1024@y]"),
    case("dot_rows_columns", mm, "f32[512@x, 256]", "f32[256, 1024@y]"),
    case("dot_inner", mm, "f32[512, 256@y]", "f32[256@y, 1024]"),
    case("dot_inner_told", mm, "f32[512, 256@y]", "f32[256, 1024]"),
    case("dot_inner_and_rows", mm, "f32[512@x, 256@y]", "f32[256@y, 1024]"),
    case("dot_rows_clash_columns", mm, "f32[512@x, 256]", "f32[256, 1024@x]"),
    case("dot_columns_larger", mm, "f32[128@x, 256]", "f32[256, 2048@x]"),
    case("dot_rows_larger", mm, "f32[2048@x, 256]", "f32[256, 128@x]"),
    case("dot_from_result", mm, "f32[512, 256]", "f32[256, 1024]", out=("x, y",)),
    case("dot_result_and_inner", mm, "f32[512, 256@y]", "f32[256, 1024]", out=("x, _",)),
    case("dot_result_clash_inner", mm, "f32[512, 256@x]", "f32[256, 1024]", out=("x, _",)),
    case("dot_two_axes_prefix", mm, "f32[512@x+y, 256]", "f32[256, 1024@y]"),
    case("dot_3d_mesh", mm, "f32[512@x, 256@z]", "f32[256@z, 1024@y]", mesh=XYZ),
    case("dot_ragged", mm, "f32[509@x, 250]", "f32[250, 1021@y]", mesh=ODD),
    case("dot_chain_up_down", mlp, "f32[512@x, 256]", "f32[256, 1024@y]", "f32[1024, 256]"),
    case("dot_chain_weights", mlp, "f32[512, 256]", "f32[256@x, 1024@y]", "f32[1024@y, 256@x]"),
    case("dot_chain_batch_weights", mlp, "f32[512@x, 256]", "f32[256@x, 1024@y]", "f32[1024@y, 256@x]"),
    case("dot_gram", lambda a: a @ a.T, "f32[512@x, 256@y]"),
    case("dot_gram_inner", lambda a: a.T @ a, "f32[512@x, 256@y]"),
    case("dot_vector", lambda a, v: a @ v, "f32[512@x, 256@y]", "f32[256]"),
    case("dot_shared_weight", lambda a, b, w: (a @ w, b @ w), "f32[512@x, 256]", "f32[64, 256@y]", "f32[256, 128]"),
    case("einsum_batch", ein("bmk,bkn->bmn"), "f32[16@x, 128, 64]", "f32[16, 64, 128@y]"),
    case("einsum_batch_clash", ein("bmk,bkn->bmn"), "f32[16@x, 128, 64]", "f32[16@y, 64, 128]"),
    case("einsum_batch_told_back", ein("bmk,bkn->bmn"), "f32[16, 128, 64]", "f32[16, 64, 128]", out=("x, y, _",)),
    case("einsum_heads", ein("bsm,mhd->bshd"), "f32[16@x, 64, 256]", "f32[256, 8@y, 32]"),
    case("einsum_heads_back", ein("bshd,hdm->bsm"), "f32[16@x, 64, 8@y, 32]", "f32[8, 32, 256]"),
    case("einsum_scores", ein("bqhd,bkhd->bhqk"), "f32[16@x, 64, 8@y, 32]", "f32[16, 64, 8, 32]"),
    case("einsum_experts", ein("gsm,gsec->egcm"), "f32[8@x, 64, 128]", "f32[8@x, 64, 8, 16]", out=("x, _, _, _",)),
    case("einsum_outer", ein("i,j->ij"), "f32[256@x]", "f32[256@y]"),
    case("einsum_trilinear", ein("ij,jk,kl->il"), "f32[64@x, 128]", "f32[128, 256@y]", "f32[256, 64]"),
    case("reduce_rows", lambda a: a.sum(axis=0), "f32[512@x, 256@y]"),
    case("reduce_rows_told_back", lambda a: a.sum(axis=0), "f32[512, 256]", out=("y",)),
    case("reduce_max_all", lambda a: a.max(), "f32[512@x, 256@y]"),
    case("reduce_keepdims", lambda a: a - a.max(axis=1, keepdims=True), "f32[512@x, 256@y]"),
    case("reduce_mean_back", lambda a: a - a.mean(axis=1, keepdims=True), "f32[512, 256]", out=("x, y",)),
    case("reduce_variance", variance, "f32[16@x, 64, 256@y]"),
    case("reduce_softmax", lambda a: gnp.softmax(a, axis=-1), "f32[16@x, 64, 256@y]"),
    case("reduce_softmax_middle", lambda a: gnp.softmax(a, axis=1), "f32[16, 64@y, 256]", out=("x, _, _",)),
    case("reduce_argmax", lambda a: a.argmax(axis=1), "f32[512@x, 256@y]"),
    case("reduce_ragged", lambda a: a.sum(axis=1), "f32[509@x, 250@y]", mesh=ODD),
    case("reduce_then_use", lambda a, b: (a * a).sum(axis=1) + b, "f32[512, 256@y]", "f32[512@x]"),
    case("reduce_small_says_little", lambda a, b: a + b.sum(axis=0), "f32[512@x, 256]", "f32[64, 256@y]", mesh=XYZ),
    case("dot_annotated_between", lambda a, b, c: marked(a @ b, "x", "y") @ c, "f32[256, 256]", "f32[256, 256]",
         "f32[256, 256]"),
    case("dot_one_axis", mm, "f32[512@x, 256]", "f32[256@x, 1024]", mesh=X4),
)  # fmt: skip
