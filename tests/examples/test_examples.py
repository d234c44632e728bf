"""The examples give the same numbers on any mesh, and learn what they are said to learn.

They run as users run them, in processes of their own. The whole run of the Transformer takes minutes:
`python -m tests.examples.whole_run`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gspmd.kernels.closeness import compare
from tests.examples.runs import char_losses, numbers_after, run_example

# 100 hidden units and batches of 250 do not divide by 3. One rank: all devices in one process.
MESHES = ((1, "data=1,model=3"), (2, "data=2,model=1"), (3, "data=3,model=1"), (4, "data=2,model=2"))
STEPS = 8


@pytest.mark.mpi
def test_digits_learns_the_same_on_every_mesh() -> None:
    one = run_example("digits.py")
    losses, accuracy = numbers_after("loss", one), numbers_after("accuracy", one)
    assert len(losses) >= 5 and losses[-1] < losses[0] / 10
    assert accuracy > 0.95
    for ranks, mesh in MESHES:
        printed = run_example("digits.py", ranks=ranks, mesh=mesh)
        found = numbers_after("loss", printed)
        # As printed: the last of the six decimals may fall on either side.
        assert np.abs(np.round((found - losses) * 1e6)).max() <= 1, f"{mesh} on {ranks} ranks: {found} not {losses}"
        assert (numbers_after("accuracy", printed) == accuracy).all()


@pytest.mark.mpi
def test_chars_takes_the_same_steps_on_four_ranks(tmp_path: Path) -> None:
    options = ("--steps", str(STEPS), "--seed", "3")
    one, _ = char_losses(tmp_path, *options)
    four, printed = char_losses(tmp_path, *options, ranks=4, mesh="data=2,model=2")
    assert len(one) == STEPS and one[-1] < 0.9 * one[0]
    # Rounding adds up from step to step.
    close = compare(four, one, terms=STEPS)
    assert close, close.message
    # An untrained model is far from the trigram model's 2 to 3 bits, which pins the yardstick itself.
    assert 2 < numbers_after("trigram", printed) < 3 < numbers_after("Transformer", printed)
