"""Which dimensions a reshape merges and splits, those of size 1 apart."""

from __future__ import annotations

from collections.abc import Iterable

from xlapy.hlo.reshape_groups import Group, reshape_groups
from xlapy.hlo.shape import Shape


def common_groups(before: Shape, after: Shape) -> list[Group] | None:
    """The runs of a reshape without their dimensions of size 1; None for arrays without elements."""
    if not before.size:
        return None
    runs = [
        Group(
            tuple(dim for dim in run.before if before.dims[dim] != 1),
            tuple(dim for dim in run.after if after.dims[dim] != 1),
        )
        for run in reshape_groups(before, after)
    ]
    return [run for run in runs if run.before]


def split_by(groups: Iterable[Group], chosen: Iterable[int]) -> tuple[list[Group], list[Group]] | None:
    """The groups whose dimensions before the reshape are all chosen, and those of which none is; None if one is
    neither."""
    wanted = {*chosen}
    inside: list[Group] = []
    outside: list[Group] = []
    for group in groups:
        count = len(wanted.intersection(group.before))
        if 0 < count < len(group.before):
            return None
        (inside if count else outside).append(group)
    return inside, outside
