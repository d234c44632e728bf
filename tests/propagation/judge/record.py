"""What Shardy and XLA said about the judge's programs, kept in the repository.

`answers.json` maps jaxlib's version and a program's name to the digest of its exported texts and, for each judge, the
sharding of every value that is compared: the values by sharding, so that the file stays short. A program that changed
has another digest and has to be asked about again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding, parse_sharding
from tests.propagation.judge import shardy, xla
from tests.propagation.judge.compare import Question

FILE = Path(__file__).with_name("answers.json")
JUDGES = ("shardy", "xla")

Held = dict[str, Sharding]
Stored = dict[str, list[str]]  # the values of each sharding


@dataclass(frozen=True)
class Answer:
    """The judges' shardings of one program's values, as text; empty for a judge that refused."""

    digest: str
    said: Mapping[str, Stored]

    def shardings(self, judge: str, mesh: Mesh) -> Held:
        """What one judge said, on a mesh."""
        return {v: parse_sharding(text, mesh) for text, values in self.said.get(judge, {}).items() for v in values}


def digest(q: Question) -> str:
    """What an answer belongs to."""
    return hashlib.sha256((q.shardy_text + q.xla_text).encode()).hexdigest()[:16]


def ask(questions: Mapping[str, Question]) -> dict[str, Answer]:
    """Ask both judges about programs."""
    numbers = {f"p{i}": q for i, q in enumerate(questions.values())}
    found = xla.ask({n: q.xla_text for n, q in numbers.items()}, {n: q.mesh.size for n, q in numbers.items()})
    out: dict[str, Answer] = {}
    for (name, q), number in zip(questions.items(), numbers, strict=True):
        ranks = _ranks(q)
        theirs = {"shardy": _from_shardy(q), "xla": _flat(xla.shardings(found[number], q.mesh, ranks), ranks, q)}
        out[name] = Answer(digest(q), {judge: _stored(held, q) for judge, held in theirs.items()})
    return out


def load() -> dict[str, dict[str, Answer]]:
    """The recorded answers: by version, by program."""
    raw = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {v: {n: Answer(a["digest"], a["said"]) for n, a in programs.items()} for v, programs in raw.items()}


def save(answers: Mapping[str, Mapping[str, Answer]]) -> None:
    """Write the answers, a line for each program."""
    blocks: list[str] = []
    for version, programs in answers.items():
        lines = [f'  "{n}": {json.dumps({"digest": a.digest, "said": a.said})}' for n, a in sorted(programs.items())]
        blocks.append(f' "{version}": {{\n' + ",\n".join(lines) + "\n }")
    FILE.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def _from_shardy(q: Question) -> Held:
    return _flat(shardy.ask(q.shardy_text, q.mesh), _ranks(q), q)


def _flat(held: Mapping[str, Sequence[Sharding | None]], ranks: Mapping[str, Sequence[int]], q: Question) -> Held:
    """By our names: `%3#1` for a value of several; what has no sharding is replicated."""
    out: Held = {}
    for name, each in held.items():
        if name not in ranks or len(each) != len(ranks[name]):
            continue
        for i, (sharding, rank) in enumerate(zip(each, ranks[name], strict=True)):
            full = name if len(each) == 1 else f"{name}#{i}"
            out[full] = sharding or Sharding.replicate(q.mesh, rank)
    return out


def _ranks(q: Question) -> dict[str, list[int]]:
    """The ranks of the values that each name of the text stands for."""
    found: dict[str, dict[int, int]] = {}
    for value, name in q.names.items():
        head, _, index = name.partition("#")
        found.setdefault(head, {})[int(index or 0)] = value.type.rank
    return {head: [parts[i] for i in sorted(parts)] for head, parts in found.items()}


def _stored(held: Held, q: Question) -> Stored:
    out: Stored = {}
    for name in sorted(held.keys() & q.compared, key=lambda n: [int(p) for p in n[1:].split("#")]):
        out.setdefault(held[name].closed().text(), []).append(name)
    return out
