"""Every op in every dtype that its type rule takes: its examples with other dtypes in place of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Program
from gspmd.ops import OPS
from tests.ops.cases import LOCAL_EXAMPLES, name_of, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs

# What is replaced: all dtypes of a kind alike, so that operands stay of one dtype.
KINDS = {
    ("float",): r"\b(f16|bf16|f32|f64)\b",
    ("bool", "int", "uint"): r"\b(i8|i16|i32|i64|u8|u16|u32|u64)\b",
}
# Ops whose functions are the user's own.
FOREIGN = frozenset(("custom",))
NAMES = tuple(dict.fromkeys(n for n in map(name_of, LOCAL_EXAMPLES) if n not in FOREIGN))


def retyped(name: str) -> Iterator[tuple[str, Program]]:
    """The examples of an op in other dtypes, where these are allowed."""
    found: set[str] = set()
    for example in (e for e in LOCAL_EXAMPLES if name_of(e) == name):
        for kinds, pattern in KINDS.items():
            found |= {re.sub(pattern, d, example) for d, dtype in DTYPES.items() if dtype_kind(dtype) in kinds}
    for text in sorted(found):
        try:
            yield text, parse(text)
        except GspmdError:
            continue  # a rule of the op, which the tests of type errors hold


@pytest.mark.parametrize("name", NAMES)
def test_kernels_take_what_type_rules_take(name: str) -> None:
    for text, program in retyped(name):
        results = evaluate(program, *example_inputs(program))
        for result, wanted in zip(results, program.body.results, strict=True):
            assert (result.dtype, result.shape) == (wanted.type.dtype, wanted.type.shape), text


def test_most_ops_take_several_dtypes() -> None:
    """The law above is about something."""
    assert len(NAMES) > 100 and sum(sum(1 for _ in retyped(n)) > 3 for n in NAMES) > 80
    assert set(NAMES) | FOREIGN <= set(OPS)
