"""Building blocks of the vector math: polynomials, powers of two, sums and products with their rounding errors.

Everything here is branch-free, works for any number of lanes, and gives the same bits in each lane whatever the number
of lanes is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from xlapy.codegen.ir import F32, F64, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.ir_types import float_to_bits
from xlapy_runtime.records import Record

INFINITY = math.inf
NAN = math.nan


class Format(Record):
    """The parameters of an IEEE float type."""

    mantissa: int
    bias: int
    lowest_normal: float
    # Adding it rounds to an integer, which is then in the low bits of the mantissa.
    round_shift: float
    # Keeps the leading half of the significand, so that products of two such numbers are exact.
    high_mask: int


_FORMATS = {
    "f32": Format(23, 127, 2.0**-126, 1.5 * 2.0**23, -(1 << 12)),
    "f64": Format(52, 1023, 2.0**-1022, 1.5 * 2.0**52, -(1 << 27)),
}


def format_of(type: IRType) -> Format:
    return _FORMATS[type.kind]


Table = Mapping[str, Sequence[float]] | Sequence[float]
"""Coefficients of a polynomial, constant first; for one type, or for several by their names."""

LEAST_SQUARE = {"f32": 2.0**-50, "f64": 2.0**-200}
"""What changes no square that matters, and is far from being subnormal, even if it is squared itself."""

LONG_POLYNOMIAL = 10
"""Coefficients that are a longer chain, each operation waiting for the one before, than vectors side by side hide."""


def horner(k: KernelBuilder, x: Value, table: Table) -> Value:
    """The polynomial with these coefficients, or those that `table` has for the type of `x`."""
    coefficients = table[x.type.kind] if isinstance(table, Mapping) else table
    result = k.const(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = k.muladd(result, x, coefficient)
    return result


def two_chains(k: KernelBuilder, x: Value, square: Value, table: Table) -> Value:
    """The same, given x^2 too: a long polynomial as P(x^2) + x Q(x^2), which are two chains of half the length.

    Only for coefficients that make neither of them much larger than their sum, as those of the arctangent, whose signs
    alternate up to x = 1: rounding errors would be larger by as much."""
    coefficients = table[x.type.kind] if isinstance(table, Mapping) else table
    if len(coefficients) < LONG_POLYNOMIAL:
        return horner(k, x, coefficients)
    return k.muladd(horner(k, square, coefficients[1::2]), x, horner(k, square, coefficients[::2]))


def squared(k: KernelBuilder, x: Value) -> Value:
    """x^2, or with fma about the least that it may be: for terms beside which 1, or what they are multiplied with, is
    all that counts if x is tiny. Processors spend a hundred cycles or more on a product that is subnormal."""
    return k.fma(x, x, k.const(x.type, LEAST_SQUARE[x.type.kind])) if k.has_fma else k.mul(x, x)


def clamp(k: KernelBuilder, x: Value, low: float, high: float) -> Value:
    """`x` between `low` and `high`; a NaN stays one."""
    return at_most(k, at_least(k, x, low), high)


def at_least(k: KernelBuilder, x: Value, low: float) -> Value:
    """`x` from `low` on; a NaN stays one."""
    return k.select(k.compare("lt", x, low), low, x)


def at_most(k: KernelBuilder, x: Value, high: float) -> Value:
    """`x` up to `high`; a NaN stays one."""
    return k.select(k.compare("gt", x, high), high, x)


def from_lowest(k: KernelBuilder, x: Value, low: float, zero: float) -> tuple[Value, Value | None]:
    """`x` for a power that vanishes below `low`, and the lanes in which it does not, for `scale`. Where there is no
    instruction that leaves lanes out there are none, and no x below `zero`, where what is scaled by is zero already.

    Processors take long for a vector in which something comes out below the normal numbers, be it zero: an Intel core
    a hundred cycles more, and the exponential function of what is masked by an infinity 1.7 times as long on a
    Zen 3."""
    if k.has_scalef:
        return x, k.not_(k.compare("lt", x, low))
    return at_least(k, x, zero), None


def vanishing(type: IRType, factor: float) -> float:
    """Where x * factor is an integer of which `scale` makes zeros to scale by."""
    return -2 * format_of(type).bias / factor


def low_vanishing(type: IRType, factor: float) -> float:
    """The same of `scale_low`."""
    return -(format_of(type).bias + _raised_by(type)) / factor


def round_to_integer(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """The nearest integer as a float and as an integer, for |x| below 2^22 (f32) or 2^51 (f64).

    Needs no conversion instruction; what a NaN gives is unspecified but harmless."""
    shift = format_of(x.type).round_shift
    shifted = k.add(x, shift)
    number = k.sub(k.to_integer_bits(shifted), float_to_bits(shift, x.type.bits))
    return k.sub(shifted, shift), number


def nearest_multiple(k: KernelBuilder, x: Value, factor: float) -> tuple[Value, Value]:
    """The same for x * factor, which is not rounded before if there is fma. Only the low bits of the second are those
    of the integer: more than floats have in front of their mantissa."""
    shift = format_of(x.type).round_shift
    shifted = k.muladd(x, factor, k.const(x.type, shift))
    return k.sub(shifted, shift), k.to_integer_bits(shifted)


class Exponent(NamedTuple):
    """An integer to scale by, as a float; and what has it, with twice the bias of its type, in the low bits."""

    whole: Value
    biased: Value

    def less_one(self, k: KernelBuilder) -> Exponent:
        return Exponent(k.sub(self.whole, 1.0), k.sub(self.biased, 1))


def nearest_exponent(k: KernelBuilder, x: Value, factor: float = 1.0) -> Exponent:
    """The integer next to x * factor, for numbers that `scale` can take."""
    shift = _exponent_shift(x.type)
    shifted = k.add(x, shift) if factor == 1.0 else k.muladd(x, factor, k.const(x.type, shift))
    return Exponent(k.sub(shifted, shift), k.to_integer_bits(shifted))


def _exponent_shift(type: IRType) -> float:
    """What to add to round to an integer, and to have twice the bias in the low bits."""
    form = format_of(type)
    return form.round_shift + 2 * form.bias


def nearest_power(k: KernelBuilder, x: Value, factor: float, exponent: int) -> tuple[Value, Value]:
    """n, the integer next to x * factor, and 2^(n + exponent), if that is normal.

    What is added to round puts the biased exponent into the low bits of the sum, and the shift leaves nothing else."""
    form = format_of(x.type)
    shift = form.round_shift + form.bias + exponent
    shifted = k.muladd(x, factor, k.const(x.type, shift))
    return k.sub(shifted, shift), k.bitcast(k.shl(k.to_integer_bits(shifted), form.mantissa), x.type)


class LowExponent(NamedTuple):
    """An integer of at most 63 to scale by, as a float; and its power of two, times one that makes it normal."""

    whole: Value
    raised: Value


def _raised_by(type: IRType) -> int:
    """Half of the least subnormal is a normal number with so many powers of two more, and what is scaled by it is
    rounded once. With two less it is zero: hardly anything is scaled by what lies between."""
    return format_of(type).mantissa + 2


def nearest_low_exponent(k: KernelBuilder, x: Value, factor: float) -> LowExponent:
    """The integer next to x * factor, for numbers that `scale_low` can take."""
    return LowExponent(*nearest_power(k, x, factor, _raised_by(x.type)))


def scale_low(k: KernelBuilder, x: Value, exponent: LowExponent) -> Value:
    """x * 2^n, rounded once: half of the instructions of `scale`, and the same bits."""
    return lower(k, k.mul(x, exponent.raised))


def lower(k: KernelBuilder, x: Value) -> Value:
    """What has been multiplied with `raised`, rounded once."""
    return k.mul(x, 2.0 ** -_raised_by(x.type))


def power_of_two(k: KernelBuilder, n: Value, type: IRType) -> Value:
    """2^n for exponents of normal numbers."""
    form = format_of(type)
    return k.bitcast(k.shl(k.add(n, form.bias), form.mantissa), type)


def scale(k: KernelBuilder, x: Value, exponent: Exponent, kept: Value | None = None) -> Value:
    """x * 2^n, for |n| up to twice the range of exponents; rounded once if x is normal. Zero but in the lanes that are
    `kept`, if these are given."""
    if k.has_scalef:
        return k.scalef(x, exponent.whole, kept)
    first, second = _halves(k, x.type, exponent)
    return k.mul(k.mul(x, first), second)


def scale_one_plus(k: KernelBuilder, p: Value, exponent: Exponent) -> Value:
    """(1 + p) * 2^n, as `scale` has it to the last bit where that needs two steps: the first power of two is what p is
    multiplied with and added to."""
    first, second = _halves(k, p.type, exponent)
    return k.mul(k.muladd(p, first, first), second)


def _halves(k: KernelBuilder, type: IRType, exponent: Exponent) -> tuple[Value, Value]:
    """Two normal powers of two whose product is 2^n.

    Halves of n with the bias each, in the low bits: shifted to where floats have their exponents, nothing else is left.
    A logical shift halves, because AVX2 has no arithmetic one of 64 bits."""
    mantissa = format_of(type).mantissa
    half = k.lshr(exponent.biased, 1)
    first, second = (k.bitcast(k.shl(part, mantissa), type) for part in (half, k.sub(exponent.biased, half)))
    return first, second


def split_exponent(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """x = m * 2^e with m between sqrt(1/2) and sqrt(2), both floats; for positive finite x, subnormals included."""
    form = format_of(x.type)
    small = k.compare("lt", x, form.lowest_normal)
    mantissa, exponent, _ = split_normal(k, k.select(small, k.mul(x, 2.0 ** (form.mantissa + 2)), x))
    return mantissa, k.select(small, k.sub(exponent, form.mantissa + 2.0), exponent)


def split_normal(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """The same for normal x, and 2^(1 - e), which is 0 for the largest numbers."""
    form = format_of(x.type)
    bits = k.to_integer_bits(x)
    exponent_field = k.and_(k.sub(bits, float_to_bits(math.sqrt(0.5), x.type.bits)), -1 << form.mantissa)
    mantissa = k.bitcast(k.sub(bits, exponent_field), x.type)
    doubled_inverse = k.bitcast(k.sub(float_to_bits(2.0, x.type.bits), exponent_field), x.type)
    return mantissa, exponent_of_field(k, exponent_field, x.type), doubled_inverse


def exponent_of_field(k: KernelBuilder, field: Value, type: IRType) -> Value:
    """An exponent as a float, of the difference of two floats' exponents where floats of `type` have them."""
    form = format_of(type)
    if type.kind == "f32":
        return k.sitofp(k.ashr(field, form.mantissa), F32)
    # AVX2 converts no integers of 64 bits: put into the mantissa of 2^mantissa they are floats.
    biased = k.lshr(k.add(field, k.const(field.type, form.bias << form.mantissa)), form.mantissa)
    unit = 2.0**form.mantissa
    return k.sub(k.bitcast(k.or_(biased, float_to_bits(unit, type.bits)), type), unit + form.bias)


def leading_half(k: KernelBuilder, x: Value) -> Value:
    """`x` with the lower half of its significand cleared."""
    return k.bitcast(k.and_(k.to_integer_bits(x), format_of(x.type).high_mask), x.type)


def quick_two_sum(k: KernelBuilder, a: Operand, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error, for |a| at least |b|."""
    total = k.add(a, b)
    return total, k.sub(b, k.sub(total, a))


def two_sum(k: KernelBuilder, a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error."""
    total = k.add(a, b)
    from_b = k.sub(total, a)
    return total, k.add(k.sub(a, k.sub(total, from_b)), k.sub(b, from_b))


def two_product(k: KernelBuilder, a: Value, b: Operand) -> tuple[Value, Value]:
    """a * b and its rounding error (without fma to about the last bit of the error)."""
    product = k.mul(a, b)
    if k.has_fma:
        return product, k.fma(a, b, k.neg(product))
    second = b if isinstance(b, Value) else k.const(a.type, b)
    a_high, b_high = leading_half(k, a), leading_half(k, second)
    a_low, b_low = k.sub(a, a_high), k.sub(second, b_high)
    error = k.sub(k.mul(a_high, b_high), product)
    error = k.add(k.add(error, k.mul(a_high, b_low)), k.mul(a_low, b_high))
    return product, k.add(error, k.mul(a_low, b_low))


def with_sign_of(k: KernelBuilder, magnitude: Value, x: Value) -> Value:
    """`magnitude`, which has no sign itself, with the sign of `x`: an instruction less than `copysign` takes."""
    signs = k.and_(k.to_integer_bits(x), -1 << (x.type.bits - 1))
    return k.bitcast(k.or_(k.to_integer_bits(magnitude), signs), x.type)


def is_integral(k: KernelBuilder, x: Value) -> Value:
    return k.compare("eq", k.truncate(x), x)


def sign_bit(k: KernelBuilder, x: Value) -> Value:
    """Whether the sign is minus, zeros and NaNs included."""
    return k.compare("lt", k.to_integer_bits(x), 0)


def through_double(function: Callable[..., Value]) -> Callable[..., Value]:
    """The same function for f32 too, computed in f64 and rounded."""

    def either(k: KernelBuilder, *arguments: Value) -> Value:
        if arguments[0].type.kind == "f64":
            return function(k, *arguments)
        return k.fptrunc(function(k, *(k.fpext(argument, F64) for argument in arguments)), F32)

    either.__doc__ = function.__doc__
    return either
