"""Makes a finding small: fewer results, ops, annotations, mesh axes, elements, as long as it stays the same finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Trait
from gspmd.ir.rewrite import alive
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from tests.fuzz.bricks import copied
from tests.fuzz.generate import Case
from tests.fuzz.judge import Outcome
from tests.fuzz.sizes import smaller_sizes

Judge = Callable[[Case], Outcome]


def shrink(case: Case, outcome: Outcome, judge: Judge, seconds: float = 60.0) -> Case:
    """A small case with a finding like the given one; takes about so many seconds."""
    end = time.monotonic() + seconds
    moved = True
    while moved and time.monotonic() < end:
        moved = False
        for smaller in _smaller(case):
            if time.monotonic() > end:
                break
            if judge(smaller).like(outcome):
                case, moved = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases a step smaller, the largest steps first."""
    if case.without:
        yield replace(case, without=())
        for name in case.without:
            yield replace(case, without=tuple(n for n in case.without if n != name))
    if case.kernels:
        yield replace(case, kernels=False)
    for make in (_fewer_results, _cut, _bypassed, _inlined, _fewer_axes, _plainer, _inside, smaller_sizes):
        for program in make(case.program):
            if program is not None:
                yield replace(case, program=program)


def _program(
    program: Program, params: tuple[Value, ...], nodes: tuple[Node, ...], results: tuple[Value, ...]
) -> Program:
    """The program of these nodes without what nobody needs, in values of its own."""
    nodes = alive(nodes, results)
    used = {v for n in nodes for v in n.operands} | set(results)
    body = copied(Region(tuple(p for p in params if p in used), nodes, results))
    return Program.of(program.name, body, program.mesh)


def _fewer_results(program: Program) -> Iterator[Program]:
    body = program.body
    if len(body.results) > 1:
        for result in body.results:
            yield _program(program, body.params, body.nodes, (result,))
        for i in range(len(body.results)):
            yield _program(program, body.params, body.nodes, body.results[:i] + body.results[i + 1 :])


def _cut(program: Program) -> Iterator[Program]:
    """A node's results become parameters; a node's operands become results."""
    body = program.body
    for i, node in reversed(list(enumerate(body.nodes))):
        fresh = {
            v: Value(v.type.bare, f"x{i}{chr(97 + k)}"[:1] + f"{200 + 10 * i + k}") for k, v in enumerate(node.results)
        }
        yield _substituted(program, {v: v for v in ()}, skip=i, extra=fresh)
    for node in reversed(body.nodes):
        if node.results and not set(node.results).isdisjoint(body.results) and node.operands:
            kept = tuple(v for v in body.results if v not in node.results)
            yield _program(program, body.params, body.nodes, (*dict.fromkeys((*kept, *node.operands)),))


def _bypassed(program: Program) -> Iterator[Program]:
    """A node of one result is left out where an operand is alike."""
    for i, node in enumerate(program.body.nodes):
        if len(node.results) == 1:
            like = next((v for v in node.operands if v.type.bare == node.result.type.bare), None)
            if like is not None:
                yield _substituted(program, {node.result: like}, skip=i)


def _substituted(
    program: Program, now: dict[Value, Value], skip: int, extra: dict[Value, Value] | None = None
) -> Program:
    body, now = program.body, {**now, **(extra or {})}

    def of(value: Value) -> Value:
        while value in now:
            value = now[value]
        return value

    nodes = tuple(
        Node(n.op, tuple(map(of, n.operands)), n.results, n.attrs, n.regions, n.loc)
        for i, n in enumerate(body.nodes)
        if i != skip
    )
    params = (*body.params, *(extra or {}).values())
    return _program(program, params, nodes, tuple(map(of, body.results)))


def _inlined(program: Program) -> Iterator[Program]:
    """A region's nodes in place of the node that holds it."""
    body = program.body
    for i, node in enumerate(body.nodes):
        for region in node.regions:
            for shift in (0, 1):
                inner = copied(region)
                operands = node.operands[shift:]
                same = [v.type.bare for v in operands] == [v.type.bare for v in inner.params]
                fits = [v.type.bare for v in inner.results] == [v.type.bare for v in node.results]
                if not (same and fits):
                    continue
                now = dict(zip(inner.params, operands, strict=True))
                now.update(zip(node.results, inner.results, strict=True))

                def of(value: Value, now: dict[Value, Value] = now) -> Value:
                    while value in now:
                        value = now[value]
                    return value

                moved = [*body.nodes[:i], *inner.nodes, *body.nodes[i + 1 :]]
                nodes = tuple(
                    Node(n.op, tuple(map(of, n.operands)), n.results, n.attrs, n.regions, n.loc) for n in moved
                )
                yield _program(program, body.params, nodes, tuple(map(of, body.results)))


def _inside(program: Program) -> Iterator[Program]:
    """Nodes of regions are bypassed."""
    body = program.body
    for i, node in enumerate(body.nodes):
        for k, region in enumerate(node.regions):
            whole = Program.of("r", region, program.mesh)
            for smaller in (*_bypassed(whole),):
                if len(smaller.body.params) != len(region.params):
                    continue
                regions = (*node.regions[:k], smaller.body, *node.regions[k + 1 :])
                changed = Node(node.op, node.operands, node.results, node.attrs, regions, node.loc)
                nodes = (*body.nodes[:i], changed, *body.nodes[i + 1 :])
                yield _program(program, body.params, nodes, body.results)


def _fewer_axes(program: Program) -> Iterator[Program | None]:
    """An axis of the mesh less, and no device order."""
    mesh = program.mesh
    if mesh is None:
        return
    if mesh.device_order is not None:
        yield _on(program, Mesh(mesh.axes))
    for name, size in mesh.axes:
        yield _on(program, Mesh([a for a in mesh.axes if a[0] != name]))
        for fewer in range(2, size):
            yield _on(program, Mesh([(n, fewer if n == name else s) for n, s in mesh.axes]))


def _on(program: Program, mesh: Mesh) -> Program | None:
    """The program on another mesh; None if its annotations, or per-device code, cannot go there."""
    if any(n.op.crossings is not None or n.op.has(Trait.COLLECTIVE) for n in program.body.walk()):
        return None
    try:
        return _mapped(program, lambda s: _moved(s, mesh), mesh)
    except GspmdError:
        return None


def _moved(sharding: Sharding, mesh: Mesh) -> Sharding:
    old, names = sharding.mesh, dict(mesh.axes)

    def kept(axes: tuple[Any, ...]) -> tuple[Any, ...]:
        found = [
            a for a in axes if a.name in names and (a.size == old.axis_size(a.name) or a.pre * a.size <= names[a.name])
        ]
        return tuple(mesh.axis(a.name) if a.size == old.axis_size(a.name) else a for a in found)

    dims = tuple(DimSharding(kept(d.axes), d.open, None, d.priority) for d in sharding.dims)
    return Sharding(mesh, dims, replicated=kept(sharding.replicated))


def _plainer(program: Program) -> Iterator[Program]:
    """An annotation less, or one with less in it."""
    body = program.body
    for i, p in enumerate(body.params):
        if p.type.sharding is not None:
            for sharding in (None, *_less(p.type.sharding)):
                fresh = Value(p.type.with_sharding(sharding), p.name)
                params = (*body.params[:i], fresh, *body.params[i + 1 :])
                nodes = tuple(
                    Node(n.op, tuple(fresh if v is p else v for v in n.operands), n.results, n.attrs, n.regions, n.loc)
                    for n in body.nodes
                )
                yield _program(program, params, nodes, tuple(fresh if v is p else v for v in body.results))
    for i, node in enumerate(body.nodes):
        sharding = getattr(node.attrs, "sharding", None)
        if isinstance(sharding, Sharding):
            for less in _less(sharding):
                attrs: Any = replace(node.attrs, sharding=less)  # type: ignore[call-arg]
                made = tuple(Value(v.type.with_sharding(less), v.name) for v in node.results)
                now = dict(zip(node.results, made, strict=True))
                nodes = [*body.nodes[:i], Node(node.op, node.operands, made, attrs, (), node.loc)]
                nodes += [
                    Node(n.op, tuple(now.get(v, v) for v in n.operands), n.results, n.attrs, n.regions, n.loc)
                    for n in body.nodes[i + 1 :]
                ]
                yield _program(program, body.params, tuple(nodes), tuple(now.get(v, v) for v in body.results))


def _less(sharding: Sharding) -> Iterator[Sharding]:
    if sharding.replicated:
        yield Sharding(sharding.mesh, sharding.dims)
    for d, dim in enumerate(sharding.dims):
        for smaller in (
            DimSharding(dim.axes[:-1], dim.open, None, dim.priority) if dim.axes else None,
            replace(dim, open=False) if dim.open else None,
            replace(dim, priority=0) if dim.priority else None,
        ):
            if smaller is not None:
                yield sharding.with_dims((*sharding.dims[:d], smaller, *sharding.dims[d + 1 :]))


def _mapped(program: Program, change: Callable[[Sharding], Sharding], mesh: Mesh) -> Program:
    """The program with every sharding changed."""

    def type_(t: TensorType) -> TensorType:
        return t if t.sharding is None else t.with_sharding(change(t.sharding))

    def attrs(a: Attrs) -> Attrs:
        held = {f.name: getattr(a, f.name) for f in fields(a)}
        changed = {k: change(v) for k, v in held.items() if isinstance(v, Sharding)}
        return replace(a, **changed) if changed else a

    def region(r: Region) -> Region:
        now = {p: Value(type_(p.type), p.name) for p in r.params}
        params = tuple(now.values())
        nodes: list[Node] = []
        for n in r.nodes:
            made = tuple(Value(type_(v.type), v.name) for v in n.results)
            nodes.append(
                Node(
                    n.op, tuple(now[v] for v in n.operands), made, attrs(n.attrs), tuple(map(region, n.regions)), n.loc
                )
            )
            now.update(zip(n.results, made, strict=True))
        return Region(params, tuple(nodes), tuple(now[v] for v in r.results))

    return Program.of(program.name, region(program.body), mesh)
