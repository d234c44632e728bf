"""Shardings of MLIR modules: XLA's strings (`mhlo.sharding`) and Shardy's attributes (`sdy.sharding`).

All annotations of a program live on one mesh, that of the first; those on others are said in its axes. Shardy names
meshes; XLA's strings only say how devices are listed, so their mesh is the common refinement of all of them, with axes
a0, a1, ... (or the mesh that the caller gives).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gspmd.interop.import_mlir import Bindings, bindings
from gspmd.interop.import_types import Unsupported
from gspmd.ir.axes import Axes, difference
from gspmd.ir.device_groups import on_mesh
from gspmd.ir.dim_sharding import DimSharding
from gspmd.ir.errors import GspmdError
from gspmd.ir.hlo_sharding import mesh_of, split_tuple
from gspmd.ir.hlo_text import parse_hlo
from gspmd.ir.location import warn
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType

_HLO = re.compile(r'mhlo\.sharding\s*=\s*"([^"]*)"')
_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")
_ODD = re.compile(r"\W")
_UNREDUCED = "unreduced axes of annotations are taken as unused: a value that is annotated is the whole sum"
_FEW = 4  # elements of constants that are printed when only the rest of the text counts


class Shardings:
    """Reads the annotations of one module; `mesh` is the mesh that they are on, None if there is none yet.

    `manual` are the axes over which the code that is being read is per-device code.
    """

    def __init__(self, module: Any, mesh: Mesh | None, devices: int | None) -> None:
        self.mesh = mesh
        self.manual: Axes = ()
        self._meshes: dict[str, Mesh | None] = {}
        operations: list[Any] = [op.operation for op in module.body.operations]
        for op in operations:
            if op.name == "sdy.mesh":
                self._meshes[op.attributes["sym_name"].value] = _mesh(op.attributes["mesh"])
        named = [m for m in self._meshes.values() if m is not None and m.size > 1]
        if self.mesh is None and named:
            self.mesh = named[0]
        if self.mesh is None:
            found = mesh_of(_hlo_texts(module), devices)
            self.mesh = found if found.axes else None

    def hlo(self, text: str, types: Sequence[TensorType], opened: Sequence[int] = ()) -> list[Sharding | None]:
        """What XLA's text says of some values: one sharding, or a tuple of them."""
        texts = split_tuple(text) if text.startswith("{{") else (text,) * len(types)
        if len(texts) != len(types):
            raise Unsupported(f"{text} has {len(texts)} shardings for {len(types)} values")
        return [self._one_hlo(t, type_, opened) for t, type_ in zip(texts, types, strict=True)]

    def _one_hlo(self, text: str, type_: TensorType, opened: Sequence[int]) -> Sharding | None:
        parsed = parse_hlo(text)
        kind = parsed.kind
        if kind == "manual":
            return None  # within per-device code nothing is said of anything
        if kind == "unreduced" or "unreduced" in parsed.subgroups:
            warn(_UNREDUCED)
        if self.mesh is None:
            return None  # one device: there is nothing to say
        found = Sharding.from_hlo(text, self.mesh, type_.rank)
        if found.unreduced:
            found = replace(found, unreduced=(), monoid=None)
        return with_open(found, opened) if opened else found

    def sdy(self, attribute: Any, type_: TensorType) -> Sharding | None:
        """What one of Shardy's attributes says; None on a mesh without axes, which says nothing."""
        b = bindings()
        held = b.sdy.TensorShardingAttr(attribute)
        mesh = self._mesh_of(held.mesh_or_ref)
        if mesh is None:
            return None
        if held.unreduced_axes:
            warn(_UNREDUCED)
        dims: list[DimSharding] = []
        for dim in held.dimension_shardings:
            d = b.sdy.DimensionShardingAttr(dim)
            axes = tuple(_axis(b, a, mesh) for a in d.axes)
            dims.append(DimSharding(axes, not d.is_closed, priority=d.priority or 0))
        if len(dims) != type_.rank:
            raise Unsupported(f"the sharding {attribute} has {len(dims)} dimensions, the value {type_.rank}")
        replicated = tuple(_axis(b, a, mesh) for a in held.replicated_axes)
        found = Sharding(mesh, tuple(dims), replicated=replicated)
        if self.mesh is not None:
            found = on_mesh(found, self.mesh)
        return replace(found, replicated=difference(found.replicated, self.manual), manual=self.manual)

    def sdy_each(self, attribute: Any, types: Sequence[TensorType]) -> list[Sharding | None]:
        """What Shardy says of the results of an op, one by one."""
        each = bindings().sdy.TensorShardingPerValueAttr(attribute).shardings
        if len(each) != len(types):
            raise Unsupported(f"{attribute} has {len(each)} shardings for {len(types)} values")
        return [self.sdy(a, t) for a, t in zip(each, types, strict=True)]

    def _mesh_of(self, reference: Any) -> Mesh | None:
        text = str(reference)
        if text.startswith("@"):
            name = text[1:].strip('"')
            if name not in self._meshes:
                raise Unsupported(f"the mesh {text} is not in the module")
            mesh = self._meshes[name]
        else:
            mesh = _mesh(reference)
        if mesh is None:
            return None
        if self.mesh is None:
            self.mesh = mesh
        return mesh


def with_open(sharding: Sharding, dims: Sequence[int]) -> Sharding:
    """The same with some dimensions open."""
    return sharding.with_dims(
        tuple(DimSharding(d.axes, d.open or i in dims, d.chunk, d.priority) for i, d in enumerate(sharding.dims))
    )


def unspecified(config: str) -> tuple[int, ...]:
    """The dimensions that a backend config leaves to propagation."""
    found = _UNSPECIFIED.search(config)
    return tuple(int(d) for d in found[1].split(",") if d.strip()) if found else ()


def _mesh(attribute: Any) -> Mesh | None:
    """The mesh of a mesh attribute; None for one on a single device, which is taken as replicated, with a warning."""
    held = bindings().sdy.MeshAttr(attribute)
    axes = [bindings().sdy.MeshAxisAttr(a) for a in held.axes]
    if not axes:
        if held.device_ids:
            warn(f"the mesh {attribute} puts tensors on one device; they are taken as replicated")
        return None
    return Mesh([(axis_name(a.name), a.size) for a in axes], held.device_ids or None)


def axis_name(name: str) -> str:
    """The name of an axis, if need be made an identifier."""
    return name if name.isidentifier() and name != "_" else f"a_{_ODD.sub('_', name)}"


def _axis(b: Bindings, attribute: Any, mesh: Mesh) -> Axis:
    ref = b.sdy.AxisRefAttr(attribute)
    name = axis_name(ref.name)
    if ref.sub_axis_info is None:
        return mesh.axis(name)
    info = b.sdy.SubAxisInfoAttr(ref.sub_axis_info)
    return mesh.axis(f"{name}:({info.pre_size}){info.size}")


def _hlo_texts(module: Any) -> list[str]:
    """XLA's shardings in a module, those of tuples taken apart."""
    text = module.operation.get_asm(large_elements_limit=_FEW)
    found = dict.fromkeys(m[1] for m in _HLO.finditer(text))
    try:
        return [t for whole in found for t in (split_tuple(whole) if whole.startswith("{{") else (whole,))]
    except GspmdError:
        return list(found)
