"""The rules of the house as functions from modules to findings, so that they can be tried on code that breaks them."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from tests.architecture.source import Finding, Module, bound_names, dotted, finding, imports, within

LAYERS: Mapping[str, int] = {
    "ir": 0,
    "kernels": 0,
    "ops": 1,
    "propagation": 2,
    "partitioner": 2,
    "optimizer": 2,
    "runtime": 2,
    "frontend": 2,
    "interop": 2,
    "inspect": 3,
    "driver": 4,
    "cli": 5,
    "": 6,  # the public face
}
# Files at the top of the package that belong to a part.
BELONGS: Mapping[str, str] = {"array": "runtime", "numpy": "frontend", "random": "frontend", "__main__": "cli"}

# The parts that may know ops by name: those that define them, and those that write them down for a user.
OP_AWARE = frozenset({"ops", "interop", "frontend"})


def part_of(name: str) -> str:
    """The part that a module at `package.name...` belongs to."""
    return BELONGS.get(name, name)


def layer_findings(modules: Sequence[Module]) -> Iterator[Finding]:
    """Imports that do not go strictly downward, and parts that have no layer."""
    known = {m.name for m in modules}
    for module in modules:
        top, _, _ = module.name.partition(".")
        source = part_of(module.part)
        if source not in LAYERS:
            yield finding(module, module.tree, f"{source} has no layer: name it in LAYERS")
            continue
        for node, name in imports(module):
            if not within(name, top):
                continue
            target = _imported_part(name, known)
            if target != source and LAYERS.get(target, 0) >= LAYERS[source]:
                yield finding(module, node, f"{source or top} may not import {target or top} ({name})")


def _imported_part(name: str, known: Collection[str]) -> str:
    """The part that an import reaches: below the top package only modules are parts, all else is its public face."""
    top, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    module = f"{top}.{first}"
    is_module = part_of(first) in LAYERS or any(within(k, module) for k in known)
    return part_of(first) if is_module else ""


def op_name_findings(modules: Sequence[Module], names: Collection[str], words: Collection[str]) -> Iterator[Finding]:
    """Op names spelled out, and comparisons of an op or its name, in parts that must not know ops.

    `words` are op names that also mean something else: alone they pass, compared to an op's name they do not.
    """
    for module in modules:
        if part_of(module.part) in OP_AWARE:
            continue
        ops = bound_names(module, f"{module.name.partition('.')[0]}.ops")
        skipped = {id(c) for n in ast.walk(module.tree) for c in _mere_text(n)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and node.value in names and node.value not in words:
                if id(node) not in skipped:
                    yield finding(module, node, f"the op name {node.value!r} is spelled out")
            elif message := _op_comparison(node, ops, names):
                yield finding(module, node, message)


def _mere_text(node: ast.AST) -> Iterator[ast.AST]:
    """Strings that are no values: docstrings, parts of formatted strings, the list of exported names."""
    if isinstance(node, ast.Expr):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from node.values
    elif isinstance(node, ast.Assign) and any(dotted(t) == "__all__" for t in node.targets):
        yield from ast.walk(node.value)


def _op_comparison(node: ast.AST, ops: Mapping[str, str], names: Collection[str]) -> str:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        sides += [e for s in sides if isinstance(s, ast.Tuple | ast.List | ast.Set) for e in s.elts]
        if any(_is_op_name(s) for s in sides):
            return "an op's name is compared: ask for its rule or a trait"
        if any(_is_op_constant(s, ops, names) for s in sides):
            return "an op is compared with a certain op: ask for its rule or a trait"
    if isinstance(node, ast.Match) and _is_op_name(node.subject):
        return "an op's name is matched: ask for its rule or a trait"
    if isinstance(node, ast.Match) and any(
        isinstance(p, ast.MatchValue) and _is_op_constant(p.value, ops, names) for p in ast.walk(node)
    ):
        return "an op is matched with a certain op: ask for its rule or a trait"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_op_name(node.func.value):
        if node.func.attr in ("startswith", "endswith", "removeprefix", "removesuffix", "find"):
            return "an op's name is taken apart: ask for its rule or a trait"
    return ""


def op_class_findings(modules: Sequence[Module], names: Collection[str], allowed: Collection[str]) -> Iterator[Finding]:
    """Ops known by the class of their attributes, and tables keyed by ops, in parts that must not know ops.

    `allowed` lists modules that may, the top package left out.
    """
    for module in modules:
        top, _, name = module.name.partition(".")
        if part_of(module.part) in OP_AWARE or name in allowed:
            continue
        ops = bound_names(module, f"{top}.ops")
        asserted = {id(n.test) for n in ast.walk(module.tree) if isinstance(n, ast.Assert)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and dotted(node.func) == "isinstance" and len(node.args) == 2:
                kinds = [n for n in ast.walk(node.args[1]) if isinstance(n, ast.Name | ast.Attribute)]
                if id(node) not in asserted and any(_is_op_class(k, ops) for k in kinds):
                    yield finding(module, node, "an op is known by its attributes' class: ask for a trait or a hook")
            elif isinstance(node, ast.Dict) and any(k and _is_op_constant(k, ops, names) for k in node.keys):
                yield finding(module, node, "a table is keyed by ops: make it a hook of theirs")


def _is_op_class(node: ast.AST, ops: Mapping[str, str]) -> bool:
    """The attribute class of an op: a name that ends in Attrs and comes from the op set."""
    root, _, _ = dotted(node).partition(".")
    return root in ops and (ops[root] + dotted(node)[len(root) :]).endswith("Attrs")


def _is_op_name(node: ast.AST) -> bool:
    """`op.name`, `node.op.name`, `opdef.name`, `node.op_name`."""
    owner, _, last = dotted(node).rpartition(".")
    holder = owner.rpartition(".")[2]
    if isinstance(node, ast.Attribute) and not owner:  # a call or an index before it: f(x).op.name
        last, holder = node.attr, getattr(node.value, "attr", "")
    return last in ("op_name", "opname") or (last == "name" and holder in ("op", "opdef", "op_def"))


def _is_op_constant(node: ast.AST, ops: Mapping[str, str], names: Collection[str]) -> bool:
    """An OpDef that came from the op set: an imported name or an attribute of an imported module, or OPS[...]."""
    if isinstance(node, ast.Subscript):
        return dotted(node.value).rpartition(".")[2] == "OPS"
    root, _, _ = dotted(node).partition(".")
    meant = ops.get(root, "") + dotted(node)[len(root) :]
    return root in ops and meant.rpartition(".")[2].lower() in names


def function_lengths(modules: Sequence[Module]) -> list[tuple[int, Finding]]:
    """The lines of every function from `def` to its end, its docstring left out."""
    found: list[tuple[int, Finding]] = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1 - _docstring_lines(node)
                found.append((lines, finding(module, node, f"{node.name} has {lines} lines")))
    return found


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def size_findings(modules: Sequence[Module], file_lines: int, function_lines: int) -> Iterator[Finding]:
    """Files and functions that are longer than they may be."""
    for module in modules:
        lines = len(module.text.splitlines())
        if lines > file_lines:
            yield finding(module, module.tree, f"the file has {lines} lines, {file_lines} are allowed")
    for lines, where in function_lengths(modules):
        if lines > function_lines:
            yield Finding(where.path, where.line, f"{where.text}, {function_lines} are allowed")


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest value that at least this share of the values does not exceed; 0 for none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0


def dataclass_findings(modules: Sequence[Module], allowed: Collection[str]) -> Iterator[Finding]:
    """Dataclasses that are not both frozen and slotted; `allowed` lists `module.Class`, the top package left out."""
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ClassDef):
                continue
            name = f"{module.name.partition('.')[2]}.{node.name}"
            for decorator in node.decorator_list:
                lacks = _lacking(decorator)
                if lacks and name not in allowed:
                    yield finding(module, node, f"the dataclass {name} is not {' and '.join(lacks)}")


def _lacking(decorator: ast.expr) -> list[str]:
    call = decorator if isinstance(decorator, ast.Call) else None
    if dotted(call.func if call else decorator).rpartition(".")[2] != "dataclass":
        return []
    given = {k.arg for k in call.keywords if isinstance(k.value, ast.Constant) and k.value.value} if call else set()
    return [word for word in ("frozen", "slots") if word not in given]


def trait_findings(modules: Sequence[Module], traits: Collection[str], enum: str) -> Iterator[Finding]:
    """Uses of an op's traits that do not go through the listed ones: a name not in the enum, or a bare string."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and dotted(node.value).rpartition(".")[2] == enum:
                if node.attr.isupper() and node.attr not in traits:
                    yield finding(module, node, f"{enum}.{node.attr} is not listed")
            elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant):
                if any(dotted(c).endswith(".traits") for c in node.comparators):
                    yield finding(module, node, f"the trait {node.left.value!r} is asked for by a bare string")
