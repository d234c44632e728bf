"""Per-device code between XLA's pair of custom calls, SPMDFullToShardShape and SPMDShardToFullShape.

They say value by value, in the midst of automatic code, where per-device code begins and ends. Both are imported as
marks, and once a function is complete each connected piece between them becomes a manual computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from gspmd.interop.import_scope import Bound, one
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.axes import Axes, difference
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef, Types
from gspmd.ir.rewrite import alive
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.loop_gradient import copied
from gspmd.ops.manual import ManualAttrs, inner_type, manual_computation


@dataclass(frozen=True, slots=True)
class MarkAttrs(Attrs):
    """How the value outside is split, over which axes by hand inside only, and over which outside already."""

    sharding: Sharding
    axes: Axes
    around: Axes
    shape: ResultShape


def _mark_infer(types: Types, attrs: MarkAttrs, regions: tuple[Region, ...]) -> Types:
    return (TensorType(types[0].dtype, attrs.shape),)


_ENTER = OpDef("SPMDFullToShardShape", MarkAttrs, _mark_infer)
_LEAVE = OpDef("SPMDShardToFullShape", MarkAttrs, _mark_infer)


def full_to_shard(v: Visit) -> Sequence[Bound]:
    """Per-device code begins: the operand's annotation says how it is cut, the op's own along which axes by hand."""
    x = one(v.bound[0])
    mesh = _mesh(v)
    inside = Sharding.from_hlo(v.value("mhlo.sharding"), mesh, v.result.rank).manual
    around = _told(v, mesh, x.type.rank)
    axes = difference(inside, around)
    held = replace(x.type.sharding or Sharding.replicate(mesh, x.type.rank), manual=around)
    v.annotated = v.importer.marked = True
    v.read.add("backend_config")  # which dimensions are open: the annotation next to the call says so too
    v.importer.shardings.manual = inside
    wanted = inner_type(x.type, held, axes).shape
    if wanted != v.result.shape:
        raise Unsupported(f"the parts of {x.type.text()} have shape {list(wanted)}, not {list(v.result.shape)}")
    return v.emit(_ENTER, (x,), MarkAttrs(held, axes, around, ResultShape(v.result.shape)))


def shard_to_full(v: Visit) -> Sequence[Bound]:
    """Per-device code ends: the op's sharding says how parts make up the whole."""
    x = one(v.bound[0])
    mesh = _mesh(v)
    sharding = Sharding.from_hlo(v.value("mhlo.sharding"), mesh, v.result.rank)
    inside = _told(v, mesh, x.type.rank) or v.importer.shardings.manual
    v.annotated = v.importer.marked = True
    v.read.add("backend_config")
    attrs = MarkAttrs(
        sharding,
        difference(inside, sharding.manual),
        sharding.manual,
        ResultShape(v.result.shape),
    )
    return v.emit(_LEAVE, (x,), attrs)


def _told(v: Visit, mesh: Mesh, rank: int) -> Axes:
    """The manual axes of the operand, as the annotation that made it says."""
    attributes = getattr(v.op.operands[0].owner, "attributes", {})
    if "mhlo.sharding" not in attributes:
        return ()
    return Sharding.from_hlo(attributes["mhlo.sharding"].value, mesh, rank).manual


def _mesh(v: Visit) -> Mesh:
    mesh = v.importer.shardings.mesh
    return Mesh({}) if mesh is None else mesh


def outlined(region: Region) -> Region:
    """The region with what lies between marks put into manual computations, inner regions too."""
    nodes = [
        Node(n.op, n.operands, n.results, n.attrs, tuple(map(outlined, n.regions)), n.loc) if n.regions else n
        for n in region.nodes
    ]
    region = Region(region.params, tuple(nodes), region.results)
    # What lies within per-device code over other axes comes first: afterwards it is a node like others.
    for around in sorted({n.attrs.around for n in nodes if isinstance(n.attrs, MarkAttrs)}, key=len, reverse=True):
        region = _Outliner(region, around).run()
    return region


class _Outliner:
    """Makes a manual computation of each connected piece of per-device code, and puts everything in order again.

    What depends on no argument at all (constants, a device's own number) is made anew wherever it is read.
    """

    def __init__(self, region: Region, around: Axes) -> None:
        self.region = region
        self.around = around
        self.inside: set[Value] = set()
        self.closed: set[Value] = set()
        self.now: dict[Value, Value] = {}
        self.builder = Builder()

    def run(self) -> Region:
        """The region rewritten."""
        self.builder.params.extend(self.region.params)
        for unit in self._units():
            if len(unit) == 1 and not self._by_hand(unit[0]):
                (node,) = unit
                operands = tuple(self.now.get(v, v) for v in node.operands)
                self.builder.nodes.append(Node(node.op, operands, node.results, node.attrs, node.regions, node.loc))
            else:
                self._computation(unit)
        results = tuple(self.now.get(v, v) for v in self.region.results)
        return Region(self.region.params, alive(self.builder.nodes, results), results)

    def _marks(self, node: Node, *ops: OpDef[MarkAttrs]) -> bool:
        """Whether a node is one of the marks that are looked at now."""
        return node.op in ops and isinstance(node.attrs, MarkAttrs) and node.attrs.around == self.around

    def _by_hand(self, node: Node) -> bool:
        return self._marks(node, _ENTER, _LEAVE) or any(v in self.inside for v in node.operands)

    def _units(self) -> list[list[Node]]:
        """Nodes of automatic code one by one and pieces of per-device code, each after what it reads."""
        pieces: nx.utils.UnionFind[object] = nx.utils.UnionFind()
        for node in self.region.nodes:
            if node.op is not _LEAVE and self._by_hand(node):
                self.inside.update(node.results)
            elif node.op is not _LEAVE and all(v in self.closed for v in node.operands):
                self.closed.update(node.results)
            if self._by_hand(node):
                own = [v for v in node.results if node.op is not _LEAVE] + [
                    v for v in node.operands if v in self.inside
                ]
                pieces.union(node, *own)
        units: dict[object, list[Node]] = {}
        for node in self.region.nodes:
            units.setdefault(pieces[node] if self._by_hand(node) else node, []).append(node)
        maker = {v: unit for unit, nodes in units.items() for n in nodes for v in n.results}
        order = {unit: i for i, unit in enumerate(units)}
        graph: nx.DiGraph[object] = nx.DiGraph()
        graph.add_nodes_from(units)
        reads = ((unit, v) for unit, nodes in units.items() for n in nodes for v in n.operands if v in maker)
        graph.add_edges_from((maker[v], unit) for unit, v in reads if maker[v] is not unit)
        if not nx.is_directed_acyclic_graph(graph):
            raise Unsupported("per-device code reads what it left behind: its beginnings and ends do not nest")
        return [units[unit] for unit in nx.lexicographical_topological_sort(graph, key=order.__getitem__)]

    def _computation(self, nodes: Sequence[Node]) -> None:
        """Append a manual computation for a piece of per-device code."""
        enters, leaves = ([n for n in nodes if self._marks(n, op)] for op in (_ENTER, _LEAVE))
        body = [n for n in nodes if not self._marks(n, _ENTER, _LEAVE)]
        known = {v for n in (*enters, *body) for v in n.results}
        read = list(dict.fromkeys(v for n in (*body, *leaves) for v in n.operands if v not in known))
        copies, inner = self._copies([v for v in read if v in self.closed])
        captured = [v for v in read if v not in self.closed]
        inner |= {v: Value(v.type.bare, v.name) for v in captured}
        params = (*(n.result for n in enters), *(inner[v] for v in captured))
        moved = [
            Node(n.op, tuple(inner.get(v, v) for v in n.operands), n.results, n.attrs, n.regions, n.loc) for n in body
        ]
        results = tuple(inner.get(n.operands[0], n.operands[0]) for n in leaves)
        ins, outs = [n.attrs for n in enters], [n.attrs for n in leaves]
        first: Any = (*ins, *outs)[0]
        whole = [Sharding(first.sharding.mesh, (DimSharding(),) * v.type.rank, manual=first.around) for v in captured]
        attrs = ManualAttrs((*map(_sharding, ins), *whole), tuple(map(_sharding, outs)), first.axes)
        operands = [self.now.get(v, v) for v in (*(n.operands[0] for n in enters), *captured)]
        self.builder.loc = nodes[0].loc
        made = manual_computation(self.builder, operands, attrs, Region(params, (*copies, *moved), results))
        self.now.update((n.result, value) for n, value in zip(leaves, made, strict=True))

    def _copies(self, wanted: Iterable[Value]) -> tuple[list[Node], dict[Value, Value]]:
        """Copies of all that makes values which depend on no argument."""
        needed, order = set(wanted), list[Node]()
        for node in reversed(self.region.nodes):
            if not needed.isdisjoint(node.results) and node.results[0] in self.closed:
                order.append(node)
                needed.update(node.operands)
        copies: list[Node] = []
        inner: dict[Value, Value] = {}
        for node in reversed(order):
            results = tuple(Value(v.type.bare, v.name) for v in node.results)
            operands = tuple(inner[v] for v in node.operands)
            regions = tuple(map(copied, node.regions))
            copies.append(Node(node.op, operands, results, node.attrs, regions, node.loc))
            inner.update(zip(node.results, results, strict=True))
        return copies, inner


def _sharding(attrs: Attrs) -> Sharding:
    assert isinstance(attrs, MarkAttrs)
    return attrs.sharding
