"""Ask Shardy, through jaxlib's passes, for the shardings of all values of a program, and for the rules of its ops."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_sharding import Shardings
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from tests.propagation.judge.labels import labelled

Held = dict[str, tuple[Sharding | None, ...]]

PIPELINE = "builtin.module(sdy-propagation-pipeline)"


@lru_cache(maxsize=1)
def _passes() -> Any:
    return import_module("jaxlib.mlir.passmanager")


def run_passes(text: str, pipeline: str) -> Any:
    """The module that Shardy's passes make of a text."""
    b = bindings()
    context = b.context()
    context.allow_unregistered_dialects = False
    with context:
        module = b.ir.Module.parse(text)
        _passes().PassManager.parse(pipeline).run(module.operation)
    return module


def ask(text: str, mesh: Mesh) -> Held:
    """The sharding of each value of an exported text (with `sdy` shardings) after Shardy's propagation, by its name."""
    return shardings_of(run_passes(labelled(text), PIPELINE), mesh)


def written(text: str, mesh: Mesh) -> Held:
    """The shardings that an exported text states, by name."""
    b = bindings()
    return shardings_of(b.ir.Module.parse(labelled(text), b.context()), mesh)


def shardings_of(module: Any, mesh: Mesh) -> Held:
    """The shardings of a module's values: each op's results, and main's arguments."""
    reader = Shardings(module, mesh, None)
    found: Held = {}
    for function in module.body.operations:
        if function.operation.name != "func.func":
            continue
        block = function.regions[0].blocks[0]
        given = function.attributes["arg_attrs"] if "arg_attrs" in function.attributes else [{}] * len(block.arguments)
        if function.attributes["sym_name"].value == "main":
            for argument, held in zip(block.arguments, given, strict=True):
                told = [held["sdy.sharding"]] if "sdy.sharding" in held else [None]
                found[_name(argument.location)] = (_read(reader, told[0], argument),)
        _region(reader, function.regions[0], found)
    return found


def _region(reader: Shardings, region: Any, found: Held) -> None:
    for block in region.blocks:
        for op in block.operations:
            _operation(reader, op.operation, found)


def _operation(reader: Shardings, op: Any, found: Held) -> None:
    name = _name(op.location)
    if op.name == "sdy.reshard" or op.name == "sdy.sharding_constraint":
        found[name] = (_read(reader, op.attributes["sharding"], op.results[0]),)
    elif op.results and name:
        each: list[Any] = [None] * len(op.results)
        if "sdy.sharding" in op.attributes:
            each = list(bindings().sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings)
        found.setdefault(name, tuple(_read(reader, a, v) for a, v in zip(each, op.results, strict=True)))
    for inner in op.regions:
        _region(reader, inner, found)


def _read(reader: Shardings, attribute: Any, value: Any) -> Sharding | None:
    if attribute is None:
        return None
    shape = tuple(bindings().ir.RankedTensorType(value.type).shape)
    held = reader.sdy(attribute, TensorType("f32", shape))
    return None if held is None else held.closed()


def _name(location: Any) -> str:
    text = str(location)
    return text[text.find('"') + 1 : text.rfind('"')] if '"%' in text else ""
