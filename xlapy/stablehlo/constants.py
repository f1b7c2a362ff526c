"""Constants of StableHLO text: `dense<[[1, 2], [3, 4]]>`, splats, hexadecimal strings and bits; read and spelled.

Errors are raised without a place, which the parser knows.
"""

from __future__ import annotations

import binascii
import math
import re
from typing import Any, TypeAlias

import numpy as np

from xlapy.hlo.element_types import ElementType, real_part_type
from xlapy.hlo.literal import Literal
from xlapy.hlo.rounding import rounded
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.lexer import HEX_CLOSING, HEX_OPENING
from xlapy.stablehlo.types import type_text
from xlapy.support.errors import ParseError
from xlapy.support.wording import excerpt

Array: TypeAlias = np.ndarray[Any, Any]

_NUMBERS = re.compile(r"[-+0-9.eE,\s\[\]]*")
_JUXTAPOSED = re.compile(r"[^\s,\[(]\s*[\[(]|[\])]\s*[^\s,\])]")
_ELEMENT = re.compile(r"true|false|[-+]?0[xX][0-9A-Fa-f]+|[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")


def dense_literal(token: str, shape: Shape) -> Literal:
    """The literal that `dense<...>` means for `shape`. Raises ParseError when they do not fit."""
    if not shape.is_array or shape.dynamic:
        raise ParseError(f"a constant cannot have type {type_text(shape)}")
    if token.startswith(HEX_OPENING) and token.endswith(HEX_CLOSING):
        return _from_bytes(_bytes_of(token, len(HEX_OPENING), len(token) - len(HEX_CLOSING)), shape)
    body = token[len("dense<") : -1].strip()
    if body.startswith('"'):
        return _from_bytes(_hex_bytes(body.strip('"')), shape)
    splat = not body.startswith("[") and body != ""
    array = _elements(body, shape.type, () if splat else shape.dims)
    return Literal(_frozen(array), shape)


def scalar_literal(value: bool | int | float, shape: Shape) -> Literal:
    """The literal of one number. Raises ParseError where it does not fit the type."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return Literal(_elements(text, shape.type, ()), shape)


def resource_literal(blob: str, shape: Shape) -> Literal:
    """The literal of a resource: hexadecimal digits, of which the first four bytes tell the alignment."""
    return _from_bytes(_hex_bytes(blob)[4:], shape)


def _hex_bytes(digits: str) -> memoryview:
    if not digits.startswith("0x"):
        raise ParseError('expected hexadecimal digits, like "0x0000803F"')
    return _bytes_of(digits, 2, len(digits))


_PIECE = 1 << 16
"""Digits that are read at a time: those of a constant may be megabytes, a copy of which is memory that the system has
to bring first."""


def _bytes_of(text: str, begin: int, end: int) -> memoryview:
    """The bytes that part of a text has the hexadecimal digits of."""
    found = memoryview(bytearray(max(end - begin, 0) // 2))
    try:
        for start in range(begin, end, _PIECE):
            piece = binascii.unhexlify(text[start : min(start + _PIECE, end)])
            first = (start - begin) // 2
            found[first : first + len(piece)] = piece
    except ValueError:
        raise ParseError("expected an even number of hexadecimal digits") from None
    return found.toreadonly()


def _from_bytes(data: memoryview, shape: Shape) -> Literal:
    """Elements from little-endian memory: all of them, or one for all. Booleans may be packed, eight to a byte."""
    element_type = shape.type
    if element_type.bits == 1 and len(data) != shape.size and len(data) == -(-shape.size // 8):
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return Literal(_frozen(bits[: shape.size].astype(np.bool_).reshape(shape.dims)), shape)
    if len(data) not in (shape.size * element_type.bytes, element_type.bytes):
        raise ParseError(f"{len(data)} bytes are given, but {type_text(shape)} takes {shape.size * element_type.bytes}")
    if element_type.bits == 1:
        array = np.frombuffer(data, np.uint8) != 0
    else:
        array = np.frombuffer(data, element_type.dtype.newbyteorder("<")).astype(element_type.dtype, copy=False)
    if len(data) == element_type.bytes and shape.size != 1:
        return Literal(array[0], shape)
    return Literal(_frozen(array.reshape(shape.dims)), shape)


def _elements(body: str, element_type: ElementType, dims: tuple[int, ...]) -> Array:
    """The nested list `body` as an array of exactly `dims`; complex numbers are pairs, as if of one more dimension."""
    if element_type.is_complex:
        pairs = body.replace("(", "[").replace(")", "]")
        parts = _elements(pairs, real_part_type(element_type), (*dims, 2))
        return np.ascontiguousarray(parts).view(element_type.dtype).reshape(dims)
    if not math.prod(dims):
        if body.strip("[], \n\t"):
            raise ParseError(f"elements are given, but the dimensions {list(dims)} have none")
        return np.zeros(dims, element_type.dtype)
    if dims:
        _check_nesting(body, dims)
    words = body.replace("[", " ").replace("]", " ").split(",") if dims else [body]
    if len(words) != math.prod(dims):
        raise ParseError(f"{len(words)} elements are given for the dimensions {list(dims)}")
    numeric = _NUMBERS.fullmatch(body) is not None and element_type.bits > 1
    return (_decimal if numeric else _mixed)(words, element_type).reshape(dims)


_IS_BRACKET_OR_COMMA = np.zeros(256, bool)
_IS_BRACKET_OR_COMMA[list(b"[],")] = True


def _check_nesting(body: str, dims: tuple[int, ...]) -> None:
    """Raises unless the brackets of `body` enclose, at each depth, as many entries as the dimension has."""
    if _JUXTAPOSED.search(body):
        raise ParseError("expected a comma between the elements of a constant")
    characters = np.frombuffer(body.encode("utf-8", "replace"), np.uint8)
    brackets = _IS_BRACKET_OR_COMMA[characters].nonzero()[0]
    marks = characters[brackets]
    opening, closing = marks == ord("["), marks == ord("]")
    depth = np.cumsum(opening.astype(np.int64) - closing)
    if len(depth) and (depth[-1] != 0 or depth.min() < 0 or depth.max() > len(dims)):
        raise ParseError(f"the brackets of a constant do not nest as its {len(dims)} dimensions do")
    if not len(depth):
        raise ParseError("expected a list of elements")
    commas = marks == ord(",")
    if (commas & (depth == 0)).any():
        raise ParseError("expected one constant, found several")
    for level, size in enumerate(dims, start=1):
        separators = np.cumsum(commas & (depth == level))
        ends = separators[closing & (depth == level - 1)]
        counts = np.diff(ends, prepend=0) + 1
        if len(ends) != math.prod(dims[: level - 1]) or (counts != size).any():
            raise ParseError(f"dimension {level - 1} of a constant has size {size}, but its list has another length")


def _decimal(words: list[str], element_type: ElementType) -> Array:
    """Numbers in decimal, all at once."""
    number, dtype = (int, np.int64) if element_type.is_integer else (float, np.float64)
    try:
        values = np.fromiter(map(number, words), dtype, len(words))
    except OverflowError:
        return _mixed(words, element_type)
    except ValueError:
        wrong = next((word for word in words if not _is_decimal(word, element_type)), words[0])
        raise _wrong_element(wrong, element_type) from None
    return _wrapped(values, element_type) if element_type.is_integer else rounded(values, element_type)


def _is_decimal(word: str, element_type: ElementType) -> bool:
    word = word.strip()
    return word.lstrip("+-").isdecimal() if element_type.is_integer else _ELEMENT.fullmatch(word) is not None


def _mixed(words: list[str], element_type: ElementType) -> Array:
    """Element by element: booleans, bits of floats, integers beyond 64 bits with sign."""
    values = [_element(word.strip(), element_type) for word in words]
    if element_type.is_float:
        return _float_array(values, element_type)
    if element_type.bits == 1:
        return np.array(values, np.bool_)
    return _wrapped(np.array(values, object), element_type)


def _element(word: str, element_type: ElementType) -> bool | int | float | bytes:
    """One element; the bits of a float, given in hexadecimal, are returned as bytes."""
    if not _ELEMENT.fullmatch(word):
        raise _wrong_element(word, element_type)
    if word in ("true", "false"):
        if element_type.bits != 1:
            raise _wrong_element(word, element_type)
        return word == "true"
    hexadecimal = word.lstrip("+-")[:2] in ("0x", "0X")
    if not element_type.is_float:
        if not hexadecimal and not word.lstrip("+-").isdecimal():
            raise _wrong_element(word, element_type)
        if len(word) > _MAX_INTEGER_DIGITS:
            raise _wrong_element(word, element_type)
        return _integer(int(word, 16 if hexadecimal else 10), element_type)
    if hexadecimal:
        bits = int(word, 16)
        if bits >> element_type.bits or word[0] == "-":
            raise _wrong_element(word, element_type)
        return bits.to_bytes(element_type.bytes, "little")
    return float(word)


_MAX_INTEGER_DIGITS = 40


def _integer(number: int, element_type: ElementType) -> bool | int:
    """A number of any size, or a boolean: signless text has two ways to say that its one bit is set."""
    if element_type.bits > 1:
        return number
    if number not in (-1, 0, 1):
        raise ParseError(f"{number} does not fit in an element of type {element_type}")
    return number != 0


def _float_array(values: list[Any], element_type: ElementType) -> Array:
    decimals = [0.0 if isinstance(value, bytes) else value for value in values]
    array = rounded(np.array(decimals, np.float64), element_type)
    for position, value in enumerate(values):
        if isinstance(value, bytes):
            array[position] = np.frombuffer(value, element_type.dtype.newbyteorder("<"))[0]
    return array


def _wrapped(values: Array, element_type: ElementType) -> Array:
    """Integers in `element_type`. Signless text may give the bits of a negative number as a positive one."""
    low = element_type.integer_range[0]
    outside = [value for value in (values.min(), values.max()) if not low <= value < 1 << element_type.bits]
    if outside:
        raise ParseError(f"{outside[0]} does not fit in an element of type {element_type}")
    unsigned = (values & ((1 << 64) - 1)).astype(np.uint64) if values.dtype == object else values
    return unsigned.astype(np.int64 if element_type.is_signed else np.uint64).astype(element_type.dtype)


def _wrong_element(word: str, element_type: ElementType) -> ParseError:
    shown = excerpt(word.strip())
    return ParseError(f"expected an element of type {element_type}, found {shown!r}")


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


HEXADECIMAL_FROM = 64
"""Constants of more elements are written as hexadecimal strings, which read back fastest and bit for bit."""


def dense_text(literal: Literal) -> str:
    """`dense<...>` for a literal, exact to the bit."""
    shape = literal.shape
    if not shape.size:
        return "dense<>"
    if literal.is_splat:
        return f"dense<{_element_text(literal.scalar(), shape.type)}>"
    if shape.size > HEXADECIMAL_FROM and shape.type.bits >= 8:
        array = np.ascontiguousarray(literal.array)
        return f'dense<"0x{array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes().hex().upper()}">'
    return f"dense<{_nested_text(literal.array, shape.type)}>"


def _nested_text(array: Array, element_type: ElementType) -> str:
    """The elements in brackets, dimension by dimension from the last, so that no depth of nesting matters."""
    texts = [_element_text(element, element_type) for element in array.reshape(-1)]
    for size in reversed(array.shape):
        texts = ["[" + ", ".join(texts[start : start + size]) + "]" for start in range(0, len(texts), size)]
    return texts[0]


def _element_text(element: Any, element_type: ElementType) -> str:
    if element_type.is_complex:
        part = real_part_type(element_type)
        return f"({_element_text(element.real, part)},{_element_text(element.imag, part)})"
    if element_type.bits == 1:
        return "true" if element else "false"
    if element_type.is_integer:
        return str(int(element))
    value = float(element)
    if math.isfinite(value):
        decimal = str(np.float32(element)) if element_type.bits == 32 else repr(value)
        mantissa, exponent, power = decimal.partition("e")
        return mantissa + ("" if "." in mantissa else ".0") + exponent + power
    bits = int.from_bytes(np.asarray(element).tobytes(), "little")
    return f"0x{bits:0{element_type.bits // 4}X}"
