"""Kernels of eigh: eigenvalues and vectors of symmetric matrices."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.factors import for_lanes, matrix_at
from xlapy.codegen.kernels.rotations import RotatedLanes, RotationPlan


def emit_eigh(
    k: KernelBuilder, plan: RotationPlan, a: Array, outputs: Sequence[Array], begin: Value, end: Value, *, lower: bool
) -> None:
    """Writes vectors and values of units [begin, end)."""

    def run(lanes: int, first: Value) -> None:
        _Lanes(k, plan, lanes).run(first, a, outputs, lower)

    for_lanes(k, plan.lanes, begin, end, run, are_full=plan.fills_lanes, overlapping=True)


class _Lanes(RotatedLanes):
    """Matrices, and the vectors that have been found of them."""

    def __init__(self, k: KernelBuilder, plan: RotationPlan, lanes: int) -> None:
        super().__init__(k, plan, lanes)
        self._rows = plan.rows
        self._matrices, self._vectors = (self.room(self._rows * self._rows) for _ in range(2))

    def run(self, first: Value, a: Array, outputs: Sequence[Array], lower: bool) -> None:
        k, rows = self.k, self._rows
        self._matrices.read(k, matrix_at(k, a, first, self._matrices.count))
        largest, fault = self._mirror(lower)
        scale = self.scale(largest)
        self._begin(scale)
        self.sweep(rows, self._turn)
        values = self.room(rows)
        with k.loop(0, rows) as each:
            values.store(k, each.index, self._element(each.index, each.index))
        self.sort(values, "lt", [(self._vectors, rows, self._place)])
        self.finish(self._vectors, fault, outputs[0], first)
        self.finish(values, fault, outputs[1], first, scale)

    def _place(self, row: Value, column: Value) -> Value:
        return self.place(row, column, self._rows)

    def _element(self, row: Value, column: Value) -> Value:
        return self.load(self._matrices, self._place(row, column))

    def _mirror(self, lower: bool) -> tuple[Value, Value]:
        """Copies the triangle that is given to the other one. The largest size of an element in it; and zero, or NaN
        where something is not finite."""
        k, zero = self.k, self.constant(0.0)
        with k.loop(0, self._rows, carry=[zero, zero]) as rows:
            with k.loop(0, k.add(rows.index, 1), carry=rows.values) as columns:
                largest, fault = columns.values
                places = self._place(rows.index, columns.index), self._place(columns.index, rows.index)
                given, other = places if lower else reversed(places)
                element = self.load(self._matrices, given)
                self._matrices.store(k, other, element)
                columns.next = [k.greater(k.fabs(element), largest), k.add(fault, k.mul(element, zero))]
            rows.next = columns.results
        return rows.results[0], rows.results[1]

    def _begin(self, scale: Value) -> None:
        """Scales the matrices. The vectors are those of a unit matrix."""
        k = self.k
        with k.loop(0, self._matrices.count) as places:
            self._matrices.store(k, places.index, k.mul(self.load(self._matrices, places.index), scale))
            self._vectors.store(k, places.index, self.constant(0.0))
        with k.loop(0, self._rows) as rows:
            self._vectors.store(k, self._place(rows.index, rows.index), self.constant(1.0))

    def _turn(self, p: Value, q: Value) -> Value:
        """Turns rows and columns `p` and `q` where these meet in what is not small; whether there is such a lane."""
        k = self.k
        first, second, between = self._element(p, p), self._element(q, q), self._element(p, q)
        larger = k.greater(k.fabs(first), k.fabs(second))
        turns = k.compare("gt", k.fabs(between), k.mul(self.constant(self.rotations.small), larger))
        is_any = self.any_lane(turns)
        with k.if_(is_any):
            tangent, sine, rest = self.rotation(first, second, between)
            step = k.mul(tangent, between)
            with k.loop(0, self._rows) as rows:
                row = rows.index
                places = self._place(row, p), self._place(row, q)
                turned = self.turn_pair(self._matrices, places, sine, rest, turns)
                for column, element in zip((p, q), turned, strict=True):
                    self._matrices.store(k, self._place(column, row), element)
                self.turn_pair(self._vectors, places, sine, rest, turns)
            corner = k.select(turns, self.constant(0.0), between)
            for row, column, element in (
                (p, p, k.select(turns, k.sub(first, step), first)),
                (q, q, k.select(turns, k.add(second, step), second)),
                (p, q, corner),
                (q, p, corner),
            ):
                self._matrices.store(k, self._place(row, column), element)
        return is_any
