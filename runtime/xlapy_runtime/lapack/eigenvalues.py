"""Eigenvalues and Schur forms. Modes are codes of letters: V for vectors, N for none."""

from __future__ import annotations

from xlapy_runtime.errors import UnsupportedError
from xlapy_runtime.lapack.native import (
    INTEGER_WORK,
    REAL_WORK,
    WORK,
    Batch,
    leading,
)
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.lapack.targets import target

_SYMMETRIC = "t[n,n] -> t[n,n], real[n], s32[]"


@target("syevd", "sd", _SYMMETRIC, mode="VN", uplo="LU")
@target("heevd", "cz", _SYMMETRIC, mode="VN", uplo="LU")
def symmetric(batch: Batch, a: Place, vectors: Place, values: Place, info: Place, *, mode: int, uplo: int) -> None:
    batch.copy(a, vectors)
    spaces = (WORK, REAL_WORK, INTEGER_WORK) if batch.is_complex else (WORK, INTEGER_WORK)
    routine = "heevd" if batch.is_complex else "syevd"
    batch.call(routine, chr(mode), chr(uplo), a.shape[-1], vectors, leading(a), values, *spaces, info)


_REAL = "t[n,n] -> t[n], t[n], complex[n,n], complex[n,n], s32[]"


@target("geev", "sd", _REAL, compute_left="VN", compute_right="VN")
def general_real(
    batch: Batch,
    a: Place,
    real_parts: Place,
    imaginary_parts: Place,
    left: Place,
    right: Place,
    info: Place,
    *,
    compute_left: int,
    compute_right: int,
) -> None:
    matrix = batch.matrices_like(a)
    finite = batch.only_finite(a, matrix)
    packed = [batch.matrices_like(a) if chr(mode) == "V" else None for mode in (compute_left, compute_right)]
    size, distance = a.shape[-1], leading(a)
    operands = (size, matrix, distance, real_parts, imaginary_parts, packed[0], distance, packed[1], distance)
    batch.call("geev", chr(compute_left), chr(compute_right), *operands, WORK, info)
    for pairs, vectors in zip(packed, (left, right), strict=True):
        if pairs is None:
            batch.clear(vectors)
        else:
            batch.unpack(pairs, imaginary_parts, vectors)
    batch.report_others(finite, info)


_COMPLEX = "t[n,n] -> t[n], t[n,n], t[n,n], s32[]"


@target("geev", "cz", _COMPLEX, compute_left="VN", compute_right="VN")
def general_complex(
    batch: Batch,
    a: Place,
    values: Place,
    left: Place,
    right: Place,
    info: Place,
    *,
    compute_left: int,
    compute_right: int,
) -> None:
    matrix = batch.matrices_like(a)
    finite = batch.only_finite(a, matrix)
    for mode, vectors in ((compute_left, left), (compute_right, right)):
        if chr(mode) == "N":
            batch.clear(vectors)
    size, distance = a.shape[-1], leading(a)
    operands = (size, matrix, distance, values, left, distance, right, distance)
    spaces = (WORK, *batch.real_numbers(2 * size))
    batch.call("geev", chr(compute_left), chr(compute_right), *operands, *spaces, info)
    batch.report_others(finite, info)


@target("gees", "sd", "t[n,n] -> t[n,n], t[n,n], t[n], t[n], s32[], s32[]", mode="VN", sort="NS")
@target("gees", "cz", "t[n,n] -> t[n,n], t[n,n], t[n], s32[], s32[]", mode="VN", sort="NS")
def schur(batch: Batch, a: Place, form: Place, vectors: Place, *rest: Place, mode: int, sort: int) -> None:
    """The eigenvalues are two arrays for real matrices, and one for complex ones; then how many are chosen, and
    `info`."""
    *values, chosen, info = rest
    if chr(sort) != "N":
        raise UnsupportedError("Schur forms with chosen eigenvalues in front: a program cannot say which to choose")
    if chr(mode) == "N":
        batch.clear(vectors)
    finite = batch.only_finite(a, form)
    size, distance = a.shape[-1], leading(a)
    spaces = (WORK, *batch.real_numbers(size), batch.integers(max(1, size)))
    operands = (size, form, distance, chosen, *values, vectors, distance)
    batch.call("gees", chr(mode), "N", None, *operands, *spaces, info)
    batch.report_others(finite, info)
