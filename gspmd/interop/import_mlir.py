"""Reading MLIR through jaxlib's bindings: text, bytecode, and StableHLO's portable artifacts, without importing jax.

A portable artifact is bytecode in a dialect of its own that only StableHLO's deserialiser turns back; the plain parser
would read it and return that other dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import Any

from gspmd.ir.errors import ParseError, UsageError
from gspmd.ir.location import Location
from gspmd.ir.printer import NO_FILE

_MODULES = (
    "ir", "_mlir_libs._jax_mlir_ext", "dialects.chlo", "dialects.func", "dialects.sdy", "dialects.stablehlo",
)  # fmt: skip
_BYTECODE = b"ML\xefR"
_PORTABLE = re.compile(rb"StableHLO_v([\d.]+)")
_LINE = re.compile(r'"([^"]*)":(\d+):')
_QUANTIZED = re.compile(r"'([\w.-]+)' op .*!quant\.")
_UNKNOWN = re.compile(r"custom op '.*' is unknown")
# MLIR's name for a text that came from no file.
TEXT_FILE = "-"


@dataclass(frozen=True, slots=True)
class Bindings:
    """The modules of jaxlib that are used; `dialects` are those that have to be registered, `registry` has the rest."""

    ir: Any
    chlo: Any
    stablehlo: Any
    sdy: Any
    dialects: tuple[Any, ...]
    registry: Any

    def context(self) -> Any:
        """A new context with the dialects that programs are written in; it holds all constants of its modules."""
        context = self.ir.Context()
        context.append_dialect_registry(self.registry)
        for dialect in self.dialects:
            dialect.register_dialect(context)
        context.load_all_available_dialects()
        context.allow_unregistered_dialects = True  # unknown ops are told of together, not one by one by the parser
        return context


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed module, the lines of its text (none for bytecode), and the name of its file."""

    module: Any
    lines: tuple[str, ...]
    file: str


@lru_cache(maxsize=1)
def bindings() -> Bindings:
    """The MLIR of jaxlib; raises UsageError, naming the extra to install, if it is not there."""
    try:
        names = (
            "ir",
            "_mlir_libs._jax_mlir_ext",
            "dialects.chlo",
            "dialects.func",
            "dialects.sdy",
            "dialects.stablehlo",
        )
        modules: list[Any] = [import_module(f"jaxlib.mlir.{name}") for name in names]
    except ImportError as error:
        raise UsageError(
            f"StableHLO is read through jaxlib, which cannot be imported: {error}",
            fix="pip install gspmd[interop]",
        ) from None
    mlir, extension, chlo, _, sdy, stablehlo = modules
    registry = mlir.DialectRegistry()
    extension.register_dialects(registry)
    return Bindings(mlir, chlo, stablehlo, sdy, (chlo, sdy, stablehlo), registry)


def read_module(given: str | bytes | bytearray | memoryview, file: str = "") -> Source:
    """Parse a module; raises ParseError with MLIR's message and line if it is none, UsageError for other objects."""
    name = file or NO_FILE
    other: Any = given  # whatever callers without types hand over
    source = bytes(given) if isinstance(given, (bytearray, memoryview)) else given
    if not isinstance(other, (str, bytes, bytearray, memoryview)):
        raise UsageError(f"a module is given as text or bytes, not as {type(other).__name__}", fix="give str(module)")
    if not source.strip():
        raise ParseError(f"{file or 'the text'} is empty: it holds no program")
    if isinstance(source, bytes) and not source.startswith(_BYTECODE):
        try:
            source = source.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ParseError(f"{file or 'the program'} is neither MLIR text nor MLIR bytecode") from None
    if isinstance(source, bytes):
        return Source(_read_bytecode(source, file or "the program"), (), name)
    b = bindings()
    try:
        module = b.ir.Module.parse(source, b.context())
    except b.ir.MLIRError as error:
        raise _parse_error(error, name) from None
    return Source(module, tuple(source.splitlines()), name)


def _read_bytecode(source: bytes, file: str) -> Any:
    """The module of bytecode, or of a portable artifact, which tells the version that wrote it."""
    b = bindings()
    context = b.context()
    told: list[str] = []

    def listen(diagnostic: Any) -> bool:
        told.append(str(diagnostic.message))
        return True

    written = _PORTABLE.search(source[:64])
    handler = context.attach_diagnostic_handler(listen)
    try:
        if written is None:
            return b.ir.Module.parse(source, context)
        return b.stablehlo.deserialize_portable_artifact(context, source)
    except b.ir.MLIRError as error:
        told += [str(d.message) for d in error.error_diagnostics]
    except ValueError as error:
        told.append(str(error))
    finally:
        handler.detach()
    why = told[0] if told else "it cannot be read"
    if written is None:
        raise ParseError(f"{file} is no whole MLIR bytecode: {why}")
    raise ParseError(
        f"{file} is no portable artifact that this jaxlib reads: {why}",
        fix=f"it was written by StableHLO {written[1].decode()}, jaxlib has {b.stablehlo.get_current_version()}",
    )


def with_known_shapes(source: Source) -> Source | None:
    """The module with every shape that follows from those of main's arguments; None if some do not.

    Dynamic ops become static ones, and assertions about shapes go, by StableHLO's own passes.
    """
    refine = import_module("jaxlib._jax").mlir.refine_polymorphic_shapes
    written = BytesIO()
    source.module.operation.write_bytecode(written)
    try:
        refined = refine(written.getvalue(), enable_shardy="sdy." in str(source.module))
    except (RuntimeError, ValueError):  # jaxlib's errors are both
        return None
    return Source(_read_bytecode(refined, source.file), source.lines, source.file)


def _parse_error(error: Any, file: str) -> ParseError | UsageError:
    """MLIR's first diagnostic, at its line; jaxlib has no quantized types, so that ops on them seem wrong to it."""
    found = list(error.error_diagnostics)
    if not found:
        return ParseError(str(error))
    where = _LINE.search(str(found[0].location))
    place = Location(file if where[1] == TEXT_FILE else where[1], int(where[2])) if where else None
    message = str(found[0].message)
    quantized = _QUANTIZED.match(message)
    if quantized:
        return UsageError(f"cannot import: the op {quantized[1]} is about quantized types", loc=place)
    fix = "give StableHLO, as MLIR text or bytecode; a .gspmd text needs no import: gspmd.load and all commands read it"
    return ParseError(message, loc=place, fix=fix if _UNKNOWN.match(message) else "")
