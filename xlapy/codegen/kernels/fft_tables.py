"""The numbers of a Fourier transform that are known at compile time: radices, roots of unity, chirps.

A transform of length N = r1 r2 ... is a sequence of stages, one for each radix. A length with a large prime factor is
turned into a convolution of a length without one (Bluestein): with the chirp c[n] = exp(-i pi n^2 / N),

    X[k] = c[k] * sum over n of (x[n] c[n]) conj(c[k - n])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xlapy.codegen.kernels.butterflies import LARGEST_PRIME

_SMOOTH_FACTORS = (1, 3, 5, 9, 15)  # times a power of two: the lengths of convolutions

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass over all elements: butterflies of `radix`, for each of `positions` positions in each of `runs` that
    belong together. The product of the three is the length."""

    radix: int
    positions: int
    run: int
    table: int  # where the roots of unity begin
    per_element: bool  # there is a root for each element of a run, not for the run

    @property
    def roots(self) -> int:
        """How many there are for each output of a butterfly."""
        return self.positions * (self.run if self.per_element else 1)

    def root(self, output: int, part: int) -> int:
        """Where the roots for an output of the butterflies begin (from 1 on); `part` is 0 or 1: real, imaginary."""
        return self.table + (2 * (output - 1) + part) * self.roots


@dataclass(frozen=True, slots=True)
class Chirp:
    """Bluestein's numbers: where c and the transform of the other factor begin, real parts before imaginary ones."""

    length: int  # of the convolution
    chirp: int
    factor: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to transform a length."""

    length: int
    stages: tuple[Stage, ...]
    chirp: Chirp | None = None

    @property
    def rows(self) -> int:
        """Elements that are in work at once."""
        return self.chirp.length if self.chirp else self.length


class Tables:
    """One array of numbers, filled bit by bit."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._parts: list[Array] = []
        self.size = 0

    def add(self, numbers: Array) -> int:
        """Appends complex numbers, real parts before imaginary ones; returns where they begin."""
        begin = self.size
        self._parts += [numbers.real, numbers.imag]
        self.size += 2 * numbers.size
        return begin

    @property
    def array(self) -> Array | None:
        if not self._parts:
            return None
        return np.concatenate([part.reshape(-1) for part in self._parts]).astype(self._dtype)


def recipe(length: int, short_run: int, tables: Tables) -> Recipe:
    """The stages for a length. Runs that are shorter than `short_run` get their roots element by element."""
    radices = _radices(length)
    if radices is not None:
        return Recipe(length, _stages(length, radices, short_run, tables))
    padded = _smooth_length(2 * length - 1)
    stages = _stages(padded, _radices(padded) or [], short_run, tables)
    chirp = _chirp(length)
    other = np.zeros(padded, chirp.dtype)
    other[:length] = chirp.conj()
    other[padded - length + 1 :] = chirp[:0:-1].conj()
    factor = np.fft.fft(other.astype(np.complex128)) / padded
    return Recipe(length, stages, Chirp(padded, tables.add(chirp), tables.add(factor)))


def _radices(length: int) -> list[int] | None:
    """Powers of two first, in few and equal steps, because runs are short in the beginning; None if a prime is too
    large."""
    radices = []
    twos = (length & -length).bit_length() - 1
    if twos >= 4 and twos % 3 == 1:
        radices, twos = [4, 4], twos - 4
    radices = [8] * (twos // 3) + {0: [], 1: [2], 2: [4]}[twos % 3] + radices
    rest = length >> ((length & -length).bit_length() - 1)
    for prime in range(3, LARGEST_PRIME + 1, 2):
        while rest % prime == 0:
            radices.append(prime)
            rest //= prime
    return radices if rest == 1 else None


def _smooth_length(least: int) -> int:
    return min(factor << max(0, (-(-least // factor) - 1).bit_length()) for factor in _SMOOTH_FACTORS)


def _stages(length: int, radices: list[int], short_run: int, tables: Tables) -> tuple[Stage, ...]:
    stages = []
    circle = roots_of_unity(np.arange(length), length)
    rest, run = length, 1
    for radix in radices:
        positions = rest // radix
        per_element = 1 < run < short_run
        table = 0
        if positions > 1:
            table = tables.size
            for output in range(1, radix):
                roots = circle[np.arange(positions) * output * run]
                tables.add(np.repeat(roots, run) if per_element else roots)
        stages.append(Stage(radix, positions, run, table, per_element))
        rest, run = positions, run * radix
    return tuple(stages)


def roots_of_unity(powers: Array, order: int) -> Array:
    """exp(-2 pi i power / order), from angles of at most an eighth of a turn."""
    powers = powers % order
    eighths = (8 * powers + order // 2) // order
    angles = (powers - eighths * np.longdouble(order) / 8) * (_TURN / order)
    cosines, sines = np.cos(angles), np.sin(angles)
    root = np.sqrt(np.longdouble(0.5))
    turns_re = np.array([1, root, 0, -root, -1, -root, 0, root, 1], np.longdouble)[eighths]
    turns_im = np.array([0, root, 1, root, 0, -root, -1, -root, 0], np.longdouble)[eighths]
    real = cosines * turns_re - sines * turns_im
    imag = cosines * turns_im + sines * turns_re
    return np.asarray(real.astype(np.float64) - 1j * imag.astype(np.float64))


_TURN = 8 * np.arctan(np.longdouble(1))


def _chirp(length: int) -> Array:
    squares = np.array([n * n % (2 * length) for n in range(length)], np.int64)
    return roots_of_unity(squares, 2 * length)
