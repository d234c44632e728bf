"""What there is to every op: rewrites docs/ops.md from the records, the import and export tables, and the laws.

python -m tests.ops.table [--check]      with --check: only tells whether the page is up to date
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import gspmd.ops
from gspmd.interop import import_custom, import_lapack, import_ops, import_program
from gspmd.interop.export_stablehlo import exports
from gspmd.interop.import_program import Importer
from gspmd.ir.graph import Node
from gspmd.ir.opdef import OpDef, Trait, node_rule
from gspmd.ir.parser import parse_example
from gspmd.ir.rule import Access
from gspmd.ops import OPS
from gspmd.ops.rules import differentiable
from tests.ir.test_text import EXAMPLES as PRINTED
from tests.mutation.sample import RULED
from tests.ops.cases import LOCAL_EXAMPLES
from tests.ops.test_fast import FAST
from tests.ops.test_gradients import SMOOTH
from tests.partitioner.test_soundness import EXAMPLES as SOUND
from tests.partitioner.test_soundness import LINEAR
from tests.propagation.test_ops import EXAMPLES as PROPAGATED

COMMAND = "python -m tests.ops.table"
PAGE = Path(__file__).parents[2] / "docs" / "ops.md"
NONE = "–"
# What is imported and becomes no op of its own: elements of tuples, bodies of calls, what only orders or hints.
DISSOLVED = frozenset(
    ("func.call", "stablehlo.composite", "sdy.named_computation", "stablehlo.custom_call")
    + ("stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.after_all", "stablehlo.create_token")
    + ("sdy.data_flow_edge", "sdy.func_data_flow_edge", "sdy.propagation_barrier", "sdy.sharding_group")
)
# Where what the code names first is not the main thing.
MAIN = {
    "@lapack_*ormqr": "householder_product",
    "@lapack_*unmqr": "householder_product",
    "@SPMDFullToShardShape": "manual_computation",
    "@SPMDShardToFullShape": "manual_computation",
    "chlo.constant_like": "constant",
    "stablehlo.unary_einsum": "reduce",
}
INTRODUCTION = f"""# The ops

This page is written by `{COMMAND}` from the records in `gspmd/ops`, the tables of `gspmd/interop` and the lists of
examples that the laws run over; a test fails when it is out of date.

* **imported from**: ops of StableHLO (`stablehlo.`), CHLO and Shardy (`sdy.`) and custom calls (`@`) that become this
  op, if need be with others around it. [import.md](import.md) has the rest.
* **exported**: whether StableHLO can be written again from it.
* **propagated**: by which kinds of factors of its rule shardings spread; *flow*: values that are one value at different
  places, such as loop carries.
* **partitioned**: *rule*: by the rule alone; *halos*: by the rule's accesses, whose neighbours' elements are fetched;
  *own body*: a local body that the rule cannot say; *regions*: its regions are partitioned; *reshard*: moves between
  shardings, planned as collectives; *local*: only there once programs are per device.
* **kernel**: *array*: a function of whole arrays; *exchange*: shards meet; *machine*: runs regions, or asks for its
  place on the mesh.
* **fast**: how it stands in fused kernels: as an *expression* of scalars, its elements *as they are*, or the *index*.
* **gradient**: *residuals*: when it is differentiated it also keeps what its gradient needs; *integer*: its results are
  integers or bools.
* **examples**: how many the record has. **laws**: those that take all of them, or as many as the number before says:
  *text* prints and parses; *kernel* gives the inferred types; *fast* is the kernel; *gradient* is the difference
  quotient (in f64); *propagate* is sound; *split* gives the same numbers on every mesh, for each factor and pair of
  factors; *linear* passes partial sums; *mutant* notices an altered rule. Collectives have no examples: they need a
  mesh, and stand in the laws of resharding and of programs.
"""
HEAD = (
    "| op | imported from | exported | propagated | partitioned | kernel | fast | gradient | examples | laws |\n"
    "|---|---|---|---|---|---|---|---|---:|---|\n"
)


# -- where ops come from ---------------------------------------------------------------------------------------------


@cache
def sources() -> Mapping[str, tuple[str, ...]]:
    """For each op, what is imported as it: read off the code of what handles each name."""
    found: dict[str, list[str]] = defaultdict(list)
    handlers = {name: h for name, h in import_program._handlers().items() if name not in DISSOLVED}
    lapack = {f"@lapack_*{routine}": handler for routine, handler in import_lapack.ROUTINES.items()}
    calls = {f"@{target}": handler for target, handler in import_custom._CALLS.items()}
    for name, handler in {**handlers, **lapack, **calls}.items():
        ours = (
            MAIN.get(name)
            or same_name(name)
            or import_ops._READERS.get(name, ("", None))[0]
            or main_op(emitted(handler))
        )
        if ours:
            found[ours].append(name)
    return {name: tuple(sorted(given, key=lambda n: (n.startswith("@"), n))) for name, given in found.items()}


def same_name(name: str) -> str:
    """The op of ours that has the name in the dialect, or CHLO's without its prefix; Shardy's reshards are requests."""
    dialect, _, own = name.partition(".")
    if dialect not in ("stablehlo", "chlo", "sdy"):
        return ""
    known = [n for n in (own, own.removeprefix("broadcast_")) if n in OPS]
    return next((n for n in known if dialect != "sdy" or not OPS[n].has(Trait.RESHARD)), "")


def main_op(ops: Iterator[str]) -> str:
    """The first op that is no literal, unless there are only such."""
    literal = ""
    for name in ops:
        if not OPS[name].has(Trait.LITERAL):
            return name
        literal = literal or name
    return literal


def emitted(handler: Callable[..., Any]) -> Iterator[str]:
    """The ops that a handler's code names, in order, and then those that what it calls of the package names."""
    seen: set[CodeType] = set()
    waiting: list[Any] = [handler]
    while waiting:
        function = waiting.pop(0)
        if not isinstance(function, FunctionType) or function.__code__ in seen:
            continue
        seen.add(function.__code__)
        held = [c.cell_contents for c in function.__closure__ or ()]
        # A name is that of something in the module, in a module that it names, or of a method of the importer.
        names, scope = tuple(names_in(function.__code__)), function.__globals__
        scopes = [scope, *(vars(m) for n in names if isinstance(m := scope.get(n), ModuleType)), vars(Importer)]
        named = [next((s[n] for s in scopes if n in s), None) for n in names]
        for thing in (*held, *named):
            if isinstance(thing, OpDef) and thing.name in OPS:
                yield thing.name
            elif isinstance(thing, FunctionType) and thing.__module__.startswith(
                ("gspmd.interop.import_", "gspmd.ops.")
            ):
                waiting.append(thing)


def names_in(code: CodeType) -> Iterator[str]:
    """The global names of a code, and of the functions and comprehensions within it."""
    yield from code.co_names
    for held in code.co_consts:
        if isinstance(held, CodeType):
            yield from names_in(held)


# -- what a record says ----------------------------------------------------------------------------------------------


@cache
def nodes(name: str) -> tuple[Node, ...]:
    """The examples of an op as nodes."""
    return tuple(parse_example(text, OPS).body.nodes[-1] for text in OPS[name].examples)


def propagated(op: OpDef[Any]) -> str:
    """The kinds of factors, in the order in which rules list them."""
    rules = [rule for node in nodes(op.name) if (rule := node_rule(node)) is not None]
    kinds = {kind: None for rule in rules for kind in sorted({f.kind for f in rule.factors})}
    return ", ".join([*kinds, *(["rule"] if op.rule and not kinds else []), *(["flow"] if op.flow else [])]) or NONE


def partitioned(op: OpDef[Any]) -> str:
    """How it becomes local."""
    if op.flow is not None:
        return "regions"
    if op.has(Trait.RESHARD):
        return "reshard"
    if op.localize is not None:
        return "own body"
    if op.rule is None:
        return "regions" if any(n.regions for n in nodes(op.name)) else "local"
    accesses = any(
        isinstance(dim, Access)
        for node in nodes(op.name)
        if (rule := node_rule(node)) is not None
        for tensor in rule.tensors
        for dim in tensor
    )
    return "rule, halos" if accesses else "rule"


def run_by(op: OpDef[Any]) -> str:
    """How it is run."""
    if op.kernel is not None:
        return "array"
    if op.execute is None:
        return NONE
    return "exchange" if op.has(Trait.COLLECTIVE) else "machine"


def fast_form(op: OpDef[Any]) -> str:
    """How it stands in fused kernels, for those of its examples that can."""
    forms = [op.fast(tuple(v.type for v in n.operands), n.attrs) for n in nodes(op.name)] if op.fast else []
    found = next((form for form in forms if form is not None), None)
    if found is None:
        return NONE
    return "as they are" if found == "{0}" else "expression" if "{0}" in found else "index"


def gradient(op: OpDef[Any]) -> str:
    """Whether there is a gradient, and if not why."""
    if op.vjp is not None:
        return "vjp, residuals" if op.save is not None else "vjp"
    examples = nodes(op.name)
    if not examples:
        return "none: made after gradients"
    if not any(n.operands for n in examples):
        return "none: no operands"
    smooth = any(all(differentiable(v.type) for v in n.results) for n in examples)
    return "none: not differentiable" if smooth else "none: integer"


LAWS: Mapping[str, tuple[str, ...]] = {
    "text": tuple(text for _, text in PRINTED),
    "kernel": LOCAL_EXAMPLES,
    "fast": tuple(FAST),
    "gradient": SMOOTH,
    "propagate": tuple(PROPAGATED),
    "split": tuple(SOUND),
    "linear": tuple(dict.fromkeys(text for text, _ in LINEAR)),
}


@cache
def counts(law: str) -> Mapping[str, int]:
    """How many examples of each op a law takes."""
    return Counter(parse_example(text, OPS).body.nodes[-1].op.name for text in LAWS[law])


def laws(op: OpDef[Any]) -> str:
    """The laws that an op stands in; before a name, of how many examples, if not of all."""
    found = [(law, counts(law).get(op.name, 0)) for law in LAWS]
    named = [law if n == len(op.examples) else f"{n} {law}" for law, n in found if n]
    return ", ".join([*named, *(["mutant"] if op.name in RULED else [])]) or NONE


# -- the page --------------------------------------------------------------------------------------------------------


def families() -> list[tuple[ModuleType, list[OpDef[Any]]]]:
    """The modules of ops in their order, each with its ops."""
    found: dict[str, tuple[ModuleType, list[OpDef[Any]]]] = {}
    modules = [m for m in vars(gspmd.ops).values() if isinstance(m, ModuleType) and hasattr(m, "FAMILY")]
    for op in OPS.values():
        # A module may pass on the ops of another one: those of the smaller family are its own.
        home = min((m for m in modules if op in m.FAMILY), key=lambda m: len(m.FAMILY))
        found.setdefault(home.__name__, (home, []))[1].append(op)
    return list(found.values())


def row(op: OpDef[Any]) -> str:
    """An op's line."""
    cells = (
        f"`{op.name}`",
        ", ".join(f"`{name}`" for name in sources().get(op.name, ())) or NONE,
        "yes" if exports(op.name) else NONE,
        propagated(op),
        partitioned(op),
        run_by(op),
        fast_form(op),
        gradient(op),
        str(len(op.examples)),
        laws(op),
    )
    return f"| {' | '.join(cells)} |\n"


def page() -> str:
    """The text of docs/ops.md."""
    parts = [INTRODUCTION]
    for module, ops in families():
        title = (module.__doc__ or "").strip().partition("\n")[0]
        parts.append(f"\n## {module.__name__.rpartition('.')[2]}\n\n{title}\n\n{HEAD}" + "".join(map(row, ops)))
    return "".join(parts)


def main(*options: str) -> int:
    """Write the page, or tell whether it is as it would be written."""
    text = page()
    if "--check" not in options:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE.name} is out of date: {COMMAND}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
