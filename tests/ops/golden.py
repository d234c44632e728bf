"""`python -m tests.ops.golden`: writes the factor rule of every example of every op to rules.txt, alphabetically.

The file is there to be read: a change of a rule shows as a line of a diff. `shardy_rules.py` compares the
rules with those of Shardy's registry; docs/rules.md tells what differs.
"""

from __future__ import annotations

from pathlib import Path

from gspmd.ir.opdef import node_rule
from gspmd.ir.parser import parse_example
from gspmd.ops import OPS

FILE = Path(__file__).with_name("rules.txt")


def rules_text() -> str:
    """For each op in alphabetical order, its examples and the rule of each; ops without rules say what ties them."""
    lines: list[str] = []
    for name, op in sorted(OPS.items()):
        lines.append(name)
        if op.rule is None:
            tied = "data-flow edges" if op.flow else "the border of per-device code" if op.crossings else "nothing"
            lines.append(f"  no rule: {tied}")
        for example in op.examples if op.rule is not None else ():
            node = parse_example(example, OPS).body.nodes[-1]
            rule = node_rule(node)
            assert rule is not None
            lines += [f"  {example}", f"    {rule.text()}"]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(rules_text(), encoding="utf-8")
    print(f"wrote {FILE.name}: {len(OPS)} ops")
