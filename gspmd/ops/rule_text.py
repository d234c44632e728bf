"""Factor rules as users write them: `bmk,kn->bmn | k: reduce add`.

    rule     := operands "->" results ["|" factor ":" kind ("," factor ":" kind)*]
    operands := tensor ("," tensor)*     results likewise; tensor: a letter for each dimension, or (ab) for a dimension
                                         that is a product of factors, major to minor; nothing for a scalar
    kind     := pass | reduce monoid | whole      what is in operands alone reduces by add, everything else passes

Spaces do not count. The sizes of factors come from the operands' shapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gspmd.ir.errors import TypeRuleError
from gspmd.ir.rule import Factor, FactorKind, Rule
from gspmd.kernels.monoids import MONOIDS

Tensor = tuple[tuple[str, ...], ...]
_DIM = re.compile(r"[A-Za-z]|\([A-Za-z]*\)")
_TENSOR = re.compile(rf"(?:{_DIM.pattern})*")
_KINDS: dict[str, FactorKind] = {"pass": "pass", "reduce": "reduce", "whole": "whole"}


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule without sizes: the factors' letters of each dimension, and the kinds of those that do not simply pass."""

    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    kinds: tuple[tuple[str, FactorKind, str | None], ...]  # letter, kind, monoid

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The size of each factor, from the operands' shapes; TypeRuleError where they do not fit."""
        found: dict[str, int] = {}
        _require(len(shapes) == len(self.operands), f"the rule has {len(self.operands)} operands, given {len(shapes)}")
        products: list[tuple[tuple[str, ...], int]] = []
        for i, (tensor, shape) in enumerate(zip(self.operands, shapes, strict=True)):
            _require(
                len(tensor) == len(shape), f"operand {i} has shape {list(shape)}, the rule {len(tensor)} dimensions"
            )
            products += zip(tensor, shape, strict=True)
        for letters, size in sorted(products, key=lambda p: len(p[0])):
            unknown = [x for x in letters if x not in found]
            known = prod(found[x] for x in letters if x in found)
            if len(unknown) == 1 and known and size % known == 0:
                found[unknown[0]] = size // known
            elif unknown or known != size:
                why = f"of unknown sizes {', '.join(unknown)}" if unknown else f"made of {known} elements"
                _require(False, f"a dimension of size {size} has factors ({''.join(letters)}) {why}")
        return found

    def result_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The results' shapes, from the operands'."""
        sizes = self.sizes(shapes)
        return [tuple(prod(sizes[x] for x in dim) for dim in tensor) for tensor in self.results]

    def rule(self, shapes: Sequence[tuple[int, ...]]) -> Rule:
        """The factor rule for operands of these shapes."""
        sizes = self.sizes(shapes)
        letters = list(sizes)
        kinds: dict[str, tuple[FactorKind, str | None]] = {
            letter: (kind, monoid) for letter, kind, monoid in self.kinds
        }
        kept = {x for tensor in self.results for dim in tensor for x in dim}
        factors: list[Factor] = []
        for letter in letters:
            kind, monoid = kinds.get(letter, ("pass", None) if letter in kept else ("reduce", "add"))
            factors.append(Factor(sizes[letter], kind, monoid))

        def maps(tensors: tuple[Tensor, ...]) -> tuple[tuple[tuple[int, ...], ...], ...]:
            return tuple(tuple(tuple(letters.index(x) for x in dim) for dim in tensor) for tensor in tensors)

        return Rule(tuple(factors), maps(self.operands), maps(self.results))


@lru_cache(maxsize=1 << 10)
def parse_rule(text: str) -> RuleText:
    """Read a rule; raises TypeRuleError, saying what is wrong, if it is none."""
    head, _, notes = re.sub(r"\s+", " ", text).strip().partition("|")
    left, arrow, right = head.replace(" ", "").partition("->")
    _require(bool(arrow), f"{text!r} has no ->")
    operands, results = _tensors(left, text), _tensors(right, text)
    known = {x for tensor in operands for dim in tensor for x in dim}
    odd = next((x for tensor in results for dim in tensor for x in dim if x not in known), None)
    _require(odd is None, f"the factor {odd} is in no operand: its size is not known")
    kept = {x for tensor in results for dim in tensor for x in dim}
    return RuleText(operands, results, tuple(_kind(note, known, kept) for note in notes.split(",") if note.strip()))


def _tensors(text: str, whole: str) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for part in text.split(","):
        _require(_TENSOR.fullmatch(part) is not None, f"{part!r} in {whole!r} is no list of factors")
        found.append(tuple(tuple(d.strip("()")) for d in _DIM.findall(part)))
    return tuple(found)


def _kind(note: str, known: set[str], kept: set[str]) -> tuple[str, FactorKind, str | None]:
    letter, _, words = (p.strip() for p in note.partition(":"))
    word, *more = words.split() or [""]
    _require(letter in known, f"{letter!r} in {note.strip()!r} is no factor of the rule")
    _require(word in _KINDS, f"{word!r} is no kind of factor: pass, reduce add, whole")
    kind = _KINDS[word]
    monoid = more[0] if more else "add" if kind == "reduce" else None
    _require((monoid in MONOIDS) == (kind == "reduce") and len(more) < 2, f"{note.strip()!r}: reduce takes a monoid")
    _require(kind != "reduce" or letter not in kept, f"the factor {letter} reduces, but is in a result")
    _require(kind != "pass" or letter in kept, f"the factor {letter} passes, but is in no result")
    return letter, kind, monoid


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise TypeRuleError(
            message,
            rule="rule.C1",
            fix="write one letter a dimension, 'bmk,kn->bmn | k: reduce add'; (ab) is a product of factors",
        )
