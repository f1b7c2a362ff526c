"""`CompileOptions.contract`: sums take in products before they are rounded, if they are told to and the target can."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.targets import lesser_targets
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.text import parse

pytestmark = pytest.mark.skipif(not host_target().has_fma, reason="this processor rounds products")

SUMS = {"add(p, z)": (-1, 1), "add(z, p)": (-1, 1), "subtract(p, z)": (1, 1), "subtract(z, p)": (1, -1)}
"""With the signs of z and of the result."""
SIZES = (1, 7, 1000, 300_000)


def text_of(type: str, size: int, sum: str) -> str:
    return f"""HloModule m
      ENTRY e {{
        x = {type}[{size}] parameter(0)
        z = {type}[{size}] parameter(1)
        p = {type}[{size}] multiply(x, x)
        ROOT s = {type}[{size}] {sum}
      }}"""


def operands(dtype: type[np.floating], size: int, bits: int) -> tuple[np.ndarray, np.ndarray, float]:
    """x and z, of whose x * x - z nothing but the last bit of the exact product is left, and that bit."""
    step = 2.0**-bits
    return np.full(size, 1 + step, dtype), np.full(size, 1 + 2 * step, dtype), step * step


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sum", SUMS)
def test_products_are_not_rounded(sum: str, size: int) -> None:
    for type, dtype, bits in (("f32", np.float32, 13), ("f64", np.float64, 27)):
        x, z, left = operands(dtype, size, bits)
        text = text_of(type, size, sum)
        contracted = xlapy.compile(text, xlapy.CompileOptions(contract=True))
        sign, wanted = SUMS[sum]
        np.testing.assert_array_equal(contracted(x, sign * z), np.full(size, wanted * left, dtype))
        np.testing.assert_array_equal(xlapy.compile(text)(x, sign * z), np.zeros(size, dtype))


def test_narrow_products_are_rounded_all_the_same() -> None:
    x, z, _ = operands(np.float16, 1000, 6)
    exe = xlapy.compile(text_of("f16", 1000, "subtract(p, z)"), xlapy.CompileOptions(contract=True))
    np.testing.assert_array_equal(exe(x, z), np.zeros(1000, np.float16))


def test_integers_and_folds() -> None:
    text = """HloModule m
      add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
      ENTRY e {
        x = f32[64,1000] parameter(0)
        i = s32[7] parameter(1)
        p = f32[64,1000] multiply(x, x)
        zero = f32[] constant(0)
        r = f32[64] reduce(p, zero), dimensions={1}, to_apply=add
        j = s32[7] multiply(i, i)
        k = s32[7] add(j, i)
        ROOT t = (f32[64], s32[7]) tuple(r, k)
      }"""
    x = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
    i = np.arange(7, dtype=np.int32)
    sums, integers = xlapy.compile(text, xlapy.CompileOptions(contract=True))(x, i)
    np.testing.assert_allclose(sums, (x.astype(np.float64) ** 2).sum(1), rtol=1e-6)
    np.testing.assert_array_equal(integers, i * i + i)


@pytest.mark.parametrize("name", sorted(lesser_targets()))
def test_targets_without_the_instruction_round(name: str) -> None:
    target, options = lesser_targets()[name], xlapy.CompileOptions(contract=True)
    x, z, left = operands(np.float32, 100, 13)
    exe = Executable(compile_module(parse(text_of("f32", 100, "subtract(p, z)")), options, target), options)
    np.testing.assert_array_equal(exe(x, z), np.full(100, left if target.has_fma else 0, np.float32))
