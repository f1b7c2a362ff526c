"""Systems of equations: triangular and tridiagonal ones."""

from __future__ import annotations

from xlapy_runtime.lapack.native import INTEGER, Batch, leading
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.lapack.signatures import require_sizes
from xlapy_runtime.lapack.targets import register_target, target


@target("trsm", "sdcz", "t[r,r], t[m,n] -> t[m,n]", side="LR", uplo="LU", trans_x="NTC", diag="UN")
def triangular(
    batch: Batch, a: Place, b: Place, solution: Place, *, side: int, uplo: int, trans_x: int, diag: int
) -> None:
    require_sizes(a.shape[-1] == b.shape[-2 if chr(side) == "L" else -1], "r is m or, from the right, n", a, b)
    batch.copy(b, solution)
    one = batch.constant(1)
    letters = map(chr, (side, uplo, trans_x, diag))
    batch.call("trsm", *letters, *b.shape[-2:], one, a, leading(a), solution, leading(solution))


@target("gtsv", "sdcz", "t[m], t[m], t[m], t[m,n] -> t[m], t[m], t[m], t[m,n], s32[]")
def tridiagonal(
    batch: Batch,
    below: Place,
    diagonal: Place,
    above: Place,
    b: Place,
    below_out: Place,
    diagonal_out: Place,
    above_out: Place,
    solution: Place,
    info: Place,
) -> None:
    """All three diagonals are as long as the matrix; the first element of the one below is not part of it."""
    for source, place in ((diagonal, diagonal_out), (above, above_out), (b, solution)):
        batch.copy(source, place)
    shifted = batch.room(below.shape, below.dtype)
    batch.rotate(below, shifted, -1)
    batch.call("gtsv", *b.shape[-2:], shifted, diagonal_out, above_out, solution, leading(solution), info)
    batch.rotate(shifted, below_out, 1)


SOLVE_AND_PERTURB = -1
"""The job of lagts that moves diagonal elements of the factor away from zero where a quotient would overflow."""


def perturbed_tridiagonal(batch: Batch, below: Place, diagonal: Place, above: Place, b: Place, solution: Place) -> None:
    """Solves systems that may be singular: what would be infinite is only very large, which serves inverse iteration.

    The factor of each matrix is used for its columns, one after the other."""
    *dims, size, columns = b.shape
    main, upper, lower, second = (batch.room(diagonal.shape, batch.dtype) for _ in range(4))
    order = batch.room(diagonal.shape, INTEGER)
    nothing = batch.constant(0)
    batch.copy(diagonal, main)
    batch.copy(above, upper)
    batch.rotate(below, lower, -1)
    batch.call("lagtf", size, main, nothing, upper, lower, nothing, second, order, batch.integers(1))
    right_side = batch.room((*dims, size), batch.dtype)
    tolerance = batch.room(diagonal.shape[:-1], batch.dtype)
    batch.clear(tolerance)  # the first call chooses it
    for column in range(columns):
        factor = (main, upper, lower, second, order)
        batch.take_column(b, column, right_side)
        batch.call("lagts", SOLVE_AND_PERTURB, size, *factor, right_side, tolerance, batch.integers(1))
        batch.give_column(right_side, solution, column)


register_target("tridiagonal_solve_perturbed_ffi", perturbed_tridiagonal, "sd", "t[m], t[m], t[m], t[m,n] -> t[m,n]")
