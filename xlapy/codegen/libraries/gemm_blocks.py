"""Blocks of C: the unit of work of a thread, from the tiles it is made of to the epilogue that sees it finished."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from xlapy.codegen.ir import I1, I8, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_cuts import TILES_THAT_PREPARE, GemmCuts
from xlapy.codegen.libraries.gemm_finish import TILES_OF_SHORT_COLUMN
from xlapy.codegen.libraries.gemm_packing import SLACK_BYTES
from xlapy.codegen.libraries.gemm_problem import (
    LEAST_ROWS,
    PROBLEM,
    RANGE,
    STEPS_AT_ONCE,
    ceil_div,
    depth_of,
    row_pitch,
    strip_bytes,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import (
    COLUMN_PARAMETERS,
    COPYING_PARAMETERS,
    PREPARED_ROWS_OF_GROUP,
    PREPARING_PARAMETERS,
    ROWS_OF_GROUP,
    STEPS_OF_GROUP,
    TILE_PARAMETERS,
    Tile,
    TileShape,
    broad_tiles_of,
    column_of,
    copying_tiles_of,
    emit_tile,
    preparing_tile_of,
    tiles_of,
)
from xlapy.codegen.libraries.gemm_unit import configure_unit, emit_unit_bodies, emit_unit_tile, release_unit
from xlapy.codegen.libraries.gemm_vector import STREAM_PARAMETERS
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy.support.records import Record

_NEAR_BYTES = 1 << 15
"""From the first to the last row of a block of C that the nearest cache holds beside the operands of tiles."""


_LEAST_TILES_OF_COLUMN = 2
_MOST_TILES_OF_COLUMN = 1 << 16

TABLES_OF_TILES = ("tiles", "copying_tiles")
"""Which the module for convolutions reads, too: by edge or not, vectors and rows; and whole, or an edge by vectors."""


class _RowsOfA(Record):
    """A's part of a chunk of a block: where it is, and the bytes from row to row, step to step and strip to strip."""

    place: Value
    row: Value
    step: Value
    strip: Value


class _Strip(Record):
    """What the tiles of one strip of B read, and where their sums go: `sums` is in C or in scratch. `next_b` is the
    strip that follows, or this one. `ends` if K does, so that C is finished. If B `is_packed`, that is in `copy`; if
    the tiles `prepare`, they pack the strip that follows, in `next_copy`."""

    a: _RowsOfA
    b: Value
    next_b: Value
    is_packed: Value
    prepare: Value
    copy: Value
    next_copy: Value
    sums: Value
    depth: Value
    batch: Value
    row: Value
    column: Value
    columns: Value
    accumulate: Value
    ends: Value


class _Tiles(Record):
    """What the tiles of one strip of B share: the functions of this width by height, where their sums and `goal`, the
    rows to be written in the end, are, and the rows of B to fetch for later, further by `later_tile` for each tile."""

    is_broad: Value
    height: Value
    """Rows of a whole tile."""
    vectors: Value
    is_edge: Value
    functions: Value
    b_step: Value
    copies: Value
    """Whether the first tile copies B for the others; below, the bytes of a step of the copy."""
    packed_step: Value
    sums_row: Value
    are_finished: Value
    """Whether an epilogue sees each tile by itself; below, whether its sums are in `buffer` until it did."""
    is_buffered: Value
    buffer: Value
    buffer_row: Value
    goal: Value
    goal_row: Value
    later: Value
    later_step: Value
    later_tile: Value
    first_row: Value
    """The number of the first row of the strip, counted through all strips of the matrix."""

    def place_of_sums(self, k: KernelBuilder, sums: Value) -> tuple[Value, Value]:
        """Where the tile whose sums are to end at `sums` puts them, and how far apart rows are there."""
        return (
            k.select(self.is_buffered, self.buffer, sums),
            k.select(self.is_buffered, self.buffer_row, self.sums_row),
        )


class _Below(Record):
    """Where the tiles of a strip go on: the row, how many rows of the next strip are packed, and the places in A, of
    the sums, in what is written in the end, and in what is fetched for later."""

    row: Value
    prepared: Value
    a: Value
    sums: Value
    goal: Value
    later: Value


class GemmBlocks(GemmCuts):
    """Writes the functions that compute the blocks of a panel."""

    # The tiles

    def tiles(self) -> None:
        """The tiles of large products, with those for what is left at their edges."""
        if self._kind.unit:
            emit_unit_bodies(self._module, self._kind, self._prefix, self._attributes)
        self._table_of_tiles("tiles", [tile for tile in self._all_tiles() if tile.vectors <= self._shape.vectors])
        if self._has_columns:
            emit_tile(self._module, self._target, self._kind, self._shape, column_of(self._shape))
        if self._copies_strips:
            self._tiles_that_pack("copying_tiles", self._shape)
        if self._broad is not None:
            self._table_of_tiles("broad_tiles", broad_tiles_of(self._shape))
            self._tiles_that_pack("broad_copying_tiles", self._broad)

    def _tiles_that_pack(self, name: str, shape: TileShape) -> None:
        """Those that copy their strip of B, and the one that packs the next strip."""
        self._table_of_copying_tiles(name, shape)
        emit_tile(self._module, self._target, self._kind, shape, preparing_tile_of(shape))

    def _table_of_copying_tiles(self, name: str, shape: TileShape) -> None:
        """Those that copy their strip of B, and a table to find them in: the whole one, and edges by vectors."""
        *copying_edges, copying = copying_tiles_of(shape)
        for tile in (*copying_edges, copying):
            emit_tile(self._module, self._target, self._kind, shape, tile)
        self._table(name, [tile.name(self._kind) for tile in (copying, *copying_edges)])

    def declare_tiles(self) -> None:
        """Makes them known to a module that calls those of another one."""
        for table in TABLES_OF_TILES:
            self._module.declare_data(f"{self._prefix}_{table}")

    def wide_tiles(self, least_rows: int = 1) -> None:
        """Those that are wider, for few rows, but for fewer than so many."""
        wide = [tile for tile in self._all_tiles() if tile.vectors > self._shape.vectors and tile.rows >= least_rows]
        self._table_of_tiles("wide_tiles", wide)

    def _all_tiles(self) -> list[Tile]:
        return tiles_of(self._kind, self._shape)

    def _table_of_tiles(self, name: str, tiles: Sequence[Tile], shape: TileShape | None = None) -> None:
        """Tiles, and a table to find them in: by edge or not, number of vectors, number of rows up to those of the
        shape, which is the usual one if none is given."""
        shape, names = shape or self._shape, {}
        for tile in tiles:
            if self._kind.unit:
                emit_unit_tile(self._module, self._kind, self._prefix, tile, self._attributes)
            else:
                emit_tile(self._module, self._target, self._kind, shape, tile)
            names[_tile_index(shape, tile, is_edge=tile.is_edge)] = tile.name(self._kind)
            if tile.is_edge:  # until there is one for whole strips
                names[_tile_index(shape, tile, is_edge=False)] = tile.name(self._kind)
        self._table(name, [names.get(index) for index in range(2 * shape.most_vectors * shape.rows)])

    def _table(self, name: str, functions: Sequence[str | None]) -> None:
        name = f"{self._prefix}_{name}"
        entries = ", ".join(f"ptr @{function}" if function else "ptr null" for function in functions)
        self._module.define(name, f"@{name} = constant [{len(functions)} x ptr] [{entries}]")

    @property
    def _copy_bytes(self) -> int:
        """Room for one strip of a chunk of B, or for two of a short chunk."""
        return max(self._chunk_steps, 2 * self._part_steps) * self._most_step_bytes

    @property
    def _most_step_bytes(self) -> int:
        """Of a step of the longest strip of B that tiles copy."""
        return (self._broad or self._shape).columns * self._kind.packed.bytes

    def _step_bytes_of_strip(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of a strip that tiles copy."""
        return k.mul(self._columns_of_tile(k, problem), self._kind.packed.bytes)

    @property
    def _has_columns(self) -> bool:
        """Whether one call computes several whole tiles, one below the other."""
        return not self._kind.unit

    # Blocks

    def block(self) -> None:
        """One block of the panel: chunk by chunk along K, strip by strip of B, tile by tile down the strips of A."""
        parameters = [("problem", PTR), ("batch", I64)]
        parameters += [(name, I64) for name in ("row", "rows", "column", "columns")] + [
            ("copy", PTR),
            ("copy_of_a", PTR),
        ]
        with self._function("block", parameters) as k:
            given = k.parameters
            problem = PROBLEM.at(k, given["problem"])
            strip_columns = problem["strip_columns"]
            batch = given["batch"]
            a = k.gep(problem["tile_a"], k.mul(batch, problem["tile_a_batch"]))
            a = k.gep(a, k.mul(k.sdiv(given["row"], self._rows_of_tile(k, problem)), problem["tile_a_strip"]))
            b = k.gep(problem["tile_b"], k.mul(batch, problem["tile_b_batch"]))
            b = k.gep(b, k.mul(k.sdiv(given["column"], strip_columns), problem["tile_b_strip"]))
            sums = k.gep(problem["sums"], k.mul(batch, problem["sums_batch"]))
            sums = k.gep(sums, k.mul(given["row"], problem["sums_row"]))
            sums = k.gep(sums, given["column"], self._kind.accumulator.bytes)
            is_stream = k.compare("ne", problem["stream"], k.const(PTR, 0))
            elements = depth_of(k, problem, batch, problem["depth"])
            steps = k.select(is_stream, elements, self._steps(k, elements))
            adds, is_last = problem["adds"], problem["is_last"]
            b_strip, a_step, b_step = problem["tile_b_strip"], problem["tile_a_step"], problem["tile_b_step"]
            chunk_steps = problem["chunk_steps"]
            with k.loop(0, k.smax(steps, 1), chunk_steps) as chunk:
                depth = k.smin(k.sub(steps, chunk.index), chunk_steps)
                accumulate = k.or_(adds, k.zext(k.compare("gt", chunk.index, 0), I64))
                rows_of_a = self._rows_of_a(k, problem, k.gep(a, k.mul(chunk.index, a_step)), depth)
                b_chunk = k.gep(b, k.mul(chunk.index, b_step))
                is_end = k.compare("ge", k.add(chunk.index, chunk_steps), steps)
                ends = k.and_(k.compare("ne", is_last, 0), is_end)
                chunk_below = k.select(is_end, b_chunk, k.gep(b_chunk, k.mul(b_step, chunk_steps)))
                can_prepare = self._can_prepare(k, problem, depth)
                copy = given["copy"]
                other_copy = k.gep(copy, self._part_steps * self._most_step_bytes)
                start = [b_chunk, k.const(I1, 0), copy, other_copy]
                with k.loop(0, given["columns"], strip_columns, carry=start) as loop:
                    b_here, is_packed, copy, next_copy = loop.values
                    left = k.sub(given["columns"], loop.index)
                    is_last_strip = k.compare("le", left, strip_columns)
                    b_beside = k.gep(b_here, b_strip)
                    prepare = k.and_(can_prepare, k.compare("ge", left, k.mul(strip_columns, 2)))
                    strip = _Strip(
                        rows_of_a,
                        b_here,
                        k.select(is_last_strip, chunk_below, b_beside),
                        is_packed,
                        prepare,
                        copy,
                        next_copy,
                        k.gep(sums, loop.index, self._kind.accumulator.bytes),
                        depth,
                        k.add(problem["batch"], batch),
                        k.add(problem["row"], given["row"]),
                        k.add(problem["column"], k.add(given["column"], loop.index)),
                        k.smin(k.sub(given["columns"], loop.index), strip_columns),
                        accumulate,
                        ends,
                    )
                    k.if_else(
                        is_stream,
                        functools.partial(self._streamed_strip, k, problem, strip),
                        functools.partial(self._strip, k, problem, strip),
                    )
                    copies = [k.select(prepare, next_copy, copy), k.select(prepare, copy, next_copy)]
                    loop.next = [b_beside, prepare, *copies]

    def _can_prepare(self, k: KernelBuilder, problem: RecordValue, depth: Value) -> Value:
        """Whether the whole tiles of a strip, but the first, can pack all of the strip that follows."""
        is_high = k.compare("ge", k.parameters["rows"], k.mul(self._rows_of_tile(k, problem), TILES_THAT_PREPARE))
        has_room = k.compare("le", depth, self._part_steps)
        is_whole = k.compare("eq", problem["strip_columns"], self._columns_of_tile(k, problem))
        copies = k.and_(k.compare("ne", problem["copies"], 0), is_whole)
        return k.and_(copies, k.and_(has_room, is_high))

    def _rows_of_preparing_tile(self, k: KernelBuilder, depth: Value) -> Value:
        return k.mul(ceil_div(k, depth, STEPS_OF_GROUP), PREPARED_ROWS_OF_GROUP)

    def _rows_of_a(self, k: KernelBuilder, problem: RecordValue, place: Value, depth: Value) -> _RowsOfA:
        """A's part of a chunk, which begins at `place`: as it lies, or copied so that no row is in another's way."""
        row, step, strip = problem["tile_a_row"], problem["tile_a_step"], problem["tile_a_strip"]
        as_it_is = [place, row, step, strip]
        if not self._kind.is_packed_in_memory:
            return _RowsOfA(*as_it_is)

        def by_rows() -> list[Value]:
            pitch = row_pitch(k, depth, self._element_bytes)
            copy, rows = k.parameters["copy_of_a"], k.mul(k.parameters["rows"], self._kind.parts)
            k.call(f"{self._prefix}_copy_rows", [depth, place, row, step, rows, copy, pitch])
            return [copy, pitch, step, k.mul(pitch, self._rows_of_tile(k, problem))]

        def copied() -> list[Value]:
            is_row = k.compare("eq", step, self._element_bytes)
            return k.if_else(is_row, by_rows, lambda: self._packed_rows(k, place, row, step, depth))

        return _RowsOfA(*k.if_else(k.compare("ne", problem["copies_a"], 0), copied, lambda: as_it_is))

    def _packed_rows(self, k: KernelBuilder, place: Value, row: Value, step: Value, depth: Value) -> list[Value]:
        """Packs A's part of a chunk, whose rows are side by side at each step: some steps of all strips at a time, as
        they follow each other in memory."""
        parts, width = self._kind.parts, self._tile_rows
        step_bytes = self._kind.packed.bytes * self._shape.rows
        strip, rows = strip_bytes(k, depth, step_bytes), k.parameters["rows"]
        with k.loop(0, depth, STEPS_AT_ONCE) as first, k.loop(0, rows, width) as top:
            steps = k.smin(k.sub(depth, first.index), STEPS_AT_ONCE)
            source = k.gep(k.gep(place, k.mul(top.index, row)), k.mul(first.index, step))
            goal = k.gep(k.parameters["copy_of_a"], k.mul(k.udiv(top.index, width), strip))
            goal = k.gep(goal, k.mul(first.index, step_bytes))
            valid = k.mul(k.smin(k.sub(rows, top.index), width), parts)
            k.call(f"{self._prefix}_pack_a", [steps, source, row, step, valid, goal])
        return [k.parameters["copy_of_a"], k.const(I64, self._element_bytes), k.const(I64, step_bytes), strip]

    def _finish_part(
        self, k: KernelBuilder, strip: _Strip, sums: Value, sums_row: Value, row: Value | int, rows: Value
    ) -> None:
        """Finishes `rows` rows of a strip, the first of which is number `row`."""
        place_of_c = [strip.batch, k.add(strip.row, row), rows, strip.column, strip.columns]
        k.call(f"{self._prefix}_finish", [k.parameters["problem"], sums, sums_row, *place_of_c])

    def _streamed_strip(self, k: KernelBuilder, problem: RecordValue, strip: _Strip) -> None:
        """Sums that are made row by row of B, of all rows of C."""
        rows, sums_row = k.parameters["rows"], problem["sums_row"]
        arguments = [
            strip.depth,
            strip.a.place,
            strip.a.row,
            strip.a.step,
            strip.b,
            problem["tile_b_step"],
        ]
        arguments += [strip.sums, sums_row, strip.columns, strip.accumulate, problem["distance"]]
        assert len(arguments) == len(STREAM_PARAMETERS)
        k.call(problem["stream"], arguments)
        with k.if_(strip.ends):
            self._finish_part(k, strip, strip.sums, sums_row, 0, rows)

    def _call_fitting(self, k: KernelBuilder, rows: Value, names: dict[int, str], arguments: list[Value]) -> None:
        """Calls the first function that has so many rows, or the last one."""
        (height, name), *others = names.items()
        if not others:
            k.call(name, arguments)
            return
        k.if_else(
            k.compare("le", rows, height),
            lambda: k.call(name, arguments),
            lambda: self._call_fitting(k, rows, dict(others), arguments),
        )

    def _strip(self, k: KernelBuilder, problem: RecordValue, strip: _Strip) -> None:
        """All tiles of one strip of B. An epilogue sees each tile by itself if all of them are not in the nearest
        cache."""
        tiles = self._tiles_of_strip(k, problem, strip)

        def first_tile() -> list[Value]:
            return self._first_tile(k, strip, tiles)

        def no_tile() -> list[Value]:
            b = k.select(strip.is_packed, strip.copy, strip.b)
            b_step = k.select(strip.is_packed, tiles.packed_step, tiles.b_step)
            return [k.const(I64, 0), b, b_step, strip.a.place, strip.sums, tiles.goal, tiles.later]

        is_copied = k.and_(tiles.copies, k.not_(strip.is_packed))
        start = k.if_else(is_copied, first_tile, no_tile) if self._copies_strips else no_tile()
        self._tiles_below(k, strip, tiles, start)
        with k.if_(k.and_(strip.ends, k.not_(tiles.are_finished))):
            self._finish_part(k, strip, strip.sums, tiles.sums_row, 0, k.parameters["rows"])

    def _tiles_of_strip(self, k: KernelBuilder, problem: RecordValue, strip: _Strip) -> _Tiles:
        """Where the tiles of a strip are found, what they fetch, and where they put their sums."""
        kind, shape, rows = self._kind, self._shape, k.parameters["rows"]
        has_epilogue = k.compare("ne", problem["epilogue"], k.const(PTR, 0))
        is_far = k.compare("gt", k.mul(rows, problem["c_row"]), _NEAR_BYTES)
        are_finished = k.and_(strip.ends, k.and_(has_epilogue, is_far))
        is_buffered = k.and_(are_finished, self._may_buffer_tiles(k, problem, strip.accumulate))
        vectors = k.sdiv(k.add(strip.columns, shape.lanes - 1), shape.lanes)
        is_edge = k.zext(k.compare("lt", strip.columns, problem["strip_columns"]), I64)
        index = k.mul(k.sub(k.add(k.mul(is_edge, shape.most_vectors), vectors), 1), shape.rows)
        table = k.function_pointer(f"{self._prefix}_tiles")
        table = k.select(k.compare("gt", vectors, shape.vectors), self._wider_tiles(k, problem), table)
        height = self._rows_of_tile(k, problem)
        functions = k.gep(table, index, 8)
        b_step, sums_row = problem["tile_b_step"], problem["sums_row"]
        copies = k.and_(k.compare("ne", problem["copies"], 0), k.compare("gt", rows, height))
        # Packed strips that come from afar, too (128 by 768, 3072 steps: 2 % faster).
        are_all_far = self._target.has_far_last_cache and not kind.unit
        is_packed_far = k.const(I1, 1) if are_all_far else self._is_packed_before(k, problem)
        fetches = k.or_(copies, k.and_(is_packed_far, k.compare("gt", rows, height)))
        later_step = k.select(fetches, b_step, 0)
        goal, goal_row = self._rows_to_write(k, problem, strip, is_buffered)
        return _Tiles(
            is_broad=k.compare("ne", problem["is_broad"], 0),
            height=height,
            vectors=vectors,
            is_edge=is_edge,
            functions=functions,
            b_step=b_step,
            copies=copies,
            packed_step=self._step_bytes_of_strip(k, problem),
            sums_row=sums_row,
            are_finished=are_finished,
            is_buffered=is_buffered,
            buffer=k.alloca(I8, self._buffer_elements * kind.accumulator.bytes, align=64),
            buffer_row=k.mul(problem["strip_columns"], kind.accumulator.bytes),
            goal=goal,
            goal_row=goal_row,
            later=k.select(fetches, strip.next_b, strip.b),
            later_step=later_step,
            later_tile=k.mul(k.mul(ceil_div(k, strip.depth, STEPS_OF_GROUP), ROWS_OF_GROUP), later_step),
            first_row=k.mul(k.sdiv(strip.column, problem["strip_columns"]), problem["rows"]),
        )

    def _wider_tiles(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """The table of tiles with more vectors than usual."""
        wide = problem["wide_tiles"]
        if self._broad is None:
            return wide
        is_broad = k.compare("ne", problem["is_broad"], 0)
        return k.select(is_broad, k.function_pointer(f"{self._prefix}_broad_tiles"), wide)

    def _first_tile(self, k: KernelBuilder, strip: _Strip, tiles: _Tiles) -> list[Value]:
        """The tile that copies B for those below it. Where these begin: their row, B and its step, A, the sums, the
        rows to write, and those of B for later."""
        row, height = k.const(I64, 0), tiles.height
        place, pitch = tiles.place_of_sums(k, strip.sums)
        arguments = [strip.depth, strip.a.place, strip.a.row, strip.a.step, strip.b, tiles.b_step]
        arguments += [place, pitch, strip.columns, strip.accumulate]
        arguments += [tiles.goal, tiles.goal_row, tiles.later, tiles.later_step, strip.copy]
        assert len(arguments) == len(COPYING_PARAMETERS)
        self._call_copying(k, tiles.vectors, tiles.is_edge, arguments, self._copying_tiles(k, tiles.is_broad))
        with k.if_(tiles.are_finished):
            self._finish_part(k, strip, place, pitch, row, height)
        below = k.gep(strip.sums, k.mul(tiles.sums_row, height))
        goal_below = k.gep(tiles.goal, k.mul(tiles.goal_row, height))
        rest = [k.gep(strip.a.place, strip.a.strip), below, goal_below, k.gep(tiles.later, tiles.later_tile)]
        return [height, strip.copy, tiles.packed_step, *rest]

    def _tiles_below(self, k: KernelBuilder, strip: _Strip, tiles: _Tiles, start: Sequence[Value]) -> None:
        """The tiles from `start` on, one below the other, in columns of whole ones where nothing is to be done between
        them."""
        rows = k.parameters["rows"]
        first, b, b_step, *places = start
        most = self._tiles_of_column(k, strip, tiles)

        def go_on(values: list[Value]) -> list[Value]:
            at = _Below(*values)
            left = k.sub(rows, at.row)
            whole = self._whole_tiles(k, strip, tiles, left)
            is_prepared = k.or_(k.not_(strip.prepare), k.compare("ge", at.prepared, strip.depth))
            is_column = k.and_(is_prepared, k.compare("ge", k.smin(whole, most), _LEAST_TILES_OF_COLUMN))
            place, pitch = tiles.place_of_sums(k, at.sums)
            arguments = [strip.depth, at.a, strip.a.row, strip.a.step, b, b_step, place, pitch]
            arguments += [strip.columns, strip.accumulate, at.goal, tiles.goal_row]
            column = functools.partial(self._column, k, strip, tiles, at, arguments, k.smin(whole, most))
            lone_tile = functools.partial(self._lone_tile, k, strip, tiles, at, arguments)
            count, height, prepared = k.if_else(is_column, column, lone_tile) if self._has_columns else lone_tile()
            with k.if_(tiles.are_finished):
                self._finish_part(k, strip, place, pitch, at.row, height)
            equal = k.mul(strip.a.row, height)
            a_bytes = k.select(self._has_equal_rows(k, strip, tiles), equal, k.mul(strip.a.strip, count))
            below = [(at.a, a_bytes), (at.sums, k.mul(tiles.sums_row, height))]
            below += [(at.goal, k.mul(tiles.goal_row, height)), (at.later, k.mul(tiles.later_tile, count))]
            return [k.add(at.row, height), prepared, *(k.gep(place, bytes) for place, bytes in below)]

        k.while_loop(lambda values: k.compare("lt", values[0], rows), go_on, [first, k.const(I64, 0), *places])

    def _has_equal_rows(self, k: KernelBuilder, strip: _Strip, tiles: _Tiles) -> Value:
        """Whether rows of A are equally far apart throughout, so that a tile may begin at any of them."""
        return k.compare("eq", strip.a.strip, k.mul(strip.a.row, tiles.height))

    def _tiles_of_column(self, k: KernelBuilder, strip: _Strip, tiles: _Tiles) -> Value:
        """The most tiles of this strip that one call computes; 0 for tiles that are not the usual ones. Between columns
        an epilogue sees them, and the next matrix of a batch is fetched."""
        problem = PROBLEM.at(k, k.parameters["problem"])
        is_usual = k.and_(k.compare("eq", tiles.is_edge, 0), k.compare("eq", tiles.vectors, self._shape.vectors))
        fetches = k.compare("ne", k.or_(problem["ahead_a"], problem["ahead_b"]), 0)
        is_short = k.or_(tiles.are_finished, fetches)
        most = k.select(is_short, k.const(I64, TILES_OF_SHORT_COLUMN), _MOST_TILES_OF_COLUMN)
        return k.select(k.and_(is_usual, k.not_(tiles.is_broad)), most, 0)

    def _whole_tiles(self, k: KernelBuilder, strip: _Strip, tiles: _Tiles, rows: Value) -> Value:
        """How many of the tiles of so many rows are whole: not the last two, if these share what is left for them."""
        whole = k.udiv(rows, tiles.height)
        has_rest = k.compare("ne", k.mul(whole, tiles.height), rows)
        return k.sub(whole, k.zext(k.and_(has_rest, self._has_equal_rows(k, strip, tiles)), I64))

    def _column(
        self, k: KernelBuilder, strip: _Strip, tiles: _Tiles, at: _Below, arguments: list[Value], count: Value
    ) -> list[Value]:
        """So many whole tiles. Returns that, their rows, and how many rows of the next strip are packed: no more."""
        height = k.mul(count, tiles.height)
        self._fetch_next_matrix(k, strip, k.add(tiles.first_row, at.row), height)
        one_run = [k.const(I64, 1), k.const(I64, 0)]
        arguments = [*arguments, at.later, tiles.later_step, *one_run, count, strip.a.strip, tiles.later_tile]
        assert len(arguments) == len(COLUMN_PARAMETERS)
        k.call(column_of(self._shape).name(self._kind), arguments)
        return [count, height, at.prepared]

    def _lone_tile(
        self, k: KernelBuilder, strip: _Strip, tiles: _Tiles, at: _Below, arguments: list[Value]
    ) -> list[Value]:
        """One tile, which packs its part of the next strip if there is more to pack. Returns the same."""
        left, has_equal_rows = k.sub(k.parameters["rows"], at.row), self._has_equal_rows(k, strip, tiles)
        height = self._height(k, left, tiles.height, has_equal_rows)
        self._fetch_next_matrix(k, strip, k.add(tiles.first_row, at.row), height)
        plain_tile = functools.partial(self._plain_tile, k, tiles, [*arguments, at.later], height, at.prepared)
        if not self._copies_strips:
            return [k.const(I64, 1), height, *plain_tile()]
        is_whole = k.compare("eq", height, tiles.height)
        prepares = k.and_(k.and_(strip.prepare, is_whole), k.compare("lt", at.prepared, strip.depth))
        preparing_tile = functools.partial(self._preparing_tile, k, strip, tiles, arguments, at.prepared)
        return [k.const(I64, 1), height, *k.if_else(prepares, preparing_tile, plain_tile)]

    def _plain_tile(
        self, k: KernelBuilder, tiles: _Tiles, arguments: list[Value], height: Value, prepared: Value
    ) -> list[Value]:
        """A tile that fetches what is for later. Returns how many rows of the next strip are packed: no more."""
        function = k.load(k.gep(tiles.functions, k.sub(k.mul(height, self._kind.parts), 1), 8), PTR)
        arguments = [*arguments, tiles.later_step, k.const(I64, 1), k.const(I64, 0)]  # one run
        assert len(arguments) == len(TILE_PARAMETERS)
        k.call(function, arguments)
        return [prepared]

    def _preparing_tile(
        self, k: KernelBuilder, strip: _Strip, tiles: _Tiles, arguments: list[Value], prepared: Value
    ) -> list[Value]:
        """A tile that packs its part of the next strip. Returns how many rows of it are packed then."""
        arguments = [*arguments, strip.next_b, tiles.b_step, strip.next_copy, prepared]
        assert len(arguments) == len(PREPARING_PARAMETERS)
        self._call_preparing(k, tiles, arguments)
        return [k.add(prepared, self._rows_of_preparing_tile(k, strip.depth))]

    def _call_preparing(self, k: KernelBuilder, tiles: _Tiles, arguments: list[Value]) -> None:
        usual = preparing_tile_of(self._shape).name(self._kind)
        if self._broad is None:
            k.call(usual, arguments)
            return
        broad = preparing_tile_of(self._broad).name(self._kind)
        k.if_else(tiles.is_broad, lambda: k.call(broad, arguments), lambda: k.call(usual, arguments))

    def _fetch_next_matrix(self, k: KernelBuilder, strip: _Strip, row: Value, height: Value) -> None:
        """A tile's share of the operands of the next matrix of a batch, into the second-level cache."""
        problem = PROBLEM.at(k, k.parameters["problem"])
        for name in "ab":
            each = problem[f"ahead_{name}"]
            with k.if_(k.compare("ne", each, 0)):
                matrix = k.gep(problem[f"tile_{name}"], k.mul(k.add(strip.batch, 1), problem[f"tile_{name}_batch"]))
                place = k.gep(matrix, k.mul(row, each))
                with k.loop(0, k.mul(height, each), CACHE_LINE) as line:
                    k.prefetch(k.gep(place, line.index), 1, level=2)

    def _rows_to_write(
        self, k: KernelBuilder, problem: RecordValue, strip: _Strip, is_buffered: Value
    ) -> tuple[Value, Value]:
        """The rows that tiles fetch to be written: where their sums go, or of C, if an epilogue brings them there."""
        row = k.add(k.mul(strip.batch, problem["c_batch"]), k.mul(strip.row, problem["c_row"]))
        column = k.mul(self._whole_columns(k, strip.column), problem["c_column"])
        return (
            k.select(is_buffered, k.gep(k.gep(problem["c"], row), column), strip.sums),
            k.select(is_buffered, problem["c_row"], problem["sums_row"]),
        )

    def _height(self, k: KernelBuilder, rows: Value, most: Value, has_equal_rows: Value) -> Value:
        """Rows of the next tile, `most` of `rows` that are left: the last two share theirs if rows of A are equally far
        apart throughout, since a tile with few rows would wait for its own sums."""
        shares = k.and_(has_equal_rows, k.and_(k.compare("gt", rows, most), k.compare("lt", rows, k.mul(most, 2))))
        return k.smin(k.select(shares, k.lshr(k.add(rows, 1), 1), rows), most)

    def _may_buffer_tiles(self, k: KernelBuilder, problem: RecordValue, accumulate: Value) -> Value:
        """Whether tiles may put their sums into a buffer instead of C: these are all there is, and it has room."""
        is_alone = k.and_(k.compare("eq", accumulate, 0), k.compare("eq", problem["uses_scratch"], 0))
        return k.and_(is_alone, self._may_buffer(k, problem))

    def _call_copying(
        self, k: KernelBuilder, vectors: Value, is_edge: Value, arguments: list[Value], table: Value
    ) -> None:
        """The tile of a table that copies its strip of B."""
        number = k.select(k.compare("ne", is_edge, 0), vectors, 0)
        k.call(k.load(k.gep(table, number, PTR.bytes), PTR), arguments)

    def _copying_tiles(self, k: KernelBuilder, is_broad: Value) -> Value:
        """The table of the usual ones, or of those that are broad."""
        table = k.function_pointer(f"{self._prefix}_copying_tiles")
        if self._broad is None:
            return table
        return k.select(is_broad, k.function_pointer(f"{self._prefix}_broad_copying_tiles"), table)

    def blocks(self) -> None:
        """A range of blocks, those with the same rows next to each other, panel by panel."""
        with self._function("blocks", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            block_rows, block_columns = problem["block_rows"], problem["block_columns"]
            total_rows, total_columns = problem["rows"], problem["columns"]

            def compute(copy: Value, copy_of_a: Value) -> None:
                if self._kind.unit:
                    configure_unit(k, self._prefix)
                with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                    batch, row_number, column_number = self._numbers_of_block(k, problem, item.index)
                    row, column = k.mul(row_number, block_rows), k.mul(column_number, block_columns)
                    rows = k.smin(k.sub(total_rows, row), block_rows)
                    columns = k.smin(k.sub(total_columns, column), block_columns)
                    place = [batch, row, rows, column, columns]
                    k.call(f"{self._prefix}_block", [problem.place, *place, copy, copy_of_a])
                if self._kind.unit:
                    release_unit(k)

            room_for_b = k.select(k.compare("ne", problem["copies"], 0), k.const(I64, self._copy_bytes), 0)
            room_for_a = k.select(k.compare("ne", problem["copies_a"], 0), self._bytes_of_copied_rows(k, problem), 0)
            room = k.add(room_for_a, room_for_b)

            def with_room() -> None:
                scratch = acquire_scratch(k, room)
                compute(scratch.memory, k.gep(scratch.memory, room_for_b))
                release_scratch(k, scratch)

            nowhere = k.const(PTR, 0)
            k.if_else(k.compare("ne", room, 0), with_room, lambda: compute(nowhere, nowhere))

    def _bytes_of_copied_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Room for a block's part of A in one chunk; strips that are packed have slack behind them."""
        pitch = row_pitch(k, k.smin(problem["chunk_steps"], problem["depth"]), self._element_bytes)
        slack = k.mul(ceil_div(k, problem["block_rows"], self._tile_rows), SLACK_BYTES + CACHE_LINE)
        return k.add(k.mul(problem["block_rows"], pitch), slack)

    def _numbers_of_block(self, k: KernelBuilder, problem: RecordValue, item: Value) -> tuple[Value, Value, Value]:
        """Which matrix the block is of, and its row and column of blocks. Of those that some columns of B fit the last
        cache with all rows of blocks come first."""
        row_blocks, column_blocks = problem["row_blocks"], problem["column_blocks"]
        blocks = k.mul(row_blocks, column_blocks)
        batch = k.sdiv(item, blocks)
        rest = k.sub(item, k.mul(batch, blocks))
        most = problem["panel_blocks"]
        first = k.mul(k.sdiv(rest, k.mul(most, row_blocks)), most)
        rest = k.sub(rest, k.mul(first, row_blocks))
        width = k.smin(most, k.sub(column_blocks, first))
        row = k.sdiv(rest, width)
        return batch, row, k.add(first, k.sub(rest, k.mul(row, width)))

    def _run_blocks(self, k: KernelBuilder, parallel: Value, problem: RecordValue, count: Value) -> None:
        """All blocks; a thread takes so many that they are worth it. Those next to each other read the same rows of A,
        or lines of B beside each other, and should do so at the same time."""
        rows = k.smax(k.smin(problem["block_rows"], problem["rows"]), LEAST_ROWS)
        columns = k.smin(problem["block_columns"], problem["columns"])
        work = k.mul(k.mul(rows, columns), work_per_element(k, problem, problem["depth"]))
        blocks = k.function_pointer(f"{self._prefix}_blocks")
        k.call(parallel, [blocks, problem.place, count, k.sub(0, self._grain(k, count, work))])


def _tile_index(shape: TileShape, tile: Tile, *, is_edge: bool) -> int:
    return (is_edge * shape.most_vectors + tile.vectors - 1) * shape.rows + tile.rows - 1
