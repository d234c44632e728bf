"""Calling compiled programs: what is taken, what is refused and how, and who owns the memory."""

from __future__ import annotations

import copy
import dataclasses
import http
import operator
import pickle
import signal
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.ir.errors import ExecutionError, TraceError, UsageError

mesh = gspmd.Mesh({"data": 2, "model": 2})
F = gspmd.TensorType("f32", (5, 4))


def double(x: Any) -> Any:
    return gspmd.shard(x, mesh, "data", None) * 2.0


@pytest.fixture(scope="module")
def compiled() -> gspmd.Compiled:
    return gspmd.compile(double, F)


X = np.arange(20, dtype=np.float32).reshape(5, 4)


def test_results_nest_as_the_function_does() -> None:
    def f(pair: Any, scale: Any) -> Any:
        return {"sum": gspmd.shard(pair[0], mesh, "data") + pair[1], "none": None, "list": [scale, (pair[0],)]}

    vector = gspmd.TensorType("f32", (3,))
    c = gspmd.compile(f, (vector, vector), gspmd.TensorType("i32", ()))
    found = c((np.ones(3, np.float32), np.ones(3, np.float32)), 7)
    assert isinstance(found["sum"], gspmd.Array) and found["none"] is None
    assert found["list"][0].item() == 7 and np.asarray(found["list"][1][0]).tolist() == [1, 1, 1]
    simulated = c.simulate((np.ones(3, np.float32), np.ones(3, np.float32)), 7)
    assert isinstance(simulated["sum"], np.ndarray) and simulated["sum"].tolist() == [2, 2, 2]


def test_a_text_program_takes_inputs_one_by_one() -> None:
    module = gspmd.trace(lambda xs: (xs[0], xs[1]), (F, F))
    bare = gspmd.Module(module.program)
    assert isinstance(bare.run(X, X), tuple)
    with pytest.raises(ExecutionError, match="takes 2 arrays, got 1"):
        bare.run(X)


def test_wide_numpy_data_is_narrowed_unless_x64_is_on(compiled: gspmd.Compiled) -> None:
    assert np.array_equal(np.asarray(compiled(X.astype(np.float64))), 2 * X)
    assert np.array_equal(compiled.module.run(X.astype(np.float64)), 2 * X)
    with gspmd.enable_x64(), pytest.raises(ExecutionError, match=r"must be f32\[5, 4\]: got f64"):
        compiled(X.astype(np.float64))
    integers = gspmd.compile(lambda n: n + 1, gspmd.TensorType("i32", (2,)))
    assert np.asarray(integers(np.arange(2))).tolist() == [1, 2]
    with pytest.raises(ExecutionError, match="does not fit into int32"):
        integers(np.array([1, 2**40]))
    assert gspmd.trace(lambda x: x, np.zeros(3)).input_types[0].text() == "f32[3]"
    with gspmd.enable_x64():
        assert gspmd.trace(lambda x: x, np.zeros(3)).input_types[0].text() == "f64[3]"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (X[:3], r"argument 0 \(%x\) must be f32\[5, 4\]: got f32\[3, 4\]"),
        (X.astype(np.int32), r"got i32\[5, 4\]\n  fix: convert it: x.astype\('float32'\)"),
        (X.astype(np.float16), "got f16"),
        (1.0, r"got f32\[\]"),
        ("text", "got <U4"),
        (X.tolist(), r"the arguments nest as .*\n  fix: numpy.asarray"),
        (None, r"nest as \(None,\), but the program takes \(\*,\)"),
    ],
)
def test_other_arguments_are_refused(compiled: gspmd.Compiled, argument: Any, message: str) -> None:
    for call in (compiled, compiled.simulate, compiled.module.run, compiled.check):
        with pytest.raises(ExecutionError, match=message):
            call(argument)


def test_memory_order_does_not_matter(compiled: gspmd.Compiled) -> None:
    for given in (X.astype(">f4"), X.astype(">f8"), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert np.array_equal(np.asarray(compiled(given)), 2 * X)
        assert np.array_equal(np.asarray(gspmd.jit(double)(given)), 2 * X)


def test_python_numbers_take_the_dtype_of_their_input() -> None:
    c = gspmd.compile(lambda x, n: (x, n), gspmd.TensorType("bf16", ()), gspmd.TensorType("i8", ()))
    x, n = c(1.5, True)
    assert x.dtype == ml_dtypes.bfloat16 and x.item() == 1.5 and n.item() == 1
    with pytest.raises(ExecutionError, match=r"must be i8\[\]: got the Python float 0.5"):
        c(1, 0.5)
    with pytest.raises(ExecutionError, match="300 does not fit"):
        c(1, 300)
    assert c(http.HTTPStatus.OK, signal.SIGINT)[1].item() == 2  # kinds of int


def test_a_result_is_nobody_elses_memory() -> None:
    def f(x: Any) -> Any:
        return x, x, x.reshape(4, 5), x[:2], gnp.ones((3,)), gnp.broadcast_to(x[0, 0], (2, 2))

    for annotate in (False, True):
        c = gspmd.compile((lambda x: f(gspmd.shard(x, mesh, None, None))) if annotate else f, F)
        for run in (c, c.simulate, c.module.run):
            given = X.copy()
            found = run(given)
            expected = [np.array(x) for x in found]
            given[:] = -1
            memory = [s for x in found for s in (x.buffers if isinstance(x, gspmd.Array) else [x])]
            for x, e in zip(found, expected, strict=True):
                assert np.array_equal(np.asarray(x), e)
            for i, s in enumerate(memory):
                s[...] = -2 - i
            assert all((s == -2 - i).all() for i, s in enumerate(memory))
            again = run(X.copy())
            assert np.array_equal(np.asarray(again[4]), np.ones(3))


def test_results_go_into_the_next_call_without_moving(compiled: gspmd.Compiled) -> None:
    y = compiled(X)
    z = compiled(y)
    assert z.sharding == y.sharding and np.array_equal(np.asarray(z), 4 * X)
    other = gspmd.shard(X, mesh, None, "model")
    assert np.array_equal(np.asarray(compiled(other)), 2 * X)
    elsewhere = gspmd.shard(X, gspmd.Mesh({"x": 4}), "x", None)
    with pytest.raises(ExecutionError, match=r"lives on the mesh \[x=4\], the program runs on \[data=2, model=2\]"):
        compiled(elsewhere)
    assert np.array_equal(np.asarray(compiled(gspmd.shard(elsewhere, mesh, None, None))), 2 * X)


def test_a_donated_array_is_used_up_and_freed() -> None:
    step = gspmd.compile(lambda s, x: (s["w"] + x, s["v"]), {"w": F, "v": F}, F, donate=[0], mesh=mesh)
    state = {name: gspmd.shard(X, mesh, "data", None) for name in "wv"}
    other = gspmd.shard(X, mesh, "data", None)
    alive = weakref.ref(state["w"].buffers[0])
    w, v = step(state, other)
    assert alive() is None
    assert np.array_equal(np.asarray(w), 2 * X) and np.array_equal(np.asarray(v), X)
    with pytest.raises(ExecutionError, match=r"type f32\[5@data, 4\] was donated"):
        np.asarray(state["w"])
    with pytest.raises(ExecutionError, match="was donated"):
        step(state, other)
    assert np.array_equal(np.asarray(other), X)
    given = {"w": X.copy(), "v": X.copy()}
    step(given, X)
    assert np.array_equal(given["w"], X)
    with pytest.raises(UsageError, match=r"donate=\[2\], but <?\w+>? takes 2 arguments"):
        gspmd.compile(lambda s, x: x, F, F, donate=[2])


def test_a_call_that_is_refused_uses_nothing_up() -> None:
    step = gspmd.compile(lambda x, y: x + y, F, F, donate=[0], mesh=mesh)
    x = gspmd.shard(X, mesh, None, None)
    with pytest.raises(ExecutionError):
        step(x, X[:1])
    assert np.array_equal(np.asarray(x), X)


def test_a_compiled_program_within_a_trace_is_refused(compiled: gspmd.Compiled) -> None:
    with pytest.raises(TraceError, match="compiled program cannot be called inside"):
        gspmd.trace(lambda x: compiled(x), F)


def test_a_program_of_an_early_stage_gives_memory_of_its_own() -> None:
    early = gspmd.compile(lambda x: x, F, until="propagated")
    given = X.copy()
    early.simulate(given)[:] = -1
    early.stage("annotated").run(given)[:] = -1
    assert np.array_equal(given, X)


def test_arrays_of_an_equal_mesh_are_at_home() -> None:
    c = gspmd.compile(double, F)
    x = gspmd.shard(X, gspmd.Mesh({"data": 2, "model": 2}), None, None)
    for i in range(70):
        gspmd.shard(X, gspmd.Mesh({f"m{i}": 1}), None, None)
    for held in (x, copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert np.array_equal(np.asarray(c(held)), 2 * X)


def test_an_array_does_not_compute() -> None:
    x = gspmd.shard(X, mesh, None, None)
    for broken in (lambda: x[0], lambda: x + 1, lambda: 2.0 * x, lambda: x @ x, lambda: -x, lambda: list(x)):
        with pytest.raises(TypeError, match=r"gspmd.Array .* outside of jitted functions: use np.asarray"):
            broken()
    assert np.array_equal(x + X, 2 * X) and np.array_equal(X * x, X * X)
    assert np.array_equal(x == X, X == X)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.ge])
def test_an_array_does_not_compare_as_an_object(compare: Any) -> None:
    x = gspmd.shard(X, mesh, None, None)
    for other in (1.0, copy.copy(x)):
        with pytest.raises(TypeError, match=r"use np\.asarray"):
            compare(x, other)


def test_what_an_array_has_not_is_told_with_the_way_out() -> None:
    x = gspmd.shard(X, mesh, None, None)
    assert not hasattr(x, "T")
    with pytest.raises(AttributeError, match=r"has no sum outside of jitted functions: use np.asarray"):
        x.sum()


def test_a_dict_is_no_array_to_shard() -> None:
    for split in (gspmd.jit(lambda p: gspmd.shard(p, mesh, "data", None)), lambda p: gspmd.shard(p, mesh, "data")):
        with pytest.raises(UsageError, match=r"one array(.|\n)*gspmd.tree_map"):
            split({"w": X})


def test_a_scalar_is_formatted_as_a_number() -> None:
    loss = gspmd.jit(lambda x: gnp.sum(x))(X)
    assert f"{loss:.2f} {loss}" == "190.00 gspmd.Array(f32[]@_)"
    with pytest.raises(TypeError, match="format"):
        format(gspmd.shard(X, mesh, None, None), ".2f")


def test_a_kernel_that_fails_is_told_at_its_line() -> None:
    def kernel(attrs: Any, x: Any, y: Any) -> Any:
        raise ZeroDivisionError("of zero")

    c = gspmd.trace(lambda x: x * x, F)
    broken = dataclasses.replace(c.program.body.nodes[0].op, kernel=kernel)
    node = dataclasses.replace(c.program.body.nodes[0], op=broken)
    program = dataclasses.replace(c.program, body=dataclasses.replace(c.program.body, nodes=(node,)))
    with pytest.raises(ExecutionError, match=r"multiply failed: of zero\n  at .*test_calls.py:\d+"):
        gspmd.Module(program).run(X)
