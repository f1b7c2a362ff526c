"""Factors, systems and spectra of the evaluator against numpy and scipy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg

from xlapy.hlo.attributes import FftType, Transpose
from xlapy.hlo.evaluate.fft import fft
from xlapy.hlo.evaluate.linalg import cholesky, householder_product, lu, qr_decomposition, triangular_solve

Array = np.ndarray[Any, Any]


def random(dims: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=dims)
    return (values + 1j * generator.normal(size=dims) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def positive(dims: tuple[int, ...], dtype: str) -> Array:
    factor = random(dims, dtype)
    return factor @ np.swapaxes(factor.conj(), -1, -2) + np.eye(dims[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_factors_are_those_of_scipy(dtype: str) -> None:
    a = positive((5, 5), dtype)
    for lower in (True, False):
        given = np.where(np.tri(5, dtype=bool) == lower, a, np.nan) + np.diag(np.diag(a)) * 0
        given[np.diag_indices(5)] = np.diag(a)
        np.testing.assert_allclose(cholesky(given, lower=lower), scipy.linalg.cholesky(a, lower=lower), rtol=1e-12)


def test_factors_of_a_batch_and_of_what_is_not_positive() -> None:
    a = np.stack([np.eye(2), -np.eye(2), np.full((2, 2), np.nan), np.diag([1.0, 0.0])])
    nan = np.nan
    expected = [np.eye(2), [[nan, 0], [nan, nan]], [[nan, 0], [nan, nan]], [[nan, 0], [nan, nan]]]
    np.testing.assert_array_equal(cholesky(a, lower=True), expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("dims", [(5, 5), (7, 3), (3, 7)], ids=str)
def test_pivots_are_those_of_lapack(dims: tuple[int, ...], dtype: str) -> None:
    a = random((4, *dims), dtype)
    for matrix, factors, pivots, order in zip(a, *lu(a), strict=True):
        expected, numbers = scipy.linalg.lu_factor(matrix)
        np.testing.assert_array_equal(pivots, numbers)
        assert np.abs(factors - expected).max() <= 64 * np.finfo(dtype).eps
        lower = np.tril(factors, -1)[:, : min(dims)] + np.eye(dims[0], min(dims), dtype=dtype)
        product = lower @ np.triu(factors)[: min(dims)]
        assert np.abs(product - matrix[order]).max() <= 64 * np.finfo(dtype).eps


def test_pivots_of_equals_of_nans_and_of_nothing() -> None:
    """The first of the largest; a NaN is larger than nothing, and nothing is larger than it."""
    nan = np.nan
    columns = np.array([[1, -1, 1], [nan, 5, 7], [1, nan, 2], [0, 0, 0], [1, 0, nan]])
    _, pivots, _ = lu(np.stack([columns] + [np.zeros((5, 3))] * 2, -1))
    assert pivots[:, 0].tolist() == [0, 0, 2, 0, 0]
    factors, pivots, order = lu(np.zeros((2, 0, 3), np.float32))
    assert (factors.shape, pivots.shape, order.shape) == ((2, 0, 3), (2, 0), (2, 0))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("dims", [(5, 5), (7, 3), (3, 7), (1, 1)], ids=str)
def test_reflections_are_those_of_lapack(dims: tuple[int, ...], dtype: str) -> None:
    a = random((4, *dims), dtype)
    a[1] = 0
    a[2, 1:, 0] = 0
    a[3] *= np.finfo(dtype).max / 64
    most = 64 * np.finfo(dtype).eps
    packed, taus = qr_decomposition(a)
    for matrix, reflections, factors in zip(a, packed, taus, strict=True):
        (expected, expected_factors), _ = scipy.linalg.qr(matrix, mode="raw")
        assert abs(reflections - expected).max() <= most * max(1, abs(expected).max())
        assert abs(factors - expected_factors).max() <= most
    if dims[0] < dims[1]:
        return
    q = householder_product(packed, taus)
    assert abs(np.swapaxes(q.conj(), 1, 2) @ q - np.eye(dims[1])).max() <= most
    first = householder_product(packed, taus[:, :1])
    expected = np.eye(dims[0]) - taus[:, :1, None] * (vector := vectors_of(packed))[:, :, None] * vector[:, None].conj()
    assert abs(first - expected[:, :, : dims[1]]).max() <= most


def vectors_of(packed: Array) -> Array:
    """The first ones, with what is not stored."""
    return np.concatenate([np.ones_like(packed[:, :1, 0]), packed[:, 1:, 0]], 1)


def test_reflections_of_nothing_and_of_nans() -> None:
    """A NaN makes all of its column NaN, and from its own step on the columns beside it."""
    packed, taus = qr_decomposition(np.zeros((2, 0, 3), np.float32))
    assert (packed.shape, taus.shape) == ((2, 0, 3), (2, 0))
    assert householder_product(np.zeros((2, 3, 0)), np.zeros((2, 0))).shape == (2, 3, 0)
    a = np.eye(3)
    a[2, 1] = np.nan
    packed, taus = qr_decomposition(a[None])
    assert np.isnan(taus[0]).tolist() == [False, True, False]
    assert np.isnan(packed[0]).tolist() == [[False, True, False], [False, True, True], [False, True, True]]


@pytest.mark.parametrize("transpose", Transpose)
def test_systems_are_those_of_scipy(transpose: Transpose) -> None:
    a, b = random((4, 4), "c16") + 3 * np.eye(4), random((4, 3), "c16", 1)
    code = {"NO_TRANSPOSE": 0, "TRANSPOSE": 1, "ADJOINT": 2}[transpose.name]
    for lower, unit in itertools.product((True, False), repeat=2):
        flags = {"lower": lower, "unit_diagonal": unit}
        found = triangular_solve(a, b, left_side=True, transpose_a=transpose, **flags)
        expected = scipy.linalg.solve_triangular(a, b, trans=code, **flags)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        right = triangular_solve(a, b.T, left_side=False, transpose_a=transpose, **flags)
        np.testing.assert_allclose(right @ _operator(a, transpose, lower, unit), b.T, rtol=1e-10)


def _operator(a: Array, transpose: Transpose, lower: bool, unit: bool) -> Array:
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle - np.diag(np.diag(a)) + np.eye(len(a))
    return {"NO_TRANSPOSE": triangle, "TRANSPOSE": triangle.T, "ADJOINT": triangle.conj().T}[transpose.name]


def test_spectra_are_those_of_scipy() -> None:
    x = random((2, 3, 4), "c8")
    for count in (1, 2, 3):
        lengths, axes = x.shape[3 - count :], [*range(3 - count, 3)]
        forward = fft(x, fft_type=FftType.FFT, fft_length=lengths)
        np.testing.assert_allclose(forward, scipy.fft.fftn(x, axes=axes), rtol=1e-4, atol=1e-5)
        half = fft(x.real.copy(), fft_type=FftType.RFFT, fft_length=lengths)
        assert half.dtype == np.complex64
        np.testing.assert_allclose(half, scipy.fft.rfftn(x.real, axes=axes), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(fft(forward, fft_type=FftType.IFFT, fft_length=lengths), x, atol=1e-6)
        np.testing.assert_allclose(fft(half, fft_type=FftType.IRFFT, fft_length=lengths), x.real, atol=1e-6)


def test_spectra_of_nothing() -> None:
    nothing = np.zeros((2, 0), np.float32)
    assert fft(nothing, fft_type=FftType.RFFT, fft_length=(0,)).shape == (2, 0)
    assert fft(nothing + 0j, fft_type=FftType.IRFFT, fft_length=(0,)).shape == (2, 0)
