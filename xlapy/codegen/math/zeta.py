"""The Hurwitz zeta function and polygamma."""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import F32, F64, KernelBuilder, Value
from xlapy.codegen.math.common import INFINITY, NAN, is_integral
from xlapy.codegen.math.exponential import exp
from xlapy.codegen.math.gamma import digamma, lgamma
from xlapy.codegen.math.logarithm import log_of_usual
from xlapy.codegen.math.power import power
from xlapy.codegen.math.rare import RareFunction
from xlapy.codegen.math.special_coefficients import EULER_MACLAURIN
from xlapy_runtime.records import Record


class _Sum(Record):
    """How far to add up single powers, and terms of the Euler-Maclaurin formula for the rest."""

    power: Callable[[KernelBuilder, Value, Value], Value]
    start: float  # what powers go on to, plus s, if they matter that long
    negligible: float
    terms: int


def _brief_power(k: KernelBuilder, base: Value, exponent: Value) -> Value:
    """The power of a positive normal number of f64, with what an f32 needs of its digits."""
    return exp(k, k.mul(log_of_usual(k, base), exponent))


_PRECISE = _Sum(power, 10.0, 2.0**-58, len(EULER_MACLAURIN))
_SINGLE = _Sum(_brief_power, 4.0, 2.0**-33, 6)
"""For results that are rounded to f32: 2^-33 of them is what each of the two may leave out."""


def _zeta_from(k: KernelBuilder, s: Value, q: Value, sum: _Sum) -> Value:
    """zeta(s, q) for s > 1 and q > 0: single powers first, then the Euler-Maclaurin formula for the rest."""
    start = k.add(s, sum.start)

    def unfinished(values: list[Value]) -> Value:
        return k.any_lane(k.compare("gt", values[2], 0.0))

    def step(values: list[Value]) -> list[Value]:
        total, base, running = values
        low = k.and_(k.compare("gt", running, 0.0), k.compare("lt", base, start))
        term = sum.power(k, base, k.neg(s))
        following = k.select(low, k.add(total, term), total)
        more = k.and_(low, k.compare("gt", term, k.mul(total, sum.negligible)))
        return [following, k.select(low, k.add(base, 1.0), base), k.select(more, k.const(s.type, 1.0), 0.0)]

    total, w, _ = k.while_loop(unfinished, step, [k.const(s.type, 0.0), q, k.const(s.type, 1.0)])
    last = sum.power(k, w, k.neg(s))
    total = k.add(total, k.mul(last, k.add(k.div(w, k.sub(s, 1.0)), 0.5)))
    inverse = k.div(1.0, w)
    # s (s + 1) ... (s + 2 i - 2) w^(-s - 2 i + 1), step by step.
    factor = k.mul(k.mul(last, s), inverse)
    for i, coefficient in enumerate(EULER_MACLAURIN[: sum.terms]):
        total = k.muladd(factor, coefficient, total)
        rising = k.mul(k.mul(k.add(s, 2.0 * i + 1), inverse), k.mul(k.add(s, 2.0 * i + 2), inverse))
        factor = k.mul(factor, rising)
    # Far beyond, every term but the first is lost, and so may be the products.
    return k.select(k.compare("eq", last, 0.0), k.select(k.compare("lt", q, w), total, 0.0), total)


def _zeta_of_negative(k: KernelBuilder, s: Value, q: Value) -> tuple[Value]:
    """zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q)) for negative q, with f = q - floor(q); for integral q,
    anything. Close to 1, f has lost digits that 1 - f has."""
    floor = k.floor(q)
    is_integral_q = k.compare("eq", floor, q)
    fraction, rest = (k.select(is_integral_q, 0.5, x) for x in (k.sub(q, floor), k.sub(k.add(floor, 1.0), q)))
    first, near, far = (_zeta_from(k, s, from_, _PRECISE) for from_ in (fraction, rest, k.sub(1.0, q)))
    difference = k.sub(near, far)
    odd = k.not_(is_integral(k, k.mul(s, 0.5)))
    return (k.add(first, k.select(odd, k.neg(difference), difference)),)


ZETA_OF_NEGATIVE = RareFunction("xlapy.math.zeta_of_negative.f64", "zetas", _zeta_of_negative, (F64, F64), (F64,))


def zeta(k: KernelBuilder, s: Value, q: Value) -> Value:
    """The sum of (q + i)^-s over i = 0, 1, 2, ..., as it is continued to negative q; f32 goes through f64."""
    if s.type.kind == "f64":
        return _zeta(k, s, q, _PRECISE)
    return k.fptrunc(_zeta(k, k.fpext(s, F64), k.fpext(q, F64), _SINGLE), F32)


def _zeta(k: KernelBuilder, s: Value, q: Value, sum: _Sum) -> Value:
    """Numbers of f64, with the digits that a sum gives."""
    valid = k.and_(k.compare("gt", s, 1.0), k.compare("lt", k.fabs(q), INFINITY))
    integral_q = k.compare("eq", k.floor(q), q)
    negative = k.and_(valid, k.compare("lt", q, 0.0))
    safe_s = k.select(valid, s, 2.0)
    positive = _zeta_from(k, safe_s, k.select(k.and_(valid, k.compare("gt", q, 0.0)), q, 1.0), sum)

    def either() -> Value:
        (continued,) = ZETA_OF_NEGATIVE.call(k, safe_s, k.select(negative, q, -0.5))
        return k.select(negative, continued, positive)

    (result,) = k.if_else(k.any_lane(negative), either, lambda: positive, likely=False)
    integral_s = is_integral(k, s)
    result = k.select(k.and_(negative, k.not_(integral_s)), NAN, result)
    even = k.and_(integral_s, is_integral(k, k.mul(s, 0.5)))
    pole = k.and_(k.compare("le", q, 0.0), integral_q)
    at_pole = k.select(k.or_(even, k.compare("eq", q, 0.0)), k.const(s.type, INFINITY), NAN)
    result = k.select(pole, at_pole, result)
    result = k.select(k.compare("eq", q, INFINITY), 0.0, result)
    result = k.select(k.compare("eq", s, INFINITY), _zeta_at_infinity(k, q), result)
    result = k.select(k.compare("lt", s, 1.0), NAN, result)
    result = k.select(k.compare("eq", s, 1.0), k.const(s.type, INFINITY), result)
    return k.select(k.unordered(s, q), NAN, result)


def _zeta_at_infinity(k: KernelBuilder, q: Value) -> Value:
    """The limit for growing s: q^-s."""
    beyond = k.select(k.compare("gt", q, 1.0), 0.0, k.const(q.type, INFINITY))
    limit = k.select(k.compare("eq", q, 1.0), 1.0, beyond)
    return k.select(k.compare("ge", q, 0.0), limit, NAN)


def polygamma(k: KernelBuilder, n: Value, x: Value) -> Value:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x); f32 goes through f64."""
    if n.type.kind == "f64":
        return _polygamma(k, n, x, _PRECISE)
    return k.fptrunc(_polygamma(k, k.fpext(n, F64), k.fpext(x, F64), _SINGLE), F32)


def _polygamma(k: KernelBuilder, n: Value, x: Value, sum: _Sum) -> Value:
    """Numbers of f64, with the digits that a sum gives."""
    zeroth = k.compare("eq", n, 0.0)
    order = k.select(zeroth, 1.0, n)
    size = k.mul(exp(k, lgamma(k, k.add(order, 1.0))), _zeta(k, k.add(order, 1.0), x, sum))
    even = is_integral(k, k.mul(order, 0.5))
    result = k.select(zeroth, digamma(k, x), k.select(even, k.neg(size), size))
    defined = k.and_(k.and_(is_integral(k, n), k.compare("ge", n, 0.0)), k.compare("lt", n, INFINITY))
    return k.select(defined, result, NAN)
