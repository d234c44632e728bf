"""Contractions: einsum, and the matrix products that are special cases of it.

A subscript names each dimension with a letter. Operands are contracted in pairs, the pair with the smallest result
first, each pair by one dot_general and a transpose of its result where the order asks for one.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gspmd.frontend.numpy_core import broadcast_to, cast_to, common_dtype, lift, normal_axes
from gspmd.frontend.numpy_logic import truth
from gspmd.frontend.numpy_math import multiply
from gspmd.frontend.numpy_shape import moveaxis, ravel, reshape, square_diagonal, squeeze, transpose
from gspmd.frontend.numpy_special import conj
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import DTYPES, as_dtype
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.reduce import REDUCE

_LETTERS = string.ascii_letters
_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*")


@dataclass(frozen=True, slots=True)
class Term:
    """An operand and the letters of its dimensions."""

    array: Tracer
    letters: str


def einsum(subscripts: str, *operands: ArrayLike, dtype: Any = None) -> Tracer:
    """The sum of products that subscripts such as "bij,bjk->bik" or "...i,i" say, by NumPy's rules."""
    kind = common_dtype(*operands) if dtype is None else as_dtype(dtype)
    arrays = [cast_to(x, kind) for x in operands]
    inputs, output = _parsed(subscripts, arrays)
    sizes = _sizes(inputs, arrays, subscripts)
    terms = [_plain(Term(x, letters), sizes) for x, letters in zip(arrays, inputs, strict=True)]
    while len(terms) > 1:
        i, j = _next_pair(terms, output, sizes)
        second, first = terms.pop(j), terms.pop(i)
        wanted = set(output).union(*(t.letters for t in terms))
        terms.append(_contract(first, second, wanted))
    return _finished(terms[0], output, sizes)


# -- subscripts ------------------------------------------------------------------------------------------------------


def _parsed(subscripts: str, arrays: Sequence[Tracer]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, the ellipses replaced by letters of their own."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(arrays) or not all(_TERM.fullmatch(t) for t in [*inputs, right]):
        raise trace_error(
            f"einsum cannot read {subscripts!r} for {len(arrays)} operands",
            rule="einsum.C1",
            fix="write one comma-separated group of letters for each operand, then -> and those of the result",
        )
    counts = [x.ndim - len(t.replace("...", "")) for x, t in zip(arrays, inputs, strict=True)]
    for x, t, count in zip(arrays, inputs, counts, strict=True):
        if count < 0 or (count and "..." not in t):
            raise trace_error(
                f"the subscript {t!r} of {subscripts!r} does not fit an operand of {x.ndim} dimensions",
                rule="einsum.C2",
            )
    free = [c for c in _LETTERS if c not in subscripts]
    width = max((c for c, t in zip(counts, inputs, strict=True) if "..." in t), default=0)
    dots = "".join(free[:width])
    full = [t.replace("...", dots[width - c :]) for c, t in zip(counts, inputs, strict=True)]
    if arrow:
        return full, _checked_output(right.replace("...", dots), full, subscripts)
    joined = "".join(inputs).replace("...", "")
    return full, dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))


def _checked_output(output: str, inputs: Sequence[str], subscripts: str) -> str:
    for c in output:
        if output.count(c) > 1 or not any(c in t for t in inputs):
            raise trace_error(
                f"the result of {subscripts!r} names {c!r} twice, or no operand has it",
                rule="einsum.C3",
                fix="name each dimension of the result once, and only such that an operand has",
            )
    return output


def _sizes(inputs: Sequence[str], arrays: Sequence[Tracer], subscripts: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for letters, x in zip(inputs, arrays, strict=True):
        for c, n in zip(letters, x.shape, strict=True):
            if sizes.setdefault(c, n) != n and n != 1:
                if sizes[c] != 1:
                    raise trace_error(
                        f"the dimension {c!r} of {subscripts!r} has sizes {sizes[c]} and {n}",
                        rule="einsum.C4",
                        fix="make them agree",
                    )
                sizes[c] = n
    return sizes


# -- one operand -----------------------------------------------------------------------------------------------------


def _plain(term: Term, sizes: dict[str, int]) -> Term:
    """The operand with each letter once, and without dimensions of size 1 that stand for larger ones."""
    x, letters = term.array, term.letters
    gone = [d for d, c in enumerate(letters) if x.shape[d] != sizes[c]]
    if gone:
        x, letters = squeeze(x, gone), "".join(c for d, c in enumerate(letters) if d not in gone)
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i, j = letters.index(c), letters.rindex(c)
            x = square_diagonal(moveaxis(x, (i, j), (-2, -1)))
            letters = "".join(k for d, k in enumerate(letters) if d not in (i, j)) + c
    return Term(x, letters)


def _summed(term: Term, wanted: Iterable[str]) -> Term:
    """The operand with the letters that nobody wants summed up."""
    dims = tuple(d for d, c in enumerate(term.letters) if c not in wanted)
    if not dims:
        return term
    monoid = "or" if term.array.dtype.kind == "b" else "add"
    summed = emit(REDUCE, term.array, dims=dims, monoid=monoid)
    return Term(summed, "".join(c for c in term.letters if c in wanted))


def _finished(term: Term, output: str, sizes: dict[str, int]) -> Tracer:
    term = _summed(term, output)
    held = [c for c in output if c in term.letters]
    ordered = transpose(term.array, [term.letters.index(c) for c in held])
    spaced = reshape(ordered, [sizes[c] if c in held else 1 for c in output])
    return broadcast_to(spaced, [sizes[c] for c in output])


# -- two operands ----------------------------------------------------------------------------------------------------


def _next_pair(terms: Sequence[Term], output: str, sizes: dict[str, int]) -> tuple[int, int]:
    """The pair whose contraction shrinks what is left most, for the fewest multiplications."""

    def cost(i: int, j: int) -> tuple[int, int]:
        rest = set(output).union(*(t.letters for k, t in enumerate(terms) if k not in (i, j)))
        both = set(terms[i].letters) | set(terms[j].letters)
        grown = prod(sizes[c] for c in both & rest) - terms[i].array.size - terms[j].array.size
        return grown, prod(sizes[c] for c in both)

    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    return min(pairs, key=lambda pair: cost(*pair))


def _contract(a: Term, b: Term, wanted: set[str]) -> Term:
    """One pair: letters of both are batch if wanted, contracted if not; the result has batch, a's, b's letters."""
    a, b = _summed(a, wanted | set(b.letters)), _summed(b, wanted | set(a.letters))
    shared = [c for c in a.letters if c in b.letters]
    batch, contract = [c for c in shared if c in wanted], [c for c in shared if c not in wanted]
    if a.array.dtype == DTYPES["bool"]:
        left, right = (Term(cast_to(t.array, DTYPES["i32"]), t.letters) for t in (a, b))
        counted = _contract(left, right, wanted)
        return Term(truth(counted.array), counted.letters)
    letters = [*batch, *(c for c in a.letters if c not in shared), *(c for c in b.letters if c not in shared)]
    if not contract and len(letters) == len(batch):
        # Nothing but batch: an element-wise product.
        return Term(multiply(a.array, transpose(b.array, [b.letters.index(c) for c in a.letters])), a.letters)
    product = emit(
        DOT_GENERAL,
        a.array,
        b.array,
        lhs_batch=tuple(a.letters.index(c) for c in batch),
        rhs_batch=tuple(b.letters.index(c) for c in batch),
        lhs_contract=tuple(a.letters.index(c) for c in contract),
        rhs_contract=tuple(b.letters.index(c) for c in contract),
    )
    return Term(product, "".join(letters))


# -- products of NumPy -----------------------------------------------------------------------------------------------


def matmul(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The matrix product of the last two dimensions, the ones before broadcast; vectors count as rows and columns."""
    a, b = lift(x), lift(y)
    if not a.ndim or not b.ndim:
        raise trace_error("matmul takes arrays with dimensions, got a scalar", rule="matmul.C1", fix="use *")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise trace_error(
            f"matmul contracts size {a.shape[-1]} of shape {list(a.shape)} with size "
            f"{b.shape[-2 if b.ndim > 1 else 0]} of shape {list(b.shape)}",
            rule="matmul.C2",
            fix="transpose one operand, or use einsum",
        )
    left = "k" if a.ndim == 1 else "...mk" if a.ndim > 2 else "mk"
    right = "k" if b.ndim == 1 else "...kn" if b.ndim > 2 else "kn"
    dots = "..." if "..." in left + right else ""
    return einsum(f"{left},{right}->{dots}{'m' if a.ndim > 1 else ''}{'n' if b.ndim > 1 else ''}", a, b)


def matvec(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The products of matrices, in the last two dimensions of x, and vectors, in the last one of y."""
    return einsum("...mk,...k->...m", x, y)


def vecmat(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The products of conjugated vectors, in the last dimension of x, and matrices, in the last two of y."""
    return einsum("...k,...kn->...n", conj(x), y)


def dot(x: ArrayLike, y: ArrayLike) -> Tracer:
    """NumPy's dot: the last dimension of x with the last but one of y; a product if either is a scalar."""
    a, b = lift(x), lift(y)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return tensordot(a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


def tensordot(x: ArrayLike, y: ArrayLike, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tracer:
    """The sum of products over pairs of dimensions, or over the last so many of x and the first of y."""
    a, b = lift(x), lift(y)
    if isinstance(axes, int):
        pairs = (range(a.ndim - axes, a.ndim), range(axes))
    else:
        pairs = axes
    left, right = normal_axes(tuple(pairs[0]), a.ndim), normal_axes(tuple(pairs[1]), b.ndim)
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise trace_error(
            f"tensordot contracts dims {list(left)} of {list(a.shape)} with dims {list(right)} of {list(b.shape)}",
            rule="tensordot.C1",
            fix="name dimensions of equal sizes",
        )
    first = _LETTERS[: a.ndim]
    second = [*_LETTERS[a.ndim : a.ndim + b.ndim]]
    for i, j in zip(left, right, strict=True):
        second[j] = first[i]
    free = [c for d, c in enumerate(first) if d not in left] + [c for c in second if c not in first]
    return einsum(f"{first},{''.join(second)}->{''.join(free)}", a, b)


def vecdot(x: ArrayLike, y: ArrayLike, axis: int = -1) -> Tracer:
    """The sum of products along an axis, those of x conjugated, the others broadcast."""
    return einsum("...i,...i->...", conj(moveaxis(x, axis, -1)), moveaxis(y, axis, -1))


def vdot(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The sum of the products of all elements, those of x conjugated."""
    return matmul(conj(ravel(x)), ravel(y))


def inner(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The sum of products over the last dimensions."""
    a, b = lift(x), lift(y)
    return tensordot(a, b, ([a.ndim - 1], [b.ndim - 1])) if a.ndim and b.ndim else multiply(a, b)


def outer(x: ArrayLike, y: ArrayLike) -> Tracer:
    """All products of an element of x with one of y."""
    return einsum("i,j->ij", ravel(x), ravel(y))
