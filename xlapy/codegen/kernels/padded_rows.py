"""Rows of arrays that a pad has made larger.

Where each lane is asked whether an element lies there, copying takes several times as long. So the rows with elements
are told from those without, and the part of a row that has elements from its ends: only these are asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from xlapy.codegen.arrays import Placement
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.row_order import RowWalk, inner_dim, inner_size, place_in_row
from xlapy.codegen.kernels.strip import PastCaches, strip
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops.spec import Trait
from xlapy.hlo.shape import Dims, Shape

LEAST_BYTES = 64 * 1024  # of a result: less is not worth code for rows and parts of several kinds

Interior = Mapping[int, range]
"""Where in each padded dimension there are elements of what is padded."""


def interior_of(roots: Sequence[Instruction], is_input: Callable[[Instruction], bool], lanes: int) -> Interior:
    """Where all that is padded has elements; nothing if that is nowhere, or no vector fits in."""
    shape = roots[0].shape
    interior: dict[int, range] = {}
    if shape.bytes < LEAST_BYTES:
        return interior
    for pad, offsets in _pads_behind(roots, is_input):
        for dim, (padding, offset) in enumerate(zip(pad.attributes["dimensions"], offsets, strict=True)):
            if not padding.interior and (padding.low > 0 or padding.high > 0):
                known = interior.get(dim, range(shape.dims[dim]))
                start = padding.low - offset
                end = start + pad.operands[0].shape.dims[dim]
                interior[dim] = range(max(known.start, start), min(known.stop, end))
    along = interior.get(inner_dim(shape), range(lanes))
    return interior if all(interior.values()) and len(along) >= lanes else {}


Offsets = tuple[int, ...]
"""What is added to a position in a result, to find what is read for it."""


def _pads_behind(
    roots: Sequence[Instruction], is_input: Callable[[Instruction], bool]
) -> Iterator[tuple[Instruction, Offsets]]:
    """Each pad that the roots are made from, with where it is read: itself, or a part that begins elsewhere. What only
    has the roots' dimensions is taken to lie as they do."""
    dims = roots[0].shape.dims
    waiting = [(root, (0,) * len(dims)) for root in reversed(roots)]
    seen = {*waiting}
    while waiting:
        instruction, offsets = waiting.pop()
        if is_input(instruction):
            continue
        if instruction.opcode == "pad":
            yield instruction, offsets
        for operand in reversed(instruction.operands):
            behind = _offsets_of_operand(instruction, operand, offsets, dims)
            if behind is not None and (operand, behind) not in seen:
                seen.add((operand, behind))
                waiting.append((operand, behind))


def _offsets_of_operand(instruction: Instruction, operand: Instruction, offsets: Offsets, dims: Dims) -> Offsets | None:
    parts = instruction.attributes.get("dimensions", ())
    if instruction.opcode == "slice" and all(part.stride == 1 for part in parts):
        return tuple(offset + part.start for offset, part in zip(offsets, parts, strict=True))
    if instruction.opcode == "pad" and operand.shape.rank == len(dims) and not any(part.interior for part in parts):
        return tuple(offset - part.low for offset, part in zip(offsets, parts, strict=True))
    if Trait.ELEMENTWISE in instruction.spec.traits and operand.shape.dims == instruction.shape.dims:
        return offsets
    return (0,) * len(dims) if operand.shape.is_array and operand.shape.dims == dims else None


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
    outer = RowWalk.as_they_lie(shape).outer_positions(k, shape, row)
    inner, size = inner_dim(shape), inner_size(shape)
    inside = [_is_within(k, outer[dim], positions) for dim, positions in interior.items() if dim != inner]
    bounded = {dim: at._replace(bounds=interior.get(dim)) for dim, at in outer.items()}
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
        part = along if past_caches is not None else _between_edges(along, lanes, size)
        emit_part(k, shape, row, bounded, part, lanes, step, overlapping=True, past_caches=past_caches)
        if along.stop < size:
            begin = min(along.stop, size - lanes)
            edge(begin, size, along.stop - begin)
        return []

    def any_row() -> list[Value]:
        emit_part(k, shape, row, outer, range(size), lanes, step, overlapping=True, past_caches=past_caches)
        return []

    k.if_else(functools.reduce(k.and_, inside, k.const(I1, 1)), with_elements, any_row)


def _between_edges(along: range, lanes: int, size: int) -> range:
    """The part of the inside that no vector has that is at an edge; all of it, if no vector fits in then."""
    start = max(along.start, lanes) if along.start else 0
    stop = min(along.stop, size - lanes) if along.stop < size else size
    return range(start, stop) if stop - start >= lanes else along


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
    backwards: bool = False,
) -> None:
    """A part of row number `row`, which is at the `outer` positions. Vectors lie as `past_caches` says, if given; else
    the last one may come first."""
    bounds = part if len(part) < inner_size(shape) else None

    def along_row(ix: Indexing, position: Value, placement: Placement | None) -> None:
        along = ix.along_lanes(position)._replace(bounds=bounds)
        step(ix, place_in_row(shape, outer, along), placement)

    def vector(ix: Indexing, position: Value) -> None:
        along_row(ix, k.sub(part.start + part.stop - ix.lanes, position) if backwards else position, None)

    begin, end = k.const(I64, part.start), k.const(I64, part.stop)
    if past_caches is not None:
        size = inner_size(shape)
        past_caches.strip(k.mul(row, size), begin, end, along_row, pitch=size)
    else:
        strip(k, begin, end, lanes, vector, overlapping=overlapping)


def _is_within(k: KernelBuilder, at: Coordinate, positions: range) -> Value:
    return k.compare("lt", k.sub(at.start, positions.start), len(positions), signed=False)
