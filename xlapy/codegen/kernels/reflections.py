"""Kernels of qr-decomposition and householder-product: reflections that make columns zero below the diagonal.

A reflection I - tau v vᴴ is kept as what is below the diagonal of its column: the rest of v, whose first element is 1.
Many matrices of a few rows have a lane each. All others come one after the other, and a reflection is applied to
vectors of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, IRType, KernelBuilder, Value
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
)
from xlapy.codegen.kernels.lane_matrices import LaneMatrices
from xlapy.codegen.kernels.triangular import Matrix, conjugate, minus_product, negate
from xlapy.codegen.registers import Element, from_parts, parts_of
from xlapy.codegen.stopping import look

Load = Callable[[Value], Element]
"""The element of a row."""

Store = Callable[[Value, Element], None]


def emit_qr_decomposition(
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
    """Writes what is packed, and the factors tau, of units [begin, end)."""
    (a,) = operands
    extents = Extents(*numbers)
    count = extents.steps(k)

    def across(lanes: int, first: Value) -> None:
        matrices = _Lanes(k, plan, lanes, extents)
        taus = matrices.new(plan.steps)
        matrices.read(a, first)
        with k.loop(0, plan.steps) as steps:
            taus.store(k, steps.index, _reduce(k, plan, matrices, steps.index))
        matrices.write(outputs[0], first)
        taus.write(k, matrix_at(k, outputs[1], first, plan.steps))

    def single(number: Value) -> None:
        matrix = _Single.copied(k, plan, extents, a, outputs[0], number, in_place)
        taus = _row(k, plan, matrix_at(k, outputs[1], number, count))
        with k.loop(0, count) as steps:
            look(k)
            taus.store(k, 0, steps.index, _reduce(k, plan, matrix, steps.index))

    for_matrices(k, plan, begin, end, across, single, in_place=in_place)


def emit_householder_product(
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
    """Writes the first columns of the product of all reflections, whose count is the last of the numbers."""
    a, factors = operands
    (output,) = outputs
    *sizes, count = numbers
    extents = Extents(*sizes)

    def across(lanes: int, first: Value) -> None:
        matrices = _Lanes(k, plan, lanes, extents)
        taus = matrices.new(factors.shape.dims[-1])
        matrices.read(a, first)
        taus.read(k, matrix_at(k, factors, first, count))
        _multiply(k, plan, matrices, count, lambda step: taus.load(k, step))
        matrices.write(output, first)

    def single(number: Value) -> None:
        matrix = _Single.copied(k, plan, extents, a, output, number, in_place)
        taus = _row(k, plan, matrix_at(k, factors, number, count))
        _multiply(k, plan, matrix, count, lambda step: taus.load(k, 0, step))

    for_matrices(k, plan, begin, end, across, single, in_place=in_place)


# -- matrices ----------------------------------------------------------------------------------------------------------


class _Lanes:
    """One matrix in each lane."""

    def __init__(self, k: KernelBuilder, plan: FactorPlan, lanes: int, extents: Extents) -> None:
        self._k, self._plan, self.extents = k, plan, extents
        self.type = plan.type.with_lanes(lanes)
        self._matrices = self.new(plan.rows * plan.columns)

    def new(self, count: int) -> LaneMatrices:
        return LaneMatrices.new(self._k, self.type, self._plan.parts, count)

    def read(self, array: Array, first: Value) -> None:
        self._matrices.read(self._k, matrix_at(self._k, array, first, self._matrices.count))

    def write(self, array: Array, first: Value) -> None:
        self._matrices.write(self._k, matrix_at(self._k, array, first, self._matrices.count))

    def load(self, row: Value, column: Value) -> Element:
        return apart(self._k, self._matrices.load(self._k, place_in_matrix(self._k, self._plan, row, column)))

    def store(self, row: Value, column: Value, element: Element) -> None:
        self._matrices.store(self._k, place_in_matrix(self._k, self._plan, row, column), element)

    def for_columns(self, first: Value, body: Callable[[Load, Store], None]) -> None:
        with self._k.loop(first, self.extents.columns) as columns:
            column = columns.index
            body(lambda row: self.load(row, column), lambda row, element: self.store(row, column, element))


class _Single:
    """One matrix, in memory."""

    def __init__(self, k: KernelBuilder, plan: FactorPlan, extents: Extents, place: Value) -> None:
        self._k, self._plan, self.extents, self.type = k, plan, extents, plan.type
        self._matrix = Matrix(place, plan.type, plan.parts, extents.columns, k.const(I64, 1))

    @classmethod
    def copied(
        cls,
        k: KernelBuilder,
        plan: FactorPlan,
        extents: Extents,
        source: Array,
        target: Array,
        number: Value,
        in_place: bool,
    ) -> _Single:
        size = extents.size(k)
        place = matrix_at(k, target, number, size)
        if not in_place:
            k.memcpy(place, matrix_at(k, source, number, size), k.mul(size, source.shape.type.bytes))
        return cls(k, plan, extents, place)

    def load(self, row: Value, column: Value) -> Element:
        return apart(self._k, self._matrix.load(self._k, row, column))

    def store(self, row: Value, column: Value, element: Element) -> None:
        self._matrix.store(self._k, row, column, element)

    def for_columns(self, first: Value, body: Callable[[Load, Store], None]) -> None:
        k, lanes = self._k, self._plan.lanes

        def on_vector(column: Value, inside: Value | None) -> None:
            def load(row: Value) -> Element:
                return apart(k, self._matrix.load_row(k, row, column, lanes))

            def store(row: Value, element: Element) -> None:
                self._matrix.store_row(k, row, column, chosen(k, inside, element, load(row)))

            body(load, store)

        in_vectors(k, lanes, self.extents.columns, first, on_vector)


def _row(k: KernelBuilder, plan: FactorPlan, place: Value) -> Matrix:
    return Matrix(place, plan.type, plan.parts, k.const(I64, 0), k.const(I64, 1))


# -- reflections -------------------------------------------------------------------------------------------------------


def _reduce(k: KernelBuilder, plan: FactorPlan, matrix: _Lanes | _Single, step: Value) -> Element:
    """Reflects a column to the diagonal, and those behind it likewise; the factor tau."""
    vector = partial(matrix.load, column=step)
    tau = _reflector(k, matrix.extents.rows, matrix.type, vector, lambda row, x: matrix.store(row, step, x), step)
    matrix.for_columns(k.add(step, 1), partial(_reflect, k, matrix.extents.rows, step, vector, conjugate(k, tau)))
    return tau


def _reflector(k: KernelBuilder, end: Value, type: IRType, load: Load, store: Store, first: Value) -> Element:
    """Makes v of a column x from row `first` on, and puts beta with (I - tau v vᴴ)ᴴ x = beta e in its first place."""
    below, nothing = k.add(first, 1), k.const(type, 0.0)
    alpha = load(first)
    real, *imaginary = parts_of(alpha)
    with k.loop(below, end, carry=[k.fabs(real), k.compare("ne", nothing, nothing)]) as rows:
        rows.next = _seen(k, rows.values, parts_of(load(rows.index)))
    largest, is_any = _seen(k, rows.results, imaginary)
    divisor = k.select(k.compare("eq", largest, nothing), k.const(type, 1.0), largest)
    with k.loop(below, end, carry=[_square(k, nothing, alpha, divisor)]) as rows:
        rows.next = [_square(k, rows.values[0], load(rows.index), divisor)]
    total = rows.results[0]
    is_reduced = k.not_(is_any)
    beta = k.neg(k.copysign(k.mul(divisor, k.sqrt(total)), real))
    ratios = [k.div(k.sub(beta, real), beta), *(k.div(k.neg(part), beta) for part in imaginary)]
    tau = from_parts([k.select(is_reduced, nothing, ratio) for ratio in ratios])
    pivot = k.select(is_reduced, k.const(type, 1.0), k.sub(real, beta))
    with k.loop(below, end) as rows:
        store(rows.index, quotient(k, load(rows.index), from_parts([pivot, *imaginary])))
    store(first, from_parts([k.select(is_reduced, real, beta), *[nothing] * len(imaginary)]))
    return tau


def _seen(k: KernelBuilder, known: Sequence[Value], parts: Sequence[Value]) -> list[Value]:
    """The largest size that has been seen, and whether anything was that is not zero."""
    size, is_any = known
    for part in parts:
        size = k.greater(k.fabs(part), size)
        is_any = k.or_(is_any, k.compare("ne", part, k.const(part.type, 0.0)))
    return [size, is_any]


def _square(k: KernelBuilder, total: Value, element: Element, divisor: Value) -> Value:
    for part in parts_of(element):
        share = k.div(part, divisor)
        total = k.muladd(share, share, total)
    return total


def _reflect(k: KernelBuilder, end: Value, first: Value, vector: Load, tau: Element, load: Load, store: Store) -> None:
    """Takes tau v vᴴ x from x, one or more columns between two rows."""
    below = k.add(first, 1)
    with k.loop(below, end, carry=parts_of(load(first))) as rows:
        share = negate(k, conjugate(k, vector(rows.index)))
        total = from_parts(rows.values)
        rows.next = parts_of(minus_product(k, total, _like(k, share, total), load(rows.index)))
    total = from_parts(rows.results)
    nothing = from_parts([k.const(part.type, 0.0) for part in parts_of(total)])
    factor = minus_product(k, nothing, negate(k, _like(k, tau, total)), total)
    store(first, _difference(k, load(first), factor))
    with k.loop(below, end) as rows:
        element = load(rows.index)
        store(rows.index, minus_product(k, element, _like(k, vector(rows.index), element), factor))


def _like(k: KernelBuilder, element: Element, other: Element) -> Element:
    """In as many lanes as the other."""
    lanes = parts_of(other)[0].type.lanes
    return from_parts([part if part.type.lanes == lanes else k.splat(part, lanes) for part in parts_of(element)])


def _difference(k: KernelBuilder, a: Element, b: Element) -> Element:
    return from_parts([k.sub(one, other) for one, other in zip(parts_of(a), parts_of(b), strict=True)])


def _multiply(
    k: KernelBuilder, plan: FactorPlan, matrix: _Lanes | _Single, count: Value, tau_of: Callable[[Value], Element]
) -> None:
    """Puts the product of so many reflections in the place of their vectors, from the last one on."""
    nothing, one = (_number(k, matrix.type, plan.parts, number) for number in (0.0, 1.0))
    end = matrix.extents.rows
    with k.loop(count, matrix.extents.columns) as columns:
        with k.loop(0, end) as rows:
            matrix.store(rows.index, columns.index, nothing)
        matrix.store(columns.index, columns.index, one)
    with k.loop(0, count) as steps:
        look(k)
        step = k.sub(k.sub(count, 1), steps.index)
        tau = tau_of(step)
        vector = partial(matrix.load, column=step)
        matrix.for_columns(k.add(step, 1), partial(_reflect, k, end, step, vector, tau))
        with k.loop(k.add(step, 1), end) as rows:
            matrix.store(rows.index, step, minus_product(k, nothing, tau, matrix.load(rows.index, step)))
        matrix.store(step, step, _difference(k, one, tau))
        with k.loop(0, step) as rows:
            matrix.store(rows.index, step, nothing)


def _number(k: KernelBuilder, type: IRType, parts: int, value: float) -> Element:
    return from_parts([k.const(type, value), *[k.const(type, 0.0)] * (parts - 1)])
