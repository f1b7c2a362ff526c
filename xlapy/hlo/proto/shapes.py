"""Shapes and signatures as protocol buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.element_types import ElementType, element_type_named
from xlapy.hlo.proto.messages import LayoutProto, ProgramShapeProto, ShapeProto
from xlapy.hlo.shape import TOKEN, UNBOUNDED, Layout, Shape, Signature
from xlapy.support.errors import ParseError, ShapeError

NUMBERS = {
    "pred": 1,
    "s2": 26,
    "s4": 21,
    "s8": 2,
    "s16": 3,
    "s32": 4,
    "s64": 5,
    "u2": 27,
    "u4": 22,
    "u8": 6,
    "u16": 7,
    "u32": 8,
    "u64": 9,
    "f4e2m1fn": 32,
    "f6e2m3fn": 36,
    "f6e3m2fn": 35,
    "f8e3m4": 29,
    "f8e4m3": 28,
    "f8e4m3fn": 20,
    "f8e4m3fnuz": 25,
    "f8e4m3b11fnuz": 23,
    "f8e5m2": 19,
    "f8e5m2fnuz": 24,
    "f8e8m0fnu": 33,
    "f16": 10,
    "bf16": 16,
    "f32": 11,
    "f64": 12,
    "c64": 15,
    "c128": 18,
}
"""XLA's numbers of the element types."""

TUPLE, OPAQUE, TOKEN_NUMBER = 13, 14, 17
_NAMES = {number: name for name, number in NUMBERS.items()}
_UNBOUNDED_SIZE = -(1 << 63)


def element_type_numbered(number: int) -> ElementType:
    """The element type with XLA's number; raises ParseError for a number that none has."""
    if number not in _NAMES:
        raise ParseError(f"{number} is the number of no element type")
    return element_type_named(_NAMES[number])


def shape_to_proto(shape: Shape) -> ShapeProto:
    """The shape, with a layout in every array."""
    if shape.is_tuple:
        return ShapeProto(TUPLE, tuple_shapes=[shape_to_proto(part) for part in shape.parts])
    if shape.is_token:
        return ShapeProto(TOKEN_NUMBER)
    sizes = [_UNBOUNDED_SIZE if size == UNBOUNDED else size for size in shape.dims]
    flags = list(shape.dynamic) or [False] * shape.rank
    layout = LayoutProto(list(shape.minor_to_major))
    return ShapeProto(NUMBERS[shape.type.name], sizes, layout=layout, is_dynamic_dimension=flags)


def shape_from_proto(proto: ShapeProto) -> Shape:
    """The shape; row-major layouts, which are the default, are left out. Tiles and memory spaces are not read."""
    if proto.element_type == TUPLE:
        return Shape.tuple([shape_from_proto(part) for part in proto.tuple_shapes])
    if proto.element_type == TOKEN_NUMBER:
        return TOKEN
    element_type = element_type_numbered(proto.element_type)
    sizes = [UNBOUNDED if size == _UNBOUNDED_SIZE else size for size in proto.dimensions]
    if any(size < 0 and raw >= _UNBOUNDED_SIZE + 1 for size, raw in zip(sizes, proto.dimensions, strict=True)):
        raise ParseError(f"a dimension of {sizes} is negative")
    flags = proto.is_dynamic_dimension or [False] * len(sizes)
    if len(flags) != len(sizes):
        raise ParseError(f"a shape of {len(sizes)} dimensions says of {len(flags)} whether they are dynamic")
    try:
        return Shape.array(element_type, sizes, flags, _layout(proto.layout))
    except ShapeError as error:
        raise ParseError(error.message) from None


def _layout(proto: LayoutProto | None) -> Layout | None:
    if proto is None:
        return None
    layout = Layout(tuple(proto.minor_to_major))
    return None if layout.is_row_major else layout


def signature_to_proto(signature: Signature, names: Sequence[str] = ()) -> ProgramShapeProto:
    """The message that says what a signature does, with the names of the parameters if they are given."""
    parameters = [shape_to_proto(parameter) for parameter in signature.parameters]
    return ProgramShapeProto(parameters, shape_to_proto(signature.result), list(names))


def signature_from_proto(proto: ProgramShapeProto) -> Signature:
    """The signature that a message describes; raises ParseError for one without a result."""
    if proto.result is None:
        raise ParseError("the shape of a program has no result")
    return Signature(tuple(map(shape_from_proto, proto.parameters)), shape_from_proto(proto.result))
