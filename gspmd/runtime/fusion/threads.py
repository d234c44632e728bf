"""Kernels on several threads: blocks of work are dealt out in order, one run of them to each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gspmd.runtime.environment import threads_per_rank
from gspmd.runtime.fusion.cache import Kernel

# Elements below which a second thread costs more than it brings.
_LEAST_FOR_THREADS = 1 << 16
# Elements of a part whose result is combined with the others' afterwards, and the most parts.
_PART = 1 << 16
_MOST_PARTS = 16


def parts(elements: int) -> int:
    """In how many parts so many elements are combined: whatever the number of threads, so that it changes no bit."""
    return min(_MOST_PARTS, elements // _PART)


def workers(elements: int) -> int:
    """How many threads so many elements are worth."""
    return threads_per_rank() if elements >= _LEAST_FOR_THREADS else 1


def runs(units: int, count: int) -> list[tuple[int, int]]:
    """Units of work cut into so many runs [lo, hi), as even as can be."""
    return list(pairwise(i * units // count for i in range(count + 1)))


def deal(kernel: Kernel, blocks: Sequence[tuple[int, int]], scratch: int, table: int) -> None:
    """Call a kernel for all blocks, on several threads, each with `scratch` bytes of its own, and wait for all."""
    threads = min(threads_per_rank(), len(blocks))
    buffers = np.empty((threads, scratch + 64), np.uint8)
    shares = runs(len(blocks), threads)

    def work(thread: int) -> None:
        buffer = buffers[thread].__array_interface__["data"][0]
        buffer += -buffer % 64
        for block in range(*shares[thread]):
            lo, hi = blocks[block]
            kernel(lo, hi, block, buffer, table)

    others = [_pool().submit(work, t) for t in range(1, threads)]
    work(0)
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, threads_per_rank() - 1), "gspmd-kernels")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
