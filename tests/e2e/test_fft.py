"""Native Fourier transforms against scipy: every kind, lengths of every sort, one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft

import xlapy
from tests.support.machine import LIMITS
from xlapy import CompileOptions, ops
from xlapy.builder import XlaOp
from xlapy.codegen.target import host_target
from xlapy_runtime.records import replaced

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
    target = replaced(host_target(), vector_bytes=vector_bytes)
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: target)
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


@pytest.mark.parametrize("shape", [(1100, 2048), (1100, 2009), (140_000, 15), (34, 256, 256)])
def test_large_results_bypass_the_caches(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that begin with lines of the caches and others, many side by side, and dimensions in place."""
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: replaced(host_target(), l3_bytes=0))
    count = len(shape) - 1
    for kind in ("FFT", "IRFFT"):
        operand = random_operand(kind, shape, double=kind == "IRFFT")
        lengths = shape[-count:]
        found = transform(kind, operand, lengths)
        assert_accurate(found, operand, kind, lengths, WORST_ERROR)
        builder = xlapy.XlaBuilder("threads")
        computation = builder.build(ops.Fft(builder.parameter(0, xlapy.Shape.of(operand)), kind, lengths))
        for threads in (1, 3, 8):
            same = xlapy.compile(computation, CompileOptions(num_threads=threads))(operand)
            assert same.tobytes() == found.tobytes()


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


def test_the_code_of_a_program_does_not_depend_on_the_length() -> None:
    """All of it is the library's."""

    def lines(length: int) -> int:
        builder = xlapy.XlaBuilder("code")
        x = builder.parameter(0, xlapy.Shape.array(np.complex64, (3, length)))
        return len(xlapy.compile(builder.build(ops.Fft(x, "FFT", (length,)))).llvm_ir().splitlines())

    assert lines(7) == lines(60) == lines(101) < 50


def test_equal_transforms_share_their_tables() -> None:
    def constant_bytes(count: int) -> int:
        builder = xlapy.XlaBuilder("shared")
        x = builder.parameter(0, xlapy.Shape.array(np.complex64, (512,)))
        for _ in range(count):
            x = ops.Fft(x, "FFT", (512,))
        return int(xlapy.compile(builder.build(x)).memory_analysis()["constant_bytes"])

    assert constant_bytes(3) == constant_bytes(1)


def test_transforms_in_a_loop() -> None:
    """Four times a transform is the operand again, but for its factor."""
    operand = random_operand("FFT", (5, 90), double=True)
    builder = xlapy.XlaBuilder("loop")
    x = builder.parameter(0, xlapy.Shape.of(operand))
    start = [np.int32(0), x]

    def step(count: XlaOp, value: XlaOp) -> list[XlaOp]:
        return [count + 1, ops.Fft(value, "FFT", (90,))]

    loop = ops.While(lambda count, value: ops.Lt(count, 4), step, start)
    computation = builder.build(ops.GetTupleElement(loop, 1))
    found = xlapy.compile(computation, CompileOptions(verify=True))(operand)
    np.testing.assert_allclose(found, operand * 90**2, rtol=1e-12, atol=1e-10)


def test_nothing_to_transform() -> None:
    for kind, shape in (("FFT", (0, 8)), ("RFFT", (0, 8)), ("IRFFT", (0, 8)), ("IFFT", (3, 0))):
        operand = random_operand(kind, shape, double=False)
        assert transform(kind, operand, (shape[-1],)).size == 0


def test_profile_and_explanation_name_the_passes() -> None:
    operand = random_operand("FFT", (64, 128), double=False)
    builder = xlapy.XlaBuilder("profiled")
    exe = xlapy.compile(builder.build(ops.Fft(builder.parameter(0, xlapy.Shape.of(operand)), "FFT", (64, 128))))
    assert "fft" in exe.explain(LIMITS)
    assert "fft" in str(exe.profile(operand))


def test_against_xla() -> None:
    """Many transforms in one program."""
    shapes = [((4, 48), 1), ((2, 30, 18), 2), ((3, 4, 5, 6), 3), ((3, 131), 1), ((20, 64), 2)]
    operands = [random_operand("FFT", shape, double=False) for shape, _ in shapes]

    def program(*arrays: Any) -> list[Any]:
        results = []
        for array, (_, count) in zip(arrays, shapes, strict=True):
            axes = tuple(range(-count, 0))
            results += [jnp.fft.fftn(array, axes=axes), jnp.fft.ifftn(array, axes=axes)]
            results += [jnp.fft.rfftn(array.real, axes=axes), jnp.fft.irfftn(array, axes=axes)]
        return results

    lowered = jax.jit(program).lower(*operands)
    expected = lowered.compile()(*operands)
    for found, wanted in zip(xlapy.compile(lowered.as_text())(*operands), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-6 * np.abs(wanted).max())
