"""Sliding windows: reduce-window and select-and-scatter.

All positions of the window are handled at once: the elements under one place of the window, for every position, are an
array, and the places come in the order of their indices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from xlapy.hlo.attributes import PaddingDimension, Window, WindowDimension
from xlapy.hlo.evaluate.base import Run, Value, align, evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow, widen
from xlapy.hlo.evaluate.reductions import applying
from xlapy.hlo.evaluate.regions import binary_operation
from xlapy.hlo.evaluate.shapes import pad
from xlapy.hlo.graph import Computation

Steps = Generator[Run, Value, Any]


@evaluator("reduce-window")
def reduce_window(
    inputs: Sequence[Array], init_values: Sequence[Array], *, computation: Computation, window: Window
) -> Steps:
    arrays = align(*inputs)
    sizes = arrays[0].shape
    counts = [part.positions(size) for part, size in zip(window.dimensions, sizes, strict=True)]
    used = [part.places_on_elements(size) for part, size in zip(window.dimensions, sizes, strict=True)]
    cut = [part.cut_to(places) for part, places in zip(window.dimensions, used, strict=True)]
    padding = tuple(PaddingDimension(p.padding_low, p.padding_high, p.base_dilation - 1) for p in cut)
    padded = [pad(array, init, dimensions=padding) for array, init in zip(arrays, init_values, strict=True)]
    beside = [np.broadcast_to(init, counts) for init in init_values]
    operation = binary_operation(computation)
    exact = {"add": np.add, "multiply": np.multiply}.get(operation.opcode) if operation is not None else None
    fold: Callable[[Sequence[Array]], Steps] = applying(computation)
    running = tuple(beside)
    if exact is not None and element_type(arrays[0]).is_narrow_float:
        fold, running = partial(_fold_widened, exact), (widen(beside[0]),)
    for place, times in _places(window, used, counts):
        elements = beside if place is None else [array[place] for array in padded]
        for _ in range(times):
            before, running = running, (yield from fold((*running, *elements)))
            if times > 1 and not computation.has_effect and _same_bits(before, running):
                break  # nor would what is left of so much padding change anything
    results = [narrow(result, element_type(array)) for result, array in zip(running, arrays, strict=True)]
    return tuple(results) if len(results) > 1 else np.array(results[0])


def _fold_widened(operation: Callable[[Array, Array], Array], arguments: Sequence[Array]) -> Steps:
    """What `applying` does for a sum or a product, which is not rounded to the type of the elements."""
    yield from ()
    total, elements = arguments
    with np.errstate(all="ignore"):
        return (operation(total, widen(elements)),)


def _places(
    window: Window, used: Sequence[range], counts: Sequence[int]
) -> Iterator[tuple[tuple[slice, ...] | None, int]]:
    """For each place of the window, in order of indices: what lies under it at all positions, of arrays that are padded
    for the `used` places alone; None for nothing but padding. And how often that comes before the next one."""
    if not all(counts):
        return
    for place in itertools.product(*map(_runs, window.dimensions, used)):
        times = math.prod(length for _, length in place)
        starts = [number * part.window_dilation for (number, _), part in zip(place, window.dimensions, strict=True)]
        inside = tuple(
            slice(start, start + (count - 1) * part.stride + 1, part.stride)
            for start, count, part in zip(starts, counts, window.dimensions, strict=True)
        )
        yield None if any(number < 0 for number, _ in place) else inside, times


def _runs(part: WindowDimension, used: range) -> list[tuple[int, int]]:
    """The used places of a dimension, counted by themselves, and as -1 all others before and behind them, with how many
    of them there are."""
    runs = [(-1, used.start), *((number, 1) for number in range(len(used))), (-1, part.size - used.stop)]
    return [(number, length) for number, length in runs if length]


def _same_bits(before: Sequence[Array], after: Sequence[Array]) -> bool:
    return all(one.tobytes() == other.tobytes() for one, other in zip(before, after, strict=True))


@evaluator("select-and-scatter")
def select_and_scatter(
    operand: Array, source: Array, init_value: Array, *, select: Computation, scatter: Computation, window: Window
) -> Steps:
    chosen = yield from _selected(operand, source.shape, select, window)
    result = np.full(operand.size, init_value)
    combine = applying(scatter)
    for position, value in zip(chosen.reshape(-1), source.reshape(-1), strict=True):
        if position >= 0:
            (combined,) = yield from combine((result[position, None], value[None]))
            result[position] = combined[0]
    return result.reshape(operand.shape)


def _selected(
    operand: Array, counts: Sequence[int], select: Computation, window: Window
) -> Generator[Run, Value, Array]:
    """For each position of the window, the number of the element that it selects; -1 where there is only padding."""
    numbers = np.arange(operand.size).reshape(operand.shape)
    best = np.full(counts, -1)
    choose = applying(select)
    if not operand.size:
        return best
    for place in itertools.product(*(range(part.size) for part in window.dimensions)):
        index = np.ix_(
            *(
                np.arange(count) * part.stride - part.padding_low + offset
                for count, part, offset in zip(counts, window.dimensions, place, strict=True)
            )
        )
        inside = np.ones(counts, np.bool_)
        for positions, size in zip(index, operand.shape, strict=True):
            inside &= (positions >= 0) & (positions < size)
        clipped = tuple(np.clip(positions, 0, size - 1) for positions, size in zip(index, operand.shape, strict=True))
        candidates = np.broadcast_to(numbers[clipped], counts)
        values = operand.reshape(-1)
        (keeps,) = yield from choose((values[best], values[candidates]))
        best = np.where(inside & ((best < 0) | ~keeps), candidates, best)
    return best
