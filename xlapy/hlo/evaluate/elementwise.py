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
    return np.multiply(lhs, rhs)  # numpy's product of booleans is `and`


@elementwise("subtract")
def subtract(lhs: Array, rhs: Array) -> Array:
    return np.subtract(lhs, rhs)


@elementwise("divide")
def divide(lhs: Array, rhs: Array) -> Array:
    """Integers truncate; x / 0 has all bits set; the lowest number divided by -1 is itself."""
    if not np.issubdtype(lhs.dtype, np.integer):
        return np.divide(lhs, rhs)
    safe = _nonzero(rhs)
    quotient = np.floor_divide(lhs - _truncated_remainder(lhs, safe), safe)
    if np.issubdtype(lhs.dtype, np.signedinteger):
        quotient = np.where(rhs == -1, np.negative(lhs), quotient)
    return np.where(rhs == 0, np.invert(np.zeros_like(rhs)), quotient)


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
    zero = np.where(signs(np.signbit(lhs), np.signbit(rhs)), lhs.dtype.type(-0.0), lhs.dtype.type(0.0))
    return np.where((lhs == 0) & (rhs == 0), zero, chosen)


@elementwise("power")
def power(lhs: Array, rhs: Array) -> Array:
    """Integers: exact modulo the width; a negative exponent gives the exact result for 1 and -1, else 0."""
    if not np.issubdtype(lhs.dtype, np.integer):
        return np.power(lhs, rhs)
    result = _integer_power(lhs, np.maximum(rhs, 0))
    if np.issubdtype(lhs.dtype, np.unsignedinteger):
        return result
    odd = (rhs & 1) != 0
    reciprocal = np.where(lhs == 1, 1, np.where(lhs == -1, np.where(odd, -1, 1), 0)).astype(lhs.dtype)
    return np.where(rhs < 0, reciprocal, result)


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
        return np.asarray((-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))).astype(y.dtype))
    return np.arctan2(y, x)


@elementwise("complex")
def complex_(real: Array, imaginary: Array) -> Array:
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
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small)).astype(x.dtype)


@elementwise("rsqrt")
def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


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
        return np.where(undefined, complex(np.nan, np.nan), np.where(x == 0, 0, unit)).astype(x.dtype)
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
