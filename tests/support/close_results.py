"""Results that may differ in their last digits."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCES = {
    "bfloat16": 0.02,
    "float16": 0.004,
    "float32": 2e-4,
    "float64": 1e-9,
    "complex64": 1e-4,
    "complex128": 1e-9,
}
"""By the name of the element type; integers are equal."""


def leaves(value: Any) -> list[Any]:
    """The arrays in a result, depth first."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def check_same(got: Any, wanted: Any) -> None:
    """The same arrays, but for what other orders of sums make of their last digits."""
    for one, other in zip(leaves(got), leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        tolerance = TOLERANCES.get(
            str(other.dtype), 0.3 if other.dtype.itemsize == 1 and other.dtype.kind == "V" else 0
        )
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance)
