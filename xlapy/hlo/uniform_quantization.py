"""Uniform quantization: integers in storage that stand for floats, `(integer - zero point) * scale`.

Arrays of the graph have no quantized types. These are the two formulas of StableHLO's specification in terms of HLO,
for whoever adds instructions: the builder's functions, and the import of quantized programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from xlapy.hlo.element_types import S32, S64, ElementType
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.support.records import Record


class UniformQuantization(Record):
    """How floats are stored. Scales are values of the expressed type; without a dimension there is one of them, and one
    zero point, else one of each for every slice along the dimension."""

    storage_type: ElementType
    storage_min: int
    storage_max: int
    expressed_type: ElementType
    dimension: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


class _Value(Protocol):
    """An instruction, or a handle of one."""

    @property
    def shape(self) -> Shape: ...


Value = TypeVar("Value", bound=_Value)


class Adder(Protocol[Value]):
    """Adds an instruction to a graph."""

    def __call__(self, opcode: str, *operands: Value, shape: Shape | None = None, **attributes: Any) -> Value: ...


def dequantized(add: Adder[Value], stored: Value, type: UniformQuantization) -> Value:
    """(stored - zero point) * scale, as floats of the expressed type; the difference in integers too wide to wrap."""
    wide = _wide_type(type)
    integers = add("convert", stored, shape=stored.shape.with_type(wide))
    steps = add("subtract", integers, _parameters(add, type.zero_points, type, integers.shape))
    floats = add("convert", steps, shape=steps.shape.with_type(type.expressed_type))
    return add("multiply", floats, _parameters(add, type.scales, type, floats.shape))


def quantized(add: Adder[Value], floats: Value, type: UniformQuantization) -> Value:
    """clamp(storage min, round_nearest_even(floats / scale) + zero point, storage max), stored as integers.

    The sum could wrap, so the zero point is added behind the clamp, to the bounds of which it is subtracted. Infinite
    and huge floats saturate in the conversion, NaN counts as zero."""
    scaled = add("divide", floats, _parameters(add, type.scales, type, floats.shape))
    rounded = add("round-nearest-even", scaled)
    steps = add("convert", rounded, shape=rounded.shape.with_type(_wide_type(type)))
    low = _parameters(add, [type.storage_min - zero for zero in type.zero_points], type, steps.shape)
    high = _parameters(add, [type.storage_max - zero for zero in type.zero_points], type, steps.shape)
    clamped = add("clamp", low, steps, high)
    integers = add("add", clamped, _parameters(add, type.zero_points, type, clamped.shape))
    return add("convert", integers, shape=integers.shape.with_type(type.storage_type))


def _wide_type(type: UniformQuantization) -> ElementType:
    """Integers that hold every difference of two stored ones."""
    return S32 if type.storage_type.bits < S32.bits else S64


def _parameters(add: Adder[Value], values: Sequence[float], type: UniformQuantization, like: Shape) -> Value:
    """Scales or zero points in the shape that they are combined with: each in its slice, if there are several."""
    dimensions = () if type.dimension is None or len(set(values)) == 1 else (type.dimension,)
    given = np.array(values if dimensions else values[0])
    constant = add("constant", literal=Literal(given.astype(like.type.dtype)))
    return constant if like.is_scalar else add("broadcast", constant, shape=like, dimensions=dimensions)
