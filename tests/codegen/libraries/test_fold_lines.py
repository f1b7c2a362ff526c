"""Folds of rows that begin in the middle of lines: the same bits as of rows that do not, and nothing else is read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.guarded_memory import GuardedRoom, read_only
from tests.support.native import record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.fold import FOLD_LIBRARIES
from xlapy.codegen.libraries.fold_lines import LEAST_BYTES
from xlapy.codegen.target import reference_target

FOLDS: dict[str, tuple[int, Callable[..., XlaOp]]] = {
    "sum": (1, lambda x: x.reduce(0, ops.Add, (1,))),
    "largest": (1, lambda x: ops.Reduce(x.builder, [x], [_lowest(x)], _maximum(x), (1,))),
    "product": (2, lambda x, y: (x * y).reduce(0, ops.Add, (1,))),
}


def _lowest(x: XlaOp) -> XlaOp:
    type = x.shape.type.dtype
    return ops.Constant(x.builder, np.array(-np.inf if type.kind == "f" else np.iinfo(type).min, type))


def _maximum(x: XlaOp) -> Any:
    region = xlapy.XlaBuilder("region")
    a, b = (ops.Parameter(region, n, xlapy.Shape.array(x.shape.type, ()), name) for n, name in enumerate("ab"))
    return region.build(ops.Max(a, b))


def _at(values: np.ndarray[Any, Any], offset: int) -> np.ndarray[Any, Any]:
    """A copy that begins so many bytes behind the beginning of a line."""
    room = np.empty(values.nbytes + 2 * CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE + offset
    copy: np.ndarray[Any, Any] = np.ndarray(values.shape, values.dtype, room, start)
    copy[...] = values
    return copy


@pytest.mark.parametrize("length", [LEAST_BYTES // 8 + 2, LEAST_BYTES // 4, 1003, 4096])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in ("sum", "largest") for dtype in (np.float32, np.float64, np.int32, np.uint64)]
    + [("product", np.float32), ("product", np.float64)],
)
def test_the_bits_are_the_same_wherever_an_array_begins(name: str, dtype: Any, length: int) -> None:
    count, build = FOLDS[name]
    random = np.random.default_rng(length)
    dims = (-(-(1 << 16) // length), length)
    arrays = [(random.random(dims) * 99).astype(dtype) for _ in range(count)]
    module = record(build, *arrays)
    executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=2))
    assert any(library.startswith("fold_rows") for library in executable._compiled.program.libraries)
    width = np.dtype(dtype).itemsize
    places = [(0, 0), (0, 16), (16, 0), (16, 16), (width, 64 - width), (32, 48)]
    results = [executable(*map(_at, arrays, offsets)) for offsets in places]
    np.testing.assert_allclose(results[0], xlapy.evaluate(module, *arrays), rtol=1e-4)
    assert len({result.tobytes() for result in results}) == 1


@pytest.mark.parametrize("columns", [128, 144, 512, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("count", [1, 2])
def test_sums_of_columns_are_the_same_wherever_an_array_begins(count: int, dtype: Any, columns: int) -> None:
    random = np.random.default_rng(columns)
    dims = (3, -(-(1 << 15) // columns), columns)
    arrays = [(random.random(dims) * 99).astype(dtype) for _ in range(count)]
    module = record(lambda *operands: functools.reduce(ops.Mul, operands).reduce(0, ops.Add, (1,)), *arrays)
    executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=2))
    called = [name for name in executable._compiled.program.libraries if name.startswith("fold_columns")]
    assert called or (count > 1 and np.dtype(dtype).kind != "f")
    found = [executable(*map(_at, arrays, offsets)) for offsets in [(0, 0), (16, 0), (0, 56), (8, 48)]]
    found += [executable(*(read_only(array, at_end=at_end) for array in arrays)) for at_end in (False, True)]
    np.testing.assert_allclose(found[0], xlapy.evaluate(module, *arrays), rtol=1e-4)
    assert len({result.tobytes() for result in found}) == 1


@pytest.mark.parametrize("length", [513, 1003, 1024])
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_beside_an_array_is_read(length: int, at_end: bool) -> None:
    rows = -(-(1 << 16) // length)
    x, y = np.random.default_rng(0).normal(size=(2, rows, length)).astype(np.float32)
    _, build = FOLDS["product"]
    executable = xlapy.compile(record(build, x, y))
    wanted = executable(x, y)
    np.testing.assert_array_equal(executable(read_only(x, at_end=at_end), _at(y, 16)), wanted)
    np.testing.assert_array_equal(executable(_at(x, 4), read_only(y, at_end=at_end)), wanted)
    room = GuardedRoom(x.nbytes)
    np.testing.assert_array_equal(executable(room.array(x, at_end=at_end), y), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_may_lie_across_lines(axis: int, dtype: Any) -> None:
    """As in arrays that somebody has found in the middle of a file."""
    x = (np.random.default_rng(0).random((64, 512)) * 99).astype(dtype)
    executable = xlapy.compile(record(lambda x: x.reduce(0, ops.Add, (axis,)), x))
    wanted = executable(_at(x, 0))
    for offset in (1, 2, 6, 38, 63):
        moved = _at(x, offset)
        assert not moved.flags.aligned
        assert executable(moved).tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("target", "is_by_lines"), [("avx512", True), ("avx2", False), ("neon", False)])
def test_lines_are_read_where_registers_are_as_long(target: str, is_by_lines: bool) -> None:
    for name, reads in (("fold_rows_add_f32", is_by_lines), ("fold_rows_add_bf16_f32", False)):
        text = FOLD_LIBRARIES[name].emit(reference_target(target)).text()
        assert ("vpermi2var" in text) is reads
    columns = FOLD_LIBRARIES["fold_columns_add_f64"].emit(reference_target(target)).text()
    assert ("vpermi2var" in columns) is is_by_lines
