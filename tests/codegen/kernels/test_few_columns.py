"""Folds of a few columns, of which several rows are folded as one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy import ops

DIMS = [(5000, 5), (3, 2048, 2), (4099, 3), (12, 40, 100, 7)]  # one has no rows to take together
FOLDED = [(0,), (1,), (0,), (1, 2)]
TYPES = [np.float32, np.float64, np.int32, np.uint8, np.float16, ml_dtypes.bfloat16, np.complex64]


def _folds(dtype: np.dtype[Any]) -> list[tuple[Any, int]]:
    """Those that the type has, and whose results are numbers, with initial values."""
    extrema = [] if dtype.kind == "c" else [(ops.Max, 1), (ops.Min, 1)]
    products = [(ops.Mul, 3)] if dtype.kind in "iu" else []
    return [(ops.Add, 0), *extrema, *products]


@pytest.mark.parametrize("dtype", TYPES)
def test_few_columns(dtype: Any) -> None:
    """From initial values that count, with NaNs and zeros of both signs in some columns."""
    random = np.random.default_rng(4)
    arrays = [random.integers(1, 4, dims).astype(dtype) for dims in DIMS]
    if dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        arrays[0][::7, 1], arrays[0][3777, 2] = -0.0, np.nan
        arrays[1][...] = np.where(arrays[1] > 2, 0.0, -0.0)
    b = xlapy.XlaBuilder("columns")
    results = []
    for number, (array, dims) in enumerate(zip(arrays, FOLDED, strict=True)):
        x = ops.Parameter(b, number, xlapy.Shape.of(array))
        for fold, start in _folds(np.dtype(dtype)):
            results.append(ops.Reduce(x, ops.Constant(b, np.asarray(start).astype(dtype)), fold, dims))
    module = b.build(ops.Tuple(b, results))
    tolerance = 1e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
    for one, other in zip(xlapy.compile(module)(*arrays), xlapy.evaluate(module, *arrays), strict=True):
        one, other = (np.asarray(array).astype(np.complex128) for array in (one, other))
        np.testing.assert_allclose(one, other, rtol=tolerance)
        np.testing.assert_array_equal(np.signbit(one.real), np.signbit(other.real))
