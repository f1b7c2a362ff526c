"""Memory for results, recycled.

A fresh 64 MB array costs tens of milliseconds of page faults, ten times what a simple kernel needs to fill it. So large
results live in blocks that return to a pool when numpy drops the last array that looks into them, and that start out
on huge pages. Small results are in the blocks of native calls (`result_blocks`), or where numpy puts them.

Nobody needs to release anything: each array's base holds a block, and the base's end is the block's return. The
pool takes no lock, because that end can come at any moment: in any thread, inside a garbage collection that
interrupted the pool itself, or after a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy_runtime import result_blocks
from xlapy_runtime.errors import OutOfMemoryError
from xlapy_runtime.records import Record
from xlapy_runtime.result_blocks import HUGE_PAGE_BYTES
from xlapy_runtime.size_classes import class_bytes, size_class

LARGE_BYTES = 32 * 1024
"""Results from this size on are pooled. Native calls, for which to ask is to call Python, ask where pages are huge."""

_DEFAULT_LIMIT_BYTES = 1 << 30
_IDLE_SECONDS = 30.0
"""A block that nobody wanted for this long goes back to the system, at the pool's next occasion."""

_CLASS_COUNT = 68
"""Size classes reach from LARGE_BYTES to 2**17 times that; larger blocks are not recycled."""


class ResultMemoryStatistics(Record):
    """How many blocks and bytes wait for results now; of all results since the process began, how many were `recycled`
    from such blocks, and how many got `fresh` memory from the system."""

    idle_blocks: int
    idle_bytes: int
    recycled: int
    fresh: int


class _Block:
    """Page-aligned memory of its own mapping, aligned to a huge page if it can hold one. Unmapped when dropped."""

    __slots__ = ("idle_since", "mapping", "offset", "size_class")

    def __init__(self, byte_count: int, size_class: int) -> None:
        self.size_class = size_class
        self.idle_since = 0.0
        alignment = HUGE_PAGE_BYTES if byte_count >= HUGE_PAGE_BYTES else mmap.PAGESIZE
        self.mapping = _anonymous_mapping(byte_count + alignment)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.mapping))
        self.offset = -start % alignment


class BlockBytes(np.ndarray[Any, Any]):
    """The bytes of one result, and its base. Their end gives the block back.

    The class tells a result from a view of it: what numpy makes the base of a view is the first owner of the memory
    among arrays of one class, and that is the result."""

    __slots__ = ("_block", "_pool")

    _block: _Block
    _pool: ResultMemory

    def __new__(cls, pool: ResultMemory, block: _Block, byte_count: int) -> BlockBytes:
        array = super().__new__(cls, (byte_count,), np.uint8, block.mapping, block.offset)
        array._pool = pool
        array._block = block
        return array

    def __del__(self) -> None:
        if hasattr(self, "_block"):  # a view of the bytes has none
            self._pool._give_back(self._block)


class ResultMemory:
    """A pool of blocks by size class. At most `limit_bytes` wait in it, give or take a race."""

    def __init__(self, limit_bytes: int = _DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._idle: tuple[deque[_Block], ...] = tuple(deque() for _ in range(_CLASS_COUNT))
        self._classes_in_use: tuple[int, ...] = ()
        self._next_sweep = 0.0
        self._uncounted_bytes = 0  # may come back before the idle bytes are counted again
        self._recycled = 0
        self._fresh = 0

    def allocate(self, dims: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """A fresh writeable C-contiguous array with undefined contents."""
        byte_count = math.prod(dims) * dtype.itemsize
        if byte_count < LARGE_BYTES:
            return np.empty(dims, dtype)
        try:
            block = self._take(byte_count)
        except MemoryError:
            shape = f"{dtype.name}[{','.join(map(str, dims))}]"
            raise OutOfMemoryError(f"no memory for a result of {byte_count:,} bytes, {shape}") from None
        return np.ndarray(dims, dtype, BlockBytes(self, block, byte_count))

    def trim(self) -> None:
        """Returns every idle block to the system."""
        for idle in self._idle:
            idle.clear()

    def statistics(self) -> ResultMemoryStatistics:
        """What the pool holds now, and how often it was of use."""
        return ResultMemoryStatistics(
            idle_blocks=sum(len(idle) for idle in self._idle),
            idle_bytes=self._idle_bytes(),
            recycled=self._recycled,
            fresh=self._fresh,
        )

    def _take(self, byte_count: int) -> _Block:
        size_class = _size_class(byte_count)
        if size_class >= _CLASS_COUNT:
            self._fresh += 1
            return _Block(byte_count, size_class)
        try:
            block = self._idle[size_class].pop()
        except IndexError:
            self._fresh += 1
            if size_class not in self._classes_in_use:
                self._classes_in_use += (size_class,)
            return _Block(_class_bytes(size_class), size_class)
        self._recycled += 1
        return block

    def _give_back(self, block: _Block) -> None:
        if block.size_class >= _CLASS_COUNT:
            return
        block.idle_since = time.monotonic()
        if block.idle_since >= self._next_sweep:
            self._next_sweep = block.idle_since + _IDLE_SECONDS / 4
            self._drop_stale(block.idle_since - _IDLE_SECONDS)
        if self._has_room(_class_bytes(block.size_class)):
            self._idle[block.size_class].append(block)

    def _has_room(self, byte_count: int) -> bool:
        """Whether the limit lets so many bytes more wait. To count what waits takes longer than to recycle a block; so
        that is done no more often than blocks can have filled the room that was left the last time."""
        if self._uncounted_bytes < byte_count:
            self._uncounted_bytes = self._limit_bytes - self._idle_bytes()
        if self._uncounted_bytes < byte_count:
            return False
        self._uncounted_bytes -= byte_count
        return True

    def _drop_stale(self, deadline: float) -> None:
        """Each deque is used as a stack, so its left end has idled longest."""
        for idle in self._idle:
            while idle:
                try:
                    oldest = idle.popleft()
                except IndexError:
                    break
                if oldest.idle_since >= deadline:
                    idle.appendleft(oldest)
                    break

    def _idle_bytes(self) -> int:
        return sum(len(self._idle[size_class]) * _class_bytes(size_class) for size_class in self._classes_in_use)


def owns_block(array: np.ndarray[Any, Any]) -> bool:
    """Whether the array is a result that lies in a pooled block: itself, not a view of it."""
    return isinstance(array.base, BlockBytes) and array.base.nbytes == array.nbytes


def _size_class(byte_count: int) -> int:
    return size_class(byte_count, LARGE_BYTES)


def _class_bytes(number: int) -> int:
    return class_bytes(number, LARGE_BYTES)


def _anonymous_mapping(byte_count: int) -> mmap.mmap:
    """Private to this process: a child of fork gets copies. On huge pages where the system has them."""
    try:
        if os.name == "nt":
            return mmap.mmap(-1, byte_count)
        mapping = mmap.mmap(-1, byte_count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no mapping of {byte_count} bytes") from error
    if byte_count > HUGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return mapping


_process_pool = ResultMemory()

allocate = _process_pool.allocate
trim = _process_pool.trim


def statistics() -> ResultMemoryStatistics:
    """What waits now, large and small, and how often it was of use."""
    large, small = _process_pool.statistics(), result_blocks.POOL
    return ResultMemoryStatistics(
        idle_blocks=large.idle_blocks + small.idle_blocks,
        idle_bytes=large.idle_bytes + small.idle_bytes,
        recycled=large.recycled + small.recycled,
        fresh=large.fresh + small.fresh,
    )
