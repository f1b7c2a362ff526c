"""Rows of arrays that a pad has made larger.

Where each lane is asked whether an element lies there, copying takes several times as long. So the rows with elements
are told from those without, and the part of a row that has elements from its ends: only these are asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Placement
from xlapy.codegen.element_graph import between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.row_order import inner_dim, inner_size, outer_positions, place_in_row
from xlapy.codegen.kernels.strip import PastCaches, strip
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape

LEAST_BYTES = 64 * 1024  # of a result: less is not worth code for rows and parts of several kinds

Interior = Mapping[int, range]
"""Where in each padded dimension there are elements of what is padded."""


def interior_of(roots: Sequence[Instruction], is_input: Callable[[Instruction], bool], lanes: int) -> Interior:
    """Where all that is padded has elements; nothing if that is nowhere, or no vector fits in."""
    shape = roots[0].shape
    interior: dict[int, range] = {}
    if shape.bytes < LEAST_BYTES:
        return interior
    for pad in between(roots, is_input):
        if is_input(pad) or pad.opcode != "pad" or pad.shape.dims != shape.dims:
            continue
        for dim, padding in enumerate(pad.attributes["dimensions"]):
            if not padding.interior and (padding.low > 0 or padding.high > 0):
                known = interior.get(dim, range(shape.dims[dim]))
                end = padding.low + pad.operands[0].shape.dims[dim]
                interior[dim] = range(max(known.start, padding.low), min(known.stop, end))
    along = interior.get(inner_dim(shape), range(lanes))
    return interior if all(interior.values()) and len(along) >= lanes else {}


def emit_padded_row(
    k: KernelBuilder,
    shape: Shape,
    row: Value,
    lanes: int,
    step: RowStep,
    interior: Interior,
    past_caches: PastCaches | None = None,
) -> None:
    """The inner loop over one row. The last vector of a part overlaps the one before it, or another part.

    With `past_caches`, the vectors of the inside lie as that says."""
    outer = outer_positions(k, shape, row)
    inner, size = inner_dim(shape), inner_size(shape)
    inside = [_is_within(k, outer[dim], positions) for dim, positions in interior.items() if dim != inner]
    bounded = {dim: replace(at, bounds=interior.get(dim)) for dim, at in outer.items()}
    along = interior.get(inner, range(size))

    def edge(begin: int, end: int, distance: int) -> None:
        """`distance` from the only vector to one that has no element of the inside."""
        is_single = past_caches is not None and end - begin == lanes
        placement = Placement(k.const(I1, 1), k.const(I64, distance)) if is_single else None

        def at_edge(ix: Indexing, position: Value) -> None:
            step(ix, place_in_row(shape, bounded, ix.along_lanes(position)), placement)

        if begin < end:
            strip(k, k.const(I64, begin), k.const(I64, end), lanes, at_edge, overlapping=True)

    def with_elements() -> list[Value]:
        if along.start:
            edge(0, max(along.start, lanes), along.start - lanes)
        emit_part(k, shape, row, bounded, along, lanes, step, overlapping=True, past_caches=past_caches)
        if along.stop < size:
            begin = min(along.stop, size - lanes)
            edge(begin, size, along.stop - begin)
        return []

    def any_row() -> list[Value]:
        emit_part(k, shape, row, outer, range(size), lanes, step, overlapping=True, past_caches=past_caches)
        return []

    k.if_else(functools.reduce(k.and_, inside, k.const(I1, 1)), with_elements, any_row)


RowStep = Callable[[Indexing, Index, Placement | None], None]
"""What is done for the elements at an index, whose vector lies so, if it may bypass the caches."""


def emit_part(
    k: KernelBuilder,
    shape: Shape,
    row: Value,
    outer: Mapping[int, Coordinate],
    part: range,
    lanes: int,
    step: RowStep,
    *,
    overlapping: bool,
    past_caches: PastCaches | None,
) -> None:
    """A part of row number `row`, which is at the `outer` positions. Vectors lie as `past_caches` says, if given."""
    bounds = part if len(part) < inner_size(shape) else None

    def along_row(ix: Indexing, position: Value, placement: Placement | None) -> None:
        along = replace(ix.along_lanes(position), bounds=bounds)
        step(ix, place_in_row(shape, outer, along), placement)

    begin, end = k.const(I64, part.start), k.const(I64, part.stop)
    if past_caches is not None:
        past_caches.strip(k.mul(row, inner_size(shape)), begin, end, along_row)
    else:
        strip(k, begin, end, lanes, lambda ix, position: along_row(ix, position, None), overlapping=overlapping)


def _is_within(k: KernelBuilder, at: Coordinate, positions: range) -> Value:
    return k.compare("lt", k.sub(at.start, positions.start), len(positions), signed=False)
