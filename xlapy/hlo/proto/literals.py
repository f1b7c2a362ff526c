"""Literals as protocol buffers: the elements lie in the order of the shape's layout, in the field of their type."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.hlo.element_types import ElementType, real_part_type
from xlapy.hlo.literal import Literal
from xlapy.hlo.proto.messages import LiteralProto
from xlapy.hlo.proto.shapes import shape_from_proto, shape_to_proto
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ParseError

_NUMBER_TYPES = frozenset({"pred", "s32", "s64", "u32", "u64", "f32", "f64", "c64", "c128"})
"""Types whose elements are numbers to the format; those of the others are bytes."""


def literal_to_proto(literal: Literal, shape: Shape) -> LiteralProto:
    """The literal in the layout of `shape`, which is that of the constant."""
    proto = LiteralProto(shape_to_proto(shape))
    if literal.elements is not None:
        parts = zip(literal.elements, shape.parts, strict=True)
        proto.tuple_literals = [literal_to_proto(element, part) for element, part in parts]
    elif literal.array.size:
        major_to_minor = shape.minor_to_major[::-1]
        elements = np.ascontiguousarray(literal.array.transpose(major_to_minor).reshape(-1))
        setattr(proto, _field_of(shape.type), _stored(elements, shape.type))
    return proto


def literal_from_proto(proto: LiteralProto) -> Literal:
    """The literal; raises ParseError if there are fewer or more elements than its shape has."""
    if proto.shape is None:
        raise ParseError("a literal has no shape")
    return _literal(proto, shape_from_proto(proto.shape))


def _literal(proto: LiteralProto, shape: Shape) -> Literal:
    if shape.is_tuple:
        if len(proto.tuple_literals) != len(shape.parts):
            raise _wrong_count(len(proto.tuple_literals), shape)
        parts = zip(proto.tuple_literals, shape.parts, strict=True)
        return Literal(tuple(_literal(element, part) for element, part in parts))
    if not shape.is_array or not shape.is_static:
        raise ParseError(f"there are no literals of {shape}")
    flat = _read(getattr(proto, _field_of(shape.type)), shape)
    if flat.size != shape.size:
        raise _wrong_count(flat.size, shape)
    major_to_minor = shape.minor_to_major[::-1]
    array = flat.reshape([shape.dims[dim] for dim in major_to_minor])
    return Literal(array.transpose(np.argsort(major_to_minor)) if shape.layout is not None else array, shape)


def _field_of(element_type: ElementType) -> str:
    return f"{element_type.name}s"


def _stored(elements: np.ndarray[Any, Any], element_type: ElementType) -> Any:
    """What the field of an element type holds for these elements."""
    if element_type.name in _NUMBER_TYPES:
        return elements.view(real_part_type(element_type).dtype) if element_type.is_complex else elements
    words = elements.view(f"u{element_type.bytes}")
    if element_type.bits < 8:
        words = words & np.uint8((1 << element_type.bits) - 1)
    return words.astype(f"<u{element_type.bytes}", copy=False).tobytes()


def _read(stored: Any, shape: Shape) -> np.ndarray[Any, Any]:
    """The elements that the field of an array's type holds."""
    element_type = shape.type
    if element_type.name in _NUMBER_TYPES:
        if stored is None:
            return np.zeros(0, element_type.dtype)
        numbers = stored.astype(real_part_type(element_type).dtype)
        if element_type.is_complex and numbers.size % 2:
            raise _wrong_count(numbers.size / 2, shape)
        return np.asarray(numbers.view(element_type.dtype) if element_type.is_complex else numbers)
    if len(stored) % element_type.bytes:
        raise _wrong_count(len(stored) / element_type.bytes, shape)
    words = np.frombuffer(stored, f"<u{element_type.bytes}").astype(f"u{element_type.bytes}")
    if element_type.bits < 8:
        words = words & np.uint8((1 << element_type.bits) - 1)
        if element_type.is_signed:
            sign = 1 << (element_type.bits - 1)
            return ((words.astype(np.int8) ^ sign) - sign).astype(element_type.dtype)
    return words.view(element_type.dtype)


def _wrong_count(count: float, shape: Shape) -> ParseError:
    return ParseError(f"a literal of {shape} has {count:g} elements")
