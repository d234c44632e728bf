"""The functions of a module: which one is the program, and which one a call means.

A call means a function of the module that it stands in. Those of nested modules are called by their path,
`inner::f`, so that the same name may be there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gspmd.interop.import_types import Unsupported
from gspmd.ir.errors import ParseError, UsageError

_BESIDE = frozenset(("func.func", "sdy.mesh", "builtin.module"))
_APART = "::"
_MAIN = "main"


class Functions:
    """The functions by their paths, and `others`: the ops of modules that are none."""

    def __init__(self, module: Any) -> None:
        self._all: dict[str, Any] = {}
        self.others: list[Any] = []
        self._calls: list[str] = []
        for path, op in _walk(module, ""):
            if op.name == "func.func":
                self._all[path + op.attributes["sym_name"].value] = op
            elif op.name not in _BESIDE:
                self.others.append(op)

    def entry(self, wanted: str) -> str:
        """The function that is the program: main, the only public one, or the only one; the outermost ones first."""
        if wanted or not self._all:
            if wanted in self._all:
                return wanted
            raise ParseError(
                f"the module has no function {wanted}" if wanted else "the module holds no function",
                fix=f"it has {', '.join(self._all)}" if self._all else "",
            )
        depth = min(name.count(_APART) for name in self._all)
        outermost = [n for n in self._all if n.count(_APART) == depth]
        mains = [n for n in outermost if n.rpartition(_APART)[2] == _MAIN]
        candidates = mains or [n for n in outermost if not _is_private(self._all[n])] or outermost
        if len(candidates) > 1:
            raise UsageError(
                f"the module has several functions: {', '.join(candidates)}", fix="say which one with function="
            )
        return candidates[0]

    def __getitem__(self, name: str) -> Any:
        return self._all[name]

    def enter(self, name: str) -> Any:
        """The function that a call means; raises Unsupported if it has no body or is running already."""
        path = self._path(name)
        op = self._all.get(path)
        if op is None or not len(op.regions[0].blocks):
            raise Unsupported(f"the function {name} is not in the module")
        if path in self._calls:
            raise Unsupported(f"the function {name} calls itself")
        self._calls.append(path)
        return op

    def leave(self) -> None:
        """The function that was entered last is done."""
        self._calls.pop()

    def _path(self, name: str) -> str:
        here, _, _ = self._calls[-1].rpartition(_APART) if self._calls else ("", "", "")
        return f"{here}{_APART}{name}" if here else name


def _walk(module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The ops of a module and of those in it, each with the path to its own."""
    for number, op in enumerate(module.regions[0].blocks[0].operations):
        operation = op.operation
        yield path, operation
        if operation.name == "builtin.module":
            attributes = operation.attributes
            name = attributes["sym_name"].value if "sym_name" in attributes else str(number)
            yield from _walk(operation, f"{path}{name}{_APART}")


def _is_private(function: Any) -> bool:
    attributes = function.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"
