"""Sums of products: dot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import DotDimensionNumbers, Precision
from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array, convert, element_type, narrow, wide_dtype, widen
from xlapy.hlo.shape import Shape


@evaluator("dot")
def dot(
    lhs: Array,
    rhs: Array,
    *,
    dimension_numbers: DotDimensionNumbers,
    operand_precision: tuple[Precision, ...],
    algorithm: str,
    result: Shape,
) -> Array:
    numbers = dimension_numbers
    lhs, rhs = _common_sizes(lhs, rhs, numbers)
    lhs_free, rhs_free = numbers.lhs_free(lhs.ndim), numbers.rhs_free(rhs.ndim)
    left = _matrices(lhs, numbers.lhs_batch, lhs_free, numbers.lhs_contracting)
    right = _matrices(rhs, numbers.rhs_batch, numbers.rhs_contracting, rhs_free)
    sizes = [lhs.shape[dim] for dim in (*numbers.lhs_batch, *lhs_free)] + [rhs.shape[dim] for dim in rhs_free]
    product = sum_of_products(left, right, result)
    return narrow(product.reshape(sizes), result.type)


def sum_of_products(left: Array, right: Array, result: Shape) -> Array:
    """Matrix products, accumulated in the widest of the types involved."""
    if result.type.is_integer:
        left, right = convert(left, result.type), convert(right, result.type)
    dtype = np.result_type(wide_dtype(element_type(left)), wide_dtype(element_type(right)), wide_dtype(result.type))
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(widen(left).astype(dtype, copy=False), widen(right).astype(dtype, copy=False)))


def _matrices(array: Array, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Array:
    """The array as (batch, rows, columns)."""
    merged = [math.prod(array.shape[dim] for dim in dims) for dims in (batch, rows, columns)]
    return array.transpose([*batch, *rows, *columns]).reshape(merged)


def _common_sizes(lhs: Array, rhs: Array, numbers: DotDimensionNumbers) -> tuple[Array, Array]:
    """Cuts paired dimensions to their common run-time size: what lies beyond counts as zero."""
    pairs = [*zip(numbers.lhs_batch, numbers.rhs_batch, strict=True)]
    pairs += zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True)
    for lhs_dim, rhs_dim in pairs:
        size = min(lhs.shape[lhs_dim], rhs.shape[rhs_dim])
        lhs, rhs = _cut(lhs, lhs_dim, size), _cut(rhs, rhs_dim, size)
    return lhs, rhs


def _cut(array: Array, dim: int, size: int) -> Array:
    return array if array.shape[dim] == size else array[(slice(None),) * dim + (slice(size),)]
