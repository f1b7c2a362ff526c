"""Systems of equations: triangular and tridiagonal ones."""

from __future__ import annotations

import numpy as np

from xlapy_runtime.lapack.native import Array, Batch, Shared, leading
from xlapy_runtime.lapack.targets import target


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
