"""Programs as StableHLO text, for XLA and everything else that reads StableHLO.

On whole arrays (stages annotated and propagated) arguments and results carry `mhlo.sharding` and annotations are
`@Sharding` custom calls, what JAX writes for XLA's partitioner, or the same in Shardy's terms. From stage local on the
text is one device's program, the same on all: its types are one device's part, collectives stand where devices exchange
data, and everything is marked as manual, so that no partitioner touches it. Everything is in MLIR's generic form, which
jaxlib parses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from gspmd.interop import (
    export_annotations,
    export_collective,
    export_composite,
    export_control,
    export_lapack,
    export_ops,
    export_reduce,
    export_shardy,
    export_window,
)
from gspmd.interop.export_annotations import sharding_text
from gspmd.interop.export_collective import MANUAL
from gspmd.interop.export_shardy import mesh_op, shardy_attribute, shardy_results
from gspmd.interop.export_writer import Emitter, Writer, symbol
from gspmd.interop.stablehlo_text import quoted, type_text
from gspmd.ir.errors import GspmdError, UsageError
from gspmd.ir.graph import LOCAL_STAGES, Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType
from gspmd.ops import OPS

Dialect = Literal["hlo", "sdy"]

_WHOLE_STAGES = ("annotated", "propagated")
_SHOWN = 40  # problems in one message


@lru_cache(maxsize=1)
def _emitters() -> Mapping[str, Emitter]:
    found: dict[str, Emitter] = {}
    for family in (
        export_ops,
        export_reduce,
        export_window,
        export_control,
        export_lapack,
        export_composite,
        export_annotations,
        export_collective,
    ):
        found |= family.EMITTERS
    return found


def exports(op: str) -> bool:
    """Whether an op of this name can be written as StableHLO."""
    return op in _emitters() or (op in OPS and OPS[op].expand is not None)


def export_stablehlo(program: Program, shardings: Dialect = "hlo") -> str:
    """The text of a StableHLO module for a program at stage annotated, propagated, local, optimized or scheduled.

    On whole arrays shardings stand on arguments and results as the program's signature has them, as XLA's strings or,
    `shardings="sdy"`, in Shardy's terms; then the ops of a propagated program carry theirs too. A local program is to
    be compiled for as many partitions as the mesh has devices; argument i of partition p is the shard that the device
    with the physical id p holds of input i. Raises UsageError, naming everything that cannot be written, each with its
    line: ops at the stages between, and shardings that XLA cannot express.
    """
    return write_module(program, shardings)[0]


def write_module(program: Program, shardings: Dialect = "hlo") -> tuple[str, dict[Value, str]]:
    """The text of `export_stablehlo`, and what each value of the program is called in it."""
    if program.stage not in _WHOLE_STAGES and program.stage not in LOCAL_STAGES:
        raise UsageError(
            f"a program at stage {program.stage} is neither on whole arrays nor on one device's parts",
            fix="export it at stage annotated or propagated, or from stage local on",
        )
    if shardings not in ("hlo", "sdy"):
        raise UsageError(f"{shardings!r} is no dialect of shardings", fix="write hlo or sdy")
    if program.is_local:
        writer = Writer(_emitters(), program.mesh or Mesh({}))
    elif shardings == "sdy":
        writer = Writer({**_emitters(), **export_shardy.EMITTERS}, result_attributes=shardy_results)
    else:
        writer = Writer(_emitters())
    body = program.body
    names = [writer.fresh(v) for v in body.params]
    arguments = [
        f"{name}: {type_text(v.type)}{_attributes(writer, t, shardings)}"
        for name, v, t in zip(names, body.params, program.inputs, strict=True)
    ]
    results = [
        f"{type_text(v.type)}{_attributes(writer, t, shardings)}"
        for v, t in zip(body.results, program.outputs, strict=True)
    ]
    writer.indent = 2
    writer.nodes(body.nodes)
    _raise(writer.problems)
    main = f"  func.func public @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
    last = writer.return_text(body.results)
    declared = mesh_op(program.mesh) if shardings == "sdy" and program.mesh and not program.is_local else ""
    text = f"{_head(program)}{declared}{main}{writer.text()}{last}  }}\n{writer.definitions()}}}\n"
    return text, writer.names


def _head(program: Program) -> str:
    devices = 1 if program.mesh is None else program.mesh.size
    attributes = f"mhlo.num_partitions = {devices} : i32"
    if program.is_local:
        told = f"gspmd.mesh = {quoted(program.mesh.text())}, " if program.mesh is not None else ""
        told = f"mhlo.frontend_attributes = {{{told}gspmd.stage = {quoted(program.stage)}}}"
        attributes = f"{told}, {attributes}, mhlo.num_replicas = 1 : i32"
    return f"module @{symbol(program.name)} attributes {{{attributes}}} {{\n"


def _attributes(writer: Writer, type_: TensorType, shardings: Dialect) -> str:
    """What stands at an argument or result: its sharding, or how its parts make up the whole array."""
    if writer.mesh is not None:
        whole = f"mhlo.frontend_attributes = {{gspmd.type = {quoted(type_.text())}}}"
        return f' {{{whole}, mhlo.sharding = "{MANUAL}"}}' if writer.mesh.size > 1 else f" {{{whole}}}"
    try:
        if shardings == "sdy":
            return f" {{sdy.sharding = {shardy_attribute(type_.sharding)}}}" if type_.sharding else ""
        text = sharding_text(type_)
    except GspmdError as error:
        writer.problems.append(error)
        return ""
    return f' {{mhlo.sharding = "{text}"}}' if text else ""


def _raise(problems: Sequence[GspmdError]) -> None:
    """Raise one UsageError about all that could not be written."""
    if not problems:
        return
    first, lines = problems[0], list(dict.fromkeys(map(_line, problems)))
    if len(lines) == 1:
        raise UsageError(f"cannot export: {first.message}", rule=first.rule, loc=first.loc, fix=first.fix)
    more = [f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    listed = "".join(f"\n  {line}" for line in [*lines[:_SHOWN], *more])
    fixes = dict.fromkeys(e.fix for e in problems if e.fix)
    raise UsageError(f"cannot export, for {len(lines)} reasons:{listed}", fix="; ".join(fixes))


def _line(error: GspmdError) -> str:
    place = f"{error.loc.text()}: " if error.loc is not None else ""
    return f"{place}{error.rule}{': ' if error.rule else ''}{error.message}"
