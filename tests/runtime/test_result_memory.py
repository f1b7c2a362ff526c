"""Large results come from recycled blocks, and nothing visible tells."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from xlapy_runtime import result_memory
from xlapy_runtime.result_memory import LARGE_BYTES, ResultMemory

FLOAT32 = np.dtype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex128, ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_arrays_are_plain(dtype: type, rows: int) -> None:
    array = ResultMemory().allocate((rows, 8192), np.dtype(dtype))
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == ((rows, 8192), np.dtype(dtype))
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    array[...] = 1
    assert np.all(array == 1)


def test_large_arrays_are_aligned_and_distinct() -> None:
    pool = ResultMemory()
    arrays = [pool.allocate((LARGE_BYTES // 4 + 100 * n,), FLOAT32) for n in range(5)]
    for number, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0
        array[...] = number
    assert all(np.all(array == number) for number, array in enumerate(arrays))


def test_a_block_returns_with_the_last_view() -> None:
    pool = ResultMemory()
    array = pool.allocate((LARGE_BYTES,), FLOAT32)
    address = array.ctypes.data
    view = array[5:].view(np.int32)
    del array
    assert pool.statistics().idle_blocks == 0
    del view
    assert pool.statistics().idle_blocks == 1
    assert pool.allocate((LARGE_BYTES // 2, 2), FLOAT32).ctypes.data == address
    assert (pool.statistics().recycled, pool.statistics().fresh) == (1, 1)


def test_small_results_do_not_touch_the_pool() -> None:
    pool = ResultMemory()
    pool.allocate((LARGE_BYTES // 4 - 1,), FLOAT32)
    assert pool.statistics().fresh == 0


def test_size_classes_hold_and_waste_at_most_a_quarter() -> None:
    previous = 0
    for byte_count in range(LARGE_BYTES, 9 * LARGE_BYTES, 4093):
        size_class = result_memory._size_class(byte_count)
        assert byte_count <= result_memory._class_bytes(size_class) <= byte_count * 1.25
        assert previous <= size_class
        previous = size_class
    for size_class in range(result_memory._CLASS_COUNT):
        assert result_memory._size_class(result_memory._class_bytes(size_class)) == size_class


def test_the_pool_is_bounded() -> None:
    pool = ResultMemory(limit_bytes=3 * LARGE_BYTES)
    arrays = [pool.allocate((LARGE_BYTES,), np.dtype(np.uint8)) for _ in range(10)]
    arrays.clear()
    assert pool.statistics().idle_bytes == 3 * LARGE_BYTES


def test_the_pool_counts_what_comes_back_again_and_again() -> None:
    pool = ResultMemory(limit_bytes=8 * LARGE_BYTES)
    for _ in range(20):  # more bytes in all than may wait at once
        arrays = [pool.allocate((size,), np.dtype(np.uint8)) for size in (LARGE_BYTES, 2 * LARGE_BYTES)]
        arrays.clear()
        assert pool.statistics().idle_bytes == 3 * LARGE_BYTES
    assert pool.statistics().fresh == 2
    arrays = [pool.allocate((LARGE_BYTES,), np.dtype(np.uint8)) for _ in range(10)]
    assert pool.statistics().idle_bytes == 2 * LARGE_BYTES
    arrays.clear()
    assert pool.statistics().idle_bytes == 8 * LARGE_BYTES


def test_trim_returns_the_memory() -> None:
    pool = ResultMemory()
    resident_before = resident_bytes()
    array = pool.allocate((64 << 20,), np.dtype(np.uint8))
    array[...] = 1
    del array
    assert resident_bytes() - resident_before > 60 << 20
    pool.trim()
    assert pool.statistics().idle_blocks == 0
    assert resident_bytes() - resident_before < 4 << 20


def test_blocks_that_nobody_wants_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ResultMemory()
    arrays = [pool.allocate((2 * LARGE_BYTES,), FLOAT32), pool.allocate((LARGE_BYTES,), FLOAT32)]
    arrays.pop()
    assert pool.statistics().idle_blocks == 1
    later = time.monotonic() + 100
    monkeypatch.setattr(time, "monotonic", lambda: later)
    arrays.pop()
    assert pool.statistics().idle_bytes == 8 * LARGE_BYTES


def test_threads_never_share_a_block() -> None:
    pool = ResultMemory()
    failures: list[str] = []

    def work(mark: int) -> None:
        for turn in range(40):
            array = pool.allocate((LARGE_BYTES // 4,), FLOAT32)
            array[:100] = mark * 1000 + turn
            other = pool.allocate((LARGE_BYTES // 4,), FLOAT32)
            other[:100] = -1
            if not np.all(array[:100] == mark * 1000 + turn):
                failures.append(f"thread {mark} lost its block")

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pool.statistics().idle_blocks == pool.statistics().fresh <= 16


def test_arrays_in_reference_cycles_return_their_blocks() -> None:
    pool = ResultMemory()
    cycle: list[object] = [pool.allocate((LARGE_BYTES,), FLOAT32)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert pool.statistics().idle_blocks == 1


def test_a_forked_child_has_its_own_copy() -> None:
    array = result_memory.allocate((LARGE_BYTES,), FLOAT32)
    array[...] = 1
    child = os.fork()
    if child == 0:
        array[...] = 2
        os._exit(0 if np.all(array == 2) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.all(array == 1)


def test_arrays_may_outlive_the_interpreter() -> None:
    program = f"""
import builtins, numpy as np
from xlapy_runtime import result_memory
kept = result_memory.allocate(({LARGE_BYTES},), np.dtype(np.float32))
kept[...] = 1
builtins.kept = kept[10:]
cycle = [kept]
cycle.append(cycle)
"""
    runtime = Path(result_memory.__file__).parents[1]
    finished = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(runtime)}, capture_output=True, timeout=60, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, b"")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
