"""Attribute values as text: for what an instruction carries along and no pass looks at."""

from __future__ import annotations

import re
from typing import Any

from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.constants import dense_text
from xlapy.stablehlo.tree import Opaque, Symbol
from xlapy.stablehlo.types import type_text
from xlapy.support.errors import ParseError

ALIASING_OUTPUT = "tf.aliasing_output"
"""Of an argument: the number of the result that may live in its memory."""

BUFFER_DONOR = "jax.buffer_donor"
"""Of an argument: any result of its shape may."""


class StatedInteger(int):
    """An integer whose type is stated, and is not i64."""

    stated: str


class StatedFloat(float):
    """A float whose type is stated, and is not f64."""

    stated: str


def stated(value: Any, type_name: str) -> Any:
    """The value of an attribute that is followed by a type: a number that is not of the usual one remembers it."""
    if type(value) is int and type_name != "i64":
        integer = StatedInteger(value)
        integer.stated = type_name
        return integer
    if type(value) is float and type_name != "f64":
        number = StatedFloat(value)
        number.stated = type_name
        return number
    return value


MOST_CHARACTERS = 1 << 22
"""How long the spelling of an attribute may get that has others inside: of a list of one alias twice, which is twice in
another list, and so on, it soon is more than memory holds."""


def attribute_text(value: Any) -> str:
    """The spelling of an attribute. Numbers that do not state their type are written as i64 or f64."""
    return _text_in(value, {})


def _text_in(value: Any, written: dict[int, str]) -> str:
    """The spelling of a part of an attribute. Those that have others inside are `written` once, by their identity."""
    if isinstance(value, (tuple, dict)):
        text = written.get(id(value))
        if text is None:
            text = written[id(value)] = _bounded(_text_of_many(value, written))
        return text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : {value.stated if isinstance(value, StatedInteger) else 'i64'}"
    if isinstance(value, float):
        return f"{value!r} : {value.stated if isinstance(value, StatedFloat) else 'f64'}"
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, Literal):
        return f"{dense_text(value)} : {type_text(value.shape)}"
    if isinstance(value, Symbol):
        return "@" + symbol_text(value.name)
    if isinstance(value, Shape):
        return type_text(value)
    return str(value) if isinstance(value, Opaque) else string_text(str(value))


def _text_of_many(value: tuple[Any, ...] | dict[str, Any], written: dict[int, str]) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_text_in(inner, written) for inner in value) + "]"
    return "{" + ", ".join(f"{name} = {_text_in(inner, written)}" for name, inner in value.items()) + "}"


def _bounded(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise ParseError(f"an attribute is longer than {MOST_CHARACTERS:,} characters when it is written out")
    return text


_PLAIN_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def symbol_text(name: str) -> str:
    return name if _PLAIN_SYMBOL.fullmatch(name) else string_text(name)


def string_text(text: str) -> str:
    """A string literal: printable ASCII as it is, everything else as the bytes of UTF-8."""
    return '"' + "".join(_character(byte) for byte in text.encode("utf-8", "surrogateescape")) + '"'


def _character(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\' else f"\\{byte:02X}"
