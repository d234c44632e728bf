"""Per-device code in a traced program: `shard_map`, and the collectives that it may use (as in JAX; paper section 3.4).

Inside, a function sees one device's part of each array along the manual axes of the mesh, and exchanges data only where
it says so. What it uses from outside is replicated along these axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, cast

from gspmd.frontend.annotate import Entry, sharding_of_entries
from gspmd.frontend.numpy_core import lift
from gspmd.frontend.regions import captures_of, draft, lift_tree
from gspmd.frontend.scope import current_scope, trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.frontend.tree import TreeDef, tree_map
from gspmd.ir.axes import Axes, difference, overlaps, parts
from gspmd.ir.errors import GspmdError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef
from gspmd.ir.sharding import Sharding
from gspmd.ops.collective import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, AXIS_INDEX, COLLECTIVE_PERMUTE, REDUCE_SCATTER
from gspmd.ops.manual import ManualAttrs, inner_type, manual_computation

AxisNames = str | Sequence[str]


class PartitionSpec:
    """How manual axes split an array: for each dimension None, "data" or ("data", "model"); others are whole."""

    __slots__ = ("entries",)

    def __init__(self, *entries: Entry) -> None:
        self.entries = entries

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self.entries))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)


def shard_map(
    function: Callable[..., Any],
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    axes: AxisNames | None = None,
) -> Callable[..., Any]:
    """A function of whole arrays that runs `function` on every device's parts of them.

    `in_specs` is one `PartitionSpec` for all arguments or a sequence with one for each; `out_specs` one for all results
    or a nesting like that of the results. A spec stands for everything below it in a nesting. `axes` are the manual
    axes, all of the mesh by default; the compiler keeps splitting over the others. Results that no spec splits over a
    manual axis must be the same along it. Raises TraceError or ShardingError at the user's line where specs do not fit
    the arrays, a dimension does not divide evenly, or an axis is manual already.
    """

    @wraps(function)
    def run(*args: Any) -> Any:
        scope = current_scope()
        loc = user_location()
        manual = _axes_of(mesh, mesh.axis_names if axes is None else axes)
        if overlaps(manual, scope.manual):
            raise trace_error("an axis is manual already: shard_map within a shard_map of it", rule="shard_map.C1")
        scope.state.use_mesh(mesh, loc)
        given, tree = lift_tree(args)
        ins = [
            _sharding(spec, x.ndim, mesh, manual)
            for spec, x in zip(_spread(in_specs, tree, "in_specs"), given, strict=True)
        ]
        try:
            types = [inner_type(x.type, s, manual) for x, s in zip(given, ins, strict=True)]
        except GspmdError as error:
            raise error.at(loc) from None
        inner = draft(lambda xs: function(*tree.unflatten(xs)), types, manual)
        outs = [
            _sharding(spec, len(v.type.shape), mesh, manual)
            for spec, v in zip(_spread(out_specs, inner.tree, "out_specs"), inner.results, strict=True)
        ]
        captures = captures_of(inner)
        whole = [Sharding.replicate(mesh, v.type.rank) for v in captures]
        attrs = ManualAttrs(_within((*ins, *whole), manual), _within(outs, manual), manual)
        operands = [*(scope.held(x.value, x.scope) for x in given), *captures]
        scope.builder.loc = loc
        results = manual_computation(scope.builder, operands, attrs, inner.closed(captures))
        return inner.tree.unflatten([Tracer(v, scope) for v in results])

    return run


def _sharding(spec: PartitionSpec, rank: int, mesh: Mesh, manual: Axes) -> Sharding:
    entries = spec.entries
    if len(entries) > rank:
        raise trace_error(
            f"{spec} has {len(entries)} entries for an array of {rank} dimensions",
            rule="shard_map.C2",
            fix="give at most one entry per dimension",
        )
    sharding = sharding_of_entries(rank, mesh, (*entries, *(None,) * (rank - len(entries))))
    names = {a.name for a in manual}
    odd = next((a for a in sharding.used if a.name not in names), None)
    if odd is not None:
        raise trace_error(
            f"{spec} splits over {odd.name}, which is not one of the manual axes {', '.join(sorted(names))}",
            rule="shard_map.C3",
            fix="name it in `axes`, or annotate the value with gspmd.shard outside or inside",
        )
    return sharding


def _within(shardings: Sequence[Sharding], manual: Axes) -> tuple[Sharding, ...]:
    """As the code around holds the values: dimensions are open to the axes that are left to the compiler."""
    around = current_scope().manual
    return tuple(
        replace(s.opened() if difference(s.mesh.whole, (*around, *manual)) else s, manual=around) for s in shardings
    )


def _spread(specs: Any, tree: TreeDef, what: str) -> list[PartitionSpec]:
    """The spec of each leaf: one in the specs stands for all leaves below it."""
    if specs is None:
        return [PartitionSpec()] * tree.size
    if isinstance(specs, PartitionSpec):
        return [specs] * tree.size
    children = cast("dict[Any, Any]", specs) if isinstance(specs, dict) else None
    items = list(cast("Sequence[Any]", specs)) if isinstance(specs, (tuple, list)) else []
    unlike = children is None and (tree.container is dict or len(items) != len(tree.children))
    if tree.container is None or unlike:
        raise trace_error(
            f"{what} {specs!r} do not fit {tree.text()}",
            rule="shard_map.C2",
            fix="give one gspmd.PartitionSpec, or a nesting of them like that of the arrays",
        )
    if children is not None:
        if set(children) != set(tree.keys):
            keys = f"{what} have the keys {list(children)}, the arrays {list(tree.keys)}"
            raise trace_error(keys, rule="shard_map.C2")
        items = [children[key] for key in tree.keys]
    return [leaf for item, child in zip(items, tree.children, strict=True) for leaf in _spread(item, child, what)]


# -- collectives -----------------------------------------------------------------------------------------------------


def _manual_axes(axes: AxisNames, what: str) -> Axes:
    """The named axes, major to minor; raises TraceError unless they are manual here."""
    names = (axes,) if isinstance(axes, str) else tuple(axes)
    scope = current_scope()
    here = {a.name: a for a in scope.manual}
    _check_distinct(names, what)
    odd = next((n for n in names if n not in here), None)
    if odd is not None:
        raise trace_error(
            f"{what} works along the axis {odd!r}, which is not manual here"
            + (f" (manual are {', '.join(here)})" if here else ""),
            rule="collective.C1",
            fix="call it in a function given to gspmd.shard_map, along one of its axes",
        )
    return tuple(here[n] for n in names)


def _axes_of(mesh: Mesh, axes: AxisNames) -> Axes:
    names = (axes,) if isinstance(axes, str) else tuple(axes)
    _check_distinct(names, "shard_map")
    try:
        return tuple(map(mesh.axis, names))
    except GspmdError as error:
        raise error.at(user_location()) from None


def _check_distinct(names: Sequence[str], what: str) -> None:
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise trace_error(f"{what} names the axis {twice!r} twice", rule="collective.C4")


def _dim(dim: int, x: Tracer, what: str) -> int:
    if not -x.ndim <= dim < x.ndim:
        raise trace_error(f"{what} along dim {dim} of {x.type.bare.text()}", rule="collective.C2")
    return dim % x.ndim


def _each(x: Any, op: OpDef[Any], **attrs: Any) -> Any:
    def one(leaf: Any) -> Tracer:
        return emit(op, lift(leaf), **attrs)

    return tree_map(one, x)


def axis_size(axes: AxisNames) -> int:
    """The number of devices along manual axes, a Python number."""
    return parts(_manual_axes(axes, "axis_size"))


def axis_index(axes: AxisNames) -> Tracer:
    """This device's number along manual axes (of several, major to minor), an i32 scalar."""
    return emit(AXIS_INDEX, axes=_manual_axes(axes, "axis_index"))


def all_reduce(x: Any, axes: AxisNames, op: str = "add") -> Any:
    """The combination of all devices' arrays, position by position: op is add, mul, max, min, and, or, xor.

    Takes an array or a nesting of arrays.
    """
    return _each(x, ALL_REDUCE, axes=_manual_axes(axes, "all_reduce"), monoid=op)


def all_gather(x: ArrayLike, axes: AxisNames, dim: int = 0) -> Tracer:
    """All devices' arrays one after the other along a dimension."""
    value = lift(x)
    return emit(ALL_GATHER, value, dim=_dim(dim, value, "all_gather"), axes=_manual_axes(axes, "all_gather"))


def reduce_scatter(x: ArrayLike, axes: AxisNames, dim: int = 0, op: str = "add") -> Tracer:
    """This device's part, along a dimension, of the combination of all devices' arrays."""
    value = lift(x)
    over = _manual_axes(axes, "reduce_scatter")
    return emit(REDUCE_SCATTER, value, dim=_dim(dim, value, "reduce_scatter"), axes=over, monoid=op)


def all_to_all(x: ArrayLike, axes: AxisNames, split_dim: int, concat_dim: int) -> Tracer:
    """Cut the array along split_dim, send part i to device i, and join what comes along concat_dim."""
    value = lift(x)
    a, b = _dim(split_dim, value, "all_to_all"), _dim(concat_dim, value, "all_to_all")
    return emit(ALL_TO_ALL, value, from_dim=b, to_dim=a, axes=_manual_axes(axes, "all_to_all"))


def collective_permute(x: Any, axes: AxisNames, pairs: Sequence[tuple[int, int]]) -> Any:
    """Send along pairs (source, destination) of device numbers; who receives nothing has zeros.

    Takes an array or a nesting of arrays.
    """
    over = _manual_axes(axes, "collective_permute")
    sent = tuple((int(s), int(d)) for s, d in pairs)
    return _each(x, COLLECTIVE_PERMUTE, source=over, target=over, pairs=sent)
