"""Types and shardings as text, at the place where a scanner stands: `f32[256@data, 1024@_]~add(model)`.

What a type looks like is `TensorType.text`, a sharding `Sharding.text`; here they are found in a longer text and read.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import GspmdError
from gspmd.ir.lexer import Scanner
from gspmd.ir.mesh import Mesh, parse_mesh
from gspmd.ir.sharding import Sharding, parse_sharding
from gspmd.ir.types import TensorType

_TAIL = r"(?:[~^!]\w*\((?:[^()\n]|\(\d+\))*\))*"
_TYPE = re.compile(rf"([A-Za-z]\w*)\[([^\]\n]*)\]({_TAIL})(@_)?")
_SHARDING = re.compile(rf"\[[^\]\n]*\]{_TAIL}")
_MESH = re.compile(r"\[[^\]\n]*\](?:[ \t]*devices=\[[^\]\n]*\])?")
_MAX_DIGITS = 18


@lru_cache(maxsize=1 << 16)
def type_text(type_: TensorType) -> str:
    """The text of a type, memoised, since the layers of a model repeat."""
    return type_.text()


def read_type(scanner: Scanner, mesh: Mesh | None) -> TensorType:
    """Read what `TensorType.text` prints; ParseError if it is not of that form or does not fit the mesh."""
    match = scanner.need(_TYPE, "a type such as f32[4,6]")
    try:
        return _type(match[0], mesh)
    except (GspmdError, ValueError) as error:
        scanner.fail(f"bad type {match[0]}: {error}", match.start())


def read_sharding(scanner: Scanner, mesh: Mesh | None) -> Sharding:
    """Read what `Sharding.text` prints; ParseError if it is not of that form or does not fit the mesh."""
    match = scanner.need(_SHARDING, "a sharding such as [data, _]")
    if mesh is None:
        scanner.fail("a sharding needs a mesh", match.start(), fix="declare one first: mesh @mesh = [data=2, model=4]")
    try:
        return parse_sharding(match[0], mesh)
    except (GspmdError, ValueError) as error:
        scanner.fail(f"bad sharding {match[0]}: {error}", match.start())


def read_mesh(scanner: Scanner, name: str) -> Mesh:
    """Read what `Mesh.text` prints; ParseError if it is not of that form."""
    match = scanner.need(_MESH, "a mesh such as [data=2, model=4]")
    try:
        return parse_mesh(match[0], name)
    except (GspmdError, ValueError) as error:
        scanner.fail(f"bad mesh {match[0]}: {error}", match.start())


@lru_cache(maxsize=1 << 16)
def _type(text: str, mesh: Mesh | None) -> TensorType:
    match = _TYPE.fullmatch(text)
    assert match is not None
    name, body, tail, marked = match.groups()
    if name not in DTYPES:
        raise ValueError(f"unknown element type {name!r}; known: {', '.join(DTYPES)}")
    pairs = [item.strip().partition("@") for item in body.split(",")] if body.strip() else []
    sizes = [size.strip() for size, _, _ in pairs]
    for size in sizes:
        if not (size.isascii() and size.isdigit()) or len(size) > _MAX_DIGITS:
            raise ValueError(f"{size!r} is no size of a dimension")
    shape = tuple(map(int, sizes))
    if not (tail or marked or any(at for _, at, _ in pairs)):
        return TensorType(DTYPES[name], shape)
    if mesh is None:
        raise ValueError("a sharding needs a mesh; declare one first: mesh @mesh = [data=2, model=4]")
    dims = ", ".join(dim.strip() or "_" for _, _, dim in pairs)
    return TensorType(DTYPES[name], shape, parse_sharding(f"[{dims}]{tail}", mesh))
