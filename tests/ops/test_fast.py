"""The fast form of an op, compiled, is its kernel: on ordinary values and at the edges."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Node
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import limits
from gspmd.runtime.fusion import scalars
from tests.ops.cases import LOCAL_EXAMPLES, name_of, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import operand_values

# Correctly rounded everywhere, hence equal in every bit.
ROUNDED = frozenset(
    ("add", "subtract", "multiply", "divide", "negate", "abs", "sign", "ceil", "floor", "select", "maximum", "minimum")
)


def template(node: Node) -> str | None:
    types = tuple(v.type for v in node.operands)
    return None if node.op.fast is None else node.op.fast(types, node.attrs)


def has_form(node: Node) -> bool:
    """Whether there is something to check: ops that use elements as they are or count are tested in whole kernels."""
    return bool(node.operands) and template(node) not in (None, "{0}")


FAST = [e for e in LOCAL_EXAMPLES if has_form(parse(e).body.nodes[-1])]


def compiled(form: str, count: int) -> Any:
    names = [f"x{i}" for i in range(count)]
    body = form.format(*(f"{n}[i]" for n in names))
    source = f"def f({', '.join(names)}, out):\n    for i in range(out.size):\n        out[i] = {body}\n"
    scope: dict[str, Any] = {"np": np, "math": math, "maximum": scalars.maximum, "minimum": scalars.minimum}
    exec(source, scope)
    return numba.njit(error_model="numpy")(scope["f"])


def edges(dtype: np.dtype[Any]) -> list[Any]:
    if dtype_kind(dtype) == "float":
        return [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e30, -3e4]
    low, high = limits(dtype)
    return [low, high, 0, 1] if dtype_kind(dtype) != "bool" else [False, True]


@pytest.mark.parametrize("example", FAST)
def test_fast_is_the_kernel(example: str) -> None:
    program = parse(example)
    node = program.body.nodes[-1]
    form = template(node)
    assert form is not None
    shape = node.result.type.shape
    rng = np.random.default_rng(0)
    columns = [np.broadcast_to(operand_values(rng, node, i), shape).ravel() for i in range(len(node.operands))]
    grid = np.meshgrid(*(np.array(edges(c.dtype), c.dtype) for c in columns), indexing="ij")
    arrays = [np.concatenate([c, g.ravel()]) for c, g in zip(columns, grid, strict=True)]
    out = np.empty(arrays[0].shape, node.result.type.dtype)
    compiled(form, len(arrays))(*arrays, out)
    expected = np.asarray(node.op.kernel(node.attrs, *arrays))  # type: ignore[misc]
    verdict = compare(out, expected, exact=name_of(example) in ROUNDED)
    assert verdict.ok, f"{form}: {verdict.message}"


def test_most_speed_comes_from_these() -> None:
    names = {name_of(e) for e in FAST}
    assert {
        "add",
        "multiply",
        "exponential",
        "tanh",
        "logistic",
        "erf",
        "rsqrt",
        "maximum",
        "select",
        "compare",
    } <= names


def test_narrow_floats_have_no_fast_form() -> None:
    assert template(parse("add(bf16[4], bf16[4])").body.nodes[-1]) is None
    assert template(parse("convert(f32[4]) dtype=i32").body.nodes[-1]) is None
    assert evaluate(parse("convert(f32[2]) dtype=i32"), np.array([np.nan, 1e20], np.float32))[0].tolist() == [
        0,
        2**31 - 1,
    ]
