"""Arrays that are made of the elements of another one, dimension by dimension: what is padded, mirrored at its borders,
repeated, cut out.

    f32[68,40] concatenate(reverse(slice(y)), y, ...), dimensions={1}      where y = f32[68,32] joins rows of x

takes each of its rows from some row of x, and the elements of each from the same places. So an element at [i, j] is the
one so many elements behind the first of x as numbers for i and j add up to, or one number that fills what is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.hlo.reshape_groups import reshape_groups
from xlapy.hlo.shape import Shape
from xlapy.support.records import Record, replaced

Offsets = NDArray[np.int64]

FILL = -(1 << 62)
"""The offset of what is not made of an element. (No sum of an offset and others that are none is as far from zero.)"""

MOST_POSITIONS = 1 << 14  # in a dimension, each of which is looked at


class AxisMaps(Record):
    """Element [i, j, ...] of an array is element number `start + offsets[0][i] + offsets[1][j] + ...` of the source; or
    `fill`, where one of these is `FILL`."""

    source: Instruction
    fill: Instruction | None
    start: int
    offsets: tuple[Offsets, ...]


def axis_maps(root: Instruction, is_input: Callable[[Instruction], bool]) -> AxisMaps | None:
    """Where the elements of `root` come from; None if not from one input, one dimension independent of another."""
    shape = root.shape
    if not shape.is_array or not shape.is_static or not shape.size or max(shape.dims, default=0) > MOST_POSITIONS:
        return None
    if not is_row_major(root):
        return None
    try:
        view = _Views(is_input).of(root)
    except _Mixed:
        return None
    return None if view.source is None else AxisMaps(view.source, view.fill, view.start, view.offsets)


class _Mixed(Exception):
    """Elements are computed, come from several arrays, or from where no numbers for each dimension tell."""


class _View(Record):
    """The same of any value; without a source all is filled."""

    source: Instruction | None
    fill: Instruction | None
    start: int
    offsets: tuple[Offsets, ...]


class _Views:
    """What is known of the values behind a root, each of which is looked at once."""

    def __init__(self, is_input: Callable[[Instruction], bool]) -> None:
        self._is_input = is_input
        self._known: dict[Instruction, _View] = {}

    def of(self, value: Instruction) -> _View:
        if value not in self._known:
            if max(value.shape.dims, default=0) > MOST_POSITIONS:
                raise _Mixed
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Instruction) -> _View:
        shape = value.shape
        if not shape.rank and (self._is_input(value) or value.opcode == "constant"):
            return _View(None, value, 0, ())
        if self._is_input(value):
            if not is_row_major(value):
                raise _Mixed
            places = zip(shape.dims, shape.strides(), strict=True)
            return _View(value, None, 0, tuple(np.arange(size) * stride for size, stride in places))
        match value.opcode:
            case "concatenate":
                return _joined([self.of(each) for each in value.operands if each.shape.size], value)
            case "pad":
                return _padded(self.of(value.operands[0]), self.of(value.operands[1]), value)
            case "slice" | "reverse" | "transpose" | "broadcast" | "reshape" | "bitcast":
                view = self.of(value.operands[0])
                offsets, distance = _moved(view.offsets, value)
                return replaced(view, start=view.start + distance, offsets=offsets)
            case _:
                raise _Mixed


def _moved(offsets: Sequence[Offsets], value: Instruction) -> tuple[tuple[Offsets, ...], int]:
    """The offsets in each dimension of what moves the elements of its operand, and how far all lie behind these."""
    match value.opcode:
        case "slice":
            parts = zip(offsets, value.attributes["dimensions"], strict=True)
            return tuple(own[part.start : part.limit : part.stride] for own, part in parts), 0
        case "reverse":
            turned = value.attributes["dimensions"]
            return tuple(own[::-1] if dim in turned else own for dim, own in enumerate(offsets)), 0
        case "transpose":
            return tuple(offsets[dim] for dim in value.attributes["permutation"]), 0
        case "broadcast":
            given = dict(zip(value.attributes["dimensions"], offsets, strict=True))
            return tuple(given.get(dim, np.zeros(size, np.int64)) for dim, size in enumerate(value.shape.dims)), 0
        case _:
            return _reshaped(offsets, value.operands[0].shape, value.shape)


def _reshaped(offsets: Sequence[Offsets], before: Shape, after: Shape) -> tuple[tuple[Offsets, ...], int]:
    if before.type is not after.type or not is_plain(before) or not is_plain(after):
        raise _Mixed
    found: list[Offsets] = [np.zeros(1, np.int64)] * after.rank
    distance = 0
    for group in reshape_groups(before, after):
        total = joined_offsets([offsets[dim] for dim in group.before])
        for dim in group.after[:0:-1]:
            rows = total.reshape(-1, after.dims[dim])
            total, inner = rows[:, 0], rows[0] - rows[0, 0]
            if (rows == FILL).any() or not np.array_equal(rows, total[:, None] + inner):
                raise _Mixed
            found[dim] = inner
        if group.after:
            found[group.after[0]] = total
        elif total[0] == FILL:
            raise _Mixed
        else:
            distance += int(total[0])
    return tuple(found), distance


def is_plain(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_row_major


def joined_offsets(parts: Sequence[Offsets]) -> Offsets:
    """The offsets of dimensions that become one."""
    total = np.zeros(1, np.int64)
    for part in parts:
        is_filled = (total == FILL)[:, None] | (part == FILL)
        total = np.where(is_filled, FILL, total[:, None] + part).reshape(-1)
    return total


def _padded(view: _View, value: _View, pad: Instruction) -> _View:
    found = []
    for own, padding, size in zip(view.offsets, pad.attributes["dimensions"], pad.shape.dims, strict=True):
        step = padding.interior + 1
        spread = np.full(max(0, (len(own) - 1) * step + 1), FILL)
        spread[::step] = own
        # What is cut off at one end may be more than the elements: then it is padding of the other end, too.
        whole = np.pad(spread, (max(padding.low, 0), max(padding.high, 0)), constant_values=FILL)
        found.append(whole[max(-padding.low, 0) : len(whole) - max(-padding.high, 0)])
        assert len(found[-1]) == size
    return replaced(view, fill=_same_fill(view.fill, value.fill), offsets=tuple(found))


def _joined(views: Sequence[_View], concatenate: Instruction) -> _View:
    first = next((view for view in views if view.source is not None), None)
    if first is None:
        raise _Mixed
    joined, fill, parts = concatenate.attributes["dimension"], first.fill, []
    for view in views:
        own = view.offsets[joined]
        if view.source is None:
            fill = _same_fill(fill, view.fill)
            parts.append(np.full(len(own), FILL))
            continue
        if view.source is not first.source:
            raise _Mixed
        distance = view.start - first.start
        for dim, (one, other) in enumerate(zip(first.offsets, view.offsets, strict=True)):
            if dim != joined:
                distance += _distance(one, other)
        if view.fill is not None:
            fill = _same_fill(fill, view.fill)
        parts.append(np.where(own == FILL, FILL, own + distance))
    offsets = [np.concatenate(parts) if dim == joined else own for dim, own in enumerate(first.offsets)]
    return replaced(first, fill=fill, offsets=tuple(offsets))


def _distance(one: Offsets, other: Offsets) -> int:
    """How far other offsets lie behind these, all of them."""
    is_known = one != FILL
    if not np.array_equal(is_known, other != FILL):
        raise _Mixed
    differences = (other - one)[is_known]
    if not len(differences):
        return 0
    if (differences != differences[0]).any():
        raise _Mixed
    return int(differences[0])


def _same_fill(one: Instruction | None, other: Instruction | None) -> Instruction:
    """What fills both, if that is one number."""
    found = [each for each in (one, other) if each is not None]
    if not found or any(each is not found[0] and not _is_same_constant(each, found[0]) for each in found):
        raise _Mixed
    return found[0]


def _is_same_constant(one: Instruction, other: Instruction) -> bool:
    return one.opcode == other.opcode == "constant" and one.attributes["literal"] == other.attributes["literal"]
