"""Literals are compared bit for bit, however their elements are kept."""

from __future__ import annotations

import numpy as np
import pytest

from xlapy.hlo.element_types import F32
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape

SIZES = [1, 2, 255, 256, 257, 5000]


@pytest.mark.parametrize("size", SIZES)
def test_a_splat_has_equal_bits_to_its_end(size: int) -> None:
    values = np.full(size, np.nan, np.float32)
    assert Literal(values).is_splat
    values[-1] = -np.nan
    assert Literal(values).is_splat == (size == 1)


def test_an_empty_array_is_no_splat() -> None:
    assert not Literal(np.zeros((0, 4), np.float32)).is_splat


@pytest.mark.parametrize("size", SIZES)
def test_equal_elements_are_equal_however_they_are_kept(size: int) -> None:
    spread = Literal(np.float32(2), Shape.array(F32, (2, size)))
    whole = Literal(np.full((2, size), 2, np.float32))
    turned = Literal(np.full((size, 2), 2, np.float32).T)
    assert spread == whole == turned
    assert hash(spread) == hash(whole) == hash(turned)


def test_large_arrays_that_differ_in_one_element_are_different() -> None:
    values = np.zeros(5000, np.float32)
    values[1] = -0.0
    assert Literal(values) != Literal(np.zeros(5000, np.float32))
