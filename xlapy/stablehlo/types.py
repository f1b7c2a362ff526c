"""Types of StableHLO text: `tensor<2x?xf32, #stablehlo.bounds<?, 3>>` and its kin, as HLO shapes, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from xlapy.hlo.element_types import ALL, ElementType, element_type_named, real_part_type
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ParseError, UnsupportedError


@dataclass(frozen=True, slots=True)
class FunctionType:
    """`(inputs) -> (results)`."""

    inputs: tuple[Shape, ...]
    results: tuple[Shape, ...]

    def __str__(self) -> str:
        inputs, results = (", ".join(map(type_text, types)) for types in (self.inputs, self.results))
        return f"({inputs}) -> ({results})"


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type that no value of ours has, as text: `none`, `!dialect.type<...>`."""

    text: str


Type: TypeAlias = Shape | ElementType | FunctionType | OtherType

_FLOAT_SPELLINGS = (
    "f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3 f8E4M3FN f8E4M3FNUZ f8E4M3B11FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU"
    " f16 bf16 f32 f64"
)


def _spellings() -> dict[ElementType, str]:
    """How StableHLO text spells each element type; integers are signless in MLIR when they are signed."""
    floats = {spelling.lower(): spelling for spelling in _FLOAT_SPELLINGS.split()}
    names: dict[ElementType, str] = {}
    for element_type in ALL:
        if element_type.kind == "pred":
            names[element_type] = "i1"
        elif element_type.is_integer:
            names[element_type] = ("i" if element_type.is_signed else "ui") + str(element_type.bits)
        elif element_type.is_complex:
            names[element_type] = f"complex<{real_part_type(element_type).name}>"
        else:
            names[element_type] = floats[element_type.name]
    return names


SPELLING = _spellings()
ELEMENT_TYPES = {spelling: element_type for element_type, spelling in SPELLING.items()} | {
    f"si{bits}": element_type_named(f"s{bits}") for bits in (2, 4, 8, 16, 32, 64)
}
ELEMENT_TYPES["index"] = element_type_named("s64")  # layouts and shapes of dynamic programs are lists of these

_TENSOR = re.compile(r"tensor<\s*((?:(?:[0-9]+|\?)\s*x\s*)*)([^,*]*?)\s*(?:,(.*))?>", re.DOTALL)
_BOUNDS = re.compile(r"\s*#(?:stablehlo|mhlo)\.(?:bounds<|type_extensions<\s*bounds\s*=\s*\[)([0-9?,\s]*)\]?>\s*")


def tensor_type(text: str) -> Shape:
    """The shape that a `tensor<...>` token spells. Raises XlaErrors without a place."""
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ParseError(f"{_shortened(text)} is not a tensor type of known rank, like tensor<2x3xf32>")
    dims_text, element_text, encoding = match.groups()
    element_type = ELEMENT_TYPES.get(element_text.replace(" ", ""))
    if element_type is None:
        if element_text.startswith("!quant"):
            raise UnsupportedError(f"{_shortened(text)}: quantized types are not supported")
        raise ParseError(f"{_shortened(text)}: there is no element type {_shortened(element_text)!r}")
    sizes = [size.strip() for size in dims_text.split("x")[:-1]]
    if any(len(size) > _MAX_DIGITS for size in sizes):
        raise ParseError(f"{_shortened(text)}: a dimension is too large")
    dims = [UNBOUNDED if size == "?" else int(size) for size in sizes]
    if not encoding:
        return Shape.array(element_type, dims)
    return _bounded(element_type, dims, encoding, text)


_MAX_DIGITS = 18  # of a size that fits in 64 bits


def _bounded(element_type: ElementType, dims: list[int], encoding: str, text: str) -> Shape:
    """The shape with the bounds of an encoding; an encoding that is not about bounds says nothing to us."""
    match = _BOUNDS.fullmatch(encoding)
    if match is None:
        return Shape.array(element_type, dims)
    bounds = [bound.strip() for bound in match[1].split(",")]
    if len(bounds) != len(dims):
        raise ParseError(f"{_shortened(text)} has {len(bounds)} bounds for {len(dims)} dimensions")
    if not all(bound == "?" or (bound.isdecimal() and len(bound) <= _MAX_DIGITS) for bound in bounds):
        raise ParseError(f"{_shortened(text)}: a bound is a number or `?`")
    bounded = [bound != "?" for bound in bounds]
    if any(flag and size != UNBOUNDED for flag, size in zip(bounded, dims, strict=True)):
        raise ParseError(f"{_shortened(text)} bounds a static dimension")
    sizes = [int(bound) if flag else size for flag, bound, size in zip(bounded, bounds, dims, strict=True)]
    return Shape.array(element_type, sizes, bounded)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


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
    return "tensor<" + "".join(size + "x" for size in sizes) + SPELLING[shape.type] + encoding + ">"
