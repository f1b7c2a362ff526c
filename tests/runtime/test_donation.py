"""Which arguments may be lent, and what the native and the portable way of calling make of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.compiler import compile_module
from xlapy.native import native_wrapper
from xlapy.options import CompileOptions
from xlapy_runtime import donation, result_memory
from xlapy_runtime.executable import ProgramExecutable

LARGE = result_memory.LARGE_BYTES // 4


@pytest.mark.parametrize("size", [8, LARGE])
def test_results_may_be_lent_and_views_may_not(size: int) -> None:
    result = result_memory.allocate((size,), np.dtype(np.float32))
    assert donation.may_be_lent(result)
    for view in (result[1:], result[:], result.reshape(2, -1), result.view(np.int32)):
        assert not donation.may_be_lent(view)
    assert not donation.may_be_lent(np.broadcast_to(result, (2, size)))
    assert not donation.may_be_lent(np.frombuffer(bytearray(32), np.float32))


def test_what_may_be_lent_stays_and_the_rest_is_copied() -> None:
    own = np.arange(4.0)
    fixed = np.arange(4.0)
    fixed.flags.writeable = False
    lent = donation.lent([own, fixed, fixed], {0, 1})
    assert lent[0] is own and lent[2] is fixed
    assert lent[1] is not fixed and lent[1].flags.writeable
    np.testing.assert_array_equal(lent[1], fixed)


def test_donated_arguments_share_no_byte_with_others() -> None:
    whole = np.arange(12.0)
    parts = {
        "twice": ([whole, whole], [False, True]),
        "a part": ([whole, whole[3:5]], [False, True]),
        "side by side": ([whole[:6], whole[6:]], [True, True]),
        "every other": ([whole[::2], whole[1::2]], [False, True]),  # their spans touch, if not their bytes
        "backwards": ([whole[:6][::-1], whole[5:]], [False, True]),
        "around": ([whole, np.arange(3.0), whole[11:]], [False, True, True]),
        "empty": ([whole, whole[:0]], [True, True]),
    }
    for title, (row, stays) in parts.items():
        (apart,) = donation.apart([row], [row], {0})
        assert [one is other for one, other in zip(apart, row, strict=True)] == stays, title
    rows = [[whole], [whole], [np.arange(2.0)]]
    rows = donation.apart(rows, rows, {0})
    assert rows[0][0] is not whole and rows[1][0] is not whole and rows[0][0] is not rows[1][0]


def test_an_argument_that_was_copied_to_be_read_shares_memory_all_the_same() -> None:
    whole = np.arange(12.0)
    given = [whole, whole[::-1]]
    (row,) = donation.apart([[whole, whole[::-1].copy()]], [given], {0})
    assert row[0] is not whole
    (row,) = donation.apart([[whole, np.arange(12.0)]], [[whole, 3.0]], {0})
    assert row[0] is whole


def _executable(*, native: bool) -> ProgramExecutable:
    """(x + y, y), of which the first is in place of x, and the second is y."""
    builder = xlapy.XlaBuilder("sum")
    x, y = (ops.Parameter(builder, number, xlapy.Shape.array(np.float32, (4,))) for number in range(2))
    builder.setup_alias((0,), 0)
    compiled = compile_module(builder.build([x + y, y]).module, CompileOptions(verify=True))
    assert compiled.program.aliases == {0: 0}
    return ProgramExecutable(compiled.program, compiled.link(), wrapper=native_wrapper() if native else None)


@pytest.mark.parametrize("native", [True, False])
def test_both_ways_of_calling_lend(native: bool) -> None:
    run = _executable(native=native)
    ones = np.ones(4, np.float32)
    own = np.arange(4, dtype=np.float32)
    total, other = run(own, ones)
    assert total is own and other is not ones
    np.testing.assert_array_equal(own, [1, 2, 3, 4])
    awkward: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda array: array[:],
        lambda array: np.frombuffer(array.tobytes(), np.float32),
        lambda array: array.astype(">f4"),
    ]
    for make in awkward:
        given = make(own)
        total, _ = run(given, ones)
        np.testing.assert_array_equal(total, [2, 3, 4, 5])
        np.testing.assert_array_equal(given, own)
        assert not np.may_share_memory(total, given)
    total, _ = run(own, own)
    np.testing.assert_array_equal(total, own * 2)
    assert total is not own


class Box:
    """What numpy makes an array of: always the same one."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self._array


def _reversing(**grid: int) -> xlapy.Executable:
    """x plus y backwards, in place of x."""
    builder = xlapy.XlaBuilder("reversing")
    x, y = (ops.Parameter(builder, number, xlapy.Shape.array(np.float32, (64,))) for number in range(2))
    builder.setup_alias((), 0)
    return xlapy.compile(builder.build(ops.Rev(y, [0]) + x), CompileOptions(**grid))


@pytest.mark.parametrize("native", [True, False])
def test_memory_is_shared_whatever_the_arguments_are(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr("xlapy.executable.native_wrapper", lambda: None)
    run = _reversing()
    plain = np.arange(64, dtype=np.float32)
    for make in (lambda array: array, Box, lambda array: Box(array[:]), np.ndarray.view):
        for donate in (np.asarray, Box):
            own = plain.copy()
            np.testing.assert_array_equal(run(donate(own), make(own)), plain + plain[::-1])


def test_processes_share_no_donated_argument() -> None:
    run = _reversing(num_replicas=2)
    plain = np.arange(64, dtype=np.float32)
    box = Box(plain.copy())
    results = run.run_parallel([[box, plain.copy()], [box, plain.copy()]])
    assert not np.may_share_memory(*results)
    for result in (*results, run.run_parallel([[box, box], [plain.copy(), box]])[0]):
        np.testing.assert_array_equal(result, plain + plain[::-1])


@pytest.mark.skipif(native_wrapper() is None, reason="needs the native way of calling")
@pytest.mark.parametrize("size", [8, LARGE])
def test_the_quick_way_lends_results_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in Python is asked, unless something may not be lent."""
    builder = xlapy.XlaBuilder("next")
    x = ops.Parameter(builder, 0, xlapy.Shape.array(np.float32, (size,)))
    builder.add_buffer_donor(0)
    step = xlapy.compile(builder.build(x + np.float32(1)))
    state = step(np.zeros(size, np.float32)[:])

    def asked(*arguments: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(donation, "apart", asked)
    assert step(state) is state
    with pytest.raises(AssertionError, match="asked"):
        step(state[:])
