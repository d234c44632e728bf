"""Pure functions on axis lists: the arithmetic under the algebra of shardings.

An axis list names, major to minor, the pieces of mesh axes that together split something. Lists are compared digit by
digit: the common major prefix of an axis cut in 6 and the same axis cut in 4 is its first digit of 2. Where a list
stands for a set (unreduced, replicated, manual axes) `as_set` puts it into canonical order.
"""

from collections.abc import Iterable, Sequence
from math import gcd

from gspmd.ir.mesh import Axis

Axes = tuple[Axis, ...]


def canonical(axes: Iterable[Axis]) -> Axes:
    """The list without pieces of size 1 and with neighbouring digits of one axis joined."""
    out: list[Axis] = []
    for p in axes:
        if p.size == 1:
            continue
        if out and out[-1].name == p.name and out[-1].pre * out[-1].size == p.pre:
            out[-1] = Axis(p.name, out[-1].pre, out[-1].size * p.size)
        else:
            out.append(p)
    return tuple(out)


def as_set(axes: Iterable[Axis], names: Sequence[str]) -> Axes:
    """The pieces as a set: in the order of the mesh's axis names, most significant digit first, neighbours joined."""
    return canonical(sorted(axes, key=lambda p: (names.index(p.name), p.pre)))


def parts(axes: Axes) -> int:
    """The number of parts that the list splits into."""
    n = 1
    for p in axes:
        n *= p.size
    return n


def cut(axes: Axes, n: int) -> tuple[Axes, Axes] | None:
    """The major part of the list with exactly n parts, and the rest; None if a piece would be cut at a non-divisor."""
    head: list[Axis] = []
    for i, p in enumerate(axes):
        if n == 1:
            return tuple(head), axes[i:]
        if n % p.size == 0:
            head.append(p)
            n //= p.size
        elif p.size % n == 0:
            head.append(Axis(p.name, p.pre, n))
            return tuple(head), (Axis(p.name, p.pre * n, p.size // n), *axes[i + 1 :])
        else:
            return None
    return (tuple(head), ()) if n == 1 else None


def common_prefix(a: Axes, b: Axes) -> Axes:
    """The longest common major prefix of two axis lists; it may end inside an axis."""
    if a == b:
        return a
    out: list[Axis] = []
    left, right = list(reversed(a)), list(reversed(b))
    while left and right:
        p, q = left.pop(), right.pop()
        if p.name != q.name or p.pre != q.pre:
            break
        g = gcd(p.size, q.size)
        if g > 1:
            out.append(Axis(p.name, p.pre, g))
        if g != p.size and g != q.size:
            break
        if p.size > g:
            left.append(Axis(p.name, p.pre * g, p.size // g))
        if q.size > g:
            right.append(Axis(q.name, q.pre * g, q.size // g))
    return canonical(out)


def is_prefix(a: Axes, b: Axes) -> bool:
    """Whether the canonical list a is a major prefix of b."""
    return not a or a == b or common_prefix(a, b) == a


def without_prefix(axes: Axes, prefix: Axes) -> Axes:
    """What is left of the list after a major prefix of it; raises ValueError if it is none."""
    if not is_prefix(prefix, axes):
        raise ValueError(f"{prefix} is no prefix of {axes}")
    rest = cut(axes, parts(prefix))
    return rest[1] if rest else ()


def overlap(p: Axis, q: Axis) -> bool:
    """Whether two pieces share devices' digits: neither ends at a digit boundary above the other.

    Pieces of one axis that break the divisibility chain, such as (1)2 and (3)4 of 12, are not independent either.
    """
    return p.name == q.name and q.pre % (p.pre * p.size) != 0 and p.pre % (q.pre * q.size) != 0


def overlaps(a: Axes, b: Axes) -> bool:
    """Whether any piece of one list overlaps a piece of the other."""
    return any(overlap(p, q) for p in a for q in b)


def first_overlap(axes: Sequence[Axis]) -> tuple[Axis, Axis] | None:
    """The first two pieces within one list that overlap, or None."""
    for i, p in enumerate(axes):
        for q in axes[:i]:
            if p.name == q.name and overlap(p, q):
                return q, p
    return None


def free_prefix(axes: Axes, used: Iterable[Axis]) -> Axes:
    """The longest major prefix of the list that overlaps nothing in `used`; it may end inside an axis."""
    taken = tuple(used)
    out: list[Axis] = []
    for p in axes:
        hits = [q for q in taken if overlap(p, q)]
        if not hits:
            out.append(p)
            continue
        n = p.size
        for q in hits:
            n = gcd(n, q.pre // p.pre) if q.pre > p.pre and q.pre % p.pre == 0 else 1
        if n > 1:
            out.append(Axis(p.name, p.pre, n))
        break
    return canonical(out)


def cut_points(*lists: Axes) -> dict[str, tuple[int, ...]]:
    """For each axis name, the sorted products at which any of the lists cuts it."""
    points: dict[str, set[int]] = {}
    for axes in lists:
        for p in axes:
            points.setdefault(p.name, set()).update((p.pre, p.pre * p.size))
    return {name: tuple(sorted(s)) for name, s in points.items()}


def atoms(axes: Axes, points: dict[str, tuple[int, ...]]) -> Axes:
    """The list with each piece cut at those points inside it that divide it; the order of digits is kept."""
    out: list[Axis] = []
    for p in axes:
        low, end = p.pre, p.pre * p.size
        for c in points.get(p.name, ()):
            if low < c < end and c % low == 0 and end % c == 0:
                out.append(Axis(p.name, low, c // low))
                low = c
        out.append(Axis(p.name, low, end // low))
    return tuple(out)


def contains(axes: Axes, piece: Axis) -> bool:
    """Whether every digit of the piece is among those of the list, in any order."""
    return all(any(_within(a, p) for p in axes) for a in atoms((piece,), cut_points(axes)))


def intersection(a: Axes, b: Axes) -> Axes:
    """The digits of a that b has too, in the order of a."""
    return canonical(p for p in atoms(a, cut_points(b)) if any(_within(p, q) for q in b))


def difference(a: Axes, b: Axes) -> Axes:
    """The digits of a that overlap nothing in b, in the order of a."""
    return canonical(p for p in atoms(a, cut_points(b)) if not any(overlap(p, q) for q in b))


def union(a: Axes, b: Axes) -> Axes | None:
    """The digits of a, then those that only b has; None if no chain of cut points has the digits of both."""
    out = list(a)
    for p in atoms(b, cut_points(a)):
        if any(_within(p, q) for q in a):
            continue
        if any(overlap(p, q) for q in a):
            return None
        out.append(p)
    return canonical(out)


def _within(p: Axis, q: Axis) -> bool:
    return p.name == q.name and p.pre % q.pre == 0 and (q.pre * q.size) % (p.pre * p.size) == 0
