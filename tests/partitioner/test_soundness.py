"""The law over every op: split any factor over any mesh, run device by device, and get what the op computes.

Sizes are even, ragged and smaller than the mesh; padding holds NaN or an extreme value.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
import pytest

from gspmd.ir.axes import Axes
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Trait, node_rule
from gspmd.ir.parser import parse_example
from gspmd.ir.rule import Rule
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import epsilon, is_float
from gspmd.ops import OPS
from tests.ops.inputs import example_inputs
from tests.partitioner import cases

EXAMPLES = [(op.name, text) for op in OPS.values() if op.rule is not None for text in op.examples]
# Whether splitting changes the order in which floats are combined.
_REORDERS = frozenset(("reduce", "lookup", "scan"))


@cache
def example(text: str) -> Program:
    """An example as a program of one node."""
    return parse_example(text, OPS)


def rule_of_example(text: str) -> Rule:
    """The factor rule of an example."""
    rule = node_rule(example(text).body.nodes[0])
    assert rule is not None
    return rule


def check(text: str, split: dict[int, Axes], mesh: Mesh) -> bool:
    """Whether the example could be split so; fails if the result is not the op's."""
    program = example(text)
    explicit = cases.explicit(program, split, mesh)
    if explicit is None:
        return False
    arrays = example_inputs(program)
    expected = cases.reference(program, arrays)
    rule = rule_of_example(text)
    # Floats may differ only where their order of combination does (BLAS chooses one by the shape).
    exact = not rule.flops and not any(f.kind in _REORDERS for f in rule.factors)
    terms = prod(f.size for f in rule.factors if f.kind in _REORDERS)
    for expanded in (False, True):
        actual = cases.run_local(cases.lowered(explicit, expanded), arrays)
        for a, e in zip(actual, expected, strict=True):
            result = compare(a, e, terms=terms, exact=exact)
            assert result, f"{text} split {split} on {mesh.text()}: {result.message}\n{explicit.body.nodes}"
    return True


@pytest.mark.parametrize("text", [t for _, t in EXAMPLES])
def test_one_factor(text: str) -> None:
    """Each factor alone (below split major ones, where a dimension is a product); none escapes."""
    rule = rule_of_example(text)
    for f in cases.splittable(rule):
        done = [check(text, split, mesh) for mesh, split in cases.splits(rule, f)]
        assert any(done) or rule.factors[f].size < 2, f"factor {f} of {text} is never split: {rule.text()}"


@pytest.mark.parametrize("text", [t for _, t in EXAMPLES])
def test_two_factors(text: str) -> None:
    """Pairs of factors on two axes."""
    rule = rule_of_example(text)
    mesh = Mesh({"x": 2, "y": 3})
    for f in cases.splittable(rule):
        for g in cases.splittable(rule):
            if f != g:
                check(text, {f: (mesh.axis("x"),), g: (mesh.axis("y"),)}, mesh)


LINEAR = [(text, group) for _, text in EXAMPLES for group in rule_of_example(text).linear]


@pytest.mark.parametrize(("text", "group"), LINEAR)
def test_linear_in_sums(text: str, group: tuple[int, ...]) -> None:
    """A group of operands that are sums over devices: the op's results are sums of the same total, split or not."""
    program, rule = example(text), rule_of_example(text)
    mesh = Mesh({"s": 3, "x": 2})
    over = (mesh.axis("s"),)
    floats = [v.type.dtype for v in program.body.params if is_float(v.type.dtype)]
    coarsest = max(floats, key=epsilon, default=None)
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
            result = compare(a, e, magnitude=size, terms=prod(f.size for f in rule.factors), scale_dtype=coarsest)
            assert result, f"{text} of sums {group}, split {split}: {result.message}"


def test_every_op_with_a_rule_has_examples() -> None:
    """An op without examples would escape these laws; an annotation needs a mesh and is tested with programs."""
    missing = {op.name for op in OPS.values() if op.rule is not None and not op.examples}
    assert missing <= {op.name for op in OPS.values() if op.has(Trait.IDENTITY)}
