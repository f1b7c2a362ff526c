"""Memory for native code that must stay within it."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class GuardedRoom:
    """Memory between two pages that must not be touched."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self._pages = -(-size // page)
        self._map = mmap.mmap(-1, (self._pages + 2) * page)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        protect = ctypes.CDLL(None).mprotect
        for place in (self._start, self._start + (self._pages + 1) * page):
            assert protect(ctypes.c_void_p(place), ctypes.c_size_t(page), 0) == 0

    def array(self, values: Array, *, at_end: bool) -> Array:
        """A copy of an array by rows, next to the guard page in front or behind."""
        offset = mmap.PAGESIZE + (self._pages * mmap.PAGESIZE - values.nbytes if at_end else 0)
        copy = np.frombuffer(self._map, values.dtype, values.size, offset).reshape(values.shape)
        copy[...] = values
        return copy
