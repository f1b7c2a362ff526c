"""What is copied by hand-written code, beside what the C library copies."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target
from xlapy_runtime import linking
from xlapy_runtime.hand_written import address_of_copy, is_linux_on_x86
from xlapy_runtime.images import PAGE_BYTES

pytestmark = pytest.mark.skipif(not is_linux_on_x86(), reason="hand-written code is for Linux on x86-64")

COPYING = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
CALLER = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define ptr @caller(ptr %goal, ptr %source, i64 %size) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr %goal, ptr %source, i64 %size, i1 false)
  ret ptr %goal
}
"""
SIZES = [0, 1, 63, 64, 2047, 2048, 2049, 2111, 2112, 2113, 4095, 4096, 5000, 40_000, (4 << 20) - 1, 4 << 20]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ahead", [0, 1, 16, 17, 31, 32, 63, 64, 65, PAGE_BYTES - 1, PAGE_BYTES - 16])
def test_copies_all_and_nothing_else(ahead: int, size: int) -> None:
    copy = COPYING(address_of_copy())
    room = np.full(2 * size + 4 * PAGE_BYTES, 255, np.uint8)
    begin = PAGE_BYTES - room.ctypes.data % PAGE_BYTES
    behind = begin + -(-(size + 1) // PAGE_BYTES) * PAGE_BYTES + ahead
    source = room[begin : begin + size]
    source[:] = np.random.default_rng(size).integers(0, 255, size, np.uint8)
    before = room.copy()
    assert copy(room.ctypes.data + behind, source.ctypes.data, size) == room.ctypes.data + behind
    before[behind : behind + size] = before[begin : begin + size]
    assert np.array_equal(room, before)


def test_compiled_code_calls_it() -> None:
    assert linking._address_in_process("memcpy") == address_of_copy()
    linked = linking.link([emit_object(CALLER, host_target())], {}, ["caller"])
    own = COPYING(linked.address("caller"))
    source, goal = np.arange(9000, dtype=np.uint8), np.zeros(9000, np.uint8)
    own(goal.ctypes.data, source.ctypes.data, 9000)
    assert np.array_equal(goal, source)
