"""exp, exp2, expm1 and logistic.

e^x = 2^n e^r,  n = round(x / ln 2),  r = x - n ln 2  in two steps that lose nothing

Where lanes choose among others, n is a multiple of 1/16, of which a table has the powers of the fractions: r is so much
smaller, and half of the terms will do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.ir_types import float_to_bits
from xlapy.codegen.math.coefficients import EXP, EXP2, EXP_CLOSE, LN2, ROOTS_OF_TWO, ROOTS_OF_TWO_REST
from xlapy.codegen.math.common import (
    Exponent,
    at_most,
    clamp,
    format_of,
    from_lowest,
    horner,
    low_vanishing,
    lower,
    nearest_exponent,
    nearest_low_exponent,
    nearest_multiple,
    nearest_power,
    quick_two_sum,
    scale,
    scale_low,
    scale_one_plus,
    squared,
    two_chains,
    vanishing,
)
from xlapy.codegen.math.quotient import near_quotient

# Beyond these e^x is an infinity, or zero.
_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
_BASE_2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}
# Below these e^x is subnormal, and from a little above on it is not.
_LEAST_OF_NORMAL = {"f32": -87.3366, "f64": -708.3965}
# From this on half of e^x is no subnormal, nor is what is added up to it.
LEAST_OF_HIGH = -60.0
# Below these expm1 is -1 to the last bit.
_SMALL = {"f32": -25.0, "f64": -45.0}
# Beyond these the logistic function is zero, or one; and what its divisor is multiplied with, and divided.
_LOGISTIC_RANGE = {"f32": (-104.0, 20.0), "f64": (-746.0, 45.0)}
_LOGISTIC_UNIT = {"f32": 2.0**-30, "f64": 2.0**-100}


class Reduced(NamedTuple):
    """e^x = 2^n (1 + p)."""

    p: Value
    n: Exponent


def reduced_exp(k: KernelBuilder, x: Value, low: Value | None = None) -> Reduced:
    """The parts of e^(x + low), for x within the range of the type."""
    n = nearest_exponent(k, x, 1 / math.log(2))
    return Reduced(_less_one(k, _rest(k, x, low, n.whole)), n)


def _less_one(k: KernelBuilder, r: Value) -> Value:
    """e^r - 1 for |r| up to ln 2 / 2, as something to add to 1."""
    square = squared(k, r)
    return k.muladd(square, two_chains(k, r, square, EXP), r)


def _rest(k: KernelBuilder, x: Value, low: Value | None, n: Value) -> Value:
    """x + low - n ln 2"""
    high_ln2, low_ln2 = LN2[x.type.kind]
    r = k.muladd(n, -high_ln2, x)
    return k.muladd(n, -low_ln2, r) if low is None else k.add(r, k.muladd(n, -low_ln2, low))


def exp(k: KernelBuilder, x: Value) -> Value:
    """e^x"""
    return exp_of_sum(k, x, None)


def exp_of_sum(k: KernelBuilder, x: Value, low: Value | None) -> Value:
    """e^(x + low), where `low` holds what x is too short for."""
    lowest, highest = _RANGE[x.type.kind]
    x = at_most(k, x, highest)
    if k.has_scalef:
        return _exp_by_roots(k, x, low)
    x, _ = from_lowest(k, x, lowest, vanishing(x.type, 1 / math.log(2)))
    return scale_one_plus(k, *reduced_exp(k, x, low))


def _exp_by_roots(k: KernelBuilder, x: Value, low: Value | None, *, is_high: bool = False) -> Value:
    """e^(x + low) for x up to where it is infinite: the instruction that scales takes the whole part of n. No result
    is subnormal if x `is_high`."""
    n, number = _nearest_root(k, x, 1 / math.log(2))
    r = _rest(k, x, low, n)
    p = k.fma(squared(k, r), horner(k, r, EXP_CLOSE), r)
    power = k.lookup(x.type, ROOTS_OF_TWO, number)
    significand = k.fma(power, p, power)
    if is_high:
        return k.scalef(significand, n)
    (result,) = k.if_else(
        k.any_below(x, _LEAST_OF_NORMAL[x.type.kind]),
        lambda: _scaled_far(k, significand, n, x),
        lambda: k.scalef(significand, n),
        likely=False,
    )
    return result


def _scaled_far(k: KernelBuilder, significand: Value, n: Value, x: Value) -> Value:
    """significand * 2^floor(n), which is e^x, where some of it vanishes, or is subnormal."""
    kept = k.not_(k.compare("lt", x, _RANGE[x.type.kind][0]))
    x = k.select(kept, x, 0.0)
    (result,) = k.if_else(
        k.any_below(x, _LEAST_OF_NORMAL[x.type.kind]),
        lambda: _scaled_low(k, significand, n, k.compare("lt", x, _LEAST_OF_NORMAL[x.type.kind]), kept),
        lambda: k.scalef(significand, n, kept),
    )
    return result


def _scaled_low(k: KernelBuilder, x: Value, n: Value, is_low: Value, kept: Value) -> Value:
    """x * 2^floor(n), zero but in the lanes that are `kept`, and subnormal where `is_low`: a number for which the
    instruction takes a hundred cycles. Its bits are how many of the least ones it is, an integer, as which it is
    rounded. What is added makes it zero in threads that flush subnormal numbers."""
    form = format_of(x.type)
    unit = 2.0**form.mantissa
    scaled = k.scalef(x, k.select(is_low, k.add(n, float(form.bias + form.mantissa - 1)), n), kept)
    count = k.sub(k.to_integer_bits(k.add(scaled, unit)), float_to_bits(unit, x.type.bits))
    return k.select(is_low, k.add(k.bitcast(count, x.type), 0.0), scaled)


def _nearest_root(k: KernelBuilder, x: Value, factor: float) -> tuple[Value, Value]:
    """The multiple of 1/16 next to x * factor; in the low bits of the second the number of its fraction."""
    shift = format_of(x.type).round_shift / len(ROOTS_OF_TWO)
    shifted = k.fma(x, factor, k.const(x.type, shift))
    return k.sub(shifted, shift), k.to_integer_bits(shifted)


def _from_lowest_of_low(k: KernelBuilder, x: Value, low: float) -> tuple[Value, Value | None]:
    return from_lowest(k, x, low, low_vanishing(x.type, 1 / math.log(2)))


def exp_of_low(k: KernelBuilder, x: Value) -> Value:
    """e^x, to the same bits, for x up to 43, as a number less the largest of several is: no upper limit, and half of
    the instructions that scale."""
    if k.has_scalef:
        return _exp_by_roots(k, x, None)
    x, _ = _from_lowest_of_low(k, x, _RANGE[x.type.kind][0])
    n = nearest_low_exponent(k, x, 1 / math.log(2))
    p = _less_one(k, _rest(k, x, None, n.whole))
    return lower(k, k.muladd(p, n.raised, n.raised))


def exp_of_high(k: KernelBuilder, x: Value) -> Value:
    """e^x, to the same bits, for x from `LEAST_OF_HIGH` on: what it is scaled by is a normal power of two, halved."""
    x = at_most(k, x, _RANGE[x.type.kind][1])
    if k.has_scalef:
        return _exp_by_roots(k, x, None, is_high=True)
    n, half = nearest_power(k, x, 1 / math.log(2), -1)
    result = k.muladd(_less_one(k, _rest(k, x, None, n)), half, half)
    return k.add(result, result)


def _exp_of_low_pair(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """The same with its rounding error, where no instruction multiplies by powers of two."""
    x, _ = _from_lowest_of_low(k, x, _RANGE[x.type.kind][0])
    n = nearest_low_exponent(k, x, 1 / math.log(2))
    total, lost = quick_two_sum(k, 1.0, _less_one(k, _rest(k, x, None, n.whole)))
    return scale_low(k, total, n), scale_low(k, lost, n)


def exp_of_pair(k: KernelBuilder, x: Value, low: Value, *, moderate: bool = False) -> Value:
    """e^(x + low), all but correctly rounded; `moderate` if neither it nor 1 over it comes near the type's limits."""
    if moderate:
        n, number = nearest_multiple(k, k.add(x, low), 1 / math.log(2))
        result = _exp_of_rest_of_pair(k, x, low, n)
        power = k.add(k.to_integer_bits(result), k.shl(number, format_of(x.type).mantissa))
        return k.bitcast(power, x.type)
    lowest, highest = _RANGE[x.type.kind]
    x, kept = from_lowest(k, at_most(k, x, highest), lowest, vanishing(x.type, 1 / math.log(2)))
    exponent = nearest_exponent(k, k.add(x, low), 1 / math.log(2))
    return scale(k, _exp_of_rest_of_pair(k, x, low, exponent.whole), exponent, kept)


def _exp_of_rest_of_pair(k: KernelBuilder, x: Value, low: Value, n: Value) -> Value:
    """e^(x + low - n ln 2) for the nearest n: 1 + r + low + ... is added up with what 1 + r loses."""
    high_ln2, low_ln2 = LN2[x.type.kind]
    r, low = k.muladd(n, -high_ln2, x), k.muladd(n, -low_ln2, low)
    whole = k.add(r, low)
    high, error = quick_two_sum(k, 1.0, r)
    square = squared(k, whole)
    rest = k.muladd(square, two_chains(k, whole, square, EXP), low)
    return k.add(high, k.add(error, rest))


def exp2(k: KernelBuilder, x: Value) -> Value:
    """2^x"""
    lowest, highest = _BASE_2_RANGE[x.type.kind]
    x, kept = from_lowest(k, at_most(k, x, highest), lowest, vanishing(x.type, 1.0))
    n = nearest_exponent(k, x)
    r = k.sub(x, n.whole)
    return scale(k, k.muladd(r, horner(k, r, EXP2), 1.0), n, kept)


def expm1(k: KernelBuilder, x: Value) -> Value:
    """e^x - 1, accurate for small x."""
    reached = clamp(k, x, _SMALL[x.type.kind], _RANGE[x.type.kind][1])
    # Half of the power of two, because 2^n itself may be beyond the largest float.
    n, half = nearest_power(k, reached, 1 / math.log(2), -1)
    r = _rest(k, reached, None, n)
    square = squared(k, r)
    bent = k.mul(square, two_chains(k, r, square, EXP))
    # The sum that may cancel comes first, and is exact where it does.
    result = k.muladd(bent, half, k.muladd(r, half, k.sub(half, 0.5)))
    result = k.add(result, result)
    tiny = 2.0 ** -(format_of(x.type).mantissa + 2)
    return k.select(k.compare("lt", k.fabs(x), tiny), x, result)


def logistic(k: KernelBuilder, x: Value) -> Value:
    """1 / (1 + e^-x)

    With z = e^-|x| this is 1 / (1 + z), or z / (1 + z) for negative x; z and 1 + z keep their rounding errors. What
    these add to the quotient is less than two ulp, and divided by 1 + z nearly enough."""
    if k.has_scalef:
        return _logistic_by_roots(k, x)
    z, z_low = _exp_of_low_pair(k, k.neg(k.fabs(x)))
    below, below_low = quick_two_sum(k, 1.0, z)
    below_low = k.add(below_low, z_low)
    negative = k.compare("lt", x, 0.0)
    above, above_low = k.select(negative, z, 1.0), k.select(negative, z_low, 0.0)
    quotient = k.div(above, below)
    rest = k.muladd(k.neg(quotient), below_low, above_low)
    inverse = k.muladd(below, -8 / 17, k.const(x.type, 24 / 17))
    return k.muladd(rest, inverse, quotient)


def _logistic_by_roots(k: KernelBuilder, x: Value) -> Value:
    """The same of 1 + 2^n (1 + p), so much smaller that it is finite while its inverse counts: what 1 + 2^n and the
    power lose is added to 2^n p."""
    kind, unit = x.type.kind, _LOGISTIC_UNIT[x.type.kind]
    lowest, highest = _LOGISTIC_RANGE[kind]
    x, kept = at_most(k, x, highest), k.not_(k.compare("lt", x, lowest))
    n, number = _nearest_root(k, x, -1 / math.log(2))
    root = k.lookup(x.type, [root * unit for root in ROOTS_OF_TWO], number)
    high_ln2, low_ln2 = LN2[kind]
    rest = k.fma(n, low_ln2, k.fma(n, high_ln2, x))
    p = k.fma(squared(k, rest), horner(k, k.neg(rest), EXP_CLOSE), k.neg(rest))
    p = k.add(p, k.lookup(x.type, ROOTS_OF_TWO_REST[kind], number))
    power = k.scalef(root, n, kept)
    total = k.add(power, unit)
    lost = k.sub(k.lesser(power, unit), k.sub(total, k.greater(power, unit)))
    return k.select(kept, near_quotient(k, unit, k.add(total, k.fma(power, p, lost))), 0.0)
