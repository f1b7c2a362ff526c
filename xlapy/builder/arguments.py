"""What users pass besides operands, as what the graph takes: sizes as ints, types as element types, shapes."""

from __future__ import annotations

import contextlib
import inspect
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError
from xlapy.support.wording import excerpt

Integers = Sequence[int]


def as_int(value: Any, what: str) -> int:
    """A compile-time integer, numpy's included, of 64 bits: no attribute of any program format has more."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{what} must be an integer known while recording, got {described(value)}") from None
    if not -_BEYOND_64_BITS <= number < _BEYOND_64_BITS:
        raise ArgumentError(f"{what} must fit in 64 bits, which {described(value)} does not")
    return number


_BEYOND_64_BITS = 1 << 63


def as_flag(value: Any, what: str) -> bool:
    """A compile-time truth value: a bool of Python or numpy, or an integer as in C."""
    if isinstance(value, np.bool_):
        return bool(value)
    return bool(as_int(value, what))


def as_flags(values: Any, what: str) -> tuple[bool, ...]:
    """A compile-time list of truth values, or an array of numpy; None counts as an empty list."""
    return () if values is None else tuple(as_flag(value, what) for value in as_rows(values, what))


def as_number(value: Any, what: str) -> float:
    """A compile-time real number, numpy's scalars included."""
    is_real = isinstance(value, np.generic) and value.dtype.kind not in _NO_NUMBERS
    if is_real or isinstance(value, (int, float)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return float(value)
    raise ArgumentError(f"{what} must be a number known while recording, got {described(value)}")


_NO_NUMBERS = "cSUMm"  # kinds of numpy's dtypes: complex numbers, bytes, text, dates, spans of time


def as_text(value: Any, what: str) -> str:
    """A name, which may be given as bytes."""
    try:
        text = value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise ArgumentError(f"{what} must be text, but {described(value)} is not UTF-8") from None
    if not isinstance(text, str):
        raise ArgumentError(f"{what} must be a string, got {described(value)}")
    if not text.isascii() and _HALF_CHARACTER.search(text):
        raise ArgumentError(f"{what} must be text, but {described(value)} has half a character in it")
    return text


_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of what UTF-16 spells one character with: alone it is none, and no encoding has it."""


def as_texts(pairs: Any, what: str) -> dict[str, str]:
    """Texts by their names."""
    if not isinstance(pairs, Mapping):
        raise ArgumentError(f"{what} must be a mapping from names to texts, got {described(pairs)}")
    return {as_text(name, f"a name in {what}"): as_text(text, f"a text in {what}") for name, text in pairs.items()}


def as_list(values: Any, what: str) -> Sequence[Any]:
    if not isinstance(values, (list, tuple)):
        raise ArgumentError(f"{what} must be a list or a tuple, not {described(values)}")
    return values


def as_rows(values: Any, what: str) -> Sequence[Any]:
    """A compile-time list of lists or of descriptions, or an array of numpy for its rows."""
    return values.tolist() if isinstance(values, np.ndarray) and values.ndim else as_list(values, what)


def as_ints(values: Any, what: str) -> tuple[int, ...]:
    """A compile-time list of integers; one integer counts as a list of one, None as an empty list."""
    if values is None:
        return ()
    if not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        return (as_int(values, what),)
    return tuple(as_int(value, what) for value in values)


def as_shape(value: Any, what: str) -> Shape:
    if not isinstance(value, Shape):
        raise ArgumentError(f"{what} must be a Shape, as Shape.array(np.float32, (2, 3)); got {described(value)}")
    return value


def described(value: Any) -> str:
    """A wrong argument as an error shows it."""
    if inspect.isroutine(value):
        return f"function {value.__name__}"
    return (
        _abbreviated(value)
        if value is None or isinstance(value, (bool, int, float, complex))
        else f"{type(value).__name__} {_abbreviated(value)}"
    )


def _abbreviated(value: Any) -> str:
    try:
        return excerpt(repr(value).replace("\n", " "))
    except ValueError:  # Python spells no integers of thousands of digits
        return "(too long to be printed)"
