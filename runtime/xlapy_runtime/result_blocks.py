"""Memory for results that fill no huge page, as native calls hand it out and take it back.

numpy's allocator puts arrays 16 bytes behind a cache line, or anywhere: a vector of 64 bytes is then stored into two
lines, which takes a kernel that does little else up to twice as long. So native code makes results in blocks of its own
that begin on a line. An array owns its block as it would own memory of numpy's, and names the functions that take it
back: numpy keeps a memory handler in each array that owns its data (NEP 49).

Blocks that come back wait in a list of their size class. All of that holds the interpreter's lock, as numpy does when
it frees an array, and nothing of it is ever unloaded: arrays may outlive everything else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable

from xlapy_runtime.capsules import keep_for_good, new_capsule
from xlapy_runtime.size_classes import class_bytes, size_class

PAGED_BYTES = 32 * 1024
"""Blocks of so many bytes or more begin on a page, so that kernels store where they have just loaded, counted from the
beginnings of pages: a load waits for stores that are under way to the same place of any page."""

HUGE_PAGE_BYTES = 2 * 1024 * 1024
"""Results of so many bytes or more are `result_memory`'s."""

LIMIT_BYTES = 64 * 1024 * 1024
"""As many wait for their next use at the most, if no program has results of more at once."""

_HIGHEST_LIMIT_BYTES = 1 << 30

POOL_SYMBOL = "xlapy_result_blocks"
TRIM_SYMBOL = "xlapy_trim_blocks"
HANDLER_SYMBOLS = ("xlapy_block_malloc", "xlapy_block_calloc", "xlapy_block_realloc", "xlapy_block_free")
"""In the order of numpy's PyDataMemAllocator, whose context, their first argument, they do not look at."""

_LEAST_BYTES = 256
_CLASS_COUNT = size_class(HUGE_PAGE_BYTES, _LEAST_BYTES) + 1


class BlockHeader(ctypes.Structure):
    """What is in the line before the data of a block: the next idle one, the `BlockClass` of those that are recycled,
    how many bytes there is room for, and the address by which the system's allocator knows it."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("home", ctypes.c_void_p),
        ("capacity", ctypes.c_int64),
        ("raw", ctypes.c_void_p),
    )


class BlockClass(ctypes.Structure):
    """Blocks of one size: the first idle one, and how many bytes each holds."""

    _fields_ = (("idle", ctypes.c_void_p), ("block_bytes", ctypes.c_int64))


class BlockPool(ctypes.Structure):
    """What the functions share: numpy's name for them, the classes, and how much there is and was."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("classes", ctypes.c_void_p),
        ("class_count", ctypes.c_int64),
        ("limit_bytes", ctypes.c_int64),
        ("idle_bytes", ctypes.c_int64),
        ("idle_blocks", ctypes.c_int64),
        ("recycled", ctypes.c_int64),
        ("fresh", ctypes.c_int64),
    )


class _Handler(ctypes.Structure):
    """numpy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * len(HANDLER_SYMBOLS)),
    )


_HANDLER_VERSION = 1
HANDLER_CAPSULE = b"mem_handler"
"""What numpy calls the capsules that hold handlers."""


def _new_pool() -> BlockPool:
    classes = (BlockClass * _CLASS_COUNT)()
    for number, kind in enumerate(classes):
        kind.block_bytes = class_bytes(number, _LEAST_BYTES)
    pool = BlockPool(None, ctypes.addressof(classes), _CLASS_COUNT, LIMIT_BYTES)
    for kept in (classes, pool):
        keep_for_good(kept)
    return pool


POOL = _new_pool()
POOL_ADDRESS = ctypes.addressof(POOL)


def home_address(byte_count: int) -> int:
    """Of the class whose blocks hold so many bytes; 0 for none, and where pages are huge."""
    if not 0 < byte_count < HUGE_PAGE_BYTES:
        return 0
    return int(POOL.classes) + size_class(byte_count, _LEAST_BYTES) * ctypes.sizeof(BlockClass)


def expect(homes: Iterable[int]) -> None:
    """Lets as much wait as a program has results, which replace those of its call before; by the addresses of their
    classes."""
    byte_count = sum(BlockClass.from_address(home).block_bytes for home in homes if home)
    POOL.limit_bytes = max(POOL.limit_bytes, min(byte_count, _HIGHEST_LIMIT_BYTES))


def install(address_of: Callable[[str], int]) -> None:
    """Lets arrays name the functions at these addresses, if they name none yet. Their code must stay where it is."""
    if POOL.handler:
        return
    functions = (ctypes.c_void_p * len(HANDLER_SYMBOLS))(*map(address_of, HANDLER_SYMBOLS))
    handler = _Handler(b"xlapy", _HANDLER_VERSION, None, functions)
    capsule = new_capsule(ctypes.addressof(handler), HANDLER_CAPSULE)
    for kept in (handler, capsule, HANDLER_CAPSULE):
        keep_for_good(kept)
    POOL.handler = id(capsule)
