"""Order: sort, by merging, and topk.

Merging needs nothing of a comparator but its answers: whatever it says, the result is a permutation of the input.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from xlapy.hlo.evaluate.base import Run, Value, align, evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, total_order, widen
from xlapy.hlo.evaluate.reductions import apply
from xlapy.hlo.graph import Computation

Steps = Generator[Run, Value, Any]


@evaluator("sort")
def sort(inputs: Sequence[Array], *, comparator: Computation, dimension: int, is_stable: bool) -> Steps:
    rows = [np.moveaxis(array, dimension, -1) for array in align(*inputs)]
    order = np.broadcast_to(np.arange(rows[0].shape[-1]), rows[0].shape).copy()
    width = 1
    while width < order.shape[-1] and order.size:
        order = yield from _merge_runs(rows, order, width, comparator)
        width *= 2
    results = tuple(np.moveaxis(np.take_along_axis(row, order, -1), -1, dimension) for row in rows)
    return results if len(results) > 1 else results[0]


def _merge_runs(
    rows: Sequence[Array], order: Array, width: int, comparator: Computation
) -> Generator[Run, Value, Array]:
    """Merges neighbouring sorted runs of `width`, all pairs and rows in step; of equals the left one goes first."""
    length = order.shape[-1]
    begin = np.arange(0, length, 2 * width)
    middle, end = np.minimum(begin + width, length), np.minimum(begin + 2 * width, length)
    left = np.broadcast_to(begin, (*order.shape[:-1], len(begin))).copy()
    right = np.broadcast_to(middle, left.shape).copy()
    merged = np.empty_like(order)
    for step in range(int((end - begin).max())):
        left_place = np.take_along_axis(order, np.minimum(left, length - 1), -1)
        right_place = np.take_along_axis(order, np.minimum(right, length - 1), -1)
        arguments = [np.take_along_axis(row, place, -1) for row in rows for place in (right_place, left_place)]
        (right_first,) = yield from apply(comparator, arguments)
        take_right = (right < end) & ((left >= middle) | right_first)
        active = begin + step < end
        target = np.broadcast_to(begin + step, left.shape)[..., active]
        np.put_along_axis(merged, target, np.where(take_right, right_place, left_place)[..., active], -1)
        left, right = left + ~take_right, right + take_right
    return merged


@evaluator("topk")
def topk(operand: Array, *, k: int, largest: bool) -> tuple[Array, Array]:
    key = total_order(operand) if element_type(operand).is_float else widen(operand)
    if largest:
        key = ~key  # reverses the order of integers, signed or not
    best = np.argsort(key, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(operand, best, -1), best.astype(np.int32)
