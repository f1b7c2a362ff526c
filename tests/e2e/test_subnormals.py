"""Subnormal results: kept, or zeros where a program is told so, whatever the calling thread had set."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import xlapy
from tests.support.native import record

SIZES = (1, 7, 1 << 20)
"""A scalar in registers, less than a vector, and what threads share out."""

_MXCSR_AT, _FENV_BYTES, _FLUSHES = 28, 32, 0x8000
"""In what the C library of x86-64 calls a floating-point environment."""


def small_products(size: int) -> tuple[xlapy.hlo.HloModule, np.ndarray, np.ndarray]:
    x, y = np.full(size, 2.0**-100, np.float32), np.full(size, 2.0**-40, np.float32)
    return record(lambda x, y: x * y, x, y), x, y


@contextmanager
def flushing_thread() -> Iterator[None]:
    """This thread takes subnormal results for zeros meanwhile, as after a library that was compiled for speed."""
    libm = ctypes.CDLL("libm.so.6")
    before = (ctypes.c_uint8 * _FENV_BYTES)()
    libm.fegetenv(before)
    changed = (ctypes.c_uint8 * _FENV_BYTES).from_buffer_copy(before)
    control = ctypes.c_uint32.from_buffer(changed, _MXCSR_AT)
    control.value |= _FLUSHES
    libm.fesetenv(changed)
    try:
        yield
    finally:
        libm.fesetenv(before)


needs_glibc = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="sets a register by way of glibc"
)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("num_threads", [1, 3])
def test_results_are_kept_or_flushed(size: int, num_threads: int) -> None:
    module, x, y = small_products(size)
    kept = xlapy.compile(module, xlapy.CompileOptions(num_threads=num_threads))
    flushed = xlapy.compile(module, xlapy.CompileOptions(num_threads=num_threads, flush_subnormals=True))
    for _ in range(3):  # in turns: neither leaves anything behind, in this thread or in others
        np.testing.assert_array_equal(kept(x, y), np.full(size, 2.0**-140, np.float32))
        np.testing.assert_array_equal(flushed(x, y), np.zeros(size, np.float32))
    assert x[0] * y[0] == np.float32(2.0**-140)


def test_exponentials_far_below_a_maximum() -> None:
    """Of what is masked by -100, as in attention by windows."""
    x = np.linspace(-110, -80, 10_000, dtype=np.float32)
    module = record(xlapy.ops.Exp, x)
    normal = x > np.log(np.finfo(np.float32).tiny)
    kept = xlapy.compile(module)(x)
    flushed = xlapy.compile(module, xlapy.CompileOptions(flush_subnormals=True))(x)
    assert np.count_nonzero(kept[~normal]) > 4000
    np.testing.assert_array_equal(flushed[normal], kept[normal])
    np.testing.assert_array_equal(flushed[~normal], 0)


@needs_glibc
@pytest.mark.parametrize("size", SIZES)
def test_what_the_calling_thread_has_set_does_not_matter_and_stays(size: int) -> None:
    module, x, y = small_products(size)
    kept = xlapy.compile(module)
    kept(x, y)
    with flushing_thread():
        result = kept(x, y)
        flushes_still = x[0] * y[0] == 0
    np.testing.assert_array_equal(result, np.full(size, 2.0**-140, np.float32))
    assert flushes_still
