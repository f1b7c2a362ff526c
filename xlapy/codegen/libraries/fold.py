"""Folds of large arrays by one operation, as they are: sums, products and extrema of rows and of columns.

    fold_rows_OPCODE_TYPE          each row by vectors along it
    fold_columns_OPCODE_TYPE.N     N vectors of neighbouring columns side by side

What is made from the elements before they are folded, or from the results, is compiled with its program
(`kernels.reduce`), and so are small arrays and short rows, where it counts that a kernel knows its sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.kernels.reduce import ACCUMULATORS, vectors_across
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.libraries.fold_columns import COLUMNS, WIDTHS, columns_name, emit_columns
from xlapy.codegen.libraries.fold_problem import KINDS, NUMBERS, FoldKind, FoldShape, kind_of, shape_of
from xlapy.codegen.libraries.fold_rows import ROWS, emit_rows
from xlapy.codegen.stopping import LONG
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction

LEAST_SIZE = 1 << 15  # elements that take microseconds to fold
LEAST_ROW = 1 << 10  # elements of a row beside which it does not count that its length is a number
LEAST_FETCHED_ROW = 1 << 7  # the same where all wait for memory

_LEVEL = 1


@dataclass(frozen=True, slots=True)
class FoldCall:
    """How a library computes a reduce: by which function, in how many units."""

    call: LibraryCall
    units: int


def fold_call(reduce: Instruction, target: Target) -> FoldCall | None:
    """How a library computes a reduce, if one does."""
    kind, shape = kind_of(reduce), shape_of(reduce)
    if kind is None or shape is None or shape.size < LEAST_SIZE or shape.length >= LONG:
        return None
    is_fetched = reduce.operands[0].shape.bytes > target.l2_bytes
    if shape.columns > 1:
        return _columns_call(kind, shape, target, is_fetched=is_fetched)
    if shape.length < (LEAST_FETCHED_ROW if is_fetched else LEAST_ROW):
        return None
    name = kind.name(ROWS)
    numbers = {"length": shape.length, "columns": 1, "blocks": 1, "ahead": FETCHED_AHEAD if is_fetched else 0}
    return FoldCall(LibraryCall(name, name, tuple(numbers[name] for name in NUMBERS)), shape.groups)


def _columns_call(kind: FoldKind, shape: FoldShape, target: Target, *, is_fetched: bool) -> FoldCall | None:
    """Blocks as wide as registers allow, of which memory is fetched in the rows that will be folded next."""
    lanes = kind.lanes(target)
    if shape.columns < lanes * ACCUMULATORS:
        return None
    vectors = vectors_across(shape.columns, lanes, target)
    blocks = -(-shape.columns // (lanes * vectors))
    rows_ahead = max(1, FETCHED_AHEAD // (lanes * vectors * kind.type.bytes))
    ahead = rows_ahead * shape.columns * kind.type.bytes if is_fetched else 0
    numbers = {"length": shape.length, "columns": shape.columns, "blocks": blocks, "ahead": ahead}
    call = LibraryCall(kind.name(COLUMNS), columns_name(kind, vectors), tuple(numbers[name] for name in NUMBERS))
    return FoldCall(call, shape.groups * blocks)


def _rows_library(kind: FoldKind) -> Library:
    name = kind.name(ROWS)
    return Library(name, (name,), partial(emit_rows, kind), codegen_level=_LEVEL)


def _columns_library(kind: FoldKind) -> Library:
    exports = tuple(columns_name(kind, vectors) for vectors in WIDTHS)
    return Library(kind.name(COLUMNS), exports, partial(emit_columns, kind), codegen_level=_LEVEL)


FOLD_LIBRARIES = {library.name: library for kind in KINDS for library in (_rows_library(kind), _columns_library(kind))}
"""By name."""
