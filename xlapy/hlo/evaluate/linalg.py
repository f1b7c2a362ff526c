"""Triangular factors and triangular systems, a column or a row at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlapy.hlo.attributes import Transpose
from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow, widen


@evaluator("cholesky")
def cholesky(a: Array, *, lower: bool) -> Array:
    size = min(a.shape[-2:])
    a = a[..., :size, :size]
    with np.errstate(all="ignore"):
        matrix = widen(a) if lower else _adjoint(widen(a))
        factor, failed = _lower_factor(matrix)
        triangle = np.tril(np.ones(a.shape[-2:], bool))
        nans = _numbered_nans(failed, factor.real.dtype)[..., None, None]
        factor = np.where(triangle & (failed != 0)[..., None, None], nans, factor).astype(factor.dtype)
    return narrow(factor if lower else _adjoint(factor), element_type(a))


def _lower_factor(a: Array) -> tuple[Array, Array]:
    """The lower factors, and the numbers, from 1, of the first pivots that were not positive; 0 where all were."""
    factor = np.zeros_like(a)
    failed = np.zeros(a.shape[:-2], np.int64)
    for column in range(a.shape[-1]):
        known = factor[..., column:, :column]
        own = known[..., :1, :]
        rest = a[..., column:, column] - (known * own.conj()).sum(-1)
        pivot = rest[..., 0].real
        failed = np.where((failed == 0) & ~(pivot > 0), column + 1, failed)
        root = np.sqrt(pivot)
        factor[..., column + 1 :, column] = rest[..., 1:] / root[..., None]
        factor[..., column, column] = root
    return factor, failed


def _numbered_nans(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """NaNs that hold the numbers in their low bits."""
    bits = np.dtype(f"u{dtype.itemsize}")
    quiet = np.full(numbers.shape, np.nan, dtype).view(bits)
    return np.asarray(quiet | numbers.astype(bits)).view(dtype)


def _adjoint(a: Array) -> Array:
    return np.asarray(np.swapaxes(a, -1, -2).conj())


@evaluator("lu")
def lu(a: Array) -> tuple[Array, Array, Array]:
    *batch, rows, columns = a.shape
    matrices = widen(a).reshape(math.prod(batch), rows, columns).copy()
    pivots = np.zeros((len(matrices), min(rows, columns)), np.int32)
    order = np.tile(np.arange(rows, dtype=np.int32), (len(matrices), 1))
    with np.errstate(all="ignore"):
        for matrix, chosen, numbers in zip(matrices, pivots, order, strict=True):
            for step in range(len(chosen)):
                chosen[step] = pivot = _largest(matrix[:, step], step)
                matrix[[step, pivot]] = matrix[[pivot, step]]
                numbers[[step, pivot]] = numbers[[pivot, step]]
                if matrix[step, step] != 0:
                    matrix[step + 1 :, step] /= matrix[step, step]
                matrix[step + 1 :, step + 1 :] -= np.outer(matrix[step + 1 :, step], matrix[step, step + 1 :])
    factors = narrow(matrices.reshape(a.shape), element_type(a))
    return factors, pivots.reshape(*batch, min(rows, columns)), order.reshape(*batch, rows)


def _largest(column: Array, first: int) -> int:
    """The row, from `first` on, of the first element of the largest size."""
    sizes = np.abs(column.real) + np.abs(column.imag)
    best = first
    for row in range(first + 1, len(column)):
        if sizes[row] > sizes[best]:
            best = row
    return best


@evaluator("qr-decomposition")
def qr_decomposition(a: Array) -> tuple[Array, Array]:
    *batch, rows, columns = a.shape
    packed = widen(a).reshape(math.prod(batch), rows, columns).copy()
    taus = np.zeros((len(packed), min(rows, columns)), packed.dtype)
    with np.errstate(all="ignore"):
        for step in range(min(rows, columns)):
            beta, tail, taus[:, step] = _reflector(packed[:, step:, step])
            packed[:, step, step], packed[:, step + 1 :, step] = beta, tail
            _reflect(packed[:, step:, step + 1 :], tail, taus[:, step].conj())
    of = element_type(a)
    return narrow(packed, of).reshape(a.shape), narrow(taus, of).reshape(*batch, min(rows, columns))


def _reflector(x: Array) -> tuple[Array, Array, Array]:
    """Beta, all but the first element of v, and tau, with (I - tau v vᴴ)ᴴ x = beta e, of a batch of columns."""
    alpha, rest = x[:, 0], x[:, 1:]
    parts = np.concatenate([abs(x.real), abs(x.imag)], -1)
    largest = np.fmax.reduce(parts, -1)
    divisor = np.where(largest == 0, 1, largest).astype(parts.dtype)
    total = ((parts / divisor[:, None]) ** 2).sum(-1)
    is_reduced = (rest == 0).all(-1) & (alpha.imag == 0)
    beta = np.where(is_reduced, alpha.real, -np.copysign(divisor * np.sqrt(total), alpha.real))
    tau = np.where(is_reduced, 0, (beta - alpha) / np.where(is_reduced, 1, beta))
    pivot = np.where(is_reduced, 1, alpha - beta)
    return beta, (rest / pivot[:, None]).astype(x.dtype), tau


def _reflect(x: Array, tail: Array, tau: Array) -> None:
    """Takes tau v vᴴ x from x, a batch of matrices."""
    products = x[:, 0] + (tail.conj()[:, :, None] * x[:, 1:]).sum(1)
    share = tau[:, None] * products
    x[:, 0] -= share
    x[:, 1:] -= tail[:, :, None] * share[:, None]


@evaluator("householder-product")
def householder_product(a: Array, taus: Array) -> Array:
    batch = tuple(slice(min(sizes)) for sizes in zip(a.shape[:-2], taus.shape[:-1], strict=True))
    a, taus = a[batch], taus[batch]
    *outer, rows, columns = a.shape
    packed = widen(a).reshape(math.prod(outer), rows, columns)
    factors = widen(taus).reshape(len(packed), taus.shape[-1])
    product = np.zeros_like(packed)
    product[:] = np.eye(rows, columns)
    with np.errstate(all="ignore"):
        for step in reversed(range(factors.shape[1])):
            _reflect(product[:, step:, step:], packed[:, step + 1 :, step], factors[:, step])
    return narrow(product, element_type(a)).reshape(a.shape)


@evaluator("triangular-solve")
def triangular_solve(
    a: Array, b: Array, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: Transpose
) -> Array:
    a, b = _common_sizes(a, b, -2 if left_side else -1)
    matrix = widen(a)
    if transpose_a is not Transpose.NO_TRANSPOSE:
        matrix = np.swapaxes(matrix, -1, -2)
        lower = not lower
    if transpose_a is Transpose.ADJOINT:
        matrix = matrix.conj()
    with np.errstate(all="ignore"):
        if left_side:
            solution = _solve(matrix, widen(b), lower, unit_diagonal)
        else:  # x a = b is aᵀ xᵀ = bᵀ
            transposed = _solve(np.swapaxes(matrix, -1, -2), np.swapaxes(widen(b), -1, -2), not lower, unit_diagonal)
            solution = np.swapaxes(transposed, -1, -2)
    return narrow(solution, element_type(b))


def _common_sizes(a: Array, b: Array, side: int) -> tuple[Array, Array]:
    """Cuts dimensions that must be equal to the smallest of their run-time sizes."""
    size = min(*a.shape[-2:], b.shape[side])
    batch = tuple(slice(min(sizes)) for sizes in zip(a.shape[:-2], b.shape[:-2], strict=True))
    rows, columns = (slice(size), slice(None)) if side == -2 else (slice(None), slice(size))
    return a[(*batch, slice(size), slice(size))], b[(*batch, rows, columns)]


def _solve(a: Array, b: Array, lower: bool, unit_diagonal: bool) -> Array:
    """Substitution, row by row: each row of x from those that are known."""
    size = a.shape[-1]
    x = np.zeros_like(b)
    for row in range(size) if lower else reversed(range(size)):
        known = slice(row) if lower else slice(row + 1, size)
        rest = b[..., row, :] - (a[..., row, known, None] * x[..., known, :]).sum(-2)
        x[..., row, :] = rest if unit_diagonal else rest / a[..., row, row, None]
    return x
