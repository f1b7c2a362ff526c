"""Folds of large arrays by one operation: sums, products and extrema of rows and of columns, and sums that are norms,
products and distances.

    fold_rows_OPCODE_TYPE          each row by vectors along it
    fold_columns_OPCODE_TYPE.N     N vectors of neighbouring columns side by side
    fold_columns_OPCODE_TYPE.wide  several rows of many columns: what is in memory, or in long rows
    fold_rows_add_TYPE_square      the same with a map of the elements (`fold_maps`)

They divide sums of floats by a number, if there is one.

What else is made from the elements before they are folded, or from the results, is compiled with its program
(`kernels.reduce`), and so are small arrays and short rows, where it counts that a kernel knows its sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.reduce import ACCUMULATORS, bytes_of_arrays, vectors_across
from xlapy.codegen.kernels.wide_blocks import PAGE_BYTES, is_in_memory, vectors_of_block
from xlapy.codegen.libraries import FIRST_ARRAY, SCRATCH_PLACE, Library, LibraryCall
from xlapy.codegen.libraries.fold_columns import COLUMNS, columns_name, emit_columns, wide_name, widths_of
from xlapy.codegen.libraries.fold_plan import KINDS, PlainFold, bits_of, plain_fold
from xlapy.codegen.libraries.fold_problem import NUMBERS, FoldKind
from xlapy.codegen.libraries.fold_rows import ROWS, emit_rows, rows_together
from xlapy.codegen.registers import register_type
from xlapy.codegen.stopping import LONG
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Computation, Instruction
from xlapy.support.records import Record

LEAST_SIZE = 1 << 15  # elements that take microseconds to fold
LEAST_ROW = 1 << 7  # elements of a row beside which it does not count that its length is a number
LEAST_SMALL_ROW = 1 << 5  # the same where it counts little how fast a fold is, unless it is the only row


class FoldCall(Record):
    """How a library computes a fold: by which function, in how many units, and how many of them side by side."""

    call: LibraryCall
    units: int
    together: int = 1


def call_of_reduce(reduce: Instruction, target: Target, *, is_small: bool = False) -> FoldCall | None:
    """How a library computes a reduce, if one does. One that `is_small` is so little of what a program does that it
    hardly matters how fast it is."""
    fold = plain_fold(reduce, lambda source: source is reduce.operands[0])
    result = FIRST_ARRAY + len(reduce.operands)
    return None if fold is None else _call(fold, target, lambda _: FIRST_ARRAY, result, is_small=is_small)


def call_of_fusion(computation: Computation, target: Target, *, is_small: bool = False) -> FoldCall | None:
    """The same for a fused computation that is nothing but a fold."""
    fold = _fold_of(computation)
    if fold is None:
        return None
    result = FIRST_ARRAY + len(computation.parameters)
    return _call(fold, target, _place_in(computation), result, is_small=is_small)


def call_of_first_step(first: Computation, target: Target) -> FoldCall | None:
    """The same, with the results in scratch memory."""
    return call_of_step(first, first.root, target)


def call_of_step(
    computation: Computation, root: Instruction, target: Target, *, is_small: bool = False
) -> FoldCall | None:
    """The same of a fold in a fused computation, of which `root` is the result."""
    fold = plain_fold(root, lambda source: source.opcode == "parameter")
    return None if fold is None else _call(fold, target, _place_in(computation), SCRATCH_PLACE, is_small=is_small)


def calls_of_steps(first: Computation, second: Computation, target: Target) -> tuple[FoldCall, LibraryCall] | None:
    """How libraries compute a fold in two steps, if both are such; what is between them is in scratch memory."""
    call, last, operands = call_of_first_step(first, target), _fold_of(second), len(first.parameters)
    if call is None or last is None or last.columns > 1 or last.groups > 1:
        return None
    if [source.attributes["number"] for source in last.sources] != [operands] or last.each is not None:
        return None
    numbers = _numbers(last, lambda _: SCRATCH_PLACE, FIRST_ARRAY + operands)
    return call, _rows_call(last, numbers, is_fetched=False)


def _fold_of(computation: Computation) -> PlainFold | None:
    return plain_fold(computation.root, lambda source: source.opcode == "parameter")


Place = Callable[[Instruction], int]
"""Where an array is in the table."""


def _place_in(computation: Computation) -> Place:
    return lambda array: FIRST_ARRAY + computation.parameters.index(array)


def _call(fold: PlainFold, target: Target, place: Place, result: int, *, is_small: bool = False) -> FoldCall | None:
    """The call for arrays at places in the table."""
    if fold.length >= LONG or not (is_small or fold.size >= LEAST_SIZE):
        return None
    read = bytes_of_arrays(fold.arrays)
    is_fetched = read > target.l2_bytes
    numbers = _numbers(fold, place, result)
    if fold.columns > 1:
        is_far = is_in_memory(read, target) or (is_fetched and _has_long_rows(fold))
        return _columns_call(fold, numbers, target, is_far=is_far, is_fetched=is_fetched, is_small=is_small)
    least = LEAST_ROW if not is_small else LEAST_SMALL_ROW if fold.groups > 1 else 1
    if fold.length < least:
        return None
    together = rows_together(fold.kind, target) if is_fetched else 1
    return FoldCall(_rows_call(fold, numbers, is_fetched=is_fetched), fold.groups, together)


def _has_long_rows(fold: PlainFold) -> bool:
    """Whether rows are worth to be read from end to end in the last cache, too: 1.1 to 1.5 times as fast then (one core
    of a Zen 3), but as slow or slower where they are shorter, or begin in the middle of lines."""
    row_bytes = fold.columns * fold.kind.type.bytes
    return row_bytes >= 2 * PAGE_BYTES and row_bytes % CACHE_LINE == 0


def _numbers(fold: PlainFold, place: Place, result: int) -> dict[str, int]:
    places = {"input": place(fold.sources[0]), "other": place(fold.sources[-1]), "result": result}
    each = {"each": place(fold.each or fold.sources[0]), "each_step": fold.each_step}
    constants = {"init": fold.init, "constant": fold.constant}
    bits = {
        name: bits_of(constant.attributes["literal"].scalar(), fold.kind.type)
        for name, constant in constants.items()
        if constant is not None
    }
    if fold.divisor is not None:
        bits["divisor"] = bits_of(fold.divisor, fold.kind.type)
    return {**places, **each, **bits, "length": fold.length, "columns": fold.columns}


def _rows_call(fold: PlainFold, numbers: dict[str, int], *, is_fetched: bool) -> LibraryCall:
    name = fold.kind.name(ROWS)
    return _numbered(name, name, {**numbers, "ahead": FETCHED_AHEAD if is_fetched else 0})


def _columns_call(
    fold: PlainFold,
    numbers: dict[str, int],
    target: Target,
    *,
    is_far: bool,
    is_fetched: bool,
    is_small: bool,
) -> FoldCall | None:
    """What is in memory or in long rows, by wide blocks; anything else by blocks as wide as registers allow, of which
    is fetched what lies in the rows that will be folded next."""
    kind, lanes = fold.kind, fold.kind.lanes(target)
    if fold.columns < lanes * ACCUMULATORS or (fold.each is not None and not fold.each_step):
        return None
    if fold.each is not None and fold.divisor is not None and not is_fetched and not is_small:
        return None  # a kernel that knows its sizes takes five sixths of the time for variances in a near cache
    if is_far:
        lanes = kind.lanes_of_memory(target)
        sizes = kind.type.bytes, register_type(kind.type).bytes
        vectors, function, ahead = vectors_of_block(fold.columns, lanes, fold.groups, *sizes), wide_name(kind), 0
    else:
        *wide, _ = widths_of(kind)
        vectors = vectors_across(fold.columns, lanes, target, wide)
        rows_ahead = max(1, FETCHED_AHEAD // (lanes * vectors * kind.type.bytes))
        function, ahead = columns_name(kind, vectors), rows_ahead * fold.columns * kind.type.bytes
    blocks = -(-fold.columns // (lanes * vectors))
    numbers = {**numbers, "blocks": blocks, "width": vectors, "ahead": ahead if is_fetched else 0}
    return FoldCall(_numbered(kind.name(COLUMNS), function, numbers), fold.groups * blocks)


def _numbered(library: str, function: str, numbers: dict[str, int]) -> LibraryCall:
    return LibraryCall(library, function, tuple(numbers.get(name, 0) for name in NUMBERS))


def _rows_library(kind: FoldKind) -> Library:
    name = kind.name(ROWS)
    return Library(name, (name,), partial(emit_rows, kind))


def _columns_library(kind: FoldKind) -> Library:
    exports = (*(columns_name(kind, vectors) for vectors in widths_of(kind)), wide_name(kind))
    return Library(kind.name(COLUMNS), exports, partial(emit_columns, kind))


FOLD_LIBRARIES = {library.name: library for kind in KINDS for library in (_rows_library(kind), _columns_library(kind))}
"""By name."""
