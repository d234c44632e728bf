"""What every test shares: the same random examples in every run, no deadline on a busy machine, two custom ops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings

import gspmd
import gspmd.numpy as gnp


def _pullback(x: Any, y: Any, ct: Any) -> Any:
    return ct @ gnp.transpose(y), gnp.transpose(x) @ ct


# The functions that the examples of custom ops name.
gspmd.custom_op(np.matmul, "ik,kj->ij", vjp=_pullback, name="matmul")
gspmd.custom_op(lambda x: np.sort(x, 1), "is->is | s: whole", name="sort_rows")

settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
