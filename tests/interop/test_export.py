"""What we write for XLA means to XLA what it means to us: every example of every op, run by both."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.interop.export_stablehlo import export_stablehlo, exports
from gspmd.interop.stablehlo_text import constant_text, type_text
from gspmd.ir.errors import UsageError
from gspmd.ir.parser import parse_program
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from tests.ops.cases import EXAMPLES, name_of, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs
from tests.xla.one_device import run_text

# In f64 XLA computes these to a few units in the last place more than we allow.
CRUDE = ("erf_inv(f64", "atanh(f64")
KNOWN = tuple(e for e in EXAMPLES if exports(name_of(e)) and not e.startswith(CRUDE))


@pytest.mark.parametrize("example", KNOWN)
def test_xla_computes_what_our_kernels_compute(example: str) -> None:
    program = parse(example)
    arrays = example_inputs(program)
    ours, theirs = evaluate(program, *arrays), run_text(export_stablehlo(program), arrays)
    for mine, other in zip(ours, theirs, strict=True):
        assert compare(mine, other).message == ""


def test_annotations_are_what_jax_writes() -> None:
    source = """
        mesh @mesh = [data=2, model=4]
        func @f(%x: f32[8@data, 12], %w: f32[12, 16@model]) -> (f32[8, 16]) stage=annotated {
          %0 = dot_general(%x, %w) lhs_contract=[1] rhs_contract=[0] : f32[8, 16]
          %1 = sharding_constraint(%0) sharding=[_?, model] : f32[8@?, 16@model]
          %2 = negate(%1) : f32[8, 16]
          return %2
        }"""
    text = export_stablehlo(parse_program(source, OPS))
    assert 'tensor<8x12xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}' in text
    assert 'call_target_name = "Sharding", mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0)' in text
    assert 'backend_config = "unspecified_dims=[0]"' in text
    assert "-> (tensor<8x16xf32>)" in text


def test_an_op_without_a_form_there_is_refused() -> None:
    example = next(e for e in EXAMPLES if name_of(e) == "reshard" or not exports(name_of(e)))
    with pytest.raises(UsageError, match="cannot be written as StableHLO"):
        export_stablehlo(parse(example))


def test_a_program_with_collectives_is_refused() -> None:
    text = """
        mesh @mesh = [x=2]
        func @f(%x: f32[8@x]) -> (f32[8]@_) stage=explicit {
          %0 = reshard(%x) sharding=[_] : f32[8]@_
          return %0
        }"""
    program = parse_program(text, OPS)
    lowered = parse_program(
        text.replace("explicit", "collectives").replace("reshard(%x) sharding=[_]", "all_gather(%x) dim=0 axes=[x]"),
        OPS,
    )
    for refused in (program, lowered):
        with pytest.raises(UsageError, match="annotated or propagated"):
            export_stablehlo(refused)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, np.inf, -0.0, np.nan, 1e-38], np.float32),
        np.linspace(-1, 1, 23),
        np.full((3, 40), 7, np.int16),
        np.array([True, False] * 9),
        np.array([1 + 2j, complex(np.inf, -1)], np.complex64),
        np.zeros((0, 3), np.float32),
    ],
)
def test_constants_keep_every_bit(array: np.ndarray) -> None:
    shape = type_text(TensorType(array.dtype, array.shape))
    body = f"%0 = stablehlo.constant {constant_text(array)}\n  return %0 : {shape}"
    (found,) = run_text(f"module {{ func.func public @main() -> {shape} {{\n  {body}\n}} }}\n", [])
    assert found.dtype == array.dtype and found.tobytes() == array.tobytes()
