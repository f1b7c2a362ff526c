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
    """Memory between two pages that must not be touched, full of what is NaN to every float and -1 to every integer:
    what is read beside an array shows, be it in another result or in a crash."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self._pages = -(-size // page)
        self.size = self._pages * page
        self._map = mmap.mmap(-1, (self._pages + 2) * page)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        np.frombuffer(self._map, np.uint8, self.size, page)[...] = _NAN_BYTE
        for place in (self._start, self._start + (self._pages + 1) * page):
            _protect(place, page, _NO_ACCESS)

    def array(self, values: Array, *, at_end: bool) -> Array:
        """A copy of an array by rows, next to the guard page in front or behind."""
        return self.array_at(values, self.size - values.nbytes if at_end else 0)

    def array_at(self, values: Array, start: int) -> Array:
        """A copy of an array by rows, so many bytes behind the guard page in front, be they whole elements or not."""
        copy: Array = np.ndarray(values.shape, values.dtype, self._map, mmap.PAGESIZE + start)
        copy[...] = values
        return copy

    def is_untouched(self, start: int) -> bool:
        """Whether nobody has written from there on, up to the guard page behind."""
        return bool((np.frombuffer(self._map, np.uint8, self.size - start, mmap.PAGESIZE + start) == _NAN_BYTE).all())

    def forbid_writing(self) -> None:
        """From now on what lies here may only be read."""
        _protect(self._start + mmap.PAGESIZE, self.size, mmap.PROT_READ)


_NO_ACCESS = 0
_NAN_BYTE = 0xFF


def _protect(place: int, size: int, rights: int) -> None:
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place), ctypes.c_size_t(size), rights) == 0


def read_only(values: Array, *, at_end: bool = True) -> Array:
    """A copy of an array in memory that nobody can write to, and beside which nobody can read."""
    room = GuardedRoom(max(values.nbytes, 1))
    copy = room.array(values, at_end=at_end)
    room.forbid_writing()
    return copy


CACHE_LINE = 64
AT_END, AT_START, BETWEEN_ELEMENTS, BETWEEN_BYTES = "at the end", "at the start", "between elements", "between bytes"
PLACES = (AT_END, AT_END, AT_START, BETWEEN_ELEMENTS, BETWEEN_BYTES, BETWEEN_BYTES)


def anywhere(random: np.random.Generator, values: Array) -> Array:
    """A copy of an array that can only be read, at a place of some kind: where nobody can read behind it, or in front
    of it; a number of elements behind the beginning of a line; a number of bytes, as arrays lie that somebody has found
    in the middle of a file."""
    if not values.nbytes:
        return values
    kind = PLACES[int(random.integers(len(PLACES)))]
    if kind in (AT_END, AT_START):
        return read_only(values, at_end=kind is AT_END)
    room = GuardedRoom(values.nbytes + CACHE_LINE)
    step = values.itemsize if kind is BETWEEN_ELEMENTS else 1
    copy = room.array_at(values, int(random.integers(CACHE_LINE)) // step * step)
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
