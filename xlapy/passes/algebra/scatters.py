"""Laws of gather and scatter whose places are known, or are one place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection, GatherDimensionNumbers, ScatterDimensionNumbers, SliceDimension
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy.hlo.literal import Literal
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, z, c, p, numbers, sizes = variables("x y z c p numbers sizes")


@LAWS.law(P.gather(x, y, dimension_numbers=numbers, slice_sizes=sizes))
def gather_of_range(
    root: Instruction, x: Instruction, y: Instruction, numbers: GatherDimensionNumbers, sizes: Dims
) -> Value | None:
    """gather(x, 0 1 2 ...) -> transpose(slice(x)), where one dimension is looked up at evenly spaced places"""
    if len(numbers.start_index_map) != 1 or numbers.collapsed_slice_dims != numbers.start_index_map:
        return None
    (dim,) = numbers.start_index_map
    batch = [place for place in range(root.shape.rank) if place not in numbers.offset_dims]
    if numbers.operand_batching_dims or len(batch) != 1 or not y.shape.size or 0 in sizes:
        return None
    places = _range_of(y)
    if places is None or places.start < 0 or places.limit > x.shape.dims[dim]:
        return None
    taken = tuple(places if place == dim else SliceDimension(0, size) for place, size in enumerate(sizes))
    others = iter(place for place in range(x.shape.rank) if place != dim)
    permutation = tuple(dim if place in batch else next(others) for place in range(root.shape.rank))
    return new.transpose(new.slice(x, dimensions=taken), permutation=permutation)


def _range_of(indices: Instruction) -> SliceDimension | None:
    """The evenly spaced, growing indices that an array of them lists."""
    count = indices.shape.size
    if indices.opcode == "iota":
        counts_all = indices.shape.dims[indices.attributes["dimension"]] == count
        return SliceDimension(0, count) if counts_all and indices.shape.type.holds(0, count - 1) else None
    if indices.opcode == "reshape":
        return _range_of(indices.operands[0])
    number = number_of(indices)
    if number is not None:
        return SliceDimension(int(number), int(number) + 1) if count == 1 else None
    if indices.opcode != "constant":
        return None
    return _range_of_constant(indices.attributes["literal"].array.reshape(-1))


def _range_of_constant(listed: Array) -> SliceDimension | None:
    """The ends tell of most arrays that they are no range."""
    first, last = int(listed[0]), int(listed[-1])
    step = int(listed[1]) - first if listed.size > 1 else 1
    if step < 1 or last != first + step * (listed.size - 1):
        return None
    wrapped = np.arange(listed.size, dtype=np.uint64) * np.uint64(step) + np.uint64(first % (1 << 64))
    is_range = np.array_equal(listed.astype(np.int64).view(np.uint64), wrapped)
    return SliceDimension(first, last + 1, step) if is_range else None


@LAWS.law(P.gather(x, y, dimension_numbers=numbers, slice_sizes=sizes))
def gather_of_one_slice(
    root: Instruction, x: Instruction, y: Instruction, numbers: GatherDimensionNumbers, sizes: Dims
) -> Value | None:
    """gather(x, one index vector) -> reshape(dynamic-slice(x)), where the indices are scalars or constants"""
    plain = not numbers.operand_batching_dims and 0 not in sizes
    starts = _index_scalars(y, len(numbers.start_index_map)) if plain else None
    if starts is None:
        return None
    zero = new.op("constant", literal=Literal(y.shape.type.dtype.type(0)))
    by_dimension = dict(zip(numbers.start_index_map, starts, strict=True))
    ordered = [by_dimension.get(dim, zero) for dim in range(x.shape.rank)]
    return new.reshaped(new.dynamic_slice(x, *ordered, slice_sizes=sizes), root.shape.dims)


def _index_scalars(indices: Instruction, count: int) -> list[Value] | None:
    """The elements of an index vector, each as a scalar that costs nothing to get."""
    if indices.shape.size != count or not count:
        return None
    if indices.opcode == "constant":
        listed = indices.attributes["literal"].array.reshape(-1)
        return [new.op("constant", literal=Literal(number)) for number in listed]
    if number_of(indices) is not None:
        return [new.op("constant", literal=Literal(number_of(indices)))] * count
    if indices.opcode in ("reshape", "broadcast") and indices.operands[0].shape.is_scalar:
        return [indices.operands[0]] * count
    if indices.opcode == "concatenate":
        parts = [_index_scalars(part, part.shape.size) for part in indices.operands]
        known = [scalar for part in parts if part is not None for scalar in part]
        return known if len(known) == count else None
    return None


@LAWS.law(P.transpose(y.where(P.only(P.gather(x, z))), permutation=p))
def transpose_of_gather(root: Instruction, x: Instruction, y: Instruction, z: Instruction, p: Dims) -> Value | None:
    """transpose(gather(x, i)) -> gather(x, i) whose slices lie along other dimensions, where few elements change places

    It picks single elements anyway: the last dimension is one of places. And what it picks from is in the nearest cache
    in either order."""
    numbers: GatherDimensionNumbers = y.attributes["dimension_numbers"]
    dims = y.shape.dims
    outer = next((place for place, dim in enumerate(p) if place != dim), len(p))
    order = [dim for dim in p if dims[dim] != 1]
    copies_slices = max(order, default=0) in numbers.offset_dims
    if not y.shape.is_static or copies_slices or math.prod(dims[outer:]) > MOST_EXCHANGED:
        return None
    for of_slices in (True, False):
        kept = [dim for dim in order if (dim in numbers.offset_dims) == of_slices]
        if kept != sorted(kept):
            return None
    for dim in (dim for dim in range(len(dims)) if dims[dim] == 1):  # which lie anywhere, but in order
        behind = (place for place, other in enumerate(order) if other > dim and _are_alike(numbers, dim, other))
        order.insert(next(behind, len(order)), dim)
    slices = tuple(place for place, dim in enumerate(order) if dim in numbers.offset_dims)
    moved = new.like(y, [x, z], dimension_numbers=replace(numbers, offset_dims=slices))
    return new.reshaped(moved, root.shape.dims)


MOST_EXCHANGED = 1024
"""Elements that a transpose may move far from where they were, for a gather to do that itself."""


def _are_alike(numbers: GatherDimensionNumbers, one: int, other: int) -> bool:
    """Both dimensions of a result are those of slices, or none is."""
    return (one in numbers.offset_dims) == (other in numbers.offset_dims)


@LAWS.law(P.scatter(x, y, z, dimension_numbers=numbers))
def scatter_nothing(x: Instruction, z: Instruction) -> Value | None:
    """scatter(x, indices, nothing) -> x"""
    return x if not z.shape.size else None


@LAWS.law(P.scatter(x, y, z))
def scatter_of_one_window(root: Instruction) -> Value | None:
    """scatter(x, one constant index vector, z) -> dynamic-update-slice(x, f(slice(x), z)), where the window fits"""
    return scatter_as_update(root, lambda index: None)


def scatter_as_update(scatter: Instruction, range_of: Callable[[Instruction], tuple[int, int] | None]) -> Value | None:
    """The scatter of one window as a dynamic-update-slice, if the window surely lies within the operand.

    `range_of` says between which numbers an index lies, if that is known."""
    numbers: ScatterDimensionNumbers = scatter.attributes["dimension_numbers"]
    x, indices, updates = scatter.operands
    dims = numbers.scatter_dims_to_operand_dims
    scalars = None if numbers.input_batching_dims or not updates.shape.size else _index_scalars(indices, len(dims))
    if scalars is None:
        return None
    zero = new.op("constant", literal=Literal(indices.shape.type.dtype.type(0)))
    by_dimension = dict(zip(dims, scalars, strict=True))
    starts = [by_dimension.get(dim, zero) for dim in range(x.shape.rank)]
    window = _window_sizes(x.shape.rank, updates.shape.dims, numbers)
    for start, available, size in zip(starts, x.shape.dims, window, strict=True):
        bounds = _bounds(start, range_of)
        if bounds is None or bounds[0] < 0 or bounds[1] > available - size:
            return None
    update = _combined(scatter, x, new.reshaped(updates, window), starts, tuple(window))
    return None if update is None else new.dynamic_update_slice(x, update, *starts)


def _bounds(scalar: Value, range_of: Callable[[Instruction], tuple[int, int] | None]) -> tuple[int, int] | None:
    number = number_of(scalar) if isinstance(scalar, Instruction) else scalar.attributes["literal"].scalar()
    if number is not None:
        return int(number), int(number)
    return range_of(scalar) if isinstance(scalar, Instruction) else None


def _window_sizes(rank: int, updates: Dims, numbers: ScatterDimensionNumbers) -> list[int]:
    """The sizes of the window of updates in the dimensions of the operand."""
    sizes = iter(updates[dim] for dim in numbers.update_window_dims)
    return [1 if dim in numbers.inserted_window_dims else next(sizes) for dim in range(rank)]


def _combined(root: Instruction, x: Instruction, update: Value, starts: list[Value], sizes: Dims) -> Value | None:
    """What stands in the window afterwards, if the computation takes the update or is one operation."""
    region = root.called[0]
    if region.root is region.parameters[1]:
        return update
    operation = sole_operation(region)
    if operation is None:
        return None
    return new.op(operation.opcode, [new.dynamic_slice(x, *starts, slice_sizes=sizes), update])


@LAWS.law(P.scatter(P.number(c), y, z, dimension_numbers=numbers))
def scatter_of_one_per_row(
    root: Instruction, c: Any, y: Instruction, z: Instruction, numbers: ScatterDimensionNumbers
) -> Value | None:
    """scatter(c, i, z) -> select(iota == i, f(c, z), c), for a number c and one place in each row

    All of the result is written anyway, and what selects fuses with what reads it."""
    rows = _rows_of(root, y, numbers)
    if rows is None or not _holds_places(root, y, numbers):
        return None
    kept = [y.shape.dims[dim] for dim in sorted(rows)]
    dimensions = tuple(rows[dim] for dim in sorted(rows))
    place = new.broadcast(new.reshaped(y, kept), shape=root.shape.with_type(y.shape.type), dimensions=dimensions)
    update = new.broadcast(new.reshaped(z, kept), shape=root.shape, dimensions=dimensions)
    (along,) = numbers.scatter_dims_to_operand_dims
    hit = new.compare(new.iota(shape=place.shape, dimension=along), place, direction=ComparisonDirection.EQ)
    former = new.number(c, like=root)
    region = root.called[0]
    operation = sole_operation(region)
    if region.root is region.parameters[1]:
        return new.select(hit, update, former)
    if operation is None:
        return None
    return new.select(hit, new.op(operation.opcode, [former, update]), former)


def _rows_of(root: Instruction, indices: Instruction, numbers: ScatterDimensionNumbers) -> dict[int, int] | None:
    """For each dimension of the indices that counts rows, that of the result; None unless each row has one index."""
    rows = dict(zip(numbers.scatter_indices_batching_dims, numbers.input_batching_dims, strict=True))
    whole = {*rows.values(), *numbers.scatter_dims_to_operand_dims} == {*range(root.shape.rank)}
    others = [size for dim, size in enumerate(indices.shape.dims) if dim not in rows]
    plain = whole and len(numbers.scatter_dims_to_operand_dims) == 1 and not numbers.update_window_dims
    return rows if plain and all(size == 1 for size in others) and root.shape.size else None


def _holds_places(root: Instruction, indices: Instruction, numbers: ScatterDimensionNumbers) -> bool:
    """The type of the indices has a number for each place of a row."""
    (along,) = numbers.scatter_dims_to_operand_dims
    return indices.shape.type.holds(0, root.shape.dims[along] - 1)
