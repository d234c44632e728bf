"""Axes dealt out to factors and joined again: the laws that agreement, propagation and candidates share."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from gspmd.ir.axes import Axes, canonical, cut, parts
from gspmd.ir.mesh import Axis
from gspmd.ir.projection import deal, join, misfit

SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=1, max_size=4)
AXES = st.permutations([Axis("a", 1, 2), Axis("b", 1, 3), Axis("c", 1, 4), Axis("d", 1, 6)]).flatmap(
    lambda axes: st.integers(0, 4).map(lambda n: canonical(axes[:n]))
)


@given(AXES, SIZES)
def test_what_is_dealt_out_is_what_there_was(axes: Axes, sizes: list[int]) -> None:
    dealt = deal(axes, sizes)
    assert canonical([p for piece in (*dealt.pieces, dealt.rest) for p in piece]) == axes
    if not dealt.rest:
        assert join(dealt.pieces, sizes) == axes
    split = [i for i, piece in enumerate(dealt.pieces) if piece]
    for i in split[:-1]:
        assert parts(dealt.pieces[i]) == sizes[i]  # to single elements, or nothing more minor is split
    assert dealt.leading == (len(split) < 2)
    assert dealt.ragged is None or (dealt.ragged == split[-1] and sizes[split[-1]] % parts(dealt.pieces[split[-1]]))


@given(AXES, SIZES)
def test_pieces_fit_where_they_were_dealt(axes: Axes, sizes: list[int]) -> None:
    dealt = deal(axes, sizes)
    wrong = misfit(dealt.pieces, sizes)
    assert wrong == (None if dealt.leading else dealt.ragged)
    assert misfit(dealt.without_ragged(), sizes) is None


@given(AXES, SIZES)
def test_the_rest_is_what_no_factor_takes(axes: Axes, sizes: list[int]) -> None:
    dealt = deal(axes, sizes)
    if dealt.rest:
        given_out = prod(parts(piece) for piece in dealt.pieces)
        stopped = next(n for i, n in enumerate([*sizes, 0]) if n != 1 and (i == len(sizes) or not dealt.pieces[i]))
        assert parts(axes) > prod(sizes) or (given_out > 0 and cut(dealt.rest, stopped) is None)


def test_one_real_factor_takes_all() -> None:
    axes = (Axis("d", 1, 6), Axis("a", 1, 2))
    assert deal(axes, (1, 5, 1)).pieces == ((), axes, ())
    assert deal(axes, (0, 5)).pieces == (axes, ())
    assert deal((Axis("c", 1, 4),), (2, 4)).pieces == ((Axis("c", 1, 2),), (Axis("c", 2, 2),))
