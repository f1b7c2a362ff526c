"""The numbers of a Fourier transform that are known at compile time: radices, roots of unity, chirps.

A transform of length N = r1 r2 ... is a sequence of stages, one for each radix. A length with a large prime factor is
turned into a convolution of a length without one (Bluestein): with the chirp c[n] = exp(-i pi n^2 / N),

    X[k] = c[k] * sum over n of (x[n] c[n]) conj(c[k - n])
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xlapy.codegen.libraries.fft_record import END_RADICES, LARGEST_RADIX

_SMOOTH_FACTORS = (1, 3, 5, 9, 15)  # times a power of two: the lengths of convolutions

Array = np.ndarray[Any, Any]


class Tables:
    """One array of real numbers, filled bit by bit."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._parts: list[Array] = []
        self._size = 0

    def add(self, numbers: Array, lanes: int = 1) -> int:
        """Appends complex numbers as so many real parts and as many imaginary ones in turns; returns where they begin.
        The last dimension is a multiple of `lanes`."""
        begin = self._size
        vectors = numbers.reshape(-1, lanes)
        self._parts.append(np.stack([vectors.real, vectors.imag], 1).reshape(-1))
        self._size += 2 * numbers.size
        return begin

    @property
    def array(self) -> Array:
        return np.concatenate(self._parts or [np.zeros(1)]).astype(self._dtype)


@functools.lru_cache(maxsize=64)  # of what plan and steps of a transform ask again and again
def radices_of(length: int, lanes: int) -> list[int] | None:
    """The radices of the stages, in order; None if a prime factor is too large.

    Transforms whose lanes are neighbours in memory (`lanes` of them; else it is 1) begin and end with radices that
    leave enough neighbours to fill a vector, if there are such.
    """
    twos, odd = (length & -length).bit_length() - 1, _odd_primes(length)
    if odd is None:
        return None
    choices = [odd + eights_and_fours for eights_and_fours in _powers_of_two(twos)]
    ordered = [_in_order(radices, length, lanes) for radices in choices]
    return next((radices for radices in ordered if fill_vectors(radices, length, lanes)), ordered[0])


def fill_vectors(radices: list[int], length: int, lanes: int) -> bool:
    """Whether the first and the last stage have enough neighbours for a vector."""
    return length // max(radices[0], radices[-1]) >= lanes


def _odd_primes(length: int) -> list[int] | None:
    rest = length // (length & -length)
    primes = []
    for prime in range(3, LARGEST_RADIX + 1, 2):
        while rest % prime == 0:
            primes.append(prime)
            rest //= prime
    return primes if rest == 1 else None


def _powers_of_two(twos: int) -> list[list[int]]:
    """Few and equal factors of a power of two, and smaller ones."""
    fours = 2 if twos >= 4 and twos % 3 == 1 else 0
    eights, rest = divmod(twos - 2 * fours, 3)
    rest_factor = [] if rest == 0 else [1 << rest]
    return [[8] * eights + rest_factor + [4] * fours, [4] * (twos // 2) + [2] * (twos % 2)]


def _in_order(radices: list[int], length: int, lanes: int) -> list[int]:
    """Large ones first, because runs are short in the beginning; 1 where a stage can be neither first nor last."""
    rest = sorted(radices, reverse=True)
    first = next((radix for radix in rest if radix in END_RADICES and length // radix >= lanes), None)
    first = first or next((radix for radix in rest if radix in END_RADICES), 1)
    if first > 1:
        rest.remove(first)
    last = next((radix for radix in reversed(rest) if radix in END_RADICES), 1)
    if last > 1:
        rest.remove(last)
    return [first, *rest, last]


def smooth_length(least: int) -> int:
    """A length of at least `least` whose transform is fast."""
    return min(factor << max(0, (-(-least // factor) - 1).bit_length()) for factor in _SMOOTH_FACTORS)


def roots_of_unity(powers: Array, order: int) -> Array:
    """exp(-2 pi i power / order), from angles of at most an eighth of a turn."""
    powers = powers % order
    eighths = (8 * powers + order // 2) // order
    rests = 8 * powers - eighths * order  # in eighths of the angle of one power
    cosines, sines = _of_multiples(np.abs(rests), _TURN / (8 * order))
    sines = np.where(rests < 0, -sines, sines)
    root = np.sqrt(np.longdouble(0.5))
    turns_re = np.array([1, root, 0, -root, -1, -root, 0, root, 1], np.longdouble)[eighths]
    turns_im = np.array([0, root, 1, root, 0, -root, -1, -root, 0], np.longdouble)[eighths]
    real = cosines * turns_re - sines * turns_im
    imag = cosines * turns_im + sines * turns_re
    return np.asarray(real.astype(np.float64) - 1j * imag.astype(np.float64))


def all_roots_of_unity(order: int) -> Array:
    """Those of all powers. If the order allows, those of a quarter of a turn are turned into the others."""
    if order % 4:
        return roots_of_unity(np.arange(order), order)
    quarter = roots_of_unity(np.arange(order // 4), order)
    real, imag = quarter.real, quarter.imag
    turned = np.empty((4, order // 4), quarter.dtype)
    turned.real = real, imag, -real, -imag
    turned.imag = imag, -real, -imag, real
    return turned.reshape(-1) + 0


_TURN = 8 * np.arctan(np.longdouble(1))


def _of_multiples(numbers: Array, angle: np.longdouble) -> tuple[Array, Array]:
    """The cosines and sines of so many times an angle, at most an eighth of a turn: by the theorems of addition, from
    those of the low bits and of the high bits of the numbers. Functions of that precision take long."""
    bits = int(numbers.max(initial=0)).bit_length() // 2
    low, high = numbers & ((1 << bits) - 1), numbers >> bits
    near = angle * np.arange(1 << bits)
    far = angle * (np.arange(high.max(initial=0) + 1) << bits)
    (low_cosines, low_sines), (high_cosines, high_sines) = (
        (np.cos(angles)[part], np.sin(angles)[part]) for angles, part in ((near, low), (far, high))
    )
    cosines = high_cosines * low_cosines - high_sines * low_sines
    return cosines, high_sines * low_cosines + high_cosines * low_sines


def chirp(length: int) -> Array:
    numbers = np.arange(length, dtype=np.int64)
    return roots_of_unity(numbers * numbers, 2 * length)
