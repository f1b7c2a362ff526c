"""log, log1p and log2.

x = 2^e (1 + f),  sqrt(1/2) < 1 + f < sqrt(2),  s = f / (2 + f)
log(1 + f) = f - f^2/2 + s (f^2/2 + R),  R = log((1 + s) / (1 - s)) / s - 2

Where instructions take numbers apart, and lanes choose among others, with c of a table so that m c is close to 1:
x = 2^e m,  3/4 <= m < 3/2,  r = m c - 1,  log(m) = -log(c) + log(1 + r)
"""

from __future__ import annotations

from xlapy.codegen.ir import F32, F64, IRType, KernelBuilder, Value
from xlapy.codegen.ir_types import float_to_bits
from xlapy.codegen.math.coefficients import (
    LN2,
    LN2_BELOW,
    LOG,
    LOG2_E,
    LOG_CLOSE,
    LOG_INVERSES,
    LOG_LOWEST,
    LOG_NEAR,
    LOG_OF_FRACTION,
    LOG_PIECES_HIGH,
    LOG_PIECES_LOW,
    SIGNIFICAND_INVERSES,
    SIGNIFICAND_LOGARITHMS,
)
from xlapy.codegen.math.common import (
    INFINITY,
    NAN,
    exponent_of_field,
    format_of,
    horner,
    leading_half,
    quick_two_sum,
    split_exponent,
    split_normal,
    two_product,
    two_sum,
)
from xlapy.codegen.math.quotient import inner_quotient
from xlapy.codegen.math.rare import RareFunction


def _half_square_and_rest(k: KernelBuilder, f: Value) -> tuple[Value, Value]:
    """f^2/2, and what then makes f - f^2/2 into log(1 + f)."""
    half_square = k.mul(k.mul(f, f), 0.5)
    s = inner_quotient(k, f, k.add(f, 2.0))
    z = k.mul(s, s)
    return half_square, k.mul(s, k.muladd(z, horner(k, z, LOG), half_square))


def with_specials(k: KernelBuilder, x: Value, result: Value) -> Value:
    """The logarithm where x is positive and finite is `result`."""
    result = k.select(k.compare("lt", x, INFINITY), result, x)
    return k.select(k.compare("gt", x, 0.0), result, k.select(k.compare("eq", x, 0.0), k.const(x.type, -INFINITY), NAN))


def _combined(k: KernelBuilder, e: Value, f: Value, low: Value | None = None) -> Value:
    """e ln 2 + log(1 + f) + low, the small terms first."""
    ln2_high, ln2_low = LN2[f.type.kind]
    half_square, rest = _half_square_and_rest(k, f)
    small = k.muladd(e, ln2_low, rest)
    if low is not None:
        small = k.add(small, low)
    return k.muladd(e, ln2_high, k.sub(f, k.sub(half_square, small)))


def log(k: KernelBuilder, x: Value) -> Value:
    """The natural logarithm; a library has it if some lane is not a positive normal number, but where instructions take
    any number apart."""
    if k.module.has_permute:
        return _log_by_significand(k, x)
    is_rare = k.any_lane(is_unusual(k, x), bits=x.type.bits)
    (result,) = k.if_else(
        is_rare, lambda: ANY_LOGARITHMS[x.type.kind].call(k, x), lambda: log_of_usual(k, x), likely=False
    )
    return result


def _log_by_significand(k: KernelBuilder, x: Value, error: Value | None = None) -> Value:
    """log(x + error) of any number, without a division: its exponent is an infinity where it is none, and its
    significand a NaN. The sum of e log(2) and the logarithm that a piece has is exact, but for the low part of log(2),
    which has the sign of the high one, for infinities."""
    kind = x.type.kind
    m, e = k.significand(x), k.exponent(x)
    e = k.select(k.compare("lt", m, 1.0), k.add(e, 1.0), e)
    piece = k.lshr(k.to_integer_bits(m), format_of(x.type).mantissa - _PIECE_BITS)
    inverse = k.lookup(x.type, SIGNIFICAND_INVERSES[kind], piece)
    r = k.fma(m, inverse, -1.0)
    ln2_high, ln2_low = LN2_BELOW[kind]
    high = k.fma(e, ln2_high, k.lookup(x.type, SIGNIFICAND_LOGARITHMS[kind], piece))
    square, bent = k.mul(r, r), horner(k, r, LOG_CLOSE)
    if error is None:
        low = k.fma(square, bent, r)
    else:
        # 1 / x is c 2^-e / (1 + r), and 1 - r is enough of that for what is so small.
        share = k.mul(k.scalef(error, k.neg(e)), inverse)
        low = k.add(r, k.fma(square, bent, k.fma(k.neg(share), r, share)))
    return k.add(high, k.fma(e, k.const(x.type, ln2_low), low))


def log_of_usual(k: KernelBuilder, x: Value) -> Value:
    """The same for positive normal numbers."""
    m, e, _ = split_normal(k, x)
    return _combined(k, e, k.sub(m, 1.0))


def is_unusual(k: KernelBuilder, x: Value) -> Value:
    """Whether a number is not positive, normal and finite: by its bits, of which those of usual ones are moved to the
    lowest integers, because AVX2 compares none without a sign."""
    least, infinite = (float_to_bits(number, x.type.bits) for number in (format_of(x.type).lowest_normal, INFINITY))
    lowest = -1 << (x.type.bits - 1)
    moved = k.add(k.to_integer_bits(x), lowest - least)
    return k.compare("ge", moved, lowest + (infinite - least))


def _log_of_any(k: KernelBuilder, x: Value) -> tuple[Value]:
    m, e = split_exponent(k, x)
    return (with_specials(k, x, _combined(k, e, k.sub(m, 1.0))),)


_PIECE_BITS = 4
"""Of a significand behind the point, which number its piece."""

_MANY_BITS = 1 << 10
"""Of what is computed together of logarithms that the library has: arrays with a zero here and there are not that
rare, and four vectors of 32 bytes take hardly longer than two."""


def _any_logarithm(type: IRType) -> RareFunction:
    symbol = f"xlapy.math.log_of_any.{type.kind}"
    return RareFunction(symbol, "logarithms", _log_of_any, (type,), (type,), _MANY_BITS // type.bits)


ANY_LOGARITHMS = {type.kind: _any_logarithm(type) for type in (F32, F64)}


def log1p(k: KernelBuilder, x: Value) -> Value:
    """log(1 + x), accurate for small x, whose sign zeros keep.

    From 0 to 1 an f32 gets the bits of `log1p_of_fraction` also where nothing tells that it lies there: what an
    operation gives must not hang on which others are in its kernel. That costs 0.1 ns for each element that is not
    known, and saves 0.12 ns for each that is."""
    result = log1p_of_any(k, x)
    if x.type.kind != "f32":
        return result
    is_fraction = k.and_(k.compare("ge", x, 0.0), k.compare("le", x, 1.0))
    return k.select(is_fraction, log1p_of_fraction(k, x), result)


def log1p_of_any(k: KernelBuilder, x: Value) -> Value:
    """log(1 + x) by way of the exponent of 1 + x; what this sum loses is added at the end."""
    total, error = two_sum(k, k.const(x.type, 1.0), x)
    return k.copysign(with_specials(k, total, log_of_sum(k, total, error)), x)


def log_of_sum(k: KernelBuilder, total: Value, error: Value) -> Value:
    """log(total + error) for a normal positive `total`, and an `error` of at most an ulp of it; anything for others."""
    if k.module.has_permute:
        return _log_by_significand(k, total, error)
    m, e, doubled_inverse = split_normal(k, total)
    f = k.sub(m, 1.0)
    # error / total = error / 2^e / m, and 1 / m is 1 - f, nearly enough for what is so small.
    return _combined(k, e, f, k.mul(k.mul(error, doubled_inverse), k.muladd(f, -0.5, 0.5)))


def log1p_of_fraction(k: KernelBuilder, x: Value) -> Value:
    """`log1p` of an f32 from 0 to 1: x + x^2 P(x), with no exponent to take out and nothing to divide.

    For f64 the polynomial would be as long as what it saves."""
    return k.muladd(k.mul(x, horner(k, x, LOG_OF_FRACTION)), x, x)


def log2(k: KernelBuilder, x: Value) -> Value:
    """The logarithm to base 2, exact for powers of two; the leading halves are multiplied without rounding."""
    scale_high, scale_low = LOG2_E[x.type.kind]
    m, e = split_exponent(k, x)
    f = k.sub(m, 1.0)
    half_square, rest = _half_square_and_rest(k, f)
    high = leading_half(k, k.sub(f, half_square))
    low = k.add(k.sub(k.sub(f, high), half_square), rest)
    value_low = k.add(k.mul(k.add(low, high), scale_low), k.mul(low, scale_high))
    total, error = two_sum(k, e, k.mul(high, scale_high))
    return with_specials(k, x, k.add(total, k.add(error, value_low)))


def log_pair(k: KernelBuilder, x: Value, exponent: Value | None = None) -> tuple[Value, Value]:
    """log(x) + exponent * log(2) as a sum of two, for normal positive x; what pow needs. Any x does no harm.

    x = 2^e m, and c of a table, for the piece where m is, makes f = c m - 1 small and exact. Of
    log(x) = e ln 2 - log(c) + f - f^2/2 + ..., all but the last terms lose nothing."""
    m, e, piece = _split_into_pieces(k, x)
    if exponent is not None:
        e = k.add(e, exponent)
    inverse = k.lookup(x.type, LOG_INVERSES, piece)
    if k.has_fma:
        f = k.fma(m, inverse, -1.0)
    else:
        product, product_low = two_product(k, m, inverse)
        f = k.add(k.sub(product, 1.0), product_low)
    ln2_high, ln2_low = LN2[x.type.kind]
    high = k.muladd(e, ln2_high, k.lookup(x.type, LOG_PIECES_HIGH[x.type.kind], piece))
    low = k.muladd(e, ln2_low, k.lookup(x.type, LOG_PIECES_LOW[x.type.kind], piece))
    high, error = quick_two_sum(k, high, f)
    square, square_low = two_product(k, k.mul(f, -0.5), f)
    rest = k.muladd(k.mul(square, f), horner(k, f, LOG_NEAR), square_low)
    high, other_error = quick_two_sum(k, high, square)
    return high, k.add(k.add(low, error), k.add(rest, other_error))


def _split_into_pieces(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """x = m * 2^e with m between LOG_LOWEST and twice that, both floats; the low bits of the third are m's piece."""
    form = format_of(x.type)
    bits = k.to_integer_bits(x)
    above = k.sub(bits, float_to_bits(LOG_LOWEST, x.type.bits))
    exponent_field = k.and_(above, -1 << form.mantissa)
    m = k.bitcast(k.sub(bits, exponent_field), x.type)
    piece = k.lshr(above, form.mantissa - (len(LOG_INVERSES) - 1).bit_length())
    return m, exponent_of_field(k, exponent_field, x.type), piece
