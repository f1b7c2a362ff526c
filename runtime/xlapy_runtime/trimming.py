"""Gives memory back to the system that waits for its next use: what results were in, and scratch of native code."""

from __future__ import annotations

import ctypes

from xlapy_runtime import result_memory

_NATIVE: list[int] = []
"""Addresses of functions."""


def trim() -> None:
    """Returns all memory that is kept for results and for the work of matrix products, and is not in use."""
    result_memory.trim()
    for address in _NATIVE:
        ctypes.CFUNCTYPE(None)(address)()


def add_native(address: int) -> None:
    """Lets `trim` call a native function too, whose code is never unloaded."""
    _NATIVE.append(address)
