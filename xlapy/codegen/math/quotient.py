"""Quotients of few possible numerators and a constant, without a division.

With r, the inverse of c rounded, q = x r is a unit or two off x / c, and what is missing is (x - q c) r. Rounded once,
in two fused steps, the sum of both is the quotient to the last bit for all but some rare c; which these are, all
numerators tell.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from xlapy.codegen.ir import KernelBuilder, Value

BYTES = range(-128, 256)
"""The numerators: what integers of 8 bits may be, signed or not."""

_MODERATE = 2.0**60
"""Divisors that are no larger, nor their inverses: nothing is subnormal on the way."""


def quotient_of_byte(k: KernelBuilder, x: Value, divisor: float) -> Value | None:
    """x / divisor in f32, correctly rounded, for x that are integers of 8 bits; None where a division is needed."""
    if not k.has_fma or not has_exact_quotients(divisor):
        return None
    inverse = float(np.float32(1) / np.float32(divisor))
    near = k.mul(x, inverse)
    return k.fma(k.fma(k.neg(near), divisor, x), inverse, near)


@cache
def has_exact_quotients(divisor: float) -> bool:
    """Whether the quotients of all bytes by a number of f32 come out right."""
    if not 1 / _MODERATE <= abs(divisor) <= _MODERATE:
        return False
    x, c = np.arange(BYTES.start, BYTES.stop, dtype=np.float32), np.float32(divisor)
    inverse = np.float32(1) / c
    near = x * inverse
    wide = near.astype(np.float64)  # which holds all products, and all that is left of x
    missing = x.astype(np.float64) - wide * np.float64(c)
    total = wide + missing * np.float64(inverse)
    rounded, expected = total.astype(np.float32), x / c
    spacing = np.spacing(np.abs(rounded)).astype(np.float64)
    is_sure = np.abs(np.abs(total - rounded) - spacing / 2) > spacing * 2.0**-20  # rounding twice is rounding once
    is_sure |= total == rounded
    return bool(np.all(is_sure & (rounded == expected) & (np.signbit(rounded) == np.signbit(expected))))
