"""Triangular and orthogonal factors, and reductions by Householder reflectors."""

from __future__ import annotations

import numpy as np

from xlapy_runtime.lapack.native import WORK, Array, Batch, leading
from xlapy_runtime.lapack.targets import target


@target("getrf", "sdcz")
def lu(batch: Batch, a: Array, factors: Array, pivots: Array, info: Array) -> None:
    np.copyto(factors, a)
    batch.call("getrf", *a.shape[-2:], factors, leading(a), pivots, info)


@target("potrf", "sdcz")
def cholesky(batch: Batch, a: Array, factor: Array, info: Array, *, uplo: int) -> None:
    np.copyto(factor, a)
    batch.call("potrf", chr(uplo), a.shape[-1], factor, leading(a), info)


@target("geqrf", "sdcz")
def qr(batch: Batch, a: Array, reflectors: Array, scales: Array) -> None:
    np.copyto(reflectors, a)
    batch.call("geqrf", *a.shape[-2:], reflectors, leading(a), scales, WORK, batch.integers(1))


@target("geqp3", "sdcz")
def pivoted_qr(batch: Batch, a: Array, fixed: Array, reflectors: Array, permutation: Array, scales: Array) -> None:
    np.copyto(reflectors, a)
    np.copyto(permutation, fixed)
    rows, columns = a.shape[-2:]
    spaces = (WORK, *batch.real_numbers(2 * columns), batch.integers(1))
    batch.call("geqp3", rows, columns, reflectors, leading(a), permutation, scales, *spaces)


@target("orgqr", "sd")
@target("ungqr", "cz")
def orthogonal_factor(batch: Batch, reflectors: Array, scales: Array, q: Array) -> None:
    np.copyto(q, reflectors)
    routine = "ungqr" if batch.is_complex else "orgqr"
    batch.call(routine, *q.shape[-2:], scales.shape[-1], q, leading(q), scales, WORK, batch.integers(1))


@target("ormqr", "sd")
@target("unmqr", "cz")
def product_with_orthogonal_factor(
    batch: Batch, reflectors: Array, scales: Array, c: Array, product: Array, *, left: bool, transpose: bool
) -> None:
    np.copyto(product, c)
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
def hessenberg(batch: Batch, a: Array, reduced: Array, scales: Array, info: Array, *, low: int, high: int) -> None:
    np.copyto(reduced, a)
    batch.call("gehrd", a.shape[-1], low, high, reduced, leading(a), scales, WORK, info)


@target("sytrd", "sd")
@target("hetrd", "cz")
def tridiagonal(
    batch: Batch, a: Array, reduced: Array, diagonal: Array, beside: Array, scales: Array, info: Array, *, uplo: int
) -> None:
    np.copyto(reduced, a)
    routine = "hetrd" if batch.is_complex else "sytrd"
    batch.call(routine, chr(uplo), a.shape[-1], reduced, leading(a), diagonal, beside, scales, WORK, info)
