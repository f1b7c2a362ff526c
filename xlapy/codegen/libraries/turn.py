"""Transposes by square blocks, as `kernels.transpose` plans them, for any sizes and distances.

    turn_WIDTH          elements of 1, 2, 4 or 8 bytes, whatever they mean

A unit is a strip of some columns of one matrix; matrices lie at the places that `LEVELS` digits of their number say.
Only what turns several short dimensions at once is compiled with its program.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xlapy.codegen.ir import F32, F64, I8, I16, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.transpose import TransposePlan, block_lanes, square_side, strides_of
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.target import Target

LEVELS = 3

NUMBERS = (
    *("rows_of_squares", "columns", "rows", "source_row", "result_column", "source_start", "result_start"),
    *(f"{name}{level}" for level in range(LEVELS) for name in ("count", "source_step", "result_step")),
)
"""By name, in order: strips of a matrix, its size, and distances in bytes: between its rows, of the columns that become
rows of the result, of the first matrix, and from one to the next along each digit of their number, outermost first."""

_NUMBERS_PLACE, _SOURCE_PLACE, _RESULT_PLACE = 0, 3, 4  # in the table of a library call
_RANGE = [("table", PTR), ("begin", I64), ("end", I64)]
_TYPES = {1: I8, 2: I16, 4: F32, 8: F64}
"""Elements by their width: only moved, as what vectors of that width are shuffled as anyway."""

_NEXT_TO_EACH_OTHER = 4
"""Rows that are found from one address, by multiples of their distance that stay in registers."""


def call_of_transpose(plan: TransposePlan, width: int) -> LibraryCall | None:
    """How the library runs a transpose of elements so wide, if it does."""
    outer = [dim for dim in range(len(plan.dims)) if dim not in (*plan.fast, plan.slow)]
    if len(plan.fast) > 1 or len(outer) > LEVELS or width not in _TYPES:
        return None
    (fast,), dims = plan.fast, plan.dims
    sources = [stride * width for stride in strides_of(dims)]
    results = _result_steps(plan, width)
    values = {
        "rows_of_squares": plan.rows_of_squares,
        "columns": dims[fast],
        "rows": dims[plan.slow],
        "source_row": sources[plan.slow],
        "result_column": results[fast],
        "source_start": 0,
        "result_start": -sum((dims[dim] - 1) * results[dim] for dim in plan.reversed),
    }
    for level, dim in enumerate(outer, start=LEVELS - len(outer)):
        values |= {f"count{level}": dims[dim], f"source_step{level}": sources[dim], f"result_step{level}": results[dim]}
    missing = {f"count{level}": 1 for level in range(LEVELS)}
    numbers = missing | values
    return LibraryCall(f"turn_{width}", f"turn_{width}", tuple(numbers.get(name, 0) for name in NUMBERS))


def _result_steps(plan: TransposePlan, width: int) -> list[int]:
    """From one element of each dimension of the operand to the next, in the result; backwards where it is reversed."""
    strides = strides_of([plan.dims[dim] for dim in plan.permutation])
    signs = [-1 if dim in plan.reversed else 1 for dim in range(len(plan.dims))]
    return [sign * width * strides[plan.permutation.index(dim)] for dim, sign in enumerate(signs)]


def emit_turn(width: int, target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, f"turn_{width}", _RANGE, None, attributes=attributes) as k:
        _TurnEmitter(k, _TYPES[width], block_lanes(width, target), square_side(width, target)).emit()
    return module


TURN_LIBRARIES = {
    f"turn_{width}": Library(f"turn_{width}", (f"turn_{width}",), partial(emit_turn, width)) for width in _TYPES
}
"""By name."""


class _TurnEmitter:
    """Writes the function for one width."""

    def __init__(self, k: KernelBuilder, type: IRType, lanes: int, square: int) -> None:
        self._k = k
        self._block = type.with_lanes(lanes)
        self._width = type.bytes
        self._square = square
        numbers, self._source, self._result = (
            k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)
            for place in (_NUMBERS_PLACE, _SOURCE_PLACE, _RESULT_PLACE)
        )
        self._numbers = {
            name: k.load(k.gep(numbers, number, I64.bytes), I64, hoistable=True) for number, name in enumerate(NUMBERS)
        }

    def emit(self) -> None:
        k, numbers = self._k, self._numbers
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            matrix = k.udiv(units.index, numbers["rows_of_squares"])
            strip = k.sub(units.index, k.mul(matrix, numbers["rows_of_squares"]))
            source, result = self._matrix(matrix)
            first = k.mul(strip, self._square)
            last = k.smin(k.add(first, self._square), numbers["columns"])
            with k.loop(0, numbers["rows"], self._square) as across:
                edge = k.smin(k.add(across.index, self._square), numbers["rows"])
                self._turn_square(source, result, (first, last), (across.index, edge))

    def _matrix(self, number: Value) -> tuple[Value, Value]:
        """Where a matrix is, and where it goes."""
        k, numbers = self._k, self._numbers
        source, result = k.gep(self._source, numbers["source_start"]), k.gep(self._result, numbers["result_start"])
        for level in reversed(range(LEVELS)):
            rest = k.udiv(number, numbers[f"count{level}"])
            digit = k.sub(number, k.mul(rest, numbers[f"count{level}"]))
            source = k.gep(source, k.mul(digit, numbers[f"source_step{level}"]))
            result = k.gep(result, k.mul(digit, numbers[f"result_step{level}"]))
            number = rest
        return source, result

    def _turn_square(
        self, source: Value, result: Value, columns: tuple[Value, Value], rows: tuple[Value, Value]
    ) -> None:
        """The blocks of a square; the last ones of a matrix overlap those before them."""
        k, numbers, lanes = self._k, self._numbers, self._block.lanes
        with k.loop(*columns, lanes) as across:
            column = k.smin(across.index, k.sub(numbers["columns"], lanes))
            column_of_source = k.gep(source, column, self._width)
            row_of_result = k.gep(result, k.mul(column, numbers["result_column"]))
            with k.loop(*rows, lanes) as down:
                row = k.smin(down.index, k.sub(numbers["rows"], lanes))
                place = k.gep(column_of_source, k.mul(row, numbers["source_row"]))
                lines = [k.load(line, self._block) for line in self._lines(place, numbers["source_row"])]
                turned = transposed(k, lines)  # all of them first: stores in a row are 5 % faster in large arrays
                goals = self._lines(k.gep(row_of_result, row, self._width), numbers["result_column"])
                for goal, line in zip(goals, turned, strict=True):
                    k.store(goal, line)

    def _lines(self, first: Value, distance: Value) -> Sequence[Value]:
        """The addresses of as many lines as a block has, so far apart."""
        k, lines = self._k, []
        for line in range(self._block.lanes):
            near = line % _NEXT_TO_EACH_OTHER
            if line and not near:
                first = k.gep(first, k.mul(distance, _NEXT_TO_EACH_OTHER))
            lines.append(k.gep(first, k.mul(distance, near)))
        return lines
