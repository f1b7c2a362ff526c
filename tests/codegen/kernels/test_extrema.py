"""Extrema of columns, each lane one: NaN of either sign wins, and -0 is less than 0."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy import ops

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
        one, other = (np.asarray(array).astype(np.float64) for array in (one, other))
        np.testing.assert_array_equal(one, other)
        numbers = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one[numbers]), np.signbit(other[numbers]))
