"""Reduce-window kernels.

Lanes lie across the fastest dimension of the result; each folds the window of an element of its own, place after place.
Where padding or a hole of the dilated input lies under a place, the initial value is folded instead. Like those of a
reduce, the elements may be computed where they are folded, and something from each result before it is stored.

A window that reaches from each element to an end of its dimension is a cumulative scan (`kernels.scan`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import SCALAR, Coordinate, Index, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.fold_results import store_results
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP, widest_lanes
from xlapy.codegen.kernels.window_axes import WindowAxis, both, carried_choice, carried_loop
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element, select, splat
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import Window
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

UNROLLED_INSTRUCTIONS = 64  # of the computation, over all places of the window: written out instead of loops
LEAST_BLOCKS = 4  # in a row, of which the first and the last one may be at its ends
LEAST_RESULTS = 2048  # that are worth it


class ReduceWindowPlan(Record):
    """How a reduce-window runs. `inner` is the fastest dimension of the result, across which the lanes lie."""

    instruction: Instruction
    roots: tuple[Instruction, ...]  # what is stored: the reduce-window itself, or what is made from each of its results
    members: int  # instructions that make each element that is folded
    axes: tuple[WindowAxis, ...]
    inner: int  # -1 for a scalar
    lanes: int
    units: int
    bytes_per_unit: int

    @property
    def computation(self) -> Computation:
        return self.instruction.called[0]

    @property
    def result(self) -> Shape:
        """The shape of each result."""
        return self.instruction.shape.leaves()[0]

    @property
    def operand(self) -> Shape:
        return self.instruction.operands[0].shape

    @property
    def blocks(self) -> int:
        """Vectors along the fastest dimension."""
        return -(-self.axes[self.inner].count // self.lanes) if self.inner >= 0 else 1

    @property
    def has_edges(self) -> bool:
        """Some vectors of the fastest dimension, but far from all, have lanes with places that lie on no element."""
        if self.inner < 0 or self.lanes == 1:
            return False
        axis = self.axes[self.inner]
        return (
            not axis.is_always_inside
            and axis.part.base_dilation == 1
            and self.blocks > 2
            and self.result.size >= LEAST_RESULTS
        )

    @property
    def outer(self) -> list[int]:
        """The other dimensions, slowest first."""
        return [dim for dim in reversed(self.result.minor_to_major) if dim != self.inner]


def plan_reduce_window(
    instruction: Instruction,
    roots: Sequence[Instruction],
    inputs: Callable[[Instruction], bool],
    target: Target,
) -> ReduceWindowPlan:
    """How to compute `roots`, which are the fold or made from it, from instructions for which `inputs` holds."""
    result = instruction.shape.leaves()[0]
    axes = window_axes(instruction.attributes["window"], instruction.operands[0].shape.dims, result.dims)
    inner = inner_dim(result)
    count = axes[inner].count if inner >= 0 else 1
    members = between(instruction.operands, inputs)
    made = between(roots, lambda i: i is instruction or inputs(i))
    widest = widest_lanes([*members, *made], target)
    if inner >= 0 and count < LEAST_BLOCKS * widest and not axes[inner].is_always_inside:
        widest //= VECTORS_PER_STEP  # fewer lanes are at the ends
    lanes = min(widest, 1 << (count.bit_length() - 1)) if count else 1
    units = math.prod(result.dims) // max(count, 1) * -(-count // lanes)
    total = sum(operand.shape.bytes for operand in instruction.operands) + instruction.shape.bytes
    places = math.prod(axis.part.size for axis in axes)
    work = max(total, places * result.size)
    computed = sum(not inputs(member) for member in members)
    return ReduceWindowPlan(instruction, tuple(roots), computed, axes, inner, lanes, units, work // max(units, 1))


def window_axes(window: Window, sizes: Sequence[int], counts: Sequence[int]) -> tuple[WindowAxis, ...]:
    return tuple(
        WindowAxis(part, size, count) for part, size, count in zip(window.dimensions, sizes, counts, strict=True)
    )


def inner_dim(shape: Shape) -> int:
    """The fastest dimension that has several elements, else the fastest; -1 for a scalar."""
    for dim in shape.minor_to_major:
        if shape.dims[dim] > 1:
            return dim
    return shape.minor_to_major[0] if shape.rank else -1


def emit_reduce_window(
    k: KernelBuilder,
    plan: ReduceWindowPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """Writes units [begin, end): vectors of results."""
    fold = WindowFold(k, plan, arrays)
    scalar, vector = Indexing(k, 1), Indexing(k, plan.lanes)
    with k.loop(begin, end) as units:
        row, block = scalar.divide(Coordinate(units.index), plan.blocks)
        outer = scalar.delinearize(row, [plan.axes[dim].count for dim in plan.outer])
        positions = dict(zip(plan.outer, outer, strict=True))
        if plan.inner >= 0:
            start = k.smin(k.mul(block.start, plan.lanes), plan.axes[plan.inner].count - plan.lanes)
            positions[plan.inner] = vector.along_lanes(start)
        if plan.has_edges:
            fold.store_apart(vector, outputs, positions)
        else:
            fold.store(vector, outputs, positions, fold.results(vector, positions))


class WindowFold:
    """Folds the window at given positions."""

    def __init__(self, k: KernelBuilder, plan: ReduceWindowPlan, arrays: Mapping[Instruction, Array]) -> None:
        self.k = k
        self.plan = plan
        self.arrays = arrays
        self._inputs, inits = plan.instruction.grouped_operands()
        self.inits = ElementGraph(Indexing(k, 1), arrays).values([(init, SCALAR) for init in inits])

    def elements(self, ix: Indexing, index: Index) -> list[Element]:
        """What is folded at one index of the operands."""
        return ElementGraph(ix, self.arrays).values([(operand, index) for operand in self._inputs])

    def combine(self, running: Sequence[Element], elements: Sequence[Element], lanes: int) -> list[Element]:
        """One step of the computation; narrow floats stay unrounded."""
        results = emit_region(self.k, self.plan.computation, [*running, *elements], unrounded=True)
        return [splat(self.k, result, lanes) for result in results]

    def store_apart(self, ix: Indexing, outputs: Sequence[Array], positions: Mapping[int, Coordinate]) -> None:
        """Folds and stores: vectors of which some lane has places that lie on no element apart from those inside."""
        k, axis, start = self.k, self.plan.axes[self.plan.inner], positions[self.plan.inner].start
        first = k.sub(k.mul(start, axis.part.stride), axis.part.padding_low)
        reach = (ix.lanes - 1) * axis.part.stride + (axis.part.size - 1) * axis.part.window_dilation
        is_inside = k.and_(k.compare("ge", first, 0), k.compare("lt", k.add(first, reach), axis.size))
        k.if_else(
            is_inside,
            lambda: self.store(ix, outputs, positions, self.results(ix, positions, within=self.plan.inner)),
            lambda: self.store(ix, outputs, positions, self.results(ix, positions, is_rare=True)),
        )

    def results(
        self, ix: Indexing, positions: Mapping[int, Coordinate], *, within: int = -1, is_rare: bool = False
    ) -> list[Element]:
        """The folded elements. All places along the dimension `within` lie on elements; what `is_rare` is no longer
        than it must be."""
        k, axes = self.k, self.plan.axes
        running = [splat(k, init, ix.lanes) for init in self.inits]
        sizes = [axis.part.size for axis in axes]
        instructions = math.prod(sizes) * (len(self.plan.computation) + self.plan.members)
        if instructions <= UNROLLED_INSTRUCTIONS and not is_rare:
            for place in itertools.product(*map(range, sizes)):
                running = self._fold(ix, positions, [k.const(I64, offset) for offset in place], running, within)
            return running

        def nest(offsets: Sequence[Value], values: Sequence[Element]) -> Sequence[Element]:
            if len(offsets) == len(axes):
                return self._fold(ix, positions, offsets, values, within)
            first, last = k.const(I64, 0), k.const(I64, sizes[len(offsets)])
            return carried_loop(k, first, last, values, lambda offset, inner: nest([*offsets, offset], inner))

        return list(nest([], running))

    def _fold(
        self,
        ix: Indexing,
        positions: Mapping[int, Coordinate],
        offsets: Sequence[Value],
        running: Sequence[Element],
        within: int,
    ) -> list[Element]:
        """Folds what lies under one place of the window."""
        k = self.k
        coordinates = []
        shared: Value | None = None  # holds for all lanes or for none
        mask: Value | None = None
        for dim, (axis, offset) in enumerate(zip(self.plan.axes, offsets, strict=True)):
            coordinate, inside = axis.locate(ix, positions[dim], offset)
            coordinates.append(coordinate)
            if dim == within:
                continue
            if inside is not None and inside.type.lanes == 1:
                shared = both(k, shared, inside)
            else:
                mask = both(k, mask, inside)
        index = Index(self.plan.operand.dims, tuple(coordinates), None, mask)

        def inside_all() -> list[Element]:
            elements = self.elements(ix, index)
            if mask is not None:
                pairs = zip(elements, self.inits, strict=True)
                elements = [select(k, mask, splat(k, e, ix.lanes), splat(k, init, ix.lanes)) for e, init in pairs]
            return self.combine(running, elements, ix.lanes)

        return carried_choice(k, shared, running, inside_all, lambda: self.combine(running, self.inits, ix.lanes))

    def store(
        self,
        ix: Indexing,
        outputs: Sequence[Array],
        positions: Mapping[int, Coordinate],
        results: Sequence[Element],
    ) -> None:
        index = Index(self.plan.result.dims, tuple(positions[dim] for dim in range(self.plan.result.rank)))
        store_results(ix, self.plan.instruction, self.plan.roots, self.arrays, outputs, index, results)
