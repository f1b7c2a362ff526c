"""What kernels share that factor matrices: many small ones side by side, one in each lane, and others one by one, by
vectors of columns."""

from __future__ import annotations

import math
from collections.abc import Callable

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I32, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.math.complex import Complex
from xlapy.codegen.math.complex import divide as complex_quotient
from xlapy.codegen.registers import Element, Pair, from_parts, parts_of, register_type
from xlapy.codegen.stopping import LONG
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

LONG_WORK = 16 * LONG
"""Products and sums in one matrix that may take milliseconds."""

MOST_ACROSS = 16
"""Rows, and columns, of matrices that lie in the lanes of vectors."""


class FactorPlan(Record):
    """How matrices of `rows` rows are factored."""

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


class Extents(Record):
    """Sizes of a matrix that has no lane for itself: code for any may learn them when it runs."""

    rows: Value
    columns: Value

    def size(self, k: KernelBuilder) -> Value:
        return k.mul(self.rows, self.columns)

    def steps(self, k: KernelBuilder) -> Value:
        return k.smin(self.rows, self.columns)


def plan_factors(instruction: Instruction, target: Target) -> FactorPlan:
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
    return FactorPlan(type, parts, rows, columns, batch, lanes, across, units, bytes_per_unit)


def for_matrices(
    k: KernelBuilder,
    plan: FactorPlan,
    begin: Value,
    end: Value,
    across: Callable[[int, Value], None],
    single: Callable[[Value], None],
    *,
    in_place: bool,
) -> None:
    """For units [begin, end), calls `across` for how many matrices from which one on, or `single` for each."""
    if plan.across:
        for_lanes(k, plan.lanes, begin, end, across, are_full=plan.fills_lanes, overlapping=not in_place)
        return
    with k.loop(begin, end) as loop:
        single(loop.index)


def for_lanes(
    k: KernelBuilder,
    lanes: int,
    begin: Value,
    end: Value,
    body: Callable[[int, Value], None],
    *,
    are_full: bool,
    overlapping: bool,
) -> None:
    """Calls `body` for how many matrices from which one on. Units are vectors of matrices that `are_full`, or else
    matrices, of which some may be `overlapping`: taken twice."""
    if are_full:
        with k.loop(begin, end) as loop:
            body(lanes, k.mul(loop.index, lanes))
    else:
        strip(k, begin, end, lanes, lambda ix, first: body(ix.lanes, first), overlapping=overlapping)


def matrix_at(k: KernelBuilder, array: Array, number: Value, size: Operand) -> Value:
    """Where a matrix of an array begins, which has so many elements."""
    return k.gep(array.pointer, k.mul(number, size), array.shape.type.bytes)


def place_in_matrix(k: KernelBuilder, plan: FactorPlan, row: Value, column: Value) -> Value:
    return k.add(k.mul(row, plan.columns), column)


def in_vectors(
    k: KernelBuilder, lanes: int, columns: Value, first: Value, body: Callable[[Value, Value | None], None]
) -> None:
    """Calls `body` for vectors of the columns from `first` on: where each begins, and which of its lanes are meant, if
    not all. That one is the vector on the left, which may begin before `first`, and be as long as a row is."""
    count = k.sub(columns, first)
    rest = k.urem(count, lanes)
    whole = k.add(first, rest)
    with k.loop(whole, columns, lanes) as vectors:
        body(vectors.index, None)
    with k.if_(k.compare("ne", rest, 0)):
        number = I32.with_lanes(lanes)
        begin = k.smax(k.sub(whole, lanes), 0)
        places = k.add(k.lane_numbers(number), spread(k, begin, number))
        is_behind = k.compare("ge", places, spread(k, first, number))
        body(begin, k.and_(is_behind, k.compare("lt", places, spread(k, whole, number))))


def chosen(k: KernelBuilder, inside: Value | None, element: Element, former: Element) -> Element:
    return element if inside is None else select(k, inside, element, former)


def spread(k: KernelBuilder, value: Value, type: IRType) -> Value:
    narrowed = value if type.bits == value.type.bits else k.trunc(value, type.element)
    return k.splat(narrowed, type.lanes)


def quotient(k: KernelBuilder, a: Element, b: Element) -> Element:
    if isinstance(a, Pair) and isinstance(b, Pair):
        result = complex_quotient(k, Complex(a.re, a.im), Complex(b.re, b.im))
        return Pair(result.re, result.im)
    assert isinstance(a, Value) and isinstance(b, Value)
    return k.div(a, b)


def apart(k: KernelBuilder, element: Element) -> Element:
    """What may be stored again where it was loaded."""
    return from_parts([k.apart(part) for part in parts_of(element)])


def select(k: KernelBuilder, condition: Value, a: Element, b: Element) -> Element:
    return from_parts([k.select(condition, one, other) for one, other in zip(parts_of(a), parts_of(b), strict=True)])
