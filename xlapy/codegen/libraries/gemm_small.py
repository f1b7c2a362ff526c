"""Small matrices, one or a batch, each computed by one thread, with as little as possible decided for each of them.

What tiles there are, and what has to be packed, is the same for all matrices of a batch. So a thread finds that out
once for the range that it was given, and goes from tile to tile:

    for each matrix, for each strip of B: pack it, unless tiles can read it where it lies, or all have the same
        for each tile of the strip: C[rows, strip] += A[rows] B[strip]

The rows of a matrix are shared out evenly among tiles, as long as they are equally far apart. A narrow type's are
widened first, all at once, and its sums rounded in the end.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I1, I64, PTR, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_panels import GemmPanels
from xlapy.codegen.libraries.gemm_problem import (
    PROBLEM,
    RANGE,
    ceil_div,
    depth_of,
    row_pitch,
    strip_bytes,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import COLUMN_PARAMETERS, TILE_PARAMETERS, column_of
from xlapy.codegen.libraries.scratch import Scratch, acquire_scratch, release_scratch
from xlapy.support.records import Record

_MOST_WORK = 1 << 17
"""Multiplications of a matrix. With more, what is decided for it takes no time to speak of."""

_PARTS_OF_CACHE = 4
"""Of the bytes of a second-level cache, one of which is no less than the multiplications of a matrix: near caches hold
all of it then, wherever its rows lie."""


class _Cut(Record):
    """What all matrices of a batch have in common: the real columns of a strip, and the tables of tiles; whether strips
    of B are packed, all of them beforehand, as all matrices have the same, and how far apart; whether rows of A are
    kept by rows, and these equally far apart throughout; whether something is left to do with the sums, and whether
    they are added to what is there; scratch memory for what is packed, and for sums, if C is not where they are made.
    """

    columns: Value
    tiles: Value
    wide_tiles: Value
    packs_b: Value
    is_shared: Value
    next_strip: Value
    keeps_rows: Value
    has_equal_rows: Value
    finishes: Value
    adds: Value
    room_of_a: Value
    room_of_b: Value
    sums: Value
    sums_row: Value


class _Rows(Record):
    """The left side as tiles read it: where it is, and the bytes from row to row, and from step to step."""

    place: Value
    row: Value
    step: Value


class GemmSmall(GemmPanels):
    """Writes the function that computes some small matrices, and what decides for it."""

    def _has_small_matrices(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether each matrix is small."""
        work = k.mul(k.mul(problem["m"], problem["n"]), problem["k"])
        conditions = [
            k.compare("le", work, min(_MOST_WORK, self._target.l2_bytes // _PARTS_OF_CACHE)),
            k.compare("le", problem["k"], self._chunk_steps),
            k.not_(self._is_packed_before(k, problem)),
        ]
        return functools.reduce(k.and_, conditions)

    def _can_read_b(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether tiles can read B where it lies."""
        if not self._kind.is_packed_in_memory:
            return k.const(I1, 0)
        is_row = k.compare("eq", problem["b_column"], self._element_bytes)
        if self._shape.has_masks:
            return is_row
        has_whole_vectors = k.compare("eq", k.and_(problem["n"], self._shape.lanes - 1), 0)
        return k.or_(k.and_(is_row, has_whole_vectors), self._is_packed_before(k, problem))

    def _run_small(self, k: KernelBuilder, problem: RecordValue) -> None:
        each = k.mul(k.mul(problem["m"], problem["n"]), work_per_element(k, problem, problem["k"]))
        grain = self._grain(k, problem["batches"], each)
        function = k.function_pointer(f"{self._prefix}_small")
        k.call(k.parameters["parallel"], [function, problem.place, problem["batches"], grain])

    def small(self) -> None:
        """A range of the batch."""
        with self._function("small", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            scratch, cut = self._cut_of_small(k, problem)
            self._pack_shared_strips(k, problem, cut)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as batch:
                self._small_matrix(k, problem, cut, batch.index)
            release_scratch(k, scratch)

    def _cut_of_small(self, k: KernelBuilder, problem: RecordValue) -> tuple[Scratch, _Cut]:
        kind, shape = self._kind, self._shape
        m, n = problem["m"], problem["n"]
        packs_b = k.not_(self._can_read_b(k, problem))
        columns, wide = k.const(I64, shape.columns), problem["wide_tiles"]
        has_wide = k.and_(k.compare("ne", wide, k.const(PTR, 0)), k.not_(packs_b))
        for rows, vectors in reversed(shape.wide):
            fits = k.and_(has_wide, k.compare("le", m, rows // kind.parts))
            columns = k.select(fits, k.const(I64, vectors * shape.lanes), columns)
        steps = self._steps(k, problem["k"])
        uses_scratch = k.compare("ne", problem["uses_scratch"], 0)
        is_shared = k.and_(packs_b, k.compare("eq", problem["b_batch"], 0))
        strip = strip_bytes(k, steps, shape.columns * kind.packed.bytes)
        of_b = k.select(packs_b, k.select(is_shared, k.mul(ceil_div(k, n, shape.columns), strip), strip), 0)
        of_a = self._bytes_of_small_rows(k, problem, steps)
        sums_row = k.mul(n, kind.accumulator.bytes)
        of_sums = k.select(uses_scratch, k.mul(m, sums_row), 0)
        scratch = acquire_scratch(k, k.add(k.add(of_a, of_b), of_sums))
        room_of_a = k.gep(scratch.memory, of_b)
        has_epilogue = k.compare("ne", problem["epilogue"], k.const(PTR, 0))
        keeps_rows = k.compare("eq", problem["a_step"], self._element_bytes)
        cut = _Cut(
            columns=columns,
            tiles=k.function_pointer(f"{self._prefix}_tiles"),
            wide_tiles=wide,
            packs_b=packs_b,
            is_shared=is_shared,
            next_strip=k.select(is_shared, strip, 0),
            keeps_rows=keeps_rows,
            has_equal_rows=k.const(I1, 1) if kind.is_packed_in_memory else keeps_rows,
            finishes=k.or_(uses_scratch, has_epilogue),
            adds=k.select(uses_scratch, 0, problem["accumulate"]),
            room_of_a=room_of_a,
            room_of_b=scratch.memory,
            sums=k.select(uses_scratch, k.gep(room_of_a, of_a), k.const(PTR, 0)),
            sums_row=k.select(uses_scratch, sums_row, problem["c_row"]),
        )
        return scratch, cut

    def _bytes_of_small_rows(self, k: KernelBuilder, problem: RecordValue, steps: Value) -> Value:
        """Room for rows that are widened, however they lie."""
        kind = self._kind
        if kind.is_packed_in_memory:
            return k.const(I64, 0)
        kept = k.mul(problem["m"], row_pitch(k, steps, kind.packed.bytes))
        strips = ceil_div(k, problem["m"], self._tile_rows)
        return k.smax(kept, k.mul(strips, strip_bytes(k, steps, self._shape.rows * kind.packed.bytes)))

    def _small_matrix(self, k: KernelBuilder, problem: RecordValue, cut: _Cut, batch: Value) -> None:
        """One of them, strip by strip."""
        kind, shape = self._kind, self._shape
        a, b, c = (k.gep(problem[name], k.mul(batch, problem[f"{name}_batch"])) for name in "abc")
        depth = depth_of(k, problem, batch, problem["k"])
        rows = self._small_rows(k, problem, cut, a, depth)
        sums = k.select(k.compare("eq", cut.sums, k.const(PTR, 0)), c, cut.sums)
        n, packed_step = problem["n"], k.const(I64, shape.columns * kind.packed.bytes)
        with k.loop(0, n, cut.columns) as column:
            columns = k.smin(k.sub(n, column.index), cut.columns)
            here = k.gep(b, k.mul(self._whole_columns(k, column.index), problem["b_column"]))

            def packed(here: Value = here, columns: Value = columns, column: Value = column.index) -> list[Value]:
                room = k.gep(cut.room_of_b, k.mul(k.udiv(column, shape.columns), cut.next_strip))
                with k.if_(k.not_(cut.is_shared)):
                    self._pack_small_strip(k, problem, depth, here, columns, room)
                return [room, packed_step]

            def as_it_lies(here: Value = here) -> list[Value]:
                return [here, problem["b_step"]]

            strip = k.if_else(cut.packs_b, packed, as_it_lies)
            place = k.gep(sums, column.index, kind.accumulator.bytes)
            self._small_strip(k, problem, cut, rows, strip, columns, place, self._steps(k, depth))
        with k.if_(cut.finishes):
            zero = k.const(I64, 0)
            k.call(f"{self._prefix}_finish", [problem.place, sums, cut.sums_row, batch, zero, problem["m"], zero, n])

    def _pack_small_strip(
        self, k: KernelBuilder, problem: RecordValue, depth: Value, place: Value, columns: Value, room: Value
    ) -> None:
        k.call(f"{self._prefix}_pack_b", [depth, place, problem["b_column"], problem["b_step"], columns, room])

    def _pack_shared_strips(self, k: KernelBuilder, problem: RecordValue, cut: _Cut) -> None:
        """All strips of the only right side that there is."""
        n, width = problem["n"], self._shape.columns
        with k.if_(cut.is_shared), k.loop(0, n, width) as column:
            place = k.gep(problem["b"], k.mul(self._whole_columns(k, column.index), problem["b_column"]))
            room = k.gep(cut.room_of_b, k.mul(k.udiv(column.index, width), cut.next_strip))
            self._pack_small_strip(k, problem, problem["k"], place, k.smin(k.sub(n, column.index), width), room)

    def _small_rows(self, k: KernelBuilder, problem: RecordValue, cut: _Cut, a: Value, depth: Value) -> _Rows:
        """The left side, widened if it has to be: as it is by rows, or else turned round, strip by strip."""
        kind, shape = self._kind, self._shape
        across, along, m = problem["a_row"], problem["a_step"], problem["m"]
        if kind.is_packed_in_memory:
            return _Rows(a, across, along)
        steps = self._steps(k, depth)

        def kept() -> list[Value]:
            pitch = row_pitch(k, steps, kind.packed.bytes)
            k.call(f"{self._prefix}_copy_rows", [depth, a, across, along, m, cut.room_of_a, pitch])
            return [pitch, k.const(I64, kind.packed.bytes)]

        def turned() -> list[Value]:
            strip = strip_bytes(k, steps, shape.rows * kind.packed.bytes)
            with k.loop(0, m, shape.rows) as row:
                goal = k.gep(cut.room_of_a, k.mul(k.udiv(row.index, shape.rows), strip))
                valid = k.smin(k.sub(m, row.index), shape.rows)
                source = k.gep(a, k.mul(across, row.index))
                k.call(f"{self._prefix}_pack_a", [depth, source, across, along, valid, goal])
            return [k.const(I64, kind.packed.bytes), k.const(I64, shape.rows * kind.packed.bytes)]

        return _Rows(cut.room_of_a, *k.if_else(cut.keeps_rows, kept, turned))

    def _small_strip(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        cut: _Cut,
        rows: _Rows,
        strip: list[Value],
        columns: Value,
        place: Value,
        steps: Value,
    ) -> None:
        """The tiles of one strip, one below the other."""
        kind, shape, m = self._kind, self._shape, problem["m"]
        vectors = k.lshr(k.add(columns, shape.lanes - 1), shape.lanes.bit_length() - 1)
        is_edge = k.zext(k.compare("lt", columns, cut.columns), I64)
        number = k.sub(k.add(k.mul(is_edge, shape.most_vectors), vectors), 1)
        table = k.select(k.compare("gt", vectors, shape.vectors), cut.wide_tiles, cut.tiles)
        functions = k.gep(table, k.mul(number, shape.rows), PTR.bytes)
        b, b_step = strip
        to_next = k.mul(rows.row, self._tile_rows)
        if not kind.is_packed_in_memory:
            turned_strip = strip_bytes(k, steps, shape.rows * kind.packed.bytes)
            to_next = k.select(cut.keeps_rows, to_next, turned_strip)

        def arguments(a: Value, goal: Value) -> list[Value]:
            given = [steps, a, rows.row, rows.step, b, b_step, goal, cut.sums_row, columns, cut.adds]
            return [*given, goal, cut.sums_row, b, k.const(I64, 0), k.const(I64, 1), k.const(I64, 0)]

        is_usual = k.and_(k.compare("eq", is_edge, 0), k.compare("eq", vectors, shape.vectors))
        count = k.select(is_usual, self._tiles_of_small_column(k, cut, m), 0)
        with k.if_(k.compare("gt", count, 0)):
            given = [*arguments(rows.place, place), count, to_next, k.const(I64, 0)]
            assert len(given) == len(COLUMN_PARAMETERS)
            k.call(column_of(shape).name(kind), given)
        first = k.mul(count, self._tile_rows)
        start = [first, k.gep(rows.place, k.mul(to_next, count)), k.gep(place, k.mul(cut.sums_row, first))]
        left = k.sub(m, first)
        height = k.select(
            cut.has_equal_rows, ceil_div(k, left, k.smax(ceil_div(k, left, self._tile_rows), 1)), self._tile_rows
        )

        def tile(values: list[Value]) -> list[Value]:
            row, a, goal = values
            rows_here = k.smin(k.sub(m, row), height)
            function = k.load(k.gep(functions, k.sub(k.mul(rows_here, kind.parts), 1), PTR.bytes), PTR)
            given = arguments(a, goal)
            assert len(given) == len(TILE_PARAMETERS)
            k.call(function, given)
            below = k.select(cut.has_equal_rows, k.mul(rows.row, rows_here), to_next)
            return [k.add(row, rows_here), k.gep(a, below), k.gep(goal, k.mul(cut.sums_row, rows_here))]

        k.while_loop(lambda values: k.compare("lt", values[0], m), tile, start)

    def _tiles_of_small_column(self, k: KernelBuilder, cut: _Cut, m: Value) -> Value:
        """How many whole tiles one call computes, if there are several: not the last two, if these share what is left
        for them."""
        whole = k.udiv(m, self._tile_rows)
        has_rest = k.compare("ne", k.mul(whole, self._tile_rows), m)
        count = k.sub(whole, k.zext(k.and_(has_rest, cut.has_equal_rows), I64))
        return k.select(k.compare("ge", count, 2), count, 0)
