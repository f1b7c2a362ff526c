"""Native eigenvalues and singular values, which are the evaluator's to the bit, in lanes and one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.e2e.test_linalg import NARROW, random
from tests.support.native import flatten, record, together
from xlapy import CompileOptions

Array = np.ndarray[Any, Any]

BATCHES = [((), 1, 1), ((9,), 1, 1), ((40,), 2, 2), ((37,), 3, 3), ((8,), 5, 5), ((9,), 16, 16), ((3,), 16, 16)]
LARGE = [((2, 2), 17, 17), ((), 20, 20)]
OBLONG = [((33,), 3, 5), ((16,), 5, 2), ((3,), 1, 7), ((8,), 16, 4), ((2,), 20, 3), ((2,), 3, 20)]
EMPTY = [((40,), 0, 0), ((0,), 3, 3)]


def eigenvalues(x: xlapy.XlaOp, flag: bool = True) -> xlapy.XlaOp:
    return x.builder.record("eigh", [x], lower=flag)


def singular_values(x: xlapy.XlaOp, flag: bool = True) -> xlapy.XlaOp:
    return x.builder.record("svd", [x], full_matrices=flag)


def difficult(dtype: Any, batch: tuple[int, ...], rows: int, columns: int) -> Array:
    """Of integers, of one value, near the ends of the range, with columns of all sizes, with NaN, in turns."""
    numbers = ml_dtypes.finfo(dtype)
    a = random((math.prod(batch), rows, columns), np.float64)
    for number, matrix in enumerate(a):
        kind = number % 7
        matrix *= {1: float(numbers.max) / 64, 2: float(numbers.smallest_subnormal) * 9}.get(kind, 1)
        if kind == 3:
            matrix[:] = np.round(matrix)
        elif kind == 4:
            matrix[:] = 1
        elif kind == 5:
            matrix *= 10.0 ** -np.arange(columns)
    if a.size and len(a) > 8:
        a[6, rows - 1 :, :1] = np.nan
    with np.errstate(over="ignore"):
        return a.astype(dtype).reshape(*batch, rows, columns)


Shapes = list[tuple[tuple[int, ...], int, int]]


def check_bits(build: Callable[[xlapy.XlaOp, bool], xlapy.XlaOp], shapes: Shapes, dtype: Any) -> None:
    """Of all shapes in one program, with a flag one way and the other in turns, which begin differently by type."""
    operands = [difficult(dtype, *shape) for shape in shapes]
    ways = [(number + np.dtype(dtype).itemsize // 4) % 2 == 0 for number in range(len(shapes))]
    modules = [record(partial(build, flag=flag), a) for flag, a in zip(ways, operands, strict=True)]
    module = together(modules)
    results = xlapy.compile(module, CompileOptions(num_threads=2))(*operands)
    expected = xlapy.evaluate(module, *operands)
    for shape, flag, found, wanted in zip(shapes, ways, results, expected, strict=True):
        for one, other in zip(flatten(found), flatten(wanted), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.astype(np.float64), other.astype(np.float64), f"{shape}, {flag}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *NARROW])
def test_eigenvalues_are_the_evaluator_s(dtype: Any) -> None:
    check_bits(eigenvalues, [*BATCHES, *LARGE, *EMPTY], dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *NARROW])
def test_singular_values_are_the_evaluator_s(dtype: Any) -> None:
    check_bits(singular_values, [*BATCHES, *LARGE, *OBLONG, *EMPTY, ((9,), 3, 0)], dtype)


@pytest.mark.parametrize(
    ("dims", "op", "rule"),
    [
        ("s32[2,2]", "eigh", "element-type"),
        ("c64[2,2]", "eigh", "element-type"),
        ("f32[2]", "eigh", "rank"),
        ("f32[2,3]", "eigh", "square"),
        ("c128[2,3]", "svd", "element-type"),
        ("f32[]", "svd", "rank"),
        ("f32[3,<=2]", "svd", "known-sizes"),
    ],
)
def test_what_cannot_be_taken_apart(dims: str, op: str, rule: str) -> None:
    with pytest.raises(xlapy.ShapeError, match=rf"\[{op}.{rule}\]"):
        xlapy.compile(f"HloModule m\nENTRY e {{ a = {dims} parameter(0)\n ROOT r = {op}(a) }}")


@pytest.mark.parametrize("build", [eigenvalues, singular_values])
def test_nothing_depends_on_the_matrices_beside_it(build: Any) -> None:
    a = random((64, 4, 4), np.float32)
    a = a + np.swapaxes(a, 1, 2)
    a[::3] = np.diag([1, -0.0, 0, -2])
    many = xlapy.compile(record(build, a))(a)
    one = xlapy.compile(record(build, a[:1]))
    for number in range(len(a)):
        for found, alone in zip(many, one(a[number : number + 1]), strict=True):
            assert found[number].tobytes() == alone[0].tobytes()
