"""Triangular and orthogonal factors, and reductions by Householder reflectors."""

from __future__ import annotations

from xlapy_runtime.lapack.native import WORK, Batch, leading
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.lapack.signatures import require_sizes
from xlapy_runtime.lapack.targets import target


@target("getrf", "sdcz", "t[m,n] -> t[m,n], s32[k], s32[]")
def lu(batch: Batch, a: Place, factors: Place, pivots: Place, info: Place) -> None:
    batch.copy(a, factors)
    batch.call("getrf", *a.shape[-2:], factors, leading(a), pivots, info)


@target("potrf", "sdcz", "t[n,n] -> t[n,n], s32[]", uplo="LU")
def cholesky(batch: Batch, a: Place, factor: Place, info: Place, *, uplo: int) -> None:
    batch.copy(a, factor)
    batch.call("potrf", chr(uplo), a.shape[-1], factor, leading(a), info)


@target("geqrf", "sdcz", "t[m,n] -> t[m,n], t[k]")
def qr(batch: Batch, a: Place, reflectors: Place, scales: Place) -> None:
    batch.copy(a, reflectors)
    batch.call("geqrf", *a.shape[-2:], reflectors, leading(a), scales, WORK, batch.integers(1))


@target("geqp3", "sdcz", "t[m,n], s32[n] -> t[m,n], s32[n], t[k]")
def pivoted_qr(batch: Batch, a: Place, fixed: Place, reflectors: Place, permutation: Place, scales: Place) -> None:
    batch.copy(a, reflectors)
    batch.copy(fixed, permutation)
    rows, columns = a.shape[-2:]
    spaces = (WORK, *batch.real_numbers(2 * columns), batch.integers(1))
    batch.call("geqp3", rows, columns, reflectors, leading(a), permutation, scales, *spaces)


_PRODUCT = "t[m,n], t[c] -> t[m,n]"


@target("orgqr", "sd", _PRODUCT)
@target("ungqr", "cz", _PRODUCT)
def orthogonal_factor(batch: Batch, reflectors: Place, scales: Place, q: Place) -> None:
    require_sizes(scales.shape[-1] <= q.shape[-1] <= q.shape[-2], "c is n at most, and n is m at most", scales, q)
    batch.copy(reflectors, q)
    routine = "ungqr" if batch.is_complex else "orgqr"
    batch.call(routine, *q.shape[-2:], scales.shape[-1], q, leading(q), scales, WORK, batch.integers(1))


_OTHER_PRODUCT = "t[r,c], t[q], t[m,n] -> t[m,n]"


@target("ormqr", "sd", _OTHER_PRODUCT)
@target("unmqr", "cz", _OTHER_PRODUCT)
def product_with_orthogonal_factor(
    batch: Batch, reflectors: Place, scales: Place, c: Place, product: Place, *, left: bool, transpose: bool
) -> None:
    rows = c.shape[-2 if left else -1]
    fit = reflectors.shape[-2] == rows and scales.shape[-1] <= min(reflectors.shape[-2:])
    require_sizes(fit, "r is m or, from the right, n, and q is neither more than r nor than c", reflectors, scales, c)
    batch.copy(c, product)
    routine, adjoint = ("unmqr", "C") if batch.is_complex else ("ormqr", "T")
    batch.call(
        routine,
        "L" if left else "R",
        adjoint if transpose else "N",
        *c.shape[-2:],
        scales.shape[-1],
        reflectors,
        leading(reflectors),
        scales,
        product,
        leading(product),
        WORK,
        batch.integers(1),
    )


@target("gehrd", "sdcz", "t[n,n] -> t[n,n], t[p], s32[]")
def hessenberg(batch: Batch, a: Place, reduced: Place, scales: Place, info: Place, *, low: int, high: int) -> None:
    require_sizes(
        1 <= low <= max(1, a.shape[-1]) and min(low, a.shape[-1]) <= high <= a.shape[-1],
        f"rows {low} to {high}, from 1, are among n",
        a,
    )
    batch.copy(a, reduced)
    batch.call("gehrd", a.shape[-1], low, high, reduced, leading(a), scales, WORK, info)


_TRIDIAGONAL = "t[n,n] -> t[n,n], real[n], real[p], t[p], s32[]"


@target("sytrd", "sd", _TRIDIAGONAL, uplo="LU")
@target("hetrd", "cz", _TRIDIAGONAL, uplo="LU")
def tridiagonal(
    batch: Batch, a: Place, reduced: Place, diagonal: Place, beside: Place, scales: Place, info: Place, *, uplo: int
) -> None:
    batch.copy(a, reduced)
    routine = "hetrd" if batch.is_complex else "sytrd"
    batch.call(routine, chr(uplo), a.shape[-1], reduced, leading(a), diagonal, beside, scales, WORK, info)
