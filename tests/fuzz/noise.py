"""How far rounding alone may carry a program's results: it is run again with noise in every result that was rounded.

A difference between two stages counts only if it is larger than what noise of the size of a rounding makes of the
reference. A sum in another order then never counts, and a wrong element always does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array, Shards
from gspmd.kernels.finite import epsilon
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker

_RUNS = 6
_MARGIN = 30.0


class NoisyWalker(Walker):
    """A walker that disturbs what nodes compute, and what they read if they round within; what they move it leaves."""

    def __init__(self, transport: LockstepTransport, rng: np.random.Generator, size: float) -> None:
        super().__init__(transport)
        self.rng, self.size = rng, size

    def run(self, region: Region, arguments: Sequence[Shards], *, consume: bool = False) -> list[Shards]:
        held: dict[Value, Shards] = dict(zip(region.params, arguments, strict=True))
        for node in region.nodes:
            one = Region(tuple(dict.fromkeys(node.operands)), (node,), node.results)
            if node.op.execute is not None and node.regions:
                made = node.op.execute(self, node, [held[v] for v in node.operands])
            else:
                given = [[self._moved(x) for x in held[v]] if _in_steps(node) else held[v] for v in one.params]
                made = Walker(self.transport).run(one, given)
            for value, shards in zip(node.results, made, strict=True):
                held[value] = [self._noisy(x, node, held) for x in shards]
        return [held[v] for v in region.results]

    def _noisy(self, x: Array, node: Node, held: dict[Value, Shards]) -> Array:
        if dtype_kind(x.dtype) not in ("float", "complex") or not node.operands:
            return x
        sources = [np.ravel(s) for v in node.operands for s in held[v] if s.dtype == x.dtype]
        if sources and np.isin(x, np.concatenate(sources)).all():
            return x
        return self._moved(x)

    def _moved(self, x: Array) -> Array:
        if dtype_kind(x.dtype) not in ("float", "complex"):
            return x
        relative = self.size * epsilon(x.dtype) * self.rng.choice([-1.0, 0.0, 1.0], x.shape)
        with np.errstate(all="ignore"):
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            return (x.astype(wide) * (1 + relative)).astype(x.dtype)

    def _other(self, mesh: Mesh, indices: tuple[int, ...]) -> Walker:
        return NoisyWalker(LockstepTransport(mesh, indices), self.rng, self.size)


def _in_steps(node: Node) -> bool:
    """Whether a node computes several things one after the other, which rounds within: a mean, then a variance."""
    return len(node.results) > 1 and all(dtype_kind(v.type.dtype) in ("float", "complex") for v in node.results)


def within_noise(program: Program, arrays: Sequence[Array], expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether results differ from the expected no more than noise explains."""
    spread = [np.zeros(e.shape) for e in expected]
    changed = [np.zeros(e.shape, bool) for e in expected]
    for k in range(_RUNS):
        walker = NoisyWalker(LockstepTransport(Mesh({"only": 1})), np.random.default_rng(k), 2.0 + 2 * k)
        try:
            found = [xs[0] for xs in walker.run(program.body, [[a] for a in arrays])]
        except Exception:  # noqa: BLE001  noise may break what it likes
            return True
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            spread[i] = np.maximum(spread[i], _distance(f, e))
            changed[i] = changed[i] | ~_same(f, e)
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if dtype_kind(e.dtype) in ("float", "complex"):
            if (_distance(a, e) > _MARGIN * spread[i].max(initial=0.0)).any():
                return False
        elif not changed[i].any() and not _same(a, e).all():
            return False
    return True


def _distance(a: Array, e: Array) -> Array:
    wide = np.complex128 if e.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), e.astype(wide)
        return np.where(_same(a, e), 0.0, np.nan_to_num(np.abs(x - y), nan=np.inf, posinf=np.inf))


def _same(a: Array, e: Array) -> Array:
    return np.asarray((a == e) | ((a != a) & (e != e)))
