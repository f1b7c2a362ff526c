"""Order: sort, by merging, and topk.

Merging needs nothing of a comparator but its answers: whatever it says, the result is a permutation of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from xlapy.hlo.evaluate.base import Run, Value, align, evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, total_order, widen
from xlapy.hlo.evaluate.reductions import Applied, applying
from xlapy.hlo.evaluate.regions import ArrayFunction, array_function
from xlapy.hlo.graph import Computation

Steps = Generator[Run, Value, Any]


@evaluator("sort")
def sort(inputs: Sequence[Array], *, comparator: Computation, dimension: int, is_stable: bool) -> Steps:
    rows = [np.moveaxis(array, dimension, -1) for array in align(*inputs)]
    order = np.broadcast_to(np.arange(rows[0].shape[-1]), rows[0].shape).copy()
    compare, compare_at_once = applying(comparator), array_function(comparator)
    width = 1
    while width < order.shape[-1] and order.size:
        found = _merged_by_search(rows, order, width, compare_at_once) if compare_at_once is not None else None
        order = (yield from _merge_runs(rows, order, width, compare)) if found is None else found
        width *= 2
    results = tuple(np.moveaxis(np.take_along_axis(row, order, -1), -1, dimension) for row in rows)
    return results if len(results) > 1 else results[0]


def _merge_runs(
    rows: Sequence[Array], order: Array, width: int, compare: Callable[[Sequence[Array]], Applied]
) -> Generator[Run, Value, Array]:
    """Merges neighbouring sorted runs of `width`, all pairs and rows in step; of equals the left one goes first."""
    length = order.shape[-1]
    begin = np.arange(0, length, 2 * width)
    middle, end = np.minimum(begin + width, length), np.minimum(begin + 2 * width, length)
    left = np.broadcast_to(begin, (*order.shape[:-1], len(begin))).copy()
    right = np.broadcast_to(middle, left.shape).copy()
    merged = np.empty_like(order)
    for step in range(int((end - begin).max())):
        left_place, right_place = _at(order, left), _at(order, right)
        (right_first,) = yield from compare(_compared(rows, right_place, left_place))
        take_right = (right < end) & ((left >= middle) | right_first)
        active = begin + step < end
        target = np.broadcast_to(begin + step, left.shape)[..., active]
        np.put_along_axis(merged, target, np.where(take_right, right_place, left_place)[..., active], -1)
        left, right = left + ~take_right, right + take_right
    return merged


def _merged_by_search(rows: Sequence[Array], order: Array, width: int, compare: ArrayFunction) -> Array | None:
    """The same in few steps, if the comparator puts these elements in an order; else None.

    For each left element, the number of right ones before it is searched by halves. Merging asks for the next of the
    left against the next of the right: it goes this way if, all along it, the answers are those that lead on."""
    index = np.arange(order.shape[-1])
    begin = index - index % (2 * width)
    middle, end = np.minimum(begin + width, len(index)), np.minimum(begin + 2 * width, len(index))
    lefts = index[index < middle]
    left_place = order[..., lefts]
    low = np.broadcast_to(middle[lefts], left_place.shape)
    high = np.broadcast_to(end[lefts], left_place.shape)
    while (is_open := low < high).any():
        half = (low + high) // 2
        (right_first,) = compare(_compared(rows, _at(order, half), left_place))
        low, high = np.where(is_open & right_first, half + 1, low), np.where(is_open & ~right_first, half, high)
    comes_left = np.zeros(order.shape, bool)
    np.put_along_axis(comes_left, lefts + low - middle[lefts], True, -1)
    left = begin // 2 + np.cumsum(comes_left, -1) - comes_left  # half of what lies before two runs is on the left
    right = middle + index - left
    left_place, right_place = _at(order, left), _at(order, right)
    (right_first,) = compare(_compared(rows, right_place, left_place))
    take_right = (right < end) & ((left >= middle) | right_first)
    return np.where(take_right, right_place, left_place) if np.array_equal(take_right, ~comes_left) else None


def _at(order: Array, places: Array) -> Array:
    """What stands there; behind the end, the last."""
    return np.take_along_axis(order, np.minimum(places, order.shape[-1] - 1), -1)


def _compared(rows: Sequence[Array], first: Array, second: Array) -> list[Array]:
    """The arguments of a comparator: of each row what is at the first places, and at the second."""
    return [np.take_along_axis(row, places, -1) for row in rows for places in (first, second)]


@evaluator("topk")
def topk(operand: Array, *, k: int, largest: bool) -> tuple[Array, Array]:
    key = total_order(operand) if element_type(operand).is_float else widen(operand)
    if largest:
        key = ~key  # reverses the order of integers, signed or not
    best = np.argsort(key, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(operand, best, -1), best.astype(np.int32)
