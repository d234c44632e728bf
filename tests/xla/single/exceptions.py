"""Rows in which we send more than XLA, or whose values are not compared with XLA's, and why."""

from __future__ import annotations

from collections.abc import Mapping

_WORK = "XLA lets every device compute the whole product; ours divides it, and sends the result"

EXCEPTIONS: Mapping[str, str] = {
    "slice:one_row": "XLA sums what one device has and the others mask; ours moves the row and gathers it",
    "pad:to_whole": "XLA gathers, then every device pads all; ours pads a part on each device, then gathers",
    "reverse:both": "XLA turns both dimensions in one permute, ours one after the other",
    "dot:rows_against_columns_whole": _WORK,
    "dot:columns_to_whole": _WORK,
    "reduce:2d_partly_scattered": "XLA's all-reduce over both axes is counted as if its result were split over both",
}

# What a program leaves open: with XLA's values these are not compared, only with ours on one device.
OTHER_VALUES: Mapping[str, str] = {
    "qr:batch": "LAPACK's way through the columns, and so its rounding, depends on the library",
    "eigh:batch": "eigenvectors may have either sign",
}
