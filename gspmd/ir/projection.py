"""How the axes of a dimension fall on the factors that it is made of: the one place where this is said.

A dimension is its factors, major to minor; so are its axes. A major factor takes as many as split it to single
elements, the next one what is left. The last factor that gets any may be split into uneven shards only if nothing more
major is split, since equal chunks of the dimension would otherwise straddle the factors (paper section 4.2; factors as
in Shardy). Agreement, propagation and the choice of a partitioning read this, each with its own demands on evenness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.ir.axes import Axes, canonical, cut, parts


@dataclass(frozen=True, slots=True)
class Dealt:
    """Axes dealt out: `pieces`, one for each factor, and the `rest` that no factor can express.

    `ragged` is the factor, by its place in the dimension, whose shards are uneven (None: there is none): it is always
    the last that is split. `leading`: at most one factor is split.
    """

    pieces: tuple[Axes, ...]
    rest: Axes
    ragged: int | None
    leading: bool

    def without_ragged(self) -> tuple[Axes, ...]:
        """The pieces with the uneven one left out."""
        return tuple(() if i == self.ragged else piece for i, piece in enumerate(self.pieces))


def deal(axes: Axes, sizes: Sequence[int]) -> Dealt:
    """The axes of a dimension on factors of some sizes, major to minor."""
    if not axes:
        return Dealt(((),) * len(sizes), (), None, True)
    alone = single(sizes)
    pieces: list[Axes] = []
    rest, ragged = axes, None
    for i, size in enumerate(sizes):
        count = parts(rest)
        if not rest or (size == 1 and alone != i):
            pieces.append(())
        elif i == alone or count <= size:
            ragged = i if size % count else None
            pieces.append(rest)
            rest = ()
            break
        else:
            halves = cut(rest, size) if size else None
            if halves is None:
                break
            pieces.append(halves[0])
            rest = halves[1]
    pieces += [()] * (len(sizes) - len(pieces))
    return Dealt(tuple(pieces), rest, ragged, sum(map(bool, pieces)) < 2)


def join(pieces: Sequence[Axes], sizes: Sequence[int]) -> Axes:
    """The axes of a dimension whose factors are split so: as many as follow each other without a gap."""
    out: Axes = ()
    for axes, size in zip(pieces, sizes, strict=True):
        out += axes
        if parts(axes) != size:
            break
    return canonical(out)


def misfit(pieces: Sequence[Axes], sizes: Sequence[int]) -> int | None:
    """The first factor whose axes no split of the dimension can express; None if all fit."""
    alone = single(sizes)
    full, split = True, False  # whether every factor before is split to single elements, and whether any is
    for i, (axes, size) in enumerate(zip(pieces, sizes, strict=True)):
        count = parts(axes)
        if axes and (not full or (i != alone and count > size) or (size % count and split)):
            return i
        full, split = full and count == size, split or count > 1
    return None


def single(sizes: Sequence[int]) -> int | None:
    """The only factor that is not of size 1, which takes all axes whatever their number; None for a true product.

    Of a dimension without elements it is the first such factor: nothing is there to straddle.
    """
    if len(sizes) == 1:
        return 0
    real = [i for i, size in enumerate(sizes) if size != 1]
    return real[0] if len(real) == 1 or (real and 0 in sizes) else None
