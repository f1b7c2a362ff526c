"""Dots whose batches are the last dimension of both operands, with and without vectors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy.hlo.element_types import element_type_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("sizes", [(1, 5, 7), (3, 1, 7), (3, 5, 7), (16, 16, 7), (5, 3, 11), (20, 24, 9)])
@pytest.mark.parametrize("permutation", ["0,1,2", "1,2,0", "2,1,0"])
@pytest.mark.parametrize("batches", [37, 64])
def test_products_are_those_of_each_batch(
    dtype: Any, sizes: tuple[int, int, int], permutation: str, batches: int
) -> None:
    """Of integers, whose sums are exact; put anywhere."""
    (rows, columns, depth), kind = sizes, element_type_of(np.dtype(dtype)).name
    results = [batches, rows, columns]
    turned = ",".join(str(results[int(dim)]) for dim in permutation.split(","))
    text = f"""ENTRY main {{
      x = {kind}[{rows},{depth},{batches}] parameter(0)
      y = {kind}[{depth},{columns},{batches}] parameter(1)
      z = {kind}[{batches},{rows},{columns}] dot(x, y), lhs_batch_dims={{2}}, lhs_contracting_dims={{1}},
        rhs_batch_dims={{2}}, rhs_contracting_dims={{0}}
      ROOT t = {kind}[{turned}] transpose(z), dimensions={{{permutation}}} }}"""
    random = np.random.default_rng(rows)
    x, y = (random.integers(0, 5, dims).astype(dtype) for dims in ((rows, depth, batches), (depth, columns, batches)))
    wanted = np.einsum("ijb,jkb->bik", x.astype(np.float64), y.astype(np.float64))
    wanted = wanted.transpose([int(dim) for dim in permutation.split(",")]).astype(dtype)
    np.testing.assert_array_equal(xlapy.compile(text)(x, y), wanted)
