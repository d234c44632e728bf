"""Every record agrees with itself: kernels give the inferred types, rules fit the shapes, operands stay as they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gspmd.ir.opdef import Trait, node_rule
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import epsilon
from gspmd.ops import OPS
from gspmd.ops.rules import differentiable
from tests.ops.cases import LOCAL_EXAMPLES, SHARDED, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs


@pytest.mark.parametrize("example", LOCAL_EXAMPLES)
def test_the_kernel_gives_the_inferred_types_and_leaves_its_operands_alone(example: str) -> None:
    program = parse(example)
    arrays = example_inputs(program)
    copies = [a.copy() for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = evaluate(program, *arrays)
    node = program.body.nodes[-1]
    assert [(r.dtype, r.shape) for r in results] == [(v.type.dtype, v.type.shape) for v in node.results]
    assert all(isinstance(r, np.ndarray) for r in results)
    assert all(a.tobytes() == c.tobytes() for a, c in zip(arrays, copies, strict=True))


@pytest.mark.parametrize("example", LOCAL_EXAMPLES)
def test_the_rule_fits_the_shapes(example: str) -> None:
    node = parse(example).body.nodes[-1]
    rule = node_rule(node)
    if rule is None:
        return
    shapes = [v.type.shape for v in (*node.operands, *node.results)]
    assert [tuple(rule.dim_size(d) for d in t) for t in rule.tensors] == shapes
    assert all(0 <= i < len(node.operands) for group in rule.linear for i in group)


def test_every_op_has_examples() -> None:
    alone = [op for op in OPS.values() if op.rule is not None and not op.has(Trait.COLLECTIVE)]
    assert [op.name for op in alone if not op.examples and op.name not in SHARDED] == []


@pytest.mark.parametrize("example", LOCAL_EXAMPLES)
def test_linear_operands_are_linear(example: str) -> None:
    """f(a + b) = f(a) + f(b) in the operands of each group, the others fixed: what unreduced values rely on."""
    program = parse(example)
    node = program.body.nodes[-1]
    rule = node_rule(node)
    if rule is None or not all(differentiable(v.type) for v in node.results):
        return
    for group in rule.linear:
        first, second = example_inputs(program, 1), example_inputs(program, 2)
        second = [s if i in group else f for i, (f, s) in enumerate(zip(first, second, strict=True))]
        wide = [a.astype(np.complex128) for a in (*first, *second)]
        if any(not np.isfinite(a).all() for a in wide):
            continue
        total = [f + s if i in group else f for i, (f, s) in enumerate(zip(first, second, strict=True))]
        total = [t.astype(f.dtype) for t, f in zip(total, first, strict=True)]
        coarse = max((first[i].dtype for i in group), key=epsilon)
        for whole, one, two in zip(*(evaluate(program, *xs) for xs in (total, first, second)), strict=True):
            scale = np.complex128 if whole.dtype.kind == "c" else np.float64
            one, two = one.astype(scale), two.astype(scale)
            size = np.abs(one) + np.abs(two) + sum(np.abs(wide[i]).max(initial=0) for i in group)
            verdict = compare(whole, (one + two).astype(whole.dtype), size, 16, scale_dtype=coarse)
            assert verdict.ok, f"operands {group}: {verdict.message}"
