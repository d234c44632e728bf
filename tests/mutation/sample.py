"""Which mutants there are, and the one of each op that the test command tries."""

from __future__ import annotations

from functools import cache
from zlib import crc32

from gspmd.ir.parser import parse_example
from gspmd.ops import OPS
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants
from tests.partitioner import collective_soundness
from tests.partitioner.soundness import rule_of

RULED = (*(op.name for op in OPS.values() if op.rule is not None and op.examples), *collective_soundness.RULED)


@cache
def mutant_names(op: str) -> tuple[str, ...]:
    """The names of an op's mutants, over all of its examples."""
    found: dict[str, None] = {}
    if op in collective_soundness.RULED:
        rules = collective_soundness.rules(OPS[op])
    else:
        rules = [rule_of(parse_example(text, OPS)) for text in OPS[op].examples]
    for rule in rules:
        found.update((name, None) for name, _ in mutants(OPS[op], rule))
    return tuple(found)


def one_of(op: str) -> str:
    """One mutant of an op, always the same."""
    names = [name for name in mutant_names(op) if (op, name) not in EQUIVALENT]
    return min(names, key=lambda name: crc32(f"{op}: {name}".encode()))
