"""Kernels of lu: factors of matrices with partial pivoting, where they are to lie.

Many matrices of a few rows are factored side by side, one in each lane: rows are exchanged by choosing in each lane.
All others are factored one after the other, row by row in vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.lane_matrices import LaneMatrices
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.kernels.triangular import Matrix, minus_product
from xlapy.codegen.math.complex import Complex
from xlapy.codegen.math.complex import divide as complex_quotient
from xlapy.codegen.registers import Element, Pair, from_parts, parts_of, register_type
from xlapy.codegen.stopping import LONG, look
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

LONG_WORK = 16 * LONG
"""Products and sums in one matrix that may take milliseconds."""

MOST_ACROSS = 16
"""Rows, and columns, of matrices that lie in the lanes of vectors."""


class LuPlan(Record):
    """How an lu of matrices of `rows` rows runs."""

    type: IRType
    parts: int
    rows: int
    columns: int
    batch: int
    lanes: int  # of one vector
    across: bool  # one matrix in each lane
    units: int  # with one matrix in each lane, vectors of them if they are all full; else matrices
    bytes_per_unit: int

    @property
    def steps(self) -> int:
        return min(self.rows, self.columns)

    @property
    def takes_long(self) -> bool:
        """One matrix does."""
        return self.rows * self.columns * self.steps >= LONG_WORK

    @property
    def fills_lanes(self) -> bool:
        return not self.batch % self.lanes

    @property
    def least_units(self) -> int:
        """Of a task: a vector, where units are the matrices that lanes take."""
        return self.lanes if self.across and not self.fills_lanes else 1


def plan_lu(instruction: Instruction, target: Target) -> LuPlan:
    a = instruction.operands[0].shape
    *outer, rows, columns = a.dims
    batch = math.prod(outer)
    type = register_type(a.type)
    lanes = target.lanes(type.bits)
    across = max(rows, columns) <= MOST_ACROSS and batch >= lanes
    if not across:
        lanes = min(lanes, 1 << max(columns, 1).bit_length() - 1)
    units = batch // lanes if across and not batch % lanes else batch
    work = a.size * min(rows, columns)
    bytes_per_unit = (a.bytes + instruction.shape.bytes + work * type.bytes // lanes) // max(units, 1)
    parts = 2 if a.type.is_complex else 1
    return LuPlan(type, parts, rows, columns, batch, lanes, across, units, bytes_per_unit)


def emit_lu(
    k: KernelBuilder,
    plan: LuPlan,
    a: Array,
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """Writes factors, pivots and permutations of matrices [begin, end)."""
    if not plan.across:
        with k.loop(begin, end) as loop:
            _factor_matrix(k, plan, a, outputs, loop.index, in_place)
    elif plan.fills_lanes:
        with k.loop(begin, end) as loop:
            _factor_lanes(k, plan, plan.lanes, k.mul(loop.index, plan.lanes), a, outputs)
    else:
        strip(
            k,
            begin,
            end,
            plan.lanes,
            lambda ix, first: _factor_lanes(k, plan, ix.lanes, first, a, outputs),
            overlapping=not in_place,
        )


# -- one matrix in each lane -------------------------------------------------------------------------------------------


def _factor_lanes(k: KernelBuilder, plan: LuPlan, lanes: int, first: Value, a: Array, outputs: Sequence[Array]) -> None:
    size, number = plan.rows * plan.columns, I32.with_lanes(lanes)
    matrices = LaneMatrices.new(k, plan.type.with_lanes(lanes), plan.parts, size)
    pivots, order = (LaneMatrices.new(k, number, 1, count) for count in (plan.steps, plan.rows))
    matrices.read(k, _place(k, a, first, size))
    with k.loop(0, plan.rows) as rows:
        order.store(k, rows.index, _spread(k, rows.index, number))
    with k.loop(0, plan.steps) as steps:
        step = steps.index
        pivot = _largest_rows(k, plan, matrices, step, number)
        pivots.store(k, step, pivot)
        _exchange_in_column(k, order, plan.rows, step, pivot, lambda row: row)
        with k.loop(0, plan.columns) as columns:
            place = partial(_place_in_matrix, k, plan, column=columns.index)
            _exchange_in_column(k, matrices, plan.rows, step, pivot, place)
        _eliminate(k, plan, matrices, step)
    for output, numbers in zip(outputs, (matrices, pivots, order), strict=True):
        numbers.write(k, _place(k, output, first, numbers.count))


def _place(k: KernelBuilder, array: Array, number: Value, size: int) -> Value:
    """Where a matrix of an array begins, which has so many elements."""
    return k.gep(array.pointer, k.mul(number, size), array.shape.type.bytes)


def _place_in_matrix(k: KernelBuilder, plan: LuPlan, row: Value, column: Value) -> Value:
    return k.add(k.mul(row, plan.columns), column)


def _largest_rows(k: KernelBuilder, plan: LuPlan, matrices: LaneMatrices, step: Value, number: IRType) -> Value:
    """The row of the pivot in each lane."""
    place = partial(_place_in_matrix, k, plan, column=step)
    first = _size(k, matrices.load(k, place(step)))
    with k.loop(k.add(step, 1), plan.rows, carry=[first, _spread(k, step, number)]) as rows:
        best, pivot = rows.values
        size = _size(k, matrices.load(k, place(rows.index)))
        is_larger = k.compare("gt", size, best)
        rows.next = [k.select(is_larger, size, best), k.select(is_larger, _spread(k, rows.index, number), pivot)]
    return rows.results[1]


def _eliminate(k: KernelBuilder, plan: LuPlan, matrices: LaneMatrices, step: Value) -> None:
    """Takes the row of the pivot from those below it."""
    place = partial(_place_in_matrix, k, plan)
    divisor, behind = _divisor(k, matrices.load(k, place(step, step))), k.add(step, 1)
    with k.loop(behind, plan.rows) as rows:
        factor = _quotient(k, matrices.load(k, place(rows.index, step)), divisor)
        matrices.store(k, place(rows.index, step), factor)
        with k.loop(behind, plan.columns) as columns:
            own, above = (place(row, columns.index) for row in (rows.index, step))
            left = minus_product(k, matrices.load(k, own), factor, matrices.load(k, above))
            matrices.store(k, own, left)


def _exchange_in_column(
    k: KernelBuilder,
    matrices: LaneMatrices,
    rows: int,
    step: Value,
    pivot: Value,
    place: Callable[[Value], Value],
) -> None:
    """Exchanges the element of a column in row `step` with the one in row `pivot`, of each lane."""
    former = matrices.load(k, place(step))
    with k.loop(k.add(step, 1), rows, carry=parts_of(former)) as below:
        is_pivot = k.compare("eq", pivot, _spread(k, below.index, pivot.type))
        element = _apart(k, matrices.load(k, place(below.index)))
        below.next = parts_of(_select(k, is_pivot, element, from_parts(below.values)))
        matrices.store(k, place(below.index), _select(k, is_pivot, former, element))
    matrices.store(k, place(step), from_parts(below.results))


# -- one matrix after the other ----------------------------------------------------------------------------------------


def _factor_matrix(
    k: KernelBuilder, plan: LuPlan, a: Array, outputs: Sequence[Array], number: Value, in_place: bool
) -> None:
    size = plan.rows * plan.columns
    source = _place(k, a, number, size)
    target, pivots, order = (
        _place(k, output, number, count) for output, count in zip(outputs, (size, plan.steps, plan.rows), strict=True)
    )
    if not in_place:
        k.memcpy(target, source, size * a.shape.type.bytes)
    matrix = Matrix(target, plan.type, plan.parts, k.const(I64, plan.columns), k.const(I64, 1))
    with k.loop(0, plan.rows) as rows:
        k.store(k.gep(order, rows.index, I32.bytes), k.trunc(rows.index, I32))
    with k.loop(0, plan.steps) as steps:
        look(k)
        step = steps.index
        pivot = _largest_row(k, plan, matrix, step)
        k.store(k.gep(pivots, step, I32.bytes), k.trunc(pivot, I32))
        with k.if_(k.compare("ne", pivot, step)):
            places = [k.gep(order, row, I32.bytes) for row in (step, pivot)]
            numbers = [k.load(place, I32) for place in places]
            for place, each in zip(places, reversed(numbers), strict=True):
                k.store(place, each)
            _exchange_rows(k, plan, matrix, step, pivot)
        _eliminate_row(k, plan, matrix, step)


def _largest_row(k: KernelBuilder, plan: LuPlan, matrix: Matrix, step: Value) -> Value:
    first = _size(k, matrix.load(k, step, step))
    with k.loop(k.add(step, 1), k.const(I64, plan.rows), carry=[first, step]) as rows:
        best, pivot = rows.values
        size = _size(k, matrix.load(k, rows.index, step))
        is_larger = k.compare("gt", size, best)
        rows.next = [k.select(is_larger, size, best), k.select(is_larger, rows.index, pivot)]
    return rows.results[1]


def _exchange_rows(k: KernelBuilder, plan: LuPlan, matrix: Matrix, one: Value, other: Value) -> None:
    def exchange(column: Value, inside: Value | None) -> None:
        rows = one, other
        old = [_apart(k, matrix.load_row(k, row, column, plan.lanes)) for row in rows]
        for row, own, element in zip(rows, old, reversed(old), strict=True):
            matrix.store_row(k, row, column, _chosen(k, inside, element, own))

    _in_vectors(k, plan, k.const(I64, 0), exchange)


def _eliminate_row(k: KernelBuilder, plan: LuPlan, matrix: Matrix, step: Value) -> None:
    divisor = _divisor(k, matrix.load(k, step, step))
    behind = k.add(step, 1)
    with k.loop(behind, k.const(I64, plan.rows)) as rows:
        row = rows.index
        factor = _quotient(k, matrix.load(k, row, step), divisor)
        matrix.store(k, row, step, factor)
        factors = from_parts([k.splat(part, plan.lanes) for part in parts_of(factor)])

        def eliminate(column: Value, inside: Value | None, row: Value = row, factors: Element = factors) -> None:
            old = _apart(k, matrix.load_row(k, row, column, plan.lanes))
            left = minus_product(k, old, factors, matrix.load_row(k, step, column, plan.lanes))
            matrix.store_row(k, row, column, _chosen(k, inside, left, old))

        _in_vectors(k, plan, behind, eliminate)


def _in_vectors(k: KernelBuilder, plan: LuPlan, first: Value, body: Callable[[Value, Value | None], None]) -> None:
    """Calls `body` for vectors of the columns from `first` on: where each begins, and which of its lanes are meant, if
    not all. That one is the vector on the left, which may begin before `first`, and be as long as a row is."""
    columns = k.const(I64, plan.columns)
    count = k.sub(columns, first)
    rest = k.urem(count, plan.lanes)
    whole = k.add(first, rest)
    with k.loop(whole, columns, plan.lanes) as vectors:
        body(vectors.index, None)
    with k.if_(k.compare("ne", rest, 0)):
        number = I32.with_lanes(plan.lanes)
        begin = k.smax(k.sub(whole, plan.lanes), 0)
        places = k.add(k.lane_numbers(number), _spread(k, begin, number))
        is_behind = k.compare("ge", places, _spread(k, first, number))
        body(begin, k.and_(is_behind, k.compare("lt", places, _spread(k, whole, number))))


def _chosen(k: KernelBuilder, inside: Value | None, element: Element, former: Element) -> Element:
    return element if inside is None else _select(k, inside, element, former)


def _spread(k: KernelBuilder, value: Value, type: IRType) -> Value:
    narrowed = value if type.bits == value.type.bits else k.trunc(value, type.element)
    return k.splat(narrowed, type.lanes)


# -- elements ----------------------------------------------------------------------------------------------------------


def _size(k: KernelBuilder, element: Element) -> Value:
    """What pivots are compared by: of complex numbers not the absolute value, as in LAPACK."""
    sizes = [k.fabs(part) for part in parts_of(element)]
    return sizes[0] if len(sizes) == 1 else k.add(*sizes)


def _divisor(k: KernelBuilder, pivot: Element) -> Element:
    """The pivot, or 1 if it is zero: then all below it is zero, too."""
    first, *others = parts_of(pivot)
    is_zero = k.compare("eq", first, k.const(first.type, 0.0))
    for part in others:
        is_zero = k.and_(is_zero, k.compare("eq", part, k.const(part.type, 0.0)))
    return from_parts([k.select(is_zero, k.const(first.type, 1.0), first), *others])


def _quotient(k: KernelBuilder, a: Element, b: Element) -> Element:
    if isinstance(a, Pair) and isinstance(b, Pair):
        result = complex_quotient(k, Complex(a.re, a.im), Complex(b.re, b.im))
        return Pair(result.re, result.im)
    assert isinstance(a, Value) and isinstance(b, Value)
    return k.div(a, b)


def _apart(k: KernelBuilder, element: Element) -> Element:
    """What may be stored again where it was loaded."""
    return from_parts([k.apart(part) for part in parts_of(element)])


def _select(k: KernelBuilder, condition: Value, a: Element, b: Element) -> Element:
    return from_parts([k.select(condition, one, other) for one, other in zip(parts_of(a), parts_of(b), strict=True)])
