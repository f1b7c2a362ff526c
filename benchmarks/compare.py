"""Whether two engines agree on the results of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

_ROUNDINGS = 64
"""Roundings of the element type, relative to the largest result, that separate two good orders of evaluation."""

_EPSILON = {
    np.dtype(np.float64): 2.0**-52,
    np.dtype(np.float32): 2.0**-23,
    np.dtype(np.float16): 2.0**-10 / 8,  # computed in f32 by one engine or the other, and rounded only at the end
    np.dtype(ml_dtypes.bfloat16): 2.0**-7 / 8,
    np.dtype(np.complex64): 2.0**-23,
    np.dtype(np.complex128): 2.0**-52,
}


@dataclass(frozen=True)
class Agreement:
    """The largest difference, as a multiple of what is tolerated, and the share of results beyond that."""

    worst: float
    beyond: float
    problem: str = ""

    def holds(self, may_differ: float = 0.0) -> bool:
        return not self.problem and self.beyond <= may_differ


def compare(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], tolerance: float = 1.0) -> Agreement:
    """Integers and truth values agree exactly, floats within `tolerance` times what their type's rounding explains.

    XLA contracts multiply-adds and flushes subnormals, and both reassociate sums, so bits may differ."""
    if len(ours) != len(theirs):
        return Agreement(np.inf, 1.0, f"{len(ours)} results beside {len(theirs)}")
    worst = beyond = 0.0
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        if own.shape != other.shape or own.dtype != other.dtype:
            problem = f"result {number}: {own.dtype}{list(own.shape)} beside {other.dtype}{list(other.shape)}"
            return Agreement(np.inf, 1.0, problem)
        errors = _errors(own, other, tolerance)
        if errors.size:
            worst = max(worst, float(errors.max()))
            beyond = max(beyond, float((errors > 1).mean()))
    return Agreement(worst, beyond)


def _errors(own: np.ndarray, other: np.ndarray, tolerance: float) -> np.ndarray:
    """Element by element, the difference in multiples of what is tolerated; infinite where only one is a number."""
    epsilon = _EPSILON.get(own.dtype)
    if epsilon is None:
        return np.where(own == other, 0.0, np.inf)
    wide = np.complex128 if own.dtype.kind == "c" else np.float64
    first, second = own.astype(wide), other.astype(wide)
    finite = np.isfinite(first) & np.isfinite(second)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    scale = np.abs(second[finite]).max(initial=0.0) or 1.0
    with np.errstate(invalid="ignore"):
        distance = np.abs(first - second) / (tolerance * _ROUNDINGS * epsilon * scale)
    return np.where(same, 0.0, np.where(finite, distance, np.inf))
