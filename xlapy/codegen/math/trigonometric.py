"""sin, cos, tan and their inverses.

After the reduction x = q pi/2 + r, r is a pair of the type of x.
"""

from __future__ import annotations

import math

from xlapy.codegen.ir import F32, F64, IRType, KernelBuilder, Value
from xlapy.codegen.math.coefficients import ASIN, ATAN, COS, HALF_PI, SIN, SINE, TAN_SINGLE
from xlapy.codegen.math.common import INFINITY, horner, quick_two_sum, sign_bit, squared, two_chains, two_product
from xlapy.codegen.math.rare import RareFunction
from xlapy.codegen.math.trigonometric_reduction import (
    ANGLE_LIMITS,
    ANGLES_LIBRARY,
    Reduced,
    reduce_angle,
    reduce_single,
    reduce_to_half_turns,
    reduce_to_odd_quarters,
)

# Below these the tangent is the angle, to the last bit.
_TAN_START = {"f32": 2.0**-13, "f64": 2.0**-28}
# Beyond this the square root is small enough for its rounding error not to matter.
_FOLD = 0.7

Pair = tuple[Value, Value]


def _reduced(k: KernelBuilder, x: Value) -> Reduced:
    return reduce_angle(k, x) if x.type.kind == "f64" else reduce_single(k, x)


def _sin_pair(k: KernelBuilder, r: Value, low: Value) -> Pair:
    """sin(r + low) as a sum of two."""
    z = k.mul(r, r)
    rest = k.muladd(k.mul(r, z), horner(k, z, SIN), k.mul(low, k.muladd(z, -0.5, 1.0)))
    return quick_two_sum(k, r, rest)


def _cos_pair(k: KernelBuilder, r: Value, low: Value) -> Pair:
    """cos(r + low) as a sum of two."""
    z = k.mul(r, r)
    rest = k.sub(k.mul(k.mul(z, z), horner(k, z, COS)), k.mul(r, low))
    head, error = quick_two_sum(k, 1.0, k.mul(z, -0.5))
    return quick_two_sum(k, head, k.add(error, rest))


def _bit(k: KernelBuilder, quadrant: Value, bit: int) -> Value:
    return k.compare("ne", k.and_(quadrant, bit), 0)


def _sine_of(k: KernelBuilder, x: Value, quarter_turns: int) -> Value:
    """sin(x + quarter_turns * pi/2), for none or one. With fma, a library has it if some lane's angle is large."""
    if not k.has_fma:
        return _sine_by_quadrant(k, x, quarter_turns)
    (result,) = k.if_else(
        k.any_lane(_is_large(k, x), bits=x.type.bits),
        lambda: ANY_SINES[x.type.kind, quarter_turns].call(k, x),
        lambda: _sine_by_half_turns(k, x, quarter_turns),
        likely=False,
    )
    return result


def _is_large(k: KernelBuilder, x: Value) -> Value:
    return k.compare("ge", k.fabs(x), ANGLE_LIMITS[x.type.kind])


def _sine_by_half_turns(k: KernelBuilder, x: Value, quarter_turns: int) -> Value:
    """x = n pi + r or (n + 1/2) pi + r with |r| up to pi/2, for angles below the limit: the sine, but for the sign of
    the odd n, is that of r, or of -r with the cosine for the odd ones.

    It is r + r t with t = z c + z^2 Q(z) and z = r^2. Of what is added, 0.57 at most, only z and t are rounded as much
    as that matters: by less than what makes 1 the next number above. Negative zeros get their sign back; r is tiny for
    tiny angles only, of which the cosine has none."""
    r, turns = (reduce_to_odd_quarters if quarter_turns else reduce_to_half_turns)(k, x)
    z = k.mul(r, r) if quarter_turns else squared(k, r)
    first, *others = SINE[x.type.kind]
    t = k.fma(z, first, k.mul(k.mul(z, z), horner(k, z, others)))
    bits = k.to_integer_bits(k.fma(r, t, r))
    if not quarter_turns:
        bits = k.or_(bits, k.and_(k.to_integer_bits(r), -1 << (x.type.bits - 1)))
    return k.bitcast(k.xor(bits, k.shl(turns, x.type.bits - 1)), x.type)


def _sine_by_quadrant(k: KernelBuilder, x: Value, quarter_turns: int) -> Value:
    """The sine or cosine of r up to pi/4, for angles of any size."""
    r, low, quadrant = _reduced(k, x)
    quadrant = k.add(quadrant, quarter_turns)
    sine, cosine = _sin_pair(k, r, low)[0], _cos_pair(k, r, low)[0]
    value = k.select(_bit(k, quadrant, 1), cosine, sine)
    flipped = k.select(_bit(k, quadrant, 2), k.neg(value), value)
    # The reduction turns -0 into +0.
    return flipped if quarter_turns else k.select(k.compare("eq", x, 0.0), x, flipped)


def _any_sine(type: IRType, quarter_turns: int) -> RareFunction:
    def compute(k: KernelBuilder, x: Value) -> tuple[Value]:
        by_quadrant = _sine_by_quadrant(k, x, quarter_turns)
        # Angles that are not large have the same bits in any company.
        if k.has_fma:
            return (k.select(_is_large(k, x), by_quadrant, _sine_by_half_turns(k, x, quarter_turns)),)
        return (by_quadrant,)

    name = "cosine" if quarter_turns else "sine"
    return RareFunction(f"xlapy.math.any_{name}.{type.kind}", ANGLES_LIBRARY, compute, (type,), (type,))


ANY_SINES = {(type.kind, turns): _any_sine(type, turns) for type in (F32, F64) for turns in (0, 1)}


def sin(k: KernelBuilder, x: Value) -> Value:
    """The sine."""
    return _sine_of(k, x, 0)


def cos(k: KernelBuilder, x: Value) -> Value:
    """The cosine."""
    return _sine_of(k, x, 1)


def tan(k: KernelBuilder, x: Value) -> Value:
    """The tangent."""
    start = _TAN_START[x.type.kind]
    tiny = k.compare("lt", k.fabs(x), start)
    angle = k.select(tiny, start, x)
    quotient = _double_tan(k, angle) if x.type.kind == "f64" else _single_tan(k, angle)
    return k.select(tiny, x, quotient)


def _single_tan(k: KernelBuilder, x: Value) -> Value:
    """A polynomial of r, or -1 divided by it and its rounding error."""
    r, low, quadrant = _reduced(k, x)
    z = k.mul(r, r)
    # The slope, 1 + tan(r)^2, nearly enough for a factor of `low`.
    slope = k.muladd(z, 16 / math.pi**2, 1.0)
    rest = k.muladd(k.mul(r, z), horner(k, z, TAN_SINGLE), k.mul(low, slope))
    tangent, error = quick_two_sum(k, r, rest)
    odd = _bit(k, quadrant, 1)
    quotient = k.div(k.select(odd, -1.0, tangent), k.select(odd, tangent, 1.0))
    return k.select(odd, k.muladd(k.mul(quotient, quotient), error, quotient), quotient)


def _double_tan(k: KernelBuilder, x: Value) -> Value:
    """The quotient of sine and cosine with their rounding errors."""
    r, low, quadrant = _reduced(k, x)
    sine, sine_low = _sin_pair(k, r, low)
    cosine, cosine_low = _cos_pair(k, r, low)
    odd = _bit(k, quadrant, 1)
    above, above_low = k.select(odd, k.neg(cosine), sine), k.select(odd, k.neg(cosine_low), sine_low)
    below, below_low = k.select(odd, sine, cosine), k.select(odd, sine_low, cosine_low)
    inverse = k.div(1.0, below)
    quotient = k.mul(above, inverse)
    product, error = two_product(k, quotient, below)
    rest = k.sub(k.sub(above, product), k.add(error, k.sub(k.mul(quotient, below_low), above_low)))
    return k.muladd(rest, inverse, quotient)


def atan2(k: KernelBuilder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in (-pi, pi], with the signs of zeros telling the sides of the cut."""
    width, height = k.fabs(x), k.fabs(y)
    steep = k.compare("gt", height, width)
    small, large = k.select(steep, width, height), k.select(steep, height, width)
    both_zero = k.compare("eq", large, 0.0)
    both_infinite = k.compare("eq", small, INFINITY)
    t = k.div(small, k.select(both_zero, 1.0, large))
    t = k.select(both_infinite, 1.0, t)
    angle = _atan_of_fraction(k, t)
    left = sign_bit(k, x)
    # angle, pi - angle, pi/2 - angle or pi/2 + angle, with the low part of the constant.
    half_pi_high, half_pi_low = _half_pi(k, x)
    zero = k.const(x.type, 0.0)
    base = k.select(steep, half_pi_high, k.select(left, k.mul(half_pi_high, 2.0), zero))
    base_low = k.select(steep, half_pi_low, k.select(left, k.mul(half_pi_low, 2.0), zero))
    turned = k.select(k.xor(steep, left), k.neg(angle), angle)
    result = k.add(base, k.add(turned, base_low))
    result = k.select(k.unordered(x, y), k.add(x, y), result)
    return k.copysign(result, y)


def _half_pi(k: KernelBuilder, x: Value) -> Pair:
    """pi/2 as a sum of two constants of the type of `x`."""
    if x.type.kind == "f64":
        return k.const(x.type, HALF_PI[0]), k.const(x.type, HALF_PI[1])
    high = k.const(x.type, HALF_PI[0])
    return high, k.const(x.type, HALF_PI[0] - float(high.constant or 0.0))


def _atan_of_fraction(k: KernelBuilder, t: Value) -> Value:
    """atan(t) for t between 0 and 1."""
    z = squared(k, t)
    return k.muladd(t, k.mul(z, horner(k, z, ATAN)), t)


def atan(k: KernelBuilder, x: Value) -> Value:
    """The arctangent."""
    magnitude = k.fabs(x)
    steep = k.compare("gt", magnitude, 1.0)
    angle = _atan_of_fraction(k, k.select(steep, k.div(1.0, magnitude), magnitude))
    half_pi_high, half_pi_low = _half_pi(k, x)
    turned = k.sub(half_pi_high, k.sub(angle, half_pi_low))
    return k.copysign(k.select(steep, turned, angle), x)


def _asin_excess(k: KernelBuilder, t: Value) -> Value:
    """asin(t) / t - 1 for t up to 0.7."""
    z = squared(k, t)
    return k.mul(z, two_chains(k, z, k.mul(z, z), ASIN))


def _folded(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """Whether |x| is above 0.7, and what then asin is taken of: sqrt((1 - |x|) / 2) instead of x."""
    magnitude = k.fabs(x)
    outer = k.compare("gt", magnitude, _FOLD)
    return outer, k.select(outer, k.sqrt(k.mul(k.sub(1.0, magnitude), 0.5)), x)


def asin(k: KernelBuilder, x: Value) -> Value:
    """The arcsine; pi/2 - 2 asin(sqrt((1 - |x|) / 2)) for |x| above 0.7."""
    outer, t = _folded(k, x)
    inner = k.muladd(t, _asin_excess(k, t), t)
    half_pi_high, half_pi_low = _half_pi(k, x)
    far = k.sub(half_pi_high, k.sub(k.mul(inner, 2.0), half_pi_low))
    return k.select(outer, k.copysign(far, x), inner)


def acos(k: KernelBuilder, x: Value) -> Value:
    """The arccosine."""
    outer, t = _folded(k, x)
    excess = _asin_excess(k, t)
    half_pi_high, half_pi_low = _half_pi(k, x)
    inner = k.sub(half_pi_high, k.add(t, k.muladd(t, excess, k.neg(half_pi_low))))
    twice = k.mul(k.muladd(t, excess, t), 2.0)
    left = k.sub(k.mul(half_pi_high, 2.0), k.sub(twice, k.mul(half_pi_low, 2.0)))
    return k.select(outer, k.select(k.compare("lt", x, 0.0), left, twice), inner)
