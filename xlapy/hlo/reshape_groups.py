"""Which dimensions of an array become which in a reshape, and what that means for sizes known only at run time.

Dimensions form the smallest runs of neighbours that have equally many elements before and after. Each run is a
reshape of its own: in f32[2,<=4,5] -> f32[<=8,5] the run (2, <=4) becomes (<=8), and 5 stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.hlo.shape import Dims, Flags, Shape


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring dimensions that become neighbouring dimensions of as many elements."""

    before: Dims
    after: Dims

    def joined(self, other: Group) -> Group:
        return Group(self.before + other.before, self.after + other.after)


def pairs_of_wide(before: Dims, after: Dims) -> list[tuple[int, int]] | None:
    """The dimensions of other sizes than 1, pairwise in order, where a reshape only adds and drops those of size 1."""
    wide, wide_after = ([dim for dim, size in enumerate(dims) if size != 1] for dims in (before, after))
    if [before[dim] for dim in wide] != [after[dim] for dim in wide_after]:
        return None
    return [*zip(wide, wide_after, strict=True)]


def reshape_groups(before: Shape, after: Shape) -> list[Group]:
    """The runs of a reshape, in order. A run with a bounded dimension before has one after, if there is any at all.

    Arrays without elements, or with unbounded dimensions, are one run: such sizes have no factors."""
    if not all(size > 0 for size in (*before.dims, *after.dims)):
        return [Group(tuple(range(before.rank)), tuple(range(after.rank)))]
    groups = _smallest(before.dims, after.dims)
    while (lost := _first_lost(groups, before, after)) is not None:
        neighbour = lost if lost + 1 < len(groups) else lost - 1
        groups[neighbour : neighbour + 2] = [groups[neighbour].joined(groups[neighbour + 1])]
    return groups


def _smallest(before: Dims, after: Dims) -> list[Group]:
    groups: list[Group] = []
    first = first_after = end = end_after = 0
    while end < len(before) or end_after < len(after):
        count, count_after = math.prod(before[first:end]), math.prod(after[first_after:end_after])
        if end < len(before) and (count <= count_after or end_after == len(after)):
            end += 1
        else:
            end_after += 1
        if math.prod(before[first:end]) == math.prod(after[first_after:end_after]):
            groups.append(Group(tuple(range(first, end)), tuple(range(first_after, end_after))))
            first, first_after = end, end_after
    return groups


def _first_lost(groups: Sequence[Group], before: Shape, after: Shape) -> int | None:
    """The first run whose bounded dimensions have no bounded one to go to, while there are other runs."""
    for place, group in enumerate(groups):
        if _bounded(group.before, before) and not _bounded(group.after, after) and len(groups) > 1:
            return place
    return None


def _bounded(dims: Sequence[int], shape: Shape) -> list[int]:
    return [dim for dim in dims if shape.is_dynamic_dim(dim)]


def run_time_dims(sizes: Sequence[int], before: Shape, after: Shape) -> list[int]:
    """The run-time sizes of `after` for those of `before`.

    In each run the first bounded dimension takes what the others, at their bounds, leave: a part that does not fill it
    is dropped."""
    dims = [*after.dims]
    for group in reshape_groups(before, after):
        target = adapting_dim(group, after)
        if target is not None:
            others = math.prod(dims[dim] for dim in group.after if dim != target)
            count = math.prod(sizes[dim] for dim in group.before)
            dims[target] = count // others if others > 0 else max(dims[target], 0)
    return dims


def adapting_dim(group: Group, after: Shape) -> int | None:
    """The dimension of the result whose size follows from the elements that a run has."""
    return next(iter(_bounded(group.after, after)), None)


def reshaped_flags(before: Shape, dims: Sequence[int]) -> Flags:
    """Which dimensions a reshape to `dims` makes bounded: of each run with a bounded dimension, the outermost."""
    static_or_unlike = before.is_static or before.is_unbounded or math.prod(before.dims) != math.prod(dims)
    if static_or_unlike or not dims:
        return ()
    flags = [False] * len(dims)
    if 0 in before.dims:
        flags[0] = True
        return tuple(flags)
    lost: list[int] = []
    for group in _smallest(before.dims, tuple(dims)):
        lost += _bounded(group.before, before)
        if lost and group.after:
            flags[_outermost(group.after, dims, all(before.dims[dim] == 1 for dim in lost))] = True
            lost = []
    flags[-1] = flags[-1] or bool(lost)
    return tuple(flags)


def _outermost(places: Sequence[int], dims: Sequence[int], of_one: bool) -> int:
    """The first place where a dimension is more than 1, or is 1 if a bound of one is all that goes there."""
    return next((dim for dim in places if (dims[dim] == 1) == of_one), places[0])
