"""What random kernels of all families are made of: choices, dimensions, and numbers whose sums are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from xlapy.hlo.element_types import ElementType

Array = np.ndarray[Any, Any]
Choice = TypeVar("Choice")

LARGEST_NUMBER = 4
NARROW_DENSITY = {8: 0.1, 16: 0.4}
"""How many of narrow floats are not zero, by their bits: sums of so few stay whole numbers that the type has."""

ERRORS = {8: 0.2, 16: 0.01}
"""Of results of narrow floats, which are rounded more or less often."""


def pick(random: np.random.Generator, options: Sequence[Choice]) -> Choice:
    return options[int(random.integers(len(options)))]


def chance(random: np.random.Generator, probability: float) -> bool:
    return bool(random.random() < probability)


def whole_numbers(random: np.random.Generator, element_type: ElementType, dims: Sequence[int]) -> Array:
    """Small ones, whose sums no order of evaluation changes; of narrow floats few are not zero."""
    if element_type.kind == "pred":
        return random.integers(0, 2, dims).astype(bool)
    if element_type.is_complex:
        real, imaginary = random.integers(-2, 3, (2, *dims))
        return (real + 1j * imaginary).astype(element_type.dtype)
    if element_type.is_integer:
        low, high = element_type.integer_range
        return random.integers(max(low, -LARGEST_NUMBER), min(high, LARGEST_NUMBER) + 1, dims).astype(
            element_type.dtype
        )
    if element_type.is_narrow_float:
        is_there = random.random(dims) < NARROW_DENSITY.get(element_type.bits, 1)
        return (random.integers(-1, 2, dims) * is_there).astype(element_type.dtype)
    return random.integers(-LARGEST_NUMBER, LARGEST_NUMBER + 1, dims).astype(element_type.dtype)


def error_of(element_type: ElementType) -> float:
    """How far results of whole numbers may be off: only those of narrow floats are."""
    return ERRORS.get(element_type.bits, 0) if element_type.is_float else 0


def within(random: np.random.Generator, dims: Sequence[int], most: int) -> list[int]:
    """Dimensions with at most so many elements: some of them cut, be it the longest or any."""
    cut = list(dims)
    while math.prod(cut) > most:
        dim = int(np.argmax(cut)) if chance(random, 0.5) else int(random.integers(len(cut)))
        cut[dim] = max(1, cut[dim] // 3)
    return cut
