"""Sharding completion: from a few annotations to a sharding of every value (paper section 3.5).

The result does not depend on the order in which ops are stored; propagation only refines, and annotations stay as they
are. `search.py` finds the shardings, here the program is read and written again.
"""

from __future__ import annotations

from dataclasses import replace

from gspmd.ir.axes import Axes
from gspmd.ir.collector import collector_paused
from gspmd.ir.errors import ShardingError, UsageError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType
from gspmd.propagation.network import Network, network_of
from gspmd.propagation.reasons import Reasons
from gspmd.propagation.search import Search
from gspmd.propagation.states import States


def propagate(program: Program) -> tuple[Program, Reasons]:
    """Give every value of an annotated program a sharding; returns the program at stage `propagated` and the reasons.

    Annotations are kept: closed dimensions exactly, open ones possibly refined; every dimension of the result is
    closed. What nothing is known of is replicated; a program without a mesh gets the mesh of one device. Raises
    UsageError for a program at another stage, ShardingError for annotations on another mesh than the program's.
    """
    if program.stage != "annotated":
        raise UsageError(
            f"propagation completes a program at stage annotated, {program.name} is at {program.stage}",
            fix="propagate once, before all other passes",
        )
    with collector_paused():
        return _propagate(program)


def _propagate(program: Program) -> tuple[Program, Reasons]:
    network = network_of(program)
    states = States(_mesh_of(program, network))
    initial = _initial(network, states)
    search = Search(network, states, initial)
    search.run()
    values = _values(network, states, search.state)
    new = dict(zip(network.values, values, strict=True))
    new.update((v, Value(v.type.with_sharding(values[n].type.sharding), v.name)) for v, n in network.aliases)
    result = _rebuild(program, new, states.mesh)
    reasons = Reasons(network, states, values, initial, search.state, search.applied, search.lost, search.levels)
    reasons.aliases.update((new[v], n) for v, n in network.aliases)
    return result, reasons


def _mesh_of(program: Program, network: Network) -> Mesh:
    """The program's mesh, checked against every annotation; the mesh of one device if there is none."""
    annotated = [(t, t.sharding) for t in network.types if t.sharding is not None]
    if program.mesh is None and not annotated:
        return Mesh({})
    mesh = program.mesh or annotated[0][1].mesh
    for type_, sharding in annotated:
        if sharding.mesh != mesh:
            raise ShardingError(
                f"a tensor is annotated on the mesh {sharding.mesh.text()}, the program is on {mesh.text()}",
                rule="propagation.C1",
                loc=next((n.loc for n in program.body.walk() if any(v.type == type_ for v in n.results)), None),
                fix="use one mesh in the whole program",
            )
    return mesh


def _initial(network: Network, states: States) -> list[int]:
    """The state of each value before anything is propagated."""
    by_type = [
        states.blank(t.shape) if t.sharding is None else states.number(t.shape, t.sharding) for t in network.types
    ]
    initial = [by_type[t] for t in network.type_of]
    inside: dict[tuple[int, Axes], int] = {}
    for value, axes in network.manual.items():
        key = (network.type_of[value], axes)
        if key not in inside:
            state = states.items[initial[value]]
            inside[key] = states.number(state.shape, replace(state.sharding, manual=axes))
        initial[value] = inside[key]
    return initial


def _values(network: Network, states: States, final: list[int]) -> list[Value]:
    """The values of the propagated program; equal types are one object."""
    types: dict[tuple[int, int], TensorType] = {}
    values: list[Value] = []
    for value, number, state in zip(network.values, network.type_of, final, strict=True):
        type_ = types.get((number, state))
        if type_ is None:
            old = network.types[number]
            type_ = TensorType(old.dtype, old.shape, states.items[state].sharding.settled())
            types[number, state] = type_
        values.append(Value(type_, value.name))
    return values


def _rebuild(program: Program, new: dict[Value, Value], mesh: Mesh) -> Program:
    """The same program over other values."""

    now = new.__getitem__

    def region(old: Region) -> Region:
        nodes: list[Node] = []
        for node in old.nodes:
            inner = tuple(map(region, node.regions)) if node.regions else ()
            operands, results = tuple(map(now, node.operands)), tuple(map(now, node.results))
            nodes.append(Node(node.op, operands, results, node.attrs, inner, node.loc))
        return Region(tuple(map(now, old.params)), tuple(nodes), tuple(map(now, old.results)))

    body = region(program.body)
    inputs, outputs = tuple([v.type for v in body.params]), tuple([v.type for v in body.results])
    return replace(program, body=body, mesh=mesh, stage="propagated", inputs=inputs, outputs=outputs)
