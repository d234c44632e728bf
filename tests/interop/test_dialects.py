"""Import takes every op of StableHLO, CHLO and Shardy but for a written list, which is told with its lines."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

import gspmd
from gspmd.interop.import_program import accepted
from gspmd.interop.import_refusal import EXCLUDED
from gspmd.ir.errors import GspmdError
from gspmd.kernels.closeness import compare
from tests.interop.dialects import pointwise, regions, shapes, structure
from tests.interop.dialects.case import Case, folding, function

# What is no op on values: the ends of blocks, and the declaration of a mesh. Every module has the former.
STRUCTURE = {"stablehlo.return", "sdy.return", "sdy.mesh"}
CASES: list[Case] = [*pointwise.CASES, *shapes.CASES, *regions.CASES, *structure.CASES]


def bound() -> set[str]:
    """The ops for which jaxlib has classes."""
    dialects: list[Any] = [stablehlo, chlo, sdy]
    classes: list[Any] = [c for d in dialects for _, c in inspect.getmembers(d, inspect.isclass)]
    return {c.OPERATION_NAME for c in classes if hasattr(c, "OPERATION_NAME")}


def test_every_op_is_taken_or_on_the_list_of_those_that_are_not() -> None:
    assert len(bound()) > 180
    assert accepted() & bound() == bound() - STRUCTURE - set(EXCLUDED)
    assert accepted() - bound() == {"func.call"}
    assert set(EXCLUDED) < bound()


def test_every_op_that_is_taken_has_a_module_that_runs() -> None:
    assert accepted() - {c.op for c in CASES} == set()
    assert [c.op for c in CASES if not re.search(rf"\b{c.op}\b", c.text)] == []


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_the_module_computes_what_the_op_means(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gspmd.from_stablehlo(case.text).run(*case.arguments)
    results = found if isinstance(found, tuple) else (found,)
    for mine, wanted in zip(results, case.wanted(), strict=True):
        assert compare(np.asarray(mine), wanted, terms=case.terms).message == ""


# -- what is refused ---------------------------------------------------------------------------------------------------

TOKEN, ANY = "!stablehlo.token", "tensor<?x?xf32>"
Q = "tensor<4x!quant.uniform<i8:f32, 0.1:1>>"
SHAPE = "%d: tensor<2xi64>"
REFUSED = {
    "infeed": f'%0:2 = "stablehlo.infeed"(%t) {{infeed_config = ""}} : ({TOKEN}) -> (tensor<4xf32>, {TOKEN})',
    "outfeed": f'%0 = "stablehlo.outfeed"(%x, %t) {{outfeed_config = ""}} : (tensor<4xf32>, {TOKEN}) -> {TOKEN}',
    "send": '%0 = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, '
    f"is_host_transfer = true}} : (tensor<4xf32>, {TOKEN}) -> {TOKEN}",
    "recv": '%0:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, '
    f"is_host_transfer = true}} : ({TOKEN}) -> (tensor<4xf32>, {TOKEN})",
    "async_start": '%0 = "stablehlo.async_start"(%x) ({ ^bb0(%a: tensor<4xf32>):\n'
    '%g = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>} : '
    "(tensor<4xf32>) -> tensor<4xf32>\nstablehlo.return %g : tensor<4xf32>\n"
    "}) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>",
    "dynamic_broadcast_in_dim": '%0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %d) '
    f"{{broadcast_dimensions = array<i64: 1>}} : (tensor<4xf32>, tensor<2xi64>) -> {ANY}",
    "dynamic_iota": f'%0 = "stablehlo.dynamic_iota"(%d) {{iota_dimension = 0 : i64}} : (tensor<2xi64>) -> {ANY}',
    "dynamic_reshape": f'%0 = "stablehlo.dynamic_reshape"(%x, %d) : (tensor<4xf32>, tensor<2xi64>) -> {ANY}',
    "dynamic_pad": '%0 = "stablehlo.dynamic_pad"(%y, %s, %d, %d, %d) : '
    f"(tensor<3x4xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> {ANY}",
    "real_dynamic_slice": '%0 = "stablehlo.real_dynamic_slice"(%y, %d, %d, %d) : '
    f"(tensor<3x4xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> {ANY}",
    "dynamic_gather": '%0 = "stablehlo.dynamic_gather"(%y, %i, %d) {dimension_numbers = '
    "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : "
    "(tensor<3x4xf32>, tensor<2x1xi64>, tensor<2xi64>) -> tensor<2x?xf32>",
    "dynamic_conv": '%0 = "stablehlo.dynamic_conv"(%c, %c, %p) {dimension_numbers = '
    "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : "
    "(tensor<2x2x4xf32>, tensor<2x2x4xf32>, tensor<1x2xi64>) -> tensor<2x2x?xf32>",
    "set_dimension_size": '%0 = "stablehlo.set_dimension_size"(%x, %n) {dimension = 0 : i64} : '
    "(tensor<4xf32>, tensor<i32>) -> tensor<4xf32>",
    "uniform_quantize": f'%0 = "stablehlo.uniform_quantize"(%x) : (tensor<4xf32>) -> {Q}',
    "uniform_dequantize": '%q = "stablehlo.uniform_quantize"(%x) : '
    f'(tensor<4xf32>) -> {Q}\n%0 = "stablehlo.uniform_dequantize"(%q) : ({Q}) -> tensor<4xf32>',
}
# They are refused only if their shapes are asked for: what nobody uses has none.
DYNAMIC = [n for n in REFUSED if "dynamic" in n or n == "set_dimension_size"]
ARGUMENTS = (
    "%x: tensor<4xf32>, %y: tensor<3x4xf32>, %s: tensor<f32>, %d: tensor<2xi64>, %i: tensor<2x1xi64>, "
    f"%n: tensor<i32>, %c: tensor<2x2x4xf32>, %p: tensor<1x2xi64>, %t: {TOKEN}"
)


def told(text: str, file: str = "") -> str:
    with pytest.raises(GspmdError) as error:
        gspmd.from_stablehlo(text) if not file else gspmd.from_stablehlo(text, file=file)
    return str(error.value)


@pytest.mark.parametrize("name", [n.partition(".")[2] for n in EXCLUDED])
def test_what_is_refused_is_named_with_its_reason_and_line(name: str) -> None:
    line = REFUSED.get(name)
    if line is None:  # async_done: its operand comes from async_start
        line = REFUSED["async_start"] + (
            '\n%1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>'
        )
    used, result = ("%0", line.rpartition("-> ")[2]) if name in DYNAMIC else ("%x", "tensor<4xf32>")
    text = function(f"{line}\nreturn {used} : {result}", ARGUMENTS, result)
    found = told(text)
    first = "uniform_quantize" if name == "uniform_dequantize" else name
    number = next(i for i, t in enumerate(text.splitlines(), 1) if f'"stablehlo.{first}"' in t)
    assert f"the op stablehlo.{first} {EXCLUDED[f'stablehlo.{name}']}" in found
    assert re.search(rf"\b{number}\b", found), found


def test_all_of_it_is_told_at_once() -> None:
    """But for quantized types, which jaxlib cannot read; what depends on something refused is not told once more."""
    read = {n: line for n, line in REFUSED.items() if "quantize" not in n}
    lines = [re.sub(r"%0\b", f"%of_{n}", line) for n, line in read.items()]
    lines.append("%more = stablehlo.add %of_set_dimension_size, %x : tensor<4xf32>")
    found = told(function("\n".join(lines) + "\nreturn %more : tensor<4xf32>", ARGUMENTS, "tensor<4xf32>"))
    assert f"for {len(read)} reasons" in found
    for name in read:
        assert f"the op stablehlo.{name} " in found


def test_regions_say_what_they_cannot_read() -> None:
    """select_and_scatter has no room for another operand; no region of scalars has one for an array."""
    body = f"""%r = "stablehlo.select_and_scatter"(%x, %y, %c) ({{ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %o = stablehlo.add %p, %c : tensor<f32>
      %s = stablehlo.compare GE, %o, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }}, {folding("stablehlo.add")[1:-1]}) {{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}} :
      (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
    return %r : tensor<4xf32>"""
    text = function(body, "%x: tensor<4xf32>, %y: tensor<2xf32>, %c: tensor<f32>", "tensor<4xf32>")
    assert "uses a value from outside it that is no constant" in told(text)
    body = """%z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.reduce"(%x, %z) ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.slice %x [0:1] : (tensor<4xf32>) -> tensor<1xf32>
      %o = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
      %t = stablehlo.multiply %p, %o : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>"""
    found = told(function(body, "%x: tensor<4xf32>", "tensor<f32>"))
    assert "a region on scalars uses a value from outside it, f32[4]" in found
