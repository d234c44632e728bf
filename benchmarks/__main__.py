"""All benchmarks, one after the other: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = (("-m", "benchmarks.compile"), ("benchmarks/step.py",), ("benchmarks/ops.py",))


def main() -> int:
    """Run each in a process of its own; returns 1 if one fails."""
    codes: list[int] = []
    for command in BENCHMARKS:
        print(f"\n== python {' '.join(command)}", flush=True)
        codes.append(subprocess.run([sys.executable, *command], cwd=ROOT).returncode)
    return 1 if any(codes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
