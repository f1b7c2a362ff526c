"""Types of StableHLO text: `tensor<2x?xf32, #stablehlo.bounds<?, 3>>` and its kin, as HLO shapes, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from xlapy.hlo.element_types import ElementType
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.stablehlo.quantization import QuantizedShape, QuantizedType, quantized_shape, quantized_type
from xlapy.stablehlo.spellings import ELEMENT_TYPES, SPELLING
from xlapy.support.errors import ParseError
from xlapy.support.records import Record
from xlapy.support.wording import excerpt


class FunctionType(Record):
    """`(inputs) -> (results)`."""

    inputs: tuple[Shape, ...]
    results: tuple[Shape, ...]

    def __str__(self) -> str:
        inputs, results = (", ".join(map(type_text, types)) for types in (self.inputs, self.results))
        return f"({inputs}) -> ({results})"


class OtherType(Record):
    """A type that no value of ours has, as text: `none`, `!dialect.type<...>`."""

    text: str


Type: TypeAlias = Shape | ElementType | QuantizedType | FunctionType | OtherType

_TENSOR = re.compile(
    r"tensor<\s*((?:(?:[0-9]+|\?)\s*x\s*)*)(![\w.$-]++\s*+(?:<(?:[^<>]|<[^<>]*+>)*+>)?|[^,*!]*?)\s*(?:,(.*))?>",
    re.DOTALL,
)
_PLAIN = re.compile(r"tensor<((?:[0-9]{1,18}+x)*+)([a-z][A-Z0-9a-z]*+)>")
"""Static sizes and a simple element type, without spaces, as printers write them."""

_BOUNDS = re.compile(r"\s*#(?:stablehlo|mhlo)\.(?:bounds<|type_extensions<\s*bounds\s*=\s*\[)([^<>]*?)\]?>\s*")


def tensor_type(text: str, aliases: Mapping[str, Type] | None = None) -> Shape:
    """The shape that a `tensor<...>` token spells; an alias may name its element type.

    Raises XlaErrors without a place."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None and plain[2] in ELEMENT_TYPES:
        return Shape.array(ELEMENT_TYPES[plain[2]], [int(size) for size in plain[1].split("x")[:-1]])
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ParseError(f"{excerpt(text)} is not a tensor type of known rank, like tensor<2x3xf32>")
    dims_text, element_text, encoding = match.groups()
    element_type = _element_type(element_text, aliases or {})
    if element_type is None:
        raise ParseError(f"{excerpt(text)}: there is no element type {excerpt(element_text)!r}")
    sizes = [size.strip() for size in dims_text.split("x")[:-1]]
    if any(len(size) > _MAX_DIGITS for size in sizes):
        raise ParseError(f"{excerpt(text)}: a dimension is too large")
    dims = [UNBOUNDED if size == "?" else int(size) for size in sizes]
    stored = element_type.storage_type if isinstance(element_type, QuantizedType) else element_type
    shape = _bounded(stored, dims, encoding, text) if encoding else Shape.array(stored, dims)
    return quantized_shape(element_type, shape) if isinstance(element_type, QuantizedType) else shape


def _element_type(text: str, aliases: Mapping[str, Type]) -> ElementType | QuantizedType | None:
    if not text.startswith("!"):
        return ELEMENT_TYPES.get(text.replace(" ", ""))
    alias = aliases.get(text)
    if isinstance(alias, (ElementType, QuantizedType)):
        return alias
    return quantized_type(text) if text.startswith("!quant.") else None


_MAX_DIGITS = 18  # of a size that fits in 64 bits


def _bounded(element_type: ElementType, dims: list[int], encoding: str, text: str) -> Shape:
    """The shape with the bounds of an encoding; an encoding that is not about bounds says nothing to us."""
    match = _BOUNDS.fullmatch(encoding)
    if match is None:
        return Shape.array(element_type, dims)
    bounds = [bound.strip() for bound in match[1].split(",")] if dims or match[1].strip() else []
    if len(bounds) != len(dims):
        raise ParseError(f"{excerpt(text)} has {len(bounds)} bounds for {len(dims)} dimensions")
    if not all(bound == "?" or (bound.isdecimal() and len(bound) <= _MAX_DIGITS) for bound in bounds):
        raise ParseError(f"{excerpt(text)}: a bound is a number or `?`")
    bounded = [bound != "?" for bound in bounds]
    if any(flag and size != UNBOUNDED for flag, size in zip(bounded, dims, strict=True)):
        raise ParseError(f"{excerpt(text)} bounds a static dimension")
    sizes = [int(bound) if flag else size for flag, bound, size in zip(bounded, bounds, dims, strict=True)]
    return Shape.array(element_type, sizes, bounded)


def type_text(shape: Shape) -> str:
    """StableHLO's spelling of a shape. Layouts have none."""
    if shape.is_token:
        return "!stablehlo.token"
    if shape.is_tuple:
        return "tuple<" + ", ".join(type_text(part) for part in shape.parts) + ">"
    sizes, bounds = [], []
    for dim, size in enumerate(shape.dims):
        dynamic = shape.is_dynamic_dim(dim)
        sizes.append("?" if dynamic else str(size))
        bounds.append(str(size) if dynamic and size != UNBOUNDED else "?")
    encoding = f", #stablehlo.bounds<{', '.join(bounds)}>" if any(bound != "?" for bound in bounds) else ""
    element_text = str(shape.quantization) if isinstance(shape, QuantizedShape) else SPELLING[shape.type]
    return "tensor<" + "".join(size + "x" for size in sizes) + element_text + encoding + ">"
