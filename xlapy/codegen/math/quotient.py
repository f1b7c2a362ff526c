"""Quotients of many numbers and one divisor, without a division for each: the same bits.

With r, the inverse of c rounded, q = x r is a unit or two off x / c, and what is missing is (x - q c) r. Rounded once,
in two fused steps, the sum of both is the quotient to the last bit for all but some rare c; which these are, all
numerators tell, if they are few.

For all others q is made of two parts of the inverse, so that it is one of the two numbers next to the quotient. Then
x - q c is a number of the type, unless it is subnormal, and the sum is right for all c (Markstein's theorem): with b,
which is c as an integer below 2^p, a quotient is at least 1 / (2 b) units from what is half way between two numbers.
There what is missing is half a unit, and comes out wrong by as much as r is, by less than b / 2^2p: that is less.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from xlapy.codegen.ir import F32, KernelBuilder, Operand, Value
from xlapy.codegen.math.coefficients import INVERSE_ROOT
from xlapy.codegen.math.common import NAN, horner
from xlapy_runtime.records import Record

BYTES = range(-128, 256)
"""The numerators: what integers of 8 bits may be, signed or not."""

_MODERATE = 2.0**60
"""Divisors that are no larger, nor their inverses: nothing is subnormal on the way."""

_LIMITS = {"f32": 2.0**60, "f64": 2.0**500}
"""The same of any numerators. The least of these and of their quotients are the inverses: what is left of them is
exact."""

_WIDE_BITS = 512
"""Of vectors that are divided slowly."""


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


class Inverse(Record):
    """What takes the place of a divisor."""

    divisor: Value
    rounded: Value
    inner: Value  # the same, or the next number to zero, such that what it lacks has its sign
    rest: Value  # what `inner` lacks
    least: Value  # magnitude of numbers to divide so, but for zeros
    zero: Value  # which zeros are; no number, where they would get the wrong sign


def quotient(k: KernelBuilder, x: Value, divisor: Value, work: int, *, has_root: bool) -> Value:
    """x / divisor, correctly rounded, in another way where that takes less time than a division; beside so much work
    for each element. If it `has_root`, that is found by estimates, which goes on while numbers are divided."""
    is_slow = k.module.divides_slowly and _is_slow(k, x, divisor)
    if is_slow and _is_repeated(k, divisor, x) and work <= _ROOM[x.type.kind]:
        return _by_inverse(k, x, divisor)
    is_estimated = k.has_estimates and x.type.kind == "f64" and not has_root and work <= _ROOM_FOR_ESTIMATES
    return _by_estimate(k, x, divisor) if is_slow and is_estimated else k.div(x, divisor)


def brief_quotient(k: KernelBuilder, x: Value, divisor: Value) -> Value:
    """x / divisor of numbers of bf16, held as f32: rounded to bf16 it is their quotient.

    Of a divisor that stays the same, products with the inverse will do. With X and C, which are x and c as integers
    below 2^8, X / C is not half way between two numbers of 8 bits, which are odd multiples of 1 / 2^8 or 1 / 2^9 there:
    C would be a multiple of 2^8. So it is at least 2^-17 of itself away, and the product is wrong by 2^-23 of it. If it
    is subnormal, where it may be half way, it is wrong by less than half of the least f32, and so not at all."""
    if not (k.module.divides_slowly and _is_slow(k, x, divisor) and _is_repeated(k, divisor, x)):
        return k.div(x, divisor)
    whole = k.splat(divisor, x.type.lanes)
    found = k.mul(x, _moderate_inverse(k, whole))
    is_rare = k.any_lane(k.is_nan(found), bits=x.type.bits)
    (result,) = k.if_else(is_rare, lambda: k.div(x, whole), lambda: found, likely=False)
    return result


def root(k: KernelBuilder, x: Value, work: int, *, is_divided: bool) -> Value:
    """sqrt(x), correctly rounded, in the same way. The root of an f32 takes as long by itself, but if something
    `is_divided` beside, that is done at the same time, and not after the root."""
    is_estimated = k.has_estimates and (is_divided or x.type.kind == "f64") and work <= _ROOM_FOR_ESTIMATES
    return _root_by_estimate(k, x) if is_estimated and _is_slow(k, x) else k.sqrt(x)


def _is_slow(k: KernelBuilder, *operands: Value) -> bool:
    """Whether it takes long to divide these operands: long vectors that are not ready before a loop."""
    type = operands[0].type
    is_wide = type.lanes > 1 and type.lanes * type.bits % _WIDE_BITS == 0
    return is_wide and not k.is_quick and k.stays_here(*operands)


def _is_repeated(k: KernelBuilder, divisor: Value, x: Value) -> bool:
    """Whether a divisor stays the same for long enough for its inverse to pay."""
    runs = k.runs_of_loops(divisor, x)
    vectors = runs * (x.type.lanes * x.type.bits // _WIDE_BITS)
    return runs >= _LEAST_RUNS and vectors >= _LEAST_VECTORS[x.type.kind]


def _by_inverse(k: KernelBuilder, x: Value, divisor: Value) -> Value:
    """The quotient of many numbers by a divisor."""
    inverse = _inverse(k, k.splat(divisor, x.type.lanes))
    near = k.fma(x, inverse.inner, k.mul(x, inverse.rest))
    excess = k.fma(near, inverse.divisor, k.neg(x))
    found = k.fma(k.neg(excess), inverse.rounded, near)
    is_small = k.and_(k.compare("lt", k.fabs(x), inverse.least), k.compare("ne", x, inverse.zero))
    (result,) = k.if_else(
        k.any_lane(is_small, k.is_nan(found), bits=x.type.bits),
        lambda: k.div(x, inverse.divisor),
        lambda: found,
        likely=False,
    )
    return result


def _inverse(k: KernelBuilder, divisor: Value) -> Inverse:
    """The inverse of a divisor; a NaN, which all quotients then are before they are divided, if it is no moderate
    number."""
    magnitude, limit = k.fabs(divisor), _LIMITS[divisor.type.kind]
    rounded = _moderate_inverse(k, divisor)
    is_beyond = k.compare("lt", k.fma(k.neg(rounded), divisor, 1.0), 0.0)
    bits = k.to_integer_bits(rounded)
    inner = k.bitcast(k.select(is_beyond, k.sub(bits, 1), bits), divisor.type)
    rest = k.mul(k.fma(k.neg(inner), divisor, 1.0), rounded)
    least = k.mul(k.greater(magnitude, 1.0), 1 / limit)
    zero = k.select(k.compare("gt", divisor, 0.0), k.const(divisor.type, 0.0), NAN)
    return Inverse(divisor, rounded, inner, rest, least, zero)


def _by_estimate(k: KernelBuilder, x: Value, divisor: Value) -> Value:
    """The quotient in f64 by any divisor.

    What q = x y lacks is r / divisor, between two products of r and numbers next to y, which is as close to the inverse
    as these are to each other. If both sums with q come out the same, so does what is between. The instruction for
    estimates takes the inverses of the largest numbers, which are subnormal, for zeros."""
    inverse = near_inverse(k, divisor)
    near = k.mul(x, inverse)
    excess = k.neg(k.fma(near, divisor, k.neg(x)))
    limits = _SURE[x.type.kind]
    one, other = (k.fma(excess, k.mul(inverse, 1 + side * limits.doubt), near) for side in (-1, 1))
    found = k.copysign(one, near)  # zeros, to which zeros of any sign were added
    is_rare = k.or_(_is_small(k, k.fabs(x)), k.compare("gt", k.fabs(divisor), limits.largest))
    return _sure_or(k, found, other, is_rare, lambda: k.div(x, divisor))


def _root_by_estimate(k: KernelBuilder, x: Value) -> Value:
    """The same of square roots: what g, which is x times the inverse root y, lacks is r / (g + sqrt(x)), which is all
    but r y / 2. Zeros are not multiplied with infinities."""
    limits = _SURE[x.type.kind]
    estimate = k.lesser(k.inverse_root_estimate(x), limits.largest)
    start = k.mul(x, estimate)
    missing = k.fma(k.neg(start), estimate, 1.0)
    share = k.mul(missing, horner(k, missing, INVERSE_ROOT[x.type.kind][:2]))
    inverse, near = k.fma(estimate, share, estimate), k.fma(start, share, start)
    excess = k.neg(k.fma(near, near, k.neg(x)))
    one, other = (k.fma(excess, k.mul(inverse, (1 + side * limits.doubt) / 2), near) for side in (-1, 1))
    return _sure_or(k, one, other, _is_small(k, x), lambda: k.sqrt(x))


def _is_small(k: KernelBuilder, x: Value) -> Value:
    """Whether what is left of a magnitude may be subnormal; zeros leave nothing."""
    return k.and_(k.compare("lt", x, _SURE[x.type.kind].least), k.compare("ne", x, 0.0))


def _sure_or(k: KernelBuilder, one: Value, other: Value, is_rare: Value, exact: Callable[[], Value]) -> Value:
    """What two numbers are, if they are the same, and nothing `is_rare`; else what is `exact`."""
    is_unsure = k.not_(k.compare("eq", one, other))
    (result,) = k.if_else(k.any_lane(is_unsure, is_rare, bits=one.type.bits), exact, lambda: one, likely=False)
    return result


def _moderate_inverse(k: KernelBuilder, divisor: Value) -> Value:
    """1 / divisor, rounded; a NaN if it is no moderate number."""
    magnitude, limit = k.fabs(divisor), _LIMITS[divisor.type.kind]
    is_moderate = k.and_(k.compare("ge", magnitude, 1 / limit), k.compare("le", magnitude, limit))
    return k.select(is_moderate, k.div(1.0, divisor), NAN)


class Limits(Record):
    """Of what is found by estimates: the least numerators, or numbers with roots, and the largest divisors; and more
    than the share by which what is added in the end may be off, before it is rounded."""

    least: float
    largest: float
    doubt: float


_SURE = {"f32": Limits(2.0**-80, 2.0**100, 2.0**-21), "f64": Limits(2.0**-900, 2.0**1000, 2.0**-38)}

_ROOM = {"f32": 8, "f64": 24}
"""Operations with which divisions take as long as multiplications by inverses. On late Intel servers the quotients of
exponentials and their sums take a ninth less with divisions in f32, and a twentieth more in f64."""

_LEAST_RUNS, _LEAST_VECTORS = 3, {"f32": 12, "f64": 4}
"""Of a loop, and of 64 bytes, by which an inverse is multiplied in less time than it takes to make it and to divide."""

_ROOM_FOR_ESTIMATES = 8
"""The same for quotients and roots of f64 that begin with estimates; those of f32 take as long as by instructions."""


def near_inverse(k: KernelBuilder, divisor: Value) -> Value:
    """1 / divisor, where there are estimates: to 14 bits in f32, to 40 in f64. With e, which the estimate y lacks of
    one, y (1 + e + e^2) lacks e^3."""
    estimate = k.inverse_estimate(divisor)
    if divisor.type.bits == F32.bits:
        return estimate
    missing = k.fma(k.neg(divisor), estimate, 1.0)
    return k.fma(estimate, k.fma(missing, missing, missing), estimate)


def inner_quotient(k: KernelBuilder, x: Value, divisor: Value) -> Value:
    """x / divisor for steps within functions, as `near_quotient` has it in f64: in f32 these divide in the time that
    their polynomials take."""
    return near_quotient(k, x, divisor) if x.type.kind == "f64" else k.div(x, divisor)


def near_quotient(k: KernelBuilder, x: Operand, divisor: Value) -> Value:
    """x / divisor, wrong by 5/8 of a unit at most, for steps within functions: divisors are usual, and what is left of
    numerators hardly ever subnormal. A division where there are no estimates. An inverse of half of the bits will do,
    as what is left is divided by it, too; the estimate has these in f32."""
    if not k.has_estimates:
        return k.div(x, divisor)
    inverse = k.inverse_estimate(divisor)
    if divisor.type.kind == "f64":
        inverse = k.fma(inverse, k.fma(k.neg(divisor), inverse, 1.0), inverse)
    near = k.mul(inverse, x)
    negated = k.neg(x) if isinstance(x, Value) else -x
    excess = k.fma(near, divisor, negated)  # which is +0 for zeros: those of divisors above 0 keep their signs
    return k.fma(k.neg(excess), inverse, near)
