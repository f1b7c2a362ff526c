"""Reduction of angles to |r| <= pi/4 and a quadrant.

    x = q pi/2 + r

Up to 2^20 the product q pi/2 is subtracted in pieces that are exact; f32 does that in its own type up to 2^11, and
beyond in f64. With fma the product and its rounding error do, up to 2^42. Still larger angles go to a scalar function
that multiplies the significand by the binary digits of 2/pi that matter, as integers (Payne and Hanek). What large
angles need runs only if some lane has one, and is in a library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from xlapy.codegen.ir import F32, F64, I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.math.coefficients import (
    HALF_PI,
    HALF_PI_FUSED,
    HALF_PI_PARTS,
    HALF_PI_REST,
    PI_BELOW,
    TWO_OVER_PI_WORDS,
)
from xlapy.codegen.math.common import format_of, quick_two_sum, round_to_integer, two_product, two_sum
from xlapy.codegen.math.rare import RareFunction

# |x| up to here has fewer than 2^20 quarter turns.
_QUICK_LIMIT = 2.0**20
# |x| up to here is so many quarter turns that the quadrant of a rounded quotient is right but for angles which are, to
# 0.001, as near to the next one.
_PRODUCT_LIMIT = 2.0**42
# |x| up to here has fewer than 2^11 quarter turns, which is what f32 can take off without losing anything.
_SINGLE_LIMIT = 2.0**11
ANGLE_LIMITS = {"f32": _SINGLE_LIMIT, "f64": _QUICK_LIMIT}
"""Angles below these are reduced by a few steps with fma."""
LARGE_ANGLES = "xlapy.math.reduce_large_angles"
ANGLES_LIBRARY = "angles"
# The function is rarely called, and compiles in half the time without the optimizing code generator.
_SLOW_PATH = "noinline optnone nounwind"


class Reduced(NamedTuple):
    """r = high + low, and the quadrant as an integer of their width, of which the two lowest bits matter."""

    high: Value
    low: Value
    quadrant: Value


def reduce_angle(k: KernelBuilder, x: Value) -> Reduced:
    """The reduction of an f64; NaN for infinities."""
    return _reduced_where_large(k, x, _reduce_fused(k, x) if k.has_fma else _reduce_unfused(k, x))


def _reduced_where_large(k: KernelBuilder, x: Value, quick: Reduced) -> Reduced:
    """`quick`, but the right ones for angles for which it is not."""
    large = _is_finite_from(k, x, _QUICK_LIMIT)

    def by_products() -> Reduced:
        products = _reduce_by_products(k, x)
        merged = Reduced(*(k.select(large, *pair) for pair in zip(products, quick, strict=True)))
        return _where_any(k, _is_finite_from(k, x, _PRODUCT_LIMIT), lambda: _reduce_large(k, x, merged), merged)

    return _where_any(k, large, by_products if k.has_fma else lambda: _reduce_large(k, x, quick), quick)


def _is_finite_from(k: KernelBuilder, x: Value, limit: float) -> Value:
    magnitude = k.fabs(x)
    return k.and_(k.compare("ge", magnitude, limit), k.compare("lt", magnitude, math.inf))


def _where_any(k: KernelBuilder, lanes: Value, then: Callable[[], Reduced], otherwise: Reduced) -> Reduced:
    return Reduced(*k.if_else(k.any_lane(lanes, bits=otherwise.high.type.bits), then, lambda: otherwise, likely=False))


def reduce_single(k: KernelBuilder, x: Value) -> Reduced:
    """The reduction of an f32; NaN for infinities. Each `high` is the nearest float but where `low` is of its size."""
    if not k.has_fma:
        return _reduce_single_through_double(k, x)
    large = k.any_lane(k.compare("ge", k.fabs(x), _SINGLE_LIMIT), bits=x.type.bits)
    reduced = k.if_else(large, lambda: SINGLE_ANGLES.call(k, x), lambda: _reduce_fused(k, x), likely=False)
    return Reduced(*reduced)


def _reduce_fused(k: KernelBuilder, x: Value) -> Reduced:
    """In steps of which only the last rounds; how, for f32, and for f64 in brackets.

    The first difference is a multiple of 2^-24 [2^-53] and below 1. The second is a multiple of 2^-35 [2^-85]: below
    2^-11 [2^-32] it is exact too, and above it is within a factor of two of the first, so that their difference, and
    with it the error, is."""
    turns, quadrant = round_to_integer(k, k.mul(x, 2 / math.pi))
    first, second, third = HALF_PI_FUSED[x.type.kind]
    rough = k.fma(turns, -first, x)
    high = k.fma(turns, -second, rough)
    error = k.fma(turns, -second, k.sub(rough, high))
    return Reduced(high, k.fma(turns, -third, error), quadrant)


def _reduce_by_products(k: KernelBuilder, x: Value) -> Reduced:
    """For an f64 up to `_PRODUCT_LIMIT`, with fma: x less the first product is exact, a multiple of 2^-52 and below 1.
    The second product is one of two numbers, and the third, which is below 2^-65, rounded."""
    turns, quadrant = round_to_integer(k, k.mul(x, 2 / math.pi))
    product, lost = two_product(k, turns, HALF_PI[1])
    high, error = two_sum(k, k.fma(turns, -HALF_PI[0], x), k.neg(product))
    low = k.sub(error, k.fma(turns, HALF_PI_REST, lost))
    return Reduced(*quick_two_sum(k, high, low), quadrant)


class ReducedToHalfTurns(NamedTuple):
    """An r up to pi/2, and an integer whose lowest bit tells whether the sine of r is to be negated."""

    rest: Value
    turns: Value


def reduce_to_half_turns(k: KernelBuilder, x: Value) -> ReducedToHalfTurns:
    """x = n pi + r for |x| below the limit of its type, with fma; zeros keep their signs.

    The first difference is exact, and the second is rounded, by half an ulp of r. The third part of pi counts only
    where r is small: the second difference is exact there, or the sine as large as r."""
    shift = format_of(x.type).round_shift
    shifted = k.fma(x, 1 / math.pi, k.const(x.type, shift))
    n = k.sub(shifted, shift)
    rest = x
    for part in PI_BELOW[x.type.kind]:
        rest = k.fma(n, -part, rest)
    return ReducedToHalfTurns(rest, k.to_integer_bits(shifted))


def reduce_to_odd_quarters(k: KernelBuilder, x: Value) -> ReducedToHalfTurns:
    """x = (n + 1/2) pi - r, likewise; cos x = sin r for the even n.

    Where |x| is below 1, so that n + 1/2 is plus or minus 1/2, the first difference is rounded, too; but the sine of r,
    which is above pi/2 - 1, changes less than r then."""
    shift = format_of(x.type).round_shift
    shifted = k.add(k.muladd(x, 1 / math.pi, k.const(x.type, -0.5)), shift)
    half_turns = k.add(k.sub(shifted, shift), 0.5)
    rest = k.neg(x)
    for part in PI_BELOW[x.type.kind]:
        rest = k.fma(half_turns, part, rest)
    return ReducedToHalfTurns(rest, k.to_integer_bits(shifted))


def _reduce_single_through_double(k: KernelBuilder, x: Value) -> Reduced:
    """The first difference is exact. It cancels so little with the second, an f32 of at most 2^20 not being very close
    to any multiple of pi/2, that what is left out, 1e-20, does not matter."""
    wide = k.fpext(x, F64)
    turns, quadrant = round_to_integer(k, k.mul(wide, 2 / math.pi))
    first = HALF_PI_PARTS[0]
    rest = (HALF_PI[0] - first) + HALF_PI[1]
    high = k.muladd(turns, -rest, k.muladd(turns, -first, wide))
    reduced = _reduced_where_large(k, wide, Reduced(high, k.const(wide.type, 0.0), quadrant))
    rounded = k.fptrunc(reduced.high, F32)
    low = k.fptrunc(k.sub(reduced.high, k.fpext(rounded, F64)), F32)
    return Reduced(rounded, low, k.trunc(reduced.quadrant, I32))


SINGLE_ANGLES = RareFunction(
    "xlapy.math.reduce_single_angles", ANGLES_LIBRARY, _reduce_single_through_double, (F32,), (F32, F32, I32)
)


def _reduce_unfused(k: KernelBuilder, x: Value) -> Reduced:
    """The same for an f64 without fma: products with the first three of four parts are exact."""
    turns, quadrant = round_to_integer(k, k.mul(x, 2 / math.pi))
    first, second, third, fourth = HALF_PI_PARTS
    high = k.sub(x, k.mul(turns, first))
    high, low = two_sum(k, high, k.neg(k.mul(turns, second)))
    high, error = two_sum(k, high, k.neg(k.mul(turns, third)))
    low = k.add(low, k.sub(error, k.mul(turns, fourth)))
    high, low = quick_two_sum(k, high, low)
    return Reduced(high, low, quadrant)


def _reduce_large(k: KernelBuilder, x: Value, quick: Reduced) -> Reduced:
    """Replaces the lanes of `quick` whose angle is large, through memory."""
    if k.module.libraries is not None:
        k.module.libraries.add(ANGLES_LIBRARY)
        k.module.declare(LARGE_ANGLES, None, [type for _, type in _PARAMETERS])
    elif not k.module.defines(LARGE_ANGLES):
        define_reduce_large(k.module, linkage="internal")
    slots = [k.alloca(value.type, align=CACHE_LINE) for value in (x, *quick)]
    for slot, value in zip(slots, (x, *quick), strict=True):
        k.store(slot, value)
    k.call(LARGE_ANGLES, [*slots, k.const(I64, x.type.lanes)])
    return Reduced(*(k.load(slot, value.type) for slot, value in zip(slots[1:], quick, strict=True)))


_ARRAYS = ("x", "high", "low", "quadrant")
_PARAMETERS = [*((name, PTR) for name in _ARRAYS), ("lanes", I64)]


def define_reduce_large(module: Module, linkage: str = "") -> None:
    """Writes the function that goes over the lanes in memory."""
    with (
        KernelBuilder(module, LARGE_ANGLES, _PARAMETERS, None, linkage, _SLOW_PATH) as k,
        k.loop(0, k.parameters["lanes"]) as loop,
    ):
        x_at, high_at, low_at, quadrant_at = (k.gep(k.parameters[name], loop.index, 8) for name in _ARRAYS)
        x = k.load(x_at, F64)
        with k.if_(_is_finite_from(k, x, _PRODUCT_LIMIT if k.has_fma else _QUICK_LIMIT)):
            reduced = _multiply_by_digits(k, x)
            k.store(high_at, reduced.high)
            k.store(low_at, reduced.low)
            k.store(quadrant_at, reduced.quadrant)


def _multiply_by_digits(k: KernelBuilder, x: Value) -> Reduced:
    """Payne and Hanek for one number of at least 2^20.

    x = M 2^E; digits of 2/pi whose product with x is a multiple of 4 are left out. What remains is a fixed-point number
    of 7 words with the quadrant in its two highest bits: (M << shift) times 7 words of digits, modulo 2^224."""
    words = _product_words(k, x)
    top = k.or_(k.shl(words[6], 32), words[5])
    middle = k.or_(k.shl(words[4], 32), words[3])
    quadrant = k.lshr(k.add(top, 1 << 61), 62)
    # The fraction, signed because it is rounded to the nearest quadrant: 128 bits behind the point.
    fraction = k.or_(k.shl(top, 2), k.lshr(middle, 62))
    rest = k.or_(k.shl(middle, 2), k.lshr(words[2], 30))
    coarse, fine = k.and_(fraction, ~0x7FF), k.and_(fraction, 0x7FF)
    high = k.mul(k.sitofp(coarse, F64), 2.0**-64)
    low = k.add(k.mul(k.sitofp(fine, F64), 2.0**-64), k.mul(k.uitofp(rest, F64), 2.0**-128))
    high, low = two_sum(k, high, low)
    product, error = two_product(k, high, HALF_PI[0])
    error = k.add(error, k.add(k.mul(high, HALF_PI[1]), k.mul(low, HALF_PI[0])))
    high, low = quick_two_sum(k, product, error)
    negative = k.compare("lt", x, 0.0)
    return Reduced(
        k.select(negative, k.neg(high), high),
        k.select(negative, k.neg(low), low),
        k.select(negative, k.neg(quadrant), quadrant),
    )


def _product_words(k: KernelBuilder, x: Value) -> list[Value]:
    """The 7 words of 32 bits described above, lowest first, each in an i64."""
    low_word = 0xFFFFFFFF
    bits = k.to_integer_bits(x)
    exponent = k.sub(k.and_(k.lshr(bits, 52), 0x7FF), 1075)
    significand = k.or_(k.and_(bits, (1 << 52) - 1), 1 << 52)
    # Two zero words in front of the table make room for exponents down to -62.
    position = k.add(exponent, 62)
    shift = k.and_(position, 31)
    lower = k.shl(significand, shift)
    upper = k.lshr(k.lshr(significand, 1), k.sub(63, shift))
    factors = [k.and_(lower, low_word), k.lshr(lower, 32), upper]
    table = k.gep(k.table(I64, TWO_OVER_PI_WORDS), k.lshr(position, 5), 8)
    digits = [k.load(k.gep(table, 6 - i, 8), I64, invariant=True) for i in range(7)]
    columns: list[list[Value]] = [[] for _ in range(8)]
    for i, factor in enumerate(factors):
        for j in range(7 - i):
            product = k.mul(factor, digits[j])
            columns[i + j].append(k.and_(product, low_word))
            columns[i + j + 1].append(k.lshr(product, 32))
    words = []
    carry = k.const(I64, 0)
    for column in columns[:7]:
        total = carry
        for term in column:
            total = k.add(total, term)
        words.append(k.and_(total, low_word))
        carry = k.lshr(total, 32)
    return words
