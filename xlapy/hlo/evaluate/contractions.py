"""Sums of products: dot and convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers, Precision, Window, WindowDimension
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


@evaluator("convolution")
def convolution(
    lhs: Array,
    rhs: Array,
    *,
    window: Window,
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[Precision, ...],
    result: Shape,
) -> Array:
    """One matrix product (batch and positions, input features) x (input features, output features) for each place of
    the window, added up where it lies on an element."""
    numbers = dimension_numbers
    groups = feature_group_count * batch_group_count
    inputs = lhs.transpose([numbers.input_batch, numbers.input_feature, *numbers.input_spatial])
    batch, features, *sizes = inputs.shape
    inputs = (
        inputs.reshape([batch, groups, features // groups, *sizes]).swapaxes(0, 1)
        if feature_group_count > 1
        else inputs.reshape([groups, batch // groups, features, *sizes])
    )
    inputs = np.moveaxis(inputs, 2, -1)  # group, batch, spatial..., feature
    kernel = rhs.transpose([*numbers.kernel_spatial, numbers.kernel_output_feature, numbers.kernel_input_feature])
    kernel = kernel.reshape([*kernel.shape[:-2], groups, kernel.shape[-2] // groups, kernel.shape[-1]])
    kernel = kernel.swapaxes(-1, -2)  # spatial..., group, input feature, output feature
    counts = [part.positions(size) for part, size in zip(window.dimensions, sizes, strict=True)]
    outer = [np.arange(size) for size in inputs.shape[:2]]
    total: Array | None = None
    for place in itertools.product(*(range(part.size) for part in window.dimensions)):
        touched = [_touched(*one) for one in zip(window.dimensions, place, sizes, counts, strict=True)]
        positions, elements = [one[0] for one in touched], [one[1] for one in touched]
        under = inputs[np.ix_(*outer, *elements, np.arange(inputs.shape[-1]))]
        product = sum_of_products(under.reshape([groups, -1, under.shape[-1]]), kernel[place], result)
        if total is None:
            total = np.zeros([*inputs.shape[:2], *counts, kernel.shape[-1]], product.dtype)
        with np.errstate(all="ignore"):
            where = np.ix_(*outer, *positions, np.arange(kernel.shape[-1]))
            total[where] += product.reshape(total[where].shape)
    if total is None:
        total = np.zeros([*inputs.shape[:2], *counts, kernel.shape[-1]], wide_dtype(result.type))
    merged = np.moveaxis(total, 0, -2).reshape(
        [inputs.shape[1], *counts, rhs.shape[numbers.kernel_output_feature]]
    )  # batch, spatial..., feature
    order = [0] * (len(counts) + 2)
    order[numbers.output_feature] = len(counts) + 1
    for spatial, dim in enumerate(numbers.output_spatial):
        order[dim] = spatial + 1
    return narrow(merged.transpose(order), result.type)


def _touched(part: WindowDimension, place: int, size: int, count: int) -> tuple[Array, Array]:
    """The positions at which a place of the window lies on an element, and the elements."""
    if part.reversal:
        place = part.size - 1 - place
    positions = np.arange(count)
    dilated = positions * part.stride - part.padding_low + place * part.window_dilation
    elements = dilated // part.base_dilation
    valid = (dilated % part.base_dilation == 0) & (elements >= 0) & (elements < size)
    return positions[valid], elements[valid]
