"""How Jacobi's method finds eigenvalues, so that the evaluator and native code come to the same bits.

Sweeps go through all pairs of rows. Where the element in which a pair meets is not small beside those of the diagonal,
a rotation makes it zero. Matrices whose largest element is near the end of a type's range are scaled before, and
eigenvalues back behind, by powers of two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

MOST_SWEEPS = 50
"""Each squares what is left, about: six suffice for 16 rows of f64."""


MOST_ROWS = 16
"""Of matrices whose pairs of rows are turned one after the other. Larger ones have many more, and better ways."""


class Rotations(NamedTuple):
    """What depends on the type of the numbers."""

    small: float  # of what is beside the diagonal, as a share of the larger one of the two that are on it
    large: float  # the largest element of a matrix that is not scaled
    little: float  # and the least
    down: float  # by what a large one is scaled
    up: float  # and a little one

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> Rotations:
        info = np.finfo(dtype)
        range = int(info.maxexp)
        return cls(float(info.eps) / 4, 2.0 ** (range - 16), 2.0 ** -(range // 2), 2.0**-32, 2.0 ** (range // 2))

    def scale(self, largest: Array) -> Array:
        """By what matrices are scaled, of these largest elements."""
        scale = np.where(largest > self.large, self.down, np.where(largest < self.little, self.up, 1.0))
        return scale.astype(largest.dtype)
