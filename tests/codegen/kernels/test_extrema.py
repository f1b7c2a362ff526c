"""Extrema of columns, each lane one, and of rows: NaN of either sign wins, and -0 is less than 0."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.libraries.fold import FOLD_LIBRARIES
from xlapy.codegen.target import reference_target

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
SHAPES = [(5, 1), (1, 9), (37, 8), (6, 100), (3, 7, 257), (40, 1000), (9, 5000)]


def special(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(shape[-1])
    x = random.integers(-3, 4, size=shape).astype(np.float32)
    kind = random.integers(0, 12, size=shape[-1])  # of a column
    x = np.where(kind == 0, np.float32(-0.0), x)
    x = np.where(kind == 1, np.where(x > 0, np.float32(0.0), np.float32(-0.0)), x)
    x = np.where(kind == 2, -np.abs(x), x)
    x = np.where(kind == 3, np.where(x > 2, np.float32(np.nan), x), x)
    x = np.where(kind == 4, np.where(x < -2, np.copysign(np.float32(np.nan), np.float32(-1)), x), x)
    x = np.where(kind == 5, np.float32(-np.inf), x)
    x = np.where(kind == 6, np.where(x > 0, np.float32(np.inf), x), x)
    x = np.where(kind == 7, x * np.float32(1e-45), x)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_columns(opcode: str, dtype: Any) -> None:
    """From each of several initial values; the first dimension is folded, and all but the last one."""
    starts = [np.inf, -np.inf, 0.0, -0.0, np.nan]
    arrays = [special(shape, dtype) for shape in SHAPES]
    b = xlapy.XlaBuilder(opcode)
    results = []
    fold = ops.Max if opcode == "maximum" else ops.Min
    for number, array in enumerate(arrays):
        p = ops.Parameter(b, number, xlapy.Shape.of(array))
        for start in starts:
            init = ops.Constant(b, np.asarray(start).astype(dtype))
            results += [ops.Reduce(p, init, fold, dims) for dims in {(0,), tuple(range(array.ndim - 1))}]
    module = b.build(ops.Tuple(b, results))
    found, wanted = xlapy.compile(module)(*arrays), xlapy.evaluate(module, *arrays)
    for one, other in zip(found, wanted, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_rows(opcode: str, dtype: Any) -> None:
    """Of what lies in memory, and of what is made first; rows of whole vectors, some lanes more, or less than one."""
    fold = ops.Max if opcode == "maximum" else ops.Min
    for length in (3, 7, 16, 31, 32, 64, 100, 257, 1030):
        array = np.ascontiguousarray(special((length, 150), dtype).T)
        b = xlapy.XlaBuilder(opcode)
        p = ops.Parameter(b, 0, xlapy.Shape.of(array))
        starts = [ops.Constant(b, np.asarray(start).astype(dtype)) for start in (np.inf, -np.inf, -0.0, np.nan)]
        module = b.build(ops.Tuple(b, [ops.Reduce(x, start, fold, (1,)) for x in (p, p + p) for start in starts]))
        for one, other in zip(xlapy.compile(module)(array), xlapy.evaluate(module, array), strict=True):
            assert_same(one, other)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_short_rows(opcode: str, dtype: Any) -> None:
    """Which vectors go along, if nobody else needs them."""
    fold = ops.Max if opcode == "maximum" else ops.Min
    arrays = [np.ascontiguousarray(special((length, 150), dtype).T) for length in range(3, 10)]
    b = xlapy.XlaBuilder(opcode)
    init = ops.Constant(b, np.asarray(-0.0).astype(dtype))
    rows = [ops.Parameter(b, number, xlapy.Shape.of(array)) for number, array in enumerate(arrays)]
    module = b.build(ops.Tuple(b, [ops.Reduce(x, init, fold, (1,)) for x in rows]))
    for one, other in zip(xlapy.compile(module)(*arrays), xlapy.evaluate(module, *arrays), strict=True):
        assert_same(one, other)


def assert_same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """NaNs and zeros of either sign at the same places."""
    one, other = (np.asarray(array).astype(np.float64) for array in (found, expected))
    np.testing.assert_array_equal(one, other)
    numbers = ~np.isnan(other)
    np.testing.assert_array_equal(np.signbit(one[numbers]), np.signbit(other[numbers]))


@pytest.mark.parametrize(("target", "instruction"), [("avx512", "vrangep"), ("avx2", "vmaxp")])
def test_one_instruction_tells_zeros_apart(target: str, instruction: str) -> None:
    machine = reference_target(target)
    text = FOLD_LIBRARIES["fold_rows_maximum_f32"].emit(machine).text()
    assert instruction in emit_assembly(text, machine)
