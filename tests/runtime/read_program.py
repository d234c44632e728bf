"""Ranks that read an array at different points of the program; the mode says how. Started by test_reads.py."""

import sys

import numpy as np

import gspmd

MESH = gspmd.Mesh({"d": 2})
MODE = sys.argv[1]


@gspmd.jit
def step(w):
    w = gspmd.shard(w, MESH, "d")
    return w + 1 if MODE == "silent" else w + w.sum()


w = step(np.zeros(4, np.float32))
for _ in range(2):
    if MODE == "together" or gspmd.world().rank == 0:
        np.asarray(w)
    w = step(w)
total = np.asarray(w).sum()
if gspmd.world().rank == 0:
    print("total", total)
