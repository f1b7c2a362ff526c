"""Sliding windows: reduce-window and select-and-scatter.

All positions of the window are handled at once: the elements under one place of the window, for every position, are an
array, and the places come in the order of their indices.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from xlapy.hlo.attributes import PaddingDimension, Window
from xlapy.hlo.evaluate.base import Run, Value, align, evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow, widen
from xlapy.hlo.evaluate.reductions import apply
from xlapy.hlo.evaluate.regions import binary_operation
from xlapy.hlo.evaluate.shapes import pad
from xlapy.hlo.graph import Computation

Steps = Generator[Run, Value, Any]


@evaluator("reduce-window")
def reduce_window(
    inputs: Sequence[Array], init_values: Sequence[Array], *, computation: Computation, window: Window
) -> Steps:
    arrays = align(*inputs)
    padding = tuple(PaddingDimension(p.padding_low, p.padding_high, p.base_dilation - 1) for p in window.dimensions)
    padded = [pad(array, init, dimensions=padding) for array, init in zip(arrays, init_values, strict=True)]
    counts = [part.positions(size) for part, size in zip(window.dimensions, arrays[0].shape, strict=True)]
    places = _places(window, counts)
    operation = binary_operation(computation)
    exact = {"add": np.add, "multiply": np.multiply}.get(operation.opcode) if operation is not None else None
    if exact is not None and element_type(arrays[0]).is_narrow_float:
        total = np.broadcast_to(widen(init_values[0]), counts)
        with np.errstate(all="ignore"):
            for place in places:
                total = exact(total, widen(padded[0][place]))
        return narrow(total, element_type(arrays[0]))
    running = tuple(np.broadcast_to(init, counts) for init in init_values)
    for place in places:
        running = yield from apply(computation, (*running, *(array[place] for array in padded)))
    return running if len(running) > 1 else np.array(running[0])


def _places(window: Window, counts: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """For each place of the window, in order of indices: what lies under it at all positions."""
    if not all(counts):
        return
    for place in itertools.product(*(range(part.size) for part in window.dimensions)):
        starts = [number * part.window_dilation for number, part in zip(place, window.dimensions, strict=True)]
        yield tuple(
            slice(start, start + (count - 1) * part.stride + 1, part.stride)
            for start, count, part in zip(starts, counts, window.dimensions, strict=True)
        )


@evaluator("select-and-scatter")
def select_and_scatter(
    operand: Array, source: Array, init_value: Array, *, select: Computation, scatter: Computation, window: Window
) -> Steps:
    chosen = yield from _selected(operand, source.shape, select, window)
    result = np.full(operand.size, init_value)
    for position, value in zip(chosen.reshape(-1), source.reshape(-1), strict=True):
        if position >= 0:
            (combined,) = yield from apply(scatter, (result[position, None], value[None]))
            result[position] = combined[0]
    return result.reshape(operand.shape)


def _selected(
    operand: Array, counts: Sequence[int], select: Computation, window: Window
) -> Generator[Run, Value, Array]:
    """For each position of the window, the number of the element that it selects; -1 where there is only padding."""
    numbers = np.arange(operand.size).reshape(operand.shape)
    best = np.full(counts, -1)
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
        (keeps,) = yield from apply(select, (values[best], values[candidates]))
        best = np.where(inside & ((best < 0) | ~keeps), candidates, best)
    return best
