"""Custom ops: the user's rule decides how they are split, the user's function computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.ir.errors import ExecutionError, TypeRuleError
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from gspmd.ops.rule_text import parse_rule

MESH = gspmd.Mesh({"a": 2, "b": 3})

contract = gspmd.custom_op(
    lambda x, w: np.einsum("bmk,kn->bmn", x, w),
    "bmk,kn->bmn | k: reduce add",
    vjp=lambda x, w, ct: (ct @ gnp.transpose(w), gnp.einsum("bmk,bmn->kn", x, ct)),
    name="contract",
)
ordered = gspmd.custom_op(
    lambda x: (np.sort(x, 1), np.argsort(x, 1).astype(np.int32)),
    "bs->bs,bs | s: whole",
    dtypes=("f32", "i32"),
    name="ordered",
)
peak = gspmd.custom_op(lambda x: x.max(axis=1), "bs->b | s: reduce max", name="peak")
unrolled = gspmd.custom_op(lambda x: x.reshape(-1, x.shape[2]) * 2, "abc->(ab)c", name="unrolled")


def data(*shape: int) -> Any:
    return np.random.default_rng(0).permutation(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) - 7


@pytest.mark.parametrize(
    "entries", [("a", None, "b"), ("b", "a", None), (None, None, ("a", "b")), (("b", "a"), None, None)]
)
def test_a_custom_op_is_split_as_its_rule_says(entries: Any) -> None:
    """Ragged dimensions too: padding never reaches a result."""

    def f(x: Any, w: Any) -> Any:
        y = contract(gspmd.shard(x, MESH, *entries), w)
        return y, *ordered(y[:, 0]), peak(y[0]), unrolled(y)

    x, w = data(5, 7, 8), data(8, 4)
    c = gspmd.compile(gspmd.trace(f, gspmd.TensorType("f32", x.shape), gspmd.TensorType("f32", w.shape)))
    assert "scheduled" in str(c.check(x, w))
    expected = x @ w
    np.testing.assert_allclose(c.simulate(x, w)[0], expected, rtol=1e-5)


def test_a_contraction_leaves_a_sum_to_combine() -> None:
    """The user's function sees parts; what it sums over is combined by one all-reduce."""

    def f(x: Any, w: Any) -> Any:
        return contract(gspmd.shard(x, MESH, None, None, "a"), gspmd.shard(w, MESH, "a", None))

    c = gspmd.compile(gspmd.trace(f, gspmd.TensorType("f32", (3, 5, 8)), gspmd.TensorType("f32", (8, 4))))
    assert [u.kind for u in c.collectives()] == ["all_reduce"]


def test_a_custom_op_has_the_gradient_that_it_is_given() -> None:
    def loss(x: Any, w: Any) -> Any:
        return gnp.sum(contract(x, w) ** 2)

    x, w = data(2, 3, 4) / 10, data(4, 5) / 10
    types = gspmd.TensorType("f32", x.shape), gspmd.TensorType("f32", w.shape)
    dx, dw = gspmd.trace(gspmd.grad(loss, argnums=(0, 1)), *types).run(x, w)
    y = x @ w
    np.testing.assert_allclose(dx, 2 * y @ w.T, rtol=1e-4)
    np.testing.assert_allclose(dw, 2 * np.einsum("bmk,bmn->kn", x, y), rtol=1e-4)
    with pytest.raises(TypeRuleError, match="peak has no gradient"):
        gspmd.trace(gspmd.grad(lambda x: gnp.sum(peak(x))), gspmd.TensorType("f32", (3, 4)))


def test_a_printed_program_finds_its_function_by_name() -> None:
    module = gspmd.trace(lambda x: peak(x), gspmd.TensorType("f32", (3, 4)))
    text = module.text()
    assert parse_program(text, OPS).body.nodes[0].attrs == module.program.body.nodes[0].attrs
    unknown = parse_program(text.replace("name=peak", "name=nobody"), OPS)
    with pytest.raises(ExecutionError, match="nobody is not known in this process"):
        gspmd.compile(gspmd.Module(unknown)).simulate(data(3, 4))


def test_a_function_that_breaks_its_rule_is_told() -> None:
    wrong = gspmd.custom_op(lambda x: x[:1], "ij->ij", name="wrong")
    with pytest.raises(ExecutionError, match=r"wrong gave float32\[1, 4\], by its rule f32\[3, ?4\]"):
        gspmd.trace(lambda x: wrong(x), gspmd.TensorType("f32", (3, 4))).run(data(3, 4))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ij", "no ->"),
        ("ij->ik", "factor k is in no operand"),
        ("i1->i", "is no list of factors"),
        ("ij->i | k: whole", "'k' in 'k: whole' is no factor"),
        ("ij->i | j: sum", "'sum' is no kind"),
        ("ij->i | j: reduce sum", "reduce takes a monoid"),
        ("ij->i | i: reduce add", "i reduces, but is in a result"),
        ("ij->i | j: pass", "j passes, but is in no result"),
        ("ij->i | j:", "'' is no kind"),
    ],
)
def test_rules_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(TypeRuleError, match=words):
        gspmd.custom_op(lambda x: x, text)


def test_rules_that_do_not_fit_the_arguments() -> None:
    rule = parse_rule("ij,jk->ik")
    with pytest.raises(TypeRuleError, match="size 5 has factors"):
        rule.result_shapes([(3, 4), (5, 6)])
    with pytest.raises(TypeRuleError, match="2 operands, given 1"):
        rule.result_shapes([(3, 4)])
    assert parse_rule("(ab)c,a->bc").result_shapes([(6, 5), (2,)]) == [(3, 5)]
