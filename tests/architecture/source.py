"""The source files of a package as syntax trees: what the architecture checks walk over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gspmd"


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: its dotted name, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def part(self) -> str:
        """The first name below the top package; empty for the package's own public face."""
        return (self.name.split(".") + [""])[1]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One breach of a rule, as an editor can jump to it."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def modules(package: Path = PACKAGE) -> list[Module]:
    """Every module under a package's folder, in the order of their paths; none if there is no such folder."""
    return [_module(package, path) for path in sorted(package.rglob("*.py"))]


def finding(module: Module, node: ast.AST, text: str) -> Finding:
    """A breach at a node of a module."""
    return Finding(str(module.path), getattr(node, "lineno", 1), text)


def imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every imported dotted name, absolute, wherever the import stands.

    `from a import b` gives `a.b`, of which only a prefix may be a module. A call of `import_module` counts when its
    argument is spelled out.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            yield from ((node, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
            if isinstance(name := node.args[0], ast.Constant) and isinstance(name.value, str):
                yield node, name.value


def bound_names(module: Module, prefix: str) -> dict[str, str]:
    """Local names that an import binds to something at or below a dotted prefix, with what they stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            pairs = [(a.asname, a.name) for a in node.names if a.asname]
        elif isinstance(node, ast.ImportFrom):
            pairs = [(a.asname or a.name, f"{_absolute(module, node)}.{a.name}") for a in node.names]
        else:
            continue
        found |= {local: full for local, full in pairs if within(full, prefix)}
    return found


def within(name: str, prefix: str) -> bool:
    """Whether a dotted name is the prefix or lies below it."""
    return name == prefix or name.startswith(prefix + ".")


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes on a name, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def _module(package: Path, path: Path) -> Module:
    names = [package.name, *path.relative_to(package).with_suffix("").parts]
    text = path.read_text(encoding="utf-8")
    return Module(".".join(names).removesuffix(".__init__"), path, text, ast.parse(text, str(path)))


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    base = module.package.split(".")
    base = base[: len(base) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _called(node: ast.Call) -> str:
    return dotted(node.func).rpartition(".")[2]
