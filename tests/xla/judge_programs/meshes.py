"""The meshes of the judge's programs: one and two axes."""

from __future__ import annotations

import gspmd

X4 = gspmd.Mesh({"x": 4})
X8 = gspmd.Mesh({"x": 8})
XY = gspmd.Mesh({"x": 2, "y": 4})
DATA_MODEL = gspmd.Mesh({"data": 2, "model": 4})
RAGGED = gspmd.Mesh({"data": 2, "model": 3})
