"""Which kind of split each op has been through: a table of op by kind, with the cells that were never reached.

An axis may split a factor that passes, is reduced, scanned, looked up or selected from; a dimension that the op needs
whole may have been held split; dimensions may be accesses or products; shards may be uneven or empty. A cell is
impossible ("-") where no example of the op has such a factor, and a hole (".") where one could be reached and was not.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from gspmd.ir.agreement import assignment
from gspmd.ir.axes import parts
from gspmd.ir.graph import Program
from gspmd.ir.opdef import Trait, node_rule, sets_sharding
from gspmd.ir.rule import Access, Rule
from gspmd.ops import OPS
from tests.fuzz.judge import Outcome
from tests.ops.cases import parse

COLUMNS = ("seen", "pass", "reduce", "scan", "lookup", "select", "whole", "access", "product", "uneven", "empty")
# Cells that look reachable and are not, with the reason.
UNREACHABLE: dict[tuple[str, str], str] = {
    **{("custom", c): "the op is the user's own, and no other process knows it" for c in COLUMNS},
    **{
        ("sharding_constraint", c): "annotations are gone at stage explicit, where splits are read off"
        for c in ("pass", "uneven", "empty")
    },
    ("constant", "whole"): "an op without operands asks for nothing",
}

Cells = Counter[tuple[str, str]]


def cells_of(outcome: Outcome) -> Cells:
    """What one case has reached."""
    found: Cells = Counter()
    if outcome.propagated is not None:
        for node in outcome.propagated.body.walk():
            found[node.op.name, "seen"] += 1
    if outcome.explicit is not None:
        _add(outcome.explicit, found)
    return found


def _add(program: Program, found: Cells) -> None:
    resharded = {}
    for node in program.body.walk():
        if node.op.has(Trait.RESHARD) and len(node.operands) == 1:
            resharded[node.result] = node.operands[0]
            continue
        if sets_sharding(node.op, tuple(v.type for v in node.operands), node.attrs):
            continue
        rule = node_rule(node)
        operands = tuple(v.type.sharding for v in node.operands if v.type.sharding is not None)
        results = tuple(v.type.sharding for v in node.results if v.type.sharding is not None)
        if rule is None or len(operands) != len(node.operands) or len(results) != len(node.results):
            continue
        axes = assignment(rule, operands, results)
        if isinstance(axes, str):
            continue
        name = node.op.name
        for f, held in axes.items():
            if held:
                _split(rule, f, parts(held), name, found)
        for v, maps, sharding in zip(node.operands, rule.operands, operands, strict=True):
            for d, dim in enumerate(maps):
                if isinstance(dim, Access) and sharding.dims[d].axes:
                    found[name, "access"] += 1
                source = resharded.get(v)
                if source is not None and not isinstance(dim, Access) and source.type.placed.dims[d].axes:
                    if any(rule.factors[f].kind == "whole" for f in dim):
                        found[name, "whole"] += 1


def _split(rule: Rule, f: int, count: int, name: str, found: Cells) -> None:
    factor = rule.factors[f]
    found[name, factor.kind] += 1
    if any(not isinstance(d, Access) and len(d) > 1 and f in d for t in rule.tensors for d in t):
        found[name, "product"] += 1
    if factor.size % count:
        found[name, "uneven"] += 1
    if -(-factor.size // count) * (count - 1) >= factor.size:
        found[name, "empty"] += 1


@cache
def possible(name: str) -> frozenset[str]:
    """The columns that an op's examples have factors for."""
    out = {"seen"}
    for example in OPS[name].examples:
        try:
            rule = node_rule(parse(example).body.nodes[-1])
        except Exception:  # noqa: BLE001  collectives on local types
            continue
        if rule is None:
            continue
        for factor in rule.factors:
            out.add(factor.kind)
            if factor.kind != "whole" and factor.size > 1:
                out |= {"uneven", "empty"}
        for tensor in rule.tensors:
            for dim in tensor:
                if isinstance(dim, Access):
                    out.add("access")
                elif len(dim) > 1:
                    out.add("product")
    return frozenset(out)


def holes(found: Cells) -> list[tuple[str, str]]:
    """The cells that could be reached and were not."""
    return [
        (name, column)
        for name in _names()
        for column in COLUMNS
        if column in possible(name) and not found[name, column] and (name, column) not in UNREACHABLE
    ]


def _names() -> list[str]:
    return [n for n, op in OPS.items() if op.examples and not op.has(Trait.RESHARD) and not op.has(Trait.COLLECTIVE)]


def table(found: Cells) -> str:
    """The table, the holes below it."""
    lines = [f"{'':24}" + "".join(f"{c:>8}" for c in COLUMNS)]
    for name in _names():
        row = [str(found[name, c] or ("." if c in possible(name) else "-")) for c in COLUMNS]
        lines.append(f"{name:24}" + "".join(f"{cell:>8}" for cell in row))
    left = holes(found)
    lines.append(f"{len(left)} cells are empty: " + ", ".join(f"{n}/{c}" for n, c in left))
    lines += [f"{n}/{c} cannot be reached: {why}" for (n, c), why in UNREACHABLE.items()]
    return "\n".join(lines)
