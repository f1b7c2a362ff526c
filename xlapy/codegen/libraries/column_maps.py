"""What is made of the elements of a large array and two numbers of each column: the quotients of a softmax over long
columns, once its folds are known (`passes.folds_in_parts`). Exponentials in code of its own would take a program as
long to compile as all of its other parts.

    column_map_NAME_TYPE(table, begin, end)                 rows of `columns` elements
    column_map_NAME_TYPE.past_caches(table, begin, end)     of results that no cache holds until somebody reads them

Rows are whole lines of the caches. The numbers of a call are the elements of a row, and the places in the table of the
array, of those of two numbers for each column, and of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.libraries import FIRST_ARRAY, NUMBERS_PLACE, Library, LibraryCall
from xlapy.codegen.libraries.sliding_maps import CHANNELS, Leaf, SlidingMap, Tree
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy_runtime.records import Record

_EXPONENTIAL: Tree = ("exponential", (("subtract", (Leaf.ELEMENT, Leaf.FIRST)),))
MAPS = (SlidingMap("softmax", ("divide", (_EXPONENTIAL, Leaf.SECOND)), len(CHANNELS)),)
_TYPES = (et.F32, et.F64)
_LEAST_BYTES = 1 << 20
"""Of an array, beside which compiling counts for less. Smaller ones are made by the kernels of their folds."""

_TOGETHER = 2
"""Vectors, whose exponentials overlap."""


class ColumnMapCall(Record):
    """How a library makes an array, in units of a row."""

    call: LibraryCall
    units: int


def call_of_column_map(
    root: Instruction, operands: Sequence[Instruction], target: Target, *, in_place: bool
) -> ColumnMapCall | None:
    """How a library makes `root` of arrays in memory, if one does."""
    shape = root.shape
    if not shape.is_array or shape.type not in _TYPES or shape.bytes < _LEAST_BYTES:
        return None
    for each in MAPS:
        found = each.leaves(root, partial(_is_leaf, root, operands))
        columns = None if found is None else _columns(found)
        if found is None or columns is None or columns * shape.type.bits // 8 % CACHE_LINE:
            continue
        arrays = [found[Leaf.ELEMENT], *(found[leaf].operands[0] for leaf in CHANNELS)]
        places = [FIRST_ARRAY + operands.index(array) for array in arrays]
        streams = not in_place and is_streamed((root,), target.lanes(shape.type.bits), target)
        name = _library_name(each, shape.type)
        function = _past_caches(name) if streams else name
        call = LibraryCall(name, function, (columns, *places, FIRST_ARRAY + len(operands)))
        return ColumnMapCall(call, shape.size // columns)
    return None


def _is_leaf(root: Instruction, operands: Sequence[Instruction], leaf: Leaf, value: Instruction) -> bool:
    """The element is one of an operand of the same shape, numbers of columns are repeated for all rows."""
    if leaf is Leaf.ELEMENT:
        return value in operands and value.shape.dims == root.shape.dims and is_row_major(value)
    if value.opcode != "broadcast":
        return False
    (given,) = value.operands
    rank, last = value.shape.rank, given.shape.rank
    is_last = tuple(value.attributes["dimensions"]) == tuple(range(rank - last, rank))
    return last > 0 and is_last and given in operands and is_row_major(given)


def _columns(found: dict[Leaf, Instruction]) -> int | None:
    """How many there are, of which both arrays have a number each."""
    first, second = (found[leaf].operands[0].shape for leaf in CHANNELS)
    return first.size if first.dims == second.dims else None


def _library_name(each: SlidingMap, type: ElementType) -> str:
    return f"column_map_{each.name}_{type.name}"


def _past_caches(name: str) -> str:
    return f"{name}.past_caches"


def _emit(each: SlidingMap, type: ElementType, target: Target) -> Module:
    module, name = Module.of(target), _library_name(each, type)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    for function, past_caches in ((name, False), (_past_caches(name), True)):
        parameters = [("table", PTR), ("begin", I64), ("end", I64)]
        with KernelBuilder(module, function, parameters, None, attributes=attributes) as k:
            _emit_rows(k, each, type, target, past_caches=past_caches)
    return module


def _emit_rows(k: KernelBuilder, each: SlidingMap, type: ElementType, target: Target, *, past_caches: bool) -> None:
    """Row by row: all numbers of columns are in a near cache."""
    table, numbers = k.parameters["table"], k.load(k.gep(k.parameters["table"], NUMBERS_PLACE * PTR.bytes), PTR)
    columns, *places = (k.load(k.gep(numbers, place * I64.bytes), I64) for place in range(3 + len(CHANNELS)))
    array, *of_columns, result = (k.load(k.gep(table, place, PTR.bytes), PTR) for place in places)
    vector = register_type(type).with_lanes(target.lanes(type.bits))

    def vectors(source: Value, goal: Value, first: Value, count: int) -> None:
        for number in range(count):
            column = k.add(first, number * vector.lanes)
            near = [k.load(k.gep(pointer, column, vector.bytes), vector) for pointer in of_columns]
            place = k.gep(source, column, vector.bytes)
            k.prefetch(k.gep(place, FETCHED_AHEAD), CACHE_LINE)
            made = each.emit(k, type, k.load(place, vector), near)
            align = vector.bytes * vector.lanes if past_caches else None
            k.store(k.gep(goal, column, vector.bytes), made, align=align, nontemporal=past_caches)

    with k.loop(k.parameters["begin"], k.parameters["end"]) as row:
        start = k.mul(row.index, columns)
        source, goal = (k.gep(pointer, start, vector.bytes) for pointer in (array, result))
        whole = k.and_(columns, -_TOGETHER * vector.lanes)
        with k.loop(0, whole, _TOGETHER * vector.lanes) as loop:
            vectors(source, goal, loop.index, _TOGETHER)
        with k.loop(whole, columns, vector.lanes) as loop:
            vectors(source, goal, loop.index, 1)


def _library(each: SlidingMap, type: ElementType) -> Library:
    name = _library_name(each, type)
    emit: Callable[[Target], Module] = partial(_emit, each, type)
    return Library(name, (name, _past_caches(name)), emit)


COLUMN_MAP_LIBRARIES = {library.name: library for each in MAPS for type in _TYPES for library in [_library(each, type)]}
