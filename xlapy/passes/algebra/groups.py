"""How the dimensions of two shapes with as many elements belong together: what a reshape merges and splits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xlapy.hlo.shape import Dims


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring dimensions on either side that hold the same elements. Those of size 1 are in no group."""

    before: Dims
    after: Dims

    @property
    def is_one_dimension(self) -> bool:
        """A dimension that stays one."""
        return len(self.before) == len(self.after) == 1


def common_groups(before: Dims, after: Dims) -> list[Group] | None:
    """The finest grouping of the dimensions of a reshape from `before` to `after`; None for arrays without elements."""
    if 0 in before or 0 in after:
        return None
    left = [dim for dim, size in enumerate(before) if size != 1]
    right = [dim for dim, size in enumerate(after) if size != 1]
    groups = []
    while left and right:
        ours, others = [left.pop(0)], [right.pop(0)]
        size, other_size = before[ours[0]], after[others[0]]
        while size != other_size:
            if size < other_size:
                ours.append(left.pop(0))
                size *= before[ours[-1]]
            else:
                others.append(right.pop(0))
                other_size *= after[others[-1]]
        groups.append(Group((*ours,), (*others,)))
    return groups


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
