"""Rows of arrays in memory: runs along the fastest varying dimension, in the order in which they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record


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


def outer_dims(shape: Shape) -> tuple[int, ...]:
    """All dimensions but that of a row, the slowest first."""
    inner = inner_dim(shape)
    return tuple(dim for dim in reversed(shape.minor_to_major) if dim != inner)


def rows_of_operand(transpose: Instruction) -> tuple[int, ...] | None:
    """The outer dimensions of the result in the order in which the operand has them, the slowest first; None if the
    operand has rows along another dimension."""
    source, permutation = transpose.operands[0].shape, transpose.attributes["permutation"]
    if permutation[inner_dim(transpose.shape)] != inner_dim(source):
        return None
    return tuple(permutation.index(dim) for dim in outer_dims(source))


class RowWalk(Record):
    """How rows are visited: along the dimensions in `order`, the slowest first. In those that are `backwards`, walks
    begin with the last position: also within a row, if its own dimension is one of them."""

    order: tuple[int, ...]
    backwards: tuple[int, ...] = ()

    @staticmethod
    def as_they_lie(shape: Shape) -> RowWalk:
        return RowWalk(outer_dims(shape))

    def outer_positions(self, k: KernelBuilder, shape: Shape, row: Value) -> dict[int, Coordinate]:
        """Where row number `row` of the walk is, by dimension."""
        ix, dims = Indexing(k, 1), shape.dims
        outer = ix.delinearize(Coordinate(row), [dims[dim] for dim in self.order])
        return {
            dim: ix.add(ix.scale(at, -1), dims[dim] - 1) if dim in self.backwards else at
            for dim, at in zip(self.order, outer, strict=True)
        }

    def rows_in_planes(
        self,
        k: KernelBuilder,
        shape: Shape,
        begin: Value,
        end: Value,
        body: Callable[[Value, Mapping[int, Coordinate]], None],
    ) -> None:
        """A loop over rows [begin, end), within one over planes of neighbouring rows, where what all rows of a plane
        share is found out once. `body` gets the number of a row, and where it is."""
        wide = [dim for dim in self.order if shape.dims[dim] > 1]
        if len(wide) < 2 or self.backwards:
            with k.loop(begin, end) as loop:
                body(loop.index, self.outer_positions(k, shape, loop.index))
            return
        last, ix = wide[-1], Indexing(k, 1)
        size = shape.dims[last]
        planes = [dim for dim in self.order if dim != last]
        with k.loop(k.udiv(begin, size), k.udiv(k.add(end, size - 1), size)) as plane:
            at = ix.delinearize(Coordinate(plane.index), [shape.dims[dim] for dim in planes])
            known = dict(zip(planes, at, strict=True))
            start = k.mul(plane.index, size)
            with k.loop(k.smax(begin, start), k.smin(end, k.add(start, size))) as rows:
                body(rows.index, {**known, last: Coordinate(k.sub(rows.index, start))})


def place_in_row(shape: Shape, outer: Mapping[int, Coordinate], inner: Coordinate) -> Index:
    """The index of lanes in the row at the `outer` positions."""
    return Index(shape.dims, tuple(outer.get(dim, inner) for dim in range(shape.rank)))
