"""Kernels on several threads: blocks of work are dealt out in order, one run of them to each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from gspmd.runtime.environment import threads_per_rank
from gspmd.runtime.fusion.cache import Kernel


def deal(kernel: Kernel, blocks: Sequence[tuple[int, int]], workers: int, scratch: int, table: int) -> None:
    """Call a kernel for all blocks, on so many threads, each with `scratch` bytes of its own, and wait for all."""
    buffers = np.empty((workers, scratch + 64), np.uint8)

    def work(worker: int) -> None:
        buffer = buffers[worker].__array_interface__["data"][0]
        buffer += -buffer % 64
        count = len(blocks)
        for block in range(worker * count // workers, (worker + 1) * count // workers):
            lo, hi = blocks[block]
            kernel(lo, hi, block, buffer, table)

    others = [_pool().submit(work, w) for w in range(1, workers)]
    work(0)
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, threads_per_rank() - 1), "gspmd-kernels")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
