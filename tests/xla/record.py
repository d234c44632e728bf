"""XLA's answers, recorded in the repository, so that tests compare with the judge without waiting for it.

    python -m tests.xla.record FILE --devices N     ask about a program and record the answer
    python -m tests.xla.record --all                ask again about every recorded program, with this jaxlib

`answers.json` maps "sha256 of the program's text / devices / jaxlib's version" to the answer and the program's name;
the programs stand beside it in `programs/NAME.mlir` (or `.hlo`). A changed program has another key: it has to be
recorded again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.xla.hlo import Collective
from tests.xla.oracle import Answer, ask
from tests.xla.version import jaxlib_version, standing, version_order

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded answer: the program's file name, the question's numbers, and what XLA said (no module texts)."""

    program: str
    sha256: str
    devices: int
    jaxlib: str
    answer: Answer

    @property
    def key(self) -> str:
        """What the answer is found by."""
        return f"{self.sha256}/{self.devices}/{self.jaxlib}"


@dataclass(frozen=True, slots=True)
class Record:
    """A folder with `answers.json` and `programs/`."""

    folder: Path = HERE

    def entries(self) -> list[Entry]:
        """All recorded answers, by program, devices and version."""
        path = self.folder / "answers.json"
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return [_entry(key, value) for key, value in stored.items()]

    def text(self, program: str) -> str:
        """The text of a recorded program."""
        return (self.folder / "programs" / program).read_text(encoding="utf-8")

    def find(self, program_text: str, devices: int) -> Entry | None:
        """The answer of the jaxlib installed here, else the newest one recorded, else nothing."""
        asked = (digest(program_text), devices)
        return standing({e.jaxlib: e for e in self.entries() if (e.sha256, e.devices) == asked})

    def ask(self, program: str, devices: int, seconds: float = 120.0) -> Entry:
        """Ask XLA about a program of the folder; records nothing."""
        version = jaxlib_version()
        if not version:
            raise RuntimeError("jaxlib is not installed: pip install -e '.[test]'")
        text = self.text(program)
        answer = replace(ask(text, devices, seconds), propagated="", partitioned="", final="")
        return Entry(program, digest(text), devices, version, answer)

    def write(self, new: Sequence[Entry]) -> None:
        """Add answers; those to an older text of the same program, or to a program that is gone, are dropped."""
        merged = {e.key: e for e in [*self.entries(), *new]}
        current = {p.name: digest(p.read_text(encoding="utf-8")) for p in (self.folder / "programs").iterdir()}
        kept = [e for e in merged.values() if current.get(e.program) == e.sha256]
        kept.sort(key=lambda e: (e.program, e.devices, version_order(e.jaxlib)))
        text = json.dumps({e.key: _stored(e) for e in kept}, indent=1)
        (self.folder / "answers.json").write_text(text + "\n", encoding="utf-8")


def lookup(program: str, devices: int) -> Answer:
    """The recorded answer to a program's text; of the jaxlib installed here if there is one, else the newest.

    Raises KeyError, with the command that records it, if nobody ever asked.
    """
    if entry := Record().find(program, devices):
        return entry.answer
    command = f"python -m tests.xla.record FILE --devices {devices}"
    raise KeyError(f"no answer of XLA is recorded for this program (sha256 {digest(program)[:12]}...); {command} asks")


def digest(program_text: str) -> str:
    """The sha256 of a program's text."""
    return hashlib.sha256(program_text.encode()).hexdigest()


def _stored(entry: Entry) -> dict[str, Any]:
    answer = entry.answer
    return {
        "program": entry.program,
        "error": answer.error,
        "wire_bytes": answer.wire_bytes,
        "shardings": answer.shardings,
        "collectives": [asdict(c) for c in answer.collectives],
    }


def _entry(key: str, value: dict[str, Any]) -> Entry:
    sha256, devices, version = key.split("/")
    found = tuple(Collective(**c) for c in value["collectives"])
    answer = Answer(int(devices), value["error"], value["shardings"], found, "", "", "")
    return Entry(value["program"], sha256, int(devices), version, answer)


def _ask_all(record: Record, seconds: float) -> int:
    """Ask again about every recorded question; prints each, and returns how many answers changed."""
    old = {e.key: e for e in record.entries()}
    new: list[Entry] = []
    changed = 0
    for program, devices in sorted({(e.program, e.devices) for e in old.values()}):
        entry = record.ask(program, devices, seconds)
        new.append(entry)
        before = old.get(entry.key)
        changed += before is not None and before.answer != entry.answer
        verdict = "new" if before is None else "same" if before.answer == entry.answer else "CHANGED"
        print(f"{program:32} {devices:5} devices  {entry.answer.wire_bytes:14.0f} B  {verdict}{_error(entry)}")
    record.write(new)
    return changed


def _error(entry: Entry) -> str:
    return f"  XLA error: {entry.answer.error}" if entry.answer.error else ""


def _ask_one(record: Record, file: Path, devices: int, seconds: float) -> int:
    """Take a program into the record; returns 1 if XLA refused it."""
    kept = record.folder / "programs" / file.name
    if file.resolve() != kept.resolve():
        kept.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    entry = record.ask(file.name, devices, seconds)
    record.write([entry])
    print(f"{file.name:32} {devices:5} devices  {entry.answer.wire_bytes:14.0f} B{_error(entry)}")
    return 1 if entry.answer.error else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if XLA refused a program or changed its mind under the same version."""
    parser = argparse.ArgumentParser(prog="python -m tests.xla.record", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--devices", type=int)
    parser.add_argument("--all", action="store_true", help="ask again about every recorded program")
    parser.add_argument("--seconds", type=float, default=120.0)
    args = parser.parse_args(arguments)
    if args.all:
        return 1 if _ask_all(Record(), args.seconds) else 0
    if args.file is None or args.devices is None:
        parser.error("give a FILE and --devices N, or --all")
    return _ask_one(Record(), args.file, args.devices, args.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
