"""Memory that begins on a cache line, as native code expects arenas, contexts and records."""

from __future__ import annotations

from typing import Any

import numpy as np

LINE_BYTES = 64
"""As long as the widest vector."""

LINE_WORDS = LINE_BYTES // 8


def aligned(address: int) -> int:
    """The next address that begins a cache line."""
    return -(-address // LINE_BYTES) * LINE_BYTES


def aligned_words(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """So many zeros from the beginning of a cache line on."""
    memory = np.zeros(count + LINE_WORDS, np.int64)
    skipped = (aligned(memory.ctypes.data) - memory.ctypes.data) // memory.itemsize
    return memory[skipped : skipped + count]
