"""Quantized types: integers in storage that stand for floats, `(integer - zero point) * scale`.

    !quant.uniform<i8:f32, 0.1:-30>                           one scale and zero point for a whole tensor
    !quant.uniform<i8<-127:127>:f32:1, {0.1:-30, 0.2}>        one pair for each slice along dimension 1

A tensor of such a type is a `QuantizedShape`: the shape of its storage, with the type beside it. These exist in the
tree of a text only. The graph sees `storage_shape`, and arithmetic that `convert/quantized.py` spells out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xlapy.hlo.element_types import ElementType, element_type_named, is_element_type_name
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.uniform_quantization import UniformQuantization
from xlapy.stablehlo.spellings import ELEMENT_TYPES, SPELLING
from xlapy.support.errors import ParseError, ShapeError, UnsupportedError
from xlapy.support.records import Record
from xlapy.support.wording import excerpt


class QuantizedType(UniformQuantization):
    """A quantized element type."""

    @property
    def is_per_axis(self) -> bool:
        return self.dimension is not None

    def baseline(self) -> QuantizedType:
        """What is left of the type when scales and zero points may differ."""
        return replace(self, scales=(), zero_points=())

    def along(self, dimension: int | None) -> QuantizedType:
        """The same type for another dimension."""
        return replace(self, dimension=dimension)

    def __str__(self) -> str:
        storage = _storage_text(self.storage_type)
        bounds = (self.storage_min, self.storage_max)
        bounds_text = "" if bounds == self.storage_type.integer_range else f"<{bounds[0]}:{bounds[1]}>"
        pairs = zip(self.scales, self.zero_points, strict=True)
        parameters = [_scale_text(scale, self.expressed_type) + (f":{zero}" if zero else "") for scale, zero in pairs]
        head = f"{storage}{bounds_text}:{SPELLING[self.expressed_type]}"
        if self.dimension is None:
            return f"!quant.uniform<{head}, {', '.join(parameters)}>"
        return f"!quant.uniform<{head}:{self.dimension}, {{{', '.join(parameters)}}}>"


@dataclass(frozen=True, slots=True, repr=False)
class QuantizedShape(Shape):
    """A tensor of a quantized type, in the shape of its storage. Never equal to a shape of the graph."""

    quantization: QuantizedType | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        stored = (self.element_type, self.dims, self.dynamic, self.layout, self.elements)
        return QuantizedShape, (*stored, self.quantization)

    @property
    def quantized(self) -> QuantizedType:
        assert self.quantization is not None, "made by `quantized_shape` alone"
        return self.quantization


class QuantizedConstant(Record):
    """A constant as the text gives it: integers of the storage type, and the quantized type that they have."""

    literal: Literal
    shape: QuantizedShape


# -- types of tensors --------------------------------------------------------------------------------------------------


def quantized_shape(type: QuantizedType, storage: Shape) -> QuantizedShape:
    """A tensor of `type`, stored as `storage`. Raises ShapeError if the axis does not have one scale for each slice."""
    axis = type.dimension
    if axis is not None:
        if axis >= storage.rank:
            raise ShapeError("quantized_tensor.C12", f"quantization dimension {axis} is outside rank {storage.rank}")
        if not storage.is_dynamic_dim(axis) and storage.dims[axis] != len(type.scales):
            message = f"dimension {axis} has size {storage.dims[axis]}, but {len(type.scales)} scales are given"
            raise ShapeError("quantized_tensor.C13", message)
    return QuantizedShape(storage.element_type, storage.dims, storage.dynamic, quantization=type)


def scalar_of(shape: Shape) -> Shape:
    """The type of one element: what a region that folds elements works on."""
    scalar = Shape.scalar(shape.type)
    return quantized_shape(shape.quantized, scalar) if isinstance(shape, QuantizedShape) else scalar


def is_quantized(shape: Shape) -> bool:
    """Some tensor in a type is quantized."""
    return isinstance(shape, QuantizedShape) or (shape.is_tuple and any(map(is_quantized, shape.parts)))


def storage_shape(shape: Shape) -> Shape:
    """The type that the graph has for a value: that of the storage."""
    if isinstance(shape, QuantizedShape):
        return Shape(shape.element_type, shape.dims, shape.dynamic)
    if shape.is_tuple and is_quantized(shape):
        return Shape.tuple([storage_shape(part) for part in shape.parts])
    return shape


def expressed_shape(shape: Shape) -> Shape:
    """The type of the floats that a tensor stands for: its own, if it is not quantized."""
    return (
        storage_shape(shape).with_type(shape.quantized.expressed_type) if isinstance(shape, QuantizedShape) else shape
    )


def element_of(shape: Shape) -> QuantizedType | ElementType | None:
    """The element type of a tensor, quantized or not; tuples and tokens have none."""
    return shape.quantized if isinstance(shape, QuantizedShape) else shape.element_type


def baseline_of(shape: Shape) -> QuantizedType | ElementType | None:
    """The element type without scales and zero points."""
    element = element_of(shape)
    return element.baseline() if isinstance(element, QuantizedType) else element


def is_promotable(narrow: Shape, wide: Shape) -> bool:
    """Values of `narrow` may be folded as values of `wide`: the same kind, the same floats, and no fewer bits."""
    if isinstance(narrow, QuantizedShape) and isinstance(wide, QuantizedShape):
        same = narrow.quantized.expressed_type is wide.quantized.expressed_type
        return same and narrow.type.bits <= wide.type.bits
    if (
        isinstance(narrow, QuantizedShape)
        or isinstance(wide, QuantizedShape)
        or not (narrow.is_array and wide.is_array)
    ):
        return narrow == wide
    kinds = ["integer" if shape.type.is_integer else shape.type.kind for shape in (narrow, wide)]
    return kinds[0] == kinds[1] and narrow.type.bits <= wide.type.bits


def sizes_around(dims: Dims, dimension: int) -> tuple[int, int, int]:
    """How many elements lie before, at and behind a dimension: what a reshape must keep of the quantized one."""
    return int(np.prod(dims[:dimension])), dims[dimension], int(np.prod(dims[dimension + 1 :]))


# -- text --------------------------------------------------------------------------------------------------------------

_UNIFORM = re.compile(
    r"""
    !quant\.uniform \s*+ < \s*+
    (?P<storage> \w++ ) \s*+
    (?: < \s*+ (?P<min> [-+]?\w++ ) \s*+ : \s*+ (?P<max> [-+]?\w++ ) \s*+ > \s*+ )?+
    : \s*+ (?P<expressed> \w++ ) \s*+
    (?: : \s*+ (?P<dimension> [-+]?[0-9]++ ) \s*+ )?+
    , \s*+ (?: \{ (?P<list> [^{}]*+ ) \} | (?P<single> [^{},<>]*+ ) ) \s*+ >
    """,
    re.VERBOSE,
)
_STORAGE = re.compile(r"(?:si|i)(?P<signed>[0-9]{1,2})|ui?(?P<unsigned>[0-9]{1,2})")
_INTEGER = re.compile(r"[-+]?(?:[0-9]+|0x[0-9A-Fa-f]+)")
_DECIMAL = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_SUB_CHANNELS = re.compile(r"!quant\.uniform\s*<[^,]*:\s*\{")
_MAX_DIGITS = 40


def quantized_type(text: str) -> QuantizedType:
    """The type that `!quant.uniform<...>` spells. Raises XlaErrors without a place."""
    match = _UNIFORM.fullmatch(text)
    if match is None:
        if _SUB_CHANNELS.match(text) or not text.startswith("!quant.uniform"):
            raise UnsupportedError(f"{excerpt(text)}: only uniform types, per tensor or per axis, are supported")
        raise ParseError(f"{excerpt(text)} is not a quantized type, like !quant.uniform<i8:f32, 0.1:-30>")
    storage, expressed = _storage_type(match["storage"]), _expressed_type(match["expressed"])
    dimension = None if match["dimension"] is None else _integer(match["dimension"])
    written = match["single"] if match["list"] is None else match["list"]
    pairs = [_parameter(word, expressed) for word in written.split(",")]
    low, high = storage.integer_range
    type = QuantizedType(
        storage,
        low if match["min"] is None else _integer(match["min"]),
        high if match["max"] is None else _integer(match["max"]),
        expressed,
        dimension,
        tuple(scale for scale, _ in pairs),
        tuple(zero_point for _, zero_point in pairs),
    )
    _check(type)
    return type


def _check(type: QuantizedType) -> None:
    """Raises ShapeError if the type breaks a constraint. (C10 holds by the grammar, C2, C5 and C9 by reading.)"""
    storage, expressed = type.storage_type, type.expressed_type
    low, high = storage.integer_range
    names = f"{_storage_text(storage)} and {SPELLING[expressed]}"
    if storage.bits >= expressed.bits:
        raise _broken("C1", f"the storage type must have fewer bits than the expressed type, but they are {names}")
    if not low <= type.storage_min < type.storage_max <= high:
        bounds = f"{type.storage_min}:{type.storage_max}"
        raise _broken("C4", f"the bounds {bounds} are not ascending within {low}:{high}")
    if not all(scale > 0 for scale in type.scales if not np.isnan(scale)):
        raise _broken("C6", f"a scale is not positive in {SPELLING[expressed]}")
    if not np.isfinite(type.scales).all():
        raise _broken("C7", f"a scale is not finite in {SPELLING[expressed]}")
    outside = [zero for zero in type.zero_points if not type.storage_min <= zero <= type.storage_max]
    if outside:
        raise _broken("C8", f"zero point {outside[0]} is outside {type.storage_min}:{type.storage_max}")
    if type.dimension is None and len(type.scales) != 1:
        raise _broken("C11", f"{len(type.scales)} scales are given, but no quantization dimension")
    if type.dimension is not None and type.dimension < 0:
        raise _broken("C12", f"quantization dimension {type.dimension} is negative")


def _broken(label: str, message: str) -> ShapeError:
    return ShapeError(f"quantized_type.{label}", message)


def _storage_type(word: str) -> ElementType:
    match = _STORAGE.fullmatch(word)
    name = "" if match is None else f"s{match['signed']}" if match["signed"] else f"u{match['unsigned']}"
    if not is_element_type_name(name):
        raise ParseError(f"{excerpt(word)!r} is not a storage type: it is an integer type, like i8 or u8")
    return element_type_named(name)


def _expressed_type(word: str) -> ElementType:
    found = ELEMENT_TYPES.get(word)
    if found is None or not found.is_float:
        raise ParseError(f"{excerpt(word)!r} is not an expressed type: it is a float type, like f32")
    return found


def _parameter(text: str, expressed: ElementType) -> tuple[float, int]:
    """A scale, rounded to the expressed type, and a zero point, which is zero where it is left out."""
    scale, colon, zero_point = text.partition(":")
    return _scale(scale.strip(), expressed), _integer(zero_point.strip()) if colon else 0


def _scale(word: str, expressed: ElementType) -> float:
    digits = word.removeprefix("0x")
    if digits != word and len(digits) == expressed.bits // 4 and _INTEGER.fullmatch(word):
        bits = int(word, 16).to_bytes(expressed.bytes, "little")
        return float(np.frombuffer(bits, expressed.dtype.newbyteorder("<"))[0])
    if not _DECIMAL.fullmatch(word):
        raise ParseError(f"expected a scale, like 0.1, found {excerpt(word)!r}")
    with np.errstate(over="ignore", under="ignore"):
        return float(np.array(float(word), np.float64).astype(expressed.dtype))


def _integer(word: str) -> int:
    if len(word) > _MAX_DIGITS or not _INTEGER.fullmatch(word):
        raise ParseError(f"expected an integer, found {excerpt(word)!r}")
    return int(word, 16 if "x" in word else 10)


def _storage_text(storage: ElementType) -> str:
    return ("i" if storage.is_signed else "u") + str(storage.bits)


def _scale_text(scale: float, expressed: ElementType) -> str:
    """The shortest decimal that reads back as the same scale."""
    decimal = str(np.float32(scale)) if expressed.bits == 32 else repr(scale)
    mantissa, exponent, power = decimal.partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + exponent + power


def types_text(types: Sequence[QuantizedType | ElementType | None]) -> str:
    """Element types in a message."""
    return " and ".join(SPELLING[each] if isinstance(each, ElementType) else str(each) for each in types)
