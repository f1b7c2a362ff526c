"""What direct convolutions are cut into: parts of the result that are alike, each with tiles along one loop.

    phases    of an array with holes: those positions together that see elements under the same places of the window,
              as over an array without holes
    inside    positions where the windows of whole tiles are inside
    ends      the positions before and behind them, where windows hang over the edge. Those of many lines are tiles
              along another loop; where there are too few, results are made one by one, beside the tiles of a line

A part is a convolution by itself over some of the results, at even distances.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xlapy.codegen.kernels.convolution import (
    BATCH,
    FEATURE,
    SPATIAL,
    ConvolutionPlan,
    edges_of,
    has_few_positions,
    tile_of,
)
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.phases import phases
from xlapy_runtime.records import Record

LATENCY = 8
"""Products of vectors that could be made while one waits for another: what a tile of fewer takes."""


class Line(Record):
    """Some positions along a spatial dimension, and places of the window there, evenly spaced both."""

    axis: WindowAxis
    whole: int  # places of the window that these belong to
    first: int
    step: int
    first_place: int
    place_step: int
    edges: tuple[int, int]  # positions at both ends that tiles along the line do not cover
    inside: int  # those that they do: none where tiles of a long window would hang over the edge

    def positions(self, begin: int, end: int, step: int = 1) -> Line:
        """Every `step`-th of these from `begin` to `end`."""
        axis, count = self.axis, -(-(end - begin) // step)
        part, low = axis.part, axis.part.padding_low - begin * axis.part.stride
        moved = WindowDimension(part.size, part.stride * step, low, 0, 1, part.window_dilation, part.reversal)
        first = self.first + begin * self.step
        axis = WindowAxis(moved, axis.size, count)
        return line_of(axis, self.whole, first, self.step * step, self.first_place, self.place_step)


def line_of(
    axis: WindowAxis, whole: int, first: int = 0, step: int = 1, first_place: int = 0, place_step: int = 1
) -> Line:
    edges = edges_of(axis)
    is_short = axis.is_always_inside or not has_few_positions(axis)
    inside = axis.count - sum(edges) if is_short else 0
    return Line(axis, whole, first, step, first_place, place_step, edges, inside)


NO_LINE = line_of(WindowAxis(WindowDimension(1), 1, 1), 1)


class Part(Record):
    """Results with tiles along a loop, one of those of a plan, if one is long enough."""

    batch: int
    lines: tuple[Line, ...]
    loop: int | None

    @property
    def edges(self) -> tuple[int, int]:
        """Results before and behind the tiles that are made one by one."""
        if self.loop is None:
            return 1, 0
        return (0, 0) if self.loop == BATCH else self.lines[self.loop - SPATIAL].edges

    @property
    def covered(self) -> int:
        return _inside(self.batch, self.lines, self.loop)

    def units(self, tile: int) -> int:
        """Tiles and results beside them, of a line."""
        return -(-self.covered // tile) + sum(self.edges)

    def outer(self) -> dict[int, int]:
        """How often the other loops run."""
        sizes = {BATCH: self.batch, **{SPATIAL + spatial: line.axis.count for spatial, line in enumerate(self.lines)}}
        return {loop: 1 if loop == self.loop else size for loop, size in sizes.items()}


def phases_of(axes: Sequence[WindowAxis]) -> Iterator[tuple[Line, ...]]:
    """The results of a convolution, by phases of all dimensions."""
    yield from itertools.product(*(list(_lines(axis)) for axis in axes))


def _lines(axis: WindowAxis) -> Iterator[Line]:
    for phase in phases(axis.part, axis.size, axis.count):
        seen = replace(axis, part=phase.part, count=phase.count)
        yield line_of(seen, axis.part.size, phase.first, phase.step, phase.first_place, phase.place_step)


def parts_of(plan: ConvolutionPlan, convolution_phases: Sequence[tuple[Line, ...]]) -> tuple[int, list[Part]]:
    """The size of tiles that all phases are best made in, and their parts; `plan` is that of one of them."""
    batch = plan.sizes[BATCH]
    lengths = {
        plan.tile,
        *(tile_of(size, plan.most) for lines in convolution_phases if (size := _inside(batch, lines, plan.tile_loop))),
    }
    ways = [
        (tile, [part for lines in convolution_phases for part in _parts(plan, tile, batch, lines, ())])
        for tile in sorted(lengths, reverse=True)
    ]
    if len(ways) == 1:
        return ways[0]
    return min(ways, key=lambda way: sum(_price(plan, way[0], part) for part in way[1]))


def _parts(
    plan: ConvolutionPlan, tile: int, batch: int, lines: tuple[Line, ...], outside: tuple[int, ...]
) -> Iterator[Part]:
    """What some results are made in; those are at the ends of the lines along the loops `outside`."""
    loop = _tile_loop(plan, tile, batch, lines, outside)
    if loop is None or loop == BATCH:
        yield Part(batch, lines, loop)
        return
    low, high = lines[loop - SPATIAL].edges
    spatial, count = loop - SPATIAL, lines[loop - SPATIAL].axis.count
    ends = [(0, count, count - 1)] if low == high == 1 else [(0, low, 1), (count - high, count, 1)]
    apart = [_with(lines, spatial, *end) for end in ends if end[0] < end[1]]
    is_gathered = plan.sizes[FEATURE] > plan.features_per_group  # that takes as long for one result as for each of many
    if is_gathered or not apart or any(_tile_loop(plan, tile, batch, end, (*outside, loop)) is None for end in apart):
        yield Part(batch, lines, loop)
        return
    yield Part(batch, _with(lines, spatial, low, count - high, 1), loop)
    for end in apart:
        yield from _parts(plan, tile, batch, end, (*outside, loop))


def _with(lines: tuple[Line, ...], spatial: int, begin: int, end: int, step: int) -> tuple[Line, ...]:
    return (*lines[:spatial], lines[spatial].positions(begin, end, step), *lines[spatial + 1 :])


def _tile_loop(
    plan: ConvolutionPlan, tile: int, batch: int, lines: tuple[Line, ...], outside: tuple[int, ...]
) -> int | None:
    """A loop with enough results for a tile: that of the plan, else one without ends, else the fastest in memory."""
    order = sorted(range(len(lines)), key=lambda s: plan.numbers.output_spatial[s], reverse=True)
    loops = [*(SPATIAL + spatial for spatial in order), BATCH]
    long = [loop for loop in loops if loop not in outside and _inside(batch, lines, loop) >= tile]
    if plan.tile_loop in long:
        return plan.tile_loop
    return min(long, key=lambda loop: loop != BATCH and sum(lines[loop - SPATIAL].edges) > 0, default=None)


def _inside(batch: int, lines: Sequence[Line], loop: int | None) -> int:
    """How many results tiles along a loop can cover."""
    if loop is None:
        return 0
    return batch if loop == BATCH else lines[loop - SPATIAL].inside


def _price(plan: ConvolutionPlan, tile: int, part: Part) -> int:
    """About what a part takes, in products of vectors at one place."""
    lines, places = 1, 1
    for size in part.outer().values():
        lines *= size
    for line in part.lines:
        places *= line.axis.part.size
    singles = sum(part.edges)
    tiles = part.units(tile) - singles
    return lines * places * (tiles * max(tile * plan.vectors, LATENCY) + singles * max(plan.vectors, LATENCY))
