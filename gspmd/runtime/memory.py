"""Freed memory stays with the process: fresh pages cost more than the work on most arrays.

By default glibc gives large blocks back to the system as soon as they are freed, and every new one has to be mapped
page by page. Programs here free and allocate the same sizes at every step, so the heap keeps what it has.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

# The numbers of mallopt's parameters (malloc.h).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_KEEP = 2**31 - 1


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory; False where there is no glibc or GSPMD_KEEP_MEMORY=0 forbids it."""
    if os.environ.get("GSPMD_KEEP_MEMORY", "1") == "0":
        return False
    try:
        libc = ctypes.CDLL(None)
        if not hasattr(libc, "gnu_get_libc_version"):
            return False
        settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _KEEP), (_TOP_PAD, 16 << 20))
        return all(libc.mallopt(parameter, value) == 1 for parameter, value in settings)
    except (OSError, AttributeError, TypeError):
        return False
