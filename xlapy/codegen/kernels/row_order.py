"""Rows of arrays in memory: runs along the fastest varying dimension, in the order in which they lie."""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.hlo.shape import Shape


def inner_dim(shape: Shape) -> int:
    """The fastest varying dimension that has more than one element (or just the fastest)."""
    for dim in shape.minor_to_major:
        if shape.dims[dim] > 1:
            return dim
    return shape.minor_to_major[0] if shape.rank else -1


def inner_size(shape: Shape) -> int:
    """Elements of a row."""
    return shape.dims[inner_dim(shape)] if shape.rank else 1


def rows_and_columns(shape: Shape) -> tuple[int, int]:
    """How many rows an array has, and the elements of each."""
    columns = inner_size(shape)
    return shape.size // max(columns, 1), columns


def row_places(k: KernelBuilder, shape: Shape, row: Value) -> Callable[[Indexing, Value], Index]:
    """From a position in row number `row` (outer dimensions major) to the index of the lanes that begin there."""
    inner = inner_dim(shape)
    order = [dim for dim in reversed(shape.minor_to_major) if dim != inner]
    outer = Indexing(k, 1).delinearize(Coordinate(row), [shape.dims[dim] for dim in order])
    positions = dict(zip(order, outer, strict=True))

    def place(ix: Indexing, position: Value) -> Index:
        coordinates = tuple(ix.along_lanes(position) if dim == inner else positions[dim] for dim in range(shape.rank))
        return Index(shape.dims, coordinates)

    return place
