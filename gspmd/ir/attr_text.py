"""Attributes as text, for any attribute dataclass: `key=value` fields, defaults left out.

The type annotation of a field says how its value is written and read back, so an op needs no syntax of its own:

    int 3    float 1.0 -0.0 inf nan    bool true    str word or "any text"    None none    dtype bf16
    tuples [1, 2] and [[0, 1], [1, 0]]    axes [data, model:(2)2]    Sharding [data, _?]    Dense dense<0.0 : f32[]>
    Window {size=[3, 3] stride=[2, 2]}    another dataclass name{field=value ...}, its name in snake case

A field of type `A | B` is read as whichever fits, tried in the order written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from gspmd.ir.attrs import Attrs, Dense, Groups, ResultShape, Window, WindowDim
from gspmd.ir.dense_text import dense_text, read_dense
from gspmd.ir.dtypes import DTYPES, dtype_name
from gspmd.ir.errors import GspmdError, ParseError
from gspmd.ir.lexer import WORD, Scanner, suggestion
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.type_text import read_sharding, read_type, type_text
from gspmd.ir.types import TensorType

_INT = re.compile(r"-?\d{1,300}(?![\w.])")
_FLOAT = re.compile(r"-?(?:inf|nan|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?!\w)")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_AXIS = re.compile(r"([A-Za-z_]\w*)(?::\((\d{1,18})\)(\d{1,18}))?")
_FIELD = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)")
_RESERVED = frozenset(("none", "true", "false", "inf", "nan"))


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of one annotation are written and read; `what` names them in messages."""

    what: str
    write: Callable[[Any, Mesh | None], str]
    read: Callable[[Scanner, Mesh | None], Any]


@dataclass(frozen=True, slots=True)
class AttrField:
    """One field of an attribute dataclass: its default's text is None when it must be given."""

    name: str
    codec: Codec
    default: Any
    default_text: str | None


@cache
def attr_fields(cls: type[Any]) -> tuple[AttrField, ...]:
    """The fields of an attribute dataclass and how each is written; TypeError for an annotation without a text form."""
    hints = get_type_hints(cls)
    out: list[AttrField] = []
    for field in fields(cls):
        if not field.init:
            continue
        form = codec(hints[field.name])
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        out.append(AttrField(field.name, form, default, None if default is MISSING else form.write(default, None)))
    return tuple(out)


def attrs_text(attrs: Attrs, mesh: Mesh | None = None) -> str:
    """`lhs_contract=[1] rhs_contract=[0]`: the fields that differ from their defaults; "" if none does."""
    return _fields_text(attrs, mesh)


def read_attrs(scanner: Scanner, cls: type[Attrs], mesh: Mesh | None, owner: str) -> Attrs:
    """Read fields up to the first thing that is none; ParseError for an unknown, repeated, missing or bad one."""
    values = _read_fields(scanner, cls, mesh, owner)
    return _make(scanner, cls, values, owner)


@cache
def codec(annotation: Any) -> Codec:
    """How values with a type annotation are written and read; TypeError if there is no text for them."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is np.dtype or annotation is np.dtype:
        return _DTYPE
    if origin is tuple:
        return _list_of(codec(args[0])) if args[1:] == (...,) else _row_of(tuple(map(codec, args)))
    if origin in (Union, UnionType):
        return _union(tuple(map(codec, args)), args)
    if origin is Literal:
        return _choice(args)
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _record(annotation)
    raise TypeError(f"no text form for attributes of type {annotation}")


def _fields_text(value: object, mesh: Mesh | None) -> str:
    out: list[str] = []
    for field in attr_fields(value.__class__):
        held = getattr(value, field.name)
        if held is field.default:
            continue
        # By text, not by ==, which takes 0.0 for -0.0 and 1 for True.
        text = field.codec.write(held, mesh)
        if text != field.default_text:
            out.append(f"{field.name}={text}")
    return " ".join(out)


def _read_fields(scanner: Scanner, cls: type[Any], mesh: Mesh | None, owner: str) -> dict[str, Any]:
    known = {field.name: field for field in attr_fields(cls)}
    values: dict[str, Any] = {}
    while match := scanner.match(_FIELD):
        name = match[1]
        if name not in known:
            names = f"its attributes: {', '.join(known)}" if known else "it has no attributes"
            scanner.fail(f"{owner} has no attribute {name!r}{suggestion(name, list(known))}; {names}", match.start())
        if name in values:
            scanner.fail(f"attribute {name!r} of {owner} is given twice", match.start())
        values[name] = known[name].codec.read(scanner, mesh)
    missing = [n for n, field in known.items() if field.default_text is None and n not in values]
    if missing:
        scanner.fail(f"{owner} needs the attribute{'s' * (len(missing) > 1)} {', '.join(missing)}")
    return values


def _make(scanner: Scanner, cls: type[Any], values: dict[str, Any], owner: str) -> Any:
    try:
        return cls(**values)
    except (GspmdError, ValueError, TypeError, ArithmeticError) as error:
        scanner.fail(f"bad attributes of {owner}: {error}")


def _wanted(scanner: Scanner, what: str) -> NoReturn:
    scanner.fail(f"expected {what}, found {scanner.found()}")


# -- single values ----------------------------------------------------------------------------------------------------


def _read_bool(scanner: Scanner, _: Mesh | None) -> bool:
    if scanner.keyword("true"):
        return True
    if scanner.keyword("false"):
        return False
    _wanted(scanner, "true or false")


def _read_none(scanner: Scanner, _: Mesh | None) -> None:
    if not scanner.keyword("none"):
        _wanted(scanner, "none")


def _write_float(value: Any, _: Mesh | None) -> str:
    return repr(float(value))


def _write_str(value: str, _: Mesh | None) -> str:
    return value if WORD.fullmatch(value) and value.isascii() and value not in _RESERVED else json.dumps(value)


def _read_str(scanner: Scanner, _: Mesh | None) -> str:
    quoted = scanner.match(_STRING)
    if quoted is None:
        return scanner.need(WORD, 'a word or "a quoted text"')[0]
    try:
        return json.loads(quoted[0])
    except ValueError as error:
        scanner.fail(f"bad quoted text: {error}", quoted.start())


def _read_dtype(scanner: Scanner, _: Mesh | None) -> Any:
    match = scanner.need(WORD, "an element type such as f32")
    if match[0] not in DTYPES:
        scanner.fail(f"unknown element type {match[0]!r}; known: {', '.join(DTYPES)}", match.start())
    return DTYPES[match[0]]


def _write_axis(axis: Axis, mesh: Mesh | None) -> str:
    whole = mesh is not None and axis.pre == 1 and dict(mesh.axes).get(axis.name) == axis.size
    return axis.name if whole else f"{axis.name}:({axis.pre}){axis.size}"


def _read_axis(scanner: Scanner, mesh: Mesh | None) -> Axis:
    match = scanner.need(_AXIS, "a mesh axis")
    if mesh is None and match[2] is not None:
        return Axis(match[1], int(match[2]), int(match[3]))
    if mesh is None:
        scanner.fail(f"the axis {match[1]!r} needs a mesh", match.start(), fix="declare a mesh first")
    try:
        return mesh.axis(match[0])
    except (GspmdError, ValueError) as error:
        scanner.fail(f"bad axis: {error}", match.start())


# -- values made of others --------------------------------------------------------------------------------------------


def _read_items(scanner: Scanner, read: Callable[[int], Any]) -> list[Any]:
    """Read `[item, item, ...]`, each by its number."""
    scanner.expect("[")
    scanner.enter()
    items: list[Any] = []
    while not scanner.take("]"):
        if items:
            scanner.expect(",")
        items.append(read(len(items)))
    scanner.leave()
    return items


def _list_of(item: Codec, make: Callable[[list[Any]], Any] = tuple) -> Codec:
    def write(value: Any, mesh: Mesh | None) -> str:
        return f"[{', '.join([item.write(x, mesh) for x in value])}]"

    def read(scanner: Scanner, mesh: Mesh | None) -> Any:
        return make(_read_items(scanner, lambda _: item.read(scanner, mesh)))

    return Codec(f"a list [...] of {item.what}", write, read)


def _row_of(items: tuple[Codec, ...]) -> Codec:
    what = f"a list of {len(items)} items"

    def write(value: Any, mesh: Mesh | None) -> str:
        return f"[{', '.join(c.write(x, mesh) for c, x in zip(items, value, strict=True))}]"

    def read(scanner: Scanner, mesh: Mesh | None) -> Any:
        scanner.skip()
        start = scanner.pos
        last = len(items) - 1
        row = (
            _read_items(scanner, lambda i: items[min(i, last)].read(scanner, mesh))
            if items
            else _read_items(scanner, lambda _: _wanted(scanner, "]"))
        )
        if len(row) != len(items):
            scanner.fail(f"expected {what}, found {len(row)}", start)
        return tuple(row)

    return Codec(what, write, read)


def _union(choices: tuple[Codec, ...], types: tuple[Any, ...]) -> Codec:
    what = " or ".join(c.what for c in choices)
    # none, true and false first: a `str` would take them for words; whole numbers before other numbers.
    order = [c for _, c in sorted(zip(types, choices, strict=True), key=lambda p: _PRECEDENCE.get(p[0], 3))]

    def write(value: Any, mesh: Mesh | None) -> str:
        for type_, choice in zip(types, choices, strict=True):
            if _is_of(value, type_):
                return choice.write(value, mesh)
        raise TypeError(f"{value!r} is not {what}")

    def read(scanner: Scanner, mesh: Mesh | None) -> Any:
        scanner.skip()
        start, depth = scanner.pos, scanner.depth
        for choice in order:
            try:
                return choice.read(scanner, mesh)
            except ParseError:
                if scanner.pos != start and choice is order[-1]:
                    raise
                scanner.pos, scanner.depth = start, depth
        _wanted(scanner, what)

    return Codec(what, write, read)


def _is_of(value: Any, annotation: Any) -> bool:
    """Whether a value belongs to one choice of a union."""
    origin = get_origin(annotation)
    if origin is Literal:
        return value in get_args(annotation)
    if origin is np.dtype:
        return isinstance(value, np.dtype)
    kind = origin or annotation
    if kind is tuple:
        return isinstance(value, tuple) and not isinstance(value, (ResultShape, Window))
    if kind is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return isinstance(value, (float, np.floating) if kind is float else kind)


def _choice(allowed: tuple[Any, ...]) -> Codec:
    texts = {str(v): v for v in allowed}
    what = "one of " + ", ".join(texts)

    def write(value: Any, _: Mesh | None) -> str:
        return _write_str(value, None) if isinstance(value, str) else str(value)

    def read(scanner: Scanner, mesh: Mesh | None) -> Any:
        scanner.skip()
        start = scanner.pos
        number = scanner.match(_INT)
        text = number[0] if number else _read_str(scanner, mesh)
        if text not in texts:
            scanner.fail(f"expected {what}, found {text!r}", start)
        return texts[text]

    return Codec(what, write, read)


def _record(cls: type[Any]) -> Codec:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower().lstrip("_")

    def write(value: Any, mesh: Mesh | None) -> str:
        return f"{name}{{{_fields_text(value, mesh)}}}"

    def read(scanner: Scanner, mesh: Mesh | None) -> Any:
        if not scanner.keyword(name):
            _wanted(scanner, f"{name}{{...}}")
        scanner.expect("{")
        scanner.enter()
        values = _read_fields(scanner, cls, mesh, name)
        scanner.expect("}")
        scanner.leave()
        return _make(scanner, cls, values, name)

    return Codec(f"{name}{{...}}", write, read)


def _write_window(window: Window, mesh: Mesh | None) -> str:
    out: list[str] = []
    for field in attr_fields(WindowDim):
        values = [getattr(dim, field.name) for dim in window]
        if field.name == "size" or any(v != field.default for v in values):
            out.append(f"{field.name}=[{', '.join(field.codec.write(v, mesh) for v in values)}]")
    return f"{{{' '.join(out)}}}"


def _read_window(scanner: Scanner, mesh: Mesh | None) -> Window:
    scanner.expect("{")
    known = {field.name: field for field in attr_fields(WindowDim)}
    columns: dict[str, tuple[Any, ...]] = {}
    while match := scanner.match(_FIELD):
        if match[1] not in known or match[1] in columns:
            scanner.fail(f"a window has the lists {', '.join(known)}, each once; found {match[1]}", match.start())
        columns[match[1]] = _list_of(known[match[1]].codec).read(scanner, mesh)
        if len(columns[match[1]]) != len(columns.get("size", ())):
            scanner.fail("the lists of a window begin with size and are equally long", match.start())
    scanner.expect("}")
    rank = len(columns.get("size", ()))
    return Window(WindowDim(**{name: column[i] for name, column in columns.items()}) for i in range(rank))


_INTEGER = Codec("a whole number", lambda v, _: str(int(v)), lambda s, _: int(s.need(_INT, "a whole number")[0]))
_DTYPE = Codec("an element type", lambda v, _: dtype_name(v), _read_dtype)
_PLAIN: dict[Any, Codec] = {
    NoneType: Codec("none", lambda _, __: "none", _read_none),
    bool: Codec("true or false", lambda v, _: "true" if v else "false", _read_bool),
    int: _INTEGER,
    Groups: Codec(_INTEGER.what, _INTEGER.write, lambda s, mesh: Groups(_INTEGER.read(s, mesh))),
    float: Codec("a number", _write_float, lambda s, _: float(s.need(_FLOAT, "a number")[0])),
    str: Codec("a word", _write_str, _read_str),
    Axis: Codec("a mesh axis", _write_axis, _read_axis),
    Sharding: Codec("a sharding", lambda v, _: v.text(), read_sharding),
    TensorType: Codec("a type", lambda v, _: type_text(v), read_type),
    Dense: Codec("a constant dense<...>", lambda v, _: dense_text(v), lambda s, _: read_dense(s)),
    ResultShape: _list_of(_INTEGER, ResultShape),
    Window: Codec("a window {size=[...] ...}", _write_window, _read_window),
}
_PRECEDENCE: dict[Any, int] = {NoneType: 0, bool: 1, int: 2, str: 4}
