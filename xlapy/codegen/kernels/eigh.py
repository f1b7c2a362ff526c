"""Kernels of eigh: eigenvalues of small symmetric matrices by Jacobi's rotations, one matrix in each lane.

As `hlo/rotations.py` has it, to the bit. In lanes whose matrix needs no rotation everything stays as it is, so that
nothing depends on what the other lanes hold. Matrices that are large, or too few to fill a vector, come one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I1, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.lane_matrices import LaneMatrices
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.registers import register_type
from xlapy.codegen.stopping import LONG, look
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.rotations import MOST_ROWS, MOST_SWEEPS, Rotations
from xlapy_runtime.records import Record

_USUAL_SWEEPS = 6


class EighPlan(Record):
    """How the eigenvalues of matrices of `rows` rows are found."""

    type: IRType
    rows: int
    batch: int
    lanes: int  # of one vector: as many matrices
    lower: bool
    bytes_per_matrix: int

    @property
    def size(self) -> int:
        """Elements of a matrix."""
        return self.rows * self.rows

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
        """What a task needs for one matrix and its vectors, if that is not in the stack frame."""
        return 2 * self.size * self.type.bytes if self.rows > MOST_ROWS else 0

    @property
    def takes_long(self) -> bool:
        """One matrix does."""
        return self.size * self.rows >= LONG


def plan_eigh(instruction: Instruction, target: Target) -> EighPlan:
    a = instruction.operands[0].shape
    rows, batch = a.dims[-1], math.prod(a.dims[:-2])
    type = register_type(a.type)
    lanes = target.lanes(type.bits)
    if rows > MOST_ROWS or batch < lanes:
        lanes = 1
    work = 6 * _USUAL_SWEEPS * rows**3 * type.bytes // lanes
    bytes_per_matrix = work + (a.bytes + instruction.shape.bytes) // max(batch, 1)
    return EighPlan(type, rows, batch, lanes, instruction.attributes["lower"], bytes_per_matrix)


def emit_eigh(k: KernelBuilder, plan: EighPlan, a: Array, outputs: Sequence[Array], begin: Value, end: Value) -> None:
    """Writes vectors and values of units [begin, end)."""
    if plan.fills_lanes:
        with k.loop(begin, end) as loop:
            _Lanes(k, plan, plan.lanes).run(k.mul(loop.index, plan.lanes), a, outputs)
    else:
        strip(
            k,
            begin,
            end,
            plan.lanes,
            lambda ix, first: _Lanes(k, plan, ix.lanes).run(first, a, outputs),
            overlapping=True,
        )


class _Lanes:
    """As many matrices as there are lanes, and the vectors that have been found of them."""

    def __init__(self, k: KernelBuilder, plan: EighPlan, lanes: int) -> None:
        self._k, self._plan, self._rows = k, plan, plan.rows
        self._type = plan.type.with_lanes(lanes)
        self._rotations = Rotations.of(np.dtype(f"f{plan.type.bytes}"))
        self._matrices, self._vectors = self._rooms()

    def _rooms(self) -> tuple[LaneMatrices, LaneMatrices]:
        k, plan = self._k, self._plan
        if not plan.scratch_bytes:
            first, second = (LaneMatrices.new(k, self._type, 1, plan.size) for _ in range(2))
            return first, second
        room = k.parameters["scratch"]
        first = LaneMatrices(room, self._type, 1, plan.size)
        return first, LaneMatrices(k.gep(room, plan.size, plan.type.bytes), self._type, 1, plan.size)

    def run(self, first: Value, a: Array, outputs: Sequence[Array]) -> None:
        """Reads matrices from number `first` on, and writes what belongs to them."""
        k, size = self._k, self._plan.size
        self._matrices.read(k, self._number(a, first, size))
        largest, fault = self._mirror()
        scale = self._scale(largest)
        self._begin(scale)
        self._sweep_all()
        values = LaneMatrices.new(k, self._type, 1, self._rows) if not self._plan.scratch_bytes else self._matrices
        with k.loop(0, self._rows) as rows:
            values.store(k, rows.index, self._element(rows.index, rows.index))
        self._sort(values)
        with k.loop(0, self._rows) as rows:
            value = k.div(self._load(values, rows.index), scale)
            values.store(k, rows.index, k.add(value, fault))
        with k.loop(0, size) as places:
            self._vectors.store(k, places.index, k.add(self._load(self._vectors, places.index), fault))
        self._vectors.write(k, self._number(outputs[0], first, size))
        found = LaneMatrices(values.room, self._type, 1, self._rows)
        found.write(k, self._number(outputs[1], first, self._rows))

    def _number(self, array: Array, number: Value, size: int) -> Value:
        """Where a matrix of an array begins, which has so many elements."""
        return self._k.gep(array.pointer, self._k.mul(number, size), array.shape.type.bytes)

    # -- elements

    def _place(self, row: Value, column: Value) -> Value:
        return self._k.add(self._k.mul(row, self._rows), column)

    def _load(self, matrices: LaneMatrices, place: Value) -> Value:
        """What is stored again elsewhere, too."""
        element = matrices.load(self._k, place)
        assert isinstance(element, Value)
        return self._k.apart(element)

    def _element(self, row: Value, column: Value) -> Value:
        return self._load(self._matrices, self._place(row, column))

    def _constant(self, value: float) -> Value:
        return self._k.const(self._type, value)

    # -- before and behind

    def _mirror(self) -> tuple[Value, Value]:
        """Copies the triangle that is given to the other one. The largest size of an element in it; and zero, or NaN
        where something is not finite."""
        k, zero = self._k, self._constant(0.0)
        with k.loop(0, self._rows, carry=[zero, zero]) as rows:
            with k.loop(0, k.add(rows.index, 1), carry=rows.values) as columns:
                largest, fault = columns.values
                places = self._place(rows.index, columns.index), self._place(columns.index, rows.index)
                given, other = places if self._plan.lower else reversed(places)
                element = self._load(self._matrices, given)
                self._matrices.store(k, other, element)
                columns.next = [k.greater(k.fabs(element), largest), k.add(fault, k.mul(element, zero))]
            rows.next = columns.results
        return rows.results[0], rows.results[1]

    def _scale(self, largest: Value) -> Value:
        k, rotations = self._k, self._rotations
        is_large = k.compare("gt", largest, self._constant(rotations.large))
        is_little = k.compare("lt", largest, self._constant(rotations.little))
        scale = k.select(is_little, self._constant(rotations.up), self._constant(1.0))
        return k.select(is_large, self._constant(rotations.down), scale)

    def _begin(self, scale: Value) -> None:
        """Scales the matrices. The vectors are those of a unit matrix."""
        k = self._k
        with k.loop(0, self._plan.size) as places:
            self._matrices.store(k, places.index, k.mul(self._load(self._matrices, places.index), scale))
            self._vectors.store(k, places.index, self._constant(0.0))
        with k.loop(0, self._rows) as rows:
            self._vectors.store(k, self._place(rows.index, rows.index), self._constant(1.0))

    def _sort(self, values: LaneMatrices) -> None:
        """Neighbours trade places, with their vectors, until values ascend."""
        k = self._k
        with k.loop(1, self._rows) as rounds, k.loop(0, k.sub(self._rows, rounds.index)) as columns:
            one, other = columns.index, k.add(columns.index, 1)
            first, second = self._load(values, one), self._load(values, other)
            trades = k.compare("lt", second, first)
            with k.if_(k.any_lane(trades, bits=self._type.bits)):
                self._trade(values, one, other, trades)
                with k.loop(0, self._rows) as rows:
                    places = self._place(rows.index, one), self._place(rows.index, other)
                    self._trade(self._vectors, *places, trades)

    def _trade(self, matrices: LaneMatrices, one: Value, other: Value, trades: Value) -> None:
        k = self._k
        first, second = self._load(matrices, one), self._load(matrices, other)
        matrices.store(k, one, k.select(trades, second, first))
        matrices.store(k, other, k.select(trades, first, second))

    # -- rotations

    def _sweep_all(self) -> None:
        k = self._k

        def goes_on(state: list[Value]) -> Value:
            sweep, turned = state
            return k.and_(turned, k.compare("lt", sweep, MOST_SWEEPS))

        def sweep(state: list[Value]) -> list[Value]:
            with k.loop(0, self._rows, carry=[k.const(I1, 0)]) as rows:
                if self._plan.takes_long:
                    look(k)
                with k.loop(k.add(rows.index, 1), self._rows, carry=rows.values) as others:
                    others.next = [k.or_(others.values[0], self._turn(rows.index, others.index))]
                rows.next = others.results
            return [k.add(state[0], 1), rows.results[0]]

        k.while_loop(goes_on, sweep, [k.const(I64, 0), k.const(I1, 1)])

    def _turn(self, p: Value, q: Value) -> Value:
        """Turns rows and columns `p` and `q` where these meet in what is not small; whether there is such a lane."""
        k = self._k
        first, second, between = self._element(p, p), self._element(q, q), self._element(p, q)
        larger = k.greater(k.fabs(first), k.fabs(second))
        turns = k.compare("gt", k.fabs(between), k.mul(self._constant(self._rotations.small), larger))
        is_any = k.any_lane(turns, bits=self._type.bits)
        with k.if_(is_any):
            one = self._constant(1.0)
            ratio = k.div(k.sub(second, first), k.add(between, between))
            root = k.sqrt(k.add(k.mul(ratio, ratio), one))
            tangent = k.div(k.copysign(one, ratio), k.add(k.fabs(ratio), root))
            cosine = k.div(one, k.sqrt(k.add(k.mul(tangent, tangent), one)))
            sine = k.mul(tangent, cosine)
            rest = k.div(sine, k.add(one, cosine))
            step = k.mul(tangent, between)
            with k.loop(0, self._rows) as rows:
                row = rows.index
                for matrices, mirrored in ((self._matrices, True), (self._vectors, False)):
                    places = self._place(row, p), self._place(row, q)
                    old = [self._load(matrices, place) for place in places]
                    new = (
                        k.sub(old[0], k.mul(sine, k.add(old[1], k.mul(rest, old[0])))),
                        k.add(old[1], k.mul(sine, k.sub(old[0], k.mul(rest, old[1])))),
                    )
                    chosen = [k.select(turns, *pair) for pair in zip(new, old, strict=True)]
                    across = (self._place(p, row), self._place(q, row)) if mirrored else ()
                    for place, element in zip((*places, *across), chosen * 2, strict=False):
                        matrices.store(k, place, element)
            corner = k.select(turns, self._constant(0.0), between)
            self._matrices.store(k, self._place(p, p), k.select(turns, k.sub(first, step), first))
            self._matrices.store(k, self._place(q, q), k.select(turns, k.add(second, step), second))
            self._matrices.store(k, self._place(p, q), corner)
            self._matrices.store(k, self._place(q, p), corner)
        return is_any
