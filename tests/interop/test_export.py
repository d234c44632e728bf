"""What we write for XLA means to XLA what it means to us: every example of every op, run by both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gspmd
from gspmd.interop.export_stablehlo import export_stablehlo, exports
from gspmd.interop.import_stablehlo import import_stablehlo
from gspmd.interop.stablehlo_text import constant_text, type_text
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.parser import parse_program
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from tests.interop.partitioned_programs import CRUDE
from tests.ops.cases import EXAMPLES, name_of, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs
from tests.structure import same_structure
from tests.xla.one_device import run_text

# Ours alone: StableHLO and CHLO have no such op, and LAPACK's are known by name.
ELSEWHERE = frozenset(("manual_computation", "custom"))
KNOWN = tuple(e for e in EXAMPLES if exports(name_of(e)))
# The rest of them, on several devices: python -m tests.interop.partitioned
TOLD = tuple(e for e in KNOWN if not e.startswith(CRUDE))


def arguments_of(program: Program) -> list[np.ndarray]:
    """Arguments of an example; blocks of random bits lie within the array, as devices have them."""
    arrays = example_inputs(program)
    if program.body.nodes[-1].op.name == "random_block":
        return [arrays[0], *(np.zeros_like(x) for x in arrays[1:])]
    return arrays


def test_every_op_can_be_written() -> None:
    missing = {name_of(e) for e in EXAMPLES if not exports(name_of(e))}
    assert missing <= ELSEWHERE
    assert len(KNOWN) > 400


@pytest.mark.parametrize("example", TOLD)
def test_xla_computes_what_our_kernels_compute(example: str) -> None:
    program = parse(example)
    arrays = arguments_of(program)
    ours, theirs = evaluate(program, *arrays), run_text(export_stablehlo(program), arrays)
    for mine, other in zip(ours, theirs, strict=True):
        assert compare(mine, other).message == ""


# What comes back in another form: other ops that give the same bits.
OTHER_FORMS = frozenset(
    (
        *("square", "conj", "reduce", "select_and_scatter", "case", "call", "rng_bit_generator", "svd", "eigh", "eig"),
        *("schur", "gehrd", "sytrd", "geqp3", "tridiagonal_solve"),
        *("batch_norm_training", "batch_norm_inference", "batch_norm_grad", "while", "sharding_constraint", "scatter"),
    )
)


@pytest.mark.parametrize("example", KNOWN)
def test_what_is_exported_is_imported_as_the_same_op_or_the_same_bits(example: str) -> None:
    program = parse(example)
    back = import_stablehlo(export_stablehlo(program))
    if name_of(example) not in OTHER_FORMS:
        assert same_structure(replace(back, name=program.name), program)
        return
    arrays = example_inputs(program)
    for mine, other in zip(evaluate(program, *arrays), evaluate(back, *arrays), strict=True):
        assert mine.dtype == other.dtype and mine.tobytes() == other.tobytes()


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


STAGES = """
mesh @mesh = [x=2]
func @f(%x: f32[8@x]) -> (f32[8]@_) stage=explicit {
  %0 = reshard(%x) sharding=[_] : f32[8]@_
  return %0
}"""


def test_a_program_that_is_half_partitioned_is_refused() -> None:
    lowered = STAGES.replace("explicit", "collectives").replace(
        "reshard(%x) sharding=[_]", "all_gather(%x) dim=0 axes=[x]"
    )
    for text in (STAGES, lowered):
        with pytest.raises(UsageError, match="annotated or propagated, or from stage local on"):
            export_stablehlo(parse_program(text, OPS))


def test_all_that_cannot_be_written_is_told_at_once_with_its_line() -> None:
    text = """
        mesh @mesh = [x=2]
        func @f(%x: f32[8]) -> (i32[], f32[8]) stage=annotated {
          %0 = axis_index() axes=[x] : i32[]     // model.py:3
          %1 = sine(%x) : f32[8]                 // model.py:4
          %2 = axis_index() axes=[x] : i32[]     // model.py:5
          return %2, %1
        }"""
    with pytest.raises(UsageError) as error:
        export_stablehlo(parse_program(text, OPS))
    message = str(error.value)
    assert "for 2 reasons" in message and "model.py:3: " in message and "model.py:5: " in message
    assert "axis_index" in message and "fix: " in message


def test_what_stands_for_an_op_is_one_function() -> None:
    text = """
        func @f(%a: f32[4, 3, 3], %b: f32[4, 3, 3]) -> (f32[4, 3, 3], i32[4, 3]) stage=annotated {
          %a0, %a1, %a2 = lu(%a) : (f32[4, 3, 3], i32[4, 3], i32[4, 3])
          %b0, %b1, %b2 = lu(%b) : (f32[4, 3, 3], i32[4, 3], i32[4, 3])
          return %a0, %b1
        }"""
    program = parse_program(text, OPS)
    written = export_stablehlo(program)
    assert written.count("stablehlo.composite") == 2
    assert written.count("func.func private") == 1
    assert same_structure(import_stablehlo(written), program)


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


def test_a_name_may_have_letters_that_mlir_does_not_know() -> None:
    def größe(x: Any) -> Any:
        return x + 1

    x = np.ones(2, np.float32)
    assert gspmd.from_stablehlo(gspmd.trace(größe, x).to_stablehlo()).run(x).tolist() == [2, 2]
