"""The regularized incomplete beta function. f32 goes through f64, as for the gamma functions."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.common import INFINITY, NAN, through_double
from xlapy.codegen.math.exponential import exp
from xlapy.codegen.math.gamma import EPSILON, iterate, lgamma
from xlapy.codegen.math.logarithm import log, log1p_of_any


@through_double
def regularized_incomplete_beta(k: KernelBuilder, a: Value, b: Value, x: Value) -> Value:
    """I_x(a, b), by the continued fraction of I_x(a, b) or of 1 - I_(1-x)(b, a), whichever converges fast."""
    positive = k.and_(k.compare("gt", a, 0.0), k.compare("gt", b, 0.0))
    finite = k.and_(k.compare("lt", a, INFINITY), k.compare("lt", b, INFINITY))
    inside = k.and_(k.compare("gt", x, 0.0), k.compare("lt", x, 1.0))
    valid = k.and_(k.and_(positive, finite), inside)
    a, b = k.select(valid, a, 1.0), k.select(valid, b, 1.0)
    safe = k.select(valid, x, 0.5)
    near = k.compare("lt", k.mul(safe, k.add(k.add(a, b), 2.0)), k.add(a, 1.0))
    scale = k.sub(lgamma(k, k.add(a, b)), k.add(lgamma(k, a), lgamma(k, b)))
    exponent = k.add(k.add(k.mul(a, log(k, safe)), k.mul(b, log1p_of_any(k, k.neg(safe)))), scale)
    first, second = k.select(near, a, b), k.select(near, b, a)
    fraction = _fraction(k, first, second, k.select(near, safe, k.sub(1.0, safe)), valid)
    result = k.div(exp(k, exponent), k.mul(first, fraction))
    result = k.select(near, result, k.sub(1.0, result))
    edge = k.or_(k.compare("eq", x, 0.0), k.compare("eq", x, 1.0))
    outside = k.select(k.and_(k.and_(positive, finite), edge), x, NAN)
    return k.select(valid, result, outside)


def _fraction(k: KernelBuilder, a: Value, b: Value, x: Value, active: Value) -> Value:
    """1 + d1 / (1 + d2 / (1 + ...)), by Lentz's method, an odd and an even part at a time:

    d(2m+1) = -(a + m) (a + b + m) x / ((a + 2m) (a + 2m + 1)),  d(2m) = m (b - m) x / ((a + 2m - 1) (a + 2m))"""

    def extended(numerator: Value, c: Value, d: Value) -> tuple[Value, Value]:
        return k.add(k.div(numerator, c), 1.0), k.div(1.0, k.muladd(numerator, d, 1.0))

    def step(values: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        count, c, d, total = values
        m = k.sub(count, 1.0)
        below = k.muladd(m, 2.0, a)
        rising = k.mul(k.add(a, m), k.add(k.add(a, b), m))
        odd = k.neg(k.div(k.mul(rising, x), k.mul(below, k.add(below, 1.0))))
        c, d = extended(odd, c, d)
        total = k.mul(total, k.mul(c, d))
        below = k.add(below, 2.0)
        even = k.div(k.mul(k.mul(count, k.sub(b, count)), x), k.mul(k.sub(below, 1.0), below))
        c, d = extended(even, c, d)
        change = k.mul(c, d)
        converged = k.compare("le", k.fabs(k.sub(change, 1.0)), 4 * EPSILON)
        return k.not_(converged), [c, d, k.mul(total, change)]

    one = k.const(a.type, 1.0)
    return iterate(k, active, step, [one, k.const(a.type, 0.0), one])[2]
