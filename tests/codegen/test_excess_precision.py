"""`CompileOptions.excess_precision`: narrow floats are rounded where kernels store them, if programs are told so."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.targets import lesser_targets
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.text import parse

EXCESS = xlapy.CompileOptions(excess_precision=True)
NARROW = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8e4m3fn": ml_dtypes.float8_e4m3fn}
SIZES = (1, 7, 1000, 300_000)


def text_of(type: str, size: int) -> str:
    """x * x - z"""
    return f"""HloModule m
      ENTRY e {{
        x = {type}[{size}] parameter(0)
        z = {type}[{size}] parameter(1)
        p = {type}[{size}] multiply(x, x)
        ROOT s = {type}[{size}] subtract(p, z)
      }}"""


def operands(type: str, size: int) -> tuple[np.ndarray, np.ndarray, float]:
    """x and z, of whose x * x - z nothing but the last bit of the exact product is left, and that bit."""
    dtype = NARROW[type]
    step = float(ml_dtypes.finfo(dtype).eps)
    return np.full(size, 1 + step, dtype), np.full(size, 1 + 2 * step, dtype), step * step


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("type", ["bf16", "f16"])
def test_what_is_between_is_not_rounded(type: str, size: int) -> None:
    x, z, left = operands(type, size)
    np.testing.assert_array_equal(xlapy.compile(text_of(type, size), EXCESS)(x, z), np.full(size, left, x.dtype))
    np.testing.assert_array_equal(xlapy.compile(text_of(type, size))(x, z), np.zeros(size, x.dtype))


@pytest.mark.parametrize("name", sorted(lesser_targets()))
def test_on_other_targets(name: str) -> None:
    x, z, left = operands("bf16", 100)
    exe = Executable(compile_module(parse(text_of("bf16", 100)), EXCESS, lesser_targets()[name]), EXCESS)
    np.testing.assert_array_equal(exe(x, z), np.full(100, left, x.dtype))


@pytest.mark.parametrize("type", NARROW)
def test_results_are_rounded_once(type: str) -> None:
    """To nearest even, from what was computed as f32."""
    generator = np.random.default_rng(3)
    x, y, z = (generator.normal(size=999).astype(NARROW[type]) for _ in range(3))
    text = f"""HloModule m
      ENTRY e {{
        x = {type}[999] parameter(0)
        y = {type}[999] parameter(1)
        z = {type}[999] parameter(2)
        p = {type}[999] multiply(x, y)
        s = {type}[999] add(p, z)
        ROOT r = {type}[999] multiply(s, x)
      }}"""
    a, b, c = (array.astype(np.float32) for array in (x, y, z))
    np.testing.assert_array_equal(xlapy.compile(text, EXCESS)(x, y, z), ((a * b + c) * a).astype(x.dtype))


def test_conversions_are_asked_for() -> None:
    """What becomes narrow and wide again loses what the narrow type has no room for."""
    text = """HloModule m
      ENTRY e {
        x = f32[500] parameter(0)
        n = bf16[500] convert(x)
        ROOT w = f32[500] convert(n)
      }"""
    x = np.random.default_rng(4).normal(size=500).astype(np.float32)
    np.testing.assert_array_equal(xlapy.compile(text, EXCESS)(x), x.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("type", ["bf16", "f16"])
def test_bits_are_those_of_the_type(type: str) -> None:
    text = f"""HloModule m
      ENTRY e {{
        x = {type}[300] parameter(0)
        y = {type}[300] parameter(1)
        s = {type}[300] add(x, y)
        ROOT b = u16[300] bitcast-convert(s)
      }}"""
    x, y = (np.random.default_rng(seed).normal(size=300).astype(NARROW[type]) for seed in (5, 6))
    np.testing.assert_array_equal(xlapy.compile(text, EXCESS)(x, y), (x + y).view(np.uint16))


def test_nans_stay_nans() -> None:
    """Also those of f32 whose bits all lie in the half that a bf16 has not, and sums of them."""
    bits = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F80FFFF, 0xFF808000, 0x7FC00000], np.uint32)
    text = """HloModule m
      ENTRY e {
        x = f32[6] parameter(0)
        y = bf16[6] parameter(1)
        n = bf16[6] convert(x)
        s = bf16[6] add(n, y)
        p = bf16[6] multiply(s, y)
        ROOT r = bf16[6] subtract(y, p)
      }"""
    result = xlapy.compile(text, EXCESS)(bits.view(np.float32), np.ones(6, ml_dtypes.bfloat16))
    assert np.isnan(result.astype(np.float32)).all()


def test_what_is_too_large_between_is_no_infinity() -> None:
    text = """HloModule m
      ENTRY e {
        x = f16[8] parameter(0)
        p = f16[8] multiply(x, x)
        ROOT q = f16[8] divide(p, x)
      }"""
    x = np.full(8, 300, np.float16)
    assert (xlapy.compile(text, EXCESS)(x) == 300).all()
    with np.errstate(over="ignore"):
        assert np.isinf(xlapy.compile(text)(x).astype(np.float32)).all()


def softplus_normalized(x: Any) -> Any:
    y = jax.nn.softplus(x)
    return (y - y.mean(1, keepdims=True)) / jnp.sqrt(y.var(1, keepdims=True) + 1e-3)


@pytest.mark.parametrize("dims", [(8, 16, 3), (4, 30, 20), (64, 8, 8, 8)])
def test_dimensions_that_loops_merge(dims: tuple[int, ...]) -> None:
    x, y = (np.random.default_rng(seed).normal(size=dims).astype(ml_dtypes.bfloat16) for seed in (8, 9))
    weights = np.random.default_rng(10).normal(size=dims[-2:]).astype(ml_dtypes.bfloat16)

    def function(x: Any, y: Any, weights: Any) -> Any:
        return (x * weights - y) * x, jnp.where(x > y, x * weights + 1, y)

    text = jax.jit(function).lower(x, y, weights).as_text()
    a, b, c = (array.astype(np.float32) for array in (x, y, weights))
    for found, wanted in zip(xlapy.compile(text, EXCESS)(x, y, weights), function(a, b, c), strict=True):
        np.testing.assert_array_equal(found, np.asarray(wanted).astype(x.dtype))


@pytest.mark.parametrize(
    "function", [jax.nn.gelu, jax.nn.silu, jax.nn.softmax, jax.nn.mish, softplus_normalized], ids=lambda f: f.__name__
)
def test_layers_are_nearer_to_what_they_should_be(function: Any) -> None:
    """On the average: one error may make up for another one."""
    x = np.random.default_rng(7).normal(size=(64, 300)).astype(ml_dtypes.bfloat16)
    text = jax.jit(function).lower(x).as_text()
    exact = np.asarray(jax.jit(function)(x.astype(np.float32)), np.float64)
    usual, excess = (
        np.abs(xlapy.compile(text, options)(x).astype(np.float64) - exact)
        for options in (xlapy.CompileOptions(), EXCESS)
    )
    assert excess.mean() < usual.mean()
