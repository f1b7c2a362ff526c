"""Kernels of svd: singular values and vectors.

The longer side of a matrix is that of its columns here. They are turned until they are orthogonal: their lengths are
the values then, and they themselves the vectors of one side. What turned them has those of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.factors import for_lanes, matrix_at
from xlapy.codegen.kernels.rotations import RotatedLanes, RotationPlan


def emit_svd(
    k: KernelBuilder,
    plan: RotationPlan,
    a: Array,
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    full_matrices: bool,
) -> None:
    """Writes u, values and vt of units [begin, end)."""

    def run(lanes: int, first: Value) -> None:
        _Lanes(k, plan, lanes, full_matrices).run(first, a, outputs)

    for_lanes(k, plan.lanes, begin, end, run, are_full=plan.fills_lanes, overlapping=True)


class _Lanes(RotatedLanes):
    """Matrices in `left`, by columns or by rows as the result will have them; `right` begins as a unit matrix."""

    def __init__(self, k: KernelBuilder, plan: RotationPlan, lanes: int, full_matrices: bool) -> None:
        super().__init__(k, plan, lanes)
        self._longer, self._shorter = plan.longer, plan.shorter
        self._is_tall = plan.rows >= plan.columns
        self._vectors = plan.longer if full_matrices else plan.shorter
        self._given = self.room(plan.rows * plan.columns)
        self._left = self.room(plan.longer * self._vectors)
        self._right = self.room(plan.shorter * plan.shorter)
        self._values, self._spare = self.room(plan.shorter), self.room(plan.longer)

    def run(self, first: Value, a: Array, outputs: Sequence[Array]) -> None:
        k = self.k
        self._given.read(k, matrix_at(k, a, first, self._given.count))
        scale, fault = self._begin()
        self.sweep(self._shorter, self._turn)
        with k.loop(0, self._shorter) as columns:
            self._values.store(k, columns.index, k.sqrt(self._inner(columns.index, columns.index)))
        columns_of = [(self._left, self._longer, self._in_left), (self._right, self._shorter, self._in_right)]
        self.sort(self._values, "gt", columns_of)
        with k.loop(0, self._vectors) as columns:
            self._make_unit(columns.index)
        u, vt = (self._left, self._right) if self._is_tall else (self._right, self._left)
        self.finish(u, fault, outputs[0], first)
        self.finish(self._values, fault, outputs[1], first, scale)
        self.finish(vt, fault, outputs[2], first)

    def _in_left(self, row: Value, column: Value) -> Value:
        return self.place(row, column, *((self._vectors, 1) if self._is_tall else (1, self._longer)))

    def _in_right(self, row: Value, column: Value) -> Value:
        return self.place(row, column, *((1, self._shorter) if self._is_tall else (self._shorter, 1)))

    def _left_element(self, row: Value, column: Value) -> Value:
        return self.load(self._left, self._in_left(row, column))

    def _begin(self) -> tuple[Value, Value]:
        """Fills both sides. How the left one is scaled; and zero, or NaN where something is not finite."""
        k, zero = self.k, self.constant(0.0)
        with k.loop(0, self._given.count, carry=[zero, zero]) as places:
            element, (largest, fault) = self.load(self._given, places.index), places.values
            places.next = [k.greater(k.fabs(element), largest), k.add(fault, k.mul(element, zero))]
        largest, fault = places.results
        scale = self.scale(largest)
        apart = (self._shorter, 1) if self._is_tall else (1, self._longer)
        with k.loop(0, self._longer) as rows, k.loop(0, self._shorter) as columns:
            element = self.load(self._given, self.place(rows.index, columns.index, *apart))
            self._left.store(k, self._in_left(rows.index, columns.index), k.mul(element, scale))
        with k.loop(0, self._right.count) as places:
            self._right.store(k, places.index, zero)
        with k.loop(0, self._shorter) as columns:
            self._right.store(k, self._in_right(columns.index, columns.index), self.constant(1.0))
        return scale, fault

    def _inner(self, p: Value, q: Value) -> Value:
        return self.sum(self._longer, lambda row: self.k.mul(self._left_element(row, p), self._left_element(row, q)))

    def _turn(self, p: Value, q: Value) -> Value:
        """Turns columns `p` and `q` where they are neither lost nor orthogonal; whether there is such a lane."""
        k = self.k
        first, second, between = self._inner(p, p), self._inner(q, q), self._inner(p, q)
        share = self.constant(self.rotations.small_cosine * self._longer)
        is_oblique = k.compare("gt", k.fabs(between), k.mul(share, k.mul(k.sqrt(first), k.sqrt(second))))
        is_found = k.compare("gt", k.lesser(first, second), self.constant(self.rotations.lost**2))
        turns = k.and_(is_oblique, is_found)
        is_any = self.any_lane(turns)
        with k.if_(is_any):
            _, sine, rest = self.rotation(first, second, between)
            for matrices, count, place in (
                (self._left, self._longer, self._in_left),
                (self._right, self._shorter, self._in_right),
            ):
                with k.loop(0, count) as rows:
                    places = place(rows.index, p), place(rows.index, q)
                    self.turn_pair(matrices, places, sine, rest, turns)
        return is_any

    def _make_unit(self, column: Value) -> None:
        """Gives a column the length 1. Where it is lost, or there was none, one that is orthogonal to those before it
        takes its place."""
        k = self.k
        was_none = k.compare("ge", column, self._shorter)
        known = k.smin(column, max(self._shorter - 1, 0))
        norm = self.load(self._values, known)
        lost = k.compare("lt", norm, self.constant(self.rotations.lost))
        if self._vectors > self._shorter:
            lost = k.or_(lost, k.splat(was_none, self.type.lanes))
        with k.if_(self.any_lane(lost)):
            self._complete(column)
        with k.loop(0, self._longer) as rows:
            found = k.div(self._left_element(rows.index, column), norm)
            spare = self.load(self._spare, rows.index)
            self._left.store(k, self._in_left(rows.index, column), k.select(lost, spare, found))

    def _complete(self, column: Value) -> None:
        """Puts into the spare column what is left of the unit vector that the columns before say least about."""
        k = self.k
        with k.loop(0, self._longer) as rows:
            self._spare.store(k, rows.index, self._weight(rows.index, column))
        first = self.load(self._spare, k.const(I64, 0))
        zero, one = self.constant(0.0), self.constant(1.0)
        with k.loop(1, self._longer, carry=[first, zero]) as rows:
            least, chosen = rows.values
            weight = self.load(self._spare, rows.index)
            is_less = k.compare("lt", weight, least)
            number = k.splat(k.sitofp(rows.index, self.type.element), self.type.lanes)
            rows.next = [k.select(is_less, weight, least), k.select(is_less, number, chosen)]
        chosen = rows.results[1]
        with k.loop(0, self._longer) as rows:
            number = k.splat(k.sitofp(rows.index, self.type.element), self.type.lanes)
            self._spare.store(k, rows.index, k.select(k.compare("eq", number, chosen), one, zero))
        with k.loop(0, 2), k.loop(0, column) as columns:
            self._take_away(columns.index)
        norm = k.sqrt(self.sum(self._longer, lambda row: k.mul(*[self.load(self._spare, row)] * 2)))
        with k.loop(0, self._longer) as rows:
            self._spare.store(k, rows.index, k.div(self.load(self._spare, rows.index), norm))

    def _weight(self, row: Value, columns: Value) -> Value:
        """How much of a unit vector the columns before have."""
        k = self.k
        with k.loop(0, columns, carry=[self.constant(0.0)]) as loop:
            element = self._left_element(row, loop.index)
            loop.next = [k.add(loop.values[0], k.mul(element, element))]
        return loop.results[0]

    def _take_away(self, column: Value) -> None:
        k = self.k
        share = self.sum(self._longer, lambda row: k.mul(self._left_element(row, column), self.load(self._spare, row)))
        with k.loop(0, self._longer) as rows:
            rest = k.sub(self.load(self._spare, rows.index), k.mul(share, self._left_element(rows.index, column)))
            self._spare.store(k, rows.index, rest)
