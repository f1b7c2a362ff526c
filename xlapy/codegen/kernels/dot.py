"""Dot kernels for any dimension numbers and layouts.

A tile of the result (a few rows by a few vectors of the last dimension) is accumulated in registers while the
contracting dimensions run. Where the right side cannot be read along the last dimension, the lanes gather. Products of
floats are fused into the sum; narrow floats accumulate in f32 and round at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.elements.conversion import convert_real
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.registers import Element, Pair, from_parts, parts_of, register_type, rounded, splat
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.element_types import F32, ElementType, real_part_type
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

ROWS = 4  # of the result, computed together: each element of the right side is used this often
VECTORS = 2


class DotPlan(Record):
    """A dot as batch x rows x columns x depth. Columns are the last free dimension of the right side, or none."""

    dot: Instruction
    numbers: DotDimensionNumbers
    lanes: int
    row_tile: int
    column_tile: int
    rows: int  # product of the left side's free dimensions
    columns: int  # size of the last free dimension of the right side
    units: int
    bytes_per_unit: int
    unrolled: bool = False  # no loop over the contracting dimensions: for code that is compiled once per machine


def plan_dot(dot: Instruction, target: Target) -> DotPlan:
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    lhs, rhs = (operand.shape for operand in dot.operands)
    rhs_free = numbers.rhs_free(rhs.rank)
    columns = rhs.dims[rhs_free[-1]] if rhs_free else 1
    rows = math.prod(lhs.dims[dim] for dim in numbers.lhs_free(lhs.rank))
    native = target.lanes(max(32, register_type(dot.shape.type).bits))
    lanes = min(native, 1 << (columns.bit_length() - 1)) if columns else 1
    vectors = VECTORS if columns >= VECTORS * lanes and lanes == native else 1
    row_tile = max(min(rows, ROWS), 1)
    outer = math.prod(dot.shape.dims) // max(rows * columns, 1)
    units = outer * -(-rows // row_tile) if dot.shape.size else 0
    total = lhs.bytes + rhs.bytes + dot.shape.bytes
    return DotPlan(dot, numbers, lanes, row_tile, lanes * vectors, rows, columns, units, total // max(units, 1))


class _Tile(Record):
    """Where one tile lies: coordinates by dimension of each side, row by row and vector by vector."""

    lhs_rows: Sequence[Mapping[int, Coordinate]]
    rhs_columns: Sequence[Mapping[int, Coordinate]]


def emit_dot(k: KernelBuilder, plan: DotPlan, lhs: Array, rhs: Array, output: Array, begin: Value, end: Value) -> None:
    """Writes units [begin, end): groups of rows, for each batch and each of the right side's outer free dimensions."""
    scalar, vector = Indexing(k, 1), Indexing(k, plan.lanes)
    numbers = plan.numbers
    lhs_free, rhs_free = numbers.lhs_free(lhs.shape.rank), numbers.rhs_free(rhs.shape.rank)
    outer_free = rhs_free[:-1]
    row_groups = -(-plan.rows // plan.row_tile)
    batch_sizes = [lhs.shape.dims[dim] for dim in numbers.lhs_batch]
    free_sizes = [rhs.shape.dims[dim] for dim in outer_free]
    with k.loop(begin, end) as units:
        outer = scalar.delinearize(Coordinate(units.index), [*batch_sizes, row_groups, *free_sizes])
        batch = outer[: len(batch_sizes)]
        group, free = outer[len(batch_sizes)], outer[len(batch_sizes) + 1 :]
        first_row = k.smin(k.mul(group.start, plan.row_tile), plan.rows - plan.row_tile)
        rows = [
            scalar.delinearize(Coordinate(k.add(first_row, number)), [lhs.shape.dims[dim] for dim in lhs_free])
            for number in range(plan.row_tile)
        ]
        lhs_rows = [
            dict(zip(numbers.lhs_batch, batch, strict=True)) | dict(zip(lhs_free, row, strict=True)) for row in rows
        ]
        with k.loop(0, plan.columns, plan.column_tile) as columns:
            start = k.smin(columns.index, plan.columns - plan.column_tile)
            places = [vector.along_lanes(k.add(start, number)) for number in range(0, plan.column_tile, plan.lanes)]
            shared = dict(zip(numbers.rhs_batch, batch, strict=True)) | dict(zip(outer_free, free, strict=True))
            rhs_columns = [shared | ({rhs_free[-1]: place} if rhs_free else {}) for place in places]
            sums = _contract(k, plan, lhs, rhs, _Tile(lhs_rows, rhs_columns))
            for r, row in enumerate(rows):
                for c, place in enumerate(places):
                    coordinates = (*batch, *row, *free, *((place,) if rhs_free else ()))
                    result = rounded(k, sums[r * len(places) + c], output.shape.type)
                    output.store(vector, Index(output.shape.dims, coordinates), result)


def _contract(k: KernelBuilder, plan: DotPlan, lhs: Array, rhs: Array, tile: _Tile) -> list[Element]:
    """The sums of one tile, row by row."""
    numbers = plan.numbers
    accumulator = accumulator_type(plan.dot.shape.type)
    sizes = [lhs.shape.dims[dim] for dim in numbers.lhs_contracting]
    count = len(tile.lhs_rows) * len(tile.rhs_columns)
    zero = k.const(register_type(accumulator), 0)
    element: Element = Pair(zero, zero) if accumulator.is_complex else zero
    initial = [splat(k, element, plan.lanes)] * count
    if not all(sizes):
        return initial

    def nest(depth: int, positions: Sequence[Coordinate], sums: list[Element]) -> list[Element]:
        if depth == len(sizes):
            return _products(k, plan, lhs, rhs, tile, positions, sums)
        if sizes[depth] == 1 or plan.unrolled:
            for number in range(sizes[depth]):
                sums = nest(depth + 1, [*positions, Coordinate(k.const(I64, number))], sums)
            return sums
        with k.loop(0, sizes[depth], carry=[part for value in sums for part in parts_of(value)]) as loop:
            inner = nest(depth + 1, [*positions, Coordinate(loop.index)], _regroup(loop.values, accumulator))
            loop.next = [part for value in inner for part in parts_of(value)]
        return _regroup(loop.results, accumulator)

    return nest(0, [], initial)


def _regroup(values: Sequence[Value], accumulator: ElementType) -> list[Element]:
    width = 2 if accumulator.is_complex else 1
    return [from_parts(list(values[start : start + width])) for start in range(0, len(values), width)]


def _products(
    k: KernelBuilder,
    plan: DotPlan,
    lhs: Array,
    rhs: Array,
    tile: _Tile,
    positions: Sequence[Coordinate],
    sums: Sequence[Element],
) -> list[Element]:
    """Adds the products at one contracted position to the sums of the tile."""
    accumulator = accumulator_type(plan.dot.shape.type)
    scalar, vector = Indexing(k, 1), Indexing(k, plan.lanes)
    left_place = dict(zip(plan.numbers.lhs_contracting, positions, strict=True))
    right_place = dict(zip(plan.numbers.rhs_contracting, positions, strict=True))
    right = []
    for column in tile.rhs_columns:
        element = rhs.load(vector, _index(rhs, {**column, **right_place}))
        right.append(splat(k, widened(k, element, rhs.shape.type, accumulator), plan.lanes))
    result: list[Element] = []
    for r, row in enumerate(tile.lhs_rows):
        element = lhs.load(scalar, _index(lhs, {**row, **left_place}))
        left = splat(k, widened(k, element, lhs.shape.type, accumulator), plan.lanes)
        for c, factor in enumerate(right):
            result.append(multiply_add(k, left, factor, sums[r * len(right) + c], accumulator))
    return result


def _index(array: Array, positions: Mapping[int, Coordinate]) -> Index:
    return Index(array.shape.dims, tuple(positions[dim] for dim in range(array.shape.rank)))


def multiply_add(k: KernelBuilder, a: Element, b: Element, c: Element, element_type: ElementType) -> Element:
    """a * b + c, fused where the target can; `or` of `and` for pred."""
    if isinstance(a, Pair) and isinstance(b, Pair) and isinstance(c, Pair):
        re = k.muladd(k.neg(a.im), b.im, k.muladd(a.re, b.re, c.re))
        return Pair(re, k.muladd(a.im, b.re, k.muladd(a.re, b.im, c.im)))
    assert isinstance(a, Value) and isinstance(b, Value) and isinstance(c, Value)
    if element_type.kind == "pred":
        return k.or_(k.and_(a, b), c)
    if element_type.is_float:
        return k.muladd(a, b, c)
    return k.add(k.mul(a, b), c)


def accumulator_type(result: ElementType) -> ElementType:
    return F32 if result.is_narrow_float else result


def widened(k: KernelBuilder, element: Element, source: ElementType, accumulator: ElementType) -> Element:
    """The element in the type in which products are summed up, which is complex if the element is."""
    parts = [convert_real(k, part, real_part_type(source), real_part_type(accumulator)) for part in parts_of(element)]
    if accumulator.is_complex and len(parts) == 1:
        parts.append(k.const(parts[0].type, 0.0))
    return from_parts(parts)
