"""Products of many short rows by one small matrix (`hlo/short_products.py`).

    short_product_TYPE_DEPTH_COLUMNS    a unit is a row

Vectors go along the rows: each has one element of as many of them, and all columns of these are computed together, as
in `kernels.short_rows`. The numbers of a call are the distances of the elements of the matrix along its dimensions, in
bytes.
"""

from __future__ import annotations

from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.joined_columns import store_columns
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.hlo.short_products import LEAST_SIDE, MOST_SIDE, TYPES, short_product

_MANY = 1 << 20  # rows of the shapes of a library, in which their number has no part
_NUMBERS_PLACE, _ROWS_PLACE, _MATRIX_PLACE, _RESULT_PLACE = 0, 3, 4, 5  # in the table of a library call


def call_of_short_product(dot: Instruction) -> LibraryCall | None:
    """How a library computes a dot, if one does; in as many units as there are rows."""
    found = short_product(dot)
    if found is None:
        return None
    name, width = _name(found.type, found.depth, found.columns), found.type.bytes
    return LibraryCall(name, name, (found.step * width, found.column * width))


def _name(type: ElementType, depth: int, columns: int) -> str:
    return f"short_product_{type.name}_{depth}_{columns}"


def _emit(type: ElementType, depth: int, columns: int, target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    name = _name(type, depth, columns)
    with KernelBuilder(module, name, parameters, None, attributes=attributes, joins_offsets=True) as k:
        factors = _factors(k, type, depth, columns)
        rows = Array(_pointer(k, _ROWS_PLACE), Shape.array(type, (_MANY, depth)), "operands")
        result = Array(_pointer(k, _RESULT_PLACE), Shape.array(type, (_MANY, columns)), "result", read_only=False)

        def step(ix: Indexing, position: Value) -> None:
            place = ix.along_lanes(position)
            elements = [
                rows.load(ix, Index(rows.shape.dims, (place, ix.constant(n)._replace(bounds=range(n, n + 1)))))
                for n in range(depth)
            ]
            sums = []
            for own in factors:
                total = k.const(register_type(type), 0.0)
                for element, factor in zip(elements, own, strict=True):
                    assert isinstance(element, Value)
                    total = k.add(total, k.mul(element, factor))
                sums.append(total)
            store_columns(ix, result, Shape.array(type, (_MANY,)), Index((_MANY,), (place,)), sums)

        lanes = target.lanes(register_type(type).bits)
        strip(k, k.parameters["begin"], k.parameters["end"], lanes, step, overlapping=True)
    return module


def _factors(k: KernelBuilder, type: ElementType, depth: int, columns: int) -> list[list[Value]]:
    """The elements of each column of the matrix."""
    matrix, numbers = _pointer(k, _MATRIX_PLACE), _pointer(k, _NUMBERS_PLACE)
    along, across = (k.load(k.gep(numbers, number, I64.bytes), I64, hoistable=True) for number in range(2))
    places = [[k.gep(matrix, k.add(k.mul(along, n), k.mul(across, m))) for n in range(depth)] for m in range(columns)]
    return [[k.load(place, register_type(type), hoistable=True) for place in own] for own in places]


def _pointer(k: KernelBuilder, place: int) -> Value:
    return k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)


def _library(type: ElementType, depth: int, columns: int) -> Library:
    name = _name(type, depth, columns)
    return Library(name, (name,), partial(_emit, type, depth, columns))


_SIDES = range(LEAST_SIDE, MOST_SIDE + 1)
SHORT_PRODUCT_LIBRARIES = {
    library.name: library
    for library in (_library(type, depth, columns) for type in TYPES for depth in _SIDES for columns in _SIDES)
}
"""By name."""
