"""What cannot be traced is said at the user's line, with a way out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import gspmd.numpy as gnp
from gspmd.frontend.control import cond, fori_loop, scan, switch, while_loop
from gspmd.frontend.grad import grad
from gspmd.frontend.trace import trace
from gspmd.ir.errors import GspmdError, TraceError
from gspmd.ir.types import TensorType
from tests.frontend.test_trace import line_of

X = TensorType("f32", (4, 6))
I = TensorType("i32", (4,))  # noqa: E741
LEAKED: list[Any] = []


def uses_a_leak(x: Any) -> Any:
    cond(x.sum() > 0, lambda: LEAKED.append(x + 1) or 1, lambda: 2)
    return LEAKED.pop() + x  # HERE


def assigns(x: Any) -> Any:
    x[0] = 1  # HERE
    return x


def branches(x: Any) -> Any:
    if x.sum() > 0:  # HERE
        return x
    return -x


def deep_inside(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return c + float(x[0, 0])  # HERE

    return fori_loop(0, 3, body, x)


CASES: list[tuple[str, Callable[..., Any], str]] = [
    ("bool", branches, r"a Python condition(.|\n)*gspmd.cond"),
    ("float", lambda x: float(x[0, 0]), r"float\(\)(.|\n)*astype"),
    ("int", lambda x: int(x[0, 0]), r"int\(\)"),
    ("range", lambda x: range(x[0, 0]), "Python index or size"),
    ("item", lambda x: x.item(), "item"),
    ("asarray", lambda x: np.asarray(x), "NumPy needs the value(.|\n)*gspmd.numpy"),
    ("numpy function", lambda x: np.linalg.norm(x), "numpy.linalg.norm needs(.|\n)*gspmd.numpy.linalg.norm"),
    ("format", lambda x: f"{x} {x.sum():.3f}", "the format '.3f' needs the value"),
    ("jax", lambda x: jnp.sin(x), "jax was given a traced array(.|\n)*gspmd.from_jax"),
    ("scipy", lambda x: scipy.linalg.inv(x), "scipy was given a traced array(.|\n)*in gspmd.numpy$"),
    ("numpy inside", lambda x: np.asarray_chkfinite(x), "numpy was given a traced array"),
    ("setitem", assigns, r"x.at\[index\].set"),
    ("inside a loop", deep_inside, r"float\(\)"),
    ("leak", uses_a_leak, "used outside the function that made it"),
    ("shapes", lambda x: x + x.T, r"shapes \[4, 6\] and \[6, 4\] do not broadcast"),
    ("matmul", lambda x: x @ x, "contracts size 6"),
    ("reshape", lambda x: x.reshape(5, -1), r"has 24 elements and cannot become \[5, -1\]"),
    ("index", lambda x: x[4], "index 4 is out of range for dimension 0 of size 4"),
    ("index array", lambda x: x[:, np.array([0, 6])], "index 6 is out of range for dimension 1"),
    ("too many", lambda x: x[0, 0, 0], "3 entries"),
    ("mask", lambda x: x[x > 0], "shape that depends on data(.|\n)*where"),
    ("float index", lambda x: x[x[0]], "indices are integers"),
    ("slice", lambda x: x[: gnp.argmax(x)], "dynamic_slice"),
    ("axis", lambda x: x.sum(2), "axis 2 is out of range"),
    ("twice", lambda x: x.sum((0, -2)), "named twice"),
    ("einsum", lambda x: gnp.einsum("ij,jk->ik", x, x), "'j' of 'ij,jk->ik' has sizes 6 and 4"),
    ("einsum result", lambda x: gnp.einsum("ij->ik", x), "'k'"),
    ("einsum count", lambda x: gnp.einsum("ij,jk->ik", x), "for 1 operands"),
    ("einsum rank", lambda x: gnp.einsum("ijk->", x), "does not fit an operand of 2 dimensions"),
    ("bits", lambda x: x & 1, "only integers and bools have bits"),
    ("string", lambda x: x + "a", "cannot become part of a program"),
    ("result", lambda x: {"a": object()}, "stands where an array is wanted"),
    ("squeeze", lambda x: gnp.squeeze(x, 0), "its size is not 1"),
    ("split", lambda x: gnp.split(x, 4, 1), "does not split into 4"),
    ("stack", lambda x: gnp.stack([x, x.T]), "one shape"),
    ("max of none", lambda x: x[:0].max(), "of no elements"),
    ("type rule", lambda x: gnp.concatenate([x, x.T]), "concatenate"),
    ("grad of an array", lambda x: grad(lambda y: y * 2)(x), r"f32\[4, 6\], but only a float scalar"),
    ("grad of a tuple", lambda x: grad(lambda y: (y.sum(), 1))(x), "has_aux"),
    ("grad for integers", lambda x: grad(lambda i: (x[i]).sum())(gnp.arange(3)), r"argument 0 of type i32\[3\]"),
    ("grad of an integer", lambda x: grad(lambda y: gnp.argmax(y))(x), "only a float scalar"),
    ("argnums", lambda x: grad(lambda y: y.sum(), 1)(x), "argnums 1"),
    (
        "while gradient",
        lambda x: grad(lambda y: while_loop(lambda c: c.sum() < 1, lambda c: c * 2, y).sum())(x),
        "unknown length",
    ),
    (
        "carry type",
        lambda x: fori_loop(0, 3, lambda i, c: {"a": c["a"].sum(1)}, {"a": x}),
        r"carries init_val.a as f32\[4, 6\](.|\n)*f32\[4\]",
    ),
    (
        "carry dtype",
        lambda x: while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] > 0), (0, x)),
        r"init_val\[1\] as f32(.|\n)*bool",
    ),
    ("carry nesting", lambda x: fori_loop(0, 3, lambda i, c: (c, c), x), "same nesting"),
    ("branch type", lambda x: cond(True, lambda: x, lambda: x.T), r"branches differ in result: true_fun|false_fun"),
    ("branch nesting", lambda x: cond(True, lambda: x, lambda: (x,)), "same nesting"),
    ("cond shape", lambda x: cond(x > 0, lambda: x, lambda: x), "must be a scalar"),
    ("loop test", lambda x: while_loop(lambda c: c > 0, lambda c: c, x), "must be a scalar"),
    ("no branches", lambda x: switch(0, []), "needs a branch"),
    ("scan lengths", lambda x: scan(lambda c, r: (c, r), 0, (x, x.T)), r"\[4, 6\]"),
    ("scan pair", lambda x: scan(lambda c, r: c, 0, x), "pair"),
    ("scan length", lambda x: scan(lambda c, r: (c, c), 0, None, -1), "scan of -1 rounds"),
    ("loop to a float", lambda x: fori_loop(0, 2.5, lambda i, c: c, x), r"upper bound of fori_loop is f32\[\]"),
    ("loop from a float", lambda x: fori_loop(x[0, 0], 2, lambda i, c: c, x), "lower bound of fori_loop"),
    ("argnums twice", lambda x: grad(lambda a, b: a.sum(), (0, -2))(x, x), r"\(0, -2\) name an argument twice"),
    ("vector norm", lambda x: gnp.linalg.norm(x, "fro", 1), "no vector norm of order 'fro'"),
    ("list", lambda x: x.tolist(), "tolist"),
    ("scan none", lambda x: scan(lambda c, r: (c, r), 0, None), "how many rounds"),
]


@pytest.mark.parametrize(("name", "function", "message"), CASES, ids=[c[0] for c in CASES])
def test_errors(name: str, function: Callable[..., Any], message: str) -> None:
    with pytest.raises(GspmdError, match=message) as caught:
        trace_line = sys._getframe().f_lineno + 1
        trace(function, X)
    assert caught.value.loc is not None
    if line_of(caught.value).endswith("# HERE"):
        return
    first = function.__code__.co_firstlineno
    # A wrong result shows only when the function is over.
    wanted = range(first, first + 4) if name != "result" else [trace_line]
    assert caught.value.loc.file == __file__
    assert caught.value.loc.line in wanted


def test_outside_of_a_trace() -> None:
    with pytest.raises(TraceError, match="no function is being traced") as caught:
        gnp.zeros(3)
    assert line_of(caught.value) == "gnp.zeros(3)"


def test_arguments() -> None:
    with pytest.raises(TraceError, match="str 'relu' is no argument"):
        trace(lambda x, kind: x, X, "relu")
    with pytest.raises(TraceError, match="missing a required argument"):
        trace(lambda x, y: x, X)

    def named(x: Any, *, k: Any) -> Any:
        return x

    with pytest.raises(TraceError, match="takes k by name only"):
        trace(named, X, k=X)


def test_a_finished_trace_leaves_nothing_behind() -> None:
    held: list[Any] = []
    trace(lambda x: held.append(x) or x, X)
    with pytest.raises(TraceError, match="used outside the function that made it"):
        trace(lambda y: y + held[0], X)
    with pytest.raises(TraceError, match="no function is being traced"):
        _ = held[0] + 1
