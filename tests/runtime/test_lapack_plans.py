"""Plans of LAPACK's routines: prepared once for each call site, run by many threads, for any order in memory."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import xlapy
from xlapy_runtime.custom_calls import BUILT_IN, register_custom_call_target
from xlapy_runtime.lapack import batches, plans
from xlapy_runtime.lapack.native import NOT_FINITE, Batch
from xlapy_runtime.lapack.plans import Place

RANDOM = np.random.default_rng(3)


def normal(*dims: int) -> np.ndarray:
    return RANDOM.normal(size=dims).astype(np.float32)


def layout(rank: int, by_column: bool) -> str:
    order = [*range(rank)][::-1]
    if by_column:
        order[:2] = order[1::-1]
    return "{" + ",".join(map(str, order)) + "}"


def site(target: str, a: str, results: list[tuple[str, bool]], *, by_column: bool, operand: str, config: str) -> str:
    """A custom call; the results that are matrices lie as the operand does."""

    def spelled(shape: str, is_matrix: bool) -> str:
        rank = shape.count(",") + ("[]" not in shape)
        return shape + layout(rank, by_column and is_matrix)

    shapes = ", ".join(spelled(*result) for result in results)
    options = f"custom_call_target={target!r}, operand_layout_constraints={{{spelled(a, True)}}}".replace("'", '"')
    return f"({shapes}) custom-call({operand}), {options}, api_version=API_VERSION_TYPED_FFI{config}"


def lu(dims: str, pivots: str, info: str, *, by_column: bool = True, operand: str = "x") -> str:
    results = [(f"f32[{dims}]", True), (f"s32[{pivots}]", False), (f"s32[{info}]", False)]
    target = "lapack_sgetrf_ffi"
    return site(target, f"f32[{dims}]", results, by_column=by_column, operand=operand, config="")


def singular_values(count: int, size: int, *, by_column: bool = True) -> str:
    square, values = f"f32[{count},{size},{size}]", f"f32[{count},{size}]"
    results = [(square, True), (values, False), (square, True), (square, True), (f"s32[{count}]", False)]
    config = ", backend_config={mode = 65 : ui8}"
    return site("lapack_sgesdd_ffi", square, results, by_column=by_column, operand="x", config=config)


def compiled(a: str, call: str) -> xlapy.Executable:
    return xlapy.compile(f"HloModule m\nENTRY main {{ x = {a} parameter(0)\n ROOT y = {call} }}")


def same(left: Any, right: Any) -> None:
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(params=["native", "python", "no frame is kept"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ways to run a plan. The answers have the same bits."""
    if request.param == "no frame is kept":
        monkeypatch.setattr(plans, "KEPT_BYTES", -1)
    return str(request.param)


def test_every_way_has_the_same_answers(ways: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = normal(3, 5, 5)
    expected = [compiled("f32[3,5,5]", singular_values(3, 5, by_column=by_column)) for by_column in (True, False)]
    if ways == "python":
        monkeypatch.setattr(batches.LOOPS, "found", None)
    for other in (a, a * 2, a):
        first, second = (function(other) for function in expected)
        same(first, second)
        np.testing.assert_allclose(first[1], np.linalg.svd(other)[1], rtol=1e-5)
        assert first[4].tolist() == [0, 0, 0]
        filled = [np.empty(part.shape, part.dtype) for part in first]
        BUILT_IN["lapack_sgesdd_ffi"]([other], filled, mode=65)
        same(first[1:], filled[1:])


def test_threads_that_run_a_program_at_once_share_nothing() -> None:
    function = compiled("f32[16,12,12]", singular_values(16, 12))
    inputs = [normal(16, 12, 12) for _ in range(4)]
    expected = [function(a) for a in inputs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda a: [function(a) for _ in range(25)], inputs))
    for answers, right in zip(found, expected, strict=True):
        for answer in answers:
            same(answer, right)


def test_sites_of_one_target_have_plans_of_their_own() -> None:
    run = xlapy.compile(f"""HloModule m
    ENTRY main {{ x = f32[4,3] parameter(0)
      y = f32[2,3,5] parameter(1)
      a = {lu("4,3", "3", "")}
      b = {lu("2,3,5", "2,3", "2", operand="y")}
      ROOT t = ((f32[4,3], s32[3], s32[]), (f32[2,3,5], s32[2,3], s32[2])) tuple(a, b) }}""")
    for _ in range(3):
        x, y = normal(4, 3), normal(2, 3, 5)
        (tall, order, info), (wide, orders, infos) = run(x, y)
        assert info == 0 and infos.tolist() == [0, 0]
        check_factors(x, tall, order)
        for index in range(2):
            check_factors(y[index], wide[index], orders[index])


def check_factors(a: np.ndarray, factors: np.ndarray, pivots: np.ndarray) -> None:
    less = min(a.shape)
    lower = np.tril(factors, -1)[:, :less] + np.eye(a.shape[0], less)
    rows = np.arange(a.shape[0])
    for index, other in enumerate(pivots - 1):
        rows[[index, other]] = rows[[other, index]]
    np.testing.assert_allclose(lower @ np.triu(factors)[:less], a[rows], atol=1e-5)


def test_no_problems_and_no_elements() -> None:
    factors, pivots, info = compiled("f32[0,3,3]", lu("0,3,3", "0,3", "0"))(np.zeros((0, 3, 3), np.float32))
    assert (factors.shape, pivots.shape, info.shape) == ((0, 3, 3), (0, 3), (0,))
    factors, pivots, info = compiled("f32[2,0,0]", lu("2,0,0", "2,0", "2"))(np.zeros((2, 0, 0), np.float32))
    assert (factors.shape, pivots.shape, info.tolist()) == ((2, 0, 0), (2, 0), [0, 0])


def test_what_is_not_finite_leaves_no_trace_in_the_next_run() -> None:
    function = compiled("f32[3,4,4]", singular_values(3, 4))
    a = normal(3, 4, 4)
    bad = a.copy()
    bad[1, 2, 3] = np.nan
    expected = function(a)
    for _ in range(2):
        answer = function(bad)
        assert answer[4].tolist() == [0, NOT_FINITE, 0] and not answer[1][1].any()
        same([part[::2] for part in answer], [part[::2] for part in expected])
        same(function(a), expected)


def test_places_and_their_parts() -> None:
    memory = np.arange(12, dtype=np.float32)
    address = memory.ctypes.data
    place = Place(0, (2, 3, 2), memory.dtype, True)
    assert place.nbytes == 48
    assert place.at(address)[1].tolist() == [[6, 9], [7, 10], [8, 11]]
    part = place[1]
    assert (part.shape, part.offset) == ((3, 2), 24)
    np.testing.assert_array_equal(part.at(address + part.offset), place.at(address)[1])


def test_steps_on_parts() -> None:
    batch = Batch("s", np.dtype(np.float32), 1, 2)
    rows, other = (Place(slot, (2, 3), batch.dtype, False) for slot in range(2))
    batch.copy(rows[1], other[0])
    batch.clear(other[1])
    batch.compute(lambda row: row.__iadd__(1), rows[0])
    given, made = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    batch.plan().run([given.ctypes.data, made.ctypes.data])
    assert made.tolist() == [3, 4, 5, 0, 0, 0] and given.tolist() == [1, 2, 3, 3, 4, 5]


def test_programs_are_not_kept_alive_by_their_contexts() -> None:
    function = compiled("f32[3,4,4]", singular_values(3, 4))
    function(normal(3, 4, 4))
    seen = weakref.ref(function._executable)
    del function
    gc.collect()
    assert seen() is None


def test_a_failure_ends_one_call() -> None:
    register_custom_call_target("xlapy_test_picky", picky)
    function = xlapy.compile("""HloModule m
    ENTRY main { x = f32[4] parameter(0)
      y = f32[4] custom-call(x), custom_call_target="xlapy_test_picky"
      ROOT z = f32[4] add(y, y) }""")
    x = normal(4)
    for _ in range(3):
        np.testing.assert_array_equal(function(x), x + x)
        with pytest.raises(ValueError, match="infinite"):
            function(x * np.float32(np.inf))
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(function, [x] * 40):
            np.testing.assert_array_equal(answer, x + x)


def picky(x: np.ndarray) -> np.ndarray:
    if not np.isfinite(x).all():
        raise ValueError("infinite")
    return x


def test_donated_memory_is_that_of_the_result() -> None:
    function = xlapy.compile("""HloModule m, input_output_alias={ {}: (0, {}) }
    ENTRY main { x = f32[4,4] parameter(0)
      y = (f32[4,4]{0,1}, s32[4], s32[]) custom-call(x), custom_call_target="lapack_sgetrf_ffi",
        operand_layout_constraints={f32[4,4]{0,1}}, api_version=API_VERSION_TYPED_FFI
      f = f32[4,4] get-tuple-element(y), index=0
      ROOT z = f32[4,4] add(f, x) }""")
    x = normal(4, 4)
    for given in (x.copy(), x.copy()):
        answer = function(given)
        assert answer is given
        factors = scipy.linalg.lu_factor(x)[0]
        np.testing.assert_allclose(answer, factors + x, rtol=1e-5)
