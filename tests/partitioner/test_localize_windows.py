"""Ops with windows, with random attributes, sizes and splits on two mesh axes, against the op on one device."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.ir.attrs import Groups, Window, WindowDim
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Access
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.kernels.window import padded_size, window_count
from gspmd.ops.window import CONVOLUTION, REDUCE_WINDOW, SELECT_AND_SCATTER
from tests.partitioner import cases

Rng = np.random.Generator


def number(rng: Rng, low: int, high: int) -> int:
    """A number from low to high."""
    return int(rng.integers(low, high + 1))


def side(rng: Rng, n: int, *, dilated: bool = True, reversible: bool = True) -> WindowDim:
    """A window over n elements that fits at least once."""
    while True:
        found = WindowDim(
            number(rng, 1, 5),
            number(rng, 1, 3),
            number(rng, 1, 3) if dilated else 1,
            number(rng, 1, 3),
            number(rng, -2, 4),
            number(rng, -2, 4),
            reversible and bool(rng.integers(2)),
        )
        if padded_size(n, found) >= 0 and window_count(n, found):
            return found


def check(program: Program, rng: Rng) -> None:
    """Split some factors over two axes, windowed dimensions alike or otherwise; compare with one device."""
    node = program.body.nodes[-1]
    rule = node_rule(node)
    assert rule is not None
    mesh = Mesh({"x": number(rng, 2, 5), "y": number(rng, 1, 3), "z": 2})
    choices: list[Axes] = [(mesh.axis("x"),), (mesh.axis("y"),), (mesh.axis("y"), mesh.axis("x")), ()]
    first = choices[number(rng, 0, 2)]
    second = [choices[1], choices[0], ()][choices.index(first)]
    order = [int(f) for f in rng.permutation(cases.splittable(rule))]
    split = {f: a for f, a in zip(order, (first, second), strict=False) if a}
    used = {a for axes in split.values() for a in axes}
    spare = (mesh.axis("z"),)
    reads: dict[tuple[int, int], Axes] = {}
    for i, tensor in enumerate(rule.operands):
        for d, dim in enumerate(tensor):
            if isinstance(dim, Access):
                taps = split.get(dim.kernel_factor, ()) if dim.kernel_factor is not None else ()
                options = [split.get(dim.factor, ()), taps, spare if not used & set(spare) else ()]
                reads[i, d] = options[number(rng, 0, 2)]
                if reads[i, d] == spare:
                    spare = ()
    held = [a for i in range(len(rule.operands)) for (j, _), axes in reads.items() if i == j for a in axes]
    if len(held) != len(set(held)):
        return
    try:
        explicit = cases.explicit(program, split, mesh, reads=reads)
    except ValueError:  # one axis twice in an operand
        return
    if explicit is None:
        return
    arrays = [rng.integers(-4, 5, v.type.shape).astype(v.type.dtype) for v in program.body.params]
    (expected,) = cases.reference(program, arrays)
    for expanded in (False, True):
        (actual,) = cases.run_local(cases.lowered(explicit, expanded), arrays)
        outcome = compare(actual, expected)
        what = f"{[v.type.text() for v in node.operands]} {node.attrs} split {split} reads {reads} on {mesh.text()}"
        assert outcome, f"{what}: {outcome.message}"


@pytest.mark.parametrize("seed", range(12))
def test_convolution(seed: int) -> None:
    """All nine ways: positions, taps, both, batch, features, groups, and pairs of them."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        rank = number(rng, 1, 2)
        space = [number(rng, 1, 14) for _ in range(rank)]
        window = Window(side(rng, n) for n in space)
        groups, which = number(rng, 1, 3), number(rng, 0, 2)
        feature_groups, batch_groups = groups if which == 1 else 1, groups if which == 2 else 1
        batch, ins, outs = number(rng, 1, 3) * batch_groups, number(rng, 1, 4), number(rng, 1, 4)
        specs = [tuple(int(d) for d in rng.permutation(rank + 2)) for _ in range(3)]
        lhs, rhs = [0] * (rank + 2), [0] * (rank + 2)
        for d, n in zip(specs[0], (batch, ins * feature_groups, *space), strict=True):
            lhs[d] = n
        for d, n in zip(specs[1], (outs * feature_groups * batch_groups, ins, *(s.size for s in window)), strict=True):
            rhs[d] = n
        b = Builder()
        x, w = b.param(TensorType("f32", lhs)), b.param(TensorType("f32", rhs))
        y = CONVOLUTION(
            b,
            x,
            w,
            window=window,
            lhs_spec=specs[0],
            rhs_spec=specs[1],
            out_spec=specs[2],
            feature_group_count=Groups(feature_groups),
            batch_group_count=Groups(batch_groups),
        )
        check(Program.of("convolution", b.region([y]), None), rng)


@pytest.mark.parametrize("seed", range(8))
def test_reduce_window(seed: int) -> None:
    """Strides, dilations, padding of both signs; sums, and extremes whose padding must not count."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(12):
        shape = [number(rng, 1, 14) for _ in range(number(rng, 1, 2))]
        window = Window(side(rng, n, reversible=False) for n in shape)
        b = Builder()
        x = b.param(TensorType(str(rng.choice(["f32", "i32"])), shape))
        y = REDUCE_WINDOW(b, x, window=window, monoid=str(rng.choice(["add", "max", "min"])))
        check(Program.of("reduce_window", b.region([y]), None), rng)


@pytest.mark.parametrize("seed", range(8))
def test_select_and_scatter(seed: int) -> None:
    """Ties go to the first of the window, wherever the device boundary lies."""
    rng = np.random.default_rng(200 + seed)
    for _ in range(12):
        shape = [number(rng, 1, 14) for _ in range(number(rng, 1, 2))]
        window = Window(side(rng, n, dilated=False, reversible=False) for n in shape)
        b = Builder()
        x = b.param(TensorType("f32", shape))
        source = b.param(TensorType("f32", [window_count(n, s) for n, s in zip(shape, window, strict=True)]))
        y = SELECT_AND_SCATTER(b, x, source, window=window, select=str(rng.choice(["GE", "GT", "LE"])))
        check(Program.of("select_and_scatter", b.region([y]), None), rng)
