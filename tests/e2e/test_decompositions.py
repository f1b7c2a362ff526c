"""The decompositions that are composed of simpler operations, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import xlapy
from tests.e2e.test_linalg import one_triangle, random
from xlapy import ops
from xlapy_runtime.errors import ShapeError

Array = np.ndarray[Any, Any]

SHAPES = [(3, 3), (2, 5, 3), (3, 6), (1, 1)]
CASES = [(shape, dtype) for shape in SHAPES for dtype in (np.float32, np.complex128)][:-1]


def run(decompose: Callable[..., Any], *operands: Array) -> tuple[Array, ...]:
    builder = xlapy.XlaBuilder("decompose")
    parameters = [builder.parameter(number, xlapy.Shape.of(value)) for number, value in enumerate(operands)]
    found = decompose(*parameters)
    parts = list(found) if isinstance(found, tuple) else [found]
    return xlapy.compile(builder.build(ops.Tuple(builder, parts)))(*operands)


def adjoint(a: Array) -> Array:
    return np.swapaxes(a, -1, -2).conj()


def assert_small(difference: Array, dtype: Any, factor: float = 40) -> None:
    assert np.abs(difference).max(initial=0) <= factor * np.finfo(dtype).eps


@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_lu(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(shape, dtype)
    rows, columns = shape[-2:]
    size = min(rows, columns)
    packed, pivots, permutation = run(ops.LU, a)
    lower = np.tril(packed, -1)[..., :size] + np.eye(rows, size, dtype=dtype)
    permuted = np.take_along_axis(a, permutation[..., None], -2)
    assert_small(permuted - lower @ np.triu(packed)[..., :size, :], dtype)
    most = np.sqrt(2) if np.dtype(dtype).kind == "c" else 1  # pivots are compared by |re| + |im|
    assert np.abs(np.tril(packed, -1)).max() <= 1.0001 * most
    for matrix, chosen in zip(a.reshape(-1, rows, columns), pivots.reshape(-1, size), strict=True):
        np.testing.assert_array_equal(chosen, scipy.linalg.lu_factor(matrix)[1])
    order = np.broadcast_to(np.arange(rows), shape[:-1]).copy()
    for step in range(size):
        chosen = pivots[..., step, None]
        first = order[..., step, None].copy()
        order[..., step, None] = np.take_along_axis(order, chosen, -1)
        np.put_along_axis(order, chosen, first, -1)
    np.testing.assert_array_equal(permutation, order)


def test_matrices_without_elements() -> None:
    nothing = np.zeros((2, 0, 3), np.float32)
    for decompose in (ops.LU, ops.QrDecomposition, lambda x: ops.QR(x, False), ops.SVD):
        assert all(part.size == 0 or not part.any() for part in run(decompose, nothing)[:1])
    assert [part.shape for part in run(ops.Eigh, np.zeros((0, 0), np.float32))] == [(0, 0), (0,)]


def test_lu_of_a_singular_matrix() -> None:
    packed, _, permutation = run(ops.LU, np.array([[0.0, 0, 1], [0, 0, 2], [0, 0, 0]], np.float32))
    np.testing.assert_array_equal(packed, [[0, 0, 1], [0, 0, 2], [0, 0, 0]])
    np.testing.assert_array_equal(permutation, [0, 1, 2])


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_qr(shape: tuple[int, ...], dtype: Any, full: bool) -> None:
    a = random(shape, dtype)
    q, r = run(lambda x: ops.QR(x, full), a)
    expected = [np.linalg.qr(m, mode="complete" if full else "reduced") for m in a.reshape(-1, *shape[-2:])]
    assert (q.shape[-2:], r.shape[-2:]) == (expected[0][0].shape, expected[0][1].shape)
    assert_small(q @ r - a, dtype)
    assert_small(adjoint(q) @ q - np.eye(q.shape[-1]), dtype)
    assert_small(np.tril(r, -1), dtype, 0)


def test_packed_qr_is_that_of_lapack() -> None:
    a = random((5, 3), np.complex128)
    packed, taus = run(ops.QrDecomposition, a)
    expected, expected_taus = np.linalg.qr(a, mode="raw")
    assert_small(packed - expected.T, np.float64)
    assert_small(taus - expected_taus, np.float64)
    (q,) = run(ops.ProductOfElementaryHouseholderReflectors, packed, taus)
    assert_small(q - np.linalg.qr(a)[0], np.float64)


def test_factors_of_reflections_fit() -> None:
    builder = xlapy.XlaBuilder("wrong")
    packed, taus = (builder.parameter(n, xlapy.Shape.array(np.float32, dims)) for n, dims in enumerate([(5, 3), (4,)]))
    with pytest.raises(ShapeError, match="are not factors"):
        ops.ProductOfElementaryHouseholderReflectors(packed, taus)


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5, 5), (12, 12)])
def test_eigh(shape: tuple[int, ...], lower: bool) -> None:
    for dtype in (np.float32, np.complex128):
        a = random(shape, dtype)
        hermitian = (a + adjoint(a)) / dtype(2)
        v, w = run(lambda x: ops.Eigh(x, lower, epsilon=1e-12), one_triangle(hermitian, lower))
        assert w.dtype == np.finfo(dtype).dtype
        assert_small(w - np.linalg.eigvalsh(hermitian), dtype, 100)
        assert_small(hermitian @ v - v * w[..., None, :], dtype, 100)
        assert_small(adjoint(v) @ v - np.eye(shape[-1]), dtype, 100)


def test_eigh_without_order_has_the_same_values() -> None:
    a = random((4, 4), np.float32)
    _, w = run(lambda x: ops.Eigh(x, sort_eigenvalues=False), a + a.T)
    np.testing.assert_allclose(np.sort(w), np.linalg.eigvalsh(a + a.T), atol=1e-5)


@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_svd(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(shape, dtype)
    u, d, v = run(lambda x: ops.SVD(x, epsilon=float(np.finfo(dtype).eps) * 8), a)
    size = min(shape[-2:])
    assert (u.shape[-2:], d.shape[-1:], v.shape[-2:]) == ((shape[-2], size), (size,), (shape[-1], size))
    assert_small((u * d[..., None, :]) @ adjoint(v) - a, dtype, 100)
    assert_small(d - np.linalg.svd(a, compute_uv=False), dtype, 100)
    for basis in (u, v):
        assert_small(adjoint(basis) @ basis - np.eye(size), dtype, 100)


def test_svd_of_a_matrix_of_low_rank_has_orthonormal_vectors() -> None:
    a = np.outer([1.0, 2, 3, 4], [1.0, -1, 2])
    u, d, v = run(ops.SVD, a)
    assert d[0] == pytest.approx(np.linalg.norm(a)) and abs(d[1:]).max() < 1e-12
    assert_small(u.T @ u - np.eye(3), np.float64)
    assert_small((u * d) @ v.T - a, np.float64, 100)
    u, d, v = run(ops.SVD, np.zeros((3, 2), np.float32))
    assert not d.any()
    assert_small(u.T @ u - np.eye(2), np.float32)


@pytest.mark.parametrize("decompose", [ops.Eigh, ops.SVD, lambda a: ops.QR(a, False)], ids=range(3))
def test_matrices_of_open_size_are_refused(decompose: Any) -> None:
    """They stopped at a broadcast that nobody had asked for, to a size of -1."""
    a = ops.Parameter(xlapy.XlaBuilder("open"), 0, xlapy.Shape.array(np.float32, (-1, 3, 3)))
    with pytest.raises(xlapy.ShapeError, match=r"the sizes of f32\[\?,3,3\] are not all known"):
        decompose(a)


def test_lu_of_matrices_of_open_size() -> None:
    builder = xlapy.XlaBuilder("open")
    parts = ops.LU(ops.Parameter(builder, 0, xlapy.Shape.array(np.float32, (-1, -1, 3))))
    assert [str(part.shape) for part in parts] == ["f32[?,?,3]", "s32[?,?]", "s32[?,?]"]
    run = xlapy.compile(builder.build(ops.Tuple(builder, list(parts))))
    for shape in ((2, 3, 3), (20, 4, 3)):
        a = random(shape, np.float32)
        for found, expected in zip(run(a), xlapy.evaluate(lu_of(shape), a), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)


def lu_of(shape: tuple[int, ...]) -> xlapy.XlaComputation:
    builder = xlapy.XlaBuilder("lu")
    return builder.build(ops.Tuple(builder, list(ops.LU(builder.parameter(0, xlapy.Shape.array(np.float32, shape))))))
