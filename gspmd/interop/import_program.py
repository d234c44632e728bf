"""A module of StableHLO as a program of ours.

Functions are put in place where they are called. What cannot be said in our language is collected, and told all at
once with its lines, once the whole module has been read; nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from gspmd.interop import import_annotations, import_chlo, import_control, import_custom, import_ops, import_reduce
from gspmd.interop.import_locations import Places, argument_name, value_name
from gspmd.interop.import_mlir import Source
from gspmd.interop.import_refusal import why_not
from gspmd.interop.import_scope import Bound, Poisoned, Scope, leaves, one
from gspmd.interop.import_sharding import Shardings
from gspmd.interop.import_types import Nested, Unsupported, flat_types, nested_type
from gspmd.interop.import_visit import SHARDINGS, Handler, Visit
from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, ParseError, UsageError
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import NO_FILE
from gspmd.ir.sharding import Sharding
from gspmd.ops.annotate import SHARDING_CONSTRAINT, ShardingConstraintAttrs

_RETURNS = frozenset(("func.return", "stablehlo.return", "sdy.return"))
# Attributes of modules, functions, arguments and results that say nothing about values or shardings.
_HARMLESS_TEXT = (
    "arg_attrs function_type jax.arg_info jax.buffer_donor jax.result_info jax.uses_shape_polymorphism "
    "mhlo.layout_mode mhlo.memory_kind mhlo.num_partitions mhlo.num_replicas mhlo.input_output_alias no_inline "
    "mhlo.is_dynamic mhlo.use_auto_spmd_partitioning mhlo.xla_entry_computation_parameter_layouts "
    "mhlo.xla_entry_computation_result_layout mhlo.spmd_output_sharding mhlo.spmd_parameters_shardings "
    "mhlo.frontend_attributes res_attrs sym_name sym_visibility tf.aliasing_output jax.global_constant"
)
_HARMLESS = frozenset(_HARMLESS_TEXT.split())
_SHOWN = 40  # problems in one message


@lru_cache(maxsize=1)
def _handlers() -> Mapping[str, Handler]:
    table: dict[str, Handler] = dict(import_ops.handlers())
    for part in (import_reduce, import_control, import_annotations, import_custom, import_chlo):
        table |= part.HANDLERS
    return table


class Importer:
    """One module on its way in."""

    def __init__(self, source: Source, mesh: Mesh | None) -> None:
        self.source = source
        self.places = Places(source)
        self.problems: dict[str, GspmdError] = {}
        self.functions: dict[str, Any] = {}
        self._handlers = _handlers()
        self._calls: list[str] = []
        self._seed = 0
        operation = source.module.operation
        for op in source.module.body.operations:
            if op.operation.name == "func.func":
                self.functions[op.operation.attributes["sym_name"].value] = op.operation
            elif op.operation.name != "sdy.mesh":
                self._problem(
                    Unsupported(f"{op.operation.name} outside of functions"), self.places.line_of(op.location)
                )
        self._module_attributes(operation)
        devices = _number(operation, "mhlo.num_partitions")
        self.shardings = Shardings(source.module, mesh, devices if devices and devices > 1 else None)

    # -- the program ----------------------------------------------------------------------------------------------

    def program(self, function: str = "") -> Program:
        """The program of a function ("": main, the only public one, or the only one)."""
        name = self._entry(function)
        op = self.functions[name]
        literals: dict[Value, NDArray[Any]] = {}
        scope = Scope(Builder(), literals)
        results: list[Value] = []
        try:
            arguments = self._arguments(scope, op)
            self._calls.append(name)
            returned = self.block(scope, op.regions[0].blocks[0], arguments)
            results = self._returned(scope, op, returned)
        except Poisoned:
            pass
        except GspmdError as error:
            self._problem(error, self.places.line_of(op.location))
        self._raise()
        region = scope.region([], results)
        return Program.of(_program_name(self.source.module, name), region, self.shardings.mesh)

    def _entry(self, wanted: str) -> str:
        if wanted or not self.functions:
            if wanted in self.functions:
                return wanted
            raise ParseError(
                f"the module has no function {wanted}" if wanted else "the module holds no function",
                fix=f"it has {', '.join(self.functions)}" if self.functions else "",
            )
        if "main" in self.functions:
            return "main"
        candidates = [n for n, op in self.functions.items() if not _is_private(op)] or list(self.functions)
        if len(candidates) > 1:
            raise UsageError(
                f"the module has several functions: {', '.join(candidates)}", fix="say which one with function="
            )
        return candidates[0]

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
        return _nest(type_, iter(values))

    def _argument_name(self, location: Any) -> str:
        place = self.places.of(location)
        return argument_name(place.path) if place.path else self.places.argument_name(location)

    def _returned(self, scope: Scope, op: Any, returned: Sequence[Bound]) -> list[Value]:
        """The results, annotated where the function says how they come out."""
        attributes = list(op.attributes["res_attrs"]) if "res_attrs" in op.attributes else [None] * len(returned)
        results: list[Value] = []
        for i, (bound, held) in enumerate(zip(returned, attributes, strict=True)):
            values = list(leaves(bound))
            shardings = self._declared(held, [v.type for v in values], f"result {i}")
            results += [_constrained(scope.builder, v, s) for v, s in zip(values, shardings, strict=True)]
        return results

    def _declared(self, held: Any, types: Sequence[Any], where: str) -> list[Sharding | None]:
        """The shardings in the attributes of an argument or result."""
        nothing: list[Sharding | None] = [None] * len(types)
        if held is None:
            return nothing
        items = {item.name: item.attr for item in held}
        unknown = sorted(items.keys() - _HARMLESS - SHARDINGS)
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
            arguments = [
                scope.builder.param(one_type(nested_type(a.type)), self._argument_name(a.location))
                for a in block.arguments
            ]
        for key, value in zip(block.arguments, arguments, strict=True):
            scope.bind(key, value)
        operations: list[Any] = [op.operation for op in block.operations]
        for op, after in zip(operations, [*operations[1:], None], strict=True):
            if op.name in _RETURNS:
                return [scope.find(v) for v in op.operands]
            self._op(scope, op, after)
        raise Unsupported("a block without a return")

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
            handler = self._handlers.get(op.name)
            if handler is None:
                raise Unsupported(why_not(op.name))
            results = handler(v)
            rest = v.unread()
            if rest:
                raise Unsupported(f"{op.name} has attributes that are not known here: {', '.join(rest)}")
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
        op = self.functions.get(name)
        if op is None or not len(op.regions[0].blocks):
            raise Unsupported(f"the function {name} is not in the module")
        if name in self._calls:
            raise Unsupported(f"the function {name} calls itself")
        self._calls.append(name)
        try:
            return self.block(v.scope.called(v.path), op.regions[0].blocks[0], arguments)
        finally:
            self._calls.pop()

    def function_region(self, v: Visit, name: str) -> Region:
        """A function on scalars as a region."""
        op = self.functions.get(name)
        if op is None:
            raise Unsupported(f"the function {name} is not in the module")
        scope = v.scope.inside(isolated=True)
        return scope.region([], [one(r) for r in self.block(scope, op.regions[0].blocks[0])])

    def next_seed(self) -> int:
        """A number that no other random op of the program has."""
        self._seed += 1
        return self._seed

    def resources(self) -> str:
        """The text that holds the bytes of resources."""
        return self.source.module.operation.get_asm()

    # -- problems -------------------------------------------------------------------------------------------------

    def _module_attributes(self, operation: Any) -> None:
        names = {name for name in operation.attributes if name not in _HARMLESS and name != "sym_name"}
        if names:
            message = f"the module has attributes that are not known here: {', '.join(sorted(names))}"
            self._problem(Unsupported(message), None)
        if (_number(operation, "mhlo.num_replicas") or 1) > 1:
            self._problem(Unsupported("a program for several replicas: only partitions are known here"), None)

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


def one_type(type_: Nested) -> Any:
    """A type that is no tuple."""
    if isinstance(type_, tuple):
        raise Unsupported("a tuple as the parameter of a region")
    return type_


def _nest(type_: Nested, values: Any) -> Bound:
    return tuple(_nest(t, values) for t in type_) if isinstance(type_, tuple) else next(values)


def _constrained(
    builder: Builder, x: Value, sharding: Sharding | None, name: str = "", loc: Location | None = None
) -> Value:
    if sharding is None or x.type.sharding == sharding:
        return x
    attrs = ShardingConstraintAttrs(sharding)
    (value,) = SHARDING_CONSTRAINT.emit(builder, (x,), attrs, (), loc, name)
    return value


def _number(operation: Any, name: str) -> int | None:
    return int(operation.attributes[name].value) if name in operation.attributes else None


def _is_private(function: Any) -> bool:
    attributes = function.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"


def _program_name(module: Any, function: str) -> str:
    """JAX names modules `jit_f`."""
    attributes = module.operation.attributes
    name = attributes["sym_name"].value if "sym_name" in attributes else function
    name = name.removeprefix("jit_")
    return name or function


def import_module(source: Source, mesh: Mesh | None = None, function: str = "") -> Program:
    """The program of a parsed module; raises UsageError about everything in it that is not supported."""
    return Importer(source, mesh).program(function)
