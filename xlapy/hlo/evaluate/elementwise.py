"""Element-wise operations. Rows of the op table that name a numpy function need nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.evaluate.base import EVALUATORS, Value, align, elementwise, evaluator
from xlapy.hlo.evaluate.numerics import Array, convert, element_type, narrow, total_order, widen
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape

for _spec in OPS.values():
    if _spec.reference is not None:
        elementwise(_spec.name)(_spec.reference)


# -- arithmetic ----------------------------------------------------------------------------------------------------


@elementwise("add")
def add(lhs: Array, rhs: Array) -> Array:
    return np.add(lhs, rhs)  # numpy's sum of booleans is `or`


@elementwise("multiply")
def multiply(lhs: Array, rhs: Array) -> Array:
    """Of complex numbers part by part: numpy may round one product of two only together with the sum."""
    if np.issubdtype(lhs.dtype, np.complexfloating):
        a, b, c, d = lhs.real, lhs.imag, rhs.real, rhs.imag
        return _of_parts(a * c - b * d, a * d + b * c)
    return np.multiply(lhs, rhs)  # numpy's product of booleans is `and`


@elementwise("subtract")
def subtract(lhs: Array, rhs: Array) -> Array:
    return np.subtract(lhs, rhs)


@elementwise("divide")
def divide(lhs: Array, rhs: Array) -> Array:
    """Integers truncate; x / 0 has all bits set; the lowest number divided by -1 is itself."""
    if np.issubdtype(lhs.dtype, np.complexfloating):
        return _complex_quotient(lhs, rhs)
    if not np.issubdtype(lhs.dtype, np.integer):
        return np.divide(lhs, rhs)
    safe = _nonzero(rhs)
    quotient = np.floor_divide(lhs - _truncated_remainder(lhs, safe), safe)
    if np.issubdtype(lhs.dtype, np.signedinteger):
        quotient = np.where(rhs == -1, np.negative(lhs), quotient)
    return np.where(rhs == 0, np.invert(np.zeros_like(rhs)), quotient)


def _complex_quotient(lhs: Array, rhs: Array) -> Array:
    """With the infinities and zeros of C99's Annex G where numpy has NaN in both parts."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    quotient = np.divide(lhs, rhs)
    a, b, c, d = lhs.real, lhs.imag, rhs.real, rhs.imag
    endless = np.copysign(c.dtype.type(np.inf), c)
    by_zero = (rhs == 0) & ~(np.isnan(a) & np.isnan(b))
    quotient = np.where(by_zero, _of_parts(endless * a, endless * b), quotient)

    unknown = np.isnan(quotient.real) & np.isnan(quotient.imag) & ~by_zero
    large = unknown & (np.isinf(a) | np.isinf(b)) & np.isfinite(rhs)
    re, im = _unit(a) * c + _unit(b) * d, _unit(b) * c - _unit(a) * d
    quotient = np.where(large, _of_parts(np.inf * re, np.inf * im), quotient)
    small = unknown & (np.isinf(c) | np.isinf(d)) & np.isfinite(lhs)
    re, im = a * _unit(c) + b * _unit(d), b * _unit(c) - a * _unit(d)
    return np.where(small, _of_parts(0 * re, 0 * im), quotient).astype(lhs.dtype)


def _unit(part: Array) -> Array:
    """A part of an infinite number as that of a point in the same direction."""
    return np.asarray(np.copysign(np.isinf(part).astype(part.dtype), part))


@elementwise("remainder")
def remainder(lhs: Array, rhs: Array) -> Array:
    """Has the sign of the dividend; x % 0 is x for integers."""
    if not np.issubdtype(lhs.dtype, np.integer):
        return np.fmod(lhs, rhs)
    return np.where(rhs == 0, lhs, _truncated_remainder(lhs, _nonzero(rhs)))


def _nonzero(divisor: Array) -> Array:
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def _truncated_remainder(lhs: Array, rhs: Array) -> Array:
    if np.issubdtype(lhs.dtype, np.signedinteger):
        by_minus_one = rhs == -1
        result = np.fmod(lhs, np.where(by_minus_one, rhs.dtype.type(1), rhs))
        return np.where(by_minus_one, lhs.dtype.type(0), result)
    return np.fmod(lhs, rhs)


@elementwise("maximum")
def maximum(lhs: Array, rhs: Array) -> Array:
    """NaN wins, and +0 is larger than -0. Complex numbers compare by real, then imaginary part; of equal ones, each
    part is the larger one."""
    return _extremum(lhs, rhs, np.maximum, np.logical_and)


@elementwise("minimum")
def minimum(lhs: Array, rhs: Array) -> Array:
    """NaN wins, and -0 is smaller than +0. Complex numbers compare by real, then imaginary part; of equal ones, each
    part is the smaller one."""
    return _extremum(lhs, rhs, np.minimum, np.logical_or)


def _extremum(lhs: Array, rhs: Array, choose: Callable[..., Array], signs: Callable[..., Array]) -> Array:
    chosen = choose(lhs, rhs)
    if np.issubdtype(lhs.dtype, np.complexfloating):
        parts = np.empty_like(chosen)
        parts.real, parts.imag = (
            _extremum(a, b, choose, signs) for a, b in ((lhs.real, rhs.real), (lhs.imag, rhs.imag))
        )
        return np.where(lhs == rhs, parts, chosen)
    if not np.issubdtype(lhs.dtype, np.floating):
        return chosen
    zeros = (lhs == 0) & (rhs == 0)
    if not zeros.any():
        return chosen
    zero = np.where(signs(np.signbit(lhs), np.signbit(rhs)), lhs.dtype.type(-0.0), lhs.dtype.type(0.0))
    return np.where(zeros, zero, chosen)


@elementwise("power")
def power(lhs: Array, rhs: Array) -> Array:
    """Integers: exact modulo the width; a negative exponent gives the exact result for 1 and -1, else 0."""
    if np.issubdtype(lhs.dtype, np.complexfloating):
        return _complex_power(lhs, rhs)
    if not np.issubdtype(lhs.dtype, np.integer):
        return np.power(lhs, rhs)
    result = _integer_power(lhs, np.maximum(rhs, 0))
    if np.issubdtype(lhs.dtype, np.unsignedinteger):
        return result
    odd = (rhs & 1) != 0
    reciprocal = np.where(lhs == 1, 1, np.where(lhs == -1, np.where(odd, -1, 1), 0)).astype(lhs.dtype)
    return np.where(rhs < 0, reciprocal, result)


def _complex_power(z: Array, w: Array) -> Array:
    """numpy's where numbers are finite, and elsewhere e^(w log z) in polar form: a size of 0 or infinity is not lost to
    NaN as long as it is known, nor is the direction of an infinity."""
    given = np.power(z, w)
    size, angle = np.abs(z), np.angle(z)
    log_size = np.log(size)
    scale = np.exp(_vanishing_product(w.real, log_size) - _vanishing_product(w.imag, angle))
    turn = _vanishing_product(w.real, angle) + _vanishing_product(w.imag, log_size)
    polar = np.empty_like(given)
    polar.real, polar.imag = scale * np.cos(turn), np.where(turn == 0, turn, scale * np.sin(turn))
    polar[(scale == 0) & ~np.isfinite(turn)] = 0
    polar[w == 0] = 1
    is_plain = (np.isfinite(z) & np.isfinite(w) & np.isfinite(given)) | (z == 0)
    return np.asarray(np.where(is_plain, given, polar))


def _vanishing_product(x: Array, y: Array) -> Array:
    """x y, but 0 if either is, even if the other one is infinite or NaN."""
    return np.where((x == 0) | (y == 0), x.dtype.type(0), x * y)


def _integer_power(base: Array, exponent: Array) -> Array:
    """By squaring, so that it wraps as multiplication does."""
    result = np.ones_like(base + exponent)
    while np.any(exponent):
        result = np.where((exponent & 1) != 0, result * base, result)
        base = base * base
        exponent = exponent >> 1
    return result


@elementwise("atan2")
def atan2(y: Array, x: Array) -> Array:
    """Of complex numbers: -i log((x + iy) / sqrt(x^2 + y^2))."""
    if np.issubdtype(y.dtype, np.complexfloating):
        turned = _of_parts(x.real - y.imag, x.imag + y.real)
        length = np.sqrt(multiply(x, x) + multiply(y, y))
        logarithm = np.log(_complex_quotient(turned, length))
        return _of_parts(logarithm.imag, -logarithm.real)
    return np.arctan2(y, x)


@elementwise("complex")
def complex_(real: Array, imaginary: Array) -> Array:
    return _of_parts(real, imaginary)


def _of_parts(real: Array, imaginary: Array) -> Array:
    real, imaginary = np.broadcast_arrays(real, imaginary)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imaginary
    return result


# -- functions of one operand --------------------------------------------------------------------------------------


@elementwise("cbrt")
def cbrt(x: Array) -> Array:
    if np.issubdtype(x.dtype, np.complexfloating):
        return np.asarray(np.power(x, x.dtype.type(1 / 3)))
    return np.cbrt(x)


@elementwise("erf")
def erf(x: Array) -> Array:
    """By its Maclaurin series near zero and the continued fraction of erfc beyond, in f64."""
    wide = x.astype(np.float64)
    size = np.minimum(np.abs(wide), ERF_SATURATES)
    near = np.where(size < ERF_SPLIT, size, 0.0)
    far = np.where(size < ERF_SPLIT, ERF_SPLIT, size)
    value = np.where(size < ERF_SPLIT, _erf_series(near), 1.0 - _erfc_fraction(far))
    return np.where(np.isnan(wide), wide, np.copysign(value, wide)).astype(x.dtype)


ERF_SPLIT = 2.5
ERF_SATURATES = 6.0  # 1 - erf(6) is below half an ulp of 1
ERF_SERIES_TERMS = 60
ERF_FRACTION_DEPTH = 100


def _erf_series(x: Array) -> Array:
    """2 x / sqrt(pi) e^(-x^2) sum (2 x^2)^n / (1 * 3 * ... * (2n + 1)): all terms positive, so nothing cancels."""
    term = np.ones_like(x)
    total = np.ones_like(x)
    for n in range(1, ERF_SERIES_TERMS):
        term = term * (2 * x * x) / (2 * n + 1)
        total = total + term
    return np.asarray(2 * x / np.sqrt(np.pi) * np.exp(-x * x) * total)


def _erfc_fraction(x: Array) -> Array:
    """e^(-x^2) / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ...))))."""
    denominator = x
    for n in range(ERF_FRACTION_DEPTH, 0, -1):
        denominator = x + n / 2 / denominator
    return np.asarray(np.exp(-x * x) / np.sqrt(np.pi) / denominator)


@elementwise("real")
def real(x: Array) -> Array:
    return np.real(x)


@elementwise("imag")
def imag(x: Array) -> Array:
    return np.imag(x) if np.iscomplexobj(x) else np.zeros_like(x)


@elementwise("logistic")
def logistic(x: Array) -> Array:
    """For negative numbers e^x / (1 + e^x), which is still a number where e^-x would overflow."""
    if np.iscomplexobj(x):
        return _complex_quotient(np.ones_like(x), 1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small)).astype(x.dtype)


@elementwise("rsqrt")
def rsqrt(x: Array) -> Array:
    """Of complex numbers a zero for an infinite root, even next to a NaN."""
    root = np.sqrt(x)
    if not np.issubdtype(x.dtype, np.complexfloating):
        return 1 / root
    zero = root.real.dtype.type(0)
    vanishing = _of_parts(np.copysign(zero, root.real), np.copysign(zero, -root.imag))
    return np.where(np.isinf(root), vanishing, _complex_quotient(np.ones_like(x), root))


@elementwise("exponential-minus-one")
def exponential_minus_one(x: Array) -> Array:
    """Of complex numbers numpy's, but where its product is one of an infinity, and of 0 and a NaN."""
    if not np.issubdtype(x.dtype, np.complexfloating):
        return np.expm1(x)
    whole = np.exp(x)
    far = (x.real > 1) | np.isneginf(x.real)
    return _of_parts(np.where(far, whole.real - 1, np.expm1(x).real), whole.imag)


@elementwise("log-plus-one")
def log_plus_one(x: Array) -> Array:
    """Of complex numbers the logarithm of 1 + x, whose real part is log1p(re (2 + re) + im^2) / 2 where x is small."""
    if not np.issubdtype(x.dtype, np.complexfloating):
        return np.log1p(x)
    far = np.log(_of_parts(1 + x.real, x.imag))
    near = np.log1p(x.real * (2 + x.real) + x.imag * x.imag) / 2
    small = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)
    return _of_parts(np.where(small, near, far.real), far.imag)


@elementwise("round-nearest-afz")
def round_nearest_afz(x: Array) -> Array:
    whole = np.trunc(x)
    return np.asarray(np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype), x))


@elementwise("sign")
def sign(x: Array) -> Array:
    """Keeps NaN and the sign of zero; x / |x| for a complex number."""
    if np.issubdtype(x.dtype, np.complexfloating):
        size = np.abs(x)  # by part: numpy's quotient of complex numbers overflows for the smallest ones
        unit = np.empty_like(x)
        unit.real, unit.imag = x.real / size, x.imag / size
        undefined = np.isnan(x.real) | np.isnan(x.imag)
        return np.where(undefined, complex(np.nan, np.nan), np.where(x == 0, x, unit)).astype(x.dtype)
    if np.issubdtype(x.dtype, np.integer):
        return np.sign(x)
    return np.where(np.isnan(x) | (x == 0), x, np.copysign(x.dtype.type(1), x))


# -- comparison and choice -----------------------------------------------------------------------------------------

_COMPARE: dict[ComparisonDirection, Callable[..., Any]] = {
    ComparisonDirection.EQ: np.equal,
    ComparisonDirection.NE: np.not_equal,
    ComparisonDirection.GE: np.greater_equal,
    ComparisonDirection.GT: np.greater,
    ComparisonDirection.LE: np.less_equal,
    ComparisonDirection.LT: np.less,
}


@evaluator("compare")
def compare(lhs: Array, rhs: Array, *, direction: ComparisonDirection, type: ComparisonType | None) -> Array:
    key = total_order if type is ComparisonType.TOTALORDER else widen
    lhs, rhs = align(lhs, rhs)
    return np.asarray(_COMPARE[direction](key(lhs), key(rhs)))


@evaluator("select")
def select(pred: Array, on_true: Array, on_false: Array) -> Array:
    pred, on_true, on_false = align(pred, on_true, on_false)
    return np.where(pred, on_true, on_false)


@evaluator("clamp")
def clamp(min: Array, operand: Array, max: Array) -> Array:
    low, value, high = (widen(array) for array in align(min, operand, max))
    return narrow(minimum(maximum(low, value), high), element_type(operand))


# -- change of type ------------------------------------------------------------------------------------------------


@evaluator("convert")
def convert_(operand: Array, *, result: Shape) -> Array:
    return convert(operand, result.type)


@evaluator("copy")
def copy(operand: Value) -> Value:
    return operand


__all__ = ["EVALUATORS"]
