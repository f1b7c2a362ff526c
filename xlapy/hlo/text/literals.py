"""Literals in HLO text: `1.5`, `{ {1, 2}, {3, 4} }`, `(1, -2)` for complex numbers, `( 1, {2} )` for tuples.

Large arrays are read and written in bulk: the brackets are compared with those that the shape asks for, and the numbers
go through numpy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from xlapy.hlo.element_types import ElementType, real_part_type
from xlapy.hlo.literal import Literal
from xlapy.hlo.rounding import rounded
from xlapy.hlo.shape import Shape
from xlapy.hlo.text.lexer import Lexer
from xlapy.support.wording import counted, excerpt

_BODY = re.compile(r"(?:[^()]++|\([^()]*+\))*+(?=\))")
_PARENTHESIS = re.compile(r"[()]")
_COMMENT = re.compile(r"/\*(?s:.*?)\*/|//[^\n]*")
_PAYLOAD = re.compile(r"nan\(\s*0x([0-9a-fA-F]+)\s*\)")
_ELEMENT = re.compile(r"[^\s,{}()]+")
_BRACKET_OR_COMMA = re.compile(r"[{}(),]")
_BRACKETS = re.compile(r"[^{}(),]+")
_INTEGERS = re.compile(r"[-+0-9,\s]*+")
_FLOATS = re.compile(r"(?i:[-+0-9.eE,\s]|inf|nan(?::[0-9a-f]+)?)*+")

NEGATIVE_ZERO = "-0.0"  # XLA reads -0 as an integer, which has no sign
MAX_EMPTY_BRACKETS = 1000  # an empty array with more brackets is printed as {}
_PREDICATES = {"true": True, "false": False, "1": True, "0": False}
_EXACT_NAN = re.compile(r"([+-]?)nan(?::([0-9a-f]+))?", re.IGNORECASE)


# -- reading -------------------------------------------------------------------------------------------------------


def read_literal(lexer: Lexer, shape: Shape) -> Literal:
    """Reads a literal of `shape` up to the parenthesis that closes the instruction's operands."""
    start = lexer.position
    end = _body_end(lexer)
    literal = _Reader(lexer, start, end).literal(shape)
    lexer.position = end
    return literal


def _body_end(lexer: Lexer) -> int:
    match = _BODY.match(lexer.text, lexer.position)
    if match is not None:
        return match.end()
    depth = 0
    for parenthesis in _PARENTHESIS.finditer(lexer.text, lexer.position):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth < 0:
            return parenthesis.start()
    raise lexer.error("this literal is never closed")


class _Reader:
    """One literal: the text between `start` and `end`."""

    def __init__(self, lexer: Lexer, start: int, end: int) -> None:
        self._lexer = lexer
        self._start = start
        text = lexer.text[start:end]
        if "/" in text:
            text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
        if "..." in text:
            raise lexer.error("this constant is elided ({...}): its values were not printed", start + text.index("..."))
        self._text = text

    def literal(self, shape: Shape) -> Literal:
        if shape.is_array:
            return self._array(shape, 0, len(self._text))
        if shape.is_token:
            self._fail("a token has no literal", 0)
        return self._tuple(shape)

    def _tuple(self, shape: Shape) -> Literal:
        """Walks over the tuple's text once: arrays are the stretches between its parentheses and commas."""
        finished: list[list[Literal]] = []
        pending: list[tuple[Shape, ...]] = []
        position = self._open(0, shape)
        finished.append([])
        pending.append(shape.parts)
        while True:
            if len(finished[-1]) == len(pending[-1]):
                position = self._symbol(position, ")")
                literal = Literal(tuple(finished.pop()))
                pending.pop()
                if not finished:
                    self._end(position)
                    return literal
                finished[-1].append(literal)
                continue
            if finished[-1]:
                position = self._symbol(position, ",")
            element = pending[-1][len(finished[-1])]
            if element.is_tuple:
                position = self._open(position, element)
                finished.append([])
                pending.append(element.parts)
            elif element.is_token:
                self._fail("a token has no literal", position)
            else:
                end = self._array_end(position)
                finished[-1].append(self._array(element, position, end))
                position = end

    def _array_end(self, position: int) -> int:
        """The end of the array literal at `position`: the first comma or parenthesis outside brackets."""
        depth = 0
        for match in _BRACKET_OR_COMMA.finditer(self._text, position):
            if match[0] in "{(":
                depth += 1
            elif depth and match[0] in "})":
                depth -= 1
            elif not depth:
                return match.start()
        return self._fail("this literal is never closed", position)

    def _open(self, position: int, shape: Shape) -> int:
        return self._symbol(position, "(", f" to begin a literal of shape {shape}")

    def _symbol(self, position: int, symbol: str, context: str = "") -> int:
        stripped = self._skip(position)
        if not self._text.startswith(symbol, stripped):
            self._fail(f"expected {symbol!r}{context}", stripped)
        return stripped + 1

    def _end(self, position: int) -> None:
        rest = self._skip(position)
        if rest < len(self._text):
            self._fail("expected the literal to end", rest)

    def _skip(self, position: int) -> int:
        while position < len(self._text) and self._text[position].isspace():
            position += 1
        return position

    def _array(self, shape: Shape, start: int, end: int) -> Literal:
        if shape.is_unbounded:
            self._fail(f"a literal has as many elements as its shape says, and {shape} does not", start)
        text = self._text[start:end]
        if ":" in text:
            self._fail("expected a number", start + text.index(":"))
        if "(" in text and "nan" in text:
            text = _PAYLOAD.sub(lambda match: f"nan:{match[1]}".ljust(len(match[0])), text)
        brackets = _BRACKETS.sub("", text)
        if brackets != _skeleton(shape, len(brackets)) and (shape.size or brackets != "{}"):
            self._wrong_structure(shape, start)
        flat = text.translate(_DELETE_BRACKETS)
        parts = flat.split(",") if shape.size else []
        if not shape.size and flat.replace(",", "").strip():
            self._fail(f"a literal of shape {shape} has no elements", start)
        element_type = shape.type
        values = _parse_elements(element_type, flat, parts)
        if not isinstance(values, np.ndarray):
            index, problem = values
            self._fail(problem, start + self._element_offset(text, index))
        return Literal(values.reshape(shape.dims), shape.without_layout().static())

    def _wrong_structure(self, shape: Shape, start: int) -> NoReturn:
        values = counted(shape.size, "element")
        if shape.is_scalar:
            values = "(real, imaginary)" if shape.type.is_complex else "one number"
        self._fail(f"expected a literal of shape {shape.without_layout()}: {values}, in braces by dimension", start)

    def _element_offset(self, text: str, index: int) -> int:
        for number, match in enumerate(_ELEMENT.finditer(text)):
            if number == index:
                return match.start()
        return 0

    def _fail(self, message: str, position: int) -> NoReturn:
        raise self._lexer.error(message, self._start + self._skip(position))


_DELETE_BRACKETS = str.maketrans("", "", "{}()")


def _skeleton(shape: Shape, limit: int) -> str | None:
    """The brackets and commas of a literal of `shape`; None if they are more than `limit` characters."""
    text = "(,)" if shape.type.is_complex else ""
    # Behind a dimension of no elements no others are written.
    written = shape.dims[: shape.dims.index(0) + 1] if 0 in shape.dims else shape.dims
    for size in reversed(written):
        if size * (len(text) + 1) > limit + 1:
            return None
        text = "{" + ",".join([text] * size) + "}"
    return text


Problem = tuple[int, str]


def _parse_elements(element_type: ElementType, flat: str, parts: Sequence[str]) -> np.ndarray[Any, Any] | Problem:
    """The numbers of `flat` (which is `parts` joined by commas), or the index of a wrong one and what is wrong."""
    if element_type.kind == "pred":
        return _predicates(parts)
    if element_type.is_integer:
        return _integers(element_type, flat, parts)
    values = _floats(real_part_type(element_type), flat, parts)
    if element_type.is_complex and isinstance(values, np.ndarray):
        return values.view(element_type.dtype)
    return values


def _predicates(parts: Sequence[str]) -> np.ndarray[Any, Any] | Problem:
    try:
        return np.array([_PREDICATES[part.strip()] for part in parts], np.bool_)
    except KeyError:
        index = next(i for i, part in enumerate(parts) if part.strip() not in _PREDICATES)
        return index, f"{parts[index].strip()!r} is not a pred: expected true or false"


def _integers(element_type: ElementType, flat: str, parts: Sequence[str]) -> np.ndarray[Any, Any] | Problem:
    low, high = element_type.integer_range
    wide = np.int64 if high < 1 << 63 else np.uint64
    try:
        if not _INTEGERS.fullmatch(flat):
            raise ValueError
        values = np.array(list(map(int, parts)), wide)
        if not values.size or (values.min() >= low and values.max() <= high):
            return values.astype(element_type.dtype)
    except (ValueError, OverflowError):
        pass
    for index, part in enumerate(parts):
        digits = part.strip()
        if not re.fullmatch(r"[-+]?[0-9]+", digits):
            return index, f"{excerpt(digits)!r} is not an integer"
        if len(digits) > 25 or not low <= int(digits) <= high:
            return index, f"{excerpt(digits)} is out of range for {element_type}: {low} to {high}"
    return 0, "this is not a list of integers"


def _floats(element_type: ElementType, flat: str, parts: Sequence[str]) -> np.ndarray[Any, Any] | Problem:
    try:
        if not _FLOATS.fullmatch(flat):
            raise ValueError
        plain = [part.partition(":")[0] for part in parts] if ":" in flat else parts
        wide = np.array(list(map(float, plain)), np.float64)
    except ValueError:
        for index, part in enumerate(parts):
            if not re.fullmatch(r"\s*[-+]?(?:inf|nan(?::[0-9a-f]+)?|[0-9.]+(?:e[-+]?[0-9]+)?)\s*", part, re.I):
                return index, f"{excerpt(part.strip())!r} is not a number"
        return 0, "this is not a list of numbers"
    values = rounded(wide, element_type)
    lost = np.flatnonzero(~_represented(values, wide, element_type)).tolist()
    lost += [index for index in np.flatnonzero(np.isinf(wide)).tolist() if "inf" not in parts[index].lower()]
    if lost:
        return lost[0], f"{excerpt(parts[lost[0]].strip())} is out of range for {element_type}"
    for index in np.flatnonzero(np.isnan(wide)).tolist():
        text = parts[index].strip()
        if text != "nan":
            problem = _set_nan(values[index : index + 1], text, element_type)
            if problem:
                return index, problem
    return values


def _represented(
    values: np.ndarray[Any, Any], wide: np.ndarray[Any, Any], element_type: ElementType
) -> np.ndarray[Any, Any]:
    """Where a finite number stayed finite, an infinity infinite, and NaN NaN; and nothing beyond the largest."""
    back = values.astype(np.float64)
    same_kind = np.where(np.isfinite(wide), np.isfinite(back), np.where(np.isnan(wide), np.isnan(back), back == wide))
    if element_type.bits <= 8:
        limits = _float_limits(element_type)
        largest, smallest = float(limits.max), float(limits.min)
        step = largest / (1 << limits.nmant) / 2
        in_range = (wide <= largest + step) & (wide >= smallest - (step if smallest < 0 else 0))
        same_kind &= ~np.isfinite(wide) | in_range
    return np.asarray(same_kind)


def _bits_type(element_type: ElementType) -> np.dtype[Any]:
    return np.dtype(f"u{element_type.bytes}")


def _float_limits(element_type: ElementType) -> Any:
    return ml_dtypes.finfo(element_type.dtype)  # type: ignore[no-untyped-call]


def _is_nan(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is no news
        return np.asarray(np.isnan(values))


def _nan_bits(element_type: ElementType) -> tuple[int, int, int]:
    """Bits of the standard NaN; the sign bit; the mask of the mantissa."""
    standard = np.array(np.nan, element_type.dtype).view(_bits_type(element_type))
    return int(standard), 1 << (element_type.bits - 1), (1 << _float_limits(element_type).nmant) - 1


def _set_nan(value: np.ndarray[Any, Any], text: str, element_type: ElementType) -> str:
    """Writes the NaN spelled `text` (sign, payload) bit for bit; returns what is wrong with it, if anything."""
    match = _EXACT_NAN.fullmatch(text)
    if match is None:
        return f"{excerpt(text)!r} is not a number"
    standard, sign, mantissa = _nan_bits(element_type)
    bits = standard
    if match[2]:
        payload = int(match[2], 16)
        if payload > mantissa or not payload:
            return f"NaN payload 0x{excerpt(match[2])} is out of range for {element_type}"
        bits = standard & ~mantissa | payload
    if match[1] == "-":
        bits ^= sign
    value.view(_bits_type(element_type))[:] = bits
    return "" if _is_nan(value).all() else f"{text} is not a NaN of {element_type}"


# -- writing -------------------------------------------------------------------------------------------------------


def literal_to_text(literal: Literal) -> str:
    """The literal as HLO text, exact for every bit."""
    if literal.elements is None:
        return _nest(_format_elements(literal.shape.type, literal.array), literal.shape)
    finished: list[list[str]] = [[]]
    pending = [iter(literal.elements)]
    while True:
        element = next(pending[-1], None)
        if element is None:
            parts = finished.pop()
            text = "( " + ", ".join(parts) + " )" if parts else "()"
            pending.pop()
            if not finished:
                return text
            finished[-1].append(text)
        elif element.elements is None:
            finished[-1].append(literal_to_text(element))
        else:
            finished.append([])
            pending.append(iter(element.elements))


def _nest(elements: list[str], shape: Shape) -> str:
    """Puts braces around the elements, dimension by dimension from the innermost."""
    if shape.is_scalar:
        return elements[0]
    if not shape.size:
        return _skeleton(shape, MAX_EMPTY_BRACKETS) or "{}"
    groups = elements
    for dim, size in enumerate(reversed(shape.dims)):
        opening, closing = ("{", "}") if dim == 0 else ("{ ", " }")
        groups = [opening + ", ".join(groups[start : start + size]) + closing for start in range(0, len(groups), size)]
    return groups[0]


def _format_elements(element_type: ElementType, array: np.ndarray[Any, Any]) -> list[str]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if element_type.kind == "pred":
        return ["true" if value else "false" for value in flat.tolist()]
    if element_type.is_integer:
        wide = np.int64 if element_type.is_signed else np.uint64
        return list(map(str, flat.astype(wide).tolist()))
    if element_type.is_complex:
        parts = _format_floats(real_part_type(element_type), flat.view(real_part_type(element_type).dtype))
        return [f"({real}, {imaginary})" for real, imaginary in zip(parts[::2], parts[1::2], strict=True)]
    return _format_floats(element_type, flat)


def _format_floats(element_type: ElementType, flat: np.ndarray[Any, Any]) -> list[str]:
    """The shortest decimals that read back as the same value (of f32, for narrower types)."""
    if element_type.bits == 64:
        texts = list(map(repr, flat.tolist()))
    else:
        texts = flat.astype(np.float32).astype("U32").tolist()
    texts = [text[:-2] if text.endswith(".0") and text != NEGATIVE_ZERO else text for text in texts]
    for index in np.flatnonzero(_is_nan(flat)).tolist():
        texts[index] = _format_nan(element_type, flat[index])
    return texts


def _format_nan(element_type: ElementType, value: Any) -> str:
    standard, sign, mantissa = _nan_bits(element_type)
    bits = int(np.asarray(value).view(_bits_type(element_type)))
    prefix = "-" if (bits ^ standard) & sign else ""
    payload = bits & mantissa
    return prefix + ("nan" if payload == standard & mantissa else f"nan(0x{payload:x})")
