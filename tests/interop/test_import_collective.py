"""StableHLO's collectives in all their forms: groups of devices, pairs, reducers, several operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from gspmd.kernels.closeness import compare
from tests.interop.manual_text import (
    ADD,
    CHANNEL,
    GLOBAL,
    LOOSE,
    ODD,
    PART,
    SHUFFLED,
    Array,
    X,
    dense,
    in_groups,
    joined,
    parts_of,
    run,
    text,
)

GROUPS = {
    "along b": [[0, 1, 2, 3], [4, 5, 6, 7]],
    "along a": [[0, 4], [1, 5], [2, 6], [3, 7]],
    "along a piece of b": [[0, 2], [1, 3], [4, 6], [5, 7]],
    "along a and a piece of b": [[0, 4, 1, 5], [2, 6, 3, 7]],
    "all": [[0, 1, 2, 3, 4, 5, 6, 7]],
    "all, b major": [[0, 4, 1, 5, 2, 6, 3, 7]],
    "backwards": [[3, 2, 1, 0], [7, 6, 5, 4]],
    "no axes": [[0, 3, 5, 6], [1, 2, 4, 7]],
    "each its own": [[i] for i in range(8)],
}


def collectives(groups: Sequence[Sequence[int]]) -> list[tuple[str, str, Callable[[list[Array], int], Array]]]:
    """Each kind as text, the type of its result, and what it does in a group."""
    n, held = len(groups[0]), dense(groups)
    tall = f"tensor<{4 * n}x4xf32>"
    cases: list[tuple[str, str, Callable[[list[Array], int], Array]]] = [
        (
            f'%y = "stablehlo.all_gather"(%p) {{all_gather_dim = 0 : i64, replica_groups = {held}, {GLOBAL}}} '
            f": ({PART}) -> {tall}",
            tall,
            lambda xs, i: np.concatenate(xs),
        ),
        (
            f'%y = "stablehlo.all_reduce"(%p) {ADD} {{replica_groups = {held}, {GLOBAL}}} : ({PART}) -> {PART}',
            PART,
            lambda xs, i: np.add.reduce(xs),
        ),
        (
            f'%y = "stablehlo.all_reduce"(%p) {ODD} {{replica_groups = {held}, {GLOBAL}}} : ({PART}) -> {PART}',
            PART,
            lambda xs, i: np.subtract.reduce(xs),
        ),
        (
            f'%y = "stablehlo.collective_broadcast"(%p) {{replica_groups = {held}, {CHANNEL}}} : ({PART}) -> {PART}',
            PART,
            lambda xs, i: xs[0],
        ),
    ]
    if 4 % n == 0:
        small, wide = f"tensor<4x{4 // n}xf32>", f"tensor<{4 * n}x{4 // n}xf32>"
        cases += [
            (
                f'%y = "stablehlo.reduce_scatter"(%p) {ADD} {{scatter_dimension = 1 : i64, replica_groups = {held}, '
                f"{GLOBAL}}} : ({PART}) -> {small}",
                small,
                lambda xs, i: np.split(np.add.reduce(xs), len(xs), 1)[i],
            ),
            (
                f'%y = "stablehlo.reduce_scatter"(%p) {ODD} {{scatter_dimension = 1 : i64, replica_groups = {held}, '
                f"{GLOBAL}}} : ({PART}) -> {small}",
                small,
                lambda xs, i: np.split(np.subtract.reduce(xs), len(xs), 1)[i],
            ),
            (
                f'%y = "stablehlo.all_to_all"(%p) {{split_dimension = 1 : i64, concat_dimension = 0 : i64, '
                f"split_count = {n} : i64, replica_groups = {held}, {CHANNEL}}} : ({PART}) -> {wide}",
                wide,
                lambda xs, i: np.concatenate([np.split(x, len(xs), 1)[i] for x in xs]),
            ),
        ]
    return cases


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str) -> None:
    """Every collective in groups that are axes, pieces of axes, or no product of axes."""
    for body, result, function in collectives(GROUPS[name]):
        wanted = joined(in_groups(GROUPS[name], function, parts_of(X)))
        assert np.array_equal(run(text(body, result)), wanted), body


def test_groups_on_a_shuffled_mesh() -> None:
    """Groups, pairs and numbers mean the devices themselves, not their places on the mesh."""
    x = X[:4, :8]
    groups = [[0, 2], [1, 3]]
    body = f'%y = "stablehlo.all_gather"(%p) {{all_gather_dim = 0 : i64, replica_groups = {dense(groups)}, {GLOBAL}}}'
    found = run(text(f"{body} : (tensor<2x4xf32>) -> tensor<4x4xf32>", mesh=SHUFFLED, whole=(4, 8)), x)
    parts = parts_of(x, SHUFFLED)
    assert np.array_equal(found, joined(in_groups(groups, lambda xs, i: np.concatenate(xs), parts), SHUFFLED))
    pairs = [[0, 1], [1, 2], [3, 0]]
    body = f'%y = "stablehlo.collective_permute"(%p) {{source_target_pairs = {dense(pairs)}, {CHANNEL}}}'
    found = run(text(f"{body} : (tensor<2x4xf32>) -> tensor<2x4xf32>", "tensor<2x4xf32>", SHUFFLED, (4, 8)), x)
    sent = {d: np.zeros_like(p) for d, p in parts.items()} | {d: parts[s] for s, d in pairs}
    assert np.array_equal(found, joined(sent, SHUFFLED))
    body = """%i = "stablehlo.partition_id"() : () -> tensor<ui32>
      %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %y = stablehlo.add %p, %b : tensor<2x4xf32>"""
    found = run(text(body, "tensor<2x4xf32>", SHUFFLED, (4, 8)), x)
    assert np.array_equal(found, joined({d: p + np.float32(d) for d, p in parts.items()}, SHUFFLED))


PAIRS = {
    "along b": [(g * 4 + k, g * 4 + (k + 1) % 4) for g in range(2) for k in range(4)],
    "along b, some": [(0, 1), (4, 5)],
    "along a": [(k, 4 + k) for k in range(4)],
    "from one": [(0, 5)],
    "any": [(k, (k * 3 + 2) % 8) for k in range(8)],
    "none": [],
    "to themselves": [(k, k) for k in range(8)],
    "some to themselves": [(1, 1), (6, 6)],
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    pairs = PAIRS[name]
    held = dense(pairs) if pairs else "dense<> : tensor<0x2xi64>"
    body = f'%y = "stablehlo.collective_permute"(%p) {{source_target_pairs = {held}, {CHANNEL}}} : ({PART}) -> {PART}'
    parts = parts_of(X)
    sent = {d: np.zeros_like(p) for d, p in parts.items()} | {d: parts[s] for s, d in pairs}
    assert np.array_equal(run(text(body)), joined(sent))


@pytest.mark.parametrize("name", LOOSE)
def test_groups_that_say_little(name: str) -> None:
    said, groups = LOOSE[name]
    body = f'%y = "stablehlo.all_reduce"(%p) {ADD} {{{said}}} : ({PART}) -> {PART}'
    assert np.array_equal(run(text(body)), joined(in_groups(groups, lambda xs, i: np.add.reduce(xs), parts_of(X))))


def test_several_operands() -> None:
    groups = GROUPS["along b"]
    held = f"{{replica_groups = {dense(groups)}, {GLOBAL}}}"
    body = f"""%n = stablehlo.negate %p : {PART}
      %s:2 = "stablehlo.all_reduce"(%p, %n) {ADD} {held} : ({PART}, {PART}) -> ({PART}, {PART})
      %g:2 = "stablehlo.all_gather"(%s#0, %n) {{all_gather_dim = 1 : i64, {held[1:-1]}}}
        : ({PART}, {PART}) -> (tensor<4x16xf32>, tensor<4x16xf32>)
      %t:2 = "stablehlo.all_to_all"(%g#0, %g#1) {{split_dimension = 1 : i64, concat_dimension = 0 : i64,
        split_count = 4 : i64, replica_groups = {dense(groups)}, {CHANNEL}}}
        : (tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)
      %y = stablehlo.add %t#0, %t#1 : tensor<16x4xf32>"""
    sums = in_groups(groups, lambda xs, i: np.add.reduce(xs), parts_of(X))
    rows = {d: in_groups(groups, lambda xs, i: np.concatenate(xs, 1), sums)[d] for d in sums}
    less = in_groups(groups, lambda xs, i: -np.concatenate(xs, 1), parts_of(X))
    both = {d: rows[d] + less[d] for d in rows}
    wanted = in_groups(groups, lambda xs, i: np.concatenate([np.split(x, 4, 1)[i] for x in xs]), both)
    assert np.array_equal(run(text(body, "tensor<16x4xf32>")), joined(wanted))


REDUCERS = {
    "maximum": (np.maximum, "%s = stablehlo.maximum %l, %r : tensor<f32>"),
    "multiply": (np.multiply, "%s = stablehlo.multiply %l, %r : tensor<f32>"),
    "minimum the other way": (np.minimum, "%s = stablehlo.minimum %r, %l : tensor<f32>"),
    "of one's own": (
        lambda x, y: x + y - x * y / np.float32(1024),
        "%a = stablehlo.add %l, %r : tensor<f32>\n%b = stablehlo.multiply %l, %r : tensor<f32>\n"
        "%c = stablehlo.constant dense<1024.0> : tensor<f32>\n%d = stablehlo.divide %b, %c : tensor<f32>\n"
        "%s = stablehlo.subtract %a, %d : tensor<f32>",
    ),
    "twice the last": (lambda x, y: y + y, "%s = stablehlo.add %r, %r : tensor<f32>"),
}


@pytest.mark.parametrize("name", REDUCERS)
@pytest.mark.parametrize("groups", ["along b", "no axes"])
def test_reducers(name: str, groups: str) -> None:
    function, lines = REDUCERS[name]
    region = ADD.replace("%s = stablehlo.add %l, %r : tensor<f32>", lines)
    held = dense(GROUPS[groups])
    body = f'%y = "stablehlo.all_reduce"(%p) {region} {{replica_groups = {held}, {GLOBAL}}} : ({PART}) -> {PART}'

    def folded(xs: list[Array], i: int) -> Array:
        out = xs[0]
        for x in xs[1:]:
            out = function(out, x)
        return out

    outcome = compare(run(text(body)), joined(in_groups(GROUPS[groups], folded, parts_of(X))), terms=8)
    assert outcome, outcome.message


@pytest.mark.parametrize("groups", ["along b", "no axes"])
def test_regions_of_a_wider_dtype(groups: str) -> None:
    """Operands are brought to the region's dtype first, and so results are of it: sums that bf16 would round."""
    held = f"replica_groups = {dense(GROUPS[groups])}, {GLOBAL}"
    body = f"""%h = stablehlo.convert %p : ({PART}) -> tensor<4x4xbf16>
      %both:2 = "stablehlo.all_reduce"(%h, %h) {ADD} {{{held}}}
        : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> ({PART}, {PART})
      %r = "stablehlo.reduce_scatter"(%h) {ADD} {{scatter_dimension = 1 : i64, {held}}}
        : (tensor<4x4xbf16>) -> tensor<4x{4 // len(GROUPS[groups][0])}xf32>
      %g = "stablehlo.all_gather"(%r) {{all_gather_dim = 1 : i64, {held}}}
        : (tensor<4x{4 // len(GROUPS[groups][0])}xf32>) -> {PART}
      %t = stablehlo.subtract %both#0, %g : {PART}
      %y = stablehlo.add %both#1, %t : {PART}"""
    sums = in_groups(GROUPS[groups], lambda xs, i: np.add.reduce(xs), parts_of(X))
    assert np.array_equal(run(text(body)), joined(sums))
