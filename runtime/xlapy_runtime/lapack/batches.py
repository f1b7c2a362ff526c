"""The loop over the problems of a batch: native code where the compiler has installed it, Python otherwise."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from xlapy_runtime.alignment import data_address
from xlapy_runtime.images import Code
from xlapy_runtime.linking import InstalledOnce, LinkedCode, link

LOOP_SYMBOLS = {count: f"call_each_{count}" for count in range(4, 25)}
"""The functions of the native code, by how many pointers the routines take."""

PROBLEMS_PER_LOOP = 256
"""Between two loops Python may look at signals, and other threads get their turn."""

Words: TypeAlias = "ctypes.Array[ctypes.c_int64]"

_Loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def _linked(objects: Sequence[Code]) -> LinkedCode:
    return link(objects, {}, tuple(LOOP_SYMBOLS.values()))


LOOPS: InstalledOnce[LinkedCode] = InstalledOnce("the native loop over the problems of a batch", _linked)


def call_each(address: int, count: int, pointers: Sequence[int], steps: Sequence[int]) -> None:
    """Calls the native function at `address`, which takes only pointers, `count` times; each pointer moves on by its
    step in bytes from call to call. Lets go of the GIL."""
    words = ctypes.c_int64 * len(pointers)
    call_each_at(address, count, words(*pointers), words(*steps))


def call_each_at(address: int, count: int, pointers: Words, steps: Words) -> None:
    """The same for pointers and steps that lie in memory already."""
    if LOOPS.found is None:
        _call_each_slowly(address, count, list(pointers), list(steps))
        return
    loop = _loop(LOOPS.found.address(LOOP_SYMBOLS[len(pointers)]))
    if count <= PROBLEMS_PER_LOOP:
        loop(address, count, pointers, steps)
        return
    places, strides = np.array(pointers, np.int64), np.array(steps, np.int64)
    for start in range(0, count, PROBLEMS_PER_LOOP):
        now = places + start * strides
        loop(address, min(PROBLEMS_PER_LOOP, count - start), data_address(now), data_address(strides))


@cache
def _loop(address: int) -> Callable[..., None]:
    """The function at an address, to be called from Python."""
    return _Loop(address)


def _call_each_slowly(address: int, count: int, pointers: Sequence[int], steps: Sequence[int]) -> None:
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(address)
    for number in range(count):
        function(*(pointer + number * step for pointer, step in zip(pointers, steps, strict=True)))
