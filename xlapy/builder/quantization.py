"""Uniform quantization: floats as small integers, `(integer - zero point) * scale`.

Arrays of the graph have no quantized types: these functions record StableHLO's formulas on integers and floats
(`hlo/uniform_quantization.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.builder.arguments import as_int
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.element_types import element_type_of
from xlapy.hlo.shape import Shape
from xlapy.hlo.uniform_quantization import Adder, UniformQuantization, dequantized, quantized
from xlapy.support.errors import ArgumentError, ShapeError
from xlapy.support.records import replaced


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

    There is one scale and zero point, or a list of them for the slices along `quantization_dimension`. The result has
    the dimensions of the operand. Infinities saturate, NaN counts as 0.
    Raises ShapeError if the storage is not narrower than the floats (quantized_type.C1), or if a scale, a zero point,
    the range or the dimension does not fit (UniformQuantize.scales, .zero-points, .range, .dimension, .count)."""
    shape, stored = require_array(operand), element_type_of(storage_type)
    least, most = stored.integer_range if stored.is_integer else (0, 0)
    low = least if storage_min is None else as_int(storage_min, "storage_min")
    high = most if storage_max is None else as_int(storage_max, "storage_max")
    made = UniformQuantization(stored, low, high, shape.type, None, (), ())
    type = _with_parameters(made, shape, scales, zero_points, quantization_dimension)
    return quantized(_adder(operand.builder), operand, type)


@op_function()
def UniformDequantize(
    operand: XlaOp,
    expressed_type: Any,
    scales: Any,
    zero_points: Any = 0,
    quantization_dimension: int | None = None,
) -> XlaOp:
    """What stored integers stand for: (operand - zero point) * scale, as floats of `expressed_type`.

    The result has the dimensions of the operand. Scales and zero points are as those of UniformQuantize, and so are the
    errors."""
    shape, expressed = require_array(operand), element_type_of(expressed_type)
    least, most = shape.type.integer_range if shape.type.is_integer else (0, 0)
    made = UniformQuantization(shape.type, least, most, expressed, None, (), ())
    type = _with_parameters(made, shape, scales, zero_points, quantization_dimension)
    return dequantized(_adder(operand.builder), operand, type)


def _adder(builder: XlaBuilder) -> Adder[XlaOp]:
    def add(opcode: str, *operands: XlaOp, shape: Shape | None = None, **attributes: Any) -> XlaOp:
        return builder.record(opcode, operands, shape=shape, **attributes)

    return add


def _with_parameters(
    type: UniformQuantization, shape: Shape, scales: Any, zero_points: Any, dimension: int | None
) -> UniformQuantization:
    """The type with scales and zero points for an array of a shape, checked like the rest of it."""
    stored, expressed, low, high = type.storage_type, type.expressed_type, type.storage_min, type.storage_max
    if not stored.is_integer or not expressed.is_float or stored.bits >= expressed.bits:
        raise ShapeError("quantized_type.C1", f"{stored} does not store {expressed}: it takes narrower integers")
    least, most = stored.integer_range
    if not least <= low <= high <= most:
        raise ShapeError("UniformQuantize.range", f"{low} to {high} is no range of {stored}")
    try:
        factors, zeros = np.asarray(scales, np.float64), np.asarray(zero_points)
    except (TypeError, ValueError):
        raise ArgumentError("scales and zero_points are numbers, or lists of numbers") from None
    if zeros.dtype.kind not in "iu":
        raise ArgumentError(f"zero points are integers, not {zeros.dtype}")
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ShapeError("UniformQuantize.scales", "a scale is not positive, or not finite")
    if ((zeros < low) | (zeros > high)).any():
        raise ShapeError("UniformQuantize.zero-points", f"a zero point is outside {low} to {high}")
    axis = None if dimension is None else as_int(dimension, "quantization_dimension")
    if axis is not None and not 0 <= axis < shape.rank:
        raise ShapeError("UniformQuantize.dimension", f"dimension {axis} is outside {shape}")
    sizes = () if axis is None else (shape.dims[axis],)
    if any(given.shape not in ((), sizes) for given in (factors, zeros)):
        raise ShapeError("UniformQuantize.count", f"scales and zero points are single ones, or lists of {list(sizes)}")
    factor_of, zero_of = (tuple(np.broadcast_to(given, sizes).ravel().tolist()) for given in (factors, zeros))
    return replaced(type, dimension=axis, scales=factor_of, zero_points=zero_of)
