"""What a number does when its type changes: widening, narrowing with one rounding, wrapping, bits.

Floats narrower than f32 are computed in f32, integers narrower than a byte in a byte; results are rounded or wrapped
once, at the end of an operation.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from xlapy.hlo.element_types import F8E8M0FNU, ElementType, element_type_of, real_part_type
from xlapy.hlo.rounding import round_to_narrow

Array = np.ndarray[Any, Any]


def element_type(array: Array) -> ElementType:
    return element_type_of(array.dtype)


def wide_dtype(narrow: ElementType) -> np.dtype[Any]:
    """The dtype in which numbers of a type are computed."""
    if narrow.is_narrow_float:
        return np.dtype(np.float32)
    if narrow.is_integer and narrow.bits < 8:
        return np.dtype(np.int8 if narrow.is_signed else np.uint8)
    return narrow.dtype


def widen(array: Array) -> Array:
    """The same numbers in the dtype in which they are computed."""
    wide = _computed_in(array.dtype)
    return array if array.dtype is wide else array.astype(wide, copy=False)


@cache
def _computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Looked up for every operand of every step: folds of long rows by a region are many of those, on few elements."""
    return wide_dtype(element_type_of(dtype))


def narrow(array: Array, target: ElementType) -> Array:
    """Computed numbers in the type of the result: rounded once, or wrapped. Kinds stay what they are."""
    array = np.asarray(array)
    if array.dtype == target.dtype:
        return array
    if target.is_narrow_float:
        return round_to_narrow(array, target)
    with np.errstate(all="ignore"):
        return array.astype(target.dtype)


# -- conversion ----------------------------------------------------------------------------------------------------


def convert(array: Array, target: ElementType) -> Array:
    """The same values in another type: floats truncate and saturate to integers, integers wrap, the rest rounds."""
    source = element_type(array)
    if source is target:
        return array
    with np.errstate(all="ignore"):
        if target.is_complex:
            return array.astype(target.dtype) if source.is_complex else _as_real(array, target).astype(target.dtype)
        if target.kind == "pred":
            return np.asarray(widen(array) != 0)
        if source.is_complex:
            return convert(np.ascontiguousarray(array.real).reshape(array.shape), target)
        if target.is_integer:
            return saturate(array, target) if source.is_float else _wrap(array, target)
        return _to_float(array, target)


def _as_real(array: Array, target: ElementType) -> Array:
    return convert(array, real_part_type(target))


def _wrap(array: Array, target: ElementType) -> Array:
    wide = array.astype(np.uint64 if array.dtype == np.uint64 else np.int64)
    return wide.astype(target.dtype)


def saturate(array: Array, target: ElementType) -> Array:
    """Float to integer: toward zero, the nearest limit beyond the range, NaN to 0."""
    whole = np.trunc(array.astype(np.float64))
    low, high = target.integer_range
    wide = np.dtype(np.int64 if target.is_signed else np.uint64)
    below, above = whole < float(low), whole >= float(high + 1)
    inside = np.where(below | above | np.isnan(whole), 0.0, whole).astype(wide)
    limited = np.where(above, wide.type(high), np.where(below, wide.type(low), inside))
    return np.asarray(limited).astype(target.dtype)


def _to_float(array: Array, target: ElementType) -> Array:
    if not target.is_narrow_float:
        return array.astype(target.dtype)
    source = element_type(array)
    if source.is_narrow_float:
        return round_to_narrow(widen(array), target)
    if source.bits == 64 and source.is_integer:
        return round_to_narrow(_f64_rounded_to_odd(array), target)
    return round_to_narrow(array.astype(np.float64), target)


def _f64_rounded_to_odd(array: Array) -> Array:
    """64-bit integers to f64: bits that do not fit are or-ed into the last one that does."""
    negative = array < 0
    magnitude = np.where(negative, np.negative(array), array).astype(np.uint64)
    large = magnitude >= np.uint64(1 << 53)
    lost = (magnitude & np.uint64(0x7FF)) != 0
    kept = (magnitude & ~np.uint64(0x7FF)) | np.where(lost, np.uint64(0x800), np.uint64(0))
    value = np.where(large, kept, magnitude).astype(np.float64)
    return np.where(negative, -value, value)


# -- bits ----------------------------------------------------------------------------------------------------------


def to_bits(array: Array) -> Array:
    """The bits of each element as an unsigned integer of the element's storage; unused high bits are zero."""
    kind = element_type(array)
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    if kind.kind == "pred":
        return contiguous.astype(np.uint8)
    bits = contiguous.view(np.dtype(f"u{kind.bytes}"))
    return bits & bits.dtype.type((1 << kind.bits) - 1) if kind.bits < 8 else bits


def from_bits(bits: Array, target: ElementType) -> Array:
    """The inverse of `to_bits`."""
    if target.kind == "pred":
        return np.asarray(bits != 0)
    storage = np.asarray(bits.astype(np.dtype(f"u{target.bytes}"), copy=False))
    if target.is_integer and target.bits < 8:
        return storage.astype(target.dtype)
    return storage.view(target.dtype)


def total_order(array: Array) -> Array:
    """Integers that compare as the floats do in total order: -NaN < -inf < ... < -0 < +0 < ... < +NaN.

    Types without -0 have its bits for their only NaN, which is negative."""
    kind = element_type(array)
    bits = to_bits(array).astype(np.uint64)
    sign = np.uint64(0 if kind is F8E8M0FNU else 1 << (kind.bits - 1))  # powers of two have none
    magnitude = (bits & ~sign).astype(np.int64)
    ordered = np.where(bits & sign != 0, -1 - magnitude, magnitude)
    return np.where(bits == sign, -1 - np.int64(sign), ordered) if kind.name.endswith("fnuz") else ordered
