"""Native Fourier transforms against scipy: every kind, lengths of every sort, one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import xlapy
from xlapy import CompileOptions, ops
from xlapy.codegen.target import host_target

Array = np.ndarray[Any, Any]

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": scipy.fft.fftn,
    "IFFT": scipy.fft.ifftn,
    "RFFT": scipy.fft.rfftn,
    "IRFFT": scipy.fft.irfftn,
}
WORST_ERROR = 6  # units of the last place of the largest element

SHAPES = [
    ("one element", (3, 1), 1),
    ("two", (2,), 1),
    ("one stage across lanes", (40, 4), 1),
    ("an odd prime across lanes", (17, 7), 1),
    ("a long prime across lanes", (33, 29), 1),
    ("several stages across lanes", (50, 30), 1),
    ("runs of 1, 8 and 64", (2, 512), 1),
    ("odd factors only", (2, 675), 1),
    ("radix 2 and the rest", (250,), 1),
    ("radix 13", (1, 169), 1),
    ("a prime of the second order", (3, 101), 1),
    ("a long prime", (1009,), 1),
    ("columns that fill no vector", (5, 6, 3), 2),
    ("columns in uneven blocks", (12, 70), 2),
    ("a prime number of rows", (37, 20), 2),
    ("three dimensions, one at a time in place", (3, 8, 5, 12), 3),
    ("three short dimensions", (2, 3, 2), 3),
]


def random_operand(kind: str, shape: tuple[int, ...], double: bool) -> Array:
    generator = np.random.default_rng(len(shape) + shape[-1])
    if kind == "RFFT":
        return generator.normal(size=shape).astype(np.float64 if double else np.float32)
    if kind == "IRFFT":
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    values = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    return values.astype(np.complex128 if double else np.complex64)


def transform(kind: str, operand: Array, lengths: tuple[int, ...]) -> Array:
    builder = xlapy.XlaBuilder(kind)
    x = builder.parameter(0, xlapy.Shape.of(operand))
    computation = builder.build(ops.Fft(x, kind, lengths))
    return xlapy.compile(computation, CompileOptions(verify=True))(operand)


def assert_accurate(found: Array, operand: Array, kind: str, lengths: tuple[int, ...], worst: float) -> None:
    wide = operand.astype(np.complex128 if np.iscomplexobj(operand) else np.float64)
    expected = TRANSFORMS[kind](wide, s=lengths, axes=range(operand.ndim - len(lengths), operand.ndim))
    assert found.shape == expected.shape
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= worst * np.finfo(found.dtype).eps, error / np.finfo(found.dtype).eps


@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize(("shape", "count"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_transform(kind: str, shape: tuple[int, ...], count: int) -> None:
    lengths = shape[len(shape) - count :]
    double = len(shape) % 2 == 0
    operand = random_operand(kind, shape, double)
    assert_accurate(transform(kind, operand, lengths), operand, kind, lengths, WORST_ERROR)


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_narrower_vectors(vector_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = host_target().with_vector_bytes(vector_bytes)
    monkeypatch.setattr("xlapy.compiler.host_target", lambda: target)
    for kind, shape, count in (("FFT", (2, 96), 1), ("RFFT", (20, 18), 2), ("IRFFT", (40, 30), 1)):
        lengths = shape[len(shape) - count :]
        for double in (False, True):
            operand = random_operand(kind, shape, double)
            assert_accurate(transform(kind, operand, lengths), operand, kind, lengths, WORST_ERROR)


def test_a_transform_split_among_threads_is_the_same() -> None:
    operand = random_operand("FFT", (300, 256), double=False)
    builder = xlapy.XlaBuilder("split")
    x = builder.parameter(0, xlapy.Shape.of(operand))
    computation = builder.build(ops.Fft(x, "FFT", (300, 256)))
    one, two = (xlapy.compile(computation, CompileOptions(num_threads=n))(operand) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    assert_accurate(one, operand, "FFT", (300, 256), WORST_ERROR)


def test_imaginary_parts_that_a_real_result_cannot_have_do_not_count() -> None:
    for length in (2, 8, 9, 256):
        half = random_operand("IRFFT", (2, length), double=True)
        plain = half.copy()
        plain[:, 0].imag = 0
        if length % 2 == 0:
            plain[:, -1].imag = 0
        assert transform("IRFFT", half, (length,)).tobytes() == transform("IRFFT", plain, (length,)).tobytes()


def test_spectra_between_other_operations() -> None:
    """Operand and result are temporaries, whose memory is used again, as is the scratch memory."""
    signal = np.random.default_rng(0).normal(size=(4, 600)).astype(np.float32)
    builder = xlapy.XlaBuilder("filter")
    x = builder.parameter(0, xlapy.Shape.of(signal))
    spectrum = ops.Fft(x * 2.0, "RFFT", (600,))
    halved = spectrum * ops.ConvertElementType(ops.Constant(builder, np.float32(0.5)), np.complex64)
    computation = builder.build(ops.Fft(halved, "IRFFT", (600,)) + x)
    exe = xlapy.compile(computation, CompileOptions(verify=True))
    np.testing.assert_allclose(exe(signal), 2 * signal, rtol=1e-4, atol=1e-5)


def test_tables_and_scratch_are_in_the_program() -> None:
    operand = random_operand("FFT", (1024,), double=False)
    builder = xlapy.XlaBuilder("tables")
    computation = builder.build(ops.Fft(builder.parameter(0, xlapy.Shape.of(operand)), "FFT", (1024,)))
    exe = xlapy.compile(computation)
    assert exe.memory_analysis()["temporary_bytes"] >= 2 * operand.nbytes
    assert math.isclose(abs(exe(operand)[0]), abs(operand.sum()), rel_tol=1e-5)
