"""Numbers in text become floats of any type by one rounding, in HLO and in StableHLO."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.element_types import ALL, ElementType
from xlapy.hlo.literal import Literal
from xlapy.hlo.rounding import rounded
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.constants import dense_literal

NARROW = [element_type for element_type in ALL if element_type.is_narrow_float]


def beyond_half_way(element_type: ElementType) -> tuple[float, float]:
    """A number a little nearer to the second of two neighbours, by less than f32 can tell, and that neighbour."""
    low, high = sorted(_neighbours(element_type))
    return (low + high) / 2 * (1 + 2.0**-40), high


def _neighbours(element_type: ElementType) -> list[float]:
    numbers = (np.arange(1 << 13) / 4096 + 1).astype(element_type.dtype).astype(np.float64)
    return sorted(set(numbers.tolist()))[:2]


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_decimals_are_rounded_once(element_type: ElementType) -> None:
    number, nearest = beyond_half_way(element_type)
    assert np.float32(number) == np.float32(number / (1 + 2.0**-40))
    assert float(rounded(np.array(number), element_type)) == nearest
    shape = Shape.array(element_type, (2,))
    assert dense_literal(f"dense<[{number!r}, 0x00]>", shape).array[0] == element_type.dtype.type(nearest)
    literal: Literal = dense_literal(f"dense<{number!r}>", Shape.scalar(element_type))
    assert float(literal.array) == nearest
    hlo = f"HloModule m\nENTRY main {{ ROOT c = {element_type}[2] constant({{{number!r}, 1}}) }}"
    assert float(xlapy.evaluate(xlapy.hlo.parse(hlo))[0]) == nearest
