"""Products whose dimensions are split in every way: batch, free, contracted, mismatched, conflicting, over two axes."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import RAGGED, X4, X8, XY


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def gram(a: Any) -> Any:
    """A matrix with its own transpose: one operand wants its rows split, the other its columns."""
    return a @ a.T


def both_ways(a: Any, b: Any) -> Any:
    """One operand used plainly and transposed."""
    return a @ b, a.T @ b


def chain(a: Any, b: Any, c: Any) -> Any:
    return (a @ b) @ c


def sum_of_products(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Two partial sums that can be combined at once."""
    return a @ b + c @ d


def bilinear(a: Any, b: Any) -> Any:
    return gnp.einsum("bik,bkj->bij", a, b)


SQUARE = ("f32[512, 1024@x]", "f32[1024@x, 512]")

CASES = (
    Case("dot_batch", XY, bilinear, ("f32[8@x, 256, 128]", "f32[8@x, 128, 256@y]"), ("x, _, y",)),
    Case("dot_batch_against_rows", XY, bilinear, ("f32[8@x, 256@y, 128]", "f32[8@x+y, 128, 256]"), ("x, y, _",)),
    Case("dot_free", XY, matmul, ("f32[512@x, 512]", "f32[512, 512@y]"), ("x, y",)),
    Case("dot_contract_scattered", X8, matmul, SQUARE, ("x, _",)),
    Case("dot_contract_summed", X8, matmul, SQUARE, ("_, _",)),
    Case("dot_contract_two_axes", XY, matmul, ("f32[512, 1024@x+y]", "f32[1024@x+y, 512]"), ("x, y",)),
    Case("dot_mismatched", X8, matmul, ("f32[512@x, 1024]", "f32[1024@x, 512]"), ("x, _",)),
    Case("dot_mismatched_small", X8, matmul, ("f32[64@x, 1024]", "f32[1024@x, 2048]"), ("x, _",)),
    Case("dot_conflict", X8, matmul, ("f32[512@x, 512]", "f32[512, 1024@x]"), ("x, _",)),
    Case("dot_conflict_on_result", X8, matmul, ("f32[512@x, 512]", "f32[512, 1024@x]"), ("_, x",)),
    Case("dot_rows_over_two_axes", XY, matmul, ("f32[512@x+y, 512]", "f32[512, 1024@y]"), ("x+y, _",)),
    Case("dot_2d", XY, matmul, ("f32[512@x, 512@y]", "f32[512@x, 1024@y]"), ("x, y",)),
    Case("dot_2d_transposed", XY, matmul, ("f32[512@y, 512@x]", "f32[512@x, 1024@y]"), ("x, y",)),
    Case("dot_gram", X8, gram, ("f32[512@x, 256]",), ("x, _",)),
    Case("dot_both_ways", XY, both_ways, ("f32[512@x, 512@y]", "f32[512@x, 256]"), ("x, _", "y, _")),
    Case("dot_chain", X8, chain, ("f32[512@x, 512]", "f32[512, 1024@x]", "f32[1024@x, 512]"), ("x, _",)),
    Case("dot_sum_of_products", X8, sum_of_products, SQUARE * 2, ("x, _",)),
    Case("dot_ragged_contract", X8, matmul, ("f32[300, 1001@x]", "f32[1001@x, 500]"), ("x, _",)),
    Case("dot_ragged_2d", RAGGED, matmul, ("f32[301@data, 500@model]", "f32[500@model, 700]"), ("data, model",)),
    Case("dot_ragged_mismatched", X4, matmul, ("f32[301@x, 1001]", "f32[1001@x, 302]"), ("x, _",)),
    Case("dot_free_choice", XY, matmul, ("f32[512@x, 512@y]", "f32[512@y, 1024]"), loose=True),
)
