"""What of an array that is made by moving elements only comes from where, as runs of neighbours.

    f32[4,16,2,16,8] concatenate(reshape(x), reshape(y)), dimensions={2}        from f32[4,16,16,8] x and y

are two pieces, each of 4 * 16 runs of 16 * 8 elements that go to every second such place. Parts of what is joined are
made of parts of some of what it is made of, as borders are that mirror what they surround.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice, pairwise

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.hlo.reshape_groups import reshape_groups
from xlapy.hlo.shape import Dims, Shape
from xlapy.support.records import Record


class Level(Record):
    """So many of what is inside, so many elements apart where they come from and where they go."""

    count: int
    source_step: int
    result_step: int


NEAR_BYTES = 256  # four lines of a cache


def near_runs(run: int, row: Level, others: Sequence[Level]) -> tuple[int, int] | None:
    """Which of the other levels has runs that lie closest together where they come from, closer than those of a row,
    and how many of these to copy at each place of the row, so that several lines are read at a time. All are bytes.
    None if there is no such level: long runs, or those that are read in line, may come in any order."""
    count = 1 << (NEAR_BYTES // run).bit_length() >> 1
    found = [number for number, level in enumerate(others) if 0 < abs(level.source_step) < NEAR_BYTES]
    if count < 2 or not found or abs(row.source_step) <= NEAR_BYTES:
        return None
    nearest = min(found, key=lambda number: abs(others[number].source_step))
    return nearest, min(count, others[nearest].count)


class Piece(Record):
    """Runs of `run` elements of an array, from element `source_start` on, that go to element `result_start` on and so
    forth as the levels say, outermost first."""

    source: Instruction
    source_start: int
    result_start: int
    run: int
    levels: tuple[Level, ...]


def moved_runs(root: Instruction, is_input: Callable[[Instruction], bool], most: int) -> list[Piece] | None:
    """The pieces of `root`; None if it is not made of inputs by moving runs of elements, or of more than `most`."""
    if not is_row_major(root) or not root.shape.is_static or not root.shape.size:
        return None
    try:
        whole = _Part(0, root.shape.strides(), tuple(map(range, root.shape.dims)))
        pieces = [*islice(_pieces(root, whole, is_input), most + 1)]
    except _NoRuns:
        return None
    return pieces if len(pieces) <= most else None


class _NoRuns(Exception):
    """Elements are computed, or go where no strides lead."""


class _Part(Record):
    """Which elements of a value are wanted, by their places in each dimension, and where in the result they go: the
    first one, and strides."""

    start: int
    strides: Dims
    places: tuple[range, ...]

    def of_operand(self, dim: int, first: int, size: int) -> _Part | None:
        """What comes from an operand of that size, which begins at a place of a joined dimension; None for nothing."""
        own = self.places[dim]
        begin, end = _numbers_inside(own, range(first, first + size))
        if begin >= end:
            return None
        places = own[begin:end]
        moved = range(places.start - first, places.stop - first, places.step)
        start = self.start + begin * self.strides[dim]
        return _Part(start, self.strides, (*self.places[:dim], moved, *self.places[dim + 1 :]))


def _numbers_inside(places: range, stretch: range) -> tuple[int, int]:
    """From which one on, and up to which one, places lie within a stretch."""
    if places.step < 0:
        begin, end = _numbers_inside(places[::-1], stretch)
        return len(places) - end, len(places) - begin
    begin, end = (-((places.start - edge) // places.step) for edge in (stretch.start, stretch.stop))
    return max(begin, 0), min(end, len(places))


def _pieces(value: Instruction, part: _Part, is_input: Callable[[Instruction], bool]) -> Iterator[Piece]:
    """The pieces of a part of a value."""
    dims = value.shape.dims
    if value.opcode == "concatenate" and not is_input(value):
        dim = value.attributes["dimension"]
        sizes = [operand.shape.dims[dim] for operand in value.operands]
        for operand, first in zip(value.operands, accumulate(sizes, initial=0), strict=False):
            own = part.of_operand(dim, first, operand.shape.dims[dim]) if operand.shape.size else None
            if own is not None:
                yield from _pieces(operand, own, is_input)
    elif value.opcode == "reshape" and not is_input(value) and part.places == tuple(map(range, dims)):
        operand = value.operands[0]
        strides = _reshaped(part.strides, value.shape, operand.shape)
        yield from _pieces(operand, _Part(part.start, strides, tuple(map(range, operand.shape.dims))), is_input)
    elif value.opcode in ("slice", "reverse") and not is_input(value):
        places = _places_in_operand(value, part.places)
        yield from _pieces(value.operands[0], _Part(part.start, part.strides, places), is_input)
    else:
        source, start, strides = _view(value, is_input)
        start += sum(own.start * stride for own, stride in zip(part.places, strides, strict=True))
        steps = [own.step * stride for own, stride in zip(part.places, strides, strict=True)]
        yield _piece(source, (start, part.start), tuple(map(len, part.places)), steps, part.strides)


def _places_in_operand(value: Instruction, places: Sequence[range]) -> tuple[range, ...]:
    """Where elements of a slice or of what is turned round come from."""
    if value.opcode == "slice":
        limits = [range(part.start, part.limit, part.stride) for part in value.attributes["dimensions"]]
    else:
        turned = value.attributes["dimensions"]
        sizes = [range(size) for size in value.shape.dims]
        limits = [size[::-1] if dim in turned else size for dim, size in enumerate(sizes)]
    return tuple(_chosen(limit, own) for limit, own in zip(limits, places, strict=True))


def _chosen(of: range, places: range) -> range:
    """The elements of a range at places of it."""
    first, step = of[places.start], of.step * places.step
    return range(first, first + step * len(places), step)


def _view(value: Instruction, is_input: Callable[[Instruction], bool]) -> tuple[Instruction, int, Dims]:
    """An input, and where the elements of a value are in it: the first one, and strides."""
    if is_input(value):
        if not is_row_major(value):
            raise _NoRuns
        return value, 0, value.shape.strides()
    if value.opcode not in ("slice", "transpose", "reverse", "broadcast", "reshape"):
        raise _NoRuns
    source, start, strides = _view(value.operands[0], is_input)
    match value.opcode:
        case "slice":
            parts = value.attributes["dimensions"]
            start += sum(part.start * stride for part, stride in zip(parts, strides, strict=True))
            return source, start, tuple(part.stride * stride for part, stride in zip(parts, strides, strict=True))
        case "transpose":
            return source, start, tuple(strides[dim] for dim in value.attributes["permutation"])
        case "reverse":
            turned = value.attributes["dimensions"]
            start += sum((value.shape.dims[dim] - 1) * strides[dim] for dim in turned)
            return source, start, tuple(-step if dim in turned else step for dim, step in enumerate(strides))
        case "broadcast":
            given = dict(zip(value.attributes["dimensions"], strides, strict=True))
            return source, start, tuple(given.get(dim, 0) for dim in range(value.shape.rank))
        case _:
            return source, start, _reshaped(strides, value.operands[0].shape, value.shape)


def _reshaped(strides: Dims, before: Shape, after: Shape) -> Dims:
    """The strides of dimensions that others become."""
    found = [0] * after.rank
    for group in reshape_groups(before, after):
        wide = [dim for dim in group.before if before.dims[dim] > 1]
        for outer, inner in pairwise(wide):
            if strides[outer] != strides[inner] * before.dims[inner]:
                raise _NoRuns
        distance = strides[wide[-1]] if wide else 0
        for dim in reversed(group.after):
            found[dim] = distance
            distance *= after.dims[dim]
    return tuple(found)


def _piece(
    source: Instruction, starts: tuple[int, int], dims: Dims, source_strides: Sequence[int], strides: Sequence[int]
) -> Piece:
    levels: list[Level] = []
    for level in map(Level, dims, source_strides, strides):
        if level.count == 1:
            continue
        outer = levels[-1] if levels else None
        steps = level.source_step * level.count, level.result_step * level.count
        if outer is not None and (outer.source_step, outer.result_step) == steps:
            levels[-1] = Level(outer.count * level.count, level.source_step, level.result_step)
        else:
            levels.append(level)
    run = 1
    if levels and (levels[-1].source_step, levels[-1].result_step) == (1, 1):
        run = levels.pop().count
    return Piece(source, *starts, run, tuple(levels))
