"""Train the Transformer of examples/chars.py in full, on one device and on four ranks, and compare: some minutes.

    python -m tests.examples.whole_run [--steps N] [--seed N]

Ends with 1 unless all losses agree within 1e-5 and the held-out text takes fewer bits than by the trigram model.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.examples.runs import char_losses, numbers_after

LIMIT = 1e-5


def main() -> int:
    """Both runs, and how they compare."""
    with tempfile.TemporaryDirectory() as folder:
        one, first = char_losses(Path(folder), *sys.argv[1:], timeout=3600)
        four, printed = char_losses(Path(folder), *sys.argv[1:], ranks=4, mesh="data=2,model=2", timeout=3600)
    apart = float(np.max(np.abs(four.astype(float) - one) / one))
    print(first.splitlines()[-1], printed.splitlines()[-1], sep="\n")
    print(f"largest relative difference of {len(one)} losses: {apart:.2e} (allowed {LIMIT:g})")
    better = all(
        (numbers_after("Transformer", text) < numbers_after("trigram", text)).all() for text in (first, printed)
    )
    return 0 if apart < LIMIT and better else 1


if __name__ == "__main__":
    sys.exit(main())
