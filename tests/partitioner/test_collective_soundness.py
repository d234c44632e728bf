"""Collectives in per-device code: what their rules say of the other axes is true, and all that could be said."""

from __future__ import annotations

import pytest

from gspmd.ops import OPS
from tests.partitioner import collective_soundness


@pytest.mark.parametrize("name", collective_soundness.RULED)
def test_other_axes_pass_or_are_gathered(name: str) -> None:
    collective_soundness.check(OPS[name])
