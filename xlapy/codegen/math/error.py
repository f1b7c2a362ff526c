"""The error function and its relatives."""

from __future__ import annotations

import math

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.ir_types import float_to_bits
from xlapy.codegen.math.coefficients import EXP, LN2, LN2_ROUNDED
from xlapy.codegen.math.common import (
    INFINITY,
    NAN,
    at_least,
    at_most,
    clamp,
    format_of,
    horner,
    nearest_power,
    quick_two_sum,
    scale,
    squared,
    two_chains,
    two_product,
    with_sign_of,
)
from xlapy.codegen.math.exponential import reduced_exp
from xlapy.codegen.math.logarithm import log_of_sum
from xlapy.codegen.math.quotient import inner_quotient
from xlapy.codegen.math.special_coefficients import (
    ERF,
    ERF_INV_CENTER,
    ERF_INV_FAR,
    ERF_INV_TAIL,
    ERFCX,
    ERFCX_SINGLE,
    LOG_ERFC,
)

# Beyond these erf is 1 to the last bit.
_ERF_LIMIT = {"f32": 3.9375, "f64": 5.9375}
# Beyond these erfc vanishes.
_ERFC_LIMIT = {"f32": 10.125, "f64": 28.0}
# Up to here erfc is 1 to the last bit in f32, and squares of what is squared are no subnormals.
_ERFC_START = 2.0**-30
# Up to here x^2 is nothing beside 1, and what the square loses is no subnormal.
_ERF_INV_START = {"f32": 2.0**-30, "f64": 2.0**-60}
# The polynomial for e^(x^2) erfc(x) in f32 is one of 1 - 3 / (x + 1.5), and gives a multiple of 1 / (x + 1.5).
_ERFC_OFFSET = 1.5
# Powers of two that are scaled by this are normal numbers for all results of erfc.
_ERFC_EXPONENT = 64
# The polynomials of erf_inv change here (in sqrt(w)); f32 never gets to the last one.
_ERF_INV_TAIL_START = 2.5
_ERF_INV_FAR_START = 4.0


def erf(k: KernelBuilder, x: Value) -> Value:
    """The integral of 2 / sqrt(pi) e^(-t^2) from 0 to x.

    1 - e^Q(|x|) with Q for log(erfc), everywhere: with e^Q = 2^n (1 + p) it is (1 - 2^n) - 2^n p, and -p for n = 0.
    So a small result is as accurate as Q, which is -|x| + |x| P(|x|)."""
    kind = x.type.kind
    magnitude = at_most(k, k.fabs(x), _ERF_LIMIT[kind])
    square = squared(k, magnitude)
    exponent = k.muladd(magnitude, two_chains(k, magnitude, square, LOG_ERFC), k.neg(magnitude))
    n, power = nearest_power(k, exponent, 1 / math.log(2), 0)
    # With fma one part will do: what it lacks counts n times, but e^Q, of which that is a share, is 2^n.
    r = exponent
    for part in (LN2_ROUNDED,) if k.has_fma else LN2[kind]:
        r = k.muladd(n, -part, r)
    p = k.muladd(r, k.mul(r, two_chains(k, r, squared(k, r), EXP)), r)
    return with_sign_of(k, k.muladd(k.neg(power), p, k.sub(1.0, power)), x)


def erfc(k: KernelBuilder, x: Value) -> Value:
    """1 - erf(x), accurate for large x."""
    return _erfc_single(k, x) if x.type.kind == "f32" else _erfc_double(k, x)


def _erfc_single(k: KernelBuilder, x: Value) -> Value:
    """e^(-x^2) P(1 - 3 q) q with q = 1 / (|x| + 3/2), or 2 less that for negative x."""
    magnitude = clamp(k, k.fabs(x), _ERFC_START, _ERFC_LIMIT["f32"])
    total = k.add(magnitude, _ERFC_OFFSET)
    q = k.div(1.0, total)
    t = k.muladd(q, -2 * _ERFC_OFFSET, k.const(x.type, 1.0))
    r, number = _reduced_negative_square(k, magnitude)
    # e^(-x^2) / 2^n - 1, and what q lacks.
    p = k.add(r, k.muladd(k.mul(r, r), horner(k, r, EXP), _error_of_reciprocal(k, q, total, magnitude)))
    # The number has a few bits more than an exponent takes, which are shifted out.
    q = k.bitcast(k.add(k.to_integer_bits(q), k.shl(number, format_of(x.type).mantissa)), x.type)
    tail = (_tail_fused if k.has_fma else _tail_unfused)(k, t, p, q)
    # 0 + tail or 2 - tail, and one rounding of subnormal results.
    bits = k.to_integer_bits(x)
    two_or_zero = k.bitcast(k.and_(k.ashr(bits, x.type.bits - 1), float_to_bits(2.0, x.type.bits)), x.type)
    power = with_sign_of(k, k.const(x.type, 2.0**-_ERFC_EXPONENT), x)
    vanishes = k.compare("ge", magnitude, _ERFC_LIMIT["f32"])
    return k.muladd(tail, k.select(vanishes, 0.0, power), two_or_zero)


def _tail_fused(k: KernelBuilder, t: Value, p: Value, q: Value) -> Value:
    """P (1 + p) q as q + q (s (1 + p) + p) with P = 1 + s: small sums have small rounding errors.

    The product comes in front of p, and P is two chains, because with two vectors in 16 registers the time is that of
    the longest chain, and that LLVM writes those of P down side by side."""
    constant, *others = ERFCX_SINGLE
    s = two_chains(k, t, k.mul(t, t), [constant - 1, *others])
    return k.fma(q, k.fma(s, k.add(p, 1.0), p), q)


def _tail_unfused(k: KernelBuilder, t: Value, p: Value, q: Value) -> Value:
    """The same, with the rounding errors of P and of the product."""
    constant, *others = ERFCX_SINGLE
    rest, rest_low = two_product(k, horner(k, t, others), t)
    scaled, scaled_low = quick_two_sum(k, k.const(t.type, constant), rest)
    scaled_low = k.add(scaled_low, rest_low)
    product, product_low = two_product(k, scaled, q)
    return k.add(product, k.muladd(product, p, k.muladd(q, scaled_low, product_low)))


def _error_of_reciprocal(k: KernelBuilder, q: Value, total: Value, x: Value) -> Value:
    """1 - q (x + 3/2), which is what a `q` that is rounded lacks, relative to it; `total` is the sum, rounded."""
    lost = k.sub(x, k.sub(total, _ERFC_OFFSET))
    if k.has_fma:
        return k.fma(k.neg(q), lost, k.fma(k.neg(q), total, k.const(x.type, 1.0)))
    product, product_low = two_product(k, q, total)
    return k.sub(k.sub(k.sub(1.0, product), product_low), k.mul(q, lost))


def _reduced_negative_square(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """r, and n + 64 in the low bits, with e^(-x^2) = 2^n e^r; the square is exact, because its error matters as much as
    its value."""
    high, low = LN2["f32"]
    shift = format_of(x.type).round_shift + _ERFC_EXPONENT
    shifted = k.muladd(k.mul(x, x), -1 / math.log(2), k.const(x.type, shift))
    n, number = k.sub(shifted, shift), k.to_integer_bits(shifted)
    if k.has_fma:
        return k.muladd(n, -low, k.fma(k.neg(x), x, k.mul(n, -high))), number
    square, square_low = two_product(k, x, x)
    return k.sub(k.sub(k.mul(n, -high), square), k.add(square_low, k.mul(n, low))), number


def _erfc_double(k: KernelBuilder, x: Value) -> Value:
    """e^(-x^2) times a polynomial of (|x| - 4) / (|x| + 4) over 1 + 2 |x|, or 1 - erf(x) for small x.

    The square is kept as a sum of two, because its rounding error matters as much as its value."""
    near = k.sub(1.0, k.muladd(x, horner(k, squared(k, x), ERF), x))
    magnitude = clamp(k, k.fabs(x), 0.5, _ERFC_LIMIT["f64"])
    t = inner_quotient(k, k.sub(magnitude, 4.0), k.add(magnitude, 4.0))
    scaled = inner_quotient(k, horner(k, t, ERFCX), k.muladd(magnitude, 2.0, k.const(x.type, 1.0)))
    square, square_low = two_product(k, magnitude, magnitude)
    part = reduced_exp(k, k.neg(square), k.neg(square_low))
    scaled = k.select(k.compare("ge", magnitude, _ERFC_LIMIT["f64"]), 0.0, scaled)
    tail = scale(k, k.muladd(scaled, part.p, scaled), part.n)
    far = k.select(k.compare("lt", x, 0.0), k.sub(2.0, tail), tail)
    return k.select(k.compare("lt", k.fabs(x), 0.5), near, far)


def erf_inv(k: KernelBuilder, x: Value) -> Value:
    """x P(w) with w = -log(1 - x^2), or x P(sqrt(w)) where w is large."""
    magnitude = k.fabs(x)
    reached = at_least(k, magnitude, _ERF_INV_START[x.type.kind])
    square, square_low = two_product(k, reached, reached)
    total, error = quick_two_sum(k, 1.0, k.neg(square))
    w = k.neg(log_of_sum(k, *quick_two_sum(k, total, k.sub(error, square_low))))
    root = k.sqrt(w)
    result = k.select(
        k.compare("lt", root, _ERF_INV_TAIL_START),
        horner(k, k.sub(w, 3.125), ERF_INV_CENTER),
        horner(k, k.sub(root, 3.25), ERF_INV_TAIL),
    )
    if x.type.kind == "f64":
        far = horner(k, k.sub(root, 5.0625), ERF_INV_FAR["f64"])
        result = k.select(k.compare("gt", root, _ERF_INV_FAR_START), far, result)
    end = k.select(k.compare("eq", magnitude, 1.0), k.copysign(k.const(x.type, INFINITY), x), NAN)
    return k.select(k.compare("lt", magnitude, 1.0), k.mul(x, result), end)
