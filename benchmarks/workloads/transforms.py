"""Fourier transforms, factorizations and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import equivalents
from benchmarks.workload import Arrays, Maker, Workload

SIGNALS = {"small": (1, 256), "cache": (64, 1024), "memory": (512, 16384)}
ODD_SIGNALS = {"small": (1, 241), "cache": (64, 1000), "memory": (512, 15625)}
IMAGES = {"small": (16, 16), "cache": (256, 256), "memory": (2048, 2048)}
MATRICES = {"64": (1, 64), "256": (1, 256), "1024": (1, 1024)}
BATCHES = {"4096x3x3": (4096, 3), "1024x8x8": (1024, 8), "65536x8x8": (65536, 8)}
SMALLEST = {"4096x3x3": (4096, 3), "1048576x3x3": (1 << 20, 3)}
COUNTS = {"small": 1 << 10, "cache": 1 << 17, "memory": 1 << 24}


def complex_signals(generator: np.random.Generator, shape: Any) -> Arrays:
    parts = generator.standard_normal((*shape, 2), np.float32)
    return [parts.view(np.complex64)[..., 0]]


def half_spectra(generator: np.random.Generator, shape: Any) -> Arrays:
    (signals,) = real_signals(generator, shape)
    return [np.fft.rfft(signals).astype(np.complex64)]


def double_signals(generator: np.random.Generator, shape: Any) -> Arrays:
    (signals,) = complex_signals(generator, shape)
    return [signals.astype(np.complex128)]


def real_signals(generator: np.random.Generator, shape: Any) -> Arrays:
    return [generator.standard_normal(shape, np.float32)]


def positive_matrices(generator: np.random.Generator, size: Any) -> Arrays:
    count, rows = size
    factor = generator.standard_normal((count, rows, rows), np.float32)
    return [factor @ factor.swapaxes(1, 2) / rows + 2 * np.eye(rows, dtype=np.float32)]


def triangle_and_columns(generator: np.random.Generator, size: Any) -> Arrays:
    (matrix,) = positive_matrices(generator, size)
    return [np.linalg.cholesky(matrix), generator.standard_normal(matrix.shape, np.float32)]


def solve_triangle(triangle: Any, columns: Any) -> Any:
    return jax.lax.linalg.triangular_solve(triangle, columns, left_side=True, lower=True)


def solve_transposed_triangle(triangle: Any, columns: Any) -> Any:
    """The second half of a solution with a Cholesky factor."""
    return jax.lax.linalg.triangular_solve(triangle, columns, left_side=True, lower=True, transpose_a=True)


def solve_positive(matrix: Any, columns: Any) -> Any:
    factor = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
    return solve_transposed_triangle(factor, solve_triangle(factor, columns))


def inverse_of_3x3(matrix: Any) -> Any:
    """By cofactors: cross products of the rows over the determinant."""
    first, second, third = matrix[:, 0], matrix[:, 1], matrix[:, 2]
    columns = [jnp.cross(second, third), jnp.cross(third, first), jnp.cross(first, second)]
    determinant = (first * columns[0]).sum(-1)
    return jnp.stack(columns, -1) / determinant[:, None, None]


def symmetric_matrices(generator: np.random.Generator, size: Any) -> Arrays:
    """Their eigenvalues are about one apart."""
    (regular,) = regular_matrices(generator, size)
    shares = (regular + np.swapaxes(regular, 1, 2)) / 8
    return [shares + np.diag(np.arange(size[1], dtype=np.float32))]


def matrix_and_columns(generator: np.random.Generator, size: Any) -> Arrays:
    (matrix,) = positive_matrices(generator, size)
    return [matrix, generator.standard_normal(matrix.shape, np.float32)]


def regular_matrices(generator: np.random.Generator, size: Any) -> Arrays:
    """Far from singular, with the largest elements in any order."""
    count, rows = size
    order = np.argsort(generator.random((count, rows)), -1)
    rest = generator.standard_normal((count, rows, rows), np.float32) / rows
    return [rest + 2 * np.eye(rows, dtype=np.float32)[order]]


def regular_systems(generator: np.random.Generator, size: Any) -> Arrays:
    (matrices,) = regular_matrices(generator, size)
    return [matrices, generator.standard_normal(matrices.shape[:2], np.float32)]


def seed(_: np.random.Generator, count: Any) -> Arrays:
    return [np.array([1, 2], np.uint32), np.zeros(count, np.int8)]


def _random(name: str, draw: Callable[..., Any]) -> Workload:
    """The second input only says how many numbers are drawn."""
    return Workload("transforms", name, lambda key, like: draw(key, like.shape), seed, COUNTS, moves_memory=False)


def _of_many(name: str, function: Callable[..., Any], inputs: Maker) -> Workload:
    """Of small matrices of any kind."""
    equivalent = getattr(equivalents, f"{name}_of_matrices")
    return Workload("transforms", name, function, inputs, BATCHES, equivalent=equivalent, tolerance=16)


def _linalg(name: str, function: Callable[..., Any], inputs: Maker) -> Workload:
    return Workload("transforms", name, function, inputs, {**MATRICES, **BATCHES}, tolerance=16)


WORKLOADS = [
    Workload("transforms", "fft", jnp.fft.fft, complex_signals, SIGNALS, tolerance=4),
    Workload("transforms", "fft_of_odd_length", jnp.fft.fft, complex_signals, ODD_SIGNALS, tolerance=4),
    Workload("transforms", "rfft", jnp.fft.rfft, real_signals, SIGNALS, tolerance=4),
    Workload("transforms", "irfft", jnp.fft.irfft, half_spectra, SIGNALS, tolerance=4),
    Workload("transforms", "fft_c128", jnp.fft.fft, double_signals, SIGNALS, tolerance=4),
    Workload("transforms", "fft_2d", jnp.fft.fft2, complex_signals, IMAGES, tolerance=4),
    _linalg("cholesky", lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False), positive_matrices),
    _linalg("triangular_solve", solve_triangle, triangle_and_columns),
    _linalg("triangular_solve_transposed", solve_transposed_triangle, triangle_and_columns),
    _linalg("solve_positive", solve_positive, matrix_and_columns),
    _of_many("solve", lambda a, b: jnp.linalg.solve(a, b[..., None])[..., 0], regular_systems),
    _of_many("inverse", jnp.linalg.inv, regular_matrices),
    _of_many("determinant", jnp.linalg.det, regular_matrices),
    _of_many("orthogonal_factor", lambda a: jnp.linalg.qr(a)[0], regular_matrices),
    _of_many("exponential", equivalents.exponential_of_matrices(jnp), symmetric_matrices),
    _of_many("pseudoinverse", jnp.linalg.pinv, regular_matrices),
    Workload("transforms", "inverse_of_3x3", inverse_of_3x3, positive_matrices, SMALLEST, tolerance=16),
    _random("random_bits", jax.random.bits),
    _random("random_uniform", jax.random.uniform),
    _random("random_normal", jax.random.normal),
]
