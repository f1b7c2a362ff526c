"""Plans as native code goes through them, and Python, with C functions that write down what they are called with."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.shared_cache import shared_cache
from xlapy.codegen.planned_calls import PLANNED_CALLS
from xlapy.codegen.target import host_target
from xlapy_runtime import planned_calls
from xlapy_runtime.calling import CONTEXT_WORDS, ContextWord
from xlapy_runtime.planned_calls import PlanRecord, StepKind, StepRecord


@pytest.fixture(params=["native", "python"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(planned_calls.NATIVE, "found", None)
    if request.param == "native":
        planned_calls.NATIVE.install(PLANNED_CALLS.objects(host_target(), shared_cache()))
    return str(request.param)


class Memory:
    """A plan, with all that it points to."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.addresses = planned_calls.words([array.ctypes.data for array in arrays])
        self.steps: list[StepRecord] = []
        self.kept: list[Any] = [arrays]

    def call(self, function: Any, count: int, pointers: list[int], steps: list[int], *moving: int) -> None:
        table = planned_calls.words([*pointers, *steps, *moving])
        address = ctypes.cast(function, ctypes.c_void_p).value
        self.kept += [function, table]
        step = StepRecord(kind=StepKind.CALL, count=count, size=len(pointers), moving=len(moving) // 3)
        step.function, step.table = address, ctypes.addressof(table)
        self.steps.append(step)

    def plan(self) -> PlanRecord:
        steps = (StepRecord * len(self.steps))(*self.steps)
        self.kept.append(steps)
        given = len(self.addresses)
        return PlanRecord(given, ctypes.addressof(self.addresses), len(steps), ctypes.addressof(steps))


@pytest.mark.parametrize("count", planned_calls.POINTER_COUNTS)
def test_each_pointer_moves_on_by_its_step(count: int, ways: str) -> None:
    calls = []
    record = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(lambda *pointers: calls.append(pointers))
    pointers, steps = [1000 * (slot + 1) for slot in range(count)], [slot % 3 * 8 for slot in range(count)]
    memory = Memory()
    memory.call(record, 3, pointers, steps)
    assert planned_calls.run(memory.plan()) == 0
    assert calls == [tuple(p + i * s for p, s in zip(pointers, steps, strict=True)) for i in range(3)]


def test_pointers_to_given_arrays_are_filled_in_at_each_run(ways: str) -> None:
    calls = []
    record = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(lambda *pointers: calls.append(pointers))
    arrays = np.zeros(4), np.zeros(4)
    memory = Memory(*arrays)
    memory.call(record, 2, [8, 0, 8, 0], [0, 16, 0, 0], *(1, 0, 8), *(3, 1, 0))
    first, second = (array.ctypes.data for array in arrays)
    plan = memory.plan()
    planned_calls.run(plan)
    memory.addresses[1] = first
    planned_calls.run(plan)
    assert calls == [(8, first + 8 + 16 * i, 8, other) for other in (second, first) for i in range(2)]


def test_batches_longer_than_a_loop(ways: str) -> None:
    numbers = np.zeros(planned_calls.PROBLEMS_PER_LOOP * 2 + 3, np.int64)
    amount = np.array([5])

    def add(place: int, amount: int, _first: int, _second: int) -> None:
        ctypes.c_int64.from_address(place).value += ctypes.c_int64.from_address(amount).value

    memory = Memory()
    other = amount.ctypes.data
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(add)
    memory.call(function, numbers.size, [numbers.ctypes.data, other, other, other], [8, 0, 0, 0])
    planned_calls.run(memory.plan())
    assert (numbers == 5).all()


def test_copies_in_pieces_and_zeros(ways: str) -> None:
    source, target = np.arange(12, dtype=np.int32), np.full(8, -1, np.int32)
    memory = Memory(source, target)
    copy = StepRecord(kind=StepKind.COPY, count=3, size=4, target=1, target_offset=4, target_step=8)
    copy.source, copy.source_offset, copy.source_step = 0, 8, 12
    memory.steps = [copy, StepRecord(kind=StepKind.CLEAR, size=8, target=1, target_offset=24)]
    planned_calls.run(memory.plan())
    assert target.tolist() == [-1, 2, -1, 5, -1, 8, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 20])
def test_what_is_finite_is_kept(size: int, dtype: type, ways: str) -> None:
    numbers = np.random.default_rng(0).normal(size=(size + 3, size)).astype(dtype)
    for place, other in zip(range(size), itertools.cycle([np.nan, np.inf, -np.inf]), strict=False):
        numbers[place, place] = other
    if size:
        numbers[size] = np.finfo(dtype).max
        numbers[size + 1] = np.finfo(dtype).smallest_subnormal
    kept, flags, infos = np.full_like(numbers, 7), np.full(size + 3, 7, np.uint8), np.arange(size + 3, dtype=np.int32)
    memory = Memory(numbers, kept, flags, infos)
    keep = StepRecord(kind=StepKind.KEEP_FINITE, count=size + 3, size=size, target=1, source=0, third=2)
    keep.float_bytes = numbers.itemsize
    memory.steps = [keep, StepRecord(kind=StepKind.REPORT_OTHERS, count=size + 3, size=-4, target=3, source=2)]
    planned_calls.run(memory.plan())
    finite = np.isfinite(numbers).all(1)
    assert flags.tolist() == finite.tolist() and finite.sum() == 3
    np.testing.assert_array_equal(kept, np.where(finite[:, None], numbers, 0))
    assert infos.tolist() == [*[-4] * size, size, size + 1, size + 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_of_columns_become_complex(dtype: type, ways: str) -> None:
    """Signs that nobody should give do no harm: the columns are a ring."""
    signs = np.array([[0, 1, -1, 0, 0], [1, -1, 0, 2, -2], [-1, 0, np.nan, -0.0, 1]], dtype)
    columns = np.random.default_rng(0).normal(size=(3, 5, 5)).astype(dtype)
    vectors = np.full((3, 5, 5), 9, np.result_type(dtype, np.complex64))
    memory = Memory(columns, vectors, signs)
    unpack = StepRecord(kind=StepKind.UNPACK, count=3, size=5, source=0, target=1, third=2)
    unpack.float_bytes = columns.itemsize
    memory.steps = [unpack]
    planned_calls.run(memory.plan())
    for number in range(3):
        for column, sign in enumerate(signs[number]):
            before, own, behind = (columns[number, (column + step) % 5] for step in (-1, 0, 1))
            expected = own + 1j * behind if sign > 0 else before - 1j * own if sign < 0 else own
            np.testing.assert_array_equal(vectors[number, column], expected)


def test_the_look_at_signals_ends_a_run() -> None:
    """Behind each part of a batch, and not without a context."""
    planned_calls.NATIVE.install(PLANNED_CALLS.objects(host_target(), shared_cache()))
    calls, statuses = [], [0, 2, 7]
    record = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(lambda *pointers: calls.append(pointers))
    look = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda _context: statuses.pop(0))
    context = (ctypes.c_int64 * CONTEXT_WORDS)()
    context[ContextWord.LOOK] = ctypes.cast(look, ctypes.c_void_p).value or 0
    memory = Memory()
    memory.call(record, 3 * planned_calls.PROBLEMS_PER_LOOP, [0] * 4, [0] * 4)
    plan = memory.plan()
    assert planned_calls.run(plan, ctypes.addressof(context)) == 2
    assert len(calls) == 2 * planned_calls.PROBLEMS_PER_LOOP and statuses == [7]
    assert planned_calls.run(plan) == 0 and len(calls) == 5 * planned_calls.PROBLEMS_PER_LOOP
