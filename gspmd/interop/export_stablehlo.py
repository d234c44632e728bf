"""Programs as StableHLO text, with GSPMD's annotations, for XLA and everything else that reads StableHLO.

Arguments and results carry `mhlo.sharding`, annotations become `@Sharding` custom calls: what jax writes for XLA's
partitioner. Everything is in MLIR's generic form, which jaxlib parses and prints in the pretty one. Two things differ
from our IR: StableHLO's reductions and scatters take their combination as a region, and its branches read the values
around them where ours are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gspmd.interop.stablehlo_text import attributes_of, constant_text, integers, type_text
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import identity
from gspmd.ops.annotate import ShardingConstraintAttrs
from gspmd.ops.indexing import ScatterAttrs
from gspmd.ops.reduce import CUSTOM, ReduceAttrs

_STAGES = ("annotated", "propagated")
# Ops that StableHLO has under our names, with attributes and regions as ours or as `stablehlo_text` writes them.
_PLAIN = frozenset(
    (
        *("negate", "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "compare", "select"),
        *("clamp", "and", "or", "xor", "not", "popcnt", "count_leading_zeros", "shift_left", "shift_right_arithmetic"),
        *("shift_right_logical", "convert", "reduce_precision", "complex", "real", "imag", "abs", "sign", "ceil"),
        *("floor", "round_nearest_afz", "round_nearest_even", "is_finite", "cbrt", "cosine", "sine", "tan", "tanh"),
        *("exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sqrt", "power", "atan2"),
        *("constant", "iota", "broadcast_in_dim", "reshape", "transpose", "dot_general", "slice", "pad", "concatenate"),
        *("reverse", "dynamic_slice", "dynamic_update_slice", "gather", "while", "optimization_barrier"),
    )
)
# Ops of its companion dialect, which XLA takes as well.
_CHLO = frozenset(("erf", "erfc", "erf_inv", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"))
_COMBINATIONS = {
    "add": "add",
    "mul": "multiply",
    "max": "maximum",
    "min": "minimum",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def export_stablehlo(program: Program) -> str:
    """The text of a StableHLO module for a program at stage annotated or propagated, of ops that `exports` names.

    Shardings stand on arguments and results as the program's signature has them. Raises UsageError for a program at a
    later stage or with other ops, ShardingError for a sharding that XLA cannot express.
    """
    if program.stage not in _STAGES:
        raise UsageError(
            f"a program at stage {program.stage} is partitioned already, and so no program for XLA to partition",
            fix="export it at stage annotated or propagated",
        )
    writer = _Writer()
    names = [writer.fresh(v) for v in program.body.params]
    arguments = ", ".join(
        f"{name}: {type_text(t)}{_sharding_attribute(t)}" for name, t in zip(names, program.inputs, strict=True)
    )
    results = ", ".join(f"{type_text(t)}{_sharding_attribute(t)}" for t in program.outputs)
    writer.indent = 2
    writer.nodes(program.body)
    returned = ", ".join(writer.names[v] for v in program.body.results)
    types = ", ".join(type_text(v.type) for v in program.body.results)
    devices = 1 if program.mesh is None else program.mesh.size
    head = f"module @{program.name} attributes {{mhlo.num_partitions = {devices} : i32}} {{\n"
    head += f"  func.func public @main({arguments}) -> ({results}) {{\n"
    last = f"    return {returned} : {types}\n" if returned else "    return\n"
    return f"{head}{writer.text()}{last}  }}\n}}\n"


def _sharding_attribute(type_: TensorType) -> str:
    if type_.sharding is None:
        return ""
    return f' {{mhlo.sharding = "{_hlo(type_.sharding, type_.shape)}"}}'


def _hlo(sharding: Sharding, shape: tuple[int, ...]) -> str:
    return sharding.normal(shape).to_hlo()


class _Writer:
    """Collects the lines of a function; `names` tells what each value is called."""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.lines: list[str] = []
        self.indent = 0
        self.count = 0

    def text(self) -> str:
        """The lines so far."""
        return "".join(f"{line}\n" for line in self.lines)

    def fresh(self, *values: Value) -> str:
        """A new name for the results of one op, `%3` or `%3:2`."""
        name = f"%{self.count}"
        self.count += 1
        for i, value in enumerate(values):
            self.names[value] = name if len(values) == 1 else f"{name}#{i}"
        return name if len(values) <= 1 else f"{name}:{len(values)}"

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.indent + text)

    def nodes(self, region: Region) -> None:
        """Append the ops of a region whose parameters have names."""
        for node in region.nodes:
            _SPECIAL.get(node.op.name, _Writer.plain)(self, node)

    def plain(self, node: Node) -> None:
        """An op that StableHLO has as it is, with regions as they are; UsageError for any other."""
        if not exports(node.op.name):
            raise UsageError(f"{node.op.name} cannot be written as StableHLO", rule="export.C1").at(node.loc)
        operands = [self.names[v] for v in node.operands]
        types = tuple(v.type for v in node.operands)
        self.op(_name(node), operands, types, node.results, attributes_of(node.attrs, types), node.regions)

    def op(
        self,
        name: str,
        operands: Sequence[str],
        types: Sequence[TensorType],
        results: Sequence[Value],
        attributes: Mapping[str, str] | None = None,
        regions: Sequence[Region | Callable[[], None]] = (),
    ) -> None:
        """Append one op in generic form; a region is one of ours, or writes itself."""
        target = f"{self.fresh(*results)} = " if results else ""
        signature = f"({', '.join(map(type_text, types))}) -> ({', '.join(type_text(v.type) for v in results)})"
        shown = ", ".join(f"{k} = {v}" for k, v in (attributes or {}).items())
        head = f'{target}"{name}"({", ".join(operands)})'
        tail = f"{f' {{{shown}}}' if shown else ''} : {signature}"
        if not regions:
            self.line(head + tail)
            return
        self.line(head + " ({")
        for i, region in enumerate(regions):
            if i:
                self.line("}, {")
            self.indent += 1
            self.block(region) if isinstance(region, Region) else region()
            self.indent -= 1
        self.line("})" + tail)

    def block(self, region: Region) -> None:
        """The block of a region that takes arguments."""
        arguments = ", ".join(f"{self.fresh(v)}: {type_text(v.type)}" for v in region.params)
        self.line(f"^bb0({arguments}):")
        self.nodes(region)
        self.returned(region.results)

    def returned(self, values: Sequence[Value]) -> None:
        """The end of a block."""
        types = tuple(v.type for v in values)
        self.op("stablehlo.return", [self.names[v] for v in values], types, ())

    def constant(self, array: Any) -> tuple[str, TensorType]:
        """A constant that only this writer needs."""
        held = np.asarray(array)
        value = Value(TensorType(held.dtype, held.shape))
        self.op("stablehlo.constant", (), (), (value,), {"value": constant_text(held)})
        return self.names[value], value.type

    def combination(self, monoid: str, type_: TensorType) -> Callable[[], None]:
        """A region that combines two scalars of a type, or that takes the second (`set`)."""

        def write() -> None:
            a, b, c = (Value(type_.with_shape(())) for _ in range(3))
            self.line(f"^bb0({', '.join(f'{self.fresh(v)}: {type_text(v.type)}' for v in (a, b))}):")
            if monoid == "set":
                self.returned((b,))
                return
            name = f"stablehlo.{_COMBINATIONS[monoid]}"
            self.op(name, [self.names[a], self.names[b]], (a.type, b.type), (c,))
            self.returned((c,))

        return write


def exports(op: str) -> bool:
    """Whether an op of this name can be written as StableHLO."""
    return op in _PLAIN or op in _CHLO or op in _SPECIAL


def _name(node: Node) -> str:
    return f"{'chlo' if node.op.name in _CHLO else 'stablehlo'}.{node.op.name}"


def _reduce(writer: _Writer, node: Node) -> None:
    """Inits are operands, the monoid is a region; a sum starts at +0.0, as front ends have it."""
    attrs = node.attrs
    assert isinstance(attrs, ReduceAttrs)
    operands = [writer.names[v] for v in node.operands]
    types = [v.type for v in node.operands]
    regions: tuple[Region | Callable[[], None], ...] = node.regions
    if attrs.monoid != CUSTOM:
        dtype = types[0].dtype
        start = identity(attrs.monoid, dtype)
        init, type_ = writer.constant(np.zeros((), dtype) if attrs.monoid == "add" else start)
        operands, types = [*operands, init], [*types, type_]
        regions = (writer.combination(attrs.monoid, type_),)
    dims = {"dimensions": integers(sorted(attrs.dims))}
    writer.op("stablehlo.reduce", operands, types, node.results, dims, regions)


def _scatter(writer: _Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, ScatterAttrs)
    types = tuple(v.type for v in node.operands)
    region = writer.combination(attrs.monoid, types[0])
    operands = [writer.names[v] for v in node.operands]
    writer.op("stablehlo.scatter", operands, types, node.results, attributes_of(attrs, types), (region,))


def _case(writer: _Writer, node: Node) -> None:
    """Branches read the operands directly; a bool index becomes a number."""
    index, name = node.operands[0], writer.names[node.operands[0]]
    number = Value(TensorType("i32", ()))
    if index.type.dtype.kind == "b":
        writer.op("stablehlo.convert", (name,), (index.type,), (number,))
        name = writer.names[number]

    def branch(region: Region) -> Callable[[], None]:
        def write() -> None:
            for param, operand in zip(region.params, node.operands[1:], strict=True):
                writer.names[param] = writer.names[operand]
            writer.nodes(region)
            writer.returned(region.results)

        return write

    writer.op("stablehlo.case", (name,), (number.type,), node.results, None, [branch(r) for r in node.regions])


def _constraint(writer: _Writer, node: Node) -> None:
    """An annotation; dimensions that are left open are unspecified to XLA."""
    attrs = node.attrs
    assert isinstance(attrs, ShardingConstraintAttrs)
    (x,) = node.operands
    opened = ",".join(str(d) for d, dim in enumerate(attrs.sharding.dims) if dim.open)
    attributes = {
        "call_target_name": '"Sharding"',
        "mhlo.sharding": f'"{_hlo(attrs.sharding, x.type.shape)}"',
        **({"backend_config": f'"unspecified_dims=[{opened}]"'} if opened else {}),
    }
    writer.op("stablehlo.custom_call", (writer.names[x],), (x.type,), node.results, attributes)


def _square(writer: _Writer, node: Node) -> None:
    """A product: CHLO squares no integers."""
    (x,) = node.operands
    writer.op("stablehlo.multiply", (writer.names[x],) * 2, (x.type,) * 2, node.results)


_SPECIAL: Mapping[str, Callable[[_Writer, Node], None]] = {
    "reduce": _reduce,
    "scatter": _scatter,
    "case": _case,
    "square": _square,
    "sharding_constraint": _constraint,
}
