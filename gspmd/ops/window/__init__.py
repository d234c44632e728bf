"""Ops with windows: convolution, reductions over windows and their gradients, running reductions."""

from __future__ import annotations

from typing import Any

from gspmd.ir.opdef import OpDef
from gspmd.ops.window import pooling
from gspmd.ops.window.convolution import CONVOLUTION
from gspmd.ops.window.cumulative import CUMULATIVE_REDUCE
from gspmd.ops.window.pooling import REDUCE_WINDOW, SELECT_AND_SCATTER

__all__ = ["CONVOLUTION", "CUMULATIVE_REDUCE", "FAMILY", "REDUCE_WINDOW", "SELECT_AND_SCATTER"]

FAMILY: tuple[OpDef[Any], ...] = (CONVOLUTION, *pooling.FAMILY, CUMULATIVE_REDUCE)
