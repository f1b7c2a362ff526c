"""What kernels share that turn pairs of columns of small matrices, one matrix in each lane.

As `hlo/rotations.py` has it, to the bit. In lanes whose matrix needs no rotation everything stays as it is, so that
nothing depends on what the other lanes hold. Matrices that are large, or too few to fill a vector, come one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I1, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.factors import matrix_at
from xlapy.codegen.kernels.lane_matrices import LaneMatrices
from xlapy.codegen.registers import register_type
from xlapy.codegen.stopping import LONG, look
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.rotations import MOST_ROWS, MOST_SWEEPS, Rotations
from xlapy_runtime.records import Record

_USUAL_SWEEPS = 6


class RotationPlan(Record):
    """How a batch of matrices of `rows` by `columns` is taken apart by rotations."""

    type: IRType
    rows: int
    columns: int
    batch: int
    lanes: int  # of one vector: as many matrices
    bytes_per_matrix: int

    @property
    def shorter(self) -> int:
        return min(self.rows, self.columns)

    @property
    def longer(self) -> int:
        return max(self.rows, self.columns)

    @property
    def fills_lanes(self) -> bool:
        return not self.batch % self.lanes

    @property
    def units(self) -> int:
        """Vectors of matrices if they are all full, else matrices."""
        return self.batch // self.lanes if self.fills_lanes else self.batch

    @property
    def bytes_per_unit(self) -> int:
        return self.bytes_per_matrix * (self.lanes if self.fills_lanes else 1)

    @property
    def least_units(self) -> int:
        """Of a task: a vector, where units are the matrices that lanes take."""
        return 1 if self.fills_lanes else self.lanes

    @property
    def scratch_bytes(self) -> int:
        """What a task needs for one matrix and what is found of it, if that is not in the stack frame."""
        return 4 * self.longer * self.longer * self.type.bytes if self.longer > MOST_ROWS else 0

    @property
    def takes_long(self) -> bool:
        """One matrix does."""
        return self.shorter**2 * self.longer >= LONG


def plan_rotations(instruction: Instruction, target: Target) -> RotationPlan:
    a = instruction.operands[0].shape
    *batch, rows, columns = a.dims
    count = math.prod(batch)
    type = register_type(a.type)
    lanes = target.lanes(type.bits)
    if max(rows, columns) > MOST_ROWS or count < lanes:
        lanes = 1
    work = 6 * _USUAL_SWEEPS * min(rows, columns) ** 2 * max(rows, columns) * type.bytes // lanes
    bytes_per_matrix = work + (a.bytes + instruction.shape.bytes) // max(count, 1)
    return RotationPlan(type, rows, columns, count, lanes, bytes_per_matrix)


class RotatedLanes:
    """Matrices, one in each lane, and what is done with them."""

    def __init__(self, k: KernelBuilder, plan: RotationPlan, lanes: int) -> None:
        self.k, self.plan = k, plan
        self.type = plan.type.with_lanes(lanes)
        self.rotations = Rotations.of(np.dtype(f"f{plan.type.bytes}"))
        self._free = k.parameters["scratch"] if plan.scratch_bytes else None

    def room(self, count: int) -> LaneMatrices:
        """For so many elements of each matrix."""
        if self._free is None:
            return LaneMatrices.new(self.k, self.type, 1, count)
        place, self._free = self._free, self.k.gep(self._free, count, self.plan.type.bytes)
        return LaneMatrices(place, self.type, 1, count)

    # -- elements

    def constant(self, value: float) -> Value:
        return self.k.const(self.type, value)

    def place(self, row: Value, column: Value, rows_apart: int, columns_apart: int = 1) -> Value:
        return self.k.add(self.k.mul(row, rows_apart), self.k.mul(column, columns_apart))

    def load(self, matrices: LaneMatrices, place: Value) -> Value:
        """What is stored again elsewhere, too."""
        element = matrices.load(self.k, place)
        assert isinstance(element, Value)
        return self.k.apart(element)

    def any_lane(self, mask: Value) -> Value:
        return self.k.any_lane(mask, bits=self.type.bits)

    def sum(self, count: int, term: Callable[[Value], Value]) -> Value:
        """Of terms that are told by their numbers, from the first one on."""
        with self.k.loop(0, count, carry=[self.constant(0.0)]) as loop:
            loop.next = [self.k.add(loop.values[0], term(loop.index))]
        return loop.results[0]

    # -- before, meanwhile, and behind

    def scale(self, largest: Value) -> Value:
        """See `hlo.rotations.scales`."""
        k = self.k
        bits = self.type.integer()
        infinity = int(np.array(np.inf, f"f{self.plan.type.bytes}").view(f"u{self.plan.type.bytes}"))
        power = k.bitcast(k.and_(k.bitcast(largest, bits), k.const(bits, infinity)), self.type)
        return k.div(self.constant(1.0), k.greater(power, self.constant(self.rotations.least)))

    def sweep(self, columns: int, turn: Callable[[Value, Value], Value]) -> None:
        """Calls `turn` for all pairs of columns, until there is no lane in which it turns any."""
        k = self.k

        def goes_on(state: list[Value]) -> Value:
            sweep, turned = state
            return k.and_(turned, k.compare("lt", sweep, MOST_SWEEPS))

        def sweep(state: list[Value]) -> list[Value]:
            with k.loop(0, columns, carry=[k.const(I1, 0)]) as ones:
                if self.plan.takes_long:
                    look(k)
                with k.loop(k.add(ones.index, 1), columns, carry=ones.values) as others:
                    others.next = [k.or_(others.values[0], turn(ones.index, others.index))]
                ones.next = others.results
            return [k.add(state[0], 1), ones.results[0]]

        k.while_loop(goes_on, sweep, [k.const(I64, 0), k.const(I1, 1)])

    def rotation(self, first: Value, second: Value, between: Value) -> tuple[Value, Value, Value]:
        """What makes [[first, between], [between, second]] diagonal: the tangent and the sine of an angle, and what the
        sine is multiplied by for the rest of the cosine."""
        k, one = self.k, self.constant(1.0)
        ratio = k.div(k.sub(second, first), k.add(between, between))
        size = k.fabs(ratio)
        squared = k.lesser(size, self.constant(self.rotations.most_squared))
        root = k.greater(k.sqrt(k.add(k.mul(squared, squared), one)), size)
        tangent = k.div(k.copysign(one, ratio), k.add(size, root))
        cosine = k.div(one, k.sqrt(k.add(k.mul(tangent, tangent), one)))
        sine = k.mul(tangent, cosine)
        return tangent, sine, k.div(sine, k.add(one, cosine))

    def turn_pair(
        self, matrices: LaneMatrices, places: Sequence[Value], sine: Value, rest: Value, turns: Value
    ) -> list[Value]:
        """Turns a pair of elements where they lie, in those lanes; what they are then."""
        k = self.k
        x, y = old = [self.load(matrices, place) for place in places]
        new = (
            k.sub(x, k.mul(sine, k.add(y, k.mul(rest, x)))),
            k.add(y, k.mul(sine, k.sub(x, k.mul(rest, y)))),
        )
        chosen = [k.select(turns, *pair) for pair in zip(new, old, strict=True)]
        for place, element in zip(places, chosen, strict=True):
            matrices.store(k, place, element)
        return chosen

    def sort(
        self,
        values: LaneMatrices,
        comes_first: str,
        others: Sequence[tuple[LaneMatrices, int, Callable[[Value, Value], Value]]],
    ) -> None:
        """Neighbours trade places until values are in order, with their columns in others: how many rows these have,
        and where which element is."""
        k, count = self.k, values.count
        with k.loop(1, count) as rounds, k.loop(0, k.sub(count, rounds.index)) as columns:
            one, other = columns.index, k.add(columns.index, 1)
            trades = k.compare(comes_first, self.load(values, other), self.load(values, one))
            with k.if_(self.any_lane(trades)):
                self._trade(values, one, other, trades)
                for matrices, rows, place in others:
                    with k.loop(0, rows) as each:
                        self._trade(matrices, place(each.index, one), place(each.index, other), trades)

    def _trade(self, matrices: LaneMatrices, one: Value, other: Value, trades: Value) -> None:
        k = self.k
        first, second = self.load(matrices, one), self.load(matrices, other)
        matrices.store(k, one, k.select(trades, second, first))
        matrices.store(k, other, k.select(trades, first, second))

    def finish(
        self, found: LaneMatrices, fault: Value, output: Array, first: Value, scale: Value | None = None
    ) -> None:
        """Writes what was found, scaled back, or NaN where there is a fault."""
        k = self.k
        with k.loop(0, found.count) as places:
            element = self.load(found, places.index)
            element = element if scale is None else k.div(element, scale)
            found.store(k, places.index, k.add(element, fault))
        found.write(k, matrix_at(k, output, first, found.count))
