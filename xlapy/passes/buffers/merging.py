"""Merging of buffers: values that are never needed at the same time live in the same memory.

Two buffers may become one where no point needs both, but for one at which the first hands over to the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xlapy.hlo.buffer_plan import Home, Location
from xlapy.hlo.donation import Donation
from xlapy.passes.buffers.walk import Buffer, Candidate

Handovers = Mapping[int, Sequence[Candidate]]
"""The candidates by their points."""


def handovers_of(candidates: Sequence[Candidate]) -> Handovers:
    found: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.point, []).append(candidate)
    return found


def merge(one: Buffer, other: Buffer, handovers: Handovers) -> bool:
    """Makes one buffer of two, if their ranges allow it; whether they are one now."""
    first, second = one.representative(), other.representative()
    if first is second:
        return True
    if first.bytes != second.bytes:
        return False
    if first.location is not None or second.location is not None:
        return False  # parameters and constants are never written
    if _conflict(first, second, handovers):
        return False
    first.ranges = _united(first.ranges, second.ranges)
    second.merged_into = first
    return True


def donate(
    parameters: Sequence[Buffer], results: Sequence[Buffer], possible: Sequence[Donation], handovers: Handovers
) -> dict[int, int]:
    """Joins results with the donated parameters whose memory is free in time; the others are never written, like all
    parameters. Returns result and parameter of each pair that is one now."""
    donations: dict[int, int] = {}
    lent: set[int] = set()
    for result, parameter in possible:
        if result in donations or parameter in lent:
            continue
        if merge(parameters[parameter], results[result], handovers):
            donations[result] = parameter
            lent.add(parameter)
    for parameter in {parameter for _, parameter in possible} - lent:
        parameters[parameter].location = Location(Home.PARAMETER, parameter)
    return donations


def _conflict(first: Buffer, second: Buffer, handovers: Handovers) -> bool:
    """Whether both are needed at some point, other than one at which the first hands over to the second or back."""
    for one in first.ranges:
        for other in second.ranges:
            start, end = max(one[0], other[0]), min(one[1], other[1])
            if start < end:
                return True
            if start == end and not (
                _is_boundary(one, other, start)
                and any(
                    {candidate.first.representative(), candidate.second.representative()} == {first, second}
                    for candidate in handovers.get(start, ())
                )
            ):
                return True
    return False


def _is_boundary(one: list[int], other: list[int], point: int) -> bool:
    return (one[1] == point == other[0]) or (other[1] == point == one[0])


def _united(first: list[list[int]], second: list[list[int]]) -> list[list[int]]:
    united: list[list[int]] = []
    for start, end in sorted((*first, *second)):
        if united and start <= united[-1][1]:
            united[-1][1] = max(united[-1][1], end)
        else:
            united.append([start, end])
    return united
