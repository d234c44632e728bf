"""A module of StableHLO as a program of ours.

Functions are put in place where they are called. What cannot be said in our language is collected, and told all at
once with its lines, once the whole module has been read; nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from gspmd.interop import (
    import_annotations,
    import_chlo,
    import_collective,
    import_control,
    import_custom,
    import_einsum,
    import_manual,
    import_marks,
    import_ops,
    import_ragged,
    import_reduce,
    import_scan,
    import_scatter,
    import_top_k,
)
from gspmd.interop.import_dense import blobs
from gspmd.interop.import_functions import Functions
from gspmd.interop.import_locations import Places, argument_name, value_name
from gspmd.interop.import_mlir import Source
from gspmd.interop.import_refusal import refusal
from gspmd.interop.import_scope import Bound, Poisoned, Scope, all_leaves, leaves, nest, one
from gspmd.interop.import_sharding import Shardings
from gspmd.interop.import_types import Dynamic, Unsupported, flat_types, nested_type
from gspmd.interop.import_visit import SHARDINGS, Handler, Visit, is_foreign
from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, UsageError
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import NO_FILE
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import SHARDING_CONSTRAINT, ShardingConstraintAttrs

_RETURNS = frozenset(("func.return", "stablehlo.return", "sdy.return"))
# Attributes of modules, functions, arguments and results that say nothing about values or shardings.
_HARMLESS_TEXT = (
    "arg_attrs function_type jax.arg_info jax.buffer_donor jax.global_constant jax.result_info "
    "jax.uses_shape_polymorphism mhlo.cross_program_prefetches mhlo.frontend_attributes mhlo.input_output_alias "
    "mhlo.is_dynamic mhlo.is_same_data_across_replicas mhlo.layout_mode mhlo.memory_kind mhlo.num_partitions "
    "mhlo.num_replicas mhlo.parameter_replication mhlo.spmd_output_sharding mhlo.spmd_parameters_shardings "
    "mhlo.use_auto_spmd_partitioning mhlo.xla_entry_computation_parameter_layouts "
    "mhlo.xla_entry_computation_parameter_tiles mhlo.xla_entry_computation_result_layout "
    "mhlo.xla_entry_computation_result_tiles no_inline res_attrs sym_name sym_visibility tf.aliasing_output"
)
_HARMLESS = frozenset(_HARMLESS_TEXT.split())
_SHOWN = 40  # problems in one message


@lru_cache(maxsize=1)
def _handlers() -> Mapping[str, Handler]:
    table: dict[str, Handler] = dict(import_ops.handlers())
    for part in (
        import_reduce,
        import_scatter,
        import_einsum,
        import_ragged,
        import_scan,
        import_control,
        import_annotations,
        import_manual,
        import_collective,
        import_custom,
        import_chlo,
        import_top_k,
    ):
        table |= part.HANDLERS
    return table


def accepted() -> frozenset[str]:
    """The names of all ops that can be imported, but for those that only give a module its structure."""
    return frozenset(_handlers())


class Importer:
    """One module on its way in."""

    def __init__(self, source: Source, mesh: Mesh | None) -> None:
        self.source = source
        self.places = Places(source)
        self.problems: dict[str, GspmdError] = {}
        self.functions = Functions(source.module.operation)
        self._handlers = _handlers()
        self._seed = 0
        self._resources: Mapping[str, str] = {}
        self._types: dict[Any, tuple[TensorType, ...]] = {}
        operation = source.module.operation
        for op in self.functions.others:
            self._problem(Unsupported(f"{op.name} outside of functions"), self.places.line_of(op.location))
        self._module_attributes(operation)
        devices = self.partitions = _number(operation, "mhlo.num_partitions") or 1
        replicas = _number(operation, "mhlo.num_replicas") or 1
        self.replicated = replicas > 1
        if self.replicated:
            mesh = Mesh({"replica": replicas})
            if devices > 1:
                self._problem(Unsupported(f"a program for {replicas} replicas of {devices} partitions each"), None)
        self.marked = False
        self.shardings = Shardings(source.module, mesh, devices if devices > 1 else None)
        if mesh is not None and self.replicated:
            self.shardings.manual = mesh.whole

    # -- the program ----------------------------------------------------------------------------------------------

    def program(self, function: str = "") -> Program:
        """The program of a function ("": main, the only public one, or the only one)."""
        name = self.functions.entry(function)
        op = self.functions[name]
        literals: dict[Value, NDArray[Any]] = {}
        scope = Scope(Builder(), literals)
        results: list[Value] = []
        try:
            arguments = self._arguments(scope, op)
            self.functions.enter(name)
            returned = self.block(scope, op.regions[0].blocks[0], arguments)
            results = self._returned(scope, op, returned)
        except Poisoned:
            pass
        except GspmdError as error:
            self._problem(error, self.places.line_of(op.location))
        self._raise()
        region = scope.region([], results)
        if self.marked:
            region = import_marks.outlined(region)
        if self.replicated and self.shardings.mesh is not None:
            region = import_manual.over_replicas(region, self.shardings.mesh)
        return Program.of(_program_name(self.source.module, name.rpartition("::")[2]), region, self.shardings.mesh)

    def _arguments(self, scope: Scope, op: Any) -> list[Bound | None]:
        """Parameters for the arguments of the entry function, with the shardings that they are annotated with."""
        if not len(op.regions[0].blocks):
            raise Unsupported("the function has no body")
        block = op.regions[0].blocks[0]
        attributes = list(op.attributes["arg_attrs"]) if "arg_attrs" in op.attributes else [None] * len(block.arguments)
        found: list[Bound | None] = []
        for i, (argument, held) in enumerate(zip(block.arguments, attributes, strict=True)):
            try:
                found.append(self._argument(scope, argument, held, i))
            except GspmdError as error:
                self._problem(error, self.places.line_of(argument.location))
                found.append(None)
        return found

    def _argument(self, scope: Scope, argument: Any, held: Any, number: int) -> Bound:
        type_ = nested_type(argument.type)
        types = flat_types([type_])
        shardings = self._declared(held, types, f"argument {number}")
        name = self._argument_name(argument.location) or f"arg{number}"
        values = [scope.builder.param(t.with_sharding(s), name) for t, s in zip(types, shardings, strict=True)]
        return nest(type_, iter(values))

    def _argument_name(self, location: Any) -> str:
        place = self.places.of(location)
        return argument_name(place.path) if place.path else self.places.argument_name(location)

    def _returned(self, scope: Scope, op: Any, returned: Sequence[Bound]) -> list[Value]:
        """The results, annotated where the function says how they come out."""
        return list(all_leaves(self._as_declared(scope, op, "res_attrs", returned)))

    def _as_declared(self, scope: Scope, op: Any, name: str, values: Sequence[Bound]) -> list[Bound]:
        """Arguments or results of a function, annotated where it says how they lie."""
        if name not in op.attributes:
            return list(values)
        what = "argument" if name == "arg_attrs" else "result"
        found: list[Bound] = []
        for i, (bound, held) in enumerate(zip(values, op.attributes[name], strict=True)):
            flat = leaves(bound)
            shardings = self._declared(held, [v.type for v in flat], f"{what} {i}")
            annotated = iter([_constrained(scope.builder, v, s) for v, s in zip(flat, shardings, strict=True)])
            found.append(_refilled(bound, annotated))
        return found

    def _declared(self, held: Any, types: Sequence[Any], where: str) -> list[Sharding | None]:
        """The shardings in the attributes of an argument or result."""
        nothing: list[Sharding | None] = [None] * len(types)
        if held is None:
            return nothing
        items = {item.name: item.attr for item in held}
        unknown = _unknown(items.keys() - SHARDINGS)
        if unknown:
            self._problem(Unsupported(f"{where} has attributes that are not known here: {', '.join(unknown)}"), None)
        if "sdy.sharding" in items:
            return [self.shardings.sdy(items["sdy.sharding"], t) for t in types]
        if "mhlo.sharding" in items:
            return self.shardings.hlo(items["mhlo.sharding"].value, types)
        return nothing

    # -- blocks and ops -------------------------------------------------------------------------------------------

    def block(self, scope: Scope, block: Any, arguments: Sequence[Bound | None] | None = None) -> list[Bound]:
        """Import a block into a scope; returns what it hands out. Without arguments it gets parameters."""
        if arguments is None:
            arguments = [self._parameter(scope, a) for a in block.arguments]
        for key, value in zip(block.arguments, arguments, strict=True):
            scope.bind(key, value)
        operations: list[Any] = [op.operation for op in block.operations]
        for op, after in zip(operations, [*operations[1:], None], strict=True):
            if op.name in _RETURNS:
                return [scope.find(v) for v in op.operands]
            self._op(scope, op, after)
        raise Unsupported("a block without a return")

    def _parameter(self, scope: Scope, argument: Any) -> Bound:
        """A parameter for the argument of a region's block; several for a tuple."""
        type_, name = nested_type(argument.type), self._argument_name(argument.location)
        return nest(type_, iter([scope.builder.param(t, name) for t in flat_types([type_])]))

    def _op(self, scope: Scope, op: Any, after: Any) -> None:
        location = op.location
        place = self.places.of(location)
        loc = place.loc or scope.builder.loc
        keys = list(op.results)
        path = f"{scope.path}/{place.path}" if scope.path else place.path
        v = Visit(self, scope, op, self._names(op, after, location, path, len(keys)), loc)
        v.path = path
        outer, scope.builder.loc = scope.builder.loc, loc
        try:
            handler = self._handlers.get(op.name) or import_custom.read_mhlo(op.name)
            if handler is None:
                raise refusal(op.name)
            results = handler(v)
            rest = v.unread()
            if rest:
                raise Unsupported(f"{op.name} has attributes that are not known here: {', '.join(rest)}")
            for key, value in zip(keys, results, strict=True):
                self._check(op.name, key.type, value)
            if not v.annotated:
                results = self._op_sharding(v, results)
            for key, value in zip(keys, results, strict=True):
                scope.bind(key, value)
        except (GspmdError, Poisoned) as error:
            if isinstance(error, GspmdError):
                self._problem(error, loc)
            for key in keys:
                scope.bind(key, None)
        finally:
            scope.builder.loc = outer

    def _check(self, name: str, mlir: Any, value: Bound) -> None:
        """A result must be of the type that the module says."""
        type_ = self._types.get(mlir)
        if type_ is None:
            type_ = self._types[mlir] = flat_types([nested_type(mlir)])
        found = tuple([x.type.bare for x in leaves(value)])
        if found != type_:
            told, wanted = (", ".join(t.text() for t in ts) for ts in (found, type_))
            raise Unsupported(f"{name} would give {told}, the module says {wanted}")

    def _names(self, op: Any, after: Any, location: Any, path: str, count: int) -> tuple[str, ...]:
        """What to call an op's results. Of several ops in a row that JAX made of one, the last bears the name."""
        if not path:
            return self.places.result_names(location, count)
        if op.name == "stablehlo.constant" or (after is not None and after.location == location):
            return ()
        return (value_name(path),) * count

    def _op_sharding(self, v: Visit, results: Sequence[Bound]) -> Sequence[Bound]:
        """An op's own sharding attribute annotates its results."""
        if v.has("sdy.sharding"):
            return self.annotated(v, results, "sdy.sharding")
        if not v.has("mhlo.sharding"):
            return results
        flat = import_control.check_flat(results)
        found = self.shardings.hlo(v.value("mhlo.sharding"), [x.type for x in flat])
        return [self.constrain(v, x, s) for x, s in zip(flat, found, strict=True)]

    def annotated(self, v: Visit, values: Sequence[Bound], name: str) -> Sequence[Bound]:
        """Values under the shardings of one of Shardy's per-value attributes, if the op has it."""
        if not v.has(name):
            return values
        flat = import_control.check_flat(values)
        found = self.shardings.sdy_each(v.attribute(name), [x.type for x in flat])
        return [self.constrain(v, x, s) for x, s in zip(flat, found, strict=True)]

    def constrain(self, v: Visit, x: Value, sharding: Sharding | None) -> Value:
        """The value annotated; itself if there is nothing to say."""
        return _constrained(v.builder, x, sharding, v.names[0] if v.names else "", v.loc)

    # -- functions ------------------------------------------------------------------------------------------------

    def call(self, v: Visit, name: str, arguments: Sequence[Bound]) -> list[Bound]:
        """The results of a function whose body is put here."""
        op = self.functions.enter(name)
        try:
            given = self._as_declared(v.scope, op, "arg_attrs", arguments)
            returned = self.block(v.scope.called(v.path), op.regions[0].blocks[0], given)
            return self._as_declared(v.scope, op, "res_attrs", returned)
        finally:
            self.functions.leave()

    def function_region(self, v: Visit, name: str) -> Region:
        """A function on scalars as a region."""
        op = self.functions.enter(name)
        try:
            scope = v.scope.inside(isolated=True)
            return scope.region([], [one(r) for r in self.block(scope, op.regions[0].blocks[0])])
        finally:
            self.functions.leave()

    def next_seed(self) -> int:
        """A number that no other random op of the program has."""
        self._seed += 1
        return self._seed

    def resources(self) -> Mapping[str, str]:
        """The bytes of resources in hexadecimal, by name; the module is printed once, as that takes long."""
        self._resources = self._resources or blobs(self.source.module.operation.get_asm())
        return self._resources

    def lacks_shapes(self, function: str) -> bool:
        """Whether shapes of the main function were not stated that may follow from those of its arguments."""
        missing = any(isinstance(error, Dynamic) for error in self.problems.values())
        return missing and self.functions.entry(function) == "main"

    # -- problems -------------------------------------------------------------------------------------------------

    def _module_attributes(self, operation: Any) -> None:
        names = _unknown(operation.attributes)
        if names:
            message = f"the module has attributes that are not known here: {', '.join(names)}"
            self._problem(Unsupported(message), None)

    def _problem(self, error: GspmdError, loc: Location | None) -> None:
        place = error.loc or loc
        line = f"{place.text()}: " if place is not None else ""
        self.problems.setdefault(f"{line}{error.rule}{': ' if error.rule else ''}{error.message}", error.at(loc))

    def _raise(self) -> None:
        """Raise one UsageError about all that could not be imported."""
        if not self.problems:
            return
        lines = [line.removeprefix(f"{NO_FILE}:") for line in self.problems]
        first = next(iter(self.problems.values()))
        if len(lines) == 1:
            raise UsageError(f"cannot import: {first.message}", rule=first.rule, loc=first.loc, fix=first.fix)
        more = [f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        listed = "".join(f"\n  {line}" for line in [*lines[:_SHOWN], *more])
        fixes = dict.fromkeys(e.fix for e in self.problems.values() if e.fix)
        raise UsageError(f"cannot import, for {len(lines)} reasons:{listed}", fix="; ".join(fixes))


def _constrained(
    builder: Builder, x: Value, sharding: Sharding | None, name: str = "", loc: Location | None = None
) -> Value:
    # A scalar has no dimension to split. Annotated, it would hide what a region combines and how often a loop runs.
    if sharding is None or not x.type.rank or x.type.sharding == sharding:
        return x
    attrs = ShardingConstraintAttrs(sharding)
    (value,) = SHARDING_CONSTRAINT.emit(builder, (x,), attrs, (), loc, name)
    return value


def _refilled(bound: Bound, values: Iterator[Value]) -> Bound:
    """The next values in the nesting of others."""
    return tuple(_refilled(b, values) for b in bound) if isinstance(bound, tuple) else next(values)


def _number(operation: Any, name: str) -> int | None:
    return int(operation.attributes[name].value) if name in operation.attributes else None


def _unknown(names: Iterable[str]) -> list[str]:
    """Which attributes of a module, function, argument or result may matter, and are not known here."""
    return sorted(name for name in names if name not in _HARMLESS and not is_foreign(name))


def _program_name(module: Any, function: str) -> str:
    """JAX names modules `jit_f`."""
    attributes = module.operation.attributes
    name = attributes["sym_name"].value if "sym_name" in attributes else function
    name = name.removeprefix("jit_")
    return name or function
