"""Folds by a region as nests of loops: where the elements of each result lie, and the region as scalar expressions.

Read off what an op says of itself (`OpDef.fold`, `OpDef.updates`, `OpDef.order`), for the scheduler, which decides what
is worth a kernel, and for the runtime, which makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod

from gspmd.ir.attrs import Window
from gspmd.ir.dtypes import dtype_name
from gspmd.ir.graph import Node, Region
from gspmd.kernels.window import padded_size, window_count
from gspmd.ops.loop_nest import ALONE, Form, form_of
from gspmd.ops.rules import COMPILED_DTYPES

# The nodes of a region on scalars, in order, each with its scalar expression.
Steps = tuple[tuple[Node, Form], ...]
# A loop: how often it runs, and by how many elements it moves on.
Loop = tuple[int, int]
# Fewer results beside one another than this are computed one after the other, each in one run through its elements; so
# are results whose elements are nearer to one another than to those of the next, unless they are very few.
_LEAST_SIDE_BY_SIDE = 8
_SHORT = 16


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold of N arrays of one shape, the window's padding and holes put in, by a region of scalar expressions.

    The element of window place k of result r lies at the sum of both's loops; loops that only continue one another are
    one. Empty loops there are none. `inner` is the innermost loop: that over the last `results` if they are
    `side_by_side` (and not in `results` then), else that over the last of the window's places.
    """

    window: Window
    steps: Steps
    results: tuple[Loop, ...]
    places: tuple[Loop, ...]
    inner: Loop
    side_by_side: bool

    @property
    def elements(self) -> int:
        """How many elements are combined."""
        return prod(n for n, _ in (*self.results, *self.places, self.inner))


def fold_of(node: Node) -> Fold | None:
    """A node as a fold that a kernel can run; None for other nodes."""
    if node.op.fold is None:
        return None
    window = node.op.fold(tuple(v.type.bare for v in node.operands), node.attrs)
    steps = None if window is None else scalar_steps(node.regions[0])
    shape = node.operands[0].type.shape
    if window is None or steps is None or 0 in shape:
        return None
    padded = [padded_size(n, s) for n, s in zip(shape, window, strict=True)]
    strides = list(accumulate((n for n in padded[:0:-1]), lambda a, b: a * b, initial=1))[::-1] if shape else []
    counts = [window_count(n, s) for n, s in zip(shape, window, strict=True)]
    results = _merged([(n, s.stride * step) for n, s, step in zip(counts, window, strides, strict=True)])
    places = _merged([(s.size, s.window_dilation * step) for s, step in zip(window, strides, strict=True)])
    if 0 in counts or any(s.size < 1 or s.reversed for s in window):
        return None
    beside, along = (loops[-1] if loops else (1, 1) for loops in (results, places))
    if beside[0] >= _LEAST_SIDE_BY_SIDE and (beside[1] <= along[1] or along[0] < _SHORT):
        return Fold(window, steps, results[:-1], places, beside, True)
    return Fold(window, steps, results, places[:-1], along, False)


def update_steps(node: Node) -> Steps | None:
    """The region of a node that updates rows by it, for a kernel; None for other nodes."""
    return None if node.op.updates is None or not node.regions else scalar_steps(node.regions[0])


def order_steps(node: Node) -> Steps | None:
    """The comparator of a node that orders elements by nothing less, for a kernel; None for other nodes."""
    return None if node.op.order is None or node.op.order(node) is None else scalar_steps(node.regions[0])


def _merged(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """Loops, the outermost first, without those that run once and those that the next one may run through."""
    out: list[Loop] = []
    for n, step in loops:
        if n == 1:
            continue
        if out and out[-1][1] == n * step:
            out[-1] = (out[-1][0] * n, step)
        else:
            out.append((n, step))
    return tuple(out)


@lru_cache(maxsize=1024)
def scalar_steps(region: Region) -> Steps | None:
    """The nodes of a region on scalars with their forms; None if some cannot be compiled."""
    steps = tuple((node, form_of(node)) for node in region.nodes)
    found = tuple((node, form) for node, form in steps if form is not None)
    plain = all(form.literal or (form.position == ALONE and form.operands) for _, form in found)
    values = (*region.params, *(v for node, _ in found for v in node.results))
    known = all(not v.type.shape and dtype_name(v.type.dtype) in COMPILED_DTYPES for v in values)
    return found if len(found) == len(steps) and plain and known else None
