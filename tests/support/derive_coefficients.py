"""Derives the numbers of xlapy/codegen/math/coefficients.py and special_coefficients.py.

    python -m tests.support.derive_coefficients elementary > xlapy/codegen/math/coefficients.py
    python -m tests.support.derive_coefficients special > xlapy/codegen/math/special_coefficients.py

Most polynomials interpolate their function at Chebyshev nodes, in 60 digits: the error is then within a small factor of
the best possible, which one more degree pays for. Where each degree counts, or an error matters more in one place than
in another, it is the best possible, by Remez's exchange. Functions are given with their leading terms divided out,
because those are written down exactly in the emitters.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 60

Real = Any

# Even, so that no point is in the middle, where some functions are removable singularities.
MINIMAX_GRID = 400


def polynomial(function: Callable[[Real], Real], low: Real, high: Real, degree: int) -> list[float]:
    """Coefficients, constant first, of the interpolant of `degree` at the Chebyshev nodes of [low, high]."""
    count = degree + 1
    center, radius = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values = [function(center + radius * node) for node in nodes]
    # Newton's divided differences, then expansion into powers.
    points = [center + radius * node for node in nodes]
    table = list(values)
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (points[i] - points[i - order])
    result = [mp.mpf(0)] * count
    for i in range(count - 1, -1, -1):
        shifted = [mp.mpf(0), *result[:-1]]
        result = [a - points[i] * b for a, b in zip(shifted, result, strict=True)]
        result[0] += table[i]
    return [float(c) for c in result]


def rational(
    function: Callable[[Real], Real], low: Real, high: Real, above: int, below: int
) -> tuple[list[float], list[float]]:
    """Numerator and denominator, constants first, of these degrees, equal to `function` at Chebyshev nodes.

    The denominator begins with 1."""
    count = above + below + 1
    center, radius = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    nodes = [center + radius * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values = [function(x) for x in nodes]
    rows = [
        [*(x**n for n in range(above + 1)), *(-y * x**n for n in range(1, below + 1))]
        for x, y in zip(nodes, values, strict=True)
    ]
    solution = [float(c) for c in mp.lu_solve(mp.matrix(rows), mp.matrix(values))]
    return solution[: above + 1], [1.0, *solution[above + 1 :]]


def minimax(
    function: Callable[[Real], Real], weight: Callable[[Real], Real], low: Real, high: Real, degree: int
) -> list[float]:
    """Coefficients, constant first, of the polynomial of `degree` with the smallest largest error times `weight`.

    Remez's exchange: the polynomial whose weighted errors alternate, equal in size, at degree + 2 points, which then
    move to where the errors are largest. The points are those of a fine grid that excludes the middle of the range.
    """
    center, radius = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    grid = [center - radius * mp.cos(mp.pi * (2 * i + 1) / (2 * MINIMAX_GRID)) for i in range(MINIMAX_GRID)]
    exact, weights = [function(x) for x in grid], [weight(x) for x in grid]
    chosen = [round(i * (MINIMAX_GRID - 1) / (degree + 1)) for i in range(degree + 2)]
    while True:
        rows = [[*(grid[at] ** n for n in range(degree + 1)), (-1) ** i / weights[at]] for i, at in enumerate(chosen)]
        *coefficients, _ = mp.lu_solve(mp.matrix(rows), mp.matrix([exact[at] for at in chosen]))
        values = [sum(c * x**n for n, c in enumerate(coefficients)) for x in grid]
        errors = [(y - value) * w for y, value, w in zip(exact, values, weights, strict=True)]
        moved = alternating_peaks(errors, degree + 2)
        if moved == chosen:
            return [float(c) for c in coefficients]
        chosen = moved


def rounded_minimax(
    function: Callable[[Real], Real], weight: Callable[[Real], Real], low: Real, high: Real, degree: int, bits: int
) -> list[float]:
    """The same with coefficients of `bits` bits, each chosen to suit those before it, which are rounded."""
    coefficients: list[float] = []

    def rest(x: Real) -> Real:
        return (function(x) - sum(c * x**n for n, c in enumerate(coefficients))) / x ** len(coefficients)

    while len(coefficients) <= degree:
        constant = minimax(rest, lambda x: weight(x) * x ** len(coefficients), low, high, degree - len(coefficients))[0]
        coefficients.append(split(constant, bits)[0])
    return coefficients


def alternating_peaks(errors: list[Real], count: int) -> list[int]:
    """Where `count` errors of alternating sign are largest: one of each run of a sign, less the smaller ends."""
    runs = [list(run) for _, run in itertools.groupby(range(len(errors)), key=lambda i: errors[i] > 0)]
    peaks = [max(run, key=lambda i: abs(errors[i])) for run in runs]
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def near_zero(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """`function` with enough digits for the cancellation close to a removable singularity at 0."""

    def evaluate(x: Real) -> Real:
        with mp.workdps(120):
            return function(x if abs(x) > mp.mpf(10) ** -30 else mp.mpf(10) ** -30)

    return evaluate


def root(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """A function of x as one of x * x."""
    return near_zero(lambda square: function(mp.sqrt(abs(square))) if square >= 0 else function(mp.mpf(10) ** -30))


def scaled_erfc(x: Real) -> Real:
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfcx_of_quotient(t: Real) -> Real:
    """(x + 3/2) e^(x^2) erfc(x) where t = 1 - 3 / (x + 3/2)."""
    x = 3 / (1 - t) - mp.mpf("1.5")
    return (x + mp.mpf("1.5")) * mp.exp(x * x) * mp.erfc(x)


def inverse_erf(w: Real) -> Real:
    """erf_inv(x) / x where 1 - x^2 = e^-w; Newton's iteration on erfc, which keeps its digits next to 1."""
    if abs(w) < mp.mpf(10) ** -20:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    # 1 - x = e^-w / (1 + x)
    complement = mp.exp(-w) / (1 + x)
    y = mp.mpf(max(0.05, float(mp.sqrt(max(w - 1, mp.mpf("0.01"))))))
    for _ in range(200):
        step = (mp.erfc(y) - complement) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step / (1 - y * step)
        if abs(step) < mp.mpf(10) ** -50:
            break
    return y / x


def bessel(order: int, x: Real) -> Real:
    return mp.besseli(order, x) * mp.exp(-x)


def bessel_far(order: int, x: Real) -> Real:
    return bessel(order, x) * mp.sqrt(x)


def log_edges() -> list[Real]:
    """Where the numbers between LOG_LOWEST and twice that are divided: at equal distances of their encodings."""
    lowest = int(np.float32(LOG_LOWEST).view(np.int32))
    bits = np.arange(LOG_PIECES + 1, dtype=np.int32) * (1 << 23) // LOG_PIECES + lowest
    return [mp.mpf(float(edge)) for edge in bits.astype(np.int32).view(np.float32)]


def log_inverses() -> list[Real]:
    """For each piece a c such that f = c m - 1 is exact, with the least |f^3 / log(m)|, which is what rounding costs.

    Numbers below 1 have one bit more behind the point than those above, and get factors with one less. That they all
    are short enough, for |f| below 1/16, and that the logarithm of no c but 1 is less than f, is asserted."""
    inverses = []
    for low, high in itertools.pairwise(log_edges()):
        unit = 16 if high <= 1 else 32
        candidates = [mp.mpf(number) / unit for number in range(unit // 2, 2 * unit)]
        inverse = mp.mpf(1) if low < 1 < high else min(candidates, key=functools.partial(cost_of_rounding, low, high))
        largest = max(abs(inverse * low - 1), abs(inverse * high - 1))
        assert largest < mp.mpf(1) / 16
        assert inverse == 1 or abs(mp.log(inverse)) > largest
        inverses.append(inverse)
    return inverses


def cost_of_rounding(low: Real, high: Real, inverse: Real) -> Real:
    return max(abs((inverse * m - 1) ** 3 / mp.log(m)) for m in (low, high))


def significand_edges() -> list[tuple[Real, Real]]:
    """The 16 pieces of the numbers from 3/4 to 3/2, as the leading four bits behind the point number them."""
    above = [(1 + mp.mpf(n) / 16, 1 + mp.mpf(n + 1) / 16) for n in range(8)]
    below = [(mp.mpf(n) / 32, mp.mpf(n + 1) / 32) for n in range(24, 32)]
    return [*above, *below]


def significand_pieces(bits: int, behind: int) -> tuple[list[float], list[float]]:
    """For each piece a number of so many bits that makes those there close to 1, and minus its logarithm, which has so
    many bits behind the point and still is all but exact: of many such numbers the one that is so by chance. Next to 1
    it is 1, on both sides; elsewhere what is left has about the same share in the logarithm at both ends."""
    inverses, logarithms = [], []
    for low, high in significand_edges():
        if mp.mpf(1) in (low, high):
            inverses.append(1.0)
            logarithms.append(0.0)
            continue
        at_low, at_high = abs(mp.log(low)), abs(mp.log(high))
        middle = int(mp.nint(mp.log((high * at_low + low * at_high) / (at_low + at_high)) * 2**behind))
        tries = min(TRIES, 2**behind // 512)
        candidates = [mp.mpf(number) / 2**behind for number in range(middle - tries, middle + tries + 1)]
        logarithm = min(candidates, key=lambda c: distance_of_rounded(mp.exp(-c), bits))
        inverses.append(split(mp.exp(-logarithm), bits)[0])
        logarithms.append(float(logarithm))
    return inverses, logarithms


def tanh_pieces(limit: Real, bits: int, degree: int) -> list[list[float]]:
    """tanh(x) up to `limit` by polynomials of how far x is from where its piece begins: the constants of all pieces,
    then the other coefficients. A piece has the numbers of which x + 1 has the same exponent and the same `bits` behind
    the leading one of its significand; the lowest four of all these bits number it. From 9 on, where a
    piece begins, tanh is 1 but for less than a rounding."""
    columns = {number: [1.0] + [0.0] * degree for number in range(16)}
    low, size = mp.mpf(1), 2**bits
    while low - 1 < limit:
        exponent = int(mp.floor(mp.log(low, 2) + mp.mpf(10) ** -9))
        width, left = mp.mpf(2) ** (exponent - bits), low - 1
        rise = near_zero(functools.partial(_rise_of_tanh, left))
        weight = near_zero(functools.partial(_share_of_tanh, left))
        number = (127 + exponent) * size + int(low / width) - size
        columns[number % 16] = [float(mp.tanh(left)), *minimax(rise, weight, mp.mpf(0), width, degree - 1)]
        low += width
    return [[column[power] for column in columns.values()] for power in range(degree + 1)]


def _rise_of_tanh(left: Real, t: Real) -> Real:
    return (mp.tanh(left + t) - mp.tanh(left)) / t


def _share_of_tanh(left: Real, t: Real) -> Real:
    return t / mp.tanh(left + t)


def distance_of_rounded(number: Real, bits: int) -> Real:
    """How far a number is from the nearest one of so many bits, relative to itself."""
    return abs(split(number, bits)[1] / number)


def share_lost(number: Real, bits: int) -> float:
    """What a number of so many bits lacks of the one that it stands for, relative to itself."""
    rounded, rest = split(number, bits)
    return float(mp.mpf(rest) / rounded)


TRIES = 4096
LOG_LOWEST, LOG_PIECES = 0.703125, 16
LOG_NEAR_LIMIT = max(
    abs(inverse * m - 1)
    for inverse, ends in zip(log_inverses(), itertools.pairwise(log_edges()), strict=True)
    for m in ends
)
LN2 = mp.log(2)
HALF_LN2 = LN2 / 2
ATANH_LIMIT = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2
QUARTER_PI_SQUARED = (mp.pi / 4) ** 2 * mp.mpf("1.001")

# name: (meaning, function of the polynomial's variable, low, high, degree for f32, degree for f64)
POLYNOMIALS: dict[str, tuple[str, Callable[[Real], Real], Real, Real, int, int]] = {
    "LOG": (
        "(log((1 + s) / (1 - s)) - 2 s) / s^3 of s^2",
        root(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3),
        mp.mpf(0),
        ATANH_LIMIT,
        3,
        7,
    ),
    "LOG_NEAR": (
        "(f - f^2 / 2 - log(1 + f)) / (f^3 / 2)",
        near_zero(lambda f: (f - f**2 / 2 - mp.log1p(f)) * 2 / f**3),
        -LOG_NEAR_LIMIT,
        LOG_NEAR_LIMIT,
        4,
        9,
    ),
    "CBRT": ("cbrt(m)", mp.cbrt, mp.sqrt(mp.mpf("0.5")), mp.sqrt(2), 4, 6),
    "SIN": ("(sin r - r) / r^3 of r^2", root(lambda r: (mp.sin(r) - r) / r**3), mp.mpf(0), QUARTER_PI_SQUARED, 3, 6),
    "COS": (
        "(cos r - 1 + r^2 / 2) / r^4 of r^2",
        root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4),
        mp.mpf(0),
        QUARTER_PI_SQUARED,
        3,
        6,
    ),
    "ATAN": ("(atan t - t) / t^3 of t^2", root(lambda t: (mp.atan(t) - t) / t**3), mp.mpf(0), mp.mpf(1), 9, 21),
    "ASIN": (
        "(asin t - t) / t^3 of t^2",
        root(lambda t: (mp.asin(t) - t) / t**3),
        mp.mpf(0),
        mp.mpf("0.49"),
        9,
        21,
    ),
    "SINH": ("(sinh x - x) / x^3 of x^2", root(lambda x: (mp.sinh(x) - x) / x**3), mp.mpf(0), mp.mpf(1), 3, 8),
    "ERF_INV_CENTER": (
        "erf_inv(x) / x of w - 3.125, w = -log(1 - x^2)",
        near_zero(lambda t: inverse_erf(mp.mpf("3.125") + t)),
        mp.mpf("-3.125"),
        mp.mpf("3.125"),
        10,
        23,
    ),
    "ERF_INV_TAIL": (
        "erf_inv(x) / x of sqrt(w) - 3.25",
        lambda t: inverse_erf((mp.mpf("3.25") + t) ** 2),
        mp.mpf("-0.75"),
        (mp.mpf("0.9"), mp.mpf("0.75")),
        8,
        18,
    ),
    "ERF_INV_FAR": (
        "erf_inv(x) / x of sqrt(w) - 5.0625",
        lambda t: inverse_erf((mp.mpf("5.0625") + t) ** 2),
        mp.mpf("-1.0625"),
        mp.mpf("1.0625"),
        1,
        16,
    ),
    "BESSEL_I0E_NEAR": ("i0e(x) of x / 4 - 1", lambda t: bessel(0, 4 * (t + 1)), mp.mpf(-1), mp.mpf(1), 18, 26),
    "BESSEL_I0E_FAR": (
        "sqrt(x) i0e(x) of 16 / x - 1",
        lambda t: bessel_far(0, 16 / (t + 1)),
        mp.mpf("-0.9999999"),
        mp.mpf(1),
        6,
        22,
    ),
    "BESSEL_I1E_NEAR": (
        "i1e(x) / x of x / 4 - 1",
        near_zero(lambda t: bessel(1, 4 * (t + 1)) / (4 * (t + 1))),
        mp.mpf(-1),
        mp.mpf(1),
        18,
        26,
    ),
    "BESSEL_I1E_FAR": (
        "sqrt(x) i1e(x) of 16 / x - 1",
        lambda t: bessel_far(1, 16 / (t + 1)),
        mp.mpf("-0.9999999"),
        mp.mpf(1),
        6,
        22,
    ),
}


# the same for f32 only and with the smallest errors, by weight: meaning, function, weight, low, high, degree
SINGLE_ONLY: dict[str, tuple[str, Callable[[Real], Real], Callable[[Real], Real], Real, Real, int]] = {
    "TAN_SINGLE": (
        "(tan r - r) / r^3 of r^2, with relative errors of tan r",
        root(lambda r: (mp.tan(r) - r) / r**3),
        lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)),
        mp.mpf(0),
        QUARTER_PI_SQUARED,
        5,
    ),
    "ERFCX_SINGLE": (
        "(x + 3/2) e^(x^2) erfc(x) of t = 1 - 3 / (x + 3/2), with relative errors",
        erfcx_of_quotient,
        lambda t: 1 / erfcx_of_quotient(t),
        mp.mpf(-1),
        1 - 3 / mp.mpf("11.625"),
        11,
    ),
    "LOG_OF_FRACTION": (
        "(log(1 + x) - x) / x^2, with relative errors of log(1 + x)",
        near_zero(lambda x: (mp.log1p(x) - x) / x**2),
        lambda x: x**2 / mp.log1p(x),
        mp.mpf(0),
        mp.mpf(1),
        8,
    ),
}


# the same for results of bf16: errors of some 2^-16 are added to one of up to half an ulp, 2^-9
BRIEF: dict[str, tuple[str, Callable[[Real], Real], Callable[[Real], Real], Real, Real, int]] = {
    "BRIEF_EXP2": ("2^r", lambda r: mp.mpf(2) ** r, lambda r: mp.mpf(2) ** -r, mp.mpf("-0.5"), mp.mpf("0.5"), 4),
    "BRIEF_EXP2_ABOVE": ("2^r", lambda r: mp.mpf(2) ** r, lambda r: mp.mpf(2) ** -r, mp.mpf(0), mp.mpf(1), 4),
    "BRIEF_LOG": (
        "log(1 + f) / f",
        near_zero(lambda f: mp.log1p(f) / f),
        near_zero(lambda f: f / mp.log1p(f)),
        mp.sqrt(mp.mpf("0.5")) - 1,
        mp.sqrt(2) - 1,
        6,
    ),
    "BRIEF_ERF": (
        "erf(x) / x of x^2",
        root(lambda x: mp.erf(x) / x),
        root(lambda x: x / mp.erf(x)),
        mp.mpf(0),
        mp.mpf("4.84"),
        6,
    ),
    "BRIEF_ERFCX": (
        "(x + 3/2) e^(x^2) erfc(x) of t = 1 - 3 / (x + 3/2)",
        erfcx_of_quotient,
        lambda t: 1 / erfcx_of_quotient(t),
        mp.mpf(-1),
        1 - 3 / mp.mpf("11.25"),
        5,
    ),
}

# the same for both: meaning, function, weight, low, highs, degrees
FOR_BOTH: dict[str, tuple[str, Callable[[Real], Real], Callable[[Real], Real], Real, tuple[Real, Real], int, int]] = {
    "EXP": (
        "(e^r - 1 - r) / r^2, with relative errors of e^r",
        near_zero(lambda r: (mp.expm1(r) - r) / r**2),
        lambda r: r**2 * mp.exp(-r),
        -HALF_LN2,
        (HALF_LN2, HALF_LN2),
        4,
        9,
    ),
    "EXP2": (
        "(2^r - 1) / r, with relative errors of 2^r",
        near_zero(lambda r: mp.expm1(r * LN2) / r),
        lambda r: r * mp.mpf(2) ** -r,
        mp.mpf("-0.5"),
        (mp.mpf("0.5"), mp.mpf("0.5")),
        5,
        10,
    ),
    "LOG_CLOSE": (
        "(log(1 + r) - r) / r^2, with relative errors of log(1 + r)",
        near_zero(lambda r: (mp.log1p(r) - r) / r**2),
        near_zero(lambda r: abs(r**2 / mp.log1p(r))),
        mp.mpf(-1) / 32,
        (mp.mpf(1) / 16, mp.mpf(1) / 16),
        3,
        8,
    ),
    "EXP_CLOSE": (
        "(e^r - 1 - r) / r^2 up to log(2) / 32, with relative errors of e^r",
        near_zero(lambda r: (mp.expm1(r) - r) / r**2),
        lambda r: r**2 * mp.exp(-r),
        -LN2 / 32,
        (LN2 / 32, LN2 / 32),
        1,
        4,
    ),
    "TANH": (
        "(tanh r - r) / r^3 of r^2, with relative errors of tanh r",
        root(lambda r: (mp.tanh(r) - r) / r**3),
        root(lambda r: r**3 / mp.tanh(r)),
        mp.mpf(0),
        ((HALF_LN2 + mp.mpf("0.001")) ** 2, (HALF_LN2 + mp.mpf("0.001")) ** 2),
        2,
        7,
    ),
    "LOG_ERFC": (
        "log(erfc(x)) / x + 1 of x, with relative errors of erf(x)",
        near_zero(lambda x: mp.log(mp.erfc(x)) / x + 1),
        lambda x: x * mp.erfc(x) / mp.erf(x),
        mp.mpf(0),
        (mp.mpf("3.9375"), mp.mpf("5.9375")),
        8,
        23,
    ),
}


# the same for both, with coefficients that are rounded one by one: meaning, function, weight, low, high, degrees
WEIGHTED: dict[str, tuple[str, Callable[[Real], Real], Callable[[Real], Real], Real, Real, int, int]] = {
    "SINE": (
        "(sin r - r) / r^3 of r^2 up to a quarter turn, with relative errors of sin r",
        root(lambda r: (mp.sin(r) - r) / r**3),
        lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)),
        mp.mpf(0),
        4 * QUARTER_PI_SQUARED,
        3,
        7,
    ),
}


# the same as the first table for functions that are computed in f64 only: function, low, high, degree
DOUBLE_ONLY: dict[str, tuple[str, Callable[[Real], Real], Real, Real, int]] = {
    "ERF": (
        "erf(x) / x - 1 of x^2",
        root(lambda x: mp.erf(x) / x - 1),
        mp.mpf(0),
        mp.mpf("0.25"),
        8,
    ),
    "ERFCX": (
        "(1 + 2 x) e^(x^2) erfc(x) of t = (x - 4) / (x + 4)",
        lambda t: scaled_erfc(4 * (1 + t) / (1 - t)),
        mp.mpf("-7") / 9,
        mp.mpf("0.75"),
        23,
    ),
}


def both(name: str) -> dict[str, list[float]]:
    """The polynomial for each element type; a range may be a pair, one for each."""
    _, function, low, high, *degrees = POLYNOMIALS[name]
    result = {}
    for i, kind in enumerate(("f32", "f64")):
        ends = [end[i] if isinstance(end, tuple) else end for end in (low, high)]
        result[kind] = polynomial(function, ends[0], ends[1], degrees[i])
    return result


def split(number: Real, *bits: int) -> list[float]:
    """`number` as a sum of floats with that many leading bits each; the last one is a double."""
    parts = []
    for width in bits:
        exponent = mp.floor(mp.log(abs(number), 2)) + 1
        unit = mp.mpf(2) ** (exponent - width)
        part = mp.nint(number / unit) * unit
        parts.append(float(part))
        number -= part
    return [*parts, float(number)]


def split_below(number: Real, *bits: int) -> list[float]:
    """The same for a positive number, with no part beyond what is left of it, so that none is negative."""
    parts = []
    for width in bits:
        unit = mp.mpf(2) ** (mp.floor(mp.log(number, 2)) + 1 - width)
        parts.append(float(mp.floor(number / unit) * unit))
        number -= parts[-1]
    return [*parts, float(number)]


def fixed_point(number: Real, bits: int) -> tuple[float, float]:
    """`number` with that many bits behind the point, and what that leaves out."""
    high = mp.nint(number * 2**bits) / 2**bits
    return float(high), float(number - high)


def words_of_two_over_pi(count: int) -> list[int]:
    """Two zero words, then the binary digits of 2 / pi, 32 at a time."""
    with mp.workprec(32 * count + 64):
        digits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (32 * count)))
    return [0, 0, *((digits >> (32 * (count - 1 - i))) & 0xFFFFFFFF for i in range(count))]


def write_tuple(name: str, numbers: list[Any], indent: str = "") -> None:
    begin, end = f"{indent}{name} " if name else indent, "," if indent else ""
    if len(numbers) == 1:
        print(f"{begin}({numbers[0]!r},){end}")
        return
    print(f"{begin}(")
    for number in numbers:
        print(f"{indent}    {number!r},")
    print(f"{indent}){end}")


SPECIAL = frozenset(
    {
        *("ERF_INV_CENTER", "ERF_INV_TAIL", "ERF_INV_FAR"),
        *("ERF", "ERFCX", "ERFCX_SINGLE", "LOG_ERFC", "BRIEF_ERF", "BRIEF_ERFCX"),
        *("BESSEL_I0E_NEAR", "BESSEL_I0E_FAR", "BESSEL_I1E_NEAR", "BESSEL_I1E_FAR"),
    }
)
"""Polynomials of error and Bessel functions; all others are of elementary ones."""


def main(kind: str) -> None:
    """Writes the module of the `elementary` functions, or that of the `special` ones."""
    is_special = kind == "special"
    print(f'"""Numbers of {kind} functions in the vector math: polynomials, constant term first, and constants.')
    print()
    print(f"Written by `python -m tests.support.derive_coefficients {kind}`; do not edit.")
    print('"""')
    print()
    write_polynomials(lambda name: (name in SPECIAL) == is_special)
    if is_special:
        write_series()
    else:
        write_constants()


def write_polynomials(wanted: Callable[[str], bool]) -> None:
    for name, (meaning, *_) in POLYNOMIALS.items():
        if wanted(name):
            print(f"# {meaning}")
            write_each(name, both(name))
    for name, (meaning, function, weight, low, high, degree) in (SINGLE_ONLY | BRIEF).items():
        if wanted(name):
            print(f"# {meaning}")
            write_tuple(f"{name} =", minimax(function, weight, low, high, degree))
    for name, (meaning, function, weight, low, highs, *degrees) in FOR_BOTH.items():
        if wanted(name):
            print(f"# {meaning}")
            ends = zip(("f32", "f64"), highs, degrees, strict=True)
            write_each(name, {kind: minimax(function, weight, low, end, degree) for kind, end, degree in ends})
    for name, (meaning, function, weight, low, high, *degrees) in WEIGHTED.items():
        if wanted(name):
            print(f"# {meaning}")
            sizes = zip(("f32", "f64"), degrees, (24, 53), strict=True)
            write_each(name, {kind: rounded_minimax(function, weight, low, high, *size) for kind, *size in sizes})
    for name, (meaning, function, low, high, degree) in DOUBLE_ONLY.items():
        if wanted(name):
            print(f"# {meaning}")
            write_tuple(f"{name} =", polynomial(function, low, high, degree))


def write_each(name: str, tables: Mapping[str, list[float]]) -> None:
    """Numbers for each element type."""
    print(f"{name} = {{")
    for kind, numbers in tables.items():
        write_tuple(f'"{kind}":', numbers, "    ")
    print("}")


def write_constants() -> None:
    print("# tanh(x) / x of x^2, for results of bf16")
    parts = rational(root(lambda x: mp.tanh(x) / x), mp.mpf(0), mp.mpf("12.25"), 2, 2)
    for name, part in zip(("BRIEF_TANH_ABOVE", "BRIEF_TANH_BELOW"), parts, strict=True):
        write_tuple(f"{name} =", part)
    print("# tanh(x) for x up to 9, in pieces of x + 1 with four to a power of two, as their first bits number them")
    print("TANH_PIECES = (")
    for numbers in tanh_pieces(mp.mpf(9), 2, 6):
        write_tuple("", numbers, "    ")
    print(")")
    print("# (1 / sqrt(1 - e) - 1) / e for |e| < 2^-13, which are the first terms of its series")
    series = [float(mp.binomial(mp.mpf(-1) / 2, n) * (-1) ** n) for n in range(1, 5)]
    write_each("INVERSE_ROOT", {"f32": series[:1], "f64": series})
    print("# high part times an exponent is exact, even without fma")
    print(f'LN2 = {{"f32": {tuple(split(LN2, 14))}, "f64": {tuple(split(LN2, 36))}}}')
    print(f'LOG2_E = {{"f32": {tuple(split(1 / LN2, 12))}, "f64": {tuple(split(1 / LN2, 28))}}}')
    print("# parts of pi / 2 whose products with integers below 2^20 are exact")
    print(f"HALF_PI_PARTS = {tuple(split(mp.pi / 2, 33, 33, 33))}")
    print("# parts of pi / 2 to subtract with fma, times integers below 2^11 and 2^20")
    print("HALF_PI_FUSED = {")
    print(f'    "f32": {tuple(split(mp.pi / 2, 24, 11))},')
    print(f'    "f64": {tuple(split(mp.pi / 2, 53, 32))},')
    print("}")
    print("# parts of pi to subtract with fma, none of them negative")
    print("PI_BELOW = {")
    print(f'    "f32": {tuple(split_below(mp.pi, 24, 24))},')
    print(f'    "f64": {tuple(split_below(mp.pi, 53, 53))},')
    print("}")
    print(f"LN2_ROUNDED = {float(LN2)!r}")
    print(f"HALF_PI = {tuple(split(mp.pi / 2, 53))}")
    print("# what these two lack")
    print(f"HALF_PI_REST = {split(mp.pi / 2, 53, 53)[-1]}")
    print("# pieces of the numbers from this one to twice it, and what each is multiplied with to be close to 1")
    print(f"LOG_LOWEST = {LOG_LOWEST!r}")
    write_tuple("LOG_INVERSES =", [float(inverse) for inverse in log_inverses()])
    print("# minus the logarithms of these, the high parts with as many bits behind the point as that of LN2")
    for part, name in enumerate(("LOG_PIECES_HIGH", "LOG_PIECES_LOW")):
        bits = {"f32": 14, "f64": 36}
        write_each(name, {kind: [fixed_point(-mp.log(c), bits[kind])[part] for c in log_inverses()] for kind in bits})
    print("# pieces of the numbers from 3/4 to 3/2: what makes each close to 1, and minus its logarithm, likewise")
    formats = {"f32": (24, 16), "f64": (53, 42)}
    pieces = {kind: significand_pieces(*form) for kind, form in formats.items()}
    parts_of_log = {kind: split_below(LN2, behind) for kind, (_, behind) in formats.items()}
    for part, name in enumerate(("SIGNIFICAND_INVERSES", "SIGNIFICAND_LOGARITHMS")):
        write_each(name, {kind: parts[part] for kind, parts in pieces.items()})
    print("# the logarithm of 2 with as many bits behind the point, and what is left")
    below = ", ".join(f'"{kind}": {tuple(parts)}' for kind, parts in parts_of_log.items())
    print(f"LN2_BELOW = {{{below}}}")
    print("# 2^(n / 16), and what these lack, rounded, of themselves")
    roots = [mp.mpf(2) ** (mp.mpf(n) / 16) for n in range(16)]
    write_tuple("ROOTS_OF_TWO =", [float(root) for root in roots])
    sizes = {"f32": 24, "f64": 53}
    write_each("ROOTS_OF_TWO_REST", {kind: [share_lost(root, bits) for root in roots] for kind, bits in sizes.items()})
    write_tuple("TWO_OVER_PI_WORDS =", words_of_two_over_pi(40))


def write_series() -> None:
    terms = range(1, 13)
    print("# (log(gamma(y)) - (y - 1/2) log(y) + y - log(2 pi) / 2) y, of 1 / y^2")
    write_tuple("STIRLING =", [float(mp.bernoulli(2 * i) / (2 * i * (2 * i - 1))) for i in terms])
    print("# log(y) - 1 / (2 y) - digamma(y), of 1 / y^2, divided by it")
    write_tuple("DIGAMMA =", [float(mp.bernoulli(2 * i) / (2 * i)) for i in terms])
    print("# B(2 i) / (2 i)!")
    write_tuple("EULER_MACLAURIN =", [float(mp.bernoulli(2 * i) / mp.factorial(2 * i)) for i in terms])


if __name__ == "__main__":
    main(*sys.argv[1:])
