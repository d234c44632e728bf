"""StableHLO's forms one by one: text in, what our reference computes out; and what is refused, with its lines."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo

import gspmd
from gspmd.interop import import_program
from gspmd.interop.export_stablehlo import export_stablehlo, exports
from gspmd.interop.import_dense import blobs
from gspmd.interop.import_mlir import read_module
from gspmd.interop.import_stablehlo import import_stablehlo
from gspmd.ir.errors import ParseError, UsageError
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from tests.ops.cases import EXAMPLES, name_of, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def function(
    body: str, arguments: str = "%x: tensor<3x4xf32>", results: str = "tensor<3x4xf32>", before: str = ""
) -> str:
    return f"module {{\n{before}\nfunc.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n}}\n"


def run(text: str, *arrays: Any) -> list[np.ndarray]:
    program = import_stablehlo(text)
    verify(program, OPS)
    return evaluate(program, *arrays)


def refused(text: str) -> str:
    with pytest.raises(UsageError) as error:
        import_stablehlo(text)
    return str(error.value)


# -- round trips -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", [e for e in EXAMPLES if exports(name_of(e))])
def test_what_is_exported_is_imported_again(example: str) -> None:
    program = parse(example)
    back = import_stablehlo(export_stablehlo(program))
    verify(back, OPS)
    assert back.inputs == program.inputs
    arrays = example_inputs(program)
    for mine, other in zip(evaluate(program, *arrays), evaluate(back, *arrays), strict=True):
        assert compare(other, mine).message == ""


def test_text_bytecode_and_portable_artifact_are_one_program() -> None:
    text = function("%0 = stablehlo.add %x, %x : tensor<3x4xf32>\nreturn %0 : tensor<3x4xf32>")
    module = read_module(text).module
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    artifact = stablehlo.serialize_portable_artifact_str(str(module), stablehlo.get_current_version())
    for source in (text, text.encode(), text.encode("utf-8-sig"), bytecode.getvalue(), artifact):
        assert [n.op.name for n in import_stablehlo(source).body.nodes] == ["add"]
    for view in (bytearray(artifact), memoryview(artifact)):
        assert [n.op.name for n in import_stablehlo(view).body.nodes] == ["add"]
    given: Any = module
    with pytest.raises(UsageError, match="given as text or bytes, not as Module"):
        import_stablehlo(given)


# -- constants ---------------------------------------------------------------------------------------------------------

INF = 0x7FF0000000000000
CONSTANTS = [
    ("complex<f32>", "(1.0,2.0)", np.array(1 + 2j, np.complex64)),
    ("2xcomplex<f64>", f"[(1.0,2.0),({INF:#x},-0.003)]", np.array([1 + 2j, complex(np.inf, -0.003)])),
    ("3xi4", "[1,-2,7]", np.array([1, -2, 7], ml_dtypes.int4)),
    ("2xui2", "[1,3]", np.array([1, 3], ml_dtypes.uint2)),
    ("3xbf16", "[1.0,-0.0,0xFF80]", np.array([1, -0.0, -np.inf], ml_dtypes.bfloat16)),
    ("2xf8E5M2", "[1.0,0x7C]", np.array([1, np.inf], ml_dtypes.float8_e5m2)),
    ("100xbf16", "1.5", np.full(100, 1.5, ml_dtypes.bfloat16)),
    ("10x10xf32", "0.1", np.full((10, 10), 0.1, np.float32)),
    ("130xcomplex<f32>", '"0x' + "0000803F00000040" * 130 + '"', np.full(130, 1 + 2j, np.complex64)),
    ("120xui4", '"0x' + "0105" * 60 + '"', np.array([1, 5] * 60, ml_dtypes.uint4)),
    ("2xf32", "resource", np.array([1, 2], np.float32)),
    ("2x0xf32", "", np.zeros((2, 0), np.float32)),
    ("5xi1", "[true,false,true,true,false]", np.array([True, False, True, True, False])),
    ("ui8", "200", np.array(200, np.uint8)),
]


@pytest.mark.parametrize(("type_", "value", "wanted"), CONSTANTS, ids=[c[0] for c in CONSTANTS])
def test_constants_keep_every_bit(type_: str, value: str, wanted: np.ndarray) -> None:
    held = "dense_resource<blob>" if value == "resource" else f"dense<{value}>"
    text = function(
        f"%0 = stablehlo.constant {held} : tensor<{type_}>\nreturn %0 : tensor<{type_}>", "", f"tensor<{type_}>"
    )
    text += '{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}'
    (found,) = run(text)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes()


def test_the_resources_of_many_constants_are_found_by_name_and_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"'{k}'.weights > 0" if k % 2 else f"_{k}" for k in range(6)]
    lines = [f'%r{k} = stablehlo.constant dense_resource<"{name}"> : tensor<i32>' for k, name in enumerate(names)]
    held = ", ".join(f'"{name}": "0x04000000{k:02X}000000"' for k, name in enumerate(names))
    returned = f"return {', '.join(f'%r{k}' for k in range(6))} : {', '.join(['tensor<i32>'] * 6)}"
    text = function("\n".join([*lines, returned]), "", ", ".join(["tensor<i32>"] * 6))
    counted: list[str] = []
    monkeypatch.setattr(import_program, "blobs", lambda t: counted.append(t) or blobs(t))
    assert [x.item() for x in run(f"{text}{{-# dialect_resources: {{ builtin: {{ {held} }} }} #-}}")] == list(range(6))
    assert len(counted) == 1


@pytest.mark.parametrize(("type_", "held"), [("1xi32", 8), ("3xi32", 8), ("0xi32", 4), ("2xi32", 7), ("2xi32", 4)])
def test_a_resource_of_another_size_is_an_error(type_: str, held: int) -> None:
    body = f"%0 = stablehlo.constant dense_resource<b> : tensor<{type_}>\nreturn %0 : tensor<{type_}>"
    text = function(body, "", f"tensor<{type_}>")
    told = refused(f'{text}{{-# dialect_resources: {{ builtin: {{ b: "0x04000000{"00" * held}" }} }} #-}}')
    assert f"the resource b has {held} bytes, i32[{type_[0]}] needs {type_[0]} elements" in told


# -- control flow and calls --------------------------------------------------------------------------------------------


def loop(start: str, bound: str, direction: str, step: str) -> str:
    return function(
        f"""%i = stablehlo.constant dense<{start}> : tensor<i32>
        %n = stablehlo.constant dense<{bound}> : tensor<i32>
        %0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<3x4xf32>
        cond {{ %p = stablehlo.compare {direction}, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }} do {{ %s = stablehlo.constant dense<{step}> : tensor<i32>
          %c = stablehlo.add %s, %a : tensor<i32>
          %d = stablehlo.add %b, %x : tensor<3x4xf32>
          stablehlo.return %c, %d : tensor<i32>, tensor<3x4xf32>
        }}
        return %0#1 : tensor<3x4xf32>"""
    )


@pytest.mark.parametrize(
    ("case", "count"),
    [(("0", "5", "LT", "1"), 5), (("1", "7", "LE", "3"), 3), (("9", "5", "LT", "1"), 0), (("0", "6", "NE", "2"), None)],
)
def test_a_loop_reads_what_is_around_it_and_its_trips_are_counted(case: tuple[str, ...], count: int | None) -> None:
    text = loop(*case)
    (node,) = [n for n in import_stablehlo(text).body.nodes if n.regions]
    assert getattr(node.attrs, "trip_count", "") == count
    (found,) = run(text, X)
    assert np.array_equal(found, X * (1 + (3 if count is None else count)))


def test_branches_read_what_is_around_them() -> None:
    body = """%0 = "stablehlo.if"(%p) ({ %a = stablehlo.add %x, %x : tensor<3x4xf32>
          stablehlo.return %a : tensor<3x4xf32>
        }, { stablehlo.return %x : tensor<3x4xf32> }) : (tensor<i1>) -> tensor<3x4xf32>
        return %0 : tensor<3x4xf32>"""
    text = function(body, "%p: tensor<i1>, %x: tensor<3x4xf32>")
    assert np.array_equal(run(text, np.array(True), X)[0], X + X)
    assert np.array_equal(run(text, np.array(False), X)[0], X)


def test_functions_composites_and_tuples_disappear() -> None:
    helper = """func.func private @twice(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
          %0 = stablehlo.add %a, %a : tensor<3x4xf32>
          return %0 : tensor<3x4xf32> }"""
    body = """%0 = func.call @twice(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
        %1 = stablehlo.composite "my.twice" %0 {decomposition = @twice} : (tensor<3x4xf32>) -> tensor<3x4xf32>
        %2 = stablehlo.tuple %1, %x : tuple<tensor<3x4xf32>, tensor<3x4xf32>>
        %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<3x4xf32>, tensor<3x4xf32>>) -> tensor<3x4xf32>
        return %3 : tensor<3x4xf32>"""
    text = function(body, before=helper)
    assert [n.op.name for n in import_stablehlo(text).body.nodes] == ["add", "add"]
    assert np.array_equal(run(text, X)[0], 4 * X)


def test_tuples_are_flattened_at_the_border() -> None:
    t = "tuple<tensor<f32>, tuple<tensor<i32>>>"
    text = function(f"return %t : {t}", f"%t: {t}", t)
    assert [v.text() for v in import_stablehlo(text).inputs] == ["f32[]", "i32[]"]
    assert [x.item() for x in run(text, np.float32(2), np.int32(3))] == [2, 3]


def test_one_of_several_functions_can_be_chosen() -> None:
    two = "".join(f"func.func @{n}(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}\n" for n in "fg")
    with pytest.raises(UsageError, match="several functions: f, g"):
        import_stablehlo(two)
    assert import_stablehlo(two, function="g").inputs[0].shape == ()
    with pytest.raises(ParseError, match="no function h"):
        import_stablehlo(two, function="h")


# -- regions, CHLO, custom calls ---------------------------------------------------------------------------------------


def reduce(op: str, init: str) -> str:
    return function(
        f"""%i = stablehlo.constant dense<{init}> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %i) applies stablehlo.{op} across dimensions = [1] :
          (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>""",
        results="tensor<3xf32>",
    )


@pytest.mark.parametrize(
    ("op", "init", "monoid", "nodes"),
    [
        ("add", "0.0", "add", 1),
        ("add", "-0.0", "add", 1),
        ("add", "2.0", "add", 4),
        ("maximum", "0xFF800000", "max", 1),
        ("minimum", "-1.5", "min", 4),
        ("multiply", "1.0", "mul", 1),
    ],
)
def test_reductions_by_a_monoid_say_so(op: str, init: str, monoid: str, nodes: int) -> None:
    program = import_stablehlo(reduce(op, init))
    (node,) = [n for n in program.body.nodes if n.op.name == "reduce"]
    assert getattr(node.attrs, "monoid", "") == monoid and len(program.body.nodes) == nodes
    start = -np.inf if init.startswith("0x") else float(init)
    fold = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply}.get(op)
    if fold is not None:
        assert compare(run(reduce(op, init), X)[0], fold(fold.reduce(X, 1), np.float32(start)), terms=4)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("f8E4M3FN", "f8E5M2", "f32"),
        ("f8E5M2", "f8E4M3FN", "bf16"),
        ("bf16", "f32", "f32"),
        ("ui8", "i8", "i32"),
        ("i4", "i8", "i16"),
        ("i8", "f16", "f32"),
    ],
)
def test_products_of_different_dtypes_are_exact(left: str, right: str, result: str) -> None:
    """Gradients of training in f8 multiply its two kinds."""
    a, b = np.array([[3, 2], [1, 6]], np.float32), np.array([[4, -1], [0, -2]], np.float32)
    t = "tensor<2x2x{}>".format
    x, y = (f"%{n} = stablehlo.convert %{n}0 : ({t('f32')}) -> {t(d)}\n" for n, d in (("x", left), ("y", right)))
    body = f"""{x}{y}%p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
          ({t(left)}, {t(right)}) -> {t(result)}
        %r = stablehlo.convert %p : ({t(result)}) -> {t("f32")}
        return %r : {t("f32")}"""
    (found,) = run(function(body, f"%x0: {t('f32')}, %y0: {t('f32')}", t("f32")), a, b)
    assert np.array_equal(found, a @ b)


def test_a_reduction_by_any_other_region_keeps_it() -> None:
    body = """%i = stablehlo.constant dense<1.0> : tensor<f32>
        %0 = "stablehlo.reduce"(%x, %i) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.multiply %a, %b : tensor<f32>
          %q = stablehlo.multiply %p, %i : tensor<f32>
          stablehlo.return %q : tensor<f32>
        }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>"""
    text = function(body, results="tensor<3xf32>")
    assert [n.op.name for n in import_stablehlo(text).body.nodes] == ["constant", "reduce"]
    assert compare(run(text, X)[0], np.multiply.reduce(X, 1), terms=4)
    outside = text.replace("%p, %i", "%p, %s").replace("%x: tensor<3x4xf32>", "%x: tensor<3x4xf32>, %s: tensor<f32>")
    assert compare(run(outside, X, np.float32(2))[0], 16 * np.multiply.reduce(X, 1), terms=4)


def test_chlo_broadcasts() -> None:
    body = """%0 = chlo.broadcast_add %x, %v {broadcast_dimensions = array<i64: 0>} :
          (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
        %1 = chlo.broadcast_compare %0, %s {comparison_direction = #chlo<comparison_direction GT>} :
          (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xi1>
        return %0, %1 : tensor<3x4xf32>, tensor<3x4xi1>"""
    arguments = "%x: tensor<3x4xf32>, %v: tensor<3xf32>, %s: tensor<f32>"
    text = function(body, arguments, "tensor<3x4xf32>, tensor<3x4xi1>")
    v = np.array([1, 2, 3], np.float32)
    total, above = run(text, X, v, np.float32(1))
    assert np.array_equal(total, X + v[:, None]) and np.array_equal(above, X + v[:, None] > 1)


# -- names and lines ---------------------------------------------------------------------------------------------------


def test_a_text_gives_its_own_names_and_lines() -> None:
    ops = "%h = stablehlo.tanh %x : tensor<3x4xf32>\n%7 = stablehlo.negate %h : tensor<3x4xf32>\n"
    program = import_stablehlo(function(f"{ops}return %7 : tensor<3x4xf32>"), file="net.mlir")
    assert program.body.params[0].name == "x"
    assert [n.result.name for n in program.body.nodes] == ["h", "7"]
    assert [n.loc.text() for n in program.body.nodes if n.loc] == ["net.mlir:4", "net.mlir:5"]


def test_locations_come_first() -> None:
    op = '%0 = stablehlo.tanh %x : tensor<3x4xf32> loc("jit(f)/jvp(layer)/tanh"("model.py":12:3))'
    (node,) = import_stablehlo(function(f"{op}\nreturn %0 : tensor<3x4xf32>")).body.nodes
    assert node.result.name == "jvp_layer.tanh" and node.loc is not None and node.loc.text() == "model.py:12"


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_all_that_is_not_supported_is_told_at_once() -> None:
    body = """%t = stablehlo.create_token : !stablehlo.token
        %0:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<3x4xf32>, !stablehlo.token)
        %1 = stablehlo.add %0#0, %x : tensor<3x4xf32>
        %2 = stablehlo.custom_call @foo(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
        %3 = stablehlo.add %x, %x {my.attr = 1 : i32} : tensor<3x4xf32>
        %4 = "other.op"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
        return %3 : tensor<3x4xf32>"""
    told = refused(function(body, "%x: tensor<3x4xf32>, %d: tensor<?xf32>"))
    assert "for 5 reasons" in told
    for line in (
        "3: the type tensor<?xf32> has a dynamic dimension",
        "5: the op stablehlo.infeed talks to the host",
        "7: the custom call @foo is not known here",
        "8: stablehlo.add has attributes that are not known here: my.attr",
        "9: the op other.op is not known here",
    ):
        assert line in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (b"  \n", "is empty"),
        ("module {}", "holds no function"),
        ("module {\n  foo\n}", "custom op 'foo' is unknown"),
        (b"\xff\xfe\x00", "neither MLIR text nor MLIR bytecode"),
        (b"ML\xefRgarbage", "."),
    ],
)
def test_what_is_no_module_is_a_parse_error(text: str | bytes, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        import_stablehlo(text, file="net.mlir")


def test_a_parse_error_names_the_line() -> None:
    with pytest.raises(ParseError) as error:
        import_stablehlo("module {\n  foo\n}", file="net.mlir")
    assert error.value.loc is not None and error.value.loc.text() == "net.mlir:2"


def test_without_jaxlib_the_extra_is_named() -> None:
    code = "import sys; sys.modules['jaxlib'] = None; import gspmd; gspmd.from_stablehlo('module {}')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install gspmd[interop]" in done.stderr


def test_jax_itself_is_not_needed() -> None:
    text = function("return %x : tensor<3x4xf32>")
    code = f"import sys; sys.modules['jax'] = None; import gspmd; print(gspmd.from_stablehlo({text!r}).input_types)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "(f32[3, 4],)", done.stderr


# -- speed and the surface ---------------------------------------------------------------------------------------------


def test_eight_thousand_ops_take_less_than_a_second() -> None:
    lines = [f"%v{i + 1} = stablehlo.add %v{i}, %v0 : tensor<3x4xf32>" for i in range(8000)]
    text = function("\n".join([*lines, "return %v8000 : tensor<3x4xf32>"]), "%v0: tensor<3x4xf32>")
    start = time.process_time()
    program = import_stablehlo(text)
    assert len(program.body.nodes) == 8000 and time.process_time() - start < 1.0


def test_files_are_loaded_and_imported_by_command(tmp_path: Any) -> None:
    file = tmp_path / "f.mlir"
    op = 'stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[1,2]<=[2]}"}'
    file.write_text(function(f"%y = {op} : (tensor<3x4xf32>) -> tensor<3x4xf32>\nreturn %y : tensor<3x4xf32>"))
    assert np.array_equal(gspmd.load(file).run(X), X)
    out = tmp_path / "f.gspmd"
    command = [sys.executable, "-m", "gspmd.cli", "import", str(file), "--mesh", "model=2", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "4@model" in out.read_text() and np.array_equal(gspmd.load(out).run(X), X)
