"""Whether a rule is wrong or says too little: the laws that every mutant is put to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Program
from gspmd.ir.opdef import OpDef
from gspmd.ir.parser import parse_example
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs
from tests.partitioner import collective_soundness, soundness

# What an op's own code may raise when its rule lies to it.
_CRASHES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeError)

# Ops (and what their examples say) that are linear where the rule does not say so, and why that is left unsaid.
UNCLAIMED = {
    ("shift_left", ""): "integers that are shifted are no partial sums worth keeping",
    ("scatter", "monoid=set"): "linear only while no index occurs twice",
    ("scatter", "monoid=mul"): "linear in its operand only: not worth a special case",
    ("sharding_constraint", ""): "an annotation is about the final value",
    ("optimization_barrier", ""): "a barrier is about final values",
}


def fault(op: OpDef[Any]) -> str | None:
    """How the laws find the op's rule to be wrong: `numbers`, `refused`, `crash`, `unsaid`; None if they do not."""
    if op.name in collective_soundness.RULED:
        return _verdict(lambda: collective_soundness.check(op), "numbers")
    programs = [(text, parse_example(text, {**OPS, op.name: op})) for text in op.examples]
    for law in (_runs, _says_all):
        for text, program in programs:
            found = _verdict(partial(law, program, text), "unsaid" if law is _says_all else "numbers")
            if found is not None:
                return found
    return None


def _verdict(law: Callable[[], None], broken: str) -> str | None:
    try:
        law()
    except AssertionError:
        return broken
    except GspmdError:
        return "refused"
    except _CRASHES:
        return "crash"
    return None


def _runs(program: Program, text: str) -> None:
    """Soundness: whatever the rule allows gives the op's results."""
    soundness.one_factor(program)
    for group in soundness.rule_of(program).linear:
        soundness.linear_in_sums(program, group)
    soundness.two_factors(program)


def _says_all(program: Program, text: str) -> None:
    """Completeness: dimensions have the sizes that their factors say, and sums that may pass are said to."""
    node, rule = program.body.nodes[-1], soundness.rule_of(program)
    shapes = [v.type.shape for v in (*node.operands, *node.results)]
    assert [tuple(rule.dim_size(d) for d in t) for t in rule.tensors] == shapes
    if any(node.op.name == name and words in text for name, words in UNCLAIMED):
        return
    said = {tuple(sorted(group)) for group in rule.linear}
    for group in _additive_groups(program):
        assert group in said, f"linear in {group}"


def _additive_groups(program: Program) -> Iterator[tuple[int, ...]]:
    """The least groups of numeric operands in which the op turns out additive on random numbers."""
    node = program.body.nodes[-1]
    if not all(_is_wide(v.type) and v.type.size > 1 for v in node.results):
        return
    if any(v.type.dtype.kind == "b" and v.type.rank == 0 for v in node.operands):
        return  # one truth decides everything: it would seem linear in what it chooses
    kind = node.results[0].type.dtype.kind
    kinds = "fc" if kind == "c" else kind  # a float made of integers may be rounded, its terms not
    numeric = [i for i, v in enumerate(node.operands) if _is_wide(v.type) and v.type.dtype.kind in kinds]
    found: list[tuple[int, ...]] = []
    for k in range(1, len(numeric) + 1):
        for group in combinations(numeric, k):
            if not any(set(smaller) <= set(group) for smaller in found) and _additive(program, group):
                found.append(group)
                yield group


def _is_wide(type_: TensorType) -> bool:
    """Whether sums in a type are exact, or so nearly that what is not additive shows."""
    return type_.dtype.kind in "iufc" and type_.dtype.itemsize >= 2


def _additive(program: Program, group: tuple[int, ...]) -> bool:
    """Whether f(a + b) = f(a) + f(b) in some operands, the others fixed."""
    first, second = example_inputs(program, 1), example_inputs(program, 2)
    second = [b if i in group else a for i, (a, b) in enumerate(zip(first, second, strict=True))]
    both = [(a + b).astype(a.dtype) if i in group else a for i, (a, b) in enumerate(zip(first, second, strict=True))]
    with np.errstate(all="ignore"):
        whole, one, two = (evaluate(program, *xs) for xs in (both, first, second))
        for w, a, b in zip(whole, one, two, strict=True):
            size = np.abs(a.astype(np.complex128)) + np.abs(b.astype(np.complex128)) + 1
            if not np.isfinite(w.astype(np.complex128)).all() or not compare(w, (a + b).astype(w.dtype), size, 64):
                return False
    return True
