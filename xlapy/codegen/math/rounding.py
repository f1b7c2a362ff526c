"""Rounding, signs and remainders: exact functions."""

from __future__ import annotations

import math

from xlapy.codegen.ir import F32, F64, KernelBuilder, Value
from xlapy.codegen.math.common import INFINITY, NAN

# Quotients are reduced by this many leading bits at a time, so that products with half a significand are exact.
_QUOTIENT_MASK = -(1 << 27)
_FAR = 2.0**1000
_FAR_POWER = 2.0**60  # whose inverse is no subnormal
_HALF = 0.5  # the significand of powers of two


def floor(k: KernelBuilder, x: Value) -> Value:
    return k.floor(x)


def ceil(k: KernelBuilder, x: Value) -> Value:
    return k.ceil(x)


def round_nearest_even(k: KernelBuilder, x: Value) -> Value:
    """The nearest integer, the even one of two."""
    return k.roundeven(x)


def round_nearest_afz(k: KernelBuilder, x: Value) -> Value:
    """The nearest integer, away from zero of two."""
    whole = k.truncate(x)
    up = k.compare("ge", k.fabs(k.sub(x, whole)), 0.5)
    return k.copysign(k.select(up, k.add(whole, k.copysign(1.0, x)), whole), x)


def sign(k: KernelBuilder, x: Value) -> Value:
    """-1 or 1; zeros and NaNs as they are."""
    nonzero = k.or_(k.compare("lt", x, 0.0), k.compare("gt", x, 0.0))
    return k.select(nonzero, k.copysign(1.0, x), x)


def next_after(k: KernelBuilder, x: Value, y: Value) -> Value:
    """The float next to `x` on the way to `y`; `y` if they are equal."""
    bits = k.to_integer_bits(x)
    outwards = k.xor(k.compare("lt", x, y), k.compare("lt", bits, 0))
    stepped = k.bitcast(k.add(bits, k.select(outwards, k.const(bits.type, 1), -1)), x.type)
    smallest = k.copysign(k.bitcast(k.const(bits.type, 1), x.type), y)
    moved = k.select(k.compare("eq", x, 0.0), smallest, stepped)
    result = k.select(k.compare("eq", x, y), y, moved)
    return k.select(k.unordered(x, y), NAN, result)


def remainder(k: KernelBuilder, x: Value, y: Value) -> Value:
    """x - y trunc(x / y), exactly, with the sign of `x`; a NaN for an infinite x or a zero y.

    Each step takes off y times the leading 26 bits of the quotient; one step is enough for quotients below 2^26. f32
    goes through f64. Of a known power of two, quotient and product are exact."""
    if y.constant is not None and math.frexp(float(y.constant))[0] == _HALF and 1 <= float(y.constant) <= _FAR_POWER:
        power = float(y.constant)
        whole = k.truncate(k.mul(x, 1 / power))
        return k.copysign(k.sub(x, k.mul(whole, power)), x)
    if x.type.kind == "f32":
        return k.fptrunc(remainder(k, k.fpext(x, F64), k.fpext(y, F64)), F32)
    magnitude, divisor = k.fabs(x), k.fabs(y)
    valid = k.and_(k.compare("lt", magnitude, INFINITY), k.compare("gt", divisor, 0.0))
    rest, divisor = k.select(valid, magnitude, 0.0), k.select(valid, divisor, 1.0)

    def unfinished(values: list[Value]) -> Value:
        return k.any_lane(k.compare("ge", k.fabs(values[0]), divisor))

    def step(values: list[Value]) -> Value:
        return _take_off(k, values[0], divisor)

    (rest,) = k.while_loop(unfinished, step, [rest])
    rest = k.select(k.compare("lt", rest, 0.0), k.add(rest, divisor), rest)
    return k.select(valid, k.copysign(rest, x), NAN)


def _take_off(k: KernelBuilder, rest: Value, divisor: Value) -> Value:
    """`rest` without a multiple of `divisor` that is nearly all of it; both parts of each product are exact."""
    magnitude = k.fabs(rest)
    # A quotient beyond the largest float is first taken of a larger divisor.
    for _ in range(2):
        grown = k.mul(divisor, _FAR)
        divisor = k.select(k.compare("ge", magnitude, grown), grown, divisor)
    quotient = k.div(rest, divisor)
    leading = k.bitcast(k.and_(k.to_integer_bits(quotient), _QUOTIENT_MASK), rest.type)
    multiple = k.truncate(leading)
    upper = k.bitcast(k.and_(k.to_integer_bits(divisor), _QUOTIENT_MASK), rest.type)
    reduced = k.sub(k.sub(rest, k.mul(multiple, upper)), k.mul(multiple, k.sub(divisor, upper)))
    return k.select(k.compare("ge", magnitude, divisor), reduced, rest)
