"""What a sort's comparator means: a chain of comparisons of keys, if it is one.

Most comparators compare f(left) with f(right), or several such keys in turn (`a < b or (a == b and ...)`). Then the
keys can be computed once for all elements, and the sort needs no region. This also covers what JAX emits: zeros made
equal and NaN last by selects, compared in the total order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gspmd.ir.graph import Node, Region, Value
from gspmd.ops.elementwise import AND, COMPARE, OR, SELECT
from gspmd.ops.elementwise.arithmetic import CompareAttrs

_FLIPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: whether the greatest comes first, and whether floats are in their total order."""

    descending: bool
    total: bool


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """A comparator as keys: a region from (x0, x0, x1, x1, ...) to the keys, and how each is ordered.

    `direct` numbers the operand that is the only key, as it is.
    """

    region: Region
    order: tuple[Key, ...]
    direct: int | None


@lru_cache(maxsize=1024)
def comparator_keys(region: Region) -> Keys | None:
    """The keys of a comparator with params (left0, right0, left1, right1, ...); None if it is no chain of keys."""
    found = _Reader(region).chain(region.results[0])
    if found is None:
        return None
    values = tuple(v for v, _ in found)
    nodes = _needed(region, values)
    place = {v: i for i, v in enumerate(region.params)}
    alone = len(values) == 1 and values[0] in place
    return Keys(
        Region(region.params, nodes, values), tuple(k for _, k in found), place[values[0]] // 2 if alone else None
    )


def _needed(region: Region, values: tuple[Value, ...]) -> tuple[Node, ...]:
    alive, kept = set(values), list[Node]()
    for node in reversed(region.nodes):
        if alive.intersection(node.results):
            alive.update(node.operands)
            kept.append(node)
    return tuple(reversed(kept))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """`f(left) direction f(right)`; `left` is the value of f(left)."""

    left: Value
    right: Value
    direction: str
    total: bool


Chain = list[tuple[Value, Key]]


class _Reader:
    """Reads one region's values as comparisons."""

    def __init__(self, region: Region) -> None:
        self.place = {v: i for i, v in enumerate(region.params)}
        self.maker = {v: (node, i) for node in region.nodes for i, v in enumerate(node.results)}

    def chain(self, value: Value) -> Chain | None:
        """The keys of `first`, or of `first or (equal and rest)` and its like."""
        plain = self._comparison(value)
        if plain is not None:
            return self._link(plain)
        node = self._node(value)
        if node is None:
            return None
        if node.op is OR:
            pairs = (node.operands, node.operands[::-1])
            ends = [(a, both) for a, b in pairs if (both := self._node(b)) is not None and both.op is AND]
            tries = [(a, e, r) for a, both in ends for e, r in (both.operands, both.operands[::-1])]
        elif node.op is SELECT:
            tries = [(node.operands[2], node.operands[0], node.operands[1])]
            test = self._comparison(node.operands[0])
            if test is not None and test.direction == "NE":
                tries = [(node.operands[1], node.operands[0], node.operands[2])]
        else:
            return None
        return next((found for first, equal, rest in tries if (found := self._joined(first, equal, rest))), None)

    def _joined(self, first: Value, equal: Value, rest: Value) -> Chain | None:
        head, test = self._comparison(first), self._comparison(equal)
        if head is None or test is None or test.direction not in ("EQ", "NE") or not self._same(head, test):
            return None
        start, more = self._link(head), self.chain(rest)
        return None if start is None or more is None else start + more

    def _same(self, a: _Comparison, b: _Comparison) -> bool:
        return self._equal(a.left, b.left, False) and self._equal(a.right, b.right, False)

    def _link(self, found: _Comparison) -> Chain | None:
        if found.direction not in ("LT", "LE", "GT", "GE"):
            return None
        return [(found.left, Key(found.direction in ("GT", "GE"), found.total))]

    def _comparison(self, value: Value) -> _Comparison | None:
        node = self._node(value)
        if node is None or node.op is not COMPARE:
            return None
        attrs = node.attrs
        assert isinstance(attrs, CompareAttrs)
        a, b = node.operands
        total = bool(attrs.compare_type)
        if self._equal(a, b, True):
            return _Comparison(a, b, attrs.direction, total)
        return _Comparison(b, a, _FLIPPED[attrs.direction], total) if self._equal(b, a, True) else None

    def _equal(self, a: Value, b: Value, mirrored: bool) -> bool:
        """Whether two values are one expression; mirrored: `a` of the left params, and `b` the same of the right."""
        if a in self.place or b in self.place:
            if a not in self.place or b not in self.place:
                return False
            i, j = self.place[a], self.place[b]
            return (i % 2 == 0 and j == i + 1) if mirrored else i == j
        if a is b and not mirrored:
            return True
        (m, i), (n, j) = self.maker[a], self.maker[b]
        alike = m.op is n.op and i == j and m.attrs == n.attrs and not m.regions and not n.regions
        return alike and all(self._equal(x, y, mirrored) for x, y in zip(m.operands, n.operands, strict=True))

    def _node(self, value: Value) -> Node | None:
        return self.maker[value][0] if value in self.maker else None
