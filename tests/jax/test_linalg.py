"""Linear algebra of JAX: decompositions, solvers, their gradients, by custom calls of LAPACK. XLA is the measure.

Both find the same LAPACK in scipy, so that signs and orders agree too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import xlapy.jax
from tests.jax.agreement import assert_agree, x64_mode
from xlapy import CompileOptions, UnsupportedError
from xlapy_runtime.lapack import native

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
FEW_TYPES = [
    np.complex64,
    *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in (np.float32, np.float64, np.complex128)),
]
"""For programs that take XLA long to compile."""

TOLERANCE = {4: 3e-4, 8: 1e-10}
"""Relative, by the bytes of a real number: what well-conditioned matrices lose in a chain of factorizations."""

RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with x64_mode():
        yield


def matrices(dtype: Any, *dims: int) -> np.ndarray:
    values = RANDOM.normal(size=dims)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RANDOM.normal(size=dims)
    return values.astype(dtype)


def positive(a: np.ndarray) -> np.ndarray:
    return (a @ a.conj().swapaxes(-1, -2) + 4 * np.eye(a.shape[-1])).astype(a.dtype)


def agree(function: Any, *arguments: Any, compiled: Any = None) -> None:
    dtype = arguments[0].dtype
    tolerance = TOLERANCE[dtype.itemsize // (2 if dtype.kind == "c" else 1)]
    assert_agree(function, *arguments, tolerance=tolerance, compiled=compiled)


@pytest.mark.parametrize("dtype", TYPES)
def test_decompositions_of_batches(dtype: Any) -> None:
    def function(a: Any, s: Any, tall: Any, wide: Any) -> Any:
        return {
            "cholesky": jnp.linalg.cholesky(s),
            "upper cholesky": jnp.linalg.cholesky(s, upper=True),
            "no cholesky": jnp.linalg.cholesky(-s),
            "lu": lax.linalg.lu(tall),
            "qr": [jnp.linalg.qr(tall), jnp.linalg.qr(wide, mode="complete"), jnp.linalg.qr(tall, mode="r")],
            "pivoted qr": jax.scipy.linalg.qr(tall, pivoting=True, mode="economic"),
            "svd": [jnp.linalg.svd(tall), jnp.linalg.svd(wide, full_matrices=False)],
            "singular values": jnp.linalg.svdvals(wide),
            "svd by iteration": lax.linalg.svd(tall, algorithm=lax.linalg.SvdAlgorithm.QR),
            "eigh": [jnp.linalg.eigh(s), jnp.linalg.eigvalsh(s, UPLO="U")],
            "eig": [jnp.linalg.eig(a), jnp.linalg.eigvals(a)],
            "left eigenvectors": lax.linalg.eig(a, compute_left_eigenvectors=True, compute_right_eigenvectors=False),
            "schur": [lax.linalg.schur(a), lax.linalg.schur(a, compute_schur_vectors=False)],
            "hessenberg": lax.linalg.hessenberg(a),
            "tridiagonal": [lax.linalg.tridiagonal(s, lower=lower) for lower in (True, False)],
        }

    a = matrices(dtype, 2, 3, 4, 4)
    agree(function, a, positive(a), matrices(dtype, 2, 5, 3), matrices(dtype, 2, 3, 5))


@pytest.mark.parametrize("dtype", FEW_TYPES)
def test_solvers_and_functions_of_matrices(dtype: Any) -> None:
    def function(a: Any, s: Any, b: Any, tall: Any) -> Any:
        scales = matrices(dtype, 3)
        diagonals = [a[0], a[1] + 4, a[2]]
        return {
            "solve": [jnp.linalg.solve(a, b), jnp.linalg.solve(a, b[:, 0])],
            "inverse": jnp.linalg.inv(a),
            "determinant": [jnp.linalg.det(a), *jnp.linalg.slogdet(a)],
            "lstsq": jnp.linalg.lstsq(tall, matrices(dtype, 6, 2)),
            "pinv": jnp.linalg.pinv(tall),
            "rank": jnp.linalg.matrix_rank(tall),
            "norms": [jnp.linalg.norm(a, ord=order) for order in (None, 1, 2, "nuc")],
            "cond": jnp.linalg.cond(a),
            "power": jnp.linalg.matrix_power(a, -3),
            "expm": jax.scipy.linalg.expm(a / 8),
            "triangular": [
                lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=turn, conjugate_a=turn)
                for lower in (True, False)
                for turn in (True, False)
            ],
            "triangular from the right": lax.linalg.triangular_solve(a, b.T, unit_diagonal=True),
            "cho_solve": jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(s), b),
            "lu_solve": jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b, trans=1),
            "lu": jax.scipy.linalg.lu(tall),
            "householder": lax.linalg.householder_product(tall, scales),
            "products": [lax.linalg.ormqr(tall, scales, tall, transpose=flag) for flag in (True, False)],
            "product from the right": lax.linalg.ormqr(tall, scales, tall.T, left=False),
            "tridiagonal": lax.linalg.tridiagonal_solve(*diagonals, b),
            "sqrtm": jax.scipy.linalg.sqrtm(s),
            "polar": jax.scipy.linalg.polar(s),
            "schur": jax.scipy.linalg.schur(a),
        }  # fmt: skip

    a = matrices(dtype, 4, 4) + 2 * np.eye(4, dtype=dtype)
    agree(function, a, positive(a), matrices(dtype, 4, 3), matrices(dtype, 6, 3))


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.complex128, marks=pytest.mark.slow)])
def test_gradients(dtype: Any) -> None:
    def size(x: Any) -> Any:
        leaves = [jnp.abs(leaf.reshape(-1)) ** 2 for leaf in jax.tree.leaves(x)]
        return sum(jnp.sum(leaf * jnp.arange(1, leaf.size + 1)) for leaf in leaves)

    functions = {
        "cholesky": lambda a: jnp.linalg.cholesky(a @ a.conj().T + jnp.eye(4)),
        "solve": lambda a: jnp.linalg.solve(a, a[:, :2] + 1),
        "inverse": jnp.linalg.inv,
        "determinant": lambda a: jnp.linalg.slogdet(a)[1],
        "qr": jnp.linalg.qr,
        "lu": lambda a: lax.linalg.lu(a)[0],
        "singular values": jnp.linalg.svdvals,
        "eigh": lambda a: jnp.linalg.eigh(a + a.conj().T)[0],
        "eigenvalues": jnp.linalg.eigvals,
        "triangular": lambda a: jax.scipy.linalg.solve_triangular(a, a + 1, lower=True),
        "expm": lambda a: jax.scipy.linalg.expm(a / 4),
        "pinv": lambda a: jnp.linalg.pinv(a[:, :3]),
    }

    def function(a: Any) -> Any:
        return {name: jax.grad(lambda x, f=f: size(f(x)))(a) for name, f in functions.items()}

    agree(function, matrices(dtype, 4, 4) + 2 * np.eye(4, dtype=dtype))


def test_single_values_and_empty_matrices() -> None:
    def function(one: Any, no_batch: Any, empty: Any) -> Any:
        return {
            name: [f(x) for x in (one, no_batch, *([empty] if takes_empty else ()))]
            for name, f, takes_empty in (
                ("cholesky", jnp.linalg.cholesky, True),
                ("lu", lax.linalg.lu, True),
                ("qr", jnp.linalg.qr, True),
                ("svd", jnp.linalg.svd, True),
                ("eigh", jnp.linalg.eigh, False),
                ("eig", jnp.linalg.eig, False),
                ("schur", lax.linalg.schur, False),
                ("determinant", jnp.linalg.det, True),
                ("solve", lambda x: jnp.linalg.solve(x, x), True),
            )
        }

    agree(function, matrices(np.float32, 1, 1), matrices(np.float32, 0, 3, 3), matrices(np.float32, 2, 0, 0))


def test_matrices_that_are_not_finite() -> None:
    """Batches hold good matrices beside bad ones, and the good ones keep their results.

    A factor that does not exist is NaN altogether, which LAPACK's is too, but not OpenBLAS's of a matrix with NaN."""

    def function(a: Any) -> Any:
        each = (jnp.linalg.eigh, jnp.linalg.eig, jnp.linalg.svd, jnp.linalg.qr, lax.linalg.schur)
        return [f(a) for f in each], jnp.linalg.det(a)

    a = positive(matrices(np.float64, 3, 4, 4))
    a[0, 1, 1] = np.nan
    agree(function, a)
    factor = xlapy.jax.jit(jnp.linalg.cholesky)(a)
    assert np.isnan(factor[0][np.tril_indices(4)]).all()
    np.testing.assert_allclose(factor[1:], np.linalg.cholesky(a[1:]), atol=1e-12)


def test_singular_values_of_infinity_are_no_numbers() -> None:
    """LAPACK would never return, in XLA either."""
    a = matrices(np.float32, 2, 3, 3)
    a[1, 0, 0] = np.inf
    u, s, vt = xlapy.jax.jit(jnp.linalg.svd)(a)
    np.testing.assert_allclose((u[0] * s[0]) @ vt[0], a[0], rtol=1e-5)
    assert all(np.isnan(part[1]).all() for part in (u, s, vt))


def test_decompositions_inside_loops_and_transformations() -> None:
    def function(a: Any, b: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            q, r = jnp.linalg.qr(x)
            return r @ q, jnp.diagonal(r)

        return (
            lax.scan(step, a, None, length=3),
            jax.vmap(jnp.linalg.solve)(jnp.stack([a, a + 1]), jnp.stack([b, b])),
            lax.cond(b.sum() > 0, lambda: jnp.linalg.inv(a), lambda: a),
            lax.map(lambda scale: jnp.linalg.eigvalsh(a * scale), b),
            jax.jacfwd(jnp.linalg.inv)(a),
        )

    agree(function, positive(matrices(np.float64, 3, 3)), matrices(np.float64, 3))


def test_large_matrices() -> None:
    def function(a: Any, s: Any) -> Any:
        return jnp.linalg.solve(a, s), jnp.linalg.cholesky(s), jnp.linalg.eigvalsh(s), jnp.linalg.svdvals(a[:, :70])

    a = matrices(np.float64, 150, 150) + 20 * np.eye(150)
    agree(function, a, positive(a))


def test_systems_that_are_perturbed() -> None:
    """The answer to a singular system is as good as any; the others have one."""

    def solve(*diagonals: Any) -> Any:
        return lax.linalg.tridiagonal_solve(*diagonals, perturb_singular=True)

    for dtype in (np.float32, np.float64):
        diagonals = matrices(dtype, 2, 5), matrices(dtype, 2, 5) + 4, matrices(dtype, 2, 5)
        agree(solve, *diagonals, matrices(dtype, 2, 5, 3))
    zeros = np.zeros(4)
    answer = xlapy.jax.jit(solve)(zeros, zeros, zeros, np.ones((4, 1)))
    assert np.isfinite(answer).all() and np.abs(answer).min() > 1e10
    agree(lambda d, e: jnp.abs(jax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True)), np.arange(5.0), np.ones(4))
    with pytest.raises(UnsupportedError, match="tridiagonal_solve_perturbed_ffi is for matrices of float32 or float64"):
        complex_zeros = np.zeros(4, np.complex64)
        xlapy.jax.jit(solve)(*[complex_zeros] * 3, np.ones((4, 1), np.complex64))


def test_exported_programs() -> None:
    exported = export.export(jax.jit(lambda a: jnp.linalg.eigh(a @ a.T)[0]))(jax.ShapeDtypeStruct((4, 4), np.float64))
    a = matrices(np.float64, 4, 4)
    np.testing.assert_allclose(xlapy.jax.compile_exported(exported)(a), np.linalg.eigvalsh(a @ a.T), atol=1e-9)


def test_small_systems_are_kernels_of_our_own() -> None:
    """Of one matrix and of many, for right sides, inverses and determinants."""

    def function(lefts: Any, rights: Any) -> Any:
        return [
            (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a))
            for a, b in zip(lefts, rights, strict=True)
        ]

    lefts, rights = ([matrices(np.float64, *dims) for dims in ((8, 8), (40, 4, 4), (3, 20, 20))] for _ in range(2))
    compiled = xlapy.jax.jit(function)
    assert_agree(function, lefts, rights, tolerance=TOLERANCE[8], compiled=compiled)
    text = compiled.executable(lefts, rights).hlo_text()
    assert text.count(" lu(") >= len(lefts) and "custom-call" not in text
    for a, b in zip(lefts, rights, strict=True):
        solve = xlapy.jax.jit(jnp.linalg.solve).executable(a, b)
        assert "reduce(" not in solve.hlo_text()  # nobody asks for `info` but whether it is negative


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_reflections_of_small_matrices_are_kernels_of_our_own(dtype: Any) -> None:
    def function(*matrices: Any) -> Any:
        return [
            [jnp.linalg.qr(a), jnp.linalg.qr(a, mode="r"), jnp.linalg.qr(a, mode="complete"), lax.linalg.qr(a)]
            for a in matrices
        ]

    operands = [matrices(dtype, *dims) for dims in ((40, 3, 3), (2, 9, 5), (7, 7), (12, 40, 20), (9, 2, 6))]
    agree(function, *operands)
    assert "custom-call" not in xlapy.jax.jit(function).executable(*operands).hlo_text()


@pytest.mark.parametrize("dims", [(40, 3, 3), (5, 8, 4, 4)], ids=str)
def test_eigenvalues_of_many_small_matrices_are_kernels_of_our_own(dims: tuple[int, ...]) -> None:
    """What does not depend on the signs of vectors agrees, derivatives too; so does what is not finite."""

    def projected(a: Any) -> Any:
        values, vectors = jnp.linalg.eigh(a)
        return values, jnp.einsum("...i,...j->...ij", vectors[..., -1], vectors[..., -1])

    def function(a: Any) -> Any:
        gradient = jax.grad(lambda a: sum((part**2).sum() for part in projected(jnp.tanh(a))))(a)
        return projected(a), jnp.linalg.eigvalsh(a, UPLO="U"), jax.vmap(projected)(a), gradient

    a = matrices(np.float64, *dims) + np.diag(4.0 * np.arange(dims[-1]))
    agree(function, a)
    text = xlapy.jax.jit(function).executable(a).hlo_text()
    assert " eigh(" in text and "custom-call" not in text
    a[3, ..., 1, 1] = np.nan
    agree(projected, a)


@pytest.mark.parametrize("dims", [(40, 3, 3), (5, 8, 4, 2), (32, 2, 4)], ids=str)
def test_singular_values_of_many_small_matrices_are_kernels_of_our_own(dims: tuple[int, ...]) -> None:
    """Products of their vectors agree, which have no signs: polar factors, and what inverts least squares."""

    def polar(a: Any) -> Any:
        u, values, vt = jnp.linalg.svd(a, full_matrices=False)
        return values, u @ vt

    def function(a: Any) -> Any:
        gradient = jax.grad(lambda a: sum((part**2).sum() for part in (jnp.linalg.svdvals(a), polar(a)[0])))(a)
        full = jnp.linalg.svd(a)[1]
        return polar(a), full, jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a), jnp.linalg.norm(a, 2, (-2, -1)), gradient

    a = matrices(np.float64, *dims)
    agree(function, a)
    text = xlapy.jax.jit(function).executable(a).hlo_text()
    assert " svd(" in text and "custom-call" not in text
    a[3, ..., 1, 1] = np.nan
    agree(polar, a)


MATRIX_DIMS = [(1, 1), (2, 2), (3, 3), (8, 8), (5, 4, 4), (3, 40, 40), (2, 3, 5, 5), (1, 6, 6)]


@pytest.mark.parametrize("way", ["as it is", "mapped", "in a loop"])
def test_nothing_exchanges_rows_once_more(way: str) -> None:
    """JAX makes a permutation of pivots by a loop; an lu has it already."""

    def solve(a: Any, b: Any) -> Any:
        return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jax.scipy.linalg.lu_factor(a)

    def repeated(a: Any, b: Any) -> Any:
        return lax.scan(lambda x, _: (jnp.linalg.solve(a, x), ()), b, length=20)[0]

    def of_all(lefts: Any, rights: Any) -> Any:
        return [function(a, b) for a, b in zip(lefts, rights, strict=True)]

    function = {"as it is": solve, "mapped": jax.vmap(solve), "in a loop": repeated}[way]
    all_dims = [dims for dims in MATRIX_DIMS if way != "mapped" or len(dims) > 2]
    lefts = [matrices(np.float64, *dims) + 3 * np.eye(dims[-1]) for dims in all_dims]
    rights = [matrices(np.float64, *dims) for dims in all_dims]
    compiled = xlapy.jax.jit(of_all)
    assert_agree(of_all, lefts, rights, tolerance=TOLERANCE[8], compiled=compiled)
    text = compiled.executable(lefts, rights).hlo_text()
    factored = {int(size) for size in re.findall(r"= \(f64\[[\d,]*?(\d+)\].* lu\(", text)}
    assert factored == {dims[-1] for dims in all_dims} and "scatter(" not in text
    assert text.count("while(") == (len(all_dims) if way == "in a loop" else 0)


def test_triangles_are_kernels_of_our_own() -> None:
    """Neither LAPACK nor a call into Python."""
    function = xlapy.jax.jit(lambda a, b: jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(a), b, lower=True))
    a = positive(matrices(np.float32, 3, 3))
    text = function.executable(a, a).hlo_text()
    assert "cholesky(" in text and "triangular-solve(" in text and "custom-call" not in text


def test_a_target_of_the_user_comes_first() -> None:
    options = CompileOptions(custom_calls={"lapack_dgeqrf_ffi": lambda a: (a * 2, a[0])})
    assert (
        xlapy.jax.jit(lambda a: jnp.linalg.qr(a, mode="raw"), options=options)(np.eye(65))[0].tolist()
        == (np.eye(65) * 2).tolist()
    )


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    native.capsules.cache_clear()
    try:
        with pytest.raises(UnsupportedError, match=r"scipy: pip install 'xlapy\[linalg\]'"):
            xlapy.jax.jit(jnp.linalg.eigvals)(np.eye(3))
    finally:
        native.capsules.cache_clear()
