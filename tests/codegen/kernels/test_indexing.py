"""Gather and scatter in native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xlapy
from tests.support.dimension_numbers import Windows, windows
from tests.support.native import assert_same_bits, check_native, record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.target import host_target
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.element_types import ALL

ROWS = GatherDimensionNumbers((1,), (0,), (0,), 1)
INTO_ROWS = ScatterDimensionNumbers((1,), (0,), (0,), 1)
ELEMENTS = GatherDimensionNumbers((), (0,), (0,), 1)
INTO_ELEMENTS = ScatterDimensionNumbers((), (0,), (0,), 1)
RANDOM = np.random.default_rng(3)


def normal(*dims: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(size=dims).astype(np.float32)


@settings(max_examples=6, deadline=None)
@given(st.lists(windows(), min_size=5, max_size=5), st.integers(0, 1000))
def test_random_dimension_numbers(cases: list[Windows], seed: int) -> None:
    random = np.random.default_rng(seed)
    arguments: list[Any] = []
    for case in cases:
        arguments += [
            random.normal(size=case.operand).astype(np.float32),
            case.random_indices(random, np.int32),
            random.normal(size=case.all_windows).astype(np.float32),
        ]

    def program(*parameters: Any) -> list[Any]:
        results = []
        for number, case in enumerate(cases):
            operand, indices, updates = parameters[3 * number : 3 * number + 3]
            results.append(ops.Gather(operand, indices, case.gather, case.sizes))
            results.append(ops.Scatter(operand, indices, updates, ops.Add, case.scatter))
            results.append(ops.Scatter(operand, indices, updates, lambda old, new: new, case.scatter))
        return results

    check_native(program, *arguments)


def test_all_element_types() -> None:
    indices = np.array([2, 0, 2, 9, -1], np.int32)
    arguments: list[Any] = []
    for element_type in ALL:
        numbers = RANDOM.integers(0, 2, size=(4 + 5, 19))
        arguments += [numbers[:4].astype(element_type.dtype), numbers[4:].astype(element_type.dtype)]

    def program(indices: Any, *parameters: Any) -> list[Any]:
        results = []
        for operand, updates in zip(parameters[::2], parameters[1::2], strict=True):
            results.append(ops.Gather(operand, indices, ROWS, (1, 19)))
            results.append(ops.Scatter(operand, indices, updates, lambda old, new: new, INTO_ROWS))
            results.append(ops.Scatter(operand, indices, updates, ops.Add, INTO_ROWS))
        return results

    check_native(program, indices, *arguments)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_index_types_and_their_ends(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    indices = np.array([limits.min, limits.max, 0, 3, 4, 5], dtype)
    operand, updates = normal(5), normal(6)
    matrix, windows_of_two = normal(5, 6), normal(6, 2, 6)
    pairs = ScatterDimensionNumbers((1, 2), (), (0,), 1)

    def program(operand: Any, updates: Any, matrix: Any, two: Any, indices: Any) -> list[Any]:
        return [
            ops.Gather(operand, indices, ELEMENTS, (1,)),
            ops.Scatter(operand, indices, updates, ops.Add, INTO_ELEMENTS),
            ops.Scatter(matrix, indices, two, ops.Add, pairs),
        ]

    check_native(program, operand, updates, matrix, windows_of_two, indices)


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 17, 40])
def test_rows_of_any_length(columns: int) -> None:
    indices = RANDOM.integers(-3, 25, size=33).astype(np.int32)

    def program(operand: Any, indices: Any, updates: Any) -> list[Any]:
        return [
            ops.Gather(operand, indices, ROWS, (1, columns)) * 2,
            ops.Scatter(operand, indices, updates, ops.Max, INTO_ROWS),
            ops.Scatter(operand, indices, updates, ops.Min, INTO_ROWS),
            ops.Scatter(operand, indices, updates, lambda old, new: old * 2 - new, INTO_ROWS),
            ops.Scatter(operand, indices, updates, lambda old, new: 1.5, INTO_ROWS),
        ]

    check_native(program, normal(20, columns), indices, normal(33, columns))


COLUMNS = GatherDimensionNumbers((0,), (1,), (1,), 1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("taken", [3, 16, 32, 50])
def test_columns_are_picked_from_every_row(taken: int, dtype: Any) -> None:
    """Each lane has a place in the row, some of them outside of it; narrow and wide elements, with a sum behind."""
    limits = np.iinfo(dtype)
    columns = RANDOM.integers(0, 100, size=taken).astype(dtype)
    columns[0], columns[-1] = limits.min, limits.max
    arrays = (normal(37, 90), normal(37, 90).astype(np.float64), normal(37, 90).astype(np.int8), normal(37, 90) * 1j)

    def program(columns: Any, *arrays: Any) -> list[Any]:
        picked = [ops.Gather(x, ops.Reshape(columns, (taken, 1)), COLUMNS, (37, 1)) for x in arrays]
        return [*picked, ops.Slice(picked[0], (1, 1), (37, taken), (3, 1)) + 1.0]

    check_native(program, columns, *(x.astype(np.complex64) if x.dtype.kind == "c" else x for x in arrays))


def test_what_lanes_pick_from_is_fetched_ahead() -> None:
    rows = host_target().l2_bytes // (64 * 4) + 7
    columns = RANDOM.integers(0, 64, size=16).astype(np.int32)
    executable = check_native(
        lambda x, columns: ops.Gather(x, ops.Reshape(columns, (16, 1)), COLUMNS, (rows, 1)), normal(rows, 64), columns
    )
    assert "call void @llvm.prefetch" in executable.llvm_ir()


def test_windows_that_straddle_the_edge() -> None:
    indices = np.array([[-2, -3], [3, 4], [5, 0], [0, 7], [-9, 0]], np.int64)
    numbers = ScatterDimensionNumbers((1, 2), (), (0, 1), 1)
    check_native(
        lambda x, i, u: ops.Scatter(x, i, u, ops.Add, numbers), normal(6, 9), indices, normal(5, 3, 8)
    )  # fmt: skip


@pytest.mark.parametrize("size", [7, 31, 33, 60, 64, 100])
def test_rows_that_are_added_end_in_whole_vectors(size: int) -> None:
    """The last vector is made before the one that it begins in is stored, also where rows are hit again and again."""
    indices = RANDOM.integers(-1, 6, (40, 1)).astype(np.int32)

    def add(x: XlaOp, indices: XlaOp, rows: XlaOp) -> XlaOp:
        return ops.Scatter(x, indices, rows, ops.Add, INTO_ROWS)

    check_native(add, normal(5, size), indices, normal(40, size))


def test_several_arrays_are_scattered_together() -> None:
    def region(x: Any, n: Any, y: Any, m: Any) -> tuple[Any, Any]:
        larger = y > x
        return ops.Select(larger, y, x), ops.Select(larger, m, n)

    def program(x: Any, n: Any, i: Any, y: Any, m: Any) -> Any:
        return ops.Scatter([x, n], i, [y, m], region, INTO_ROWS)

    numbers = RANDOM.integers(0, 99, size=(7, 11)).astype(np.int64)
    indices = RANDOM.integers(0, 4, size=7).astype(np.int32)
    check_native(program, normal(4, 11), numbers[:4], indices, normal(7, 11), numbers)


def test_narrow_floats_round_after_each_update() -> None:
    def program(x: Any, i: Any, u: Any) -> Any:
        return ops.Scatter(x, i, u, ops.Add, INTO_ELEMENTS)

    arguments = np.array([2048], np.float16), np.zeros(8, np.int32), np.ones(8, np.float16)
    check_native(program, *arguments)
    assert xlapy.compile(record(program, *arguments))(*arguments) == 2048


def test_empty_arrays() -> None:
    def program(x: Any, none: Any, i: Any, u: Any) -> list[Any]:
        return [
            ops.Gather(x, none, ROWS, (1, 3)),
            ops.Scatter(x, none, u, ops.Add, INTO_ROWS),
            ops.Gather(x, i, ROWS, (1, 0)),
            ops.Gather(x, i, GatherDimensionNumbers((1, 2), (), (0,), 1), (0, 3)),
        ]

    none = np.zeros((0,), np.int32)
    check_native(program, normal(4, 3), none, np.array([1, 2], np.int32), normal(0, 3))


def test_scalars() -> None:
    one_element = GatherDimensionNumbers((), (0,), (0,), 0)
    check_native(lambda x, i: ops.Gather(x, i, one_element, (1,)) + 1, normal(4), np.array([2], np.int32))
    whole = ScatterDimensionNumbers((), (), (), 0)
    arguments = np.float32(2), np.zeros(0, np.int32), np.float32(3)
    check_native(lambda x, i, u: ops.Scatter(x, i, u, ops.Add, whole) * 2, *arguments)


def test_a_gather_joins_its_neighbours() -> None:
    """Index arithmetic, the gather, what it reads and what is made of it are one kernel."""

    def program(table: Any, i: Any) -> Any:
        wrapped = ops.Select(ops.Lt(i, np.int32(0)), i + 20, i)
        return ops.Abs(ops.Gather(ops.Neg(table), wrapped, ROWS, (1, 16))) + 1

    executable = check_native(program, normal(20, 16), np.array([3, -1, 7], np.int32))
    assert executable.compile_stats().kernels == 1


def test_scatter_works_in_place_in_a_loop() -> None:
    """The state of the loop is updated where it is: no temporary of its size is needed."""

    def program(x: Any, i: Any) -> Any:
        def body(n: Any, state: Any) -> tuple[Any, Any]:
            ones = ops.Broadcast(ops.Constant(n.builder, np.float32(1)), (3,))
            moved = ops.Iota(n.builder, np.int32, 3) + n
            return n + 1, ops.Scatter(state, moved, ones, ops.Add, INTO_ELEMENTS)

        return ops.GetTupleElement(ops.While(lambda n, s: ops.Lt(n, np.int32(50)), body, (i, x)), 1)

    executable = check_native(program, normal(10_000), np.int32(0))
    assert executable.memory_analysis()["temporary_bytes"] < 10_000


def test_an_operand_that_is_needed_afterwards_stays() -> None:
    def program(x: Any, i: Any, u: Any) -> list[Any]:
        hidden = x * 2
        scaled = ops.Scatter(x, i, u, ops.Mul, INTO_ELEMENTS)
        return [ops.Scatter(hidden, i, u, ops.Add, INTO_ELEMENTS), hidden + 1, scaled]

    check_native(program, normal(100), np.array([3, 3, 99], np.int32), normal(3))


def test_updates_may_be_the_operand() -> None:
    indices = np.array([1, 2, 0], np.int32)
    check_native(lambda x, i: ops.Scatter(x + 1, i, x + 1, ops.Add, INTO_ELEMENTS), normal(3), indices)


def test_long_gathers_are_split_among_threads() -> None:
    table, indices = normal(1000), RANDOM.integers(0, 1000, size=400_000).astype(np.int32)
    module = record(lambda x, i: ops.Gather(x, i, ELEMENTS, (1,)), table, indices)
    executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=2))
    assert_same_bits(executable(table, indices), table[indices])


def windows_of(x: XlaOp, count: int, width: int, stride: int, dtype: Any = np.int32, first: int = 0) -> XlaOp:
    """Neighbours behind every `stride`-th element, by computed places."""
    shape = xlapy.Shape.array(dtype, (count, width))
    number, place = (ops.Iota(x.builder, shape, dim) for dim in (0, 1))
    starts = number * ops.Constant(x.builder, dtype(stride)) + ops.Constant(x.builder, dtype(first))
    numbers = GatherDimensionNumbers((), (0,), (0,), 2)
    return ops.Gather(x, ops.Reshape(starts + place, [count, width, 1]), numbers, [1])


PLACES: dict[str, Callable[[XlaOp], XlaOp]] = {
    "windows": lambda x: windows_of(x, 200, 32, 1),
    "windows and their sums": lambda x: ops.Reduce(windows_of(x, 200, 33, 1), np.float32(0), ops.Add, [1]),
    "frames": lambda x: windows_of(x, 20, 48, 11) * np.float32(2),
    "every third": lambda x: ops.Transpose(windows_of(x, 70, 3, 3), [1, 0]),
    "beyond the end": lambda x: windows_of(x, 250, 20, 1),
    "far beyond": lambda x: windows_of(x, 20, 20, 1, first=1000),
    "before the beginning": lambda x: windows_of(x, 20, 30, 1, first=-7),
    "bytes that hold all": lambda x: windows_of(x, 200, 30, 1, np.uint8),
    "bytes that wrap": lambda x: windows_of(x, 200, 100, 1, np.uint8),
    "signed bytes that wrap": lambda x: windows_of(x, 30, 30, 3, np.int8),
    "backwards": lambda x: windows_of(x, 100, 30, -2, first=198),
    "below zero for unsigned": lambda x: windows_of(x, 20, 30, 1, np.uint32, first=4294967290),
    "padded": lambda x: ops.Pad(windows_of(x, 100, 30, 2), np.float32(-1), [(3, 2, 0), (5, 6, 0)]),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_follow_from_those_of_lanes(name: str) -> None:
    check_native(PLACES[name], np.random.default_rng(0).integers(-50, 50, 231).astype(np.float32))


def test_patches_of_images() -> None:
    def patches(x: XlaOp) -> XlaOp:
        shape = xlapy.Shape.array(np.int32, (12, 15, 5, 6))
        row, column, below, behind = (ops.Iota(x.builder, shape, dim) for dim in range(4))
        places = [ops.Reshape(place, [12, 15, 5, 6, 1]) for place in (row * np.int32(2) + below, column + behind)]
        numbers = GatherDimensionNumbers((), (0, 1), (0, 1), 4)
        return ops.Gather(x, ops.ConcatInDim(x.builder, places, 4), numbers, [1, 1])

    check_native(patches, np.random.default_rng(0).normal(size=(27, 20)).astype(np.float32))


@pytest.mark.parametrize("is_shared", [False, True], ids=["a chain", "each sum of the two before"])
def test_places_that_many_sums_lead_to(*, is_shared: bool) -> None:
    """Each is looked at once, and not all are: followed as often as ways lead to them, or by recursion, they would take
    for ever, or more calls than Python allows."""
    lines, last, before = [], "i", "i"
    for number in range(400):
        lines.append(f"s{number} = s32[512,1] {'add' if is_shared or number % 2 else 'subtract'}({last}, {before})")
        last, before = f"s{number}", last if is_shared else before
    text = f"""ENTRY e {{
      x = f32[4096] parameter(0)
      i = s32[512,1] iota(), iota_dimension=0
      {" ".join(lines)}
      ROOT g = f32[512] gather(x, {last}), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
        index_vector_dim=1, slice_sizes={{1}}
    }}"""
    x = np.arange(4096, dtype=np.float32)
    unchanged = xlapy.CompileOptions(disabled_passes=frozenset({"algebra", "fold-constants"}))
    np.testing.assert_array_equal(xlapy.compile(text, unchanged)(x), xlapy.evaluate(text, x))


def test_windows_are_loaded_as_vectors() -> None:
    code = check_native(PLACES["windows"], np.zeros(231, np.float32)).llvm_ir()
    assert "gather" not in code.split("define i32 @xlapy.entry")[0].replace("kernel.0.gather", "")
