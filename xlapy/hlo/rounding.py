"""Floats in a narrower type, rounded once.

What numpy and ml_dtypes do on their way from f64 to a float narrower than f32 rounds twice, by way of f32: of
1 + 2^-8 + 2^-40 they make 1 in bf16, and 1 + 2^-7 is nearer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.hlo.element_types import F8E8M0FNU, ElementType

Array = np.ndarray[Any, Any]


def rounded(numbers: Array, target: ElementType) -> Array:
    """Numbers in f64 as those of any float type; what is too large becomes infinite, if the type has that.

    Powers of two come by way of f32: below the normal numbers of that, the next one up is taken for anything between
    two, and the text of one has no more digits than f32 needs."""
    if target.is_narrow_float and target is not F8E8M0FNU:
        return round_to_narrow(numbers, target)
    with np.errstate(all="ignore"):
        return numbers.astype(target.dtype)


def round_to_narrow(array: Array, target: ElementType) -> Array:
    """To a float narrower than f32. From f64 by way of f32 rounded to odd, so that nothing is rounded twice.

    NaN loses its sign, which would else become that of the zero that stands for it in a type without NaN."""
    with np.errstate(all="ignore"):
        if array.dtype == np.float64:
            array = _f32_rounded_to_odd(array)
        single = array.astype(np.float32, copy=False)
        return np.where(np.isnan(single), np.float32(np.nan), single).astype(target.dtype)


def _f32_rounded_to_odd(array: Array) -> Array:
    """f64 to f32, where an inexact result is the neighbour with an odd last bit: it remembers on which side it was."""
    single = np.asarray(array.astype(np.float32))
    back = single.astype(np.float64)
    inexact = (back != array) & ~np.isnan(array)
    too_far = inexact & (np.abs(back) > np.abs(array))
    truncated = np.where(too_far, np.nextafter(single, np.float32(0)), single).astype(np.float32)
    bits = truncated.view(np.uint32)
    return np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32).view(np.float32)
