"""Memory for native code that must stay within it."""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from xlapy_runtime import result_memory

Array = np.ndarray[Any, Any]


class GuardedRoom:
    """Memory between two pages that must not be touched."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self._pages = -(-size // page)
        self._map = mmap.mmap(-1, (self._pages + 2) * page)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for place in (self._start, self._start + (self._pages + 1) * page):
            _protect(place, page, _NO_ACCESS)

    def array(self, values: Array, *, at_end: bool) -> Array:
        """A copy of an array by rows, next to the guard page in front or behind."""
        offset = mmap.PAGESIZE + (self._pages * mmap.PAGESIZE - values.nbytes if at_end else 0)
        copy = np.frombuffer(self._map, values.dtype, values.size, offset).reshape(values.shape)
        copy[...] = values
        return copy

    def forbid_writing(self) -> None:
        """From now on what lies here may only be read."""
        _protect(self._start + mmap.PAGESIZE, self._pages * mmap.PAGESIZE, mmap.PROT_READ)


_NO_ACCESS = 0


def _protect(place: int, size: int, rights: int) -> None:
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place), ctypes.c_size_t(size), rights) == 0


def read_only(values: Array, *, at_end: bool = True) -> Array:
    """A copy of an array in memory that nobody can write to, and beside which nobody can read."""
    room = GuardedRoom(max(values.nbytes, 1))
    copy = room.array(values, at_end=at_end)
    room.forbid_writing()
    return copy


FENCE_BYTES = 512  # beyond any vector
FENCE = np.frombuffer(np.random.default_rng(1).bytes(FENCE_BYTES), np.uint8)


@contextlib.contextmanager
def fenced_results() -> Iterator[None]:
    """Calls of `run` with a seed make their results between two fences meanwhile, which must stand at the end."""
    rooms: list[Array] = []

    def allocate(dims: Sequence[int], dtype: np.dtype[Any]) -> Array:
        size = math.prod(dims) * dtype.itemsize
        rooms.append(np.concatenate([FENCE, np.zeros(size, np.uint8), FENCE]))
        return rooms[-1][FENCE_BYTES : FENCE_BYTES + size].view(dtype).reshape(dims)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_memory, "allocate", allocate)
        yield
    assert rooms, "nothing was allocated between fences"
    for room in rooms:
        np.testing.assert_array_equal(room[:FENCE_BYTES], FENCE, "something was written in front of a result")
        np.testing.assert_array_equal(room[-FENCE_BYTES:], FENCE, "something was written behind a result")
