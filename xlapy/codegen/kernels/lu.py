"""Kernels of lu: factors of matrices with partial pivoting, where they are to lie.

Many matrices of a few rows are factored side by side, one in each lane: rows are exchanged by choosing in each lane.
All others are factored one after the other, row by row in vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.factors import (
    Extents,
    FactorPlan,
    apart,
    chosen,
    for_matrices,
    in_vectors,
    matrix_at,
    place_in_matrix,
    quotient,
    select,
    spread,
)
from xlapy.codegen.kernels.lane_matrices import LaneMatrices
from xlapy.codegen.kernels.triangular import Matrix, minus_product
from xlapy.codegen.registers import Element, from_parts, parts_of
from xlapy.codegen.stopping import look


def emit_lu(
    k: KernelBuilder,
    plan: FactorPlan,
    operands: Sequence[Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    numbers: Sequence[Value],
    *,
    in_place: bool,
) -> None:
    """Writes factors, pivots and permutations of units [begin, end)."""
    (a,) = operands
    extents = Extents(*numbers)
    for_matrices(
        k,
        plan,
        begin,
        end,
        lambda lanes, first: _factor_lanes(k, plan, lanes, first, a, outputs),
        lambda number: _factor_matrix(k, plan, extents, a, outputs, number, in_place),
        in_place=in_place,
    )


# -- one matrix in each lane -------------------------------------------------------------------------------------------


def _factor_lanes(
    k: KernelBuilder, plan: FactorPlan, lanes: int, first: Value, a: Array, outputs: Sequence[Array]
) -> None:
    size, number = plan.rows * plan.columns, I32.with_lanes(lanes)
    matrices = LaneMatrices.new(k, plan.type.with_lanes(lanes), plan.parts, size)
    pivots, order = (LaneMatrices.new(k, number, 1, count) for count in (plan.steps, plan.rows))
    matrices.read(k, matrix_at(k, a, first, size))
    with k.loop(0, plan.rows) as rows:
        order.store(k, rows.index, spread(k, rows.index, number))
    with k.loop(0, plan.steps) as steps:
        step = steps.index
        pivot = _largest_rows(k, plan, matrices, step, number)
        pivots.store(k, step, pivot)
        _exchange_in_column(k, order, plan.rows, step, pivot, lambda row: row)
        with k.loop(0, plan.columns) as columns:
            place = partial(place_in_matrix, k, plan, column=columns.index)
            _exchange_in_column(k, matrices, plan.rows, step, pivot, place)
        _eliminate(k, plan, matrices, step)
    for output, numbers in zip(outputs, (matrices, pivots, order), strict=True):
        numbers.write(k, matrix_at(k, output, first, numbers.count))


def _largest_rows(k: KernelBuilder, plan: FactorPlan, matrices: LaneMatrices, step: Value, number: IRType) -> Value:
    """The row of the pivot in each lane."""
    place = partial(place_in_matrix, k, plan, column=step)
    first = _size(k, matrices.load(k, place(step)))
    with k.loop(k.add(step, 1), plan.rows, carry=[first, spread(k, step, number)]) as rows:
        best, pivot = rows.values
        size = _size(k, matrices.load(k, place(rows.index)))
        is_larger = k.compare("gt", size, best)
        rows.next = [k.select(is_larger, size, best), k.select(is_larger, spread(k, rows.index, number), pivot)]
    return rows.results[1]


def _eliminate(k: KernelBuilder, plan: FactorPlan, matrices: LaneMatrices, step: Value) -> None:
    """Takes the row of the pivot from those below it."""
    place = partial(place_in_matrix, k, plan)
    divisor, behind = _divisor(k, matrices.load(k, place(step, step))), k.add(step, 1)
    with k.loop(behind, plan.rows) as rows:
        factor = quotient(k, matrices.load(k, place(rows.index, step)), divisor)
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
        is_pivot = k.compare("eq", pivot, spread(k, below.index, pivot.type))
        element = apart(k, matrices.load(k, place(below.index)))
        below.next = parts_of(select(k, is_pivot, element, from_parts(below.values)))
        matrices.store(k, place(below.index), select(k, is_pivot, former, element))
    matrices.store(k, place(step), from_parts(below.results))


# -- one matrix after the other ----------------------------------------------------------------------------------------


def _factor_matrix(
    k: KernelBuilder,
    plan: FactorPlan,
    extents: Extents,
    a: Array,
    outputs: Sequence[Array],
    number: Value,
    in_place: bool,
) -> None:
    size, count_of_pivots = extents.size(k), extents.steps(k)
    source = matrix_at(k, a, number, size)
    target, pivots, order = (
        matrix_at(k, output, number, count)
        for output, count in zip(outputs, (size, count_of_pivots, extents.rows), strict=True)
    )
    if not in_place:
        k.memcpy(target, source, k.mul(size, a.shape.type.bytes))
    matrix = Matrix(target, plan.type, plan.parts, extents.columns, k.const(I64, 1))
    with k.loop(0, extents.rows) as rows:
        k.store(k.gep(order, rows.index, I32.bytes), k.trunc(rows.index, I32))
    with k.loop(0, count_of_pivots) as steps:
        look(k)
        step = steps.index
        pivot = _largest_row(k, extents, matrix, step)
        k.store(k.gep(pivots, step, I32.bytes), k.trunc(pivot, I32))
        with k.if_(k.compare("ne", pivot, step)):
            places = [k.gep(order, row, I32.bytes) for row in (step, pivot)]
            numbers = [k.load(place, I32) for place in places]
            for place, each in zip(places, reversed(numbers), strict=True):
                k.store(place, each)
            _exchange_rows(k, plan, extents, matrix, step, pivot)
        _eliminate_row(k, plan, extents, matrix, step)


def _largest_row(k: KernelBuilder, extents: Extents, matrix: Matrix, step: Value) -> Value:
    first = _size(k, matrix.load(k, step, step))
    with k.loop(k.add(step, 1), extents.rows, carry=[first, step]) as rows:
        best, pivot = rows.values
        size = _size(k, matrix.load(k, rows.index, step))
        is_larger = k.compare("gt", size, best)
        rows.next = [k.select(is_larger, size, best), k.select(is_larger, rows.index, pivot)]
    return rows.results[1]


def _exchange_rows(
    k: KernelBuilder, plan: FactorPlan, extents: Extents, matrix: Matrix, one: Value, other: Value
) -> None:
    def exchange(column: Value, inside: Value | None) -> None:
        rows = one, other
        old = [apart(k, matrix.load_row(k, row, column, plan.lanes)) for row in rows]
        for row, own, element in zip(rows, old, reversed(old), strict=True):
            matrix.store_row(k, row, column, chosen(k, inside, element, own))

    in_vectors(k, plan.lanes, extents.columns, k.const(I64, 0), exchange)


def _eliminate_row(k: KernelBuilder, plan: FactorPlan, extents: Extents, matrix: Matrix, step: Value) -> None:
    divisor = _divisor(k, matrix.load(k, step, step))
    behind = k.add(step, 1)
    with k.loop(behind, extents.rows) as rows:
        row = rows.index
        factor = quotient(k, matrix.load(k, row, step), divisor)
        matrix.store(k, row, step, factor)
        factors = from_parts([k.splat(part, plan.lanes) for part in parts_of(factor)])

        def eliminate(column: Value, inside: Value | None, row: Value = row, factors: Element = factors) -> None:
            old = apart(k, matrix.load_row(k, row, column, plan.lanes))
            left = minus_product(k, old, factors, matrix.load_row(k, step, column, plan.lanes))
            matrix.store_row(k, row, column, chosen(k, inside, left, old))

        in_vectors(k, plan.lanes, extents.columns, behind, eliminate)


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
