"""Eigenvalues and singular values by rotations, against LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest

from xlapy.hlo.evaluate.rotations import eigh, svd

KINDS = {
    "any": lambda a: a,
    "integers, some of them equal": np.round,
    "of one eigenvalue that is not zero": lambda a: a[:, :1] * np.swapaxes(a[:, :1], 1, 2),
    "near the end of the range": lambda a: a * 2.0**124,
    "below it": lambda a: a * 2.0**-140,
    "graded": lambda a: a * 10.0 ** -np.add.outer(*[np.arange(a.shape[-1])] * 2),
    "diagonal": lambda a: a * np.eye(a.shape[-1]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 12])
def test_eigenvalues_are_those_of_lapack(size: int, kind: str) -> None:
    """Either triangle says it all, and vectors are orthonormal to a few units of the last place."""
    a = np.random.default_rng(size).normal(size=(10, size, size))
    a = KINDS[kind](a + np.swapaxes(a, 1, 2)).astype(np.float32)
    wide = a.astype(np.float64)
    eps, most = np.finfo(np.float32).eps, np.maximum(abs(wide).max((1, 2)), 2.0**-126)[:, None]
    for lower in (True, False):
        triangle = np.tri(size, dtype=bool) if lower else np.tri(size, dtype=bool).T
        vectors, values = eigh(np.where(triangle, a, np.float32(np.nan)), lower=lower)
        assert vectors.dtype == values.dtype == np.float32
        assert (np.diff(values, axis=1) >= 0).all()
        vectors, values = vectors.astype(np.float64), values.astype(np.float64)
        assert abs((values - np.linalg.eigvalsh(wide)) / most).max() <= 32 * eps
        assert abs((wide @ vectors - vectors * values[:, None]) / most[:, None]).max() <= 32 * eps
        assert abs(np.swapaxes(vectors, 1, 2) @ vectors - np.eye(size)).max() <= 8 * eps


def test_eigenvalues_of_what_is_not_finite_and_of_nothing() -> None:
    a = np.broadcast_to(np.diag([3.0, 1, 2]), (4, 3, 3)).copy()
    a[1, 2, 0], a[2, 1, 1], a[3, 0, 2] = np.nan, np.inf, np.nan
    vectors, values = eigh(a, lower=True)
    assert np.isnan(vectors).all((1, 2)).tolist() == np.isnan(values).all(1).tolist() == [False, True, True, False]
    np.testing.assert_array_equal(values[[0, 3]], [[1, 2, 3]] * 2)
    for dims in ((0, 3, 3), (2, 0, 0)):
        vectors, values = eigh(np.zeros(dims), lower=False)
        assert (vectors.shape, values.shape) == (dims, dims[:-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", [(1, 1), (3, 3), (5, 3), (3, 5), (8, 8), (2, 20), (12, 12)], ids=str)
def test_singular_values_are_those_of_lapack(dims: tuple[int, int], kind: str) -> None:
    """Vectors are orthonormal where there is nothing that they come from, too."""
    size, least = max(dims), min(dims)
    a = KINDS[kind](np.random.default_rng(size).normal(size=(10, size, size)))[:, : dims[0], : dims[1]]
    a = a.astype(np.float32)
    a[3:5] = 0
    wide = a.astype(np.float64)
    eps, most = np.finfo(np.float32).eps, np.maximum(abs(wide).max((1, 2)), 2.0**-126)[:, None]
    for full in (True, False):
        u, values, vt = svd(a, full_matrices=full)
        assert u.dtype == values.dtype == vt.dtype == np.float32
        assert u.shape[2] == (dims[0] if full else least) and vt.shape[1] == (dims[1] if full else least)
        assert (np.diff(values, axis=1) <= 0).all()
        u, values, vt = (part.astype(np.float64) for part in (u, values, vt))
        assert abs((values - np.linalg.svd(wide, compute_uv=False)) / most).max() <= 32 * eps
        product = (u[:, :, :least] * values[:, None]) @ vt[:, :least]
        assert abs((product - wide) / most[:, None]).max() <= 32 * eps
        for basis in (np.swapaxes(u, 1, 2), vt):
            unit = basis @ np.swapaxes(basis, 1, 2)
            assert abs(unit - np.eye(unit.shape[1])).max() <= (size + 8) * eps


def test_singular_values_of_what_is_not_finite_and_of_nothing() -> None:
    a = np.broadcast_to(np.diag([3.0, 1, 2])[:, :2], (4, 3, 2)).copy()
    a[1, 2, 0], a[2, 1, 1] = np.nan, -np.inf
    u, values, vt = svd(a, full_matrices=True)
    for part in (u, values[..., None], vt):
        assert np.isnan(part).all((1, 2)).tolist() == np.isnan(part).any((1, 2)).tolist() == [False, True, True, False]
    np.testing.assert_array_equal(values[[0, 3]], [[3, 1]] * 2)
    u, values, vt = svd(np.zeros((2, 3, 0)), full_matrices=True)
    np.testing.assert_array_equal(abs(u), [np.eye(3)] * 2)
    assert (values.shape, vt.shape) == ((2, 0), (2, 0, 0))
