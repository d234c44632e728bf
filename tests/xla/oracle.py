"""Ask XLA's own GSPMD what it does with a program: an independent judge to compare with.

    python -m tests.xla.oracle FILE --devices N [--json] [--text] [--seconds S]

FILE holds one HLO text module (`HloModule ...`) or one StableHLO module, with `sharding={...}` or `mhlo.sharding`
annotations. XLA (jaxlib's CPU client) propagates the shardings and partitions the module for N devices; the answer
holds each instruction's propagated sharding and the collectives after XLA's clean-up, in the units of `hlo.py`.
Programs of the `sdy` dialect are propagated by Shardy instead. XLA may abort the process on a program that it refuses:
the work is therefore done in a child process, and the answer says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.xla.hlo import Collective, collectives, instruction_shardings, sliced_all_reduces

CHILD = Path(__file__).with_name("child.py")
DUMPED_PASSES = ".*(sharding-propagation|spmd-partitioning|shardy).*"


@dataclass(frozen=True, slots=True)
class Answer:
    """What XLA did with a program: `error` says why it did not, else it is empty.

    `propagated`, `partitioned` and `final` are the module's text after propagation, partitioning and all passes.
    """

    devices: int
    error: str
    shardings: dict[str, str]
    collectives: tuple[Collective, ...]
    propagated: str
    partitioned: str
    final: str

    @property
    def wire_bytes(self) -> float:
        """Bytes that each device puts on the wire in one run of the program."""
        return sum(c.wire_bytes for c in self.collectives)


def ask(program_text: str, devices: int, seconds: float = 120.0) -> Answer:
    """XLA's answer on a program for a number of devices, within a time."""
    with tempfile.TemporaryDirectory() as folder:
        source, dump = Path(folder, "program.txt"), Path(folder, "dump")
        source.write_text(program_text, encoding="utf-8")
        error = _compile(source, dump, devices, seconds)
        propagated = _dumped(dump, r"after_(sharding-propagation|shardy-xla)")
        partitioned = _dumped(dump, r"after_spmd-partitioning")
        final = _dumped(dump, r"after_optimizations\.txt$") or partitioned
    found = collectives(final, devices, sliced_all_reduces(partitioned, devices))
    return Answer(devices, error, instruction_shardings(propagated), tuple(found), propagated, partitioned, final)


def _compile(source: Path, dump: Path, devices: int, seconds: float) -> str:
    """Let a child process compile the program; returns what went wrong."""
    flags = (
        f"--xla_force_host_platform_device_count={devices}",
        f"--xla_dump_to={dump}",
        "--xla_dump_hlo_as_text",
        f"--xla_dump_hlo_pass_re={DUMPED_PASSES}",
    )
    env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", XLA_FLAGS=" ".join(flags))
    command = [sys.executable, str(CHILD), str(source), str(devices)]
    try:
        child = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds:g} s"
    if child.returncode == 0:
        return ""
    return child.stderr.strip()[-400:] or f"XLA's process ended with code {child.returncode}"


def _dumped(dump: Path, pattern: str) -> str:
    """The last of XLA's dumps whose name matches; empty if there is none."""
    names = [f for f in sorted(dump.glob("*.txt")) if re.search(pattern, f.name)]
    return names[-1].read_text() if names else ""


def _show(answer: Answer) -> None:
    if answer.error:
        print("XLA error:", answer.error)
    for name, sharding in answer.shardings.items():
        print(f"{name:40} {sharding}")
    for c in answer.collectives:
        note = f" ({c.sliced} of {c.members} only sliced: as reduce-scatter)" if c.sliced else ""
        sizes = f"operand {c.operand_bytes:12} B  wire {c.wire_bytes:14.0f} B"
        print(f"{c.kind:20} x{c.count:<5} group {c.group:5}  {sizes}{note}")
    print(f"wire bytes per device: {answer.wire_bytes:.0f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if XLA refused the program."""
    parser = argparse.ArgumentParser(prog="python -m tests.xla.oracle", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("--text", action="store_true", help="also print the partitioned module")
    parser.add_argument("--seconds", type=float, default=120.0)
    args = parser.parse_args(arguments)
    answer = ask(args.file.read_text(encoding="utf-8"), args.devices, args.seconds)
    if args.json:
        json.dump(asdict(answer) | {"wire_bytes": answer.wire_bytes}, sys.stdout)
    else:
        _show(answer)
        if args.text:
            print(answer.partitioned)
    return 1 if answer.error else 0


if __name__ == "__main__":
    raise SystemExit(main())
