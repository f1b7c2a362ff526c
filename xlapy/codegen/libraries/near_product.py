"""Products of a matrix by a vector, and of small matrices, of any size.

    near_product_TYPE_deep_LANES_VECTORS_ROWS[_rest][_exchanged]     a vector, with lanes along what is summed up
    near_product_TYPE_wide_LANES_VECTORS_ROWS[_exchanged]            columns, with lanes along these

A function does what `kernels.dot` writes for one product: so many rows, by so many vectors, are summed up in
registers. Sizes and distances are numbers of a call (`NUMBERS`), so that programs which differ in them share the code.
For what lies otherwise in memory, or has more dimensions, and in loops, each program has a kernel of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.ir import I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.dot import MOST_WRITTEN_OUT, SUMS_AT_ONCE, DotPlan
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.register_transpose import lane_sums
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

TYPES = {"f32": et.F32, "f64": et.F64}
_ALL_OF_A_TYPE = [{type} for type in TYPES.values()]

NUMBERS = ("rows", "columns", "depth", "left_row", "left_step", "right_step", "result_row")
"""Distances count elements."""

_REST, _EXCHANGED = "_rest", "_exchanged"
"""The last lanes of what is summed up are no whole vector; the left side is the second operand."""

Products = Callable[[Value, int, Sequence[Value]], list[Value]]
"""Sums with the products that come so many steps behind a place of what is summed up."""


def call_of_near_product(plan: DotPlan) -> LibraryCall | None:
    """How a library computes a dot, if one does."""
    left, right = (operand.shape for operand in plan.dot.operands[:: -1 if plan.exchanged else 1])
    result, numbers = plan.dot.shape, plan.numbers
    left_free, right_free = numbers.lhs_free(left.rank), numbers.rhs_free(right.rank)
    types = {left.type, right.type, result.type}
    if not plan.units or types not in _ALL_OF_A_TYPE or len(numbers.lhs_contracting) != 1 or numbers.lhs_batch:
        return None
    is_deep = plan.deep is not None
    if is_deep == bool(right_free) or max(len(left_free), len(right_free)) > 1:
        return None
    if right_free and (_distance(right, right_free), result.strides()[-1]) != (1, 1):
        return None
    distances = {
        "left_row": _distance(left, left_free),
        "left_step": _distance(left, numbers.lhs_contracting),
        "right_step": _distance(right, numbers.rhs_contracting),
        "result_row": _distance(result, range(len(left_free))),
    }
    depth = left.dims[numbers.lhs_contracting[0]]
    sizes = {"rows": plan.rows, "columns": plan.columns, "depth": depth}
    way, vectors = ("deep", _written_out(depth // plan.lanes)) if is_deep else ("wide", plan.column_tile // plan.lanes)
    name = "_".join(map(str, ("near_product", result.type.name, way, plan.lanes, vectors, plan.row_tile)))
    name += _REST * (is_deep and depth % plan.lanes > 0) + _EXCHANGED * plan.exchanged
    values = {**sizes, **distances}
    return LibraryCall(name, name, tuple(values[number] for number in NUMBERS))


def _written_out(vectors: int) -> int:
    """How many vectors are summed up without a loop; 0 for more than are worth it."""
    return vectors if vectors <= MOST_WRITTEN_OUT else 0


def _distance(shape: Shape, dims: Sequence[int]) -> int:
    """Of neighbours along a dimension, if there is one."""
    return shape.strides()[dims[0]] if dims else 0


def near_product_library(name: str) -> Library | None:
    """The library of that name, if it is one of these."""
    found = _NAME.fullmatch(name)
    return (
        None if found is None else Library(name, (name,), partial(_emit, found), optimization="full", codegen_level=2)
    )


_NAME = re.compile(
    rf"near_product_(?P<type>{'|'.join(TYPES)})_(?P<way>deep|wide)_(?P<lanes>\d+)_(?P<vectors>\d+)_(?P<rows>\d+)"
    rf"(?P<rest>{_REST})?(?P<exchanged>{_EXCHANGED})?"
)


class _Product(Record):
    """What a function knows of its call."""

    left: Value
    right: Value
    result: Value
    numbers: dict[str, Value]
    vector: IRType
    vectors: int  # of columns; or along what is summed up, if it is no loop
    rows: int
    has_rest: bool

    def left_at(self, k: KernelBuilder, row: Value) -> Value:
        return k.gep(self.left, k.mul(row, self.numbers["left_row"]), self.vector.element.bytes)

    def first_row(self, k: KernelBuilder, unit: Value) -> Value:
        """Of a unit: the last one begins early enough to be whole."""
        return k.smin(k.mul(unit, self.rows), k.sub(self.numbers["rows"], self.rows))


def _emit(found: re.Match[str], target: Target) -> Module:
    module, attributes = Module.of(target), f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    with KernelBuilder(
        module, found[0], parameters, None, attributes=attributes, joins_offsets=True, hoists_addresses=True
    ) as k:
        table = k.parameters["table"]
        place, _, _, *arrays = (k.load(k.gep(table, n, PTR.bytes), PTR) for n in range(FIRST_ARRAY + 3))
        numbers = {name: k.load(k.gep(place, n, I64.bytes), I64) for n, name in enumerate(NUMBERS)}
        left, right = arrays[:2] if found["exchanged"] is None else arrays[1::-1]
        vector = register_type(TYPES[found["type"]]).with_lanes(int(found["lanes"]))
        product = _Product(
            left,
            right,
            arrays[2],
            numbers,
            vector,
            int(found["vectors"]),
            int(found["rows"]),
            found["rest"] is not None,
        )
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            first = product.first_row(k, units.index)
            (_wide if found["way"] == "wide" else _deep)(k, product, first)
    return module


def _deep(k: KernelBuilder, product: _Product, first: Value) -> None:
    """Rows by the right side: sums of lanes, which are added up at the end."""
    numbers, vector, bytes = product.numbers, product.vector, product.vector.element.bytes
    lanes, depth = vector.lanes, numbers["depth"]
    lines = [product.left_at(k, k.add(first, row)) for row in range(product.rows)]

    def products(at: Value, later: int, sums: Sequence[Value], keep: Value | None = None) -> list[Value]:
        place = k.add(at, later * lanes)
        sides = [_loaded(k, k.gep(side, place, bytes), vector) for side in (product.right, *lines)]
        right, *left = sides if keep is None else [k.select(keep, side, k.const(vector, 0.0)) for side in sides]
        return [k.muladd(own, right, total) for own, total in zip(left, sums, strict=True)]

    whole = k.and_(depth, -lanes)
    sums = [k.const(vector, 0.0)] * product.rows
    for number in range(product.vectors):
        sums = products(k.const(I64, 0), number, sums)
    if not product.vectors:
        sums = _summed(k, products, sums, whole, lanes)
    if product.has_rest:  # the last vector overlaps those before: of it, the lanes that are new
        seen = k.splat(k.trunc(k.sub(lanes, k.sub(depth, whole)), I32), lanes)
        keep = k.compare("ge", k.lane_numbers(I32.with_lanes(lanes)), seen)
        sums = products(k.sub(depth, lanes), 0, sums, keep)
    totals = lane_sums(k, sums) if lanes > 1 else sums
    for row in range(product.rows):
        own = totals[row // totals[0].type.lanes]
        total = k.extract(own, row % own.type.lanes) if own.type.lanes > 1 else own
        place = k.mul(k.add(first, row), numbers["result_row"])
        k.store(k.gep(product.result, place, bytes), total, alias="result")


def _wide(k: KernelBuilder, product: _Product, first: Value) -> None:
    """Rows by columns: a few vectors of these at a time, the last of which overlap those before."""
    numbers, vector, bytes = product.numbers, product.vector, product.vector.element.bytes
    lines = [product.left_at(k, k.add(first, row)) for row in range(product.rows)]
    width = product.vectors * vector.lanes
    parts = range(_parts(product.rows * product.vectors))
    right_steps, left_steps = ([k.mul(numbers[step], n) for n in parts] for step in ("right_step", "left_step"))
    with k.loop(0, numbers["columns"], width) as tiles:
        start = k.smin(tiles.index, k.sub(numbers["columns"], width))
        columns = [k.add(start, number * vector.lanes) for number in range(product.vectors)]

        def products(at: Value, later: int, sums: Sequence[Value]) -> list[Value]:
            line = k.gep(k.gep(product.right, k.mul(at, numbers["right_step"]), bytes), right_steps[later], bytes)
            right = [_loaded(k, k.gep(line, column, bytes), vector) for column in columns]
            step = k.mul(at, numbers["left_step"])
            places = [k.gep(k.gep(own, step, bytes), left_steps[later], bytes) for own in lines]
            left = [k.splat(_loaded(k, place, vector.element), vector.lanes) for place in places]
            factors = [(own, other) for own in left for other in right]
            return [k.muladd(own, other, total) for (own, other), total in zip(factors, sums, strict=True)]

        zeros = [k.const(vector, 0.0)] * (product.rows * product.vectors)
        sums = _summed(k, products, zeros, numbers["depth"], 1)
        for row in range(product.rows):
            line = k.gep(product.result, k.mul(k.add(first, row), numbers["result_row"]), bytes)
            for number, column in enumerate(columns):
                k.store(k.gep(line, column, bytes), sums[row * product.vectors + number], alias="result")


def _summed(k: KernelBuilder, products: Products, zeros: list[Value], depth: Value, step: int) -> list[Value]:
    """The sums over a depth that steps divide. Few are taken in several parts, which do not wait for each other."""
    count = len(zeros)
    parts = _parts(count)
    whole = k.and_(depth, -(step * parts))
    with k.loop(0, whole, step * parts, carry=zeros * parts) as loop:
        groups = [loop.values[part * count : (part + 1) * count] for part in range(parts)]
        loop.next = [total for part, own in enumerate(groups) for total in products(loop.index, part, own)]
    totals = loop.results
    while len(totals) > count:
        half = len(totals) // 2
        totals = [k.add(one, other) for one, other in zip(totals[:half], totals[half:], strict=True)]
    if parts == 1:
        return totals
    with k.loop(whole, depth, step, carry=totals) as rest:
        rest.next = products(rest.index, 0, rest.values)
    return rest.results


def _parts(sums: int) -> int:
    """In which so many sums are taken, a power of two."""
    return max(SUMS_AT_ONCE // sums, 1)


def _loaded(k: KernelBuilder, place: Value, type: IRType) -> Value:
    """Of an operand, which nothing writes meanwhile."""
    return k.load(place, type, alias="operands", invariant=True)
