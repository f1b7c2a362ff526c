"""Data movement with run-time indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.evaluate.base import Steps, align, evaluator, instruction_evaluator
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.evaluate.reductions import applying
from xlapy.hlo.evaluate.shapes import grown
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape


def clamped_window(starts: Sequence[Array], sizes: Sequence[int], available: Sequence[int]) -> tuple[slice, ...]:
    """The window of `sizes` that begins at `starts`, moved inward until it lies within `available`, or begins at 0."""
    window = []
    for start, size, limit in zip(starts, sizes, available, strict=True):
        first = max(min(int(start), limit - size), 0)
        window.append(slice(first, first + size))
    return tuple(window)


def slice_bounds(slice_sizes: Sequence[int], operand: Array, shape: Shape) -> list[int]:
    """The sizes of slices at run time: where they take a whole bounded dimension, they are what there is of it."""
    return [
        available if shape.is_dynamic_dim(dim) and size == shape.dims[dim] else size
        for dim, (size, available) in enumerate(zip(slice_sizes, operand.shape, strict=True))
    ]


@instruction_evaluator("dynamic-slice")
def dynamic_slice(instruction: Instruction, operands: list[Array]) -> Array:
    operand, *starts = operands
    sizes = slice_bounds(instruction.attributes["slice_sizes"], operand, instruction.operands[0].shape)
    return grown(operand, sizes)[clamped_window(starts, sizes, operand.shape)]


@evaluator("dynamic-update-slice")
def dynamic_update_slice(operand: Array, update: Array, start_indices: Sequence[Array]) -> Array:
    """Of an update that is larger than the operand, only the beginning is written."""
    result = operand.copy()
    written = update[tuple(slice(size) for size in operand.shape)]
    result[clamped_window(start_indices, written.shape, operand.shape)] = written
    return result


@instruction_evaluator("gather")
def gather(instruction: Instruction, operands: list[Array]) -> Array:
    operand, indices = operands
    sizes = slice_bounds(instruction.attributes["slice_sizes"], operand, instruction.operands[0].shape)
    return gathered(operand, indices, instruction.attributes["dimension_numbers"], sizes)


def gathered(
    operand: Array,
    start_indices: Array,
    numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
) -> Array:
    """A slice for each index vector. Slices larger than the operand are zero where it ends, and so is what is taken of
    slices without elements."""
    available = operand.shape
    operand = grown(operand, slice_sizes)
    vectors = index_vectors(_common_batch(start_indices, available, numbers), numbers.index_vector_dim)
    batch = vectors.shape[:-1]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = iter([size for dim, size in enumerate(slice_sizes) if dim not in dropped])
    rest = iter(batch)
    rank = len(batch) + len(numbers.offset_dims)
    dims = [next(kept) if axis in numbers.offset_dims else next(rest) for axis in range(rank)]
    if not operand.size or not all(slice_sizes) or not all(dims):
        return np.zeros(dims, operand.dtype)
    places = _places(vectors, available, numbers, slice_sizes)
    return np.broadcast_to(operand[places] if places else operand, dims).copy()


def _places(
    vectors: Array, available: Sequence[int], numbers: GatherDimensionNumbers, slice_sizes: Sequence[int]
) -> tuple[Array, ...]:
    """For each dimension of the operand, from where in it each element of the result is taken."""
    batch = vectors.shape[:-1]
    rank = len(batch) + len(numbers.offset_dims)
    batch_axes = [axis for axis in range(rank) if axis not in numbers.offset_dims]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    offset_axes = iter(numbers.offset_dims)
    places = []
    for dim, size in enumerate(slice_sizes):
        place = np.zeros((1,) * rank, np.int64)
        if dim in numbers.start_index_map:
            first = vectors[..., numbers.start_index_map.index(dim)]
            limit = max(available[dim] - size, 0)
            place = place + _along_axes(np.clip(first, 0, limit), batch_axes, rank)
        if dim in numbers.operand_batching_dims:
            axis = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(dim)]
            axis -= axis > numbers.index_vector_dim
            place = place + _along_axes(np.arange(batch[axis]), [batch_axes[axis]], rank)
        if dim not in dropped:
            place = place + _along_axes(np.arange(size), [next(offset_axes)], rank)
        places.append(place)
    return tuple(places)


def _common_batch(indices: Array, available: Sequence[int], numbers: GatherDimensionNumbers) -> Array:
    """The indices, cut to as many batches as the operand has at run time."""
    kept = [slice(None)] * indices.ndim
    for dim, partner in zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True):
        kept[dim] = slice(available[partner])
    return indices[tuple(kept)]


def index_vectors(indices: Array, index_vector_dim: int) -> Array:
    """The index vectors along the last dimension, as s64; what s64 cannot hold is its largest number."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    wide = indices.astype(np.int64)
    if index_vector_dim == wide.ndim:
        return wide[..., np.newaxis]
    return np.moveaxis(wide, index_vector_dim, -1)


def _along_axes(array: Array, axes: Sequence[int], rank: int) -> Array:
    """The array with its dimensions at `axes`, ascending, of `rank` dimensions; the others have size 1."""
    dims = [1] * rank
    for axis, size in zip(axes, array.shape, strict=True):
        dims[axis] = size
    return array.reshape(dims)


@evaluator("scatter")
def scatter(
    inputs: Sequence[Array],
    scatter_indices: Array,
    updates: Sequence[Array],
    *,
    update_computation: Computation,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Steps:
    numbers = dimension_numbers
    inputs, updates = align(*inputs), align(*updates)
    results = [array.copy() for array in inputs]
    vectors = index_vectors(scatter_indices, numbers.index_vector_dim)
    scatter_axes = [axis for axis in range(updates[0].ndim) if axis not in numbers.update_window_dims]
    dropped = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    counts = zip(vectors.shape[:-1], (updates[0].shape[axis] for axis in scatter_axes), strict=True)
    combine = applying(update_computation)
    for position in np.ndindex(*map(min, counts)):
        starts = _window_start(numbers, position, vectors[position], inputs[0].ndim)
        index: list[int | slice] = [slice(None)] * updates[0].ndim
        for axis, place in zip(scatter_axes, position, strict=True):
            index[axis] = place
        windows = [np.expand_dims(update[tuple(index)], sorted(dropped)) for update in updates]
        inside, target = _inside(starts, windows[0].shape, inputs[0].shape)
        if windows[0][inside].size:
            present = [result[target] for result in results]
            combined = yield from combine((*present, *(window[inside] for window in windows)))
            for result, values in zip(results, combined, strict=True):
                result[target] = values
    return tuple(results) if len(results) > 1 else results[0]


def _window_start(numbers: ScatterDimensionNumbers, position: Sequence[int], vector: Array, rank: int) -> list[int]:
    """Where in the inputs the window of updates begins that has an index vector, at a position of the indices."""
    starts = [0] * rank
    for dim, start in zip(numbers.scatter_dims_to_operand_dims, vector, strict=True):
        starts[dim] = int(start)
    for dim, axis in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        starts[dim] = position[axis - (axis > numbers.index_vector_dim)]
    return starts


def _inside(
    starts: Sequence[int], sizes: Sequence[int], available: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part of a window that lies within `available`, and where it lies there."""
    inside, target = [], []
    for start, size, limit in zip(starts, sizes, available, strict=True):
        first, last = max(0, -start), min(size, limit - start)
        last = max(first, last)
        inside.append(slice(first, last))
        target.append(slice(first + start, last + start) if last > first else slice(0, 0))
    return tuple(inside), tuple(target)
