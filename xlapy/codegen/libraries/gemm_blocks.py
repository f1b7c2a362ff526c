"""Blocks of C: the unit of work of a thread, from the tiles it is made of to the epilogue that sees it finished."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from xlapy.codegen.ir import I8, I64, PTR, IRType, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_problem import (
    CHUNK_WORK,
    LEAST_ROWS,
    PROBLEM,
    RANGE,
    GemmFunctions,
    ceil_div,
    round_up,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import TILE_PARAMETERS, Tile, copying_tiles_of, emit_tile, tiles_of
from xlapy.codegen.libraries.gemm_vector import STREAM_ROWS, emit_stream, stream_name
from xlapy.codegen.libraries.gemm_windows import has_windows


class GemmBlocks(GemmFunctions):
    """Writes the functions that compute the blocks of a panel."""

    # The tiles

    def tiles(self) -> None:
        """The tiles, and a table to find them in: by edge or not, number of vectors, number of rows."""
        names = {}
        for tile in tiles_of(self._kind, self._shape):
            emit_tile(self._module, self._target, self._kind, self._shape, tile)
            names[self._tile_index(tile.is_edge, tile.vectors, tile.rows)] = tile.name(self._kind)
        for tile in copying_tiles_of(self._shape):
            emit_tile(self._module, self._target, self._kind, self._shape, tile)
        for rows in range(1, STREAM_ROWS + 1):
            emit_stream(self._module, self._target, self._kind, self._shape, rows)
            names[self._stream_index + rows * self._kind.parts - 1] = stream_name(self._kind, rows)
        size = self._stream_index + self._shape.rows
        entries = ", ".join(f"ptr @{names[index]}" if index in names else "ptr null" for index in range(size))
        self._module.define(
            f"{self._prefix}_tiles", f"@{self._prefix}_tiles = internal constant [{size} x ptr] [{entries}]"
        )

    @property
    def _stream_index(self) -> int:
        """Where the table goes on with functions for any number of columns, by number of rows."""
        return 2 * self._shape.most_vectors * self._shape.rows

    def _tile_index(self, is_edge: bool, vectors: int, rows: int) -> int:
        return (is_edge * self._shape.most_vectors + vectors - 1) * self._shape.rows + rows - 1

    @property
    def _copy_bytes(self) -> int:
        """Room for one strip of a chunk of B."""
        return self._chunk_steps * self._shape.columns * self._kind.packed.bytes

    # Finished parts of C

    def finish(self) -> None:
        """What happens to a part of C once its sums are complete."""
        parameters = [("problem", PTR), ("sums", PTR)]
        parameters += [(name, I64) for name in ("batch", "row", "rows", "column", "columns")]
        with self._function("finish", parameters) as k:
            given = k.parameters
            problem = PROBLEM.at(k, given["problem"])
            column = self._whole_columns(k, given["column"])
            c = k.gep(problem["c"], k.mul(given["batch"], problem["c_batch"]))
            c = k.gep(k.gep(c, k.mul(given["row"], problem["c_row"])), k.mul(column, problem["c_column"]))
            with k.if_(k.compare("ne", problem["uses_scratch"], 0)):
                copied = [given["problem"], given["sums"], c, given["rows"], given["columns"]]
                k.call(f"{self._prefix}_copy_out", copied)
            self._look_for_special(k, problem, c)
            part = [given["row"], given["rows"], column, self._whole_columns(k, given["columns"])]
            self._run_epilogue(k, problem, [c, given["batch"], *part])

    def _run_epilogue(self, k: KernelBuilder, problem: RecordValue, place: list[Value]) -> None:
        """Shows a finished part of C to the epilogue, if there is one: where it lies, batch, rows and columns."""
        c, batch, row, rows, column, columns = place
        epilogue, args = problem["epilogue"], [problem["epilogue_args"], c, batch]
        with k.if_(k.compare("ne", epilogue, k.const(PTR, 0))):
            k.if_else(
                k.compare("ne", problem["is_transposed"], 0),
                lambda: _nothing(k.call(epilogue, [*args, column, columns, row, rows])),
                lambda: _nothing(k.call(epilogue, [*args, row, rows, column, columns])),
            )

    def _look_for_special(self, k: KernelBuilder, problem: RecordValue, c: Value) -> None:
        """Raises the flag of a convolution if this part of the first row of C is not finite."""
        if not self._sums_again:
            return
        suspect, given = problem["suspect"], k.parameters
        is_first = k.compare("eq", given["row"], 0)
        with k.if_(k.and_(is_first, k.compare("ne", suspect, k.const(PTR, 0)))):
            one_row = k.const(I64, 1), k.const(I64, 0)
            is_special = self._has_special(k, c, self._kind.result, *one_row, given["columns"])
            with k.if_(k.compare("ne", is_special, 0)):
                k.atomic_store(suspect, k.const(I64, 1), "monotonic")

    @property
    def _sums_again(self) -> bool:
        """Whether the library has convolutions of what may be infinite or NaN."""
        return has_windows(self._kind) and self._kind.accumulator.is_float

    def _has_special(
        self, k: KernelBuilder, place: Value, type: IRType, rows: Value, row_bytes: Value, columns: Value
    ) -> Value:
        """Whether there is an infinity or a NaN among rows of numbers."""
        kind = self._kind
        with k.loop(0, rows, carry=[k.const(I64, 0)]) as row:
            start = k.gep(place, k.mul(row.index, row_bytes))
            with k.loop(0, columns, carry=row.values) as column:
                raw = k.load(k.gep(start, column.index, type.bytes), type)
                number = raw if type == kind.accumulator else kind.widen(k, raw)
                is_finite = k.compare("lt", k.fabs(number), math.inf)
                column.next = [k.or_(column.values[0], k.zext(k.not_(is_finite), I64))]
            row.next = column.results
        return row.results[0]

    def copy_out(self) -> None:
        """Sums in scratch to C: rounded, added, scattered, as the product wants it."""
        parameters = [("problem", PTR), ("sums", PTR), ("c", PTR), ("rows", I64), ("columns", I64)]
        with self._function("copy_out", parameters) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            c_row, c_column, accumulate = problem["c_row"], problem["c_column"], problem["accumulate"]
            sums_row = problem["sums_row"]
            columns = k.parameters["columns"]
            is_row = k.compare("eq", c_column, self._c_bytes)
            vectors = k.select(is_row, k.and_(columns, -self._shape.lanes), 0)
            with k.loop(0, k.parameters["rows"]) as row:
                source = k.gep(k.parameters["sums"], k.mul(row.index, sums_row))
                goal = k.gep(k.parameters["c"], k.mul(row.index, c_row))
                with k.loop(0, vectors, self._shape.lanes) as column:
                    place = k.gep(goal, column.index, self._result_bytes)
                    self._copy_some(k, source, column.index, place, self._shape.lanes, accumulate)
                with k.loop(vectors, columns, self._kind.parts) as column:
                    place = k.gep(goal, k.mul(self._whole_columns(k, column.index), c_column))
                    for part in range(self._kind.parts):
                        real = k.gep(place, part * self._result_bytes)
                        self._copy_some(k, source, k.add(column.index, part), real, 1, accumulate)

    def _copy_some(
        self, k: KernelBuilder, source: Value, column: Value, place: Value, lanes: int, accumulate: Value
    ) -> None:
        kind = self._kind
        value = k.load(k.gep(source, column, kind.accumulator.bytes), kind.accumulator.with_lanes(lanes))

        def sum_with_old() -> Value:
            old = k.load(place, kind.result.with_lanes(lanes))
            return k.add(old if kind.accumulates_in_result else kind.widen(k, old), value)

        total = k.if_else(k.compare("ne", accumulate, 0), sum_with_old, lambda: value)[0]
        k.store(place, kind.narrow(k, total) if not kind.accumulates_in_result else total)

    # Blocks

    def block(self) -> None:
        """One block of the panel: chunk by chunk along K, strip by strip of B, tile by tile down the strips of A."""
        parameters = [("problem", PTR), ("batch", I64)]
        parameters += [(name, I64) for name in ("row", "rows", "column", "columns")] + [("copy", PTR)]
        with self._function("block", parameters) as k:
            given = k.parameters
            problem = PROBLEM.at(k, given["problem"])
            strip_columns = problem["strip_columns"]
            batch = given["batch"]
            a = k.gep(problem["tile_a"], k.mul(batch, problem["tile_a_batch"]))
            a = k.gep(a, k.mul(k.sdiv(given["row"], self._tile_rows), problem["tile_a_strip"]))
            b = k.gep(problem["tile_b"], k.mul(batch, problem["tile_b_batch"]))
            b = k.gep(b, k.mul(k.sdiv(given["column"], strip_columns), problem["tile_b_strip"]))
            sums = k.gep(problem["sums"], k.mul(batch, problem["sums_batch"]))
            sums = k.gep(sums, k.mul(given["row"], problem["sums_row"]))
            sums = k.gep(sums, given["column"], self._kind.accumulator.bytes)
            is_stream = k.compare("ne", problem["streams"], 0)
            steps = k.select(is_stream, problem["depth"], self._steps(k, problem["depth"]))
            adds, is_last = problem["adds"], problem["is_last"]
            b_strip, a_step, b_step = problem["tile_b_strip"], problem["tile_a_step"], problem["tile_b_step"]
            by_tiles = k.compare(
                "ne", problem["epilogue"], k.const(PTR, 0)
            )  # what a tile stored is in the nearest cache
            with k.loop(0, k.smax(steps, 1), self._chunk_steps) as chunk:
                depth = k.smin(k.sub(steps, chunk.index), self._chunk_steps)
                accumulate = k.or_(adds, k.zext(k.compare("gt", chunk.index, 0), I64))
                a_chunk = k.gep(a, k.mul(chunk.index, a_step))
                b_chunk = k.gep(b, k.mul(chunk.index, b_step))
                is_end = k.compare("ge", k.add(chunk.index, self._chunk_steps), steps)
                ends = k.and_(k.compare("ne", is_last, 0), is_end)
                with k.loop(0, given["columns"], strip_columns, carry=[b_chunk]) as strip:
                    columns = k.smin(k.sub(given["columns"], strip.index), strip_columns)
                    place = k.gep(sums, strip.index, self._kind.accumulator.bytes)
                    b_here = strip.values[0]
                    column = k.add(problem["column"], k.add(given["column"], strip.index))

                    def finish(sums: Value, row: Value | int, rows: Value, column: Value = column) -> None:
                        """Part of the strip, by its first row and the number of rows."""
                        first = k.add(k.add(problem["row"], given["row"]), row)
                        place_of_c = [k.add(problem["batch"], batch), first, rows, column, columns]
                        k.call(f"{self._prefix}_finish", [given["problem"], sums, *place_of_c])

                    finish_tile = functools.partial(self._finish_if, k, k.and_(ends, by_tiles), finish)
                    operands = a_chunk, b_here, place
                    self._strip(k, problem, depth, operands, columns, strip_columns, accumulate, finish_tile)
                    self._finish_if(k, k.and_(ends, k.not_(by_tiles)), finish, place, 0, given["rows"])
                    strip.next = [k.gep(b_here, b_strip)]

    def _finish_if(
        self,
        k: KernelBuilder,
        condition: Value,
        finish: Callable[[Value, Value | int, Value], None],
        sums: Value,
        row: Value | int,
        rows: Value,
    ) -> None:
        with k.if_(condition):
            finish(sums, row, rows)

    def _strip(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        depth: Value,
        operands: tuple[Value, Value, Value],
        columns: Value,
        strip_columns: Value,
        accumulate: Value,
        finish_tile: Callable[[Value, Value | int, Value], None],
    ) -> None:
        """All tiles of one strip of B; `operands` are A, B and the sums, and a tile is told its sums, row and rows."""
        kind, shape = self._kind, self._shape
        a, b, sums = operands
        vectors = k.sdiv(k.add(columns, shape.lanes - 1), shape.lanes)
        is_edge = k.zext(k.compare("lt", columns, strip_columns), I64)
        index = k.mul(k.sub(k.add(k.mul(is_edge, shape.most_vectors), vectors), 1), shape.rows)
        index = k.select(k.compare("ne", problem["streams"], 0), self._stream_index, index)
        table = k.gep(k.function_pointer(f"{self._prefix}_tiles"), index, 8)
        a_strip, a_row, a_step = problem["tile_a_strip"], problem["tile_a_row"], problem["tile_a_step"]
        b_step, sums_row, rows = problem["tile_b_step"], problem["sums_row"], k.parameters["rows"]
        copies = k.and_(k.compare("ne", problem["copies"], 0), k.compare("gt", rows, self._tile_rows))

        def first_tile() -> list[Value]:
            arguments = [depth, a, a_row, a_step, b, b_step, sums, sums_row, columns, accumulate, k.parameters["copy"]]
            self._call_copying(k, vectors, is_edge, arguments)
            finish_tile(sums, 0, k.const(I64, self._tile_rows))
            step = k.const(I64, shape.columns * kind.packed.bytes)
            below = k.gep(sums, k.mul(sums_row, self._tile_rows))
            return [k.const(I64, self._tile_rows), k.gep(a, a_strip), below, k.parameters["copy"], step]

        def no_tile() -> list[Value]:
            return [k.const(I64, 0), a, sums, b, b_step]

        first, a, sums, b, b_step = k.if_else(copies, first_tile, no_tile)
        with k.loop(first, rows, self._tile_rows, carry=[a, sums]) as tile:
            height = k.smin(k.sub(rows, tile.index), self._tile_rows)
            function = k.load(k.gep(table, k.sub(k.mul(height, kind.parts), 1), 8), PTR)
            place_a, place_c = tile.values
            arguments = [depth, place_a, a_row, a_step, b, b_step, place_c, sums_row, columns, accumulate]
            assert len(arguments) == len(TILE_PARAMETERS)
            k.call(function, arguments)
            finish_tile(place_c, tile.index, height)
            tile.next = [k.gep(place_a, a_strip), k.gep(place_c, k.mul(sums_row, self._tile_rows))]

    def _call_copying(self, k: KernelBuilder, vectors: Value, is_edge: Value, arguments: list[Value]) -> None:
        """The tile that copies its strip of B."""

        def call(tile: Tile) -> None:
            k.call(tile.name(self._kind), arguments)

        whole, *edges = copying_tiles_of(self._shape)
        cases = {tile.vectors: functools.partial(call, tile) for tile in edges[:-1]}
        k.if_else(
            k.compare("eq", is_edge, 0),
            lambda: call(whole),
            lambda: k.switch(vectors, cases, functools.partial(call, edges[-1])),
        )

    def blocks(self) -> None:
        """A range of blocks, those of one row of blocks next to each other."""
        with self._function("blocks", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            row_blocks, column_blocks = problem["row_blocks"], problem["column_blocks"]
            block_rows, block_columns = problem["block_rows"], problem["block_columns"]
            total_rows, total_columns = problem["rows"], problem["columns"]
            copy = k.alloca(I8, self._copy_bytes, align=64)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                rest = k.sdiv(item.index, column_blocks)
                column = k.mul(k.sub(item.index, k.mul(rest, column_blocks)), block_columns)
                batch = k.sdiv(rest, row_blocks)
                row = k.mul(k.sub(rest, k.mul(batch, row_blocks)), block_rows)
                rows = k.smin(k.sub(total_rows, row), block_rows)
                columns = k.smin(k.sub(total_columns, column), block_columns)
                k.call(f"{self._prefix}_block", [problem.place, batch, row, rows, column, columns, copy])

    def _set_blocks(self, k: KernelBuilder, problem: RecordValue, rows: Value | int, columns: Value) -> Value:
        """Cuts the panel into blocks of about this size; how many there are in one matrix."""
        row_blocks = ceil_div(k, problem["rows"], rows)
        block_rows = round_up(k, ceil_div(k, problem["rows"], row_blocks), self._tile_rows)
        block_columns = round_up(k, columns, problem["strip_columns"])
        row_blocks = ceil_div(k, problem["rows"], block_rows)
        column_blocks = ceil_div(k, problem["columns"], block_columns)
        problem.set(
            block_rows=block_rows, block_columns=block_columns, row_blocks=row_blocks, column_blocks=column_blocks
        )
        return k.mul(row_blocks, column_blocks)

    def _run_blocks(self, k: KernelBuilder, parallel: Value, problem: RecordValue, count: Value) -> None:
        rows = k.smax(problem["block_rows"], LEAST_ROWS)
        work = k.mul(k.mul(rows, problem["block_columns"]), k.smax(problem["depth"], 1))
        grain = ceil_div(k, k.const(I64, CHUNK_WORK), work)
        k.call(parallel, [k.function_pointer(f"{self._prefix}_blocks"), problem.place, count, grain])


def _nothing(value: Value | None) -> None:
    """Drops the result of a call that has none."""
