"""Shardy's annotations in a module that has been through HLO, or was exported so: texts among frontend attributes.

`xla.sdy.meshes` of the module, `xla.sdy.sharding` of arguments, results and ops, and manual computations as a function
that is called between two custom calls. They become what they were, so that nobody else need know.
"""

from __future__ import annotations

from typing import Any

from gspmd.interop.import_mlir import Source, bindings

_FRONTEND = "mhlo.frontend_attributes"
_ENTER, _LEAVE = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"


def restore_annotations(source: Source) -> None:
    """Give a module, in place, the attributes and ops of Shardy that it carries as text; others stay as they are."""
    module = source.module.operation
    with module.context:
        meshes = _carried(module.attributes, "meshes")
    if meshes is None:
        return
    ir = bindings().ir
    found: list[Any] = []

    def collect(op: Any) -> Any:
        found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    with module.context, ir.Location.unknown():
        at = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
        for item in meshes:
            attributes = {"sym_name": ir.StringAttr.get(item.name), "mesh": item.attr}
            ir.Operation.create("sdy.mesh", attributes=attributes, ip=at)
        for op in found:
            for name in ("arg_attrs", "res_attrs"):
                if op.name == "func.func" and name in op.attributes:
                    op.attributes[name] = ir.ArrayAttr.get([_restored(held) for held in op.attributes[name]])
            sharding = _carried(op.attributes, "sharding")
            if sharding is not None:
                op.attributes["sdy.sharding"] = sharding
        for op in found:
            if op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value == _LEAVE:
                _restore_computation(op)


def _carried(attributes: Any, name: str) -> Any:
    """An attribute that is carried as text; None if there is none."""
    text = f"xla.sdy.{name}"
    if _FRONTEND not in attributes or text not in attributes[_FRONTEND]:
        return None
    return bindings().ir.Attribute.parse(attributes[_FRONTEND][text].value)


def _restored(held: Any) -> Any:
    """The attributes of an argument or result."""
    sharding = _carried(held, "sharding")
    if sharding is None:
        return held
    return bindings().ir.DictAttr.get({item.name: item.attr for item in held} | {"sdy.sharding": sharding})


def _restore_computation(leave: Any) -> None:
    """The manual computation that ends with a custom call, if it is a call between two of them."""
    ir = bindings().ir
    call: Any = leave.operands[0].owner
    enter: Any = call.operands[0].owner if getattr(call, "name", "") == "func.call" and len(call.operands) else None
    if getattr(enter, "name", "") != "stablehlo.custom_call":
        return
    names = {"in_shardings": enter, "out_shardings": leave, "manual_axes": leave}
    attributes = {name: _carried(op.attributes, name) for name, op in names.items()}
    if enter.attributes["call_target_name"].value != _ENTER or any(a is None for a in attributes.values()):
        return
    results = [r.type for r in leave.results]
    made: Any = ir.Operation.create(
        "sdy.manual_computation", results, list(enter.operands), attributes, regions=1,
        loc=call.location, ip=ir.InsertionPoint(leave),
    )  # fmt: skip
    block = made.regions[0].blocks.append(*[r.type for r in enter.results])
    with ir.InsertionPoint(block):
        callee = {"callee": call.attributes["callee"]}
        inner: Any = ir.Operation.create(
            "func.call", [r.type for r in call.results], list(block.arguments), callee, loc=call.location
        )
        ir.Operation.create("sdy.return", [], list(inner.results))
    for old, new in zip(leave.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    for op in (leave, call, enter):
        op.erase()
