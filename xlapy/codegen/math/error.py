"""The error function and its relatives."""

from __future__ import annotations

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import (
    ERF,
    ERF_INV_CENTER,
    ERF_INV_FAR,
    ERF_INV_TAIL,
    ERFCX,
    LOG_ERFC,
)
from xlapy.codegen.math.common import INFINITY, clamp, horner, power_of_two, scale, through_double, two_product
from xlapy.codegen.math.exponential import reduced_exp
from xlapy.codegen.math.logarithm import log1p_of_sum

# Beyond these erf is 1 to the last bit; the middle is where the polynomial for log(erfc) is centered.
_ERF_LIMIT = {"f32": 4.0, "f64": 6.0}
_ERF_MIDDLE = {"f32": 2.5, "f64": 3.875}
# Up to here the odd polynomial; then 1 - erf is small enough to hide the error of its exponent.
_ERF_NEAR = {"f32": 1.25, "f64": 1.75}
# Beyond this erfc vanishes.
_ERFC_LIMIT = 28.0
# The polynomials of erf_inv change here (in sqrt(w)); f32 never gets to the last one.
_ERF_INV_TAIL_START = 2.5
_ERF_INV_FAR_START = 4.0


def erf(k: KernelBuilder, x: Value) -> Value:
    """x + x P(x^2) up to _ERF_NEAR, then 1 - e^Q(x) with Q for log(erfc)."""
    kind = x.type.kind
    z = k.mul(x, x)
    near = k.muladd(x, horner(k, z, ERF), x)
    magnitude = k.fabs(x)
    t = k.sub(clamp(k, magnitude, _ERF_NEAR[kind], _ERF_LIMIT[kind]), _ERF_MIDDLE[kind])
    part = reduced_exp(k, horner(k, t, LOG_ERFC))
    power = power_of_two(k, part.n, x.type)
    far = k.copysign(k.sub(1.0, k.muladd(part.p, power, power)), x)
    return k.select(k.compare("lt", magnitude, _ERF_NEAR[kind]), near, far)


@through_double
def erfc(k: KernelBuilder, x: Value) -> Value:
    """1 - erf(x), accurate for large x: e^(-x^2) times a polynomial of (|x| - 4) / (|x| + 4) over 1 + 2 |x|.

    The square is kept as a sum of two, because its rounding error matters as much as its value."""
    near = k.sub(1.0, k.muladd(x, horner(k, k.mul(x, x), ERF), x))
    magnitude = clamp(k, k.fabs(x), 0.5, _ERFC_LIMIT)
    t = k.div(k.sub(magnitude, 4.0), k.add(magnitude, 4.0))
    scaled = k.div(horner(k, t, ERFCX), k.muladd(magnitude, 2.0, k.const(x.type, 1.0)))
    square, square_low = two_product(k, magnitude, magnitude)
    part = reduced_exp(k, k.neg(square), k.neg(square_low))
    tail = scale(k, k.muladd(scaled, part.p, scaled), part.n)
    far = k.select(k.compare("lt", x, 0.0), k.sub(2.0, tail), tail)
    return k.select(k.compare("lt", k.fabs(x), 0.5), near, far)


def erf_inv(k: KernelBuilder, x: Value) -> Value:
    """x P(w) with w = -log(1 - x^2), or x P(sqrt(w)) where w is large."""
    square, square_low = two_product(k, x, x)
    w = k.neg(log1p_of_sum(k, k.neg(square), k.neg(square_low)))
    root = k.sqrt(w)
    result = k.select(
        k.compare("lt", root, _ERF_INV_TAIL_START),
        horner(k, k.sub(w, 3.125), ERF_INV_CENTER),
        horner(k, k.sub(root, 3.25), ERF_INV_TAIL),
    )
    if x.type.kind == "f64":
        far = horner(k, k.sub(root, 5.0625), ERF_INV_FAR["f64"])
        result = k.select(k.compare("gt", root, _ERF_INV_FAR_START), far, result)
    end = k.compare("eq", k.fabs(x), 1.0)
    return k.select(end, k.copysign(k.const(x.type, INFINITY), x), k.mul(x, result))
