"""What a compiled program tells: stages, shardings, collectives, reasons, checks; and what compile refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.driver import meshes
from gspmd.ir.errors import ExecutionError, GspmdError, ParseError, ShardingError, UsageError, VerifyError
from gspmd.ir.graph import STAGES
from gspmd.runtime.environment import World

mesh = gspmd.Mesh({"data": 2, "model": 2})
TYPES = (gspmd.TensorType("f32", (6, 8)), gspmd.TensorType("f32", (8, 10)), gspmd.TensorType("f32", (10, 5)))


def mlp(x: Any, w1: Any, w2: Any) -> Any:
    x, w1 = gspmd.shard(x, mesh, "data", None), gspmd.mesh_split(w1, mesh, [-1, 1])
    return gnp.tanh(x @ w1) @ w2


@pytest.fixture(scope="module")
def compiled() -> gspmd.Compiled:
    return gspmd.compile(mlp, *TYPES)


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(t.shape).astype(np.float32) for t in TYPES]


def test_stages(compiled: gspmd.Compiled) -> None:
    assert list(compiled.stages.programs) == list(STAGES)
    assert "stage=explicit" in compiled.stage("explicit").text()
    with pytest.raises(UsageError, match=r"no stage 'last'[\s\S]*annotated, propagated"):
        compiled.stage("last")
    assert compiled.module.output_types[0].dtype == np.float32 and compiled.output_types[0].shape == (6, 5)
    report = compiled.check(*arrays())
    assert list(report.stages) == list(STAGES[1:]) and all(t.arrays == 1 for t in report.stages.values())


def test_shardings_collectives_and_reasons(compiled: gspmd.Compiled) -> None:
    shardings = compiled.shardings()
    assert shardings["x"] == gspmd.Sharding.of(mesh, "data", None)
    assert shardings["w2"].to_hlo() == "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
    (use,) = compiled.collectives()
    assert (use.kind, use.axes, use.group_size, use.count) == ("all_reduce", ("model",), 2, 1)
    assert use.operand_bytes == use.output_bytes == use.wire_bytes == 3 * 5 * 4
    source = Path(__file__).read_text().splitlines()
    assert use.line.endswith(f"test_compiled.py:{1 + source.index('    return gnp.tanh(x @ w1) @ w2')}")
    assert "is annotated [_, model]" in compiled.explain("%w2").text() == compiled.explain("w2").text()
    with pytest.raises(UsageError, match=r"no value %w3[\s\S]*did you mean"):
        compiled.explain("%w3")


def test_a_wrong_pass_is_found(compiled: gspmd.Compiled) -> None:
    programs = dict(compiled.stages.programs)
    try:
        compiled.stages.programs["optimized"] = gspmd.compile(lambda x, w, v: mlp(x, w, v) * 2, *TYPES).stages.last
        with pytest.raises(ExecutionError, match=r"optimized: result 0 differs from one device: 30 of 30[\s\S]*bisect"):
            compiled.check(*arrays())
    finally:
        compiled.stages.programs.update(programs)


def test_mesh_and_devices() -> None:
    with pytest.raises(UsageError, match=r"annotated for the mesh \[data=2, model=2\], but compile was given \[x=4\]"):
        gspmd.compile(mlp, *TYPES, mesh=gspmd.Mesh({"x": 4}))
    with pytest.raises(UsageError, match=r"devices=3, but the mesh \[data=2, model=2\] has 4"):
        gspmd.compile(mlp, *TYPES, devices=3)
    with pytest.raises(UsageError, match=r"not str[\s\S]*read a file with gspmd.load"):
        gspmd.compile("mlp.gspmd")  # pyright: ignore[reportArgumentType]
    assert gspmd.compile(mlp, *TYPES, devices=4, mesh=mesh).mesh == mesh
    assert gspmd.compile(mlp, *TYPES, mesh=gspmd.Mesh(rest=1, data=2, model=2)).mesh == mesh
    with pytest.raises(UsageError, match=r"compile was given \[model=2, data=2\]"):
        gspmd.compile(mlp, *TYPES, mesh=gspmd.Mesh(model=2, data=2))
    one = gspmd.TensorType("f32", (3,))
    assert gspmd.compile(lambda x: x, one).mesh.size == 1
    assert gspmd.compile(lambda x: x, one, devices=3).mesh.size == 3
    with pytest.raises(UsageError, match=r"types of the arguments of mlp are not known[\s\S]*gspmd.program"):
        gspmd.compile(mlp)
    with pytest.raises(ShardingError, match="different devices"):
        gspmd.compile(lambda x: gspmd.shard(gspmd.shard(x, mesh, "data"), gspmd.Mesh({"x": 2}), "x"), one)


def test_what_compile_takes() -> None:
    one = gspmd.TensorType("f32", (3,))
    assert np.asarray(gspmd.compile(lambda: gnp.ones((3,)))()).tolist() == [1, 1, 1]
    with pytest.raises(UsageError, match="a module or a function, not int"):
        gspmd.compile(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="a module has its types already"):
        gspmd.compile(gspmd.trace(lambda x: x, one), one)
    early = gspmd.compile(lambda x: gspmd.shard(x, mesh, "data") * 2, one, until="explicit")
    with pytest.raises(UsageError, match="up to stage explicit, which devices cannot run"):
        early(np.ones(3))
    assert early.simulate(np.ones(3)).tolist() == [2, 2, 2]


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype": (lambda: gspmd.TensorType("f99", (2,)), "unknown dtype 'f99'"),
    "negative": (lambda: gspmd.TensorType("f32", (-2,)), "cannot be negative"),
    "shape": (lambda: gspmd.TensorType("f32", 3), "3 is no shape"),  # pyright: ignore[reportArgumentType]
    "text": (lambda: gspmd.shard("abc", mesh), "unsupported dtype <U3"),
    "mesh of compile": (lambda: gspmd.compile(mlp, *TYPES, mesh={"a": 2}), r"a gspmd.Mesh, not dict \{'a': 2\}"),  # pyright: ignore[reportArgumentType]
    "mesh of jit": (lambda: gspmd.jit(mesh={"a": 2}), "a gspmd.Mesh, not dict"),  # pyright: ignore[reportCallIssue, reportArgumentType]
    "mesh of shard": (lambda: gspmd.shard(np.ones(2), "a"), "a gspmd.Mesh, not str"),  # pyright: ignore[reportArgumentType]
    "jit": (lambda: gspmd.jit(3), "jit takes a function, not int"),  # pyright: ignore[reportArgumentType, reportCallIssue]
    "trace": (lambda: gspmd.trace(3), "trace takes a function, not int"),
    "compile": (lambda: gspmd.compile(3), "a module or a function, not int"),  # pyright: ignore[reportArgumentType]
    "grad": (lambda: gspmd.grad(np.sum)(np.ones(3)), r"fix: give the gradient to gspmd.jit"),
    "tree_map": (lambda: gspmd.tree_map(max, [1], (1,)), r"nestings that differ: \[\*\] and \(\*,\)"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_told_at_the_users_line(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(GspmdError, match=message) as error:
        call()
    assert error.value.loc is not None and error.value.loc.file == __file__


def test_an_unknown_type_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="f99"):
        gspmd.TensorType("f99", ())


def test_tree_map() -> None:
    assert gspmd.tree_map(lambda a, b: a - b, {"x": [3, 4], "y": None}, {"x": [1, 1], "y": None}) == {
        "x": [2, 3],
        "y": None,
    }


def test_the_mesh_of_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GSPMD_MESH", raising=False)
    assert gspmd.default_mesh(data=-1, model=1).text() == "[data=1, model=1]"
    assert gspmd.default_mesh(data=2, model=3).size == 6  # alone, any mesh can be simulated
    for axes, message in (
        ({"a": 0}, "sizes are positive"),
        ({"a": -1, "b": -1}, "at most one is -1"),
        ({"a": -1, "b": 2}, "does not fit 1 ranks"),
    ):
        with pytest.raises(UsageError, match=message):
            gspmd.default_mesh(**axes)
    monkeypatch.setenv("GSPMD_MESH", "model=2,data=3")
    assert gspmd.default_mesh(data=-1, extra=5).text() == "[model=2, data=3, extra=1]"
    with pytest.raises(UsageError, match=r"has none of the axes that the program uses: rows\n  at .*test_compiled.py"):
        gspmd.default_mesh(rows=-1)
    monkeypatch.setattr(meshes, "world", lambda: World(0, 4, 0, 4, True))
    with pytest.raises(UsageError, match="GSPMD_MESH=model=2,data=3 has 6 devices, but this job has 4 ranks"):
        gspmd.default_mesh(data=-1)
    monkeypatch.delenv("GSPMD_MESH")
    assert gspmd.default_mesh(data=-1, model=2).text() == "[data=2, model=2]"
    for axes in ({"a": 3, "b": -1}, {"a": 2}, {"a": 8}):
        with pytest.raises(UsageError, match="does not fit 4 ranks"):
            gspmd.default_mesh(**axes)
    monkeypatch.setenv("GSPMD_MESH", "model:2")
    with pytest.raises(UsageError, match="'model:2' is no mesh"):
        gspmd.default_mesh(data=-1)


def test_files(tmp_path: Path, compiled: gspmd.Compiled) -> None:
    path = tmp_path / "mlp.gspmd"
    for stage in STAGES:
        path.write_text(compiled.stage(stage).text())
        loaded = gspmd.compile(gspmd.load(path))
        assert np.array_equal(np.asarray(loaded(*arrays())), compiled.simulate(*arrays())), stage
    with pytest.raises(UsageError, match="loaded at stage scheduled"):
        loaded.explain("x")
    with pytest.raises(UsageError, match="has no propagated stage, only scheduled"):
        loaded.shardings()
    assert len(loaded.collectives()) == 1
    with pytest.raises(UsageError, match="is at stage scheduled already, which is after local"):
        gspmd.compile(gspmd.load(path), until="local")
    for text in ("func", "func @f(%x: f32[4@a]) -> (f32[4@a]) stage=annotated {\n}\n"):
        path.write_text(text)
        with pytest.raises(ParseError):
            gspmd.load(path)
    path.write_text("func @f(%x: f32[4]) -> (f32[4]) stage=explicit {\n  return %x\n}\n")
    with pytest.raises(VerifyError):
        gspmd.load(path)


def test_every_public_name_is_there() -> None:
    for name in gspmd.__all__:
        assert getattr(gspmd, name) is not None
    assert set(gspmd.__all__) <= set(dir(gspmd))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gspmd.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_argument_types_nest_as_the_arguments() -> None:
    mesh = gspmd.Mesh(a=2)
    types = {"w": gspmd.TensorType("f32", (4, 2)), "b": [gspmd.TensorType("f32", (2,))]}
    program = gspmd.compile(
        lambda p, x: gspmd.shard(x @ p["w"] + p["b"][0], mesh, None, "a"), types, gspmd.TensorType("f32", (3, 4))
    )
    held, x = program.argument_types
    assert held.keys() == types.keys() and held["w"].shape == (4, 2) and x.shape == (3, 4)
    assert (held["b"][0], held["w"], x) == program.input_types
    assert held["w"].sharding == gspmd.Sharding.of(mesh, None, "a")
