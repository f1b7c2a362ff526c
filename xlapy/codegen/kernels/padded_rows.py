"""Rows of arrays that a pad has made larger, or that concatenations have joined.

Where each lane is asked whether an element lies there, or in which operand, copying takes several times as long. So the
rows inside are told from others, and the part of a row that lies inside from its ends: only these are asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

from xlapy.codegen.arrays import Placement
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.row_order import RowWalk, inner_dim, inner_size, place_in_row
from xlapy.codegen.kernels.strip import PastCaches, strip
from xlapy.codegen.registers import memory_type
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops.spec import Trait
from xlapy.hlo.reshape_groups import pairs_of_wide
from xlapy.hlo.shape import Shape

LEAST_BYTES = 64 * 1024  # of a result: less is not worth code for rows and parts of several kinds
LEAST_REPEATED_BYTES = 1024  # of one that a loop of the program computes again and again, or for which code is shorter
MOST_PARTS = 8  # of a row that is joined, or of many rows, that have loops of their own

Interior = Mapping[int, range]
"""Where in each dimension there are elements of what is padded, and of the same operands of what is joined."""


def interior_of(
    roots: Sequence[Instruction],
    is_input: Callable[[Instruction], bool],
    lanes: int,
    *,
    repeated: bool = False,
    along: int | None = None,
) -> Interior:
    """Where all that is padded has elements, and all that is joined those of one operand, the longest such part of each
    dimension; nothing if that is nowhere, or no vector fits in. Vectors go along rows, or `along` another dimension."""
    shape = roots[0].shape
    if shape.bytes < (LEAST_REPEATED_BYTES if repeated else LEAST_BYTES):
        return {}
    interior: dict[int, range] = {}
    borders: dict[int, set[int]] = {}
    for instruction, origins in _moved_behind(roots, is_input):
        if instruction.opcode == "pad":
            for operand_dim, padding, origin in zip(
                instruction.operands[0].shape.dims, instruction.attributes["dimensions"], origins, strict=True
            ):
                if origin is not None and not padding.interior and (padding.low > 0 or padding.high > 0):
                    known = interior.get(origin.dim, range(shape.dims[origin.dim]))
                    start = padding.low - origin.offset
                    end = start + operand_dim
                    interior[origin.dim] = range(max(known.start, start), min(known.stop, end))
        else:
            dimension = instruction.attributes["dimension"]
            origin = origins[dimension]
            if origin is not None:
                sizes = (operand.shape.dims[dimension] for operand in instruction.operands[:-1])
                borders.setdefault(origin.dim, set()).update(end - origin.offset for end in accumulate(sizes))
    for dim, places in borders.items():
        known = interior.get(dim, range(shape.dims[dim]))
        if inside := [place for place in places if place in known[1:]]:
            parts = pairwise([known.start, *sorted(inside), known.stop])
            interior[dim] = max((range(*part) for part in parts), key=len)
    positions = interior.get(inner_dim(shape) if along is None else along, range(lanes))
    return interior if all(interior.values()) and len(positions) >= lanes else {}


class JoinedParts(NamedTuple):
    """All that is joined lies side by side along this dimension, the same operands in all of each part."""

    dim: int
    parts: tuple[range, ...]


def joined_parts(
    roots: Sequence[Instruction], is_input: Callable[[Instruction], bool], lanes: int
) -> JoinedParts | None:
    """The parts that the roots are joined of, if these are few and in one dimension, nothing is padded, and vectors fit
    into each."""
    shape = roots[0].shape
    if shape.bytes < LEAST_REPEATED_BYTES:
        return None
    borders: dict[int, set[int]] = {}
    for instruction, origins in _moved_behind(roots, is_input):
        if instruction.opcode == "pad" or (origin := origins[instruction.attributes["dimension"]]) is None:
            return None
        sizes = (operand.shape.dims[instruction.attributes["dimension"]] for operand in instruction.operands[:-1])
        places = (end - origin.offset for end in accumulate(sizes))
        borders.setdefault(origin.dim, set()).update(place for place in places if 0 < place < shape.dims[origin.dim])
    if len(borders) != 1:
        return None
    ((dim, inside),) = borders.items()
    parts = tuple(range(*part) for part in pairwise([0, *sorted(inside), shape.dims[dim]]))
    least = lanes if dim == inner_dim(shape) else 1
    return JoinedParts(dim, parts) if 1 < len(parts) <= MOST_PARTS and min(map(len, parts)) >= least else None


def joined_dims(roots: Sequence[Instruction], is_input: Callable[[Instruction], bool]) -> set[int]:
    """The dimensions of what the roots are along which something in it is joined."""
    joins = [(i, origins) for i, origins in _moved_behind(roots, is_input) if i.opcode == "concatenate"]
    places = (origins[i.attributes["dimension"]] for i, origins in joins)
    return {place.dim for place in places if place is not None}


class Origin(NamedTuple):
    """Positions in a dimension: those of the result in its dimension `dim`, and so many more."""

    dim: int
    offset: int


Origins = tuple[Origin | None, ...]
"""What the positions in each dimension of an instruction are, where that is known."""


def _moved_behind(
    roots: Sequence[Instruction], is_input: Callable[[Instruction], bool]
) -> Iterator[tuple[Instruction, Origins]]:
    """Each pad and concatenation that the roots are made from, with where it is read."""
    waiting: list[tuple[Instruction, Origins]] = [
        (root, tuple(Origin(dim, 0) for dim in range(root.shape.rank))) for root in reversed(roots)
    ]
    seen = {*waiting}
    while waiting:
        instruction, origins = waiting.pop()
        if is_input(instruction):
            continue
        if instruction.opcode in ("pad", "concatenate"):
            yield instruction, origins
        for number, operand in enumerate(instruction.operands):
            behind = _origins_of_operand(instruction, number, origins)
            if behind is not None and (operand, behind) not in seen:
                seen.add((operand, behind))
                waiting.append((operand, behind))


def _origins_of_operand(instruction: Instruction, number: int, origins: Origins) -> Origins | None:
    """Where an operand is read; None for what is read at places that nothing is known of."""
    operand = instruction.operands[number].shape
    if not operand.is_array or not operand.rank:
        return None
    if Trait.ELEMENTWISE in instruction.spec.traits:
        return origins if operand.dims == instruction.shape.dims else None
    read = _READ.get(instruction.opcode)
    return None if read is None else read(instruction, number, origins)


def _read_by_slice(slice: Instruction, _: int, origins: Origins) -> Origins | None:
    parts = zip(origins, slice.attributes["dimensions"], strict=True)
    return tuple(_moved(at, part.start) if part.stride == 1 else None for at, part in parts)


def _read_by_pad(pad: Instruction, _: int, origins: Origins) -> Origins | None:
    edges = zip(origins, pad.attributes["dimensions"], strict=True)
    return tuple(None if edge.interior else _moved(at, -edge.low) for at, edge in edges)


def _read_by_concatenate(concatenate: Instruction, number: int, origins: Origins) -> Origins | None:
    dimension = concatenate.attributes["dimension"]
    start = sum(before.shape.dims[dimension] for before in concatenate.operands[:number])
    return tuple(_moved(at, -start) if dim == dimension else at for dim, at in enumerate(origins))


def _read_by_reshape(reshape: Instruction, _: int, origins: Origins) -> Origins | None:
    """Through a reshape that only adds and drops dimensions of one element."""
    source = reshape.operands[0].shape.dims
    pairs = pairs_of_wide(source, reshape.shape.dims)
    if pairs is None:
        return None
    known = {before: origins[after] for before, after in pairs}
    return tuple(map(known.get, range(len(source))))


def _read_by_broadcast(broadcast: Instruction, _: int, origins: Origins) -> Origins | None:
    return tuple(origins[dim] for dim in broadcast.attributes["dimensions"])


def _read_by_transpose(transpose: Instruction, _: int, origins: Origins) -> Origins | None:
    permutation = transpose.attributes["permutation"]
    return tuple(origins[permutation.index(dim)] for dim in range(len(permutation)))


def _read_by_reverse(reverse: Instruction, _: int, origins: Origins) -> Origins | None:
    return tuple(None if dim in reverse.attributes["dimensions"] else at for dim, at in enumerate(origins))


_READ: Mapping[str, Callable[[Instruction, int, Origins], Origins | None]] = MappingProxyType(
    {
        "bitcast": _read_by_reshape,
        "broadcast": _read_by_broadcast,
        "concatenate": _read_by_concatenate,
        "pad": _read_by_pad,
        "reshape": _read_by_reshape,
        "reverse": _read_by_reverse,
        "slice": _read_by_slice,
        "transpose": _read_by_transpose,
    }
)
"""Where what only moves elements reads its operand of that number, by its op."""


def _moved(origin: Origin | None, offset: int) -> Origin | None:
    return None if origin is None else Origin(origin.dim, origin.offset + offset)


def emit_padded_row(
    k: KernelBuilder,
    shape: Shape,
    row: Value,
    lanes: int,
    step: RowStep,
    interior: Interior,
    past_caches: PastCaches | None = None,
    *,
    is_long: bool = False,
) -> None:
    """The inner loop over one row. The last vector of a part overlaps the one before it, or another part.

    With `past_caches`, the vectors of the inside lie as that says. Where the code of a step `is_long`, rows outside
    share theirs with the ends of those inside. Short ends of narrow elements are taken one by one where vectors of them
    have no masks: LLVM would ask for each lane."""
    outer = RowWalk.as_they_lie(shape).outer_positions(k, shape, row)
    inner, size = inner_dim(shape), inner_size(shape)
    inside = [is_within(k, outer[dim], positions) for dim, positions in interior.items() if dim != inner]
    is_inside = functools.reduce(k.and_, inside, k.const(I1, 1))
    bounded = {dim: at._replace(bounds=interior.get(dim)) for dim, at in outer.items()}
    along = interior.get(inner, range(size))
    are_single = past_caches is None and not k.has_masks and memory_type(shape.type).bits < I32.bits
    are_single = are_single and max(along.start, size - along.stop) <= lanes // 2
    shares_ends = is_long and past_caches is None and len(along) < size and not are_single

    def edge(begin: int, end: int, distance: int) -> None:
        """`distance` from the only vector to one that has no element of the inside."""
        is_single = past_caches is not None and end - begin == lanes
        placement = Placement(k.const(I1, 1), k.const(I64, distance)) if is_single else None

        def at_edge(ix: Indexing, position: Value) -> None:
            step(ix, place_in_row(shape, bounded, ix.along_lanes(position)), placement)

        if begin < end:
            strip(k, k.const(I64, begin), k.const(I64, end), lanes, at_edge, overlapping=True)

    def singly(begin: int, end: int) -> None:
        def at_end(ix: Indexing, position: Value) -> None:
            step(ix, place_in_row(shape, bounded, ix.along_lanes(position)), None)

        if begin < end:
            strip(k, k.const(I64, begin), k.const(I64, end), 1, at_end, overlapping=False)

    def with_single_ends() -> None:
        emit_part(k, shape, row, bounded, along, lanes, step, overlapping=True, past_caches=None)
        singly(0, along.start)
        singly(along.stop, size)

    def with_elements() -> None:
        if along.start and not shares_ends:
            edge(0, max(along.start, lanes), along.start - lanes)
        part = along if past_caches is not None else between_edges(along, lanes, size)
        emit_part(k, shape, row, bounded, part, lanes, step, overlapping=True, past_caches=past_caches)
        if along.stop < size and not shares_ends:
            begin = min(along.stop, size - lanes)
            edge(begin, size, along.stop - begin)

    def any_row() -> None:
        emit_part(k, shape, row, outer, range(size), lanes, step, overlapping=True, past_caches=past_caches)

    if not shares_ends:
        k.if_else(is_inside, with_single_ends if are_single else with_elements, any_row)
        return
    with k.if_(is_inside):
        with_elements()
    whole = k.const(I64, size)
    first_end = k.select(is_inside, max(along.start, lanes) if along.start else 0, whole)
    second = k.select(is_inside, min(along.stop, size - lanes) if along.stop < size else size, whole)

    def anywhere(ix: Indexing, position: Value) -> None:
        step(ix, place_in_row(shape, outer, ix.along_lanes(position)), None)

    with k.loop(0, 2) as ends:
        is_second = k.compare("ne", ends.index, 0)
        begin, end = k.select(is_second, second, 0), k.select(is_second, whole, first_end)
        strip(k, begin, end, lanes, anywhere, overlapping=True)


def emit_joined_row(
    k: KernelBuilder,
    shape: Shape,
    row: Value,
    lanes: int,
    step: RowStep,
    joined: JoinedParts,
    past_caches: PastCaches | None = None,
) -> None:
    """The inner loop over one row, or a loop for each part of it. Where it is rows that are joined, each computes what
    its own part is made of."""
    outer, whole = RowWalk.as_they_lie(shape).outer_positions(k, shape, row), range(inner_size(shape))

    def part_of_row(outer: Mapping[int, Coordinate], part: range) -> None:
        emit_part(k, shape, row, outer, part, lanes, step, overlapping=True, past_caches=past_caches)

    def from_part(number: int) -> None:
        part, at = joined.parts[number], outer[joined.dim]

        def own() -> None:
            part_of_row({**outer, joined.dim: at._replace(bounds=part)}, whole)

        if number == len(joined.parts) - 1:
            own()
        else:
            k.if_else(k.compare("lt", at.start, part.stop), own, lambda: from_part(number + 1))

    if joined.dim != inner_dim(shape):
        from_part(0)
        return
    for part in joined.parts:
        part_of_row(outer, part)


def between_edges(along: range, lanes: int, size: int) -> range:
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


def is_within(k: KernelBuilder, at: Coordinate, positions: range) -> Value:
    return k.compare("lt", k.sub(at.start, positions.start), len(positions), signed=False)
