"""Dot kernels for any dimension numbers and layouts.

A tile of the result (a few rows by a few vectors of the last dimension) is accumulated in registers while the
contracting dimensions run. Where both sides lie in memory along a contracting dimension, and the right side does not
along the last one of the result, as with a matrix and a vector, lanes run along that, and are added up at the end.
Elsewhere they gather. Products of floats are fused into the sum; narrow floats accumulate in f32 and round at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.elements.conversion import convert_real
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.register_transpose import lane_sums
from xlapy.codegen.registers import Element, Pair, from_parts, parts_of, register_type, rounded, splat
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.element_types import F32, ElementType, real_part_type
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record, replaced

ROWS = 4  # of the result, computed together: each element of the right side is used this often
VECTORS = 2
DEEP_COLUMNS = 4  # in tiles whose lanes run along the depth
LEAST_DEPTH = 4  # elements that are worth lanes of their own
DEPTH_OF_ROW = 3  # times as many are, if what lanes gather serves several rows
MOST_WRITTEN_OUT = 4  # vectors along the depth, without a loop
SUMS_AT_ONCE = 8  # that keep all multipliers of a core busy
LEAST_ROUNDS = 5  # of a loop in which sums are taken in parts: more than a small square matrix has


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
    deep: int | None = None  # the number of the pair of contracting dimensions along which the lanes run, if they do
    exchanged: bool = False  # the left side is the second operand

    @property
    def columns_at_once(self) -> int:
        """Of the result: those that one element for each sum, or one vector, has."""
        return 1 if self.deep is not None else self.lanes


def plan_dot(dot: Instruction, target: Target) -> DotPlan:
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    lhs, rhs = (operand.shape for operand in dot.operands)
    exchanged = _has_columns_on_the_left(lhs, rhs, numbers)
    if exchanged:
        numbers, lhs, rhs = numbers.exchanged(), rhs, lhs
    rhs_free = numbers.rhs_free(rhs.rank)
    columns = rhs.dims[rhs_free[-1]] if rhs_free else 1
    rows = math.prod(lhs.dims[dim] for dim in numbers.lhs_free(lhs.rank))
    native = target.lanes(max(32, register_type(dot.shape.type).bits))
    shared = min(rows, ROWS) if columns > 1 else 0
    deep = (
        _deep_pair(lhs, rhs, numbers, max(DEPTH_OF_ROW * shared, LEAST_DEPTH))
        if dot.shape.type.kind != "pred"
        else None
    )
    if deep is not None:
        depth = lhs.dims[numbers.lhs_contracting[deep]]
        lanes = min(native, 1 << (depth.bit_length() - 1))
        column_tile = min(columns, DEEP_COLUMNS)
        row_tile = max(min(rows, SUMS_AT_ONCE // max(column_tile, 1)), 1)
    else:
        lanes = min(native, 1 << (columns.bit_length() - 1)) if columns else 1
        column_tile = lanes * (VECTORS if columns >= VECTORS * lanes and lanes == native else 1)
        row_tile = max(min(rows, ROWS), 1)
    outer = math.prod(dot.shape.dims) // max(rows * columns, 1)
    units = outer * -(-rows // row_tile) if dot.shape.size else 0
    per_unit = (lhs.bytes + rhs.bytes + dot.shape.bytes) // max(units, 1)
    return DotPlan(
        dot, numbers, lanes, row_tile, column_tile, rows, columns, units, per_unit, deep=deep, exchanged=exchanged
    )


def _has_columns_on_the_left(lhs: Shape, rhs: Shape, numbers: DotDimensionNumbers) -> bool:
    """The right side is a vector, and the left side has neighbours along its last free dimension."""
    free = numbers.lhs_free(lhs.rank)
    return not numbers.rhs_free(rhs.rank) and bool(free) and lhs.dims[free[-1]] > 1 and lhs.strides()[free[-1]] == 1


def _deep_pair(lhs: Shape, rhs: Shape, numbers: DotDimensionNumbers, least: int) -> int | None:
    """The pair of contracting dimensions along which elements of both sides are neighbours, if there are enough."""
    for number, (left, right) in enumerate(zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True)):
        if lhs.dims[left] >= least and lhs.strides()[left] == rhs.strides()[right] == 1:
            return number
    return None


class _Tile(Record):
    """Where one tile lies: coordinates by dimension of each side, row by row and vector by vector."""

    lhs_rows: Sequence[Mapping[int, Coordinate]]
    rhs_columns: Sequence[Mapping[int, Coordinate]]


def emit_dot(k: KernelBuilder, plan: DotPlan, lhs: Array, rhs: Array, output: Array, begin: Value, end: Value) -> None:
    """Writes units [begin, end): groups of rows, for each batch and each of the right side's outer free dimensions."""
    lhs, rhs = (rhs, lhs) if plan.exchanged else (lhs, rhs)
    scalar, vector = Indexing(k, 1), Indexing(k, plan.columns_at_once)
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
            numbers_of_columns = range(0, plan.column_tile, plan.columns_at_once)
            places = [vector.along_lanes(k.add(start, number)) for number in numbers_of_columns]
            shared = dict(zip(numbers.rhs_batch, batch, strict=True)) | dict(zip(outer_free, free, strict=True))
            rhs_columns = [shared | ({rhs_free[-1]: place} if rhs_free else {}) for place in places]
            sums = _Contraction(k, plan, (lhs, rhs), _Tile(lhs_rows, rhs_columns)).sums()
            for r, row in enumerate(rows):
                for c, place in enumerate(places):
                    coordinates = (*batch, *row, *free, *((place,) if rhs_free else ()))
                    result = rounded(k, sums[r * len(places) + c], output.shape.type)
                    output.store(vector, Index(output.shape.dims, coordinates), result)


class _Walk(Record):
    """The places along one contracting dimension that are gone through, what makes a coordinate of one, the positions
    of the dimensions before it, and the lanes to be kept, if not all."""

    depth: int
    places: range
    at: Callable[[Value], Coordinate]
    positions: Sequence[Coordinate]
    keep: Value | None = None


class _Contraction:
    """What one tile sums up, row by row, in a loop for each contracting dimension."""

    def __init__(self, k: KernelBuilder, plan: DotPlan, sides: tuple[Array, Array], tile: _Tile) -> None:
        self._k, self._plan, self._tile = k, plan, tile
        self._lhs, self._rhs = sides
        self._sizes = [self._lhs.shape.dims[dim] for dim in plan.numbers.lhs_contracting]
        self._type = accumulator_type(plan.dot.shape.type)
        self._lanes = Indexing(k, plan.lanes)

    def sums(self) -> list[Element]:
        count = len(self._tile.lhs_rows) * len(self._tile.rhs_columns)
        sums = self._zeros(count)
        if all(self._sizes):
            sums = self._from(0, [], sums)
        return sums if self._plan.deep is None else _sums_of_lanes(self._k, sums)

    def _zeros(self, count: int) -> list[Element]:
        zero = self._k.const(register_type(self._type), 0)
        element: Element = Pair(zero, zero) if self._type.is_complex else zero
        return [splat(self._k, element, self._plan.lanes)] * count

    def _from(
        self, depth: int, positions: Sequence[Coordinate], sums: list[Element], keep: Value | None = None
    ) -> list[Element]:
        """The sums with all products that there are at the given positions of the first dimensions, in the lanes that
        are to be kept."""
        if depth == len(self._sizes):
            return self._products(positions, sums, keep)
        if depth == self._plan.deep:
            return self._along_lanes(depth, positions, sums)
        places = range(self._sizes[depth])
        if len(places) == 1 or self._plan.unrolled:
            return self._written_out(_Walk(depth, places, Coordinate, positions, keep), sums)
        return self._repeated(_Walk(depth, places, Coordinate, positions, keep), sums)

    def _along_lanes(self, depth: int, positions: Sequence[Coordinate], sums: list[Element]) -> list[Element]:
        """Vectors of the dimension; of the last one, which overlaps the others, the lanes that are new."""
        k, lanes, size = self._k, self._plan.lanes, self._sizes[depth]
        rest = size % lanes
        whole = range(0, size - rest, lanes)
        walk = self._written_out if len(whole) <= MOST_WRITTEN_OUT else self._repeated
        sums = walk(_Walk(depth, whole, self._lanes.along_lanes, positions), sums)
        if not rest:
            return sums
        new = k.const_vector(I1.with_lanes(lanes), [int(lane >= lanes - rest) for lane in range(lanes)])
        return self._from(depth + 1, [*positions, self._lanes.along_lanes(k.const(I64, size - lanes))], sums, new)

    def _at(self, walk: _Walk, place: Value, sums: list[Element]) -> list[Element]:
        """The sums with the products at one place of a walk."""
        return self._from(walk.depth + 1, [*walk.positions, walk.at(place)], sums, walk.keep)

    def _written_out(self, walk: _Walk, sums: list[Element]) -> list[Element]:
        for place in walk.places:
            sums = self._at(walk, self._k.const(I64, place), sums)
        return sums

    def _repeated(self, walk: _Walk, sums: list[Element]) -> list[Element]:
        """A loop over the places. Few sums are taken in several parts each, which do not wait for each other, if it is
        the innermost one."""
        k, count, places = self._k, len(sums), walk.places
        is_innermost = walk.depth + 1 == len(self._sizes)
        parts = max(min(SUMS_AT_ONCE // count, len(places) // LEAST_ROUNDS), 1) if is_innermost else 1
        whole = len(places) // parts * parts
        carry = [part for value in [*sums, *self._zeros(count * (parts - 1))] for part in parts_of(value)]
        with k.loop(places.start, places[whole - 1] + 1, places.step * parts, carry=carry) as loop:
            running = self._regrouped(loop.values)
            results: list[Element] = []
            for number in range(parts):
                own = running[number * count : (number + 1) * count]
                results += self._at(walk, k.add(loop.index, number * places.step), own)
            loop.next = [part for value in results for part in parts_of(value)]
        totals = self._regrouped(loop.results)
        while len(totals) > count:
            half = len(totals) // 2 // count * count
            pairs = zip(totals[:half], totals[-half:], strict=True)
            totals = [*(self._sum(one, other) for one, other in pairs), *totals[half:-half]]
        return self._written_out(replaced(walk, places=places[whole:]), totals)

    def _sum(self, one: Element, other: Element) -> Element:
        """Of two sums, which are bits for pred."""
        combine = self._k.or_ if self._type.kind == "pred" else self._k.add
        return from_parts([combine(*parts) for parts in zip(parts_of(one), parts_of(other), strict=True)])

    def _regrouped(self, values: Sequence[Value]) -> list[Element]:
        width = 2 if self._type.is_complex else 1
        return [from_parts(list(values[start : start + width])) for start in range(0, len(values), width)]

    def _products(self, positions: Sequence[Coordinate], sums: Sequence[Element], keep: Value | None) -> list[Element]:
        """Adds the products at one contracted position, or at one in each lane, to the sums of the tile."""
        left_lanes = Indexing(self._k, 1) if self._plan.deep is None else self._lanes
        left_place = dict(zip(self._plan.numbers.lhs_contracting, positions, strict=True))
        right_place = dict(zip(self._plan.numbers.rhs_contracting, positions, strict=True))
        right = [
            self._factor(self._rhs, self._lanes, {**column, **right_place}, keep) for column in self._tile.rhs_columns
        ]
        result: list[Element] = []
        for r, row in enumerate(self._tile.lhs_rows):
            left = self._factor(self._lhs, left_lanes, {**row, **left_place}, keep)
            for c, factor in enumerate(right):
                result.append(multiply_add(self._k, left, factor, sums[r * len(right) + c], self._type))
        return result

    def _factor(self, side: Array, lanes: Indexing, places: Mapping[int, Coordinate], keep: Value | None) -> Element:
        """One of each product, and 0 in lanes that are not to be kept."""
        k = self._k
        element = widened(k, side.load(lanes, _index(side, places)), side.shape.type, self._type)
        if keep is not None:
            element = from_parts([k.select(keep, part, 0) for part in parts_of(element)])
        return splat(k, element, self._plan.lanes)


def _sums_of_lanes(k: KernelBuilder, sums: Sequence[Element]) -> list[Element]:
    """One number for each vector."""
    by_part = zip(*(parts_of(value) for value in sums), strict=True)
    numbers = [_single_lanes(k, lane_sums(k, vectors), len(sums)) for vectors in by_part]
    return [from_parts(parts) for parts in zip(*numbers, strict=True)]


def _single_lanes(k: KernelBuilder, vectors: Sequence[Value], count: int) -> list[Value]:
    size = vectors[0].type.lanes
    return [k.extract(vectors[number // size], number % size) for number in range(count)]


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
