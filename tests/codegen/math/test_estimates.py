"""Quotients and inverse roots that begin with what one instruction estimates."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.accuracy import apply, errors
from xlapy.codegen.target import host_target

LANES = (1, 2, 4, 8, 12, 16, 24, 32, 64)
FLOATS = [(np.float32, np.uint32), (np.float64, np.uint64)]


@pytest.mark.parametrize(("dtype", "bits"), FLOATS)
def test_inverse_roots_have_the_same_bits_in_vectors_of_any_length(dtype: type, bits: type) -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, np.iinfo(bits).max, 9600, dtype=bits, endpoint=True).view(dtype)
    expected = apply("rsqrt", x, lanes=1)
    with np.errstate(all="ignore"):
        assert errors(expected, 1 / np.sqrt(x.astype(np.longdouble))).max() < 1.5
    for lanes in LANES:
        np.testing.assert_array_equal(apply("rsqrt", x, lanes=lanes).view(bits), expected.view(bits))


@pytest.mark.parametrize(("dtype", "bits"), FLOATS)
def test_inverse_roots_of_special_numbers(dtype: type, bits: type) -> None:
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -info.smallest_subnormal, 1.0, 4.0, 0.25], dtype)
    expected = np.array([np.inf, -np.inf, 0, *[np.nan] * 4, 1, 0.5, 2], dtype)
    np.testing.assert_array_equal(apply("rsqrt", x), expected)
    limits = np.array([info.smallest_subnormal, info.tiny / 2, info.tiny, info.max], dtype)
    assert errors(apply("rsqrt", limits), 1 / np.sqrt(limits.astype(np.longdouble))).max() < 1.5


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quotients_of_all_bytes(dtype: type) -> None:
    numbers = np.arange(256).astype(np.uint8).view(dtype)
    x, y = (side.ravel() for side in np.meshgrid(numbers, numbers[numbers != 0]))
    assert_quotients(x, y)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.uint32, np.int32])
def test_quotients_next_to_integers(dtype: type) -> None:
    random, limits = np.random.default_rng(1), np.iinfo(dtype)
    y = np.exp2(random.uniform(0, limits.bits - 1.1, 30_000)).astype(np.int64)
    quotient = (limits.max // y * random.uniform(size=y.size)).astype(np.int64)
    x = quotient * y + random.integers(-1, 2, y.size)
    if limits.min < 0:
        x, y = x * random.choice([-1, 1], x.size), y * random.choice([-1, 1], y.size)
    assert_quotients(x.clip(limits.min, limits.max).astype(dtype), y.astype(dtype))


def assert_quotients(x: np.ndarray, y: np.ndarray) -> None:
    type = f"{'u' if x.dtype.kind == 'u' else 's'}{8 * x.itemsize}"
    compiled = xlapy.compile(f"""ENTRY e {{ x = {type}[{x.size}] parameter(0)  y = {type}[{x.size}] parameter(1)
        ROOT q = {type}[{x.size}] divide(x, y) }}""")
    wide_x, wide_y = x.astype(np.int64), y.astype(np.int64)
    exact = np.abs(wide_x) // np.abs(wide_y) * np.sign(wide_x) * np.sign(wide_y)
    np.testing.assert_array_equal(compiled(x, y), exact.astype(x.dtype))
    is_estimated = host_target().has_estimates and x.itemsize != 2
    assert ("rcp14" in compiled.llvm_ir()) == is_estimated
