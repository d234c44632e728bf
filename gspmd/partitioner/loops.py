"""What a loop's body would send in every trip, sent once: before the loop, or behind it (paper section 4.2).

A value that every trip reads and none changes is held throughout as the body needs it. A sum that the body only adds to
stays unreduced until behind the loop. XLA moves such collectives out of loops after the fact; here the loop's carries
are held accordingly, so that propagation's shardings, the planner and the other passes know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gspmd.ir.axes import Axes, contains, overlaps
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import trips
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.partitioner.carried import CarriedSum, carried_sums, unchanged
from gspmd.partitioner.collectives import is_reshard
from gspmd.partitioner.planner import Plan, plan

Home = Mapping[Value, Sharding]
Groups = tuple[tuple[Value, ...], ...]

# How often a loop runs of which nothing is known.
_TRIPS = 8
# Bytes that a device may hold during a loop beyond what propagation's shardings ask for, to send less.
_ROOM = 1 << 28


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A region made explicit: how its values are held, which reshards of them there are, and whether it makes sums."""

    region: Region
    now: Mapping[Value, Value]
    needs: Sequence[tuple[Value, Sharding]]
    makes_sums: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """How the regions of a node are to be rewritten.

    `home`: how values are held at the node's places. `sums`: how steps of carried sums are held. `joining`: what goes
    into such sums, or is a step of one of which it is still to be found out how it is held. `steady`: what no trip
    changes, so that its reshards cost but once in `trips`. `room`: bytes that a device may yet hold to send less.
    """

    home: Home = field(default_factory=dict[Value, Sharding])
    sums: Home = field(default_factory=dict[Value, Sharding])
    joining: frozenset[Value] = frozenset()
    steady: frozenset[Value] = frozenset()
    trips: int = 1
    room: int = 0


Inside = Callable[[Setting], list[Rewritten]]
# What is sent outside of the loop, the setting, and the regions under it.
_Way = tuple[float, Setting, list[Rewritten]]


def arrange(
    node: Node, places: Node, groups: Groups, home: dict[Value, Sharding], inside: Inside
) -> tuple[dict[Value, Value], tuple[Region, ...]]:
    """The regions of a node of control flow, and which results are operands that it leaves as they are.

    `home` says how propagation would hold the values at the node's places, and is changed to how they are held.
    """
    setting = Setting(home, room=_ROOM)
    found = inside(setting)
    if not _sends(found):
        return {}, _regions(found)
    times = trips(node) or _TRIPS
    kept = unchanged(places, groups, node.regions)
    ways = [(0.0, setting, found)]
    ways += _with_steady(setting, inside, kept, times)
    if any(r.makes_sums for r in found) and (sums := carried_sums(places, groups, node.regions)):
        ways += [way for outside, within, _ in list(ways) for way in _with_sums(outside, within, inside, sums)]
    _, setting, found = min(ways, key=lambda way: way[0] + times * _cost(way[2]))
    home.update(setting.home)
    at = dict(zip(places.operands, node.operands, strict=True))
    same = {v: at[u] for group in kept if setting.steady for v in group if v in node.results for u in group if u in at}
    return same, _regions(found)


def held_unreduced(home: Sharding, axes: Axes) -> Sharding | None:
    """A sharding that is unreduced over axes, dimensions split over them left whole; None if split over others too."""
    dims = list(home.dims)
    for d, dim in enumerate(dims):
        if overlaps(dim.axes, axes):
            if not all(contains(axes, a) for a in dim.axes):
                return None
            dims[d] = DimSharding()
    return home.with_dims(tuple(dims)).with_unreduced(axes, "add")


def _with_steady(setting: Setting, inside: Inside, kept: list[tuple[Value, ...]], times: int) -> list[_Way]:
    """Values that no trip changes, held as the body reads them."""
    steady = frozenset(v for group in kept for v in group if setting.home[v].used)
    if not steady:
        return []
    trial = inside(replace(setting, steady=steady, trips=times))
    held: dict[Value, Sharding] = {}
    before, room = 0.0, setting.room
    for group in kept:
        now = setting.home[group[0]]
        need = _read_as(group, trial, now)
        more = _held_bytes(group[0], need) - _held_bytes(group[0], now)
        if need != now and more <= room:
            room -= more
            held.update(dict.fromkeys(group, need))
            before += _between(group[0], now, need).cost
    after = replace(setting, home={**setting.home, **held}, steady=steady, trips=times, room=room)
    return [(before, after, inside(after))]


def _read_as(group: tuple[Value, ...], found: list[Rewritten], now: Sharding) -> Sharding:
    """How an unchanged value is best held: so that every reader has it without communication, if that can be."""
    members = set(group)
    needs = [need for r in found for v, need in r.needs if v in members and not need.unreduced]
    free = (n for n in needs if all(_between(group[0], n, other).wire_bytes == 0 for other in (*needs, now)))
    return next(free, now)


def _with_sums(outside: float, setting: Setting, inside: Inside, sums: list[CarriedSum]) -> list[_Way]:
    """Sums unreduced, where all that is added to them comes so."""
    feeders = frozenset(v for sum_ in sums for v in sum_.feeders)
    trial = inside(replace(setting, joining=feeders.union(*(sum_.steps for sum_ in sums))))
    held: dict[Value, Sharding] = {}
    steps: dict[Value, Sharding] = {}
    feeding: set[Value] = set()
    room = setting.room
    for sum_ in sums:
        at = setting.home[sum_.members[0]]
        axes = _common_axes([r.now[v].type.placed for r in trial for v in sum_.added if v in r.now])
        unreduced = held_unreduced(at, axes) if axes else None
        more = 0 if unreduced is None else _held_bytes(sum_.members[0], unreduced) - _held_bytes(sum_.members[0], at)
        if unreduced is not None and more <= room:
            room -= more
            held.update(dict.fromkeys(sum_.members, unreduced))
            steps.update(dict.fromkeys(sum_.steps, unreduced))
            feeding |= sum_.feeders
            outside += _between(sum_.members[0], at, unreduced).cost + _between(sum_.members[0], unreduced, at).cost
    after = replace(setting, home={**setting.home, **held}, sums=steps, joining=frozenset(feeding))
    found = inside(after) if held else []
    kept = all(r.now[v].type.sharding == s for v, s in steps.items() for r in found if v in r.now)
    return [(outside, after, found)] if held and kept else []


def _common_axes(added: list[Sharding]) -> Axes:
    """The axes over which all that joins a sum arrives unreduced; none if they differ."""
    first = added[0]
    return first.unreduced if first.monoid == "add" and all(s.unreduced == first.unreduced for s in added) else ()


def _held_bytes(value: Value, sharding: Sharding) -> int:
    return value.type.with_sharding(sharding).local.nbytes


def _between(value: Value, source: Sharding, target: Sharding) -> Plan:
    return plan(value.type.shape, value.type.dtype.itemsize, source, target)


def _sends(found: list[Rewritten]) -> bool:
    return any(is_reshard(node) for r in found for node in r.region.walk())


def _cost(found: list[Rewritten]) -> float:
    return _region_cost(_regions(found))


def _region_cost(regions: tuple[Region, ...]) -> float:
    """What the reshards of regions cost, those of inner loops as often as they run."""
    total = 0.0
    for node in (n for region in regions for n in region.nodes):
        if is_reshard(node):
            x, y = node.operands[0], node.result
            total += _between(x, x.type.placed, y.type.placed).cost
        elif node.regions:
            total += (trips(node) or 1) * _region_cost(node.regions)
    return total


def _regions(found: list[Rewritten]) -> tuple[Region, ...]:
    return tuple(r.region for r in found)
