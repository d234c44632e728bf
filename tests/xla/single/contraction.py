"""Products: batch, free and contracting dimensions split, matched and not, even and ragged, results split or whole."""

from __future__ import annotations

from typing import Any

from tests.xla.single.program import X2, X2Y3, X2Y4, X3, X4, XY, chain, op

MM = "lhs_contract=[1] rhs_contract=[0]"
BMM = "lhs_batch=[0] rhs_batch=[0] lhs_contract=[2] rhs_contract=[1]"
TT = "lhs_contract=[0] rhs_contract=[0]"


def heads_merged(x: Any, w: Any) -> Any:
    """The heads of attention, merged and multiplied."""
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2]) @ w


def heads_split(x: Any, w: Any) -> Any:
    """A product whose result is taken apart in heads."""
    return (x @ w).reshape(x.shape[0], 12, 32)


def two_products(x: Any, v: Any, w: Any) -> Any:
    """A chain of two products."""
    return (x @ v) @ w


def gram(x: Any) -> Any:
    """A tensor with itself."""
    return x.T @ x


PLAIN = (
    op("dot:rows", X4, f"dot_general(f32[64@x, 48], f32[48, 80]) {MM}", "x, _"),
    op("dot:columns", X4, f"dot_general(f32[64, 48], f32[48, 80@x]) {MM}", "_, x"),
    op("dot:contract", X4, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "_, _"),
    op("dot:contract_2", X2, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "_, _"),
    op("dot:contract_ragged", X3, f"dot_general(f32[64, 50@x], f32[50@x, 80]) {MM}", "_, _"),
    op("dot:contract_to_rows", X4, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "x, _"),
    op("dot:contract_to_columns", X4, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "_, x"),
    op("dot:contract_to_ragged_rows", X3, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "x, _"),
    op("dot:rows_against_columns", X4, f"dot_general(f32[64@x, 48], f32[48, 80@x]) {MM}", "x, _"),
    op("dot:rows_against_columns_whole", X4, f"dot_general(f32[64@x, 48], f32[48, 80@x]) {MM}", "_, _"),
    op("dot:rows_against_contract", X4, f"dot_general(f32[64@x, 48], f32[48@x, 80]) {MM}", "x, _"),
    op("dot:rows_against_contract_whole", X4, f"dot_general(f32[64@x, 48], f32[48@x, 80]) {MM}", "_, _"),
    op("dot:rows_against_contract_columns", X4, f"dot_general(f32[64@x, 48], f32[48@x, 80]) {MM}", "_, x"),
    op("dot:contract_against_whole", X4, f"dot_general(f32[64, 48@x], f32[48, 80]) {MM}", "_, _"),
    op("dot:contract_against_whole_rows", X4, f"dot_general(f32[64, 48@x], f32[48, 80]) {MM}", "x, _"),
    op("dot:whole_to_rows", X4, f"dot_general(f32[64, 48], f32[48, 80]) {MM}", "x, _"),
    op("dot:rows_to_columns", X4, f"dot_general(f32[64@x, 48], f32[48, 80]) {MM}", "_, x"),
    op("dot:rows_to_whole", X4, f"dot_general(f32[64@x, 48], f32[48, 80]) {MM}", "_, _"),
    op("dot:columns_to_whole", X4, f"dot_general(f32[64, 48], f32[48, 80@x]) {MM}", "_, _"),
    op("dot:small_rows_to_whole", X4, f"dot_general(f32[8@x, 256], f32[256, 8]) {MM}", "_, _"),
    op("dot:small_result_mismatched", X4, f"dot_general(f32[8@x, 256], f32[256, 8@x]) {MM}", "_, _"),
    op("dot:small_contract_mismatched", X4, f"dot_general(f32[8@x, 256], f32[256@x, 8]) {MM}", "_, _"),
    op("dot:vector", X4, f"dot_general(f32[64@x, 48], f32[48]) {MM}", "x"),
    op("dot:vector_contract", X4, f"dot_general(f32[64, 48@x], f32[48@x]) {MM}", "_"),
    op("dot:vector_mismatched", X4, f"dot_general(f32[64@x, 48], f32[48@x]) {MM}", "x"),
    op("dot:vector_to_whole", X4, f"dot_general(f32[64@x, 48], f32[48]) {MM}", "_"),
    op("dot:outer", X4, "dot_general(f32[64@x], f32[80]) lhs_contract=[] rhs_contract=[]", "x, _"),
    op("dot:outer_whole", X4, "dot_general(f32[64@x, 48], f32[64, 64]) lhs_contract=[] rhs_contract=[]", "_, _, _, _"),
    op("dot:outer_both", X4, "dot_general(f32[64@x], f32[80@x]) lhs_contract=[] rhs_contract=[]", "x, _"),
    op("dot:inner", X4, "dot_general(f32[64@x], f32[64@x]) lhs_contract=[0] rhs_contract=[0]", ""),
    op("dot:transposed", X4, f"dot_general(f32[64@x, 48], f32[64@x, 80]) {TT}", "_, _"),
    op("dot:transposed_scattered", X4, f"dot_general(f32[64@x, 48], f32[64@x, 80]) {TT}", "x, _"),
    op(
        "dot:two_contracted",
        X4,
        "dot_general(f32[16, 8@x, 24], f32[8@x, 24, 40]) lhs_contract=[1, 2] rhs_contract=[0, 1]",
        "_, _",
    ),
    op(
        "dot:two_contracted_mixed",
        XY,
        "dot_general(f32[16, 8@x, 24@y], f32[8@x, 24@y, 40]) lhs_contract=[1, 2] rhs_contract=[0, 1]",
        "_, _",
    ),
    op("dot:free", X4, f"dot_general(f32[64@x, 48], f32[48, 80@x]) {MM}"),
    op("dot:free_contract", X4, f"dot_general(f32[64@x, 48], f32[48@x, 80]) {MM}"),
)

MESHES = (
    op("dot:2d_rows_columns", XY, f"dot_general(f32[64@x, 48], f32[48, 80@y]) {MM}", "x, y"),
    op("dot:2d_summa", XY, f"dot_general(f32[64@x, 48@y], f32[48@x, 80@y]) {MM}", "x, y"),
    op("dot:2d_rows_contract", XY, f"dot_general(f32[64@x, 48@y], f32[48@y, 80]) {MM}", "x, _"),
    op("dot:2d_rows_contract_scattered", XY, f"dot_general(f32[64@x, 48@y], f32[48@y, 80]) {MM}", "x, y"),
    op("dot:2d_rows_contract_rows", XY, f"dot_general(f32[64@x, 48@y], f32[48@y, 80]) {MM}", "x+y, _"),
    op("dot:2d_contract_both", XY, f"dot_general(f32[64, 48@x+y], f32[48@x+y, 80]) {MM}", "x, y"),
    op("dot:2d_contract_both_whole", XY, f"dot_general(f32[64, 48@x+y], f32[48@x+y, 80]) {MM}", "_, _"),
    op("dot:2d_contract_both_one", XY, f"dot_general(f32[64, 48@x+y], f32[48@x+y, 80]) {MM}", "x, _"),
    op("dot:2d_contract_apart", XY, f"dot_general(f32[64, 48@x], f32[48@y, 80]) {MM}", "_, _"),
    op("dot:2d_idle_contract", XY, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "_, _"),
    op("dot:2d_idle_used_on_result", XY, f"dot_general(f32[64, 48@x], f32[48@x, 80]) {MM}", "y, _"),
    op("dot:2d_columns_rows", XY, f"dot_general(f32[64@x, 48], f32[48, 80@y]) {MM}", "y, x"),
    op("dot:2d_wide", X2Y4, f"dot_general(f32[64@x, 48@y], f32[48@y, 80]) {MM}", "x, _"),
    op("dot:2d_wide_summa", X2Y4, f"dot_general(f32[64@x, 48@y], f32[48@x, 80@y]) {MM}", "x, y"),
    op("dot:2d_ragged", X2Y3, f"dot_general(f32[63@x, 50@y], f32[50@y, 80]) {MM}", "x, _"),
    op("dot:2d_ragged_summa", X2Y3, f"dot_general(f32[63@x, 50@y], f32[50@x, 80@y]) {MM}", "x, y"),
    op("dot:2d_weights_2d", XY, f"dot_general(f32[64@x, 48], f32[48@x, 80@y]) {MM}", "x, y"),
    op("dot:2d_weights_2d_rows", XY, f"dot_general(f32[64@x+y, 48], f32[48@x, 80@y]) {MM}", "x+y, _"),
    op("dot:2d_free", XY, f"dot_general(f32[64@x, 48@y], f32[48@x, 80@y]) {MM}"),
)

BATCHED = (
    op("dot:batch", X4, f"dot_general(f32[8@x, 32, 24], f32[8@x, 24, 40]) {BMM}", "x, _, _"),
    op("dot:batch_ragged", X3, f"dot_general(f32[8@x, 32, 24], f32[8@x, 24, 40]) {BMM}", "x, _, _"),
    op("dot:batch_one_side", X4, f"dot_general(f32[8@x, 32, 24], f32[8, 24, 40]) {BMM}", "x, _, _"),
    op("dot:batch_against_columns", X4, f"dot_general(f32[8@x, 32, 24], f32[8, 24, 40@x]) {BMM}", "x, _, _"),
    op("dot:batch_against_contract", X4, f"dot_general(f32[8@x, 32, 24], f32[8, 24@x, 40]) {BMM}", "x, _, _"),
    op("dot:batch_to_rows", X4, f"dot_general(f32[8@x, 32, 24], f32[8@x, 24, 40]) {BMM}", "_, x, _"),
    op("dot:batch_to_whole", X4, f"dot_general(f32[8@x, 32, 24], f32[8@x, 24, 40]) {BMM}", "_, _, _"),
    op("dot:batch_contract", X4, f"dot_general(f32[8, 32, 24@x], f32[8, 24@x, 40]) {BMM}", "_, _, _"),
    op("dot:batch_contract_to_batch", X4, f"dot_general(f32[8, 32, 24@x], f32[8, 24@x, 40]) {BMM}", "x, _, _"),
    op("dot:batch_and_contract", XY, f"dot_general(f32[8@x, 32, 24@y], f32[8@x, 24@y, 40]) {BMM}", "x, _, _"),
    op("dot:batch_and_rows", XY, f"dot_general(f32[8@x, 32@y, 24], f32[8@x, 24, 40]) {BMM}", "x, y, _"),
    op("dot:batch_and_columns", XY, f"dot_general(f32[8@x, 32, 24], f32[8@x, 24, 40@y]) {BMM}", "x, _, y"),
    op("dot:batch_mixed", XY, f"dot_general(f32[8@x, 32@y, 24], f32[8@y, 24, 40@x]) {BMM}", "x, y, _"),
    op("dot:batch_swapped_axes", XY, f"dot_general(f32[8@x, 32, 24], f32[8@y, 24, 40]) {BMM}", "x, _, _"),
    op("dot:batch_both_axes", XY, f"dot_general(f32[8@x+y, 32, 24], f32[8@x+y, 24, 40]) {BMM}", "x+y, _, _"),
    op("dot:batch_free", X4, f"dot_general(f32[8@x, 32, 24], f32[8, 24, 40@x]) {BMM}"),
)

CHAINS = (
    chain("dot:heads_merged", X4, heads_merged, "f32[16, 12@x, 32]; f32[384@x, 64]", "_, _"),
    chain("dot:heads_merged_uneven", X2Y3, heads_merged, "f32[16, 10@y, 32]; f32[320@y, 64]", "_, _"),
    chain("dot:heads_merged_whole_weights", X4, heads_merged, "f32[16, 12@x, 32]; f32[384, 64]", "_, _"),
    chain("dot:heads_split", X4, heads_split, "f32[16, 64]; f32[64, 384@x]", "_, x, _"),
    chain("dot:two_products", X4, two_products, "f32[64, 48]; f32[48, 80@x]; f32[80@x, 40]", "_, _"),
    chain("dot:two_products_scattered", X4, two_products, "f32[64@x, 48]; f32[48, 80@x]; f32[80@x, 40]", "x, _"),
    chain("dot:gram", X4, gram, "f32[64@x, 48]", "_, _"),
    chain("dot:gram_scattered", X4, gram, "f32[64@x, 48]", "x, _"),
    chain("dot:gram_columns", X4, gram, "f32[64, 48@x]", "x, _"),
)

SINGLES = (*PLAIN, *MESHES, *BATCHED, *CHAINS)
