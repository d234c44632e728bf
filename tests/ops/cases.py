"""Every example of every op, parsed."""

from __future__ import annotations

import re

from gspmd.ir.graph import Program
from gspmd.ir.opdef import Trait
from gspmd.ir.parser import parse_example
from gspmd.ops import OPS

# Collectives have a rule in per-device code only: tests/partitioner/collective_soundness.py.
EXAMPLES: tuple[str, ...] = tuple(e for op in OPS.values() if not op.has(Trait.COLLECTIVE) for e in op.examples)
SHARDED = frozenset(("sharding_constraint", "reshard", "all_slice", "axis_index"))


def name_of(example: str) -> str:
    """The op's name in an example."""
    return re.sub(r"^mesh [^\]]*\]\s*", "", example).partition("(")[0]


LOCAL_EXAMPLES = tuple(e for e in EXAMPLES if name_of(e) not in SHARDED)


def parse(example: str) -> Program:
    """The example as a program."""
    return parse_example(example, OPS)


def in_double(example: str) -> str:
    """The example with its floats in f64 and its complex numbers in c128."""
    return re.sub(r"\bc64\b", "c128", re.sub(r"\b(f32|f16|bf16)\b", "f64", example))
