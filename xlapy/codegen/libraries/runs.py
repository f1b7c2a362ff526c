"""Arrays that are put together from runs of neighbours of others: slices, joins, what stands between the elements of
other arrays, all in one call.

    copy_runs(table, begin, end)                    one row after the other
    copy_runs_side_by_side(table, begin, end)       some rows together
    copy_runs_by_pieces(table, begin, end)          one piece after the other, of which some may have short runs

A unit is a row of runs that lie one step apart, or one of each piece (`hlo/moved_runs.py`), if all have as many: what
is interleaved in the result is written together. If the rows beside a row come from closer together than its runs do,
some are copied side by side. The numbers of a call are the place of the result in the table, how
many pieces there are, and `PIECE` for each, in bytes where they are distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I8, I16, I32, I64, PTR, IRType, KernelBuilder, Module, Operand, Value
from xlapy.codegen.kernels.loop import streamed_bytes
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES, TASK_BYTES
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.moved_runs import Level, Piece, moved_runs, near_runs
from xlapy_runtime.records import Record

PIECE = (
    *("first_unit", "end_unit", "place", "source_start", "result_start", "run"),
    *("runs", "source_step", "result_step", "count", "inner_source", "inner_result", "outer_source", "outer_result"),
    *("ahead", "rows", "last_row", "outer_count", "outermost_source", "outermost_result"),
)
"""The units of the piece, the place of its array in the table, where it begins there and in the
result, bytes of a run, runs of a row and their distances, and digits of the number of a unit: the count of the
inner one, and its distances and those of the outer one. Then how far ahead of a run that one lies which is fetched
meanwhile, and how many rows are copied side by side, and the first one of the last of these, which may overlap those
before. (The count is that of rows side by side.) At last the count of the outer digit, and distances of one more."""

LEAST_RUN_BYTES = 64
"""Of shorter ones it matters that nobody knows how long they are."""

MOST_SHORT = 2
"""What part of an array may be made of shorter ones nevertheless, as borders are: an inverse."""

LEAST_BYTES_PER_SHORT_RUN = 16
"""Of an array that has some: each takes a nanosecond or two."""

LEAST_BYTES = 1 << 11
LEAST_ROW_BYTES, MOST_ROW_BYTES = 1 << 10, TASK_BYTES // 8
MOST_UNIT_BYTES = TASK_BYTES // 2
MOST_PIECES = 32
DIGITS = 3  # of the number of a unit

MOST_AHEAD = 8
"""Runs that come before one that is fetched already. Those that lie powers of two apart share the same places in the
nearest cache: of four times as many, the first ones are gone when they are copied (4 images of 512 by 8 heads of 64
bf16, in the last cache: 1.1 of the time)."""

_BY_ROWS, _SIDE_BY_SIDE, _BY_PIECES = "copy_runs", "copy_runs_side_by_side", "copy_runs_by_pieces"
_NUMBERS_PLACE, _FIRST_PLACE = 0, 3  # in the table of a library call
_FIRST_PIECE = 2  # among the numbers


class RunsCall(Record):
    """How the library puts an array together, and in how many units."""

    call: LibraryCall
    units: int


def call_of_runs(
    root: Instruction, operands: tuple[Instruction, ...], is_input: Callable[[Instruction], bool], target: Target
) -> RunsCall | None:
    """How the library makes `root` of operands, if it does."""
    size = root.shape.bytes if root.shape.is_array else 0
    if size < LEAST_BYTES:
        return None
    pieces = moved_runs(root, is_input, MOST_PIECES)
    if pieces is None:
        return None
    width = size // root.shape.size
    has_short = any(piece.run * width < LEAST_RUN_BYTES for piece in pieces)
    if not (_are_few_short(pieces, width, size) if has_short else size < streamed_bytes(target)):
        return None
    found = [_levels(piece, width, is_small=size <= target.l1_bytes) for piece in pieces]
    counts = [levels.units for levels in filter(None, found)]
    are_equal = len({*counts}) == 1
    numbers, first = [_FIRST_PLACE + len(operands), len(pieces)], 0
    for piece, levels in zip(pieces, found, strict=True):
        if levels is None or piece.source not in operands:
            return None
        outer, inner, row, run = levels.outer, levels.inner, levels.row, piece.run * width
        end = first + levels.units
        place = _FIRST_PLACE + operands.index(piece.source)
        numbers += [first, end, place, piece.source_start * width, piece.result_start * width, run]
        numbers += [row.count, row.source_step, row.result_step]
        numbers += [levels.blocks, inner.source_step, inner.result_step, outer.source_step, outer.result_step]
        numbers += [_ahead(run, inner if row.count == 1 else row), levels.rows, inner.count - levels.rows]
        numbers += [outer.count, levels.outermost.source_step, levels.outermost.result_step]
        first = 0 if are_equal else end
    units = counts[0] if are_equal else sum(counts)
    is_shared_out = units * TASK_BYTES >= size or size < PARALLEL_BYTES
    are_beside = any(levels.rows > 1 for levels in filter(None, found))
    if are_beside and has_short:
        return None
    name = _SIDE_BY_SIDE if are_beside else _BY_ROWS if are_equal and not has_short else _BY_PIECES
    return RunsCall(LibraryCall("runs", name, tuple(numbers)), units) if is_shared_out else None


def _are_few_short(pieces: Sequence[Piece], width: int, size: int) -> bool:
    """Whether the runs that are short are a small part of an array, and no lonely elements, which others load by
    vectors; but those that are whole arrays come one behind the other."""
    short = [piece for piece in pieces if piece.run * width < LEAST_RUN_BYTES]
    if any(piece.run == 1 and piece.levels and piece.levels[-1].source_step != 1 for piece in short):
        return False
    counts = [math.prod(level.count for level in piece.levels) for piece in short]
    short_bytes = width * sum(count * piece.run for count, piece in zip(counts, short, strict=True))
    return MOST_SHORT * short_bytes <= size and LEAST_BYTES_PER_SHORT_RUN * sum(counts) <= size


class _Levels(Record):
    """The digits of the number of a unit and the runs of a row, in bytes; so many `rows` of the inner digit are a
    unit."""

    outermost: Level
    outer: Level
    inner: Level
    row: Level
    rows: int

    @property
    def blocks(self) -> int:
        """Of rows side by side."""
        return -(-self.inner.count // self.rows)

    @property
    def units(self) -> int:
        return self.outermost.count * self.outer.count * self.blocks


def _levels(piece: Piece, width: int, *, is_small: bool) -> _Levels | None:
    """None if there are more levels. What `is_small` stays in the nearest cache, in whatever order it is read."""
    levels = [Level(level.count, level.source_step * width, level.result_step * width) for level in piece.levels]
    alone, run = Level(1, 0, 0), piece.run * width
    if levels:
        row = levels.pop()
        part = _part_of_row(row.count, run)
        if part < row.count:
            levels.append(Level(row.count // part, part * row.source_step, part * row.result_step))
        levels.append(replace(row, count=part) if part > 1 else alone)
    *digits, row = [alone] * (DIGITS + 1 - len(levels)) + levels
    if len(digits) > DIGITS:
        return None
    near = None if is_small or run < LEAST_RUN_BYTES else near_runs(run, row, digits)
    if near is None:
        return _Levels(digits[0], digits[1], digits[2], row, 1)
    place, rows = near
    inner = digits.pop(place)
    return _Levels(digits[0], digits[1], inner, row, rows)


def _part_of_row(count: int, run: int) -> int:
    """How many of so many runs are a row: all, or a divisor, unless that leaves too little."""
    parts = (part for part in range(min(MOST_ROW_BYTES // run, count), 0, -1) if count % part == 0)
    part = next(parts, 1)
    is_little = part * run < LEAST_ROW_BYTES and count * run <= MOST_UNIT_BYTES
    return count if is_little else part


def _ahead(run: int, level: Level) -> int:
    """Runs that come some time later, by the steps of a level: processors follow what lies in line, not what skips.
    Nothing behind the level, whose last run is followed by what lies beside its first one."""
    runs = min(-(-FETCHED_AHEAD // run), MOST_AHEAD)
    return runs * level.source_step if runs < level.count else 0


def emit_runs(target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    for name, copy in (
        (_BY_ROWS, partial(_copy_units, copy=_copy_row)),
        (_SIDE_BY_SIDE, partial(_copy_units, copy=_copy_rows)),
        (_BY_PIECES, _copy_pieces),
    ):
        with KernelBuilder(module, name, parameters, None, attributes=attributes, joins_offsets=True) as k:
            copy(k)
    return module


RUN_LIBRARIES = {"runs": Library("runs", (_BY_ROWS, _SIDE_BY_SIDE, _BY_PIECES), emit_runs)}

_Copy = Callable[[KernelBuilder, dict[str, Value], Value, Value], None]
_CopyRun = Callable[[KernelBuilder, dict[str, Value], Value, Value], None]


def _copy_units(k: KernelBuilder, copy: _Copy) -> None:
    """Copies a range of units, by `copy` what each piece has of one."""
    numbers = _pointer(k, _NUMBERS_PLACE)
    goal = _pointer(k, _number(k, numbers, 0))
    count = _number(k, numbers, 1)
    with k.loop(k.parameters["begin"], k.parameters["end"]) as units, k.loop(0, count) as pieces:
        facts = k.gep(numbers, k.add(k.mul(pieces.index, len(PIECE)), _FIRST_PIECE), I64.bytes)
        first, end = _number(k, facts, 0), _number(k, facts, 1)
        with k.if_(k.and_(k.compare("le", first, units.index), k.compare("lt", units.index, end))):
            piece = {name: _number(k, facts, number) for number, name in enumerate(PIECE)}
            copy(k, piece, k.sub(units.index, first), goal)


def _copy_pieces(k: KernelBuilder) -> None:
    """Copies a range of units, all that are of one piece before those of another: how long its runs are is looked at
    once."""
    numbers = _pointer(k, _NUMBERS_PLACE)
    goal = _pointer(k, _number(k, numbers, 0))
    count = _number(k, numbers, 1)
    with k.loop(0, count) as pieces:
        facts = k.gep(numbers, k.add(k.mul(pieces.index, len(PIECE)), _FIRST_PIECE), I64.bytes)
        piece = {name: _number(k, facts, number) for number, name in enumerate(PIECE)}
        copies: list[tuple[int, _CopyRun]] = [(LEAST_RUN_BYTES, _copy_run)]
        for word in _WORDS:
            copies += [(_size(word) + 1, partial(_copy_words, word)), (_size(word), partial(_copy_word, word))]
        _choose(k, piece["run"], [(least, partial(_copy_units_of, k, piece, goal, copy)) for least, copy in copies])


def _choose(k: KernelBuilder, size: Value, choices: Sequence[tuple[int, Callable[[], None]]]) -> None:
    """Runs the first one of which a size is no less than it must be; the last one of any size."""
    (least, chosen), *others = choices
    if others:
        k.if_else(k.compare("ge", size, least), chosen, partial(_choose, k, size, others))
    else:
        chosen()


def _copy_units_of(k: KernelBuilder, piece: dict[str, Value], goal: Value, copy_run: _CopyRun) -> None:
    """Copies those of a range of units that are of a piece."""
    first, end, count = piece["first_unit"], piece["end_unit"], piece["count"]
    begin = k.sub(k.smax(k.parameters["begin"], first), first)
    end = k.sub(k.smin(k.parameters["end"], end), first)
    with (
        k.if_(k.compare("lt", begin, end)),
        k.loop(k.udiv(begin, count), k.udiv(k.add(end, k.sub(count, 1)), count)) as rest,
    ):
        before = k.mul(rest.index, count)
        outside = _outside(k, piece, rest.index, goal)
        with k.loop(k.smax(k.sub(begin, before), 0), k.smin(k.sub(end, before), count)) as inner:
            starts = _moved(k, piece, outside, inner.index, "inner_")
            with k.loop(0, piece["runs"]) as runs:
                copy_run(k, piece, *_moved(k, piece, starts, runs.index, ""))


def _copy_words(word: IRType, k: KernelBuilder, piece: dict[str, Value], own: Value, to: Value) -> None:
    """Copies a run of which two words may overlap."""
    last = k.sub(piece["run"], _size(word))
    words = [k.load(place, word, 1) for place in (own, k.gep(own, last))]
    for place, value in zip((to, k.gep(to, last)), words, strict=True):
        k.store(place, value, 1)


def _copy_word(word: IRType, k: KernelBuilder, piece: dict[str, Value], own: Value, to: Value) -> None:
    """Copies a run that is one word."""
    k.store(to, k.load(own, word, 1), 1)


def _size(word: IRType) -> int:
    return word.bytes * word.lanes


_WORDS = (I8.with_lanes(32), I8.with_lanes(16), I64, I32, I16, I8)


def _copy_row(k: KernelBuilder, piece: dict[str, Value], unit: Value, goal: Value) -> None:
    rest, inner = _digit(k, unit, piece["count"])
    starts = _starts(k, piece, rest, inner, goal)
    with k.loop(0, piece["runs"]) as runs:
        _copy_run(k, piece, *_moved(k, piece, starts, runs.index, ""))


def _copy_rows(k: KernelBuilder, piece: dict[str, Value], unit: Value, goal: Value) -> None:
    rest, block = _digit(k, unit, piece["count"])
    starts = _starts(k, piece, rest, k.smin(k.mul(block, piece["rows"]), piece["last_row"]), goal)
    with k.loop(0, piece["runs"]) as runs:
        firsts = _moved(k, piece, starts, runs.index, "")
        with k.loop(0, piece["rows"]) as rows:
            _copy_run(k, piece, *_moved(k, piece, firsts, rows.index, "inner_"))


_Places = tuple[Value, Value]
"""Where something comes from, and where it goes."""


def _digit(k: KernelBuilder, number: Value, count: Value) -> tuple[Value, Value]:
    """A number without its last digit, and that."""
    rest = k.udiv(number, count)
    return rest, k.sub(number, k.mul(rest, count))


def _starts(k: KernelBuilder, piece: dict[str, Value], rest: Value, inner: Value, goal: Value) -> _Places:
    """Where a unit begins, whose number has these digits."""
    return _moved(k, piece, _outside(k, piece, rest, goal), inner, "inner_")


def _outside(k: KernelBuilder, piece: dict[str, Value], rest: Value, goal: Value) -> _Places:
    """Where the units begin whose numbers have this in front of the inner digit."""
    places = k.gep(_pointer(k, piece["place"]), piece["source_start"]), k.gep(goal, piece["result_start"])
    outermost, outer = _digit(k, rest, piece["outer_count"])
    return _moved(k, piece, _moved(k, piece, places, outermost, "outermost_"), outer, "outer_")


def _moved(k: KernelBuilder, piece: dict[str, Value], places: _Places, number: Value, level: str) -> _Places:
    """Places so many steps of a level later; runs are the level without a name."""
    source, result = places
    names = (f"{level}source", f"{level}result") if level else ("source_step", "result_step")
    return k.gep(source, k.mul(number, piece[names[0]])), k.gep(result, k.mul(number, piece[names[1]]))


def _copy_run(k: KernelBuilder, piece: dict[str, Value], own: Value, to: Value) -> None:
    last = k.sub(piece["run"], LEAST_RUN_BYTES)
    with k.loop(0, last, LEAST_RUN_BYTES) as at:
        _copy_line(k, k.gep(own, at.index), k.gep(to, at.index), piece["ahead"])
    _copy_line(k, k.gep(own, last), k.gep(to, last), piece["ahead"])


def _copy_line(k: KernelBuilder, source: Value, goal: Value, ahead: Value) -> None:
    k.prefetch(k.gep(source, ahead), LEAST_RUN_BYTES)
    k.store(goal, k.load(source, I8.with_lanes(LEAST_RUN_BYTES)))


def _pointer(k: KernelBuilder, place: Operand) -> Value:
    return k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR)


def _number(k: KernelBuilder, numbers: Value, place: int) -> Value:
    return k.load(k.gep(numbers, place, I64.bytes), I64)
