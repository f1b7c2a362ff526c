"""Memory that begins on a cache line, as native code expects arenas, contexts and records."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy_runtime.errors import OutOfMemoryError

LINE_BYTES = 64
"""As long as the widest vector."""

LINE_WORDS = LINE_BYTES // 8


def aligned(address: int) -> int:
    """The next address that begins a cache line."""
    return -(-address // LINE_BYTES) * LINE_BYTES


def data_address(array: np.ndarray[Any, Any]) -> int:
    """Where the data of an array is; as `array.ctypes.data`, which makes some objects first, and imports a module, as
    nothing can while Python shuts down and a `__del__` calls a program."""
    address: int = array.__array_interface__["data"][0]
    return address


def arena(byte_count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Room for so many bytes of temporaries, from the first cache line in it on."""
    try:
        return np.empty(byte_count + LINE_BYTES, np.uint8)
    except MemoryError:
        raise OutOfMemoryError(f"no memory for {byte_count:,} bytes of temporaries") from None


def aligned_words(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """So many zeros from the beginning of a cache line on."""
    memory = np.zeros(count + LINE_WORDS, np.int64)
    skipped = (aligned(data_address(memory)) - data_address(memory)) // memory.itemsize
    return memory[skipped : skipped + count]


def aligned_bytes(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """So many zeros from the beginning of a cache line on, which take memory when they are written."""
    memory = np.zeros(count + LINE_BYTES, np.uint8)
    skipped = aligned(data_address(memory)) - data_address(memory)
    return memory[skipped : skipped + count]
