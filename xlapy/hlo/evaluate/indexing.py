"""Data movement with run-time indices."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array


def clamped_window(starts: Sequence[Array], sizes: Sequence[int], available: Sequence[int]) -> tuple[slice, ...]:
    """The window of `sizes` that begins at `starts`, moved inward until it lies within `available`."""
    window = []
    for start, size, limit in zip(starts, sizes, available, strict=True):
        first = min(max(int(start), 0), limit - size)
        window.append(slice(first, first + size))
    return tuple(window)


@evaluator("dynamic-slice")
def dynamic_slice(operand: Array, start_indices: Sequence[Array], *, slice_sizes: tuple[int, ...]) -> Array:
    return operand[clamped_window(start_indices, slice_sizes, operand.shape)]


@evaluator("dynamic-update-slice")
def dynamic_update_slice(operand: Array, update: Array, start_indices: Sequence[Array]) -> Array:
    result = operand.copy()
    result[clamped_window(start_indices, update.shape, operand.shape)] = update
    return result
