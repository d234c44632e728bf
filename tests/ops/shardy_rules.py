"""Our factor rules beside Shardy's registry; rewrites docs/rules.md.

    python -m tests.ops.shardy_rules          compares with the recorded answers and rewrites the page
    python -m tests.ops.shardy_rules --ask    asks the jaxlib installed here about every example first

An example is exported to StableHLO and Shardy asked for the rule of the op that it becomes. Two rules are compared by
which dimensions of which tensors share a factor, and by the kinds of the factors; dimensions of size 1 do not count.
Answers are kept in shardy_rules.json, by jaxlib's version and the example.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gspmd.interop.export_stablehlo import export_stablehlo, exports
from gspmd.ir.opdef import node_rule
from gspmd.ir.parser import parse_example
from gspmd.ir.rule import Access, Rule, dim_factors
from gspmd.ops import OPS
from tests.propagation.judge.shardy import run_passes
from tests.xla.version import jaxlib_version, standing

RECORD = Path(__file__).with_name("shardy_rules.json")
PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
PIPELINE = "builtin.module(func.func(sdy-populate-op-sharding-rules))"

_RULE = re.compile(r"<\((.*)\)->\((.*?)\)(?: \{(.*?)\})?((?: \w+=\{[^}]*\})*)>")
_LETTER = re.compile(r"[a-z](?:_\d+)?")

Place = tuple[str, int, int]  # "in" or "out", the tensor among those with dimensions, the dimension
Pair = tuple[Place, Place]

# Why rules differ. Each difference has one of these classes.
REASONS: Mapping[str, str] = {
    "no rule": "Shardy has no rule for what the op becomes (CHLO, a composite, a custom call): nothing passes it. "
    "Or it becomes several ops.",
    "whole": "Shardy ties a dimension that the op needs whole to the same one of the result, marked need_replication: "
    "the split goes on as if the op kept it, at two exchanges. Ours ties nothing: its axes move to another dimension, "
    "or are gathered, in one exchange.",
    "blocked": "Shardy ties dimensions of different sizes to forbid that anything passes (blocked_propagation). Ours "
    "has two factors.",
    "access": "Shardy lets the dimension's split pass as a hint (permutation) or needs it whole. Ours says which cells "
    "are read, an access, and reads over the shards' border by an exchange of what is missing.",
    "minor": "Shardy ties minor factors of two dimensions whose major ones differ. A split gets there only past a "
    "major factor that has to be exchanged anyway; ours leaves it at that.",
    "lookup": "What Shardy calls a reduction over a dimension addressed by data, or leaves without a factor to share, "
    "is a lookup here: each device looks up what it holds.",
    "select": "What Shardy calls a reduction is a select here: each device picks among its own, then all among the "
    "picks; the picks are no partial sums.",
    "scan": "Shardy calls a cumulative dimension a permutation. Ours is a scan: each device scans its part and adds "
    "what comes before.",
    "finer": "Ours ties or splits dimensions that Shardy leaves apart or wants whole.",
}


@dataclass(frozen=True)
class Structure:
    """A rule without names: the pairs of dimensions that share a factor, and what kinds a dimension's factors have."""

    pairs: frozenset[Pair]
    kinds: Mapping[Place, frozenset[str]]


@dataclass(frozen=True)
class Difference:
    """An example whose rules differ, and the classes of what differs."""

    op: str
    example: str
    ours: str
    theirs: str
    classes: tuple[str, ...]


def examples() -> Iterator[tuple[str, str]]:
    """Every example, with its op, of ops that have a rule and can be written as StableHLO."""
    for name, op in sorted(OPS.items()):
        if op.rule is not None and exports(name):
            for example in op.examples:
                yield name, example


def rule_of_example(example: str) -> Rule:
    """Our rule for an example."""
    rule = node_rule(parse_example(example, OPS).body.nodes[-1])
    assert rule is not None
    return rule


def ask(example: str) -> str:
    """Shardy's rule for an example; "" if it has none, or the export is more than one op."""
    text = export_stablehlo(parse_example(example, OPS), "sdy")
    module = run_passes(text, PIPELINE)
    main = next(f for f in module.body.operations if f.attributes["sym_name"].value == "main")
    nodes = [op.operation for op in main.regions[0].blocks[0].operations][:-1]
    nodes = [op for op in nodes if op.name != "stablehlo.constant"]
    if len(nodes) != 1 or "sdy.sharding_rule" not in nodes[0].attributes:
        return ""
    if len(set(nodes[0].operands)) != len(nodes[0].operands):
        return ""
    return str(nodes[0].attributes["sdy.sharding_rule"])


def recorded() -> dict[str, dict[str, str]]:
    """The recorded answers: by version, the rule for each example."""
    stored: dict[str, dict[str, str]] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return stored


def answers() -> dict[str, str]:
    """The answers of the jaxlib installed here, or else the newest ones recorded."""
    return standing(recorded()) or {}


# -- structure -------------------------------------------------------------------------------------------------------


def structure(
    tensors: Sequence[Sequence[tuple[tuple[str, ...], int]]], inputs: int, kind_of: Mapping[str, str]
) -> Structure:
    """Of tensors whose dimensions have names of factors and a size; tensors without dimensions do not count."""
    places: dict[str, list[Place]] = {}
    kinds: dict[Place, frozenset[str]] = {}
    counts = {"in": 0, "out": 0}
    for number, tensor in enumerate(tensors):
        side = "in" if number < inputs else "out"
        if not tensor:
            continue
        index = counts[side]
        counts[side] += 1
        for d, (names, size) in enumerate(tensor):
            if size == 1:
                continue
            kinds[side, index, d] = frozenset(kind_of.get(n, "pass") for n in names)
            for n in names:
                places.setdefault(n, []).append((side, index, d))
    pairs = {tuple(sorted((a, b))) for held in places.values() for a in held for b in held if a[:2] != b[:2]}
    return Structure(frozenset(pairs), kinds)  # type: ignore[arg-type]


def our_structure(rule: Rule) -> Structure:
    """Of one of our rules; a factor of size 1 names nothing."""
    kind_of: dict[str, str] = {str(f): factor.kind for f, factor in enumerate(rule.factors)}
    tensors: list[list[tuple[tuple[str, ...], int]]] = []
    for t in rule.tensors:
        dims: list[tuple[tuple[str, ...], int]] = []
        for dim in t:
            names = tuple(str(f) for f in dim_factors(dim) if rule.factors[f].size > 1)
            if isinstance(dim, Access):
                names = (str(rule.main_factor(dim)),)
                kind_of[f"access {dim}"] = "access"
                names = (*names, f"access {dim}")
            dims.append((names, rule.dim_size(dim)))
        tensors.append(dims)
    found = structure(tensors, len(rule.operands), kind_of)
    kinds = dict(found.kinds)
    for a, b in found.pairs:  # what is tied to an access is read like it
        if "access" in found.kinds[a] | found.kinds[b]:
            kinds[a], kinds[b] = kinds[a] | {"access"}, kinds[b] | {"access"}
    return Structure(found.pairs, kinds)


def their_structure(text: str, shapes: Sequence[Sequence[int]]) -> Structure:
    """Of Shardy's text; `shapes` are those of our tensors with dimensions, for the sizes."""
    found = _RULE.search(text)
    if found is None:
        raise ValueError(f"no rule of Shardy's: {text}")
    operands, results = (_tensors(found[i]) for i in (1, 2))
    sizes = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", found[3] or "")}
    kind_of: dict[str, str] = {}
    for kind, names in re.findall(r"(\w+)=\{([^}]*)\}", found[4]):
        kind_of.update((n, kind) for n in names.replace(" ", "").split(","))
    rest = iter(shapes)
    tensors: list[list[tuple[tuple[str, ...], int]]] = []
    for t in [*operands, *results]:
        shape = next(rest, ()) if t else ()
        dims = [(tuple(n for n in names if sizes[n] > 1), size) for names, size in zip(t, shape, strict=False)]
        tensors.append(dims)
    return structure(tensors, len(operands), kind_of)


def _tensors(text: str) -> list[list[tuple[str, ...]]]:
    inside = re.findall(r"\[([^\]]*)\]", text)
    return [[tuple(_LETTER.findall(d)) for d in t.split(",")] if t.strip() else [] for t in inside]


# -- comparison ------------------------------------------------------------------------------------------------------


def differences(answered: Mapping[str, str]) -> tuple[list[Difference], int]:
    """The examples whose rules differ, and how many rules are the same."""
    found: list[Difference] = []
    same = 0
    for name, example in examples():
        if example not in answered:
            raise KeyError(f"Shardy was not asked about {example}; python -m tests.ops.shardy_rules --ask asks")
        node, rule = parse_example(example, OPS).body.nodes[-1], rule_of_example(example)
        theirs = answered[example]
        if theirs:
            shapes = [v.type.shape for v in (*node.operands, *node.results) if v.type.rank]
            classes = classify(our_structure(rule), their_structure(theirs, shapes))
        else:
            classes = ("no rule",) if our_structure(rule).pairs else ()
        if classes:
            found.append(Difference(name, example, rule.text(), theirs, classes))
        else:
            same += 1
    return found, same


def classify(ours: Structure, theirs: Structure) -> tuple[str, ...]:
    """The classes of the differences between two rules; "unknown" for what has none."""
    classes: set[str] = set()
    for pair in theirs.pairs - ours.pairs:
        kinds = theirs.kinds.get(pair[0], frozenset()) | theirs.kinds.get(pair[1], frozenset())
        mine = ours.kinds.get(pair[0], frozenset()) | ours.kinds.get(pair[1], frozenset())
        if "blocked_propagation" in kinds:
            classes.add("lookup" if "lookup" in mine else "blocked")
        elif "need_replication" in kinds and mine & {"whole", "lookup"}:
            classes.add("whole")
        elif "permutation" in kinds and "access" in mine:
            classes.add("access")
        else:
            classes.add("minor" if kinds == {"pass"} and "whole" in mine else "unknown")
    for pair in ours.pairs - theirs.pairs:
        mine = ours.kinds[pair[0]] | ours.kinds[pair[1]]
        classes.add("access" if "access" in mine else "finer")
    for place in ours.kinds.keys() & theirs.kinds.keys():
        classes |= _kind_class(ours.kinds[place], theirs.kinds[place])
    return tuple(sorted(classes))


def _kind_class(ours: frozenset[str], theirs: frozenset[str]) -> set[str]:
    """The class of a dimension's kinds where they differ though it is tied alike."""
    if "access" in ours:
        return {"access"}
    for kind in ("select", "scan", "lookup"):
        if kind in ours:
            return {kind}
    plain = {"reduction": "reduce", "need_replication": "whole", "blocked_propagation": "whole"}
    said = {plain.get(k, k) for k in theirs}
    if said == ours or not ours or not theirs:
        return set()
    if said == {"pass"} and "whole" in ours:
        return {"minor"}
    return {"finer"} if said <= {"whole", "permutation"} and ours <= {"pass", "reduce"} else {"unknown"}


# -- the page --------------------------------------------------------------------------------------------------------

INTRODUCTION = """# Our factor rules beside Shardy's

This page is written by `python -m tests.ops.shardy_rules`; `tests/ops/test_golden.py` holds it to the rules of today.
Every rule of ours stands in `tests/ops/rules.txt`; `--ask` asks the Shardy in jaxlib again.
"""


def page(answered: Mapping[str, str]) -> str:
    """The text of docs/rules.md: the counts, the reasons, and one example of each difference of each op."""
    found, same = differences(answered)
    total, ops = len(found) + same, len({op for op, _ in examples()})
    lines = [
        INTRODUCTION,
        f"{total} examples of {ops} ops: {same} rules have the same structure, {len(found)} differ.\n",
    ]
    lines += ["| class | examples | reason |", "|---|---:|---|"]
    for name, reason in REASONS.items():
        count = sum(name in d.classes for d in found)
        if count:
            lines.append(f"| {name} | {count} | {reason} |")
    lines += ["", "| op | class | example | our rule | Shardy's rule |", "|---|---|---|---|---|"]
    shown: set[tuple[str, tuple[str, ...]]] = set()
    for d in found:
        if (d.op, d.classes) in shown or d.classes == ("no rule",):
            continue
        shown.add((d.op, d.classes))
        theirs = d.theirs.removeprefix("#sdy.op_sharding_rule<").removesuffix(">")
        lines.append(f"| {d.op} | {', '.join(d.classes)} | `{_short(d.example)}` | `{d.ours}` | `{theirs}` |")
    without = sorted({d.op for d in found if d.classes == ("no rule",)})
    lines += ["", f"Without a rule of Shardy's: {', '.join(without)}.", ""]
    return "\n".join(lines)


def _short(example: str) -> str:
    text = example.replace("|", "\\|")
    return text if len(text) < 90 else f"{text[:87]}..."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if some difference has no reason."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.ops.shardy_rules", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--ask", action="store_true", help="ask Shardy about every example first")
    if parser.parse_args(arguments).ask:
        stored = recorded() | {jaxlib_version(): {example: ask(example) for _, example in examples()}}
        RECORD.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    found, same = differences(answers())
    PAGE.write_text(page(answers()), encoding="utf-8")
    unknown = [d for d in found if "unknown" in d.classes]
    for d in unknown:
        print(f"unexplained: {d.example}\n  ours   {d.ours}\n  theirs {d.theirs}")
    print(f"{same} rules alike, {len(found)} differ, {len(unknown)} of them unexplained")
    return 1 if unknown else 0


if __name__ == "__main__":
    raise SystemExit(main())
