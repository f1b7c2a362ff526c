"""How Jacobi's methods find eigenvalues and singular values, so that evaluator and native code come to the same bits.

Sweeps go through all pairs of columns. Of a symmetric matrix, a rotation makes the element zero in which a pair meets,
if that is not small beside those of the diagonal. Of others it makes the pair orthogonal, if it is not so. Matrices are
scaled by powers of two before, and what is found is scaled back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

MOST_SWEEPS = 50
"""Each squares what is left, about: six suffice for 16 rows of f64."""

MOST_ROWS = 16
"""Of matrices whose pairs are turned one after the other. Larger ones have many more, and better ways."""


class Rotations(NamedTuple):
    """What depends on the type of the numbers."""

    small: float  # of what is beside the diagonal, as a share of the larger one of the two that are on it
    small_cosine: float  # between columns, for each row: that much is left by rounding
    lost: float  # the norm of a column that says nothing, beside the rounding of the others
    least: float  # the least normal number
    most_squared: float  # of what is squared: beside the square of more than that, 1 says nothing

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> Rotations:
        info = np.finfo(dtype)
        eps, half = float(info.eps), int(info.maxexp) // 2
        return cls(eps / 4, eps, 2.0 ** (8 - half), float(info.smallest_normal), 2.0 ** (half - 1))


def scales(largest: Array) -> Array:
    """Powers of two by which matrices are scaled, of these largest elements: to less than 2, and 1 at least."""
    bits = largest.view(f"u{largest.itemsize}")
    power = (bits & np.array(np.inf, largest.dtype).view(bits.dtype)).view(largest.dtype)
    least = largest.dtype.type(Rotations.of(largest.dtype).least)
    return np.asarray(largest.dtype.type(1) / np.maximum(power, least))
