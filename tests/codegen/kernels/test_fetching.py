"""Large operands are fetched ahead of their use: it must not show but in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.native import assert_same_bits, check_native, record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.target import host_target

LARGE = (3, 311, -(-host_target().l2_bytes // (3 * 311 * 4)) + 5)
"""Dimensions of an array of f32 that is larger than the second-level cache."""


def largest(x: XlaOp, *dimensions: int) -> XlaOp:
    return ops.Reduce(x, -np.inf, ops.Max, dimensions)


def every(x: XlaOp, step: int, start: int = 0, rows: int = 1) -> XlaOp:
    """Elements of rows, as many for each start."""
    *_, size = dims = x.shape.dims
    return ops.Slice(x, [0, 0, start], [*dims[:-1], size - size % step - step + 1 + start], [1, rows, step])


PROGRAMS: dict[str, Callable[[XlaOp], XlaOp]] = {
    "elementwise": lambda x: x + x * x,
    "slice": lambda x: ops.Slice(x * x, [1, 7, 1], [3, 300, 90], [1, 2, 1]),
    "rows reversed": lambda x: ops.Rev(x * x, [1]),
    "columns reversed": lambda x: ops.Rev(x * x, [2]),
    "all reversed": lambda x: ops.Rev(x, [0, 1, 2]) + x,
    "rows": lambda x: largest(ops.Floor(x), 2),
    "rows read twice": lambda x: ops.Sub(x, largest(x, 2), broadcast_dimensions=[0, 1]),
    "columns": lambda x: largest(ops.Floor(x), 0),
    "middle": lambda x: largest(ops.Floor(x), 1),
    "columns of rows": lambda x: largest(ops.Floor(x), 0, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name: str) -> None:
    x = np.random.default_rng(0).normal(size=LARGE).astype(np.float32)
    executable = check_native(PROGRAMS[name], x)
    only_reads_along = name == "rows"
    is_fetched = host_target().asks_ahead or not only_reads_along
    assert ("call void @llvm.prefetch" in executable.llvm_ir()) == is_fetched


@pytest.mark.parametrize(
    ("program", "shapes", "disturbs"),
    [
        pytest.param(lambda x, y: x + y, [LARGE, LARGE], True, id="several arrays come by themselves"),
        pytest.param(lambda x, y: ops.Add(x, y, [2]), [LARGE, LARGE[2:]], False, id="only one is large"),
        pytest.param(lambda x, y: ops.Tanh(x) + y, [LARGE, LARGE], False, id="functions take a while"),
        pytest.param(lambda x: x + 1, [LARGE], False, id="one array"),
        pytest.param(lambda x: every(x, 3), [LARGE], True, id="every third element"),
        pytest.param(lambda x: every(x, 2) + 1, [LARGE], True, id="something of every second element"),
        pytest.param(lambda x: ops.Tanh(every(x, 2)), [LARGE], False, id="a function of every second element"),
        pytest.param(lambda x: every(x, 2) - every(x, 2, 1), [LARGE], False, id="both of two neighbours"),
        pytest.param(lambda x: every(x, 3, rows=2), [LARGE], False, id="of every second row"),
    ],
)
def test_loops_ask_where_that_does_not_disturb(
    program: Callable[..., XlaOp], shapes: list[tuple[int, ...]], disturbs: bool
) -> None:
    operands = [np.random.default_rng(n).normal(size=shape).astype(np.float32) for n, shape in enumerate(shapes)]
    module = record(program, *operands)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    tolerance = 4 * float(np.finfo(np.float32).eps)  # functions are within 2 ulp
    np.testing.assert_allclose(executable(*operands), xlapy.evaluate(module, *operands), tolerance, tolerance)
    target = host_target()
    is_fetched = not (disturbs and target.reads_side_by_side and not target.asks_ahead)
    assert ("call void @llvm.prefetch" in executable.llvm_ir()) == is_fetched


def test_small_operands_are_left_to_the_processor() -> None:
    executable = check_native(PROGRAMS["rows"], np.ones((3, 31, 64), np.float32))
    assert "call void @llvm.prefetch" not in executable.llvm_ir()


def picked_rows(type: str, dims: tuple[int, ...], taken: int, result: str = "") -> str:
    """Rows of a table at computed places, some of them outside."""
    size = ",".join(map(str, dims[1:]))
    offsets = ",".join(str(1 + dim) for dim in range(len(dims) - 1))
    return f"""HloModule m
      ENTRY main {{
        table = {type}[{dims[0]},{size}] parameter(0)
        numbers = s32[{taken}] parameter(1)
        places = s32[{taken},1] reshape(numbers)
        ROOT rows = {type}[{taken},{size}] gather(table, places), offset_dims={{{offsets}}},
          collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{size}}}
      }}"""


def table_and_numbers(dims: tuple[int, ...], taken: int, dtype: Any) -> tuple[np.ndarray[Any, Any], ...]:
    random = np.random.default_rng(taken)
    table = random.integers(-100, 100, size=dims).astype(dtype)
    return table, random.integers(-3, dims[0] + 3, size=taken).astype(np.int32)


@pytest.mark.parametrize(
    ("type", "dtype", "row"),
    [("f32", np.float32, (128,)), ("f32", np.float32, (37,)), ("c64", np.complex64, (3, 11)), ("s8", np.int8, (1000,))],
)
def test_rows_of_a_table_are_fetched_by_their_numbers(type: str, dtype: Any, row: tuple[int, ...]) -> None:
    bytes = int(np.prod(row)) * np.dtype(dtype).itemsize
    dims = (host_target().l2_bytes // bytes + 7, *row)
    for taken in (0, 1, 5, 301):
        text = picked_rows(type, dims, taken)
        executable = xlapy.compile(text)
        arguments = table_and_numbers(dims, taken, dtype)
        assert_same_bits([executable(*arguments)], [xlapy.evaluate(text, *arguments)])
        if taken == 301:
            assert "call i64 @llvm.smin.i64" in executable.llvm_ir().partition("call void @llvm.prefetch")[0]


@pytest.mark.parametrize("row", [(16,), (40,), (2, 1), (1,), (1024,), (3000,)])
@pytest.mark.parametrize("order", [(1, 0), (2, 1, 0)])
def test_rows_in_another_order(row: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Whole rows, computed ones, and such that are added to others."""
    rows = host_target().l2_bytes // (4 * 7 * int(np.prod(row))) + 3
    x = np.random.default_rng(0).normal(size=(*(rows, 7, 1)[: len(order)], *row)).astype(np.float32)
    permutation = (*order, *range(len(order), x.ndim))
    check_native(lambda p: ops.Transpose(p, permutation), x)
    check_native(lambda p: -ops.Transpose(p * p, permutation) + np.float32(1), x)
