"""Plans of LAPACK's routines: prepared once for each call site, run by many threads, for any order in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import xlapy
from xlapy_runtime import calls, planned_calls
from xlapy_runtime.custom_calls import BUILT_IN, register_custom_call_target
from xlapy_runtime.lapack import plans
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
        monkeypatch.setattr(planned_calls.NATIVE, "found", None)
    for other in (a, a * 2, a):
        first, second = (function(other) for function in expected)
        same(first, second)
        np.testing.assert_allclose(first[1], np.linalg.svd(other)[1], rtol=1e-5)
        assert first[4].tolist() == [0, 0, 0]
        filled = [np.empty(part.shape, part.dtype) for part in first]
        BUILT_IN["lapack_sgesdd_ffi"]([other], filled, mode=65)
        same(first[1:], filled[1:])


def check_in_threads(function: Any, inputs: Sequence[Any], times: int) -> None:
    """Called so often with each of the inputs, in a thread for each, the function has the results of one thread."""
    expected = [function(a) for a in inputs]
    with ThreadPoolExecutor(len(inputs)) as pool:
        found = list(pool.map(lambda a: [function(a) for _ in range(times)], inputs))
    for answers, right in zip(found, expected, strict=True):
        for answer in answers:
            same(answer, right)


def test_threads_that_run_a_program_at_once_share_nothing() -> None:
    check_in_threads(compiled("f32[16,12,12]", singular_values(16, 12)), [normal(16, 12, 12) for _ in range(4)], 25)


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


def test_steps_that_native_code_takes_need_python_once_for_each_context(asked: list[str]) -> None:
    function = compiled("f32[4,3]", lu("4,3", "3", ""))
    x = normal(4, 3)
    for _ in range(3):
        factors, pivots, info = function(x)
        assert info == 0
        check_factors(x, factors, pivots)
    assert asked == ["lapack_sgetrf_ffi"]


LOOP = """HloModule m
body {{
  s = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = {call}
  factors = f32[4,4] get-tuple-element(y), index=0
  shrunk = f32[4,4] sine(factors)
  ROOT t = (s32[], f32[4,4]) tuple(next, shrunk)
}}
condition {{
  s = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10000)
  ROOT c = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  x = f32[4,4] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4,4]) tuple(zero, x)
  w = (s32[], f32[4,4]) while(s), condition=condition, body=body
  ROOT r = f32[4,4] get-tuple-element(w), index=1
}}"""


def test_a_loop_of_ten_thousand_steps_asks_python_once(asked: list[str]) -> None:
    function = xlapy.compile(LOOP.format(call=lu("4,4", "4", "")))
    x = normal(4, 4)
    first = function(x)
    assert asked == ["lapack_sgetrf_ffi"]
    np.testing.assert_array_equal(function(x), first)
    assert asked == ["lapack_sgetrf_ffi"]
    expected = x
    for _ in range(10):
        expected = np.sin(scipy.linalg.lu_factor(expected)[0])
    few = xlapy.compile(LOOP.format(call=lu("4,4", "4", "")).replace("10000", "10"))
    np.testing.assert_allclose(few(x), expected, rtol=1e-4)


def test_what_is_around_eigenvalues_is_native_too(asked: list[str]) -> None:
    """Matrices that are not finite are set apart, and vectors are unpacked."""
    vectors = "c64[3,4,4]{1,2,0}"
    call = f"""(f32[3,4], f32[3,4], {vectors}, {vectors}, s32[3]) custom-call(x), custom_call_target="lapack_sgeev_ffi",
      operand_layout_constraints={{f32[3,4,4]{{1,2,0}}}}, api_version=API_VERSION_TYPED_FFI,
      backend_config={{compute_left = 86 : ui8, compute_right = 86 : ui8}}"""
    function = compiled("f32[3,4,4]", call)
    a = np.float32([[0, -1, 0, 2], [1, 0, 0, 1], [0, 1, 3, 0], [0, 0, 1, -1]]) + normal(3, 4, 4) / 8
    bad = a.copy()
    bad[2, 3, 3] = np.inf
    for given, infos in ((a, [0, 0, 0]), (bad, [0, 0, NOT_FINITE])) * 2:
        real, imaginary, left, right, info = function(given)
        assert info.tolist() == infos and imaginary.any()
        for index in range(2):
            values = real[index] + 1j * imaginary[index]
            np.testing.assert_allclose(a[index] @ right[index], right[index] * values, atol=1e-5)
            np.testing.assert_allclose(a[index].T @ left[index].conj(), left[index].conj() * values, atol=1e-5)
    assert asked == ["lapack_sgeev_ffi"]
    function = compiled("f32[3,4,4]", singular_values(3, 4))
    for _ in range(3):
        function(a)
    assert asked[1:] == ["lapack_sgesdd_ffi"]


def test_targets_of_the_user_come_first() -> None:
    """Even where one has the name of LAPACK's."""
    text = f"HloModule m\nENTRY main {{ x = f32[4,3] parameter(0)\n ROOT y = {lu('4,3', '3', '')} }}"
    other = np.zeros((4, 3), np.float32), np.arange(3, dtype=np.int32), np.int32(7)
    own = xlapy.compile(text, xlapy.CompileOptions(custom_calls={"lapack_sgetrf_ffi": lambda x: other}))
    for _ in range(3):
        same(own(normal(4, 3)), other)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets for which native code has come to Python."""
    targets: list[str] = []
    wrap = calls._wrap

    def noting(call: calls.RunningCall, site: int, table: int) -> calls.Buffers:
        targets.append(call.sites[site].attributes["target"])
        return wrap(call, site, table)

    monkeypatch.setattr(calls, "_wrap", noting)
    return targets


def test_eight_threads_in_one_program(asked: list[str]) -> None:
    """Each in a context of its own, with pivots and factors of its own."""
    check_in_threads(compiled("f32[64,8,8]", lu("64,8,8", "64,8", "64")), [normal(64, 8, 8) for _ in range(8)], 200)
    assert len(asked) <= 9


def test_frames_of_much_memory_belong_to_one_run(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    """Contexts would keep them for as long as the program lives."""
    monkeypatch.setattr(plans, "KEPT_BYTES", -1)
    function = compiled("f32[4,3]", lu("4,3", "3", ""))
    for _ in range(3):
        function(normal(4, 3))
    assert len(asked) == 3


def test_arrays_that_lie_otherwise_are_python_s(asked: list[str]) -> None:
    function = compiled("f32[2,4,3]", lu("2,4,3", "2,3", "2", by_column=False))
    for _ in range(2):
        x = normal(2, 4, 3)
        factors, pivots, info = function(x)
        assert info.tolist() == [0, 0]
        for index in range(2):
            check_factors(x[index], factors[index], pivots[index])
    assert len(asked) == 2


def test_runs_on_another_device_have_contexts_of_their_own(asked: list[str]) -> None:
    function = compiled("f32[4,3]", lu("4,3", "3", ""))
    x = normal(4, 3)
    expected = function(x)
    for _ in range(3):
        same(function.run(x, device=xlapy.devices(2)[1]), expected)
    assert asked == ["lapack_sgetrf_ffi"] * 2


def test_processes_of_a_grid(asked: list[str]) -> None:
    """Those that meet go through the native half of `rendezvous`, which asks for what is not its own."""
    text = f"""HloModule m, replica_count=2
    add {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }}
    ENTRY main {{ x = f32[4,3] parameter(0)
      y = {lu("4,3", "3", "")}
      f = f32[4,3] get-tuple-element(y), index=0
      ROOT z = f32[4,3] all-reduce(f), to_apply=add }}"""
    function = xlapy.compile(text, xlapy.CompileOptions(num_replicas=2))
    one, other = normal(4, 3), normal(4, 3)
    expected = sum(scipy.linalg.lu_factor(a)[0] for a in (one, other))
    for _ in range(3):
        for answer in function.run_parallel([[one], [other]]):
            np.testing.assert_allclose(answer, expected, rtol=1e-5)
    assert asked == ["lapack_sgetrf_ffi"] * 2


@pytest.mark.parametrize("dims", [(1,), (4,), (2, 3, 5), (0,), (3, 0)], ids=str)
def test_rotations(dims: tuple[int, ...]) -> None:
    for by in (-1, 1, 2):
        batch = Batch("s", np.dtype(np.float32), 1, 2)
        source, target = (Place(slot, dims, batch.dtype) for slot in range(2))
        batch.rotate(source, target, by)
        given, made = normal(*dims), np.zeros(dims, np.float32)
        batch.plan().run([given.ctypes.data, made.ctypes.data])
        np.testing.assert_array_equal(made, np.roll(given, by, -1))


def test_columns() -> None:
    batch = Batch("s", np.dtype(np.float32), 2, 3)
    matrices, other = (Place(slot, (2, 3, 4), batch.dtype) for slot in (0, 2))
    vectors = Place(1, (2, 3), batch.dtype)
    batch.take_column(matrices, 2, vectors)
    batch.give_column(vectors, other, 1)
    given, between, made = normal(2, 4, 3), np.zeros((2, 3), np.float32), np.zeros((2, 4, 3), np.float32)
    batch.plan().run([array.ctypes.data for array in (given, between, made)])
    np.testing.assert_array_equal(between, given[:, 2])
    np.testing.assert_array_equal(made[:, 1], given[:, 2])
    assert not made[:, [0, 2, 3]].any()


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
    place = Place(0, (2, 3, 2), np.dtype(np.float32))
    assert place.nbytes == 48
    assert (place[1].shape, place[1].offset) == ((3, 2), 24)
    assert (place[1].moved(8).slot, place[1].moved(8).offset) == (0, 32)


def test_steps_on_parts() -> None:
    batch = Batch("s", np.dtype(np.float32), 1, 2)
    rows, other = (Place(slot, (2, 3), batch.dtype) for slot in range(2))
    batch.copy(rows[1], other[0])
    batch.clear(other[1])
    given, made = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    batch.plan().run([given.ctypes.data, made.ctypes.data])
    assert made.tolist() == [3, 4, 5, 0, 0, 0] and given.tolist() == [0, 1, 2, 3, 4, 5]


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
