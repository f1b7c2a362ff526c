"""The numbers of Fourier transforms: radices that a library has stages for, roots of unity to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xlapy.codegen.fourier_tables import all_roots_of_unity, fill_vectors, radices_of, roots_of_unity, smooth_length
from xlapy.codegen.libraries.fft_record import END_RADICES, RADICES


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_radices_are_those_of_stages(lanes: int) -> None:
    for length in range(1, 3000):
        radices = radices_of(length, lanes)
        rest = length
        for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23):
            while rest % prime == 0:
                rest //= prime
        assert (radices is None) == (rest > 1)
        if radices is not None:
            first, *middle, last = radices
            assert math.prod(radices) == length
            assert first in END_RADICES and last in END_RADICES
            assert set(middle) <= set(RADICES)


def test_ends_leave_enough_neighbours() -> None:
    assert radices_of(1024, 16) == [8, 8, 4, 4]
    assert radices_of(64, 16) == [4, 4, 4]  # an 8 would leave only half a vector
    assert radices_of(1000, 16) == [8, 5, 5, 5]
    assert radices_of(13, 1) == [1, 13, 1]
    assert fill_vectors([4, 4, 4], 64, 16)
    assert not fill_vectors([8, 8], 64, 16)


def test_smooth_lengths_are_hardly_longer() -> None:
    for least in range(1, 5000):
        length = smooth_length(least)
        assert least <= length < max(1.34 * least, least + 2)
        assert radices_of(length, 1) is not None


@pytest.mark.parametrize("order", [1, 2, 3, 7, 8, 96, 1000, 4099])
def test_roots_are_rounded_once(order: int) -> None:
    powers = np.arange(order)
    angles = powers * (8 * np.arctan(np.longdouble(1)) / order)
    exact = np.cos(angles), -np.sin(angles)
    roots = roots_of_unity(powers, order)
    for part, wide in zip((roots.real, roots.imag), exact, strict=True):
        assert np.abs(part - wide).max() <= np.finfo(np.float64).eps / 2
    assert roots_of_unity(powers + 3 * order, order).tobytes() == roots.tobytes()
    assert all_roots_of_unity(order).tobytes() == roots.tobytes()
