"""Quotients of bytes and constants: the bits of a division, without one."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.irlab import HAS_FMA
from xlapy.codegen.math.quotient import BYTES, has_exact_quotients

DIVISORS = [255.0, 127.5, -127.0, 3.0, 0.1, 0.229, 1e-3, 7e9, 1e-17, 2.0**59]


def text(divisor: float, type: str = "u8", result: str = "f32") -> str:
    return f"""ENTRY e {{ x = {type}[32,300] parameter(0)  f = {result}[32,300] convert(x)
        c = {result}[] constant({divisor!r})  b = {result}[32,300] broadcast(c), dimensions={{}}
        ROOT q = {result}[32,300] divide(f, b) }}"""


@pytest.mark.parametrize("type", ["u8", "s8"])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_have_the_bits_of_a_division(divisor: float, type: str) -> None:
    assert has_exact_quotients(float(np.float32(divisor)))
    dtype = np.uint8 if type == "u8" else np.int8
    x = np.arange(9600).astype(dtype).reshape(32, 300)
    compiled = xlapy.compile(text(divisor, type))
    expected = x.astype(np.float32) / np.float32(divisor)
    np.testing.assert_array_equal(np.asarray(compiled(x)).view(np.uint32), expected.view(np.uint32))
    assert (" fdiv <" in compiled.llvm_ir()) != HAS_FMA


@pytest.mark.parametrize("divisor", [1.9999998807907104, 16777215.0])
def test_quotients_that_would_come_out_wrong_are_divided(divisor: float) -> None:
    """Of these, all bits are ones."""
    assert not has_exact_quotients(divisor)
    x = np.arange(9600).astype(np.uint8).reshape(32, 300)
    compiled = xlapy.compile(text(divisor))
    np.testing.assert_array_equal(compiled(x), x.astype(np.float32) / np.float32(divisor))
    assert " fdiv <" in compiled.llvm_ir()


@pytest.mark.parametrize("divisor", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e-30, 1e30])
def test_extreme_divisors_divide(divisor: float) -> None:
    assert not has_exact_quotients(divisor)


def test_most_divisors_need_no_division() -> None:
    random = np.random.default_rng(0)
    divisors = [*map(float, range(1, 300)), *map(float, np.exp(8 * random.normal(size=300)).astype(np.float32))]
    assert np.mean([has_exact_quotients(divisor) for divisor in divisors]) > 0.98
    assert all(-128 <= byte <= 255 for byte in BYTES)


@pytest.mark.parametrize(("type", "result"), [("s16", "f32"), ("u8", "f64"), ("s32", "f32")])
def test_others_divide(type: str, result: str) -> None:
    assert " fdiv <" in xlapy.compile(text(255.0, type, result)).llvm_ir()
