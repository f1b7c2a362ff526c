"""Uniform quantization: floats as small integers, `(integer - zero point) * scale`.

Arrays of the graph have no quantized types: what these functions record are the formulas of StableHLO's specification
on integers and floats, as importing its quantized programs does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.builder.arguments import as_int
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.elementwise import Add, ConvertElementType, Div, Max, Min, Mul, RoundNearestEven, Sub
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import as_handle, record_literal
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.element_types import S32, S64, ElementType, element_type_of
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError


@op_function()
def UniformQuantize(
    operand: XlaOp,
    storage_type: Any,
    scales: Any,
    zero_points: Any = 0,
    quantization_dimension: int | None = None,
    storage_min: int | None = None,
    storage_max: int | None = None,
) -> XlaOp:
    """The integers nearest to operand / scale, ties to even, plus the zero point, clamped to the range of the storage.

    There is one scale and zero point, or a list of them for the slices along `quantization_dimension`."""
    builder, shape = as_handle(operand).builder, require_array(operand)
    stored = element_type_of(storage_type)
    _check_types(stored, shape.type)
    least, most = stored.integer_range
    low = least if storage_min is None else as_int(storage_min, "storage_min")
    high = most if storage_max is None else as_int(storage_max, "storage_max")
    if not least <= low <= high <= most:
        raise ShapeError("UniformQuantize.range", f"{low} to {high} is no range of {stored}")
    factors, zeros, places = _parameters(shape, scales, zero_points, quantization_dimension, (low, high))
    rounded = RoundNearestEven(Div(operand, _constant(builder, factors, shape.type), places))
    wide = _wide_type(stored)
    steps = ConvertElementType(rounded, wide)  # the zero point is added behind the clamp: before, the sum could wrap
    steps = Min(steps, _constant(builder, high - zeros, wide), places)
    steps = Max(steps, _constant(builder, low - zeros, wide), places)
    return ConvertElementType(Add(steps, _constant(builder, zeros, wide), places), stored)


@op_function()
def UniformDequantize(
    operand: XlaOp,
    expressed_type: Any,
    scales: Any,
    zero_points: Any = 0,
    quantization_dimension: int | None = None,
) -> XlaOp:
    """What stored integers stand for: (operand - zero point) * scale, as floats of `expressed_type`."""
    builder, shape = as_handle(operand).builder, require_array(operand)
    expressed = element_type_of(expressed_type)
    _check_types(shape.type, expressed)
    limits = shape.type.integer_range
    factors, zeros, places = _parameters(shape, scales, zero_points, quantization_dimension, limits)
    wide = _wide_type(shape.type)
    steps = Sub(ConvertElementType(operand, wide), _constant(builder, zeros, wide), places)
    return Mul(ConvertElementType(steps, expressed), _constant(builder, factors, expressed), places)


def _check_types(stored: ElementType, expressed: ElementType) -> None:
    if not stored.is_integer or not expressed.is_float or stored.bits >= expressed.bits:
        raise ShapeError("quantized_type.C1", f"{stored} does not store {expressed}: it takes narrower integers")


def _wide_type(stored: ElementType) -> ElementType:
    """Integers that hold every difference of two stored ones."""
    return S32 if stored.bits < S32.bits else S64


def _parameters(
    shape: Shape, scales: Any, zero_points: Any, dimension: int | None, limits: tuple[int, int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], tuple[int, ...]]:
    """Scales, zero points, and to which dimension of the operand theirs belongs."""
    try:
        factors, zeros = np.asarray(scales, np.float64), np.asarray(zero_points)
    except (TypeError, ValueError):
        raise ArgumentError("scales and zero_points are numbers, or lists of numbers") from None
    if zeros.dtype.kind not in "iu":
        raise ArgumentError(f"zero points are integers, not {zeros.dtype}")
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ShapeError("UniformQuantize.scales", "a scale is not positive, or not finite")
    if ((zeros < limits[0]) | (zeros > limits[1])).any():
        raise ShapeError("UniformQuantize.zero-points", f"a zero point is outside {limits[0]} to {limits[1]}")
    places: tuple[int, ...] = () if dimension is None else (as_int(dimension, "quantization_dimension"),)
    if any(not 0 <= axis < shape.rank for axis in places):
        raise ShapeError("UniformQuantize.dimension", f"dimension {places[0]} is outside {shape}")
    sizes = tuple(shape.dims[axis] for axis in places)
    if any(given.shape not in ((), sizes) for given in (factors, zeros)):
        raise ShapeError("UniformQuantize.count", f"scales and zero points are single ones, or lists of {list(sizes)}")
    return np.broadcast_to(factors, sizes), np.broadcast_to(zeros.astype(np.int64), sizes), places


def _constant(builder: XlaBuilder, values: np.ndarray[Any, Any], element_type: ElementType) -> XlaOp:
    return record_literal(builder, np.array(values).astype(element_type.dtype))
