"""`@gspmd.jit`: one program for each set of types, keywords, functions within functions, where arguments live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.frontend.tree import flatten
from gspmd.ir.errors import GspmdError

mesh = gspmd.Mesh({"a": 3})


def test_types_are_taken_from_the_arguments() -> None:
    traced: list[int] = []

    @gspmd.jit
    def f(x: Any, k: Any) -> Any:
        traced.append(1)
        return x * k

    assert f(np.arange(3.0), 2).dtype == np.float32
    assert np.asarray(f(np.arange(3.0, dtype=np.float32), 5)).tolist() == [0, 5, 10]
    assert len(traced) == 1
    assert f(np.arange(3), 2).dtype == np.int32
    assert f(np.arange(3), 0.5).dtype == np.float32
    assert f(f(np.arange(3.0), 2), 2).dtype == np.float32
    assert len(traced) == 3
    with gspmd.enable_x64():
        assert f(np.arange(3.0), 2.0).dtype == np.float64


SHORT = np.arange(4, dtype=np.float16)


@pytest.mark.parametrize(
    ("function", "numbers", "dtypes"),
    [
        (lambda x, n: x * n, (2, 2.5, True), ("f2", "f2", "f2")),
        (lambda x, n: n - x / n, (2, 2.5), ("f2", "f2")),
        (lambda x, n: x.astype("i1") + n, (2, 2.5), ("i1", "f4")),
        (lambda x, n: x * (n * 3 + 1), (2, 2.5), ("f2", "f2")),
        (lambda x, n: x * gnp.exp(-abs(n)), (2, 2.5), ("f2", "f2")),
        (lambda x, n: gnp.where(x > 1, x, n), (2, 2.5), ("f2", "f2")),
        (lambda x, n: gnp.clip(x, 1, n), (2, 2.5), ("f2", "f2")),
        (lambda x, n: x**n, (2, 2.5), ("f2", "f2")),
        (lambda x, n: x * gnp.asarray(n, dtype="float32"), (2, 2.5), ("f4", "f4")),
        (lambda x, n: x * n.astype("float32"), (2,), ("f4",)),
        (lambda x, n: n, (2, 2.5, True), ("i4", "f4", "?")),
        (lambda x, n: n * 2.0, (2, 2.5), ("f4", "f4")),
        (lambda x, n: gspmd.fori_loop(0, 2, lambda i, y: y * n, x), (2, 2.5), ("f2", "f2")),
        (lambda x, n: gnp.sum(x) * gspmd.grad(lambda m: gnp.sum(x) * m)(n), (2.5,), ("f2",)),
    ],
)
def test_python_numbers_are_weak_as_in_jax(function: Any, numbers: tuple[Any, ...], dtypes: tuple[str, ...]) -> None:
    jitted = gspmd.jit(function)
    for number, dtype in zip(numbers, dtypes, strict=True):
        found = np.asarray(jitted(SHORT, number))
        assert found.dtype == np.dtype(dtype), number
        (traced,) = flatten(gspmd.trace(function, SHORT, number).run(SHORT, number))[0]
        assert np.array_equal(found, traced)
    # NumPy's numbers have a dtype of their own, and so a program of their own.
    assert np.asarray(gspmd.jit(lambda x, n: x * n)(SHORT, np.float32(2))).dtype == np.float32


def test_a_number_is_weak_for_each_value_and_call() -> None:
    f = gspmd.jit(lambda x, n: x * n)
    assert f(SHORT, 2).dtype == f(SHORT, 3).dtype == np.float16
    assert f(SHORT, np.float32(2)).dtype == np.float32
    assert f(SHORT, 2.5).dtype == np.float16
    assert np.asarray(f(SHORT, 3)).tolist() == [0, 3, 6, 9]


def test_keywords_and_defaults() -> None:
    @gspmd.jit
    def f(x: Any, scale: Any = 2.0, shift: Any = 1.0) -> Any:
        return x * scale + shift

    x = np.ones(2, np.float32)
    assert np.asarray(f(x)).tolist() == [3, 3]
    assert np.asarray(f(x, shift=0.0, scale=4.0)).tolist() == [4, 4]
    assert np.asarray(f(scale=3.0, x=x)).tolist() == [4, 4]
    with pytest.raises((GspmdError, TypeError), match="missing a required argument: 'x'"):
        f(scale=3.0)


def test_a_jitted_function_is_a_function_within_another() -> None:
    inner = gspmd.jit(lambda x: x + 1.0)
    outer = gspmd.jit(lambda x: inner(x) * 2.0)
    assert np.asarray(outer(np.ones(2, np.float32))).tolist() == [4, 4]
    assert np.asarray(gspmd.jit(gspmd.grad(lambda x: gnp.sum(inner(x) ** 2)))(np.ones(2))).tolist() == [4, 4]


def test_a_function_without_annotations_runs_where_its_arguments_live() -> None:
    f = gspmd.jit(lambda x: gnp.tanh(x) + 1.0)
    x = np.linspace(0, 1, 7, dtype=np.float32)
    assert f(x).sharding.mesh.size == 1
    held = gspmd.shard(x, mesh, "a")
    assert f(held).sharding == held.sharding
    assert f(f(held)).sharding == held.sharding
    assert f(gspmd.shard(x, mesh, None)).sharding.is_replicated
    for g in (gspmd.jit(lambda x: x + 1.0), gspmd.jit(mesh=mesh)(lambda x: x + 1.0)):
        assert g(held).sharding == held.sharding
    assert np.array_equal(np.asarray(f(held)), np.asarray(f(x)))


def test_options() -> None:
    @gspmd.jit(mesh=mesh, donate=[0])
    def f(x: Any) -> Any:
        return x + 1.0

    x = gspmd.shard(np.ones(4, np.float32), mesh, "a")
    assert np.asarray(f(x)).tolist() == [2] * 4
    with pytest.raises(GspmdError, match="donated"):
        np.asarray(x)
    assert f.compiled_for(gspmd.TensorType("f32", (4,))).mesh == mesh


def test_arguments_by_name_are_never_dropped() -> None:
    @gspmd.jit
    def f(x: Any, a: Any = 1.0, b: Any = 2.0, mode: str = "plain") -> Any:
        return x * a + b if mode == "plain" else x

    x = np.ones(2, np.float32)
    assert np.asarray(f(x, b=30.0)).tolist() == [31, 31]
    assert np.asarray(f(x, 2.0, b=30.0)).tolist() == [32, 32]
    assert f.compiled_for(x, b=1.0).module.program.body.params[1].name == "b"

    @gspmd.jit
    def g(*xs: Any, scale: Any = 1.0, **more: Any) -> Any:
        return sum(xs) * scale + sum(more.values())

    assert np.asarray(g(x, x, scale=3.0)).tolist() == [6, 6]
    assert np.asarray(g(x, p=x, q=2 * x)).tolist() == [4, 4]
    with pytest.raises(GspmdError, match=r"missing a required argument: 'x'\n  at .*test_jit.py:\d+"):
        f(b=x)

    @gspmd.jit
    def h(x: Any, *, train: Any = False) -> Any:
        return x * 10 if train else x

    assert np.asarray(h(x)).tolist() == [1, 1]
    with pytest.raises(GspmdError, match="a Python condition needs the value of a traced array"):
        h(x, train=True)


def test_named_arguments_are_donated_by_their_position_in_the_signature() -> None:
    @gspmd.jit(mesh=mesh, donate=[1, 2])
    def f(x: Any, a: Any = 1.0, b: Any = 2.0) -> Any:
        return x * a + b

    x, b = (gspmd.shard(np.ones(4, np.float32), mesh, "a") for _ in range(2))
    assert np.asarray(f(x, b=b)).tolist() == [2] * 4 and np.asarray(x).tolist() == [1] * 4
    with pytest.raises(GspmdError, match="donated"):
        np.asarray(b)


def test_x64_is_part_of_what_a_program_is_compiled_for() -> None:
    f = gspmd.jit(lambda x: (x, gnp.zeros(4)))
    x = np.ones(4, np.float32)
    assert f(x)[1].dtype == np.float32
    with gspmd.enable_x64():
        assert f(x)[1].dtype == np.float64
    assert f(x)[1].dtype == np.float32


def test_options_go_where_the_function_goes(tmp_path: Path) -> None:
    one = gspmd.TensorType("f32", (4,))
    f = gspmd.program(one)(gspmd.jit(mesh=mesh, donate=[0])(lambda x: x + 1.0))
    again = gspmd.jit(f)
    for found in (gspmd.compile(f), gspmd.compile(f, one), gspmd.compile(gspmd.trace(f, one)), again.compiled_for(one)):
        x = gspmd.shard(np.ones(4, np.float32), mesh, "a")
        assert found.mesh == mesh and np.asarray(found(x)).tolist() == [2] * 4
        with pytest.raises(GspmdError, match="donated"):
            np.asarray(x)
    kept = gspmd.compile(f, donate=())
    x = gspmd.shard(np.ones(4, np.float32), mesh, "a")
    assert np.asarray(kept(x)).tolist() == [2] * 4 and np.asarray(x).tolist() == [1] * 4
    (tmp_path / "jitted_model.py").write_text(
        "import gspmd\n@gspmd.program(gspmd.TensorType('f32', (4,)))\n"
        "@gspmd.jit(mesh=gspmd.Mesh({'a': 3}), donate=[0])\ndef f(x):\n    return x + 1.0\n"
    )
    module = gspmd.load(f"{tmp_path}/jitted_model.py:f")
    assert module.mesh == mesh and module.donate == (0,)


def test_options_that_are_not_there_are_named() -> None:
    loosely: Any = gspmd.jit
    for option, message in {"static_argnums": r"functools\.partial", "meshes": "the options are mesh"}.items():
        with pytest.raises(GspmdError, match=rf"jit has no option {option}[\s\S]*{message}"):
            loosely(lambda x: x, **{option: 0})


def test_what_it_is_in_a_line() -> None:
    def twice(x: Any) -> Any:
        return x + x

    jitted = gspmd.jit(mesh=gspmd.Mesh({"a": 2}))(twice)
    assert repr(jitted) == "Jitted(twice on [a=2])" and repr(gspmd.jit(twice)) == "Jitted(twice)"
    stages = jitted.compiled_for(gspmd.TensorType("f32", (4,))).stages
    assert repr(stages) == "Stages(twice: annotated, propagated, explicit, collectives, local, optimized, scheduled)"
