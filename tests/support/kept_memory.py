"""Memory that tests give back and ask for again: the system clears its pages each time, which takes longer than to
compute what most of them are for."""

from __future__ import annotations

import ctypes

LARGEST_BYTES = 1 << 30
"""More than any array of a test has."""


def keep_memory() -> None:
    """From now on large arrays, too, come from the heap, and its end stays with this process. (Of the C library of GNU:
    others have no such function, or do nothing.)"""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            mallopt(option, LARGEST_BYTES)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as in <malloc.h>
