"""Shapes whose properties are methods: `shape.dimensions()`, `shape.tuple_shapes()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy.hlo import shape as hlo_shape
from xlapy.hlo.proto import shape_from_proto, shape_to_proto, signature_from_proto, signature_to_proto
from xlapy.hlo.proto.messages import ProgramShapeProto, ShapeProto
from xlapy.hlo.text.lexer import Lexer
from xlapy.hlo.text.shapes import parse_shape
from xlapy.support.errors import ArgumentError, UnsupportedError
from xlapy.support.protobuf import decode, encode
from xlapy.support.source import Source
from xlapy.xla_client.types import PrimitiveType, primitive_type_of
from xlapy.xla_client.wrapping import Wrapper


class Layout(Wrapper):
    """The order of the dimensions in memory, minor to major."""

    __slots__ = ("_layout",)

    def __init__(self, minor_to_major: Sequence[int]) -> None:
        self._layout = hlo_shape.Layout(tuple(minor_to_major))

    def unwrapped(self) -> hlo_shape.Layout:
        return self._layout

    def minor_to_major(self) -> tuple[int, ...]:
        return self._layout.minor_to_major

    def tiling(self) -> list[Any]:
        """No tiles: they are for accelerators."""
        return []

    def element_size_in_bits(self) -> int:
        """0: the size that the element type has anyway."""
        return 0

    def to_string(self) -> str:
        return str(self._layout)

    def _xla_layout(self) -> Layout:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._layout == other._layout

    def __hash__(self) -> int:
        return hash(self._layout)

    __repr__ = to_string


PjRtLayout = Layout
"""What newer releases call the layouts of executables."""


class ShapeIndex(tuple[int, ...]):
    """Where a leaf stands in a nested tuple: positions from the outside in."""

    __slots__ = ()


class Shape(Wrapper):
    """The type of a value: `Shape("f32[2,3]{1,0}")`, or one of the static methods. Arrays are row-major by default.

    `Shape(bytes)` reads a serialized ShapeProto."""

    __slots__ = ("_shape",)

    def __init__(self, text: str | bytes | hlo_shape.Shape) -> None:
        if isinstance(text, bytes):
            shape = shape_from_proto(decode(ShapeProto, text))
        else:
            shape = text if isinstance(text, hlo_shape.Shape) else _parsed(text)
        self._shape = _without_row_major(shape)

    @staticmethod
    def array_shape(
        type: Any,
        dims: Sequence[int] = (),
        layout: Sequence[int] | None = None,
        dynamic_dimensions: Sequence[bool] | None = None,
    ) -> Shape:
        """An array of a PrimitiveType or numpy dtype; `layout` is minor to major."""
        element_type = primitive_type_of(type).element_type
        return Shape(hlo_shape.Shape.array(element_type, dims, dynamic_dimensions or (), layout))

    @staticmethod
    def scalar_shape(type: Any) -> Shape:
        return Shape.array_shape(type)

    @staticmethod
    def tuple_shape(shapes: Sequence[Shape]) -> Shape:
        return Shape(hlo_shape.Shape.tuple([shape.unwrapped() for shape in shapes]))

    @staticmethod
    def token_shape() -> Shape:
        return Shape(hlo_shape.TOKEN)

    def unwrapped(self) -> hlo_shape.Shape:
        return self._shape

    def dimensions(self) -> tuple[int, ...]:
        return self._array("dimensions").dims

    def rank(self) -> int:
        return self._array("rank").rank

    def xla_element_type(self) -> PrimitiveType:
        if self._shape.is_tuple:
            return PrimitiveType.TUPLE
        return PrimitiveType.TOKEN if self._shape.is_token else primitive_type_of(self._shape.type)

    def element_type(self) -> np.dtype[Any]:
        """The numpy dtype: what the old interface returned under this name."""
        return self._array("element_type").type.dtype

    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy dtype; that of objects for a tuple."""
        return np.dtype(np.object_) if self._shape.is_tuple else self._array("numpy_dtype").type.dtype

    def is_tuple(self) -> bool:
        return self._shape.is_tuple

    def is_array(self) -> bool:
        return self._shape.is_array

    def is_token(self) -> bool:
        return self._shape.is_token

    def is_static(self) -> bool:
        return self._shape.is_static

    def is_dynamic(self) -> bool:
        return not self._shape.is_static

    def is_dynamic_dimension(self, dimension: int) -> bool:
        return self._array("is_dynamic_dimension").is_dynamic_dim(dimension)

    def set_dynamic_dimension(self, dimension: int, is_dynamic: bool) -> None:
        """Makes the size of a dimension a bound, or exact."""
        shape = self._array("set_dynamic_dimension")
        self._shape = shape.with_dim(dimension, shape.dims[dimension], dynamic=is_dynamic).with_layout(shape.layout)

    def tuple_shapes(self) -> list[Shape]:
        if not self._shape.is_tuple:
            raise ArgumentError(f"{self} is not a tuple, and has no tuple_shapes()")
        return [Shape(part) for part in self._shape.parts]

    def leaf_count(self) -> int:
        return len(list(self._shape.leaves()))

    def layout(self) -> Layout:
        return Layout(self._array("layout").minor_to_major)

    def with_major_to_minor_layout_if_absent(self) -> Shape:
        """This shape: it has a layout from the start."""
        return Shape(self._shape)

    def to_serialized_proto(self) -> bytes:
        """The bytes of a ShapeProto."""
        return encode(shape_to_proto(self._shape))

    serialize_as_string = to_serialized_proto

    def _array(self, method: str) -> hlo_shape.Shape:
        if not self._shape.is_array:
            raise ArgumentError(f"{self} is not an array, and has no {method}()")
        return self._shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self._shape == other._shape

    def __hash__(self) -> int:
        return hash(self._shape)

    def __repr__(self) -> str:
        return self._shape.with_default_layout().to_text(layouts=True)


def _without_row_major(shape: hlo_shape.Shape) -> hlo_shape.Shape:
    """The shape in xlapy's manner, where an array that states no layout is row-major."""
    if shape.is_tuple:
        return hlo_shape.Shape.tuple([_without_row_major(part) for part in shape.parts])
    return shape.with_layout(None) if shape.layout is not None and shape.layout.is_row_major else shape


def _parsed(text: str) -> hlo_shape.Shape:
    lexer = Lexer(Source(text))
    shape = parse_shape(lexer)
    if not lexer.at_end:
        raise ArgumentError(f"{text!r} is a shape, {shape}, and then something else")
    return shape


class ProgramShape:
    """The parameters and the result of a computation."""

    __slots__ = ("_names", "_parameters", "_result")

    def __init__(
        self, parameter_shapes: Sequence[Shape], result_shape: Shape, parameter_names: Sequence[str] = ()
    ) -> None:
        self._parameters = list(parameter_shapes)
        self._result = result_shape
        self._names = list(parameter_names)

    def parameter_shapes(self) -> list[Shape]:
        return self._parameters

    def result_shape(self) -> Shape:
        return self._result

    def to_serialized_proto(self) -> bytes:
        """The bytes of a ProgramShapeProto."""
        signature = hlo_shape.Signature(
            tuple(shape.unwrapped() for shape in self._parameters), self._result.unwrapped()
        )
        return encode(signature_to_proto(signature, self._names))

    @staticmethod
    def from_serialized_proto(serialized: bytes) -> ProgramShape:
        """The program shape in the bytes of a ProgramShapeProto; raises ParseError where there is none."""
        proto = decode(ProgramShapeProto, serialized)
        signature = signature_from_proto(proto)
        return ProgramShape(list(map(Shape, signature.parameters)), Shape(signature.result), proto.parameter_names)

    serialize_as_string = to_serialized_proto

    def __eq__(self, other: object) -> bool:
        """Whether the shapes are equal; names do not count."""
        return isinstance(other, ProgramShape) and (
            self._parameters == other._parameters and self._result == other._result
        )

    def __hash__(self) -> int:
        return hash((*self._parameters, self._result))

    def __repr__(self) -> str:
        names = [*self._names, *["parameter"] * (len(self._parameters) - len(self._names))]
        texts = [shape.unwrapped().to_text() for shape in self._parameters]
        inputs = ", ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=False))
        return f"({inputs}) -> {self._result.unwrapped().to_text()}"


def shape_from_pyval(value: Any, layout: Sequence[int] | None = None) -> Shape:
    """The shape of an array, or of a (nested) tuple of arrays. Python's own numbers have no dtype, hence no shape."""
    if isinstance(value, tuple):
        if layout is not None:
            raise UnsupportedError("shape_from_pyval takes no layout for a tuple")
        return Shape.tuple_shape([shape_from_pyval(element) for element in value])
    if not hasattr(value, "dtype"):
        raise ArgumentError(f"{value!r} has no dtype; np.array({value!r}, dtype) has")
    return Shape.array_shape(value.dtype, value.shape, layout)
