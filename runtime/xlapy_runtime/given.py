"""What users give as values: Python scalars, and whatever numpy makes arrays of."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import numpy as np

from xlapy_runtime.errors import ArgumentError

PYTHON_SCALARS = (bool, int, float, complex)

_TAKEN: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (int, float),
    "c": (int, float, complex),
}
"""The Python scalars that stand for an element of a kind."""


def is_python_scalar(value: object) -> bool:
    """Whether this is a scalar without an element type of its own. (np.float64 is a float, too, but has one.)"""
    return isinstance(value, PYTHON_SCALARS) and not isinstance(value, np.generic)


def is_taken(value: complex, dtype: np.dtype[Any]) -> bool:
    """Whether a Python scalar of this type may stand for an element of `dtype`, if that has its value."""
    return type(value) in _TAKEN[_kind(dtype)]


def represented(value: complex, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """A Python scalar that `is_taken` in an element type; None if that has not its value.

    A float may round a fraction or a large integer, but nothing may turn into infinity or NaN, or lose its sign."""
    if _kind(dtype) not in "fc":
        return _exactly(int(value.real), dtype)
    try:
        wide = np.array(complex(value) if dtype.kind == "c" else float(value.real))
    except OverflowError:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        narrow = wide.astype(dtype)
        back = narrow.astype(wide.dtype)
    is_kept = (np.isnan(back) == np.isnan(wide)) and (np.isinf(back) == np.isinf(wide))
    loses_sign = dtype.kind != "c" and not math.isnan(wide) and bool(back != 0) and (back < 0) != (wide < 0)
    return narrow if is_kept and not loses_sign else None


def _exactly(number: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    try:
        array = np.array(number).astype(dtype)
    except OverflowError:
        return None
    return array if int(array) == number else None


def _kind(dtype: np.dtype[Any]) -> str:
    """numpy's letter of the kind of an element type, also for those of ml_dtypes."""
    if dtype.kind in "biufc":
        return dtype.kind
    if "int" in dtype.name:
        return "u" if dtype.name.startswith("u") else "i"
    return "f"


def spelled(value: object) -> str:
    """A Python scalar as errors show it: Python spells no integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number too long to be printed"


def array_of(value: Any, place: str) -> np.ndarray[Any, Any]:
    """The array that numpy makes of a value; `place` says in errors where it was given.

    What the value's own methods raise is the caller's to see, as it is, with a note of the place. Masked elements have
    no value that a program could use."""
    try:
        array = np.asarray(value)
    except Exception as error:
        error.add_note(f"{place}: numpy makes no array of this {type(value).__name__}")
        raise
    if "numpy.ma" in sys.modules and np.ma.is_masked(value):
        raise ArgumentError(f"{place}: elements of this array are masked; .filled(...) gives them values")
    return array
