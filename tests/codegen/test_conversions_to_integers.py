"""Floats become integers of any type: truncated, limited to what that holds, and zero for a NaN."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.hlo.element_types import element_type_named

INTEGERS = ["s2", "u2", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]


def numbers() -> np.ndarray:
    """What lies around all limits, and special numbers."""
    limits = [0.0, *(2.0**bits for bits in (1, 2, 3, 4, 7, 8, 15, 16, 23, 24, 31, 32, 53, 63, 64))]
    near = [limit + by for limit in limits for by in (-1.5, -1.0, -0.5, 0.0, 0.5, 0.75, 1.0, 1.5)]
    special = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e-45, 1e300, -1e300, 3.999, 254.99999, 255.00002]
    found = np.array([*near, *(-number for number in near), *special])
    steps = [np.nextafter(np.float32(found), np.float32(toward)).astype(np.float64) for toward in (-np.inf, np.inf)]
    return np.concatenate([found, *steps])


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("source", ["f64", "f32", "bf16", "f16"])
def test_all_limits(source: str, integer: str) -> None:
    with np.errstate(over="ignore"):
        x = numbers().astype(element_type_named(source).dtype)
    for array in (x, x[:1], x[-1:]):
        text = f"ENTRY e {{ x = {source}[{array.size}] parameter(0) ROOT c = {integer}[{array.size}] convert(x) }}"
        assert_same(xlapy.compile(text)(array), xlapy.evaluate(text, array), text)


def test_narrow_integers_take_few_instructions() -> None:
    """Limits that are floats hold a float before it is truncated: no number is looked at twice."""
    code = xlapy.compile("ENTRY e { x = f32[4096] parameter(0) ROOT c = u8[4096] convert(x) }").llvm_ir()
    assert code.count(" fcmp ") == 2
    assert code.count("fptosi") == 1
