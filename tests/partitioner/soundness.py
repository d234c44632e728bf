"""The law over every op: split any factor over any mesh, run device by device, and get what the op computes.

Each law takes a program of one op (an example, or one whose rule was altered) and raises AssertionError where it fails.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gspmd.ir.axes import Axes
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Rule
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import epsilon
from gspmd.ops import OPS
from tests.ops.inputs import example_inputs
from tests.partitioner import cases

# The factors along which floats are combined.
_REORDERS = frozenset(("reduce", "lookup", "scan"))


def rule_of(program: Program) -> Rule:
    """The factor rule of the program's one op."""
    rule = node_rule(program.body.nodes[-1])
    assert rule is not None
    return rule


def check(program: Program, split: dict[int, Axes], mesh: Mesh) -> bool:
    """Whether the op could be split so; fails if the result is not the op's."""
    explicit = cases.explicit(program, split, mesh)
    if explicit is None:
        return False
    op = program.body.nodes[-1].op
    verify(explicit, {**OPS, op.name: op})
    arrays = example_inputs(program)
    expected = cases.reference(program, arrays)
    rule = rule_of(program)
    # Floats may differ only where they are combined: NumPy and BLAS choose the order by the shape of a shard.
    exact = not rule.flops and not any(f.kind in _REORDERS for f in rule.factors)
    terms = prod(f.size for f in rule.factors if f.kind in _REORDERS)
    for expanded in (False, True):
        actual = cases.run_local(cases.lowered(explicit, expanded), arrays)
        for a, e in zip(actual, expected, strict=True):
            result = compare(a, e, terms=terms, exact=exact)
            assert result, f"split {split} on {mesh.text()}: {result.message}\n{explicit.body.nodes}"
    return True


def one_factor(program: Program) -> None:
    """Each factor alone (below split major ones, where a dimension is a product); none escapes."""
    rule = rule_of(program)
    for f in cases.splittable(rule):
        done = [check(program, split, mesh) for mesh, split in cases.splits(rule, f)]
        assert any(done) or rule.factors[f].size < 2, f"factor {f} is never split: {rule.text()}"


def two_factors(program: Program) -> None:
    """Pairs of factors on two axes."""
    rule = rule_of(program)
    mesh = Mesh({"x": 2, "y": 3})
    for f in cases.splittable(rule):
        for g in cases.splittable(rule):
            if f != g:
                check(program, {f: (mesh.axis("x"),), g: (mesh.axis("y"),)}, mesh)


def linear_in_sums(program: Program, group: tuple[int, ...]) -> None:
    """A group of operands that are sums over devices: the op's results are sums of the same total, split or not."""
    rule = rule_of(program)
    mesh = Mesh({"s": 3, "x": 2})
    over = (mesh.axis("s"),)
    for f in (None, *cases.splittable(rule)):
        split = {} if f is None else {f: (mesh.axis("x"),)}
        explicit = cases.explicit(program, split, mesh, group, over)
        if explicit is None:
            continue
        arrays = example_inputs(program)
        terms = {i: cases.summands(arrays[i], 3) for i in group}
        expected = cases.reference(program, arrays)
        actual = cases.run_local(cases.lowered(explicit), [terms.get(i, a) for i, a in enumerate(arrays)])
        for a, e in zip(actual, expected, strict=True):
            size = np.full(e.shape, np.abs(e.astype(np.complex128)).max(initial=1.0) * 8)
            coarse = max((e.dtype, *(arrays[i].dtype for i in group)), key=epsilon)
            terms_of_sum = 3 * prod(f.size for f in rule.factors if f.kind in ("reduce", "scan"))
            result = compare(a, e, size, terms_of_sum, scale_dtype=coarse)
            assert result, f"sums {group}, split {split}: {result.message}"
