"""Sums of products: dot and convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers, Precision, Window, WindowDimension
from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array, convert, element_type, narrow, wide_dtype, widen
from xlapy.hlo.evaluate.shapes import grown
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
    """Matrix products, accumulated in the widest of the types involved, or in that of a result which is no float.

    Sums begin with 0, and so are never -0, which numpy's libraries return for some of complex numbers."""
    if result.type.is_integer or result.type.kind == "pred":
        left, right = convert(left, result.type), convert(right, result.type)
    dtype = np.result_type(wide_dtype(element_type(left)), wide_dtype(element_type(right)), wide_dtype(result.type))
    with np.errstate(all="ignore"):
        product = np.matmul(widen(left).astype(dtype, copy=False), widen(right).astype(dtype, copy=False))
        return np.asarray(product + dtype.type(0))


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
    lhs, rhs = _common_features(lhs, rhs, numbers, feature_group_count)
    inputs = _grouped_inputs(lhs, numbers, feature_group_count, batch_group_count)
    kernel = _grouped_kernel(rhs, numbers, feature_group_count * batch_group_count)
    places = [part.size for part in window.dimensions]
    total = _summed_over_places(inputs, grown(kernel, [*places, *kernel.shape[len(places) :]]), window, result)
    groups, batch, *counts, outputs = total.shape
    merged = np.moveaxis(total, 0, -2).reshape([batch, *counts, groups * outputs])
    order = [0] * lhs.ndim
    order[numbers.output_feature] = lhs.ndim - 1
    for spatial, dim in enumerate(numbers.output_spatial):
        order[dim] = spatial + 1
    return narrow(merged.transpose(order), result.type)


def _summed_over_places(inputs: Array, kernel: Array, window: Window, result: Shape) -> Array:
    """(group, batch, position ..., output feature) of inputs (group, batch, spatial ..., feature) and a kernel
    (place ..., group, feature, output feature)."""
    groups, batch, *sizes, features = inputs.shape
    outputs = kernel.shape[-1]
    counts = [part.positions(size) for part, size in zip(window.dimensions, sizes, strict=True)]
    dtype = sum_of_products(np.zeros((1, 1), inputs.dtype), np.zeros((1, 1), kernel.dtype), result).dtype
    total = np.zeros([groups, batch, *counts, outputs], dtype)
    for place in itertools.product(*(range(part.size) for part in window.dimensions)):
        touched = [_touched(*one) for one in zip(window.dimensions, place, sizes, counts, strict=True)]
        under = inputs[(slice(None), slice(None), *(elements for _, elements in touched))]
        sums = total[(slice(None), slice(None), *(positions for positions, _ in touched))]
        rows = under.reshape([groups, math.prod(under.shape[1:-1]), features])
        with np.errstate(all="ignore"):
            sums += sum_of_products(rows, kernel[place], result).reshape(sums.shape)
    return total


def _common_features(lhs: Array, rhs: Array, numbers: ConvolutionDimensionNumbers, groups: int) -> tuple[Array, Array]:
    """Cuts both sides to the input features that a group of either has."""
    own, count = lhs.shape[numbers.input_feature] // groups, rhs.shape[numbers.kernel_input_feature]
    common = min(own, count)
    taken = [group * own + feature for group in range(groups) for feature in range(common)]
    return np.take(lhs, taken, numbers.input_feature), _cut(rhs, numbers.kernel_input_feature, common)


def _grouped_inputs(lhs: Array, numbers: ConvolutionDimensionNumbers, feature_groups: int, batch_groups: int) -> Array:
    """The left side as (group, batch, spatial ..., feature)."""
    inputs = lhs.transpose([numbers.input_batch, *numbers.input_spatial, numbers.input_feature])
    batch, *sizes, features = inputs.shape
    if batch_groups > 1:
        whole = inputs[: batch // batch_groups * batch_groups]
        return whole.reshape([batch_groups, batch // batch_groups, *sizes, features])
    split = inputs.reshape([batch, *sizes, feature_groups, features // feature_groups])
    return np.moveaxis(split, -2, 0)


def _grouped_kernel(rhs: Array, numbers: ConvolutionDimensionNumbers, groups: int) -> Array:
    """The right side as (spatial ..., group, input feature, output feature)."""
    kernel = rhs.transpose([*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature])
    *sizes, features, outputs = kernel.shape
    kernel = kernel[..., : outputs // groups * groups]
    return kernel.reshape([*sizes, features, groups, outputs // groups]).swapaxes(-3, -2)


def _touched(part: WindowDimension, place: int, size: int, count: int) -> tuple[slice, slice]:
    """The positions at which a place of the window lies on an element, and the elements."""
    if part.reversal:
        place = part.size - 1 - place
    positions = np.arange(count)
    dilated = positions * part.stride - part.padding_low + place * part.window_dilation
    elements = dilated // part.base_dilation
    valid = (dilated % part.base_dilation == 0) & (elements >= 0) & (elements < size)
    return _progression(positions[valid]), _progression(elements[valid])


def _progression(numbers: Array) -> slice:
    """Ascending numbers that are as far apart everywhere."""
    if not numbers.size:
        return slice(0, 0)
    return slice(int(numbers[0]), int(numbers[-1]) + 1, int(numbers[1] - numbers[0]) if numbers.size > 1 else 1)
