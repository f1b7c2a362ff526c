"""Rows of arrays in memory: runs along the fastest varying dimension, in the order in which they lie."""

from __future__ import annotations

from collections.abc import Mapping

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


def outer_positions(k: KernelBuilder, shape: Shape, row: Value) -> dict[int, Coordinate]:
    """Where row number `row` (outer dimensions major) is, by dimension."""
    inner = inner_dim(shape)
    order = [dim for dim in reversed(shape.minor_to_major) if dim != inner]
    outer = Indexing(k, 1).delinearize(Coordinate(row), [shape.dims[dim] for dim in order])
    return dict(zip(order, outer, strict=True))


def place_in_row(shape: Shape, outer: Mapping[int, Coordinate], inner: Coordinate) -> Index:
    """The index of lanes in the row at the `outer` positions."""
    return Index(shape.dims, tuple(outer.get(dim, inner) for dim in range(shape.rank)))
