"""Select-and-scatter kernels.

A unit of work owns all of the result that its windows can touch, so it may update that in place, position after
position, and the order never depends on how units are split. Lanes lie across a fastest dimension that the window
leaves alone; each selects an element of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array, zero_element
from xlapy.codegen.indexing import Coordinate, Index, Indexing, row_major_strides
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.reduce_window import UNROLLED_INSTRUCTIONS, inner_dim, window_axes
from xlapy.codegen.kernels.window_axes import WindowAxis, both, carried_choice, carried_loop
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element, register_type, select, splat
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_inlinable
from xlapy_runtime.records import Record


class SelectAndScatterPlan(Record):
    """The window's own dimensions, and the others, whose elements are units of work."""

    instruction: Instruction
    axes: tuple[WindowAxis, ...]
    touched: tuple[int, ...]
    free: tuple[int, ...]
    lanes: int  # across the last free dimension, which they divide
    units: int
    bytes_per_unit: int


def plan_select_and_scatter(instruction: Instruction, target: Target) -> SelectAndScatterPlan:
    operand, source, _ = (operand.shape for operand in instruction.operands)
    axes = window_axes(instruction.attributes["window"], operand.dims, source.dims)
    touched = tuple(dim for dim, axis in enumerate(axes) if not axis.is_trivial or axis.size != axis.count)
    free = tuple(dim for dim in reversed(operand.minor_to_major) if dim not in touched)
    lanes = 1
    if free and free[-1] == inner_dim(operand):
        size = operand.dims[free[-1]]
        lanes = min(target.lanes(max(32, register_type(operand.type).bits)), size & -size or 1)
    units = math.prod(operand.dims[dim] for dim in free) // lanes
    total = 2 * operand.bytes + source.bytes
    return SelectAndScatterPlan(instruction, axes, touched, free, lanes, units, total // max(units, 1))


def emit_select_and_scatter(
    k: KernelBuilder,
    plan: SelectAndScatterPlan,
    operands: Sequence[Array],
    output: Array,
    begin: Value,
    end: Value,
) -> None:
    """Writes units [begin, end): vectors of elements of the free dimensions, with all positions of the window."""
    operand, source, init_value = operands
    scalar, ix = Indexing(k, 1), Indexing(k, plan.lanes)
    init = init_value.load(scalar, Index((), ()))
    sizes = [operand.shape.dims[dim] for dim in plan.free]
    if sizes:
        sizes[-1] //= plan.lanes
    with k.loop(begin, end) as units:
        places = scalar.delinearize(Coordinate(units.index), sizes)
        free = dict(zip(plan.free, places, strict=True))
        if plan.lanes > 1:
            start = free[plan.free[-1]].start
            free[plan.free[-1]] = ix.along_lanes(k.mul(start, plan.lanes))

        def fill(positions: Mapping[int, Coordinate]) -> None:
            output.store(ix, _index(output, positions), init)

        def update(positions: Mapping[int, Coordinate]) -> None:
            _update(k, plan, ix, operand, source, output, positions)

        _loops(k, plan.touched, operand.shape.dims, free, fill)
        if source.shape.size:
            _loops(k, plan.touched, source.shape.dims, free, update)


def _index(array: Array, positions: Mapping[int, Coordinate]) -> Index:
    return Index(array.shape.dims, tuple(positions[dim] for dim in range(array.shape.rank)))


def _loops(
    k: KernelBuilder,
    dims: Sequence[int],
    sizes: Sequence[int],
    positions: Mapping[int, Coordinate],
    body: Callable[[Mapping[int, Coordinate]], None],
) -> None:
    """Loops over `dims`, outermost first."""
    if not dims:
        body(positions)
        return
    with k.loop(0, sizes[dims[0]]) as loop:
        _loops(k, dims[1:], sizes, {**positions, dims[0]: Coordinate(k.opaque(loop.index))}, body)


def _update(
    k: KernelBuilder,
    plan: SelectAndScatterPlan,
    ix: Indexing,
    operand: Array,
    source: Array,
    output: Array,
    positions: Mapping[int, Coordinate],
) -> None:
    """Selects the element of each lane at one position of the window, and scatters the source element to it."""
    found, chosen = _selected(k, plan, ix, operand, positions)
    scatter = plan.instruction.called[1]
    with k.if_(found):
        place = ix.at(chosen)
        index = Index(output.shape.dims, None, place)
        values = [output.load(ix, index), source.load(ix, _index(source, positions))]
        output.store(ix, index, emit_region(k, scatter, values)[0])


def _selected(
    k: KernelBuilder,
    plan: SelectAndScatterPlan,
    ix: Indexing,
    operand: Array,
    positions: Mapping[int, Coordinate],
) -> tuple[Value, Value]:
    """Whether the window has an element at this position (the same for all lanes), and the number of each lane's."""
    sizes = [axis.part.size for axis in plan.axes]
    nothing = splat(k, zero_element(k, operand.shape, 1), ix.lanes)
    running: list[Element] = [k.const(I1, 0), k.const(I64.with_lanes(ix.lanes), 0), nothing]

    def visit(offsets: Sequence[Value], running: Sequence[Element]) -> list[Element]:
        return _visit(k, plan, ix, operand, positions, offsets, running)

    if math.prod(sizes) * len(plan.instruction.called[0]) <= UNROLLED_INSTRUCTIONS:
        for place in itertools.product(*map(range, sizes)):
            running = visit([k.const(I64, offset) for offset in place], running)
    else:

        def nest(offsets: Sequence[Value], values: Sequence[Element]) -> Sequence[Element]:
            if len(offsets) == len(sizes):
                return visit(offsets, values)
            first, last = k.const(I64, 0), k.const(I64, sizes[len(offsets)])
            return carried_loop(k, first, last, values, lambda offset, inner: nest([*offsets, offset], inner))

        running = list(nest([], running))
    found, chosen, _ = running
    assert isinstance(found, Value) and isinstance(chosen, Value)
    return found, chosen


def _visit(
    k: KernelBuilder,
    plan: SelectAndScatterPlan,
    ix: Indexing,
    operand: Array,
    positions: Mapping[int, Coordinate],
    offsets: Sequence[Value],
    running: Sequence[Element],
) -> list[Element]:
    """What is selected once one more place of the window was looked at: (found, number, value)."""
    inside: Value | None = None
    coordinates = []
    for dim, (axis, offset) in enumerate(zip(plan.axes, offsets, strict=True)):
        coordinate, condition = axis.locate(ix, positions[dim], offset)
        coordinates.append(coordinate)
        inside = both(k, inside, condition)
    found, chosen, best = running
    assert isinstance(found, Value) and isinstance(chosen, Value)

    def look() -> list[Element]:
        index = Index(operand.shape.dims, tuple(coordinates))
        value = splat(k, operand.load(ix, index), ix.lanes)
        keep = _keeps(k, plan.instruction.called[0], found, best, value, ix.lanes)
        number = ix.vector(ix.linearize(coordinates, row_major_strides(operand.shape.dims)))
        return [k.const(I1, 1), k.select(keep, chosen, number), select(k, keep, best, value)]

    return carried_choice(k, inside, running, look, lambda: running)


def _keeps(k: KernelBuilder, selection: Computation, found: Value, best: Element, value: Element, lanes: int) -> Value:
    """The lanes that keep what they found. A function is not asked about what nobody found: it might loop forever."""

    def ask() -> Value:
        (keeps,) = emit_region(k, selection, [best, value])
        assert isinstance(keeps, Value)
        return k.splat(keeps, lanes)

    if is_inlinable(selection):
        return k.and_(ask(), k.splat(found, lanes))
    return k.if_else(found, ask, lambda: k.const(I1.with_lanes(lanes), 0))[0]
