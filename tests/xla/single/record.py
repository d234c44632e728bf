"""XLA's answers on the rows, recorded by jaxlib's version and by the program as it was asked about.

python -m tests.xla.single.record            ask about what is new or has changed
python -m tests.xla.single.record --all      ask about everything again; says which answers changed
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.xla.oracle import Answer
from tests.xla.single.asking import ask_all
from tests.xla.single.program import Single
from tests.xla.single.rows import SINGLES
from tests.xla.version import jaxlib_version, standing

FILE = Path(__file__).with_name("answers.json")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What XLA does with one program: bytes on the wire per device, collectives, or why it refused."""

    program: str
    wire_bytes: float
    collectives: str
    error: str = ""


def digest(single: Single) -> str:
    """What is asked: the program at stage annotated, without where it was written down."""
    text = re.sub(r"\s*//.*", "", single.module().text())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def recorded() -> dict[str, dict[str, Recorded]]:
    """The answers of each version of jaxlib, by the rows' names."""
    stored: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {version: {n: Recorded(**r) for n, r in rows.items()} for version, rows in stored.items()}


def answers() -> dict[str, Recorded]:
    """Those of the jaxlib that is installed, else of the newest that was ever asked."""
    return standing(recorded()) or {}


def ask(singles: Sequence[Single]) -> dict[str, Recorded]:
    """XLA's answers now."""
    found = ask_all({s.name: (s.exported(), s.mesh.size) for s in singles})
    return {s.name: _short(digest(s), found[s.name]) for s in singles}


def _short(program: str, answer: Answer) -> Recorded:
    counts: Counter[str] = Counter()
    for c in answer.collectives:
        # XLA combines several all-reduces into one; the arrays of an all-to-all are the parts of one.
        counts[c.kind.replace("-", "_")] += 1 if "all-to-all" in c.kind else c.members
    return Recorded(program, round(answer.wire_bytes, 1), kinds(counts), answer.error)


def kinds(counts: Counter[str]) -> str:
    """`all_reduce, 2 all_to_all`."""
    return ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in sorted(counts.items()))


def write(new: dict[str, Recorded]) -> None:
    """Add answers of the jaxlib that is installed; rows that are gone are dropped."""
    found = recorded()
    here = {**found.get(jaxlib_version(), {}), **new}
    found[jaxlib_version()] = {s.name: here[s.name] for s in SINGLES if s.name in here}
    lines: list[str] = []
    for version, rows in sorted(found.items()):
        body = ",\n".join(f" {json.dumps(n)}: {json.dumps(asdict(r))}" for n, r in rows.items())
        lines.append(f"{json.dumps(version)}: {{\n{body}\n}}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if XLA refused a program or changed its mind under the same version."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.xla.single.record", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--all", action="store_true", help="ask again about every row")
    args = parser.parse_args(arguments)
    before = recorded().get(jaxlib_version(), {})
    wanted = [s for s in SINGLES if args.all or s.name not in before or before[s.name].program != digest(s)]
    new = ask(wanted)
    write(new)
    changed = [n for n, r in new.items() if n in before and before[n].program == r.program and before[n] != r]
    refused = [n for n, r in new.items() if r.error]
    print(f"asked about {len(new)} programs; changed answers: {changed or 'none'}; refused: {refused or 'none'}")
    return 1 if changed or refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
