"""The gradient of a loop whose number of rounds is known: run it once more backwards over saved carries.

Forward, `while_save` re-emits the loop with a round counter and, of each carry that changes, a stack with one entry a
round. Backward, `while_vjp` counts down, reads the round's carries from the stacks and pulls the cotangents back
through the body. A carry that the body hands on untouched is not stacked; its cotangent adds up by itself, because the
pullback adds to what it is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.errors import TraceError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Gradient, trips
from gspmd.ir.types import TensorType
from gspmd.ops.elementwise import ADD, COMPARE, SUBTRACT
from gspmd.ops.layout import RESHAPE
from gspmd.ops.literal import full, scalar
from gspmd.ops.rules import differentiable
from gspmd.ops.slicing import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE


def inline(builder: Builder, region: Region, arguments: Sequence[Value]) -> tuple[Value, ...]:
    """Append a copy of a region's nodes, on the arguments, to a program under construction; returns its results."""
    held = dict(zip(region.params, arguments, strict=True))
    for node in region.nodes:
        regions = tuple(map(copied, node.regions))
        operands = tuple(held[v] for v in node.operands)
        types = [v.type for v in node.results]
        fresh = builder.append(node.op, operands, node.attrs, types, regions, node.loc)
        held.update(zip(node.results, fresh, strict=True))
    return tuple(held[v] for v in region.results)


def copied(region: Region) -> Region:
    """The same region with values of its own."""
    builder = Builder()
    params = [builder.param(v.type, v.name) for v in region.params]
    return builder.region(inline(builder, region, params))


def _changing(node: Node) -> list[int]:
    """The carries that the body does not hand on untouched."""
    body = node.regions[1]
    return [i for i, (p, r) in enumerate(zip(body.params, body.results, strict=True)) if p is not r]


def _entry(builder: Builder, stack: Value, counter: Value) -> tuple[Value, ...]:
    """Start indices of a round's entry in a stack."""
    zero = scalar(builder, 0, "i32")
    return (counter, *[zero] * (stack.type.rank - 1))


def while_save(gradient: Gradient, node: Node) -> tuple[Sequence[Value], Sequence[Value]]:
    """Re-emit the loop so that it keeps its carries: the results, and one stack of each changing carry.

    A loop that never runs, or nobody knows how often, is re-emitted as it is.
    """
    b, count, changing, n = gradient.builder, trips(node), _changing(node), len(node.operands)
    if not count:
        return node.op.emit(b, node.operands, node.attrs, tuple(map(copied, node.regions)), node.loc), ()
    carried = [node.operands[i].type for i in changing]
    stacks = [gradient.zeros(TensorType(t.dtype, (count, *t.shape))) for t in carried]
    start = (*node.operands, scalar(b, 0, "i32"), *stacks)
    types = [v.type.bare for v in start]
    cond, body = Builder(node.loc), Builder(node.loc)
    asked = inline(cond, node.regions[0], [cond.param(t) for t in types][:n])
    params = [body.param(t) for t in types]
    carries, counter, held = params[:n], params[n], params[n + 1 :]
    after = inline(body, node.regions[1], carries)
    kept: list[Value] = []
    for i, stack in zip(changing, held, strict=True):
        one = RESHAPE(body, carries[i], shape=ResultShape((1, *carries[i].type.shape)))
        kept.append(DYNAMIC_UPDATE_SLICE(body, stack, one, *_entry(body, stack, counter)))
    following = ADD(body, counter, scalar(body, 1, "i32"))
    regions = (
        Region(tuple(cond.params), tuple(cond.nodes), asked),
        Region(tuple(params), tuple(body.nodes), (*after, following, *kept)),
    )
    results = node.op.emit(b, start, node.attrs, regions, node.loc)
    return results[:n], results[n + 1 :]


def while_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """Pull cotangents back through the rounds, last one first.

    The node's results are followed by the stacks if it has been saved; else the loop is run again to have them. Raises
    TraceError for a loop of unknown length.
    """
    count, n = trips(node), len(node.operands)
    wanted = [differentiable(x.type) for x in node.operands]
    given = list(cotangents[:n])
    if all(ct is None for ct in given) or not any(wanted):
        return [None] * n
    if count is None:
        raise TraceError(
            "gradient through a loop of unknown length",
            loc=node.loc,
            fix="give the number of rounds (fori_loop with Python bounds, scan), or stop the gradient first",
        )
    if count == 0:
        return given
    stacks = node.results[n:] or while_save(gradient, node)[1]
    b, floats = gradient.builder, [i for i in range(n) if wanted[i]]
    changing = _changing(node)
    still = [i for i in range(n) if i not in changing]
    pulled = [given[i] or gradient.zeros(node.operands[i].type.bare) for i in floats]
    start = (scalar(b, count - 1, "i32"), *(node.operands[i] for i in still), *stacks, *pulled)
    types = [v.type.bare for v in start]
    cond = Builder(node.loc)
    down, *_ = [cond.param(t) for t in types]
    going = COMPARE(cond, down, scalar(cond, 0, "i32"), direction="GE")
    body = _pull_round(gradient, node, types, (still, changing, floats))
    after = node.op.emit(b, start, node.attrs, (cond.region([going]), body), node.loc)
    found = dict(zip(floats, after[len(start) - len(floats) :], strict=True))
    return [found.get(i) for i in range(n)]


def _pull_round(
    gradient: Gradient, node: Node, types: Sequence[TensorType], numbers: tuple[list[int], list[int], list[int]]
) -> Region:
    """The body of the reverse loop: (counter, carries that stay, stacks, cotangents) to the round before."""
    still, changing, floats = numbers
    b = Builder(node.loc)
    counter, *rest = [b.param(t) for t in types]
    constant, stacks, cts = rest[: len(still)], rest[len(still) : -len(floats)], rest[-len(floats) :]
    carries = dict(zip(still, constant, strict=True))
    for i, stack in zip(changing, stacks, strict=True):
        shape = stack.type.shape[1:]
        entry = DYNAMIC_SLICE(b, stack, *_entry(b, stack, counter), sizes=ResultShape((1, *shape)))
        carries[i] = RESHAPE(b, entry, shape=ResultShape(shape))
    source = node.regions[1]
    held = dict(zip(floats, cts, strict=True))
    n = len(node.operands)
    given = [
        held[i] if i in held else full(b, 0, source.results[i].type.dtype, source.results[i].type.shape)
        for i in range(n)
    ]
    pullback = gradient.region_vjp(source, [i in held for i in range(n)])
    pulled = inline(b, pullback, [*(carries[i] for i in range(n)), *given])
    before = SUBTRACT(b, counter, scalar(b, 1, "i32"))
    return b.region([before, *constant, *stacks, *pulled])
