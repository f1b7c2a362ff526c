"""Results of native calls own blocks that begin on a cache line, and numpy gives these back."""

from __future__ import annotations

import ctypes
import gc
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

import xlapy
from xlapy.native import native_wrapper
from xlapy_runtime import result_blocks
from xlapy_runtime.alignment import data_address
from xlapy_runtime.result_blocks import HUGE_PAGE_BYTES, LIMIT_BYTES, PAGED_BYTES, POOL

LARGEST = HUGE_PAGE_BYTES // 4 - 1
"""So many numbers of four bytes fill no huge page."""


def numbers(count: int) -> Callable[[], np.ndarray]:
    """A program that counts so far."""
    result = f"tensor<{count}xi32>"
    return xlapy.compile(
        f"func.func @main() -> {result} {{ %0 = stablehlo.iota dim = 0 : {result} return %0 : {result} }}"
    ).__call__


@pytest.mark.parametrize("count", [1, 3, 64, 65, 1000, 5000, 100_000, LARGEST])
def test_results_begin_on_a_line_or_page_and_are_arrays_like_any(count: int) -> None:
    result, usual = numbers(count)(), np.empty(count, np.int32)
    assert data_address(result) % (4096 if result.nbytes >= PAGED_BYTES else 64) == 0
    assert (result.flags.num, result.base, result.strides) == (usual.flags.num, None, usual.strides)
    assert (result == np.arange(count)).all()


def test_empty_results_are_numpys() -> None:
    result = numbers(0)()
    assert (result.shape, result.flags.owndata) == ((0,), True)


def test_a_block_is_recycled_as_soon_as_its_array_is_dropped() -> None:
    program = numbers(1000)
    address = data_address(program())
    before = xlapy.memory_statistics()
    assert data_address(program()) == address
    after = xlapy.memory_statistics()
    assert (after.recycled, after.fresh) == (before.recycled + 1, before.fresh)
    assert (after.idle_blocks, after.idle_bytes) == (before.idle_blocks, before.idle_bytes)


def test_results_that_live_share_nothing() -> None:
    program = numbers(300)
    results = [program() for _ in range(50)]
    places = sorted(map(data_address, results))
    assert all(below + results[0].nbytes <= above for below, above in pairwise(places))
    for number, result in enumerate(results):
        result[:] = number
    assert [set(result) for result in results] == [{number} for number in range(50)]


def test_a_view_keeps_the_block() -> None:
    program = numbers(500)
    view = program()[100:200]
    others = [program() for _ in range(3)]
    for other in others:
        other[:] = -1
    assert (view == np.arange(100, 200)).all()


def test_arrays_that_own_a_block_can_be_resized() -> None:
    result = numbers(100)()
    result.resize(60, refcheck=False)
    address = data_address(result)
    result.resize(110, refcheck=False)  # there was room for more
    assert (data_address(result), result.tolist()) == (address, [*range(60), *[0] * 50])
    result.resize(100_000, refcheck=False)
    assert (result[:60] == np.arange(60)).all() and not result[60:].any()
    result.resize(200_000, refcheck=False)  # of what numpy itself asked the functions for
    assert (result[:60] == np.arange(60)).all() and not result[60:].any()


def test_arrays_that_own_a_block_are_copied_and_pickled() -> None:
    result = numbers(77)()
    assert (result.copy() == result).all()
    restored = pickle.loads(pickle.dumps(result))
    restored.__setstate__(result.__reduce__()[2])
    result.__setstate__(restored.__reduce__()[2])  # numpy frees the block
    assert (result == np.arange(77)).all() and (restored == result).all()


def test_what_waits_is_given_back_to_the_system_by_trim() -> None:
    results = [numbers(count)() for count in (10, 10_000, 100_000)]
    del results
    assert POOL.idle_blocks >= 3
    xlapy.trim()
    assert (POOL.idle_blocks, POOL.idle_bytes) == (0, 0)
    assert (numbers(1000)() == np.arange(1000)).all()


@contextmanager
def limit(byte_count: int) -> Iterator[None]:
    POOL.limit_bytes = byte_count
    try:
        yield
    finally:
        POOL.limit_bytes = LIMIT_BYTES


def test_where_too_much_waits_all_of_it_goes() -> None:
    program = numbers(100_000)
    xlapy.trim()
    with limit(1_000_000):
        results, waiting = [program() for _ in range(6)], []
        while results:
            results.pop()
            waiting.append((POOL.idle_blocks, POOL.idle_bytes))
    size = 458_752  # of blocks that hold 400,000 bytes
    assert waiting == [(1, size), (2, 2 * size)] * 3


def test_as_much_waits_as_the_results_of_one_program_need() -> None:
    many = ", ".join(["tensor<100000xi32>"] * 5)
    with limit(100_000):
        program = xlapy.compile(
            "func.func @main() -> (" + many + ") { %0 = stablehlo.iota dim = 0 : tensor<100000xi32> "
            "return %0, %0, %0, %0, %0 : " + many + " }"
        )
        assert POOL.limit_bytes == 5 * 458_752  # the size of blocks that hold 400,000 bytes
        xlapy.trim()
        program()
        program()
        assert POOL.idle_blocks == 5
        result_blocks.expect([result_blocks.home_address(HUGE_PAGE_BYTES - 1)] * 1000)
        assert POOL.limit_bytes == 1 << 30


def test_sizes_of_blocks_hold_what_they_are_for() -> None:
    step = ctypes.sizeof(result_blocks.BlockClass)
    for count in [*range(1, 2000), 4095, 4096, 4097, 1 << 19, (1 << 19) + 1, HUGE_PAGE_BYTES - 1]:
        home = result_blocks.BlockClass.from_address(result_blocks.home_address(count))
        assert count <= home.block_bytes < max(257, count * 1.25 + 1)
        assert (ctypes.addressof(home) - POOL.classes) // step < POOL.class_count
    assert result_blocks.home_address(0) == result_blocks.home_address(HUGE_PAGE_BYTES) == 0


class Functions:
    """The handler's functions, to be called as numpy does."""

    def __init__(self) -> None:
        wrapper = native_wrapper()
        assert wrapper is not None
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        signatures = [(pointer, size), (pointer, size, size), (pointer, pointer, size), (None, pointer, size)]
        self.malloc, self.calloc, self.realloc, self.free = (
            ctypes.PYFUNCTYPE(returned, pointer, *arguments)(wrapper._code.address(symbol))
            for symbol, (returned, *arguments) in zip(result_blocks.HANDLER_SYMBOLS, signatures, strict=True)
        )


@pytest.mark.parametrize("size", [1 << 62, (1 << 63) - 1, (1 << 64) - 1])
def test_absurd_sizes_are_refused(size: int) -> None:
    functions = Functions()
    assert functions.malloc(None, size) is None
    assert functions.calloc(None, size, 1) is functions.calloc(None, size, size) is None
    place = functions.malloc(None, 8)
    assert functions.realloc(None, place, size) is None
    functions.free(None, place, 8)


def test_the_functions_do_what_those_of_c_do() -> None:
    functions = Functions()
    place = functions.calloc(None, 10, 8)
    assert place % 64 == 0 and ctypes.string_at(place, 80) == bytes(80)
    ctypes.memset(place, 7, 80)
    assert functions.realloc(None, place, 80) == place
    larger = functions.realloc(None, place, 200)
    assert ctypes.string_at(larger, 80) == bytes([7] * 80)
    functions.free(None, larger, 200)
    functions.free(None, None, 0)
    first = functions.realloc(None, None, 16)
    assert first
    functions.free(None, first, 16)


def test_threads_that_make_and_drop_results_at_once_get_their_own() -> None:
    program, wrong = numbers(2000), []
    expected = np.arange(2000)

    def work() -> None:
        for _ in range(200):
            kept = [program() for _ in range(3)]
            if not all((result == expected).all() for result in kept):
                wrong.append(kept)
            kept[0][:] = -1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_leaks() -> None:
    program = numbers(10_000)
    program()
    before = xlapy.memory_statistics()
    for _ in range(100):
        program()
    gc.collect()
    assert xlapy.memory_statistics().fresh == before.fresh


END = """
import atexit, gc, numpy, xlapy
program = xlapy.compile("func.func @main() -> tensor<99xi32> "
                        "{ %0 = stablehlo.iota dim = 0 : tensor<99xi32> return %0 : tensor<99xi32> }")
kept = [program() for _ in range(9)]
kept.append(kept)                               # a cycle, which the last collection ends
atexit.register(lambda result: None, program())
numpy.kept = program()                          # ends with the module that frees it
class Last:
    def __init__(self): self.result = program()
    def __del__(self): self.result.resize(1 << 20, refcheck=False)
last = Last()
del program
"""


def test_arrays_may_outlive_everything_else() -> None:
    ended = subprocess.run([sys.executable, "-c", END], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
