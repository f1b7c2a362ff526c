"""The native loop over the problems of a batch, with a C function that writes down what it is called with."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.support.shared_cache import shared_cache
from xlapy.codegen.batch_calls import BATCH_CALLS
from xlapy.codegen.target import host_target
from xlapy_runtime.lapack import batches


@pytest.fixture(params=["native", "python"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(batches.LOOPS, "found", None)
    if request.param == "native":
        batches.LOOPS.install(BATCH_CALLS.objects(host_target(), shared_cache()))
    return str(request.param)


@pytest.mark.parametrize("count", batches.LOOP_SYMBOLS)
def test_each_pointer_moves_on_by_its_step(count: int, loops: str) -> None:
    calls = []
    record = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(lambda *pointers: calls.append(pointers))
    address = ctypes.cast(record, ctypes.c_void_p).value
    assert address
    pointers, steps = [1000 * (slot + 1) for slot in range(count)], [slot % 3 * 8 for slot in range(count)]
    batches.call_each(address, 3, pointers, steps)
    expected = [tuple(p + i * s for p, s in zip(pointers, steps, strict=True)) for i in range(3)]
    assert calls == expected


def test_batches_longer_than_a_loop(loops: str) -> None:
    numbers = np.zeros(batches.PROBLEMS_PER_LOOP * 2 + 3, np.int64)
    amount = np.array([5])

    def add(place: int, amount: int, _first: int, _second: int) -> None:
        ctypes.c_int64.from_address(place).value += ctypes.c_int64.from_address(amount).value

    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(add)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    pointers = [numbers.ctypes.data, amount.ctypes.data, amount.ctypes.data, amount.ctypes.data]
    batches.call_each(address, numbers.size, pointers, [8, 0, 0, 0])
    assert (numbers == 5).all()
