"""Systems of equations: triangular and tridiagonal ones."""

from __future__ import annotations

import numpy as np

from xlapy_runtime.lapack.native import Array, Batch, Shared, leading
from xlapy_runtime.lapack.targets import register_target, target


@target("trsm", "sdcz")
def triangular(
    batch: Batch, a: Array, b: Array, solution: Array, *, side: int, uplo: int, trans_x: int, diag: int
) -> None:
    np.copyto(solution, b)
    one = Shared(np.ones(1, batch.dtype))
    letters = map(chr, (side, uplo, trans_x, diag))
    batch.call("trsm", *letters, *b.shape[-2:], one, a, leading(a), solution, leading(solution))


@target("gtsv", "sdcz")
def tridiagonal(
    batch: Batch,
    below: Array,
    diagonal: Array,
    above: Array,
    b: Array,
    below_out: Array,
    diagonal_out: Array,
    above_out: Array,
    solution: Array,
    info: Array,
) -> None:
    """All three diagonals are as long as the matrix; the first element of the one below is not part of it."""
    for source, place in ((diagonal, diagonal_out), (above, above_out), (b, solution)):
        np.copyto(place, source)
    shifted = np.roll(below, -1, axis=-1)
    batch.call("gtsv", *b.shape[-2:], shifted, diagonal_out, above_out, solution, leading(solution), info)
    np.copyto(below_out, np.roll(shifted, 1, axis=-1))


SOLVE_AND_PERTURB = -1
"""The job of lagts that moves diagonal elements of the factor away from zero where a quotient would overflow."""


def perturbed_tridiagonal(batch: Batch, below: Array, diagonal: Array, above: Array, b: Array, solution: Array) -> None:
    """Solves systems that may be singular: what would be infinite is only very large, which serves inverse iteration.

    The factor of each matrix is used for its columns, one after the other."""
    size = b.shape[-2]
    np.copyto(solution, b)
    main, upper, lower = diagonal.copy(), above.copy(), np.roll(below, -1, axis=-1)
    second, order = np.empty_like(main), np.empty(main.shape, np.int32)
    nothing = Shared(np.zeros(1, batch.dtype))
    batch.call("lagtf", size, main, nothing, upper, lower, nothing, second, order, batch.integers(1))
    by_column = np.ascontiguousarray(np.moveaxis(solution, -1, 0))
    tolerance = np.zeros(main.shape[:-1], batch.dtype)  # the first call chooses it
    for column in by_column:
        factor = (main, upper, lower, second, order)
        batch.call("lagts", SOLVE_AND_PERTURB, size, *factor, column, tolerance, batch.integers(1))
    np.copyto(solution, np.moveaxis(by_column, 0, -1))


register_target("tridiagonal_solve_perturbed_ffi", perturbed_tridiagonal, "sd")
