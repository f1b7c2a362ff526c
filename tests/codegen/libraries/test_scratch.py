"""Scratch memory is shared, as large as was asked for, and given back when nobody works in it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import xlapy
from xlapy.codegen.libraries.scratch import ACQUIRE, RELEASE
from xlapy.codegen.target import host_target
from xlapy.native import library_symbols

SLOTS = 64
HUGE_PAGE = 1 << 21


class Room(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int64), ("memory", ctypes.c_void_p), ("bytes", ctypes.c_int64)]

    @property
    def array(self) -> np.ndarray:
        assert self.memory is not None
        return np.frombuffer((ctypes.c_char * self.bytes).from_address(self.memory), np.uint8)


def acquire(size: int) -> Room:
    room = Room()
    address = library_symbols("scratch", host_target())[ACQUIRE]
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(address)(size, ctypes.addressof(room))
    return room


def release(room: Room) -> None:
    address = library_symbols("scratch", host_target())[RELEASE]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(room))


@contextlib.contextmanager
def acquired(*sizes: int) -> Iterator[list[Room]]:
    rooms = [acquire(size) for size in sizes]
    yield rooms
    for room in rooms:
        release(room)


def test_rooms_are_distinct_and_large_enough() -> None:
    with acquired(*range(0, 100_000, 1000)) as rooms:  # more than there are slots
        for number, room in enumerate(rooms):
            assert room.bytes >= 1000 * number and room.memory is not None and room.memory % 64 == 0
            room.array[...] = number
        assert all((room.array == number).all() for number, room in enumerate(rooms))
        assert sum(room.slot >= 0 for room in rooms) == SLOTS


def test_the_same_memory_is_used_again() -> None:
    with acquired(1000) as (room,):
        memory, size = room.memory, room.bytes
    with acquired(size) as (room,):
        assert room.memory == memory
    with acquired(size + 1) as (room,):
        assert room.bytes == size + mmap.PAGESIZE


def test_huge_pages_hold_large_rooms_only() -> None:
    xlapy.trim()
    with acquired(HUGE_PAGE - 1, HUGE_PAGE, 2 * HUGE_PAGE + 1) as rooms:
        assert [room.bytes for room in rooms] == [HUGE_PAGE, HUGE_PAGE, 2 * HUGE_PAGE + mmap.PAGESIZE]
        assert rooms[-1].memory is not None and rooms[-1].memory % HUGE_PAGE == 0
        for room in rooms:
            room.array[...] = 1


def test_what_nobody_uses_goes_back() -> None:
    small, large = acquire(100_000), acquire(5_000_000)
    for room in (small, large):
        room.array[...] = 7
    release(large)
    before = _resident_bytes()
    xlapy.trim()
    assert _resident_bytes() <= before - 4_000_000
    assert (small.array == 7).all()
    release(small)
    with acquired(1, 5_000_000) as rooms:
        assert not rooms[-1].array.any()


def _resident_bytes() -> int:
    if sys.platform != "linux":
        pytest.skip("only Linux tells how much memory a process has")
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("size", [8, 300])
def test_products_take_no_more_than_they_need(size: int) -> None:
    """Of operands that must be packed."""
    builder = xlapy.XlaBuilder("product")
    shape = xlapy.Shape.array(np.float64, (size, size))
    left, right = builder.parameter(0, shape), builder.parameter(1, shape)
    program = xlapy.compile(builder.build(xlapy.ops.Dot(left, xlapy.ops.Transpose(right, (1, 0)))))
    x = np.ones((size, size), np.float64)
    xlapy.trim()
    assert (program(x, x) == size).all()
    with acquired(1) as (room,):
        assert room.bytes <= 3 * x.nbytes + 2 * mmap.PAGESIZE


def test_small_rooms_stay_with_their_threads() -> None:
    """Of most threads: a few may have numbers in common."""
    all_are_there = threading.Barrier(8)

    def memories() -> list[int | None]:
        all_are_there.wait()
        found = []
        for size in (5000, 1000, 5000):
            with acquired(size) as (room,):
                found.append(room.memory)
            all_are_there.wait()
        return found

    with ThreadPoolExecutor(8) as pool:
        of_threads = [future.result() for future in [pool.submit(memories) for _ in range(8)]]
    assert len({tuple(found) for found in of_threads}) >= 4
    assert sum(len({*found}) == 1 for found in of_threads) >= 4


def test_large_rooms_are_for_whoever_comes_first() -> None:
    def slot() -> int:
        with acquired(2 * HUGE_PAGE) as (room,):
            return int(room.slot)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(slot).result() == slot() == 0
