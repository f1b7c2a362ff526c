"""Triangular and orthogonal factors, and reductions by Householder reflectors."""

from __future__ import annotations

from xlapy_runtime.lapack.native import WORK, Batch, leading
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.lapack.targets import target


@target("getrf", "sdcz")
def lu(batch: Batch, a: Place, factors: Place, pivots: Place, info: Place) -> None:
    batch.copy(a, factors)
    batch.call("getrf", *a.shape[-2:], factors, leading(a), pivots, info)


@target("potrf", "sdcz")
def cholesky(batch: Batch, a: Place, factor: Place, info: Place, *, uplo: int) -> None:
    batch.copy(a, factor)
    batch.call("potrf", chr(uplo), a.shape[-1], factor, leading(a), info)


@target("geqrf", "sdcz")
def qr(batch: Batch, a: Place, reflectors: Place, scales: Place) -> None:
    batch.copy(a, reflectors)
    batch.call("geqrf", *a.shape[-2:], reflectors, leading(a), scales, WORK, batch.integers(1))


@target("geqp3", "sdcz")
def pivoted_qr(batch: Batch, a: Place, fixed: Place, reflectors: Place, permutation: Place, scales: Place) -> None:
    batch.copy(a, reflectors)
    batch.copy(fixed, permutation)
    rows, columns = a.shape[-2:]
    spaces = (WORK, *batch.real_numbers(2 * columns), batch.integers(1))
    batch.call("geqp3", rows, columns, reflectors, leading(a), permutation, scales, *spaces)


@target("orgqr", "sd")
@target("ungqr", "cz")
def orthogonal_factor(batch: Batch, reflectors: Place, scales: Place, q: Place) -> None:
    batch.copy(reflectors, q)
    routine = "ungqr" if batch.is_complex else "orgqr"
    batch.call(routine, *q.shape[-2:], scales.shape[-1], q, leading(q), scales, WORK, batch.integers(1))


@target("ormqr", "sd")
@target("unmqr", "cz")
def product_with_orthogonal_factor(
    batch: Batch, reflectors: Place, scales: Place, c: Place, product: Place, *, left: bool, transpose: bool
) -> None:
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


@target("gehrd", "sdcz")
def hessenberg(batch: Batch, a: Place, reduced: Place, scales: Place, info: Place, *, low: int, high: int) -> None:
    batch.copy(a, reduced)
    batch.call("gehrd", a.shape[-1], low, high, reduced, leading(a), scales, WORK, info)


@target("sytrd", "sd")
@target("hetrd", "cz")
def tridiagonal(
    batch: Batch, a: Place, reduced: Place, diagonal: Place, beside: Place, scales: Place, info: Place, *, uplo: int
) -> None:
    batch.copy(a, reduced)
    routine = "hetrd" if batch.is_complex else "sytrd"
    batch.call(routine, chr(uplo), a.shape[-1], reduced, leading(a), diagonal, beside, scales, WORK, info)
