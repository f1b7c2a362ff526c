"""Sorts by recognised keys, of rows of any number, length and stride: which library has the code, and what it is told.

    sort_lanes_KIND        many short rows, side by side (`sort_lanes`)
    sort_rows_KIND         rows one by one (`sort_rows`)
    sort_selection_KIND    the few first elements of long rows (`sort_selection`)
    sort_moves             moves all operands to where records say (`sort_moves`)

Each is one function, made when the first program wants it. What only a program knows, a comparator of its own, is
compiled with the program (`kernels.sort`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xlapy.codegen.ir import I8, I16, I32, I64, IRType, Module
from xlapy.codegen.kernels.sort_records import word_type
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.libraries.sort_keys import key_numbers
from xlapy.codegen.libraries.sort_lanes import LanesKind, emit_lanes
from xlapy.codegen.libraries.sort_layouts import layout_of
from xlapy.codegen.libraries.sort_moves import MOVE_LANES, MOVE_ROW, MOVES, emit_moves
from xlapy.codegen.libraries.sort_network import top_of
from xlapy.codegen.libraries.sort_problem import NUMBERS
from xlapy.codegen.libraries.sort_rows import RowsKind, emit_rows
from xlapy.codegen.libraries.sort_selection import emit_selection, selection_name
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.sort_plan import Payload, SortKey, SortPlan, fits_stack

RADIX_LENGTH_PER_BYTE = 16  # rows that are shorter are merged faster than counted

_LEVEL = 2  # of LLVM's effort: 5 ms more for each library, loops that are some percent faster

_WORDS = (I8, I16, I32, I64)
_NARROW = (I8, I16, I32)  # fit a record of one word with a position


def library_call(instruction: Instruction, plan: SortPlan, key: SortKey) -> LibraryCall:
    """How a library sorts what `plan` says."""
    name = _library(instruction, plan, key)
    element_type = instruction.operands[key.operand].shape.type
    groups, more = divmod(plan.groups, max(plan.units, 1))
    values = {
        "rows": plan.rows,
        "length": plan.length,
        "stride": plan.stride,
        "kept": plan.kept,
        "groups_per_unit": groups,
        "larger_units": more,
        "unit_bytes": 0 if fits_stack(plan) else plan.scratch_bytes,
        "operands": len(instruction.operands),
        "key": key.operand,
        "candidates": plan.candidates,
        "is_long": int(plan.has_small_numbers and plan.length >= RADIX_LENGTH_PER_BYTE * element_type.bytes),
        "top": top_of(plan.length),
        "source_layout": layout_of(plan.stride, plan.length, plan.lanes),
        "result_layout": layout_of(plan.stride, plan.kept, plan.lanes),
        **key_numbers(element_type, key),
    }
    widths = [operand.shape.type.bytes for operand in instruction.operands]
    return LibraryCall(name, name, (*(int(values[number]) for number in NUMBERS), *widths))


def _library(instruction: Instruction, plan: SortPlan, key: SortKey) -> str:
    word = word_type(instruction.operands[key.operand].shape.type.bytes)
    moves = plan.payload is Payload.POSITION and instruction.opcode == "sort"
    if plan.candidates:
        return selection_name(word)
    if plan.lanes > 1:
        return LanesKind(word, plan.payload, moves).name
    if plan.payload is Payload.ELEMENT:
        other = word_type(instruction.operands[1 - key.operand].shape.type.bytes)
        return RowsKind(word, plan.payload, other).name
    return RowsKind(word, plan.payload, moves=moves).name


def _library_of(name: str, emit: Callable[[Target], Module], *, moves: bool = False) -> Library:
    return Library(name, (name,), emit, codegen_level=_LEVEL, needs=(MOVES,) if moves else ())


def _rows_library(kind: RowsKind) -> Library:
    return _library_of(kind.name, partial(emit_rows, kind), moves=kind.moves)


def _lanes_library(kind: LanesKind) -> Library:
    return _library_of(kind.name, partial(emit_lanes, kind), moves=kind.moves)


def _selection_library(key: IRType) -> Library:
    return _library_of(selection_name(key), partial(emit_selection, key))


_ALL = (
    Library(MOVES, (MOVE_ROW, MOVE_LANES), emit_moves, codegen_level=_LEVEL),
    *(_rows_library(RowsKind(word, Payload.NOTHING)) for word in _WORDS),
    *(_rows_library(RowsKind(word, Payload.ELEMENT, element)) for word in _WORDS for element in _WORDS),
    *(_rows_library(RowsKind(word, Payload.POSITION, moves=moves)) for word in _WORDS for moves in (False, True)),
    *(_lanes_library(LanesKind(word, Payload.NOTHING)) for word in _WORDS),
    *(_lanes_library(LanesKind(word, Payload.POSITION, moves)) for word in _NARROW for moves in (False, True)),
    *(_selection_library(word) for word in _NARROW),
)

SORT_LIBRARIES = {library.name: library for library in _ALL}
"""By name."""
