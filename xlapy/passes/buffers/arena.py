"""The arena: where in one block of memory each buffer lies, so that the block is small."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.hlo.buffer_plan import Home, Location
from xlapy.passes.buffers.walk import Buffer

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


def aligned(size: int) -> int:
    """The bytes that a buffer takes up in the arena."""
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


def place_in_arena(buffers: Sequence[Buffer]) -> int:
    """Gives each buffer an offset; returns the bytes of the arena.

    Buffers that follow each other in time mostly fit where others were. Where that leaves holes, because small ones lie
    in the way when large ones come, the largest choose first."""
    chosen = _by_best_fit(buffers, 0)
    if chosen.bytes - live_bytes(buffers) > max(chosen.bytes // HOLES, LEAST_HOLE_BYTES):
        chosen = min(chosen, _by_size(buffers), key=lambda placement: placement.bytes)
    for buffer, offset in chosen.offsets.items():
        buffer.location = Location(Home.ARENA, offset)
    return chosen.bytes


HOLES = 64  # parts of the arena, one of which may be wasted
LEAST_HOLE_BYTES = 16 * 1024
MOST_CHOOSING = 192  # buffers that are compared with each other: some milliseconds


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where buffers lie, and how far that reaches."""

    offsets: dict[Buffer, int]
    bytes: int


def _by_best_fit(buffers: Sequence[Buffer], top: int) -> _Placement:
    """Offsets from `top` on, over the points of the program."""
    offsets: dict[Buffer, int] = {}
    free: list[tuple[int, int]] = []  # (size, offset), ascending
    active: list[tuple[int, int, int]] = []  # (last point, offset, size), ascending
    for buffer in sorted(buffers, key=lambda b: (b.ranges[0][0], -b.bytes)):
        first, last, size = buffer.ranges[0][0], buffer.ranges[-1][1], aligned(buffer.bytes)
        while active and active[0][0] < first:
            _, offset, freed = active.pop(0)
            free = _release(free, offset, freed)
        fit = bisect.bisect_left(free, (size, -1))
        if fit < len(free):
            available, offset = free.pop(fit)
            if available > size:
                bisect.insort(free, (available - size, offset + size))
        else:
            offset = top
            top += size
        offsets[buffer] = offset
        bisect.insort(active, (last, offset, size))
    return _Placement(offsets, top)


def _by_size(buffers: Sequence[Buffer]) -> _Placement:
    """The largest first, each as low as those allow that lie already and are alive at some point of its life; the small
    ones of very many buffers above all that."""
    ordered = sorted(buffers, key=lambda b: (-b.bytes, b.ranges[0][0]))
    offsets: dict[Buffer, int] = {}
    top = 0
    for buffer in ordered[:MOST_CHOOSING]:
        size, offset = aligned(buffer.bytes), 0
        neighbours = [(offsets[other], other) for other in offsets if _live_together(buffer, other)]
        for start, other in sorted(neighbours, key=lambda neighbour: neighbour[0]):
            if start - offset >= size:
                break
            offset = max(offset, start + aligned(other.bytes))
        offsets[buffer] = offset
        top = max(top, offset + size)
    rest = _by_best_fit(ordered[MOST_CHOOSING:], top)
    return _Placement(offsets | rest.offsets, rest.bytes)


def _live_together(one: Buffer, other: Buffer) -> bool:
    return one.ranges[0][0] <= other.ranges[-1][1] and other.ranges[0][0] <= one.ranges[-1][1]


def _release(free: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    """The free list with [offset, offset + size) in it, joined to its neighbours."""
    joined = []
    for other_size, other_offset in free:
        if other_offset + other_size == offset:
            offset, size = other_offset, size + other_size
        elif offset + size == other_offset:
            size += other_size
        else:
            joined.append((other_size, other_offset))
    bisect.insort(joined, (size, offset))
    return joined


def live_bytes(buffers: Sequence[Buffer]) -> int:
    """The largest sum of buffers that are live at one point."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        for first, last in buffer.ranges:
            changes[first] = changes.get(first, 0) + aligned(buffer.bytes)
            changes[last + 1] = changes.get(last + 1, 0) - aligned(buffer.bytes)
    live = most = 0
    for point in sorted(changes):
        live += changes[point]
        most = max(most, live)
    return most
