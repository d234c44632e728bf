"""What a module is made of: functions, nested modules, locations, constants; and files that hold no program."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo

import gspmd
from gspmd.interop.import_mlir import read_module
from gspmd.ir.dtypes import DTYPES, is_float
from gspmd.ir.errors import GspmdError, ParseError, UsageError

T = "tensor<4xf32>"
X = np.arange(4, dtype=np.float32)
ADD = f"func.func @main(%x: {T}) -> {T} {{\n  %0 = stablehlo.add %x, %x : {T}\n  return %0 : {T}\n}}\n"


def unary(name: str, body: str, visibility: str = "") -> str:
    return f"func.func {visibility} @{name}(%x: {T}) -> {T} {{\n{body}\n}}\n"


def call(name: str) -> str:
    return f"%r = func.call @{name}(%x) : ({T}) -> {T}\nreturn %r : {T}"


def names(text: str, **more: Any) -> list[str]:
    return [n.result.name for n in gspmd.from_stablehlo(text, **more).program.body.nodes]


# -- functions and modules ---------------------------------------------------------------------------------------------


def test_functions_of_nested_modules_have_names_of_their_own() -> None:
    """A call means the function of its own module, whatever others have the same name."""
    negate = unary("f", f"%r = stablehlo.negate %x : {T}\nreturn %r : {T}", "private")
    double = unary("f", f"%r = stablehlo.add %x, %x : {T}\nreturn %r : {T}", "private")
    inner = f"module @inner {{\n{negate}{unary('main', call('f'))}}}\n"
    text = f"module {{\n{inner}{double}{unary('main', call('f'))}}}"
    assert np.array_equal(gspmd.from_stablehlo(text).run(X), 2 * X)
    assert np.array_equal(gspmd.from_stablehlo(text, function="inner::main").run(X), -X)
    only = gspmd.from_stablehlo(f"module {{\nmodule {{\n{inner}}}\n}}")
    assert only.program.name == "main" and np.array_equal(only.run(X), -X)


def test_functions_that_call_themselves_are_refused() -> None:
    around = unary("f", call("g"), "private") + unary("g", call("f"), "private")
    with pytest.raises(UsageError, match="the function f calls itself"):
        gspmd.from_stablehlo(around + unary("main", call("f")))


def test_a_function_may_be_called_again_and_say_how_its_values_lie() -> None:
    mesh = 'sdy.mesh @m = <["x"=2]>\n'
    rows = '{sdy.sharding = #sdy.sharding<@m, [{"x"}]>}'
    negate = f"%r = stablehlo.negate %x : {T}\nreturn %r : {T}\n"
    f = f"func.func private @f(%x: {T} {rows}) -> ({T} {rows}) {{\n{negate}}}\n"
    body = f"%a = func.call @f(%x) : ({T}) -> {T}\n%b = func.call @f(%a) : ({T}) -> {T}\nreturn %b : {T}"
    module = gspmd.from_stablehlo(f"module {{\n{mesh}{f}{unary('main', body)}}}")
    assert np.array_equal(module.run(X), X)
    nodes = [n.op.name for n in module.program.body.nodes]
    assert nodes == ["sharding_constraint", "negate", "sharding_constraint", "negate", "sharding_constraint"]


def test_what_stands_beside_functions_is_told() -> None:
    with pytest.raises(UsageError, match=r"ml_program.global outside of functions"):
        gspmd.from_stablehlo(f'"ml_program.global"() : () -> ()\n{ADD}')
    with pytest.raises(UsageError, match="the function has no body"):
        gspmd.from_stablehlo(f"func.func private @main({T}) -> {T}")


# -- names and lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "name", "line"),
    [
        ('loc("jit(f)/layer/add"("m.py":7:1))', "layer.add", "m.py:7"),
        ('loc("m.py":7:1)', "", "m.py:7"),
        ('loc("layer/add")', "layer.add", None),
        ('loc(callsite("a/b"("m.py":7:1) at "n.py":9:1))', "a.b", "m.py:7"),
        ('loc(fused["a/b"("m.py":7:1), "n.py":9:1])', "a.b", "m.py:7"),
        ('loc(fused<"meta">["m.py":7:1, "n.py":9:1])', "", "m.py:7"),
    ],
)
def test_locations_give_names_and_lines(location: str, name: str, line: str | None) -> None:
    text = f"func.func @main(%x: {T}) -> {T} {{\n  %0 = stablehlo.add %x, %x : {T} {location}\n  return %0 : {T}\n}}"
    (node,) = gspmd.from_stablehlo(text, file="net.mlir").program.body.nodes
    assert node.result.name == name
    assert (node.loc.text() if node.loc else None) == line


# -- constants ---------------------------------------------------------------------------------------------------------

BITS = "".join(f"{b:02X}" for b in np.array([1.5, -2, 0.25, np.inf], np.float32).tobytes())
CONSTANTS: list[tuple[str, str, Any]] = [
    ("4xf32", f'"0x{BITS}"', np.array([1.5, -2, 0.25, np.inf], np.float32)),
    ("4xi1", "[true, false, true, true]", np.array([True, False, True, True])),
    ("100xi1", "true", np.ones(100, np.bool_)),
    ("16xi1", '"0x' + "0100010000000001" * 2 + '"', np.array([1, 0, 1, 0, 0, 0, 0, 1] * 2, np.bool_)),
    ("3xi4", "[-8, 7, 0]", np.array([-8, 7, 0], ml_dtypes.int4)),
    ("70xi4", "-3", np.full(70, -3, ml_dtypes.int4)),
    ("3xf8E4M3FN", "[1.0, -0.5, 4.48e+02]", np.array([1, -0.5, 448], ml_dtypes.float8_e4m3fn)),
    ("2xcomplex<f32>", "(1.0, -2.0)", np.array([1 - 2j, 1 - 2j], np.complex64)),
    ("complex<f64>", "(0.1, 0.0)", np.complex128(0.1)),
    ("99xcomplex<f32>", "(1.0, 2.0)", np.full(99, 1 + 2j, np.complex64)),
    ("ui64", "18446744073709551615", np.uint64(2**64 - 1)),
    ("f16", "0x7C00", np.float16(np.inf)),
    ("300x300xbf16", "0.1", np.full((300, 300), 0.1, ml_dtypes.bfloat16)),
]


@pytest.mark.parametrize(("type_", "value", "wanted"), CONSTANTS, ids=[c[0] for c in CONSTANTS])
def test_constants_are_read_to_the_bit(type_: str, value: str, wanted: Any) -> None:
    t = f"tensor<{type_}>"
    module = gspmd.from_stablehlo(
        f"func.func @main() -> {t} {{\n%0 = stablehlo.constant dense<{value}> : {t}\nreturn %0 : {t}\n}}"
    )
    found, wanted = np.asarray(module.run()), np.asarray(wanted)
    assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    assert len(module.text()) < 5000


def test_a_resource_that_is_not_there_is_told() -> None:
    text = f"func.func @main() -> {T} {{\n%0 = stablehlo.constant dense_resource<gone> : {T}\nreturn %0 : {T}\n}}"
    with pytest.raises(UsageError, match="the resource gone that a constant names is not in the file"):
        gspmd.from_stablehlo(text)


# -- files that hold no program ----------------------------------------------------------------------------------------


def bytecode() -> bytes:
    out = io.BytesIO()
    read_module(ADD).module.operation.write_bytecode(out)
    return out.getvalue()


def artifact() -> bytes:
    version = stablehlo.get_current_version()
    return stablehlo.serialize_portable_artifact_str(str(read_module(ADD).module), version)


def newer() -> bytes:
    """What a version to come might write: an op that this one has not heard of."""
    version = stablehlo.get_current_version().encode()
    return artifact().replace(version, b"9" + version[1:]).replace(b"add_v1", b"add_v9")


NARROW = """func.func @main(%x: tensor<4x$t> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4x$t>, tensor<4xf32>) {
  %c = stablehlo.constant $c : tensor<4x$t>
  %m = stablehlo.maximum %x, %c : tensor<4x$t>
  %y = stablehlo.convert %m : (tensor<4x$t>) -> tensor<4xf32>
  return %m, %y : tensor<4x$t>, tensor<4xf32>
}"""


@pytest.mark.parametrize("name", [n for n, t in DTYPES.items() if is_float(t) and t.itemsize == 1])
@pytest.mark.parametrize("constant", [[1.0, 2.0, 4.0, 0.5], [1.0] * 4])
def test_floats_of_a_byte_or_less_come_and_go(name: str, constant: list[float]) -> None:
    """Values, on one device and split; and the exported text means the same."""
    text = NARROW.replace("$t", f"f{name[1:].upper()}").replace("$c", f"dense<{constant}>")
    module = gspmd.from_stablehlo(text)
    x = np.array([0.5, 1, 2, 4], DTYPES[name])
    wanted = np.maximum(x.astype(np.float32), np.array(constant, np.float32))
    again = gspmd.from_stablehlo(module.to_stablehlo())
    for same, wide in (module.run(x), gspmd.compile(module).simulate(x), again.run(x)):
        assert np.asarray(same).dtype == DTYPES[name] and np.array_equal(np.asarray(same).astype(np.float32), wanted)
        assert np.array_equal(wide, wanted)


BROKEN: dict[str, tuple[Any, str]] = {
    "empty": (b"", "is empty: it holds no program"),
    "blank": ("  \n\t", "is empty: it holds no program"),
    "prose": ("Dear reader,", r"custom op 'Dear' is unknown[\s\S]*give StableHLO"),
    "cut text": (ADD[:-4], "expected|custom op"),
    "binary": (b"\xff\xfe\x00\x01", "neither MLIR text nor MLIR bytecode"),
    "no function": ("module {}", "holds no function"),
    "no main": (ADD.replace("@main", "@f") + ADD.replace("@main", "@g"), "several functions: f, g"),
    "dynamic": (ADD.replace("4x", "?x"), r"the type tensor<\?xf32> has a dynamic dimension"),
    "unranked": ("func.func @main(%x: tensor<*xf32>) {\n  return\n}", r"has a dynamic dimension"),
    "no tensor": ("func.func @main(%x: f32) -> f32 {\n  return %x : f32\n}", "the type f32 is no tensor"),
    "element": (
        "func.func @main(%x: tensor<4xi3>) -> tensor<4xi3> {\n  return %x : tensor<4xi3>\n}",
        "the element type i3 of tensor<4xi3> is unknown",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_without_a_program_is_told_by_the_command_in_one_message(name: str, tmp_path: Path) -> None:
    held, message = BROKEN[name]
    with pytest.raises(GspmdError, match=message):
        gspmd.from_stablehlo(held, file="net.mlir")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("make", [bytecode, artifact])
def test_bytecode_that_is_cut_off_is_told_as_such(make: Any, share: float, capfd: Any) -> None:
    whole = make()
    with pytest.raises(ParseError, match=r"the program is no (whole MLIR bytecode|portable artifact)"):
        gspmd.from_stablehlo(whole[: int(len(whole) * share)])
    assert "error" not in capfd.readouterr().err


def test_an_artifact_of_a_newer_version_names_both_versions() -> None:
    with pytest.raises(ParseError) as error:
        gspmd.from_stablehlo(newer(), file="net.mlirbc")
    assert "net.mlirbc is no portable artifact that this jaxlib reads" in str(error.value)
    assert f"written by StableHLO 9.{'.'.join(stablehlo.get_current_version().split('.')[1:])}" in str(error.value)


@pytest.mark.parametrize(
    ("suffix", "held"), [(".mlir", ADD[:-4].encode()), (".mlirbc", bytecode()[:40]), (".mlir.bc", bytecode()[:40])]
)
def test_the_command_says_it_in_one_line_and_exits_with_2(suffix: str, held: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"net{suffix}"
    file.write_bytes(held)
    command = [sys.executable, "-m", "gspmd.cli", "import", str(file), "-o", str(tmp_path / "out.gspmd")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert file.name in done.stderr and len(done.stderr.strip().splitlines()) <= 3
