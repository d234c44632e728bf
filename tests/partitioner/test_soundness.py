"""The law over every op: split any factor over any mesh, run device by device, and get what the op computes.

Sizes are even, ragged and smaller than the mesh; padding holds NaN or an extreme value.
"""

from __future__ import annotations

from functools import cache

import pytest

from gspmd.ir.graph import Program
from gspmd.ir.opdef import Trait
from gspmd.ir.parser import parse_example
from gspmd.ops import OPS
from tests.partitioner import soundness

EXAMPLES = [text for op in OPS.values() if op.rule is not None for text in op.examples]


@cache
def example(text: str) -> Program:
    """An example as a program of one node."""
    return parse_example(text, OPS)


@pytest.mark.parametrize("text", EXAMPLES)
def test_one_factor(text: str) -> None:
    soundness.one_factor(example(text))


@pytest.mark.parametrize("text", EXAMPLES)
def test_two_factors(text: str) -> None:
    soundness.two_factors(example(text))


LINEAR = [(text, group) for text in EXAMPLES for group in soundness.rule_of(example(text)).linear]


@pytest.mark.parametrize(("text", "group"), LINEAR)
def test_linear_in_sums(text: str, group: tuple[int, ...]) -> None:
    soundness.linear_in_sums(example(text), group)


def test_every_op_with_a_rule_has_examples() -> None:
    """An op without examples would escape these laws.

    Annotations need a mesh and are tested with programs, collectives in per-device code (`collective_soundness`).
    """
    missing = {op.name for op in OPS.values() if op.rule is not None and not op.examples}
    elsewhere = {op.name for op in OPS.values() if op.has(Trait.IDENTITY) or op.has(Trait.COLLECTIVE)}
    assert missing <= elsewhere | {"axis_index"}
