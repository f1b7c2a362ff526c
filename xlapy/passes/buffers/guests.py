"""Guests: values that wait for long lie in the memory of results that do not exist yet.

    h = f32[512,512] ...             needed again for the gradient of w
    ...
    g = f32[512,512] dot(h, dz)      the last to read it
    ROOT r = f32[512,512] subtract(w, g)    whose memory the caller has given long before: h lay there

The results of a training step, new parameters and the state of an optimizer, are mostly made at its end, and take more
memory than what its backward half needs of the forward half. Programs that a cache holds stay in their arena: memory
that is used again and again is near. So only what is alive where the arena would be largest moves, the longest lives
first, until little is left.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from xlapy.passes.buffers.walk import Buffer

LEAST_LIVE_BYTES = 8 << 20
"""Alive at once in the arena: no more than this stays in a last-level cache."""

LEAST_GUEST_BYTES = 64 << 10

MOST_HOSTS_TRIED = 64


def place_guests(buffers: Sequence[Buffer], results: Mapping[Buffer, int]) -> None:
    """Gives some of `buffers` the location of one of `results`, which are placed and have so many bytes."""
    if sum(buffer.bytes for buffer in buffers) <= LEAST_LIVE_BYTES:
        return
    hosts = _hosts_by_size(results)
    guests = sorted((buffer for buffer in buffers if buffer.bytes >= LEAST_GUEST_BYTES), key=_life, reverse=True)
    live = _live_bytes(buffers)
    while live.max() > LEAST_LIVE_BYTES:
        peak = int(live.argmax())
        guest = next((guest for guest in guests if _is_live(guest, peak)), None)
        if guest is None:
            return
        guests.remove(guest)
        if _take_in(guest, hosts):
            for first, last in guest.ranges:
                live[first : last + 1] -= guest.bytes


@dataclass(slots=True)
class _Host:
    """Memory of a result, and when it is needed: `ranges` of points, ascending."""

    result: Buffer
    bytes: int
    ranges: list[tuple[int, int]]

    def is_free(self, ranges: Iterable[Sequence[int]]) -> bool:
        return not any(self._overlaps(first, last) for first, last in ranges)

    def _overlaps(self, first: int, last: int) -> bool:
        """Whether the range that begins last before the end of this one reaches into it."""
        place = bisect.bisect_right(self.ranges, last, key=lambda taken: taken[0])
        return place > 0 and self.ranges[place - 1][1] >= first


def _hosts_by_size(results: Mapping[Buffer, int]) -> list[_Host]:
    hosts = [_Host(result, size, [(first, last) for first, last in result.ranges]) for result, size in results.items()]
    return sorted((host for host in hosts if host.bytes >= LEAST_GUEST_BYTES), key=lambda host: host.bytes)


def _take_in(guest: Buffer, hosts: Sequence[_Host]) -> bool:
    """Places the guest in the smallest memory that is large enough, and free while it is needed."""
    fitting = bisect.bisect_left(hosts, guest.bytes, key=lambda host: host.bytes)
    for host in hosts[fitting : fitting + MOST_HOSTS_TRIED]:
        if host.is_free(guest.ranges):
            guest.location = host.result.location
            for first, last in guest.ranges:
                bisect.insort(host.ranges, (first, last))
            return True
    return False


def _life(buffer: Buffer) -> int:
    return buffer.ranges[-1][1] - buffer.ranges[0][0]


def _is_live(buffer: Buffer, point: int) -> bool:
    return any(first <= point <= last for first, last in buffer.ranges)


def _live_bytes(buffers: Sequence[Buffer]) -> np.ndarray:
    """How many bytes are alive at each point."""
    changes = np.zeros(max(buffer.ranges[-1][1] for buffer in buffers) + 2, np.int64)
    for buffer in buffers:
        for first, last in buffer.ranges:
            changes[first] += buffer.bytes
            changes[last + 1] -= buffer.bytes
    return np.cumsum(changes)
