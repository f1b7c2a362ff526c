"""How select-and-scatter is computed: along which dimensions windows move, which lanes lie side by side, and which rows
make a unit of work."""

from __future__ import annotations

import math

from xlapy.codegen.kernels.reduce_window import inner_dim, window_axes
from xlapy.codegen.kernels.window_axes import WindowAxis, shared_rows
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.padded_selections import PaddedSelection, may_update_places
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

UNITS = 64
"""Enough for the cores of most machines, with some to spare for those that are late."""

LEAST_ROWS = 8
"""Rows of windows of a unit, for each row that it looks at for the sake of its neighbours."""


class SelectAndScatterPlan(Record):
    """The dimensions that the window moves along or folds are `touched`, first to last; the others are free."""

    found: PaddedSelection
    axes: tuple[WindowAxis, ...]
    touched: tuple[int, ...]
    leading: tuple[int, ...]  # free dimensions around the touched ones, slowest first: a unit has one element of each
    inner: tuple[int, ...]  # the other free dimensions, slowest first
    lanes: int  # across the last free dimension, which they divide
    unit_rows: int  # positions along the first touched dimension; 0 for all of them
    by_places: bool  # every place of the result is updated in some lanes; else only the selected one

    @property
    def selection(self) -> Instruction:
        return self.found.selection

    @property
    def operand(self) -> Shape:
        """What windows slide over."""
        return self.selection.shape

    @property
    def source(self) -> Shape:
        return self.selection.operands[1].shape

    @property
    def windows(self) -> tuple[WindowAxis, ...]:
        """The axes of the touched dimensions."""
        return tuple(self.axes[dim] for dim in self.touched)

    @property
    def kept(self) -> tuple[range, ...]:
        """The parts of the touched dimensions that are stored."""
        return tuple(self.found.kept[dim] for dim in self.touched)

    @property
    def read(self) -> tuple[range, ...]:
        """The parts of the touched dimensions that are in memory."""
        return tuple(self.found.read[dim] for dim in self.touched)

    @property
    def steps(self) -> dict[int, int]:
        """How many elements of each free dimension are taken at once."""
        free = (*self.leading, *self.inner)
        return {dim: self.lanes if dim == free[-1] else 1 for dim in free}

    @property
    def unit_sizes(self) -> list[int]:
        """The loops over units: blocks of rows come last."""
        sizes = [self.operand.dims[dim] // self.steps[dim] for dim in self.leading]
        return [*sizes, -(-self.windows[0].count // self.unit_rows)] if self.unit_rows else sizes

    @property
    def units(self) -> int:
        return math.prod(self.unit_sizes)

    @property
    def bytes_per_unit(self) -> int:
        total = self.found.array.shape.bytes + self.source.bytes + self.found.root.shape.bytes
        return total // max(self.units, 1)

    @property
    def is_disjoint(self) -> bool:
        """No element lies in two windows."""
        return all(axis.part.size <= axis.part.stride for axis in self.windows)

    @property
    def is_tiling(self) -> bool:
        """Every element lies in just one window."""
        return self.is_disjoint and all(
            axis.part.size == axis.part.stride
            and -axis.part.padding_low <= kept.start
            and axis.count * axis.part.stride - axis.part.padding_low >= kept.stop
            for axis, kept in zip(self.windows, self.kept, strict=True)
        )


def plan_select_and_scatter(found: PaddedSelection, target: Target) -> SelectAndScatterPlan:
    selection = found.selection
    operand, source = selection.shape, selection.operands[1].shape
    axes = window_axes(selection.attributes["window"], operand.dims, source.dims)
    touched = tuple(dim for dim, axis in enumerate(axes) if _is_touched(found, dim, axis))
    order = tuple(reversed(operand.minor_to_major))
    first = min(map(order.index, touched), default=len(order))
    leading = order[:first]
    inner = tuple(dim for dim in order[first:] if dim not in touched)
    free = leading + inner
    lanes = 1
    if free and free[-1] == inner_dim(operand):
        size = operand.dims[free[-1]]
        lanes = min(target.lanes(max(32, register_type(operand.type).bits)), size & -size or 1)
    by_places = may_update_places(selection) and (lanes > 1 or not found.is_plain)
    rows = 0
    if by_places and touched and source.size:
        rows = _unit_rows(axes[touched[0]], math.prod(operand.dims[dim] for dim in leading))
    return SelectAndScatterPlan(found, axes, touched, leading, inner, lanes, rows, by_places)


def _is_touched(found: PaddedSelection, dim: int, axis: WindowAxis) -> bool:
    whole = range(axis.size)
    return not axis.is_trivial or axis.size != axis.count or found.read[dim] != whole or found.kept[dim] != whole


def _unit_rows(axis: WindowAxis, units: int) -> int:
    """Positions of a window along one dimension that make a unit, where there are so many `units` of them all."""
    return max(axis.count * units // UNITS, LEAST_ROWS * shared_rows(axis), 1)
