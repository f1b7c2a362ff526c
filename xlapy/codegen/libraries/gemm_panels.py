"""Products of packed operands: panel by panel, each packed once by all threads and then computed block by block."""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I1, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_blocks import GemmBlocks
from xlapy.codegen.libraries.gemm_magnitudes import Seen
from xlapy.codegen.libraries.gemm_packing import emit_packing
from xlapy.codegen.libraries.gemm_planes import emit_plane_packing
from xlapy.codegen.libraries.gemm_problem import (
    BLOCK_COLUMNS,
    LEAST_BLOCK_ROWS,
    PACKED_CHUNK,
    PANEL_COLUMNS,
    PANEL_ROWS,
    PROBLEM,
    RANGE,
    WAY_BYTES,
    ceil_div,
    depth_of,
    even_part,
    round_up,
    row_pitch,
    strip_bytes,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import STEPS_OF_GROUP
from xlapy.codegen.libraries.gemm_types import UNIT_ROW_BYTES
from xlapy.codegen.libraries.gemm_unit_packing import emit_unit_packing
from xlapy.codegen.libraries.gemm_unit_windows import UnitWindowPacking
from xlapy.codegen.libraries.gemm_windows import emit_pack_windows, emit_window_packing, has_windows
from xlapy.codegen.libraries.scratch import Scratch, acquire_scratch, release_scratch
from xlapy.support.records import Record

STEPS_OF_PART = 16
"""Rows of B that are handed out together to be packed, if no more are packed together."""

WIDE_STRIPS = 8
"""With fewer strips rows are too short for that."""

_EVEN_BLOCKS = 8
"""With so many blocks in a panel, the last ones keep nobody waiting for long."""

UNPACKED_TILES_IN_LINES = 20
"""Up to so many tiles one below the other A is not read often enough to be packed, if whole lines of it are of use: its
rows are next to each other at each step along K, so that tiles share lines, or contiguous along K."""

UNPACKED_TILES_BY_ROWS = 40
"""The same of rows contiguous along K if B can stay where it lies, too: it is not packed for so few (AVX2, two cores:
128 by 3072 by 768 0.8 of the time)."""

_MATRIX_WORK = 1 << 24
"""Up to so many multiplications the matrices of a batch, or parts of a single matrix, are computed in one thread each.
"""

_FASTER_UNIT, _FASTER_PLANES = 8, 4
"""How many times as much that is where the matrix unit multiplies, and in planes: packing, which is done no faster,
counts, too."""

_STRIPS_OF_SLOW_LINES = 6
"""Up to so many strips of B, the matrix unit reads rows of A that begin in the middle of lines in less time, though it
takes 1.5 times as long, than they are copied in."""

_COLUMNS_OF_LOW_PANEL = 256
"""Of a panel for the matrix unit and as many rows, or fewer (bf16, 128 by 3072 by 768: 0.9 of the time); half as many
in planes, which take longer to be copied again (256 by 2048 by 2048: 1.12)."""

_EVEN_PARTS = 4
"""Parts of a matrix that are large have so many at least: with more, rows and columns would be packed too often."""


class _Room(Record):
    """The scratch memory of a thread: packed rows of A, packed columns of B, and `sums`, if there are such, with rows
    `sums_row` bytes apart."""

    scratch: Scratch
    sums: Value
    sums_row: Value


class GemmPanels(GemmBlocks):
    """Writes the functions that pack, and those that go through the panels of a matrix and the matrices of a batch."""

    # Packing

    def packing(self) -> None:
        if self._kind.planes > 1:
            emit_plane_packing(self._module, self._kind, self._prefix, self._shape, self._attributes)
            return
        if self._kind.unit:
            emit_unit_packing(self._module, self._kind, self._prefix, self._shape.columns, self._attributes)
            return
        turns_rows = self._turns_rows
        emit_packing(self._module, self._target, self._kind, self._shape, self._prefix, turns_rows=turns_rows)

    def window_packing(self) -> None:
        if self._kind.unit:
            emit_pack_windows(self._module, self._target, self._kind, self._shape, self._prefix, UnitWindowPacking)
            return
        emit_window_packing(self._module, self._target, self._kind, self._shape, self._prefix)

    def pack_strips(self) -> None:
        """A range of the panel's strips, or of parts of these, those of A first."""
        with self._function("pack_strips", RANGE, is_glue=True) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            a_strips = problem["a_strips"]
            with k.loop(k.parameters["begin"], k.parameters["end"]) as strip:
                k.if_else(
                    k.compare("lt", strip.index, a_strips),
                    lambda: self._pack_part_of_a(k, problem, strip.index),
                    lambda: self._pack_part_of_b(k, problem, k.sub(strip.index, a_strips)),
                )

    def _pack_part_of_a(self, k: KernelBuilder, problem: RecordValue, part: Value) -> None:
        """One strip, or some strips side by side."""
        strip = functools.partial(self._pack_strip_of_a, k, problem, part)
        if not self._kind.is_packed_in_memory:
            strip()
            return
        strips = functools.partial(self._pack_strips_of_a, k, problem, part)
        k.if_else(k.compare("ne", problem["packs_wide_steps"], 0), strips, strip)

    def _pack_strips_of_a(self, k: KernelBuilder, problem: RecordValue, part: Value) -> None:
        """Some strips side by side, a few steps of all of them at a time. (Not all strips, for another thread to pack
        the next steps: a vector may reach into the next step.)"""
        first = k.mul(part, WIDE_STRIPS)
        strips = ceil_div(k, problem["rows"], self._tile_rows)
        last, depth = k.smin(k.add(first, WIDE_STRIPS), strips), problem["depth"]
        with k.loop(0, depth, self._steps_together) as step, k.loop(first, last) as strip:
            here = (step.index, depth)
            self._pack_strip(k, problem, "a", "a_row", strip.index, problem["row"], problem["rows"], "pack_a", here)

    def _pack_strip_of_a(self, k: KernelBuilder, problem: RecordValue, strip: Value) -> None:
        first, count = problem["row"], problem["rows"]

        def turned() -> None:
            self._pack_strip(k, problem, "a", "a_row", strip, first, count, "pack_a")

        def kept() -> None:
            self._pack_strip(k, problem, "a", "a_row", strip, first, count, "copy_rows")

        def of_matrix() -> None:
            if self._kind.is_packed_in_memory or self._kind.planes > 1:
                turned()
            elif self._kind.unit:
                kept()
            else:
                k.if_else(self._keeps_rows(k, problem), kept, turned)

        if not has_windows(self._kind):
            of_matrix()
            return
        is_virtual = k.compare("ne", problem["windows"], k.const(PTR, 0))
        k.if_else(is_virtual, lambda: self._pack_windows(k, problem, strip), of_matrix)

    def _pack_windows(self, k: KernelBuilder, problem: RecordValue, strip: Value) -> None:
        first = k.mul(strip, self._shape.rows)
        valid = k.smin(k.sub(problem["rows"], first), self._shape.rows)
        array = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
        packed = k.gep(problem["tile_a"], k.mul(strip, problem["tile_a_strip"]))
        rows = [k.add(problem["row"], first), valid]
        steps = [problem["step"], problem["depth"]]
        k.call(problem["pack_windows"], [problem["windows"], array, *rows, *steps, packed])

    def _keeps_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether A is a matrix whose rows tiles read as they are, be it after a copy because they are widened."""
        if self._kind.unit:
            return k.const(I1, 1)
        is_matrix = k.compare("eq", problem["windows"], k.const(PTR, 0))
        are_rows = k.and_(is_matrix, k.compare("eq", problem["a_step"], self._element_bytes))
        return k.and_(are_rows, self._reads_seldom(k, problem)) if self._turns_rows else are_rows

    def _leaves_a(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether A is read where it lies: by rows, or if its rows are next to each other at each step along K, and not
        read often enough to be packed."""
        if self._kind.unit:
            return k.const(I1, 0) if self._kind.planes > 1 else self._has_whole_lines(k, problem)
        if not self._kind.is_packed_in_memory:
            return k.const(I1, 0)
        is_matrix = k.compare("eq", problem["windows"], k.const(PTR, 0))
        are_columns = k.and_(is_matrix, k.compare("eq", problem["a_row"], self._element_bytes))
        return k.or_(self._keeps_rows(k, problem), k.and_(are_columns, self._reads_seldom(k, problem)))

    def _has_whole_lines(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether rows of A have as many bytes along K as the matrix unit reads at a time, and these are whole lines of
        memory that are not in each other's way in the nearest cache, or are not read often."""
        row, places = problem["a_row"], k.or_(k.address(problem["a"]), problem["a_batch"])
        is_aligned = k.compare("eq", k.and_(k.or_(places, row), CACHE_LINE - 1), 0)
        is_spread = k.compare("ne", k.and_(row, WAY_BYTES - 1), 0)
        is_quick = k.and_(is_aligned, is_spread)
        conditions = [
            k.compare("eq", problem["windows"], k.const(PTR, 0)),
            k.compare("eq", problem["a_step"], self._element_bytes),
            k.compare("eq", k.and_(k.mul(problem["k"], self._element_bytes), CACHE_LINE - 1), 0),
            k.or_(is_quick, k.compare("le", problem["n"], _STRIPS_OF_SLOW_LINES * self._shape.columns)),
        ]
        return functools.reduce(k.and_, conditions)

    def _reads_seldom(self, k: KernelBuilder, problem: RecordValue) -> Value:
        is_low = k.compare("le", problem["m"], UNPACKED_TILES_IN_LINES * self._tile_rows)
        return k.or_(is_low, self._is_small(k, problem))

    def _is_small(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a matrix, or a part of it, is best computed by one thread."""
        work = k.mul(k.mul(problem["m"], problem["n"]), k.smax(problem["k"], 1))
        faster = 1 if not self._kind.unit else _FASTER_UNIT if self._kind.planes == 1 else _FASTER_PLANES
        return k.compare("le", work, _MATRIX_WORK * faster)

    @property
    def _steps_of_part(self) -> int:
        return max(STEPS_OF_PART, self._steps_together)

    def _pack_part_of_b(self, k: KernelBuilder, problem: RecordValue, part: Value) -> None:
        """One strip, or some steps of all strips."""
        start, count = self._whole_columns(k, problem["column"]), self._whole_columns(k, problem["columns"])

        def strip() -> None:
            self._pack_strip(k, problem, "b", "b_column", part, start, count, "pack_b")

        def steps() -> None:
            first = k.mul(part, self._steps_of_part)
            last = k.smin(k.add(first, self._steps_of_part), problem["depth"])
            strips = ceil_div(k, problem["columns"], self._shape.columns)
            with k.loop(first, last, self._steps_together) as step, k.loop(0, strips) as strip:
                here = (step.index, last)
                self._pack_strip(k, problem, "b", "b_column", strip.index, start, count, "pack_b", here)

        k.if_else(k.compare("ne", problem["packs_steps"], 0), steps, strip)

    def _pack_strip(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        matrix: str,
        across: str,
        strip: Value,
        start: Value,
        count: Value,
        function: str,
        steps: tuple[Value, Value] | None = None,
    ) -> None:
        """One strip of the panel's `count` rows or columns, which begin at number `start` of the matrix; from the first
        of `steps` on those packed together or up to the second, or all of them."""
        parts = self._kind.parts
        width = self._shape.rows if matrix == "a" else self._shape.columns
        valid = k.smin(k.sub(k.mul(count, parts), k.mul(strip, width)), width)
        first = k.add(start, k.mul(strip, width // parts))
        source = k.gep(problem[matrix], k.mul(problem["batch"], problem[f"{matrix}_batch"]))
        source = k.gep(source, k.mul(first, problem[across]))
        source = k.gep(source, k.mul(problem["step"], problem[f"{matrix}_step"]))
        packed = k.gep(problem[f"tile_{matrix}"], k.mul(strip, problem[f"tile_{matrix}_strip"]))
        depth = problem["depth"]
        if steps is not None:
            step, end = steps
            source = k.gep(source, k.mul(step, problem[f"{matrix}_step"]))
            packed = k.gep(packed, k.mul(self._steps(k, step), problem[f"tile_{matrix}_step"]))
            depth = k.smin(k.sub(end, step), self._steps_together)
        arguments = [depth, source, problem[across], problem[f"{matrix}_step"], valid, packed]
        if function == "copy_rows":
            arguments.append(problem["tile_a_row"])
        if self._kind.planes > 1:
            arguments.append(Seen(k).place)  # magnitudes were looked at before
        k.call(f"{self._prefix}_{function}", arguments)

    # One matrix

    def alone(self) -> None:
        """A `parallel` that uses no other thread."""
        parameters = [("kernel", PTR), ("args", PTR), ("count", I64), ("grain", I64)]
        with self._function("alone", parameters) as k:
            kernel, args, count, _ = k.parameters.values()
            k.call(kernel, [args, k.const(I64, 0), count])

    def matrix(self) -> None:
        """Number `batch` of the problem's products, panel by panel."""
        with self._function("matrix", [("parallel", PTR), ("problem", PTR), ("batch", I64)], is_glue=True) as k:
            parallel = k.parameters["parallel"]
            problem = self._one_of_batch(k, k.parameters["batch"])
            m, n, depth = problem["m"], problem["n"], problem["k"]
            rows = even_part(k, m, PANEL_ROWS, self._tile_rows)
            is_free = k.and_(self._leaves_a(k, problem), k.compare("eq", problem["uses_scratch"], 0))
            rows = k.select(is_free, round_up(k, m, self._tile_rows), rows)
            columns = self._columns_of_panel(k, m, n)
            is_one_step = k.compare("le", depth, self._panel_depth(k, problem, depth))
            room = self._room(k, problem, rows, columns)
            with k.loop(0, n, columns) as column, k.loop(0, m, rows) as row:
                self._choose_part(k, problem, row.index, rows, column.index, columns)
                self._panels_of_part(k, parallel, problem, room, k.and_(k.compare("gt", row.index, 0), is_one_step))
            release_scratch(k, room.scratch)

    def _columns_of_panel(self, k: KernelBuilder, m: Value, n: Value) -> Value:
        """Fewer for the matrix unit and few rows, which take no long to be copied again: what is packed of B then stays
        in the second-level cache."""
        columns = even_part(k, n, PANEL_COLUMNS, self._shape.columns)
        if not self._kind.unit:
            return columns
        few = even_part(k, n, _COLUMNS_OF_LOW_PANEL, self._shape.columns)
        low = _COLUMNS_OF_LOW_PANEL if self._kind.planes == 1 else _COLUMNS_OF_LOW_PANEL // 2
        return k.select(k.compare("le", m, low), few, columns)

    def parts(self) -> None:
        """A range of parts of the matrix at hand, each packed and computed by one thread."""
        with self._function("parts", RANGE, is_glue=True) as k:
            alone = k.function_pointer(f"{self._prefix}_alone")
            problem = self._one_of_batch(k, PROBLEM.at(k, k.parameters["problem"])["batch"])
            rows, columns, row_parts = problem["block_rows"], problem["block_columns"], problem["row_blocks"]
            room = self._room(k, problem, rows, columns)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                column = k.udiv(item.index, row_parts)
                row = k.sub(item.index, k.mul(column, row_parts))
                self._choose_part(k, problem, k.mul(row, rows), rows, k.mul(column, columns), columns)
                self._panels_of_part(k, alone, problem, room, k.const(I1, 0))
            release_scratch(k, room.scratch)

    def _one_of_batch(self, k: KernelBuilder, batch: Value) -> RecordValue:
        """The problem of one of the matrices, to be changed."""
        problem = PROBLEM.at(k, k.parameters["problem"]).copy()
        problem.set(batch=batch, k=depth_of(k, problem, batch, problem["k"]), missing_steps=0)
        return problem

    def _choose_part(
        self, k: KernelBuilder, problem: RecordValue, row: Value, rows: Value, column: Value, columns: Value
    ) -> None:
        """Makes the part of C at hand the one that begins at `row` and `column`, or what there is of so many."""
        problem.set(
            row=row,
            rows=k.smin(k.sub(problem["m"], row), rows),
            column=column,
            columns=k.smin(k.sub(problem["n"], column), columns),
        )

    def _panels_of_part(
        self, k: KernelBuilder, parallel: Value, problem: RecordValue, room: _Room, is_b_packed: Value
    ) -> None:
        """Its panels, one after the other along K."""
        depth, panel_depth = problem["k"], self._panel_depth(k, problem, problem["k"])
        self._place_sums(k, problem, room)
        with k.loop(0, k.smax(depth, 1), panel_depth) as step:
            problem["step"] = step.index
            problem["depth"] = k.smin(k.sub(depth, step.index), panel_depth)
            self._panel(k, parallel, problem, is_b_packed)

    @property
    def _most_panel_steps(self) -> int:
        """Of a panel, if nothing else is said: a chunk."""
        return self._chunk_steps * self._kind.pair // self._kind.planes

    def _panel_depth(self, k: KernelBuilder, problem: RecordValue, depth: Value) -> Value:
        """Steps along K that are packed at once. Complex sums are put together at the end of each, so that
        they are those of operands that are read in place."""
        multiple = max(STEPS_OF_GROUP, self._steps_together)
        most = problem["panel_steps"]
        if self._kind.parts == 2:
            most = k.select(
                k.compare("gt", depth, self._chunk_steps), self._part_steps, k.const(I64, self._chunk_steps)
            )
        return even_part(k, k.smax(depth, 1), most, multiple)

    def _room(self, k: KernelBuilder, problem: RecordValue, rows: Value, columns: Value) -> _Room:
        """Scratch memory for panels of up to so many rows and columns, in which tiles find what is packed."""
        kind, shape = self._kind, self._shape
        steps = self._steps(k, k.smin(k.smax(problem["k"], 1), problem["panel_steps"]))
        a_strips, b_strips = ceil_div(k, rows, self._tile_rows), ceil_div(k, columns, shape.columns)
        of_a = k.mul(a_strips, self._distances_in_a(k, problem, steps)[2])
        b = k.select(self._leaves_a(k, problem), 0, of_a)
        of_b = k.mul(b_strips, strip_bytes(k, steps, shape.columns * kind.packed.bytes))
        sums = k.add(b, k.select(self._is_packed_before(k, problem), 0, of_b))
        sums_row = k.mul(columns, kind.accumulator.bytes)
        of_sums = k.select(k.compare("ne", problem["uses_scratch"], 0), k.mul(rows, sums_row), 0)
        scratch = acquire_scratch(k, k.add(sums, of_sums))
        problem.set(
            strip_columns=shape.columns,
            tile_a=scratch.memory,
            tile_a_batch=0,
            tile_b=k.gep(scratch.memory, b),
            tile_b_batch=0,
            tile_b_step=kind.packed.bytes * shape.columns,
            sums_batch=0,
            stream=k.const(PTR, 0),
            copies=0,
        )
        return _Room(scratch, k.gep(scratch.memory, sums), sums_row)

    def _describe_a(self, k: KernelBuilder, problem: RecordValue, steps: Value) -> None:
        """How tiles read A, from the place where the panel's part begins if it stays where it lies."""
        place = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
        place = k.gep(place, k.mul(problem["row"], problem["a_row"]))
        place = k.gep(place, k.mul(problem["step"], problem["a_step"]))
        row, step, strip = self._distances_in_a(k, problem, steps)
        leaves = self._leaves_a(k, problem)
        problem.set(
            tile_a=k.select(leaves, place, problem["tile_a"]), tile_a_row=row, tile_a_step=step, tile_a_strip=strip
        )

    def _describe_packed_b(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Where tiles find the panel's part of a B that the caller has packed."""
        with k.if_(self._is_packed_before(k, problem)):
            strip = k.udiv(problem["column"], self._shape.columns)
            place = k.gep(problem["b"], k.mul(problem["batch"], problem["b_batch"]))
            place = k.gep(place, k.mul(strip, problem["b_strip"]))
            place = k.gep(place, k.mul(problem["step"], problem["b_step"]))
            problem.set(tile_b=place, tile_b_strip=problem["b_strip"])

    def _distances_in_a(self, k: KernelBuilder, problem: RecordValue, steps: Value) -> list[Value]:
        """The bytes from row to row, step to step and strip to strip: of rows or columns where they lie, of rows that
        were copied, or of strips turned round so that the elements of a step are adjacent."""
        kind, shape = self._kind, self._shape
        element, turned_step = kind.packed.bytes * kind.parts, kind.packed.bytes * shape.rows
        turned = [k.const(I64, element), k.const(I64, turned_step), strip_bytes(k, steps, turned_step)]
        if kind.is_packed_in_memory:
            is_kept, row, step = self._leaves_a(k, problem), problem["a_row"], problem["a_step"]
        elif kind.planes > 1:
            return [k.const(I64, UNIT_ROW_BYTES), *turned[1:]]
        elif kind.unit:
            row = k.select(self._leaves_a(k, problem), problem["a_row"], row_pitch(k, steps, element))
            return [row, k.const(I64, element), k.mul(row, self._tile_rows)]
        else:
            is_kept, row = self._keeps_rows(k, problem), row_pitch(k, steps, element)
            step = k.const(I64, element)
        kept = [row, step, k.mul(row, self._tile_rows)]
        return [k.select(is_kept, here, otherwise) for here, otherwise in zip(kept, turned, strict=True)]

    def _place_sums(self, k: KernelBuilder, problem: RecordValue, room: _Room) -> None:
        """Where the sums of the part at hand grow: in C if it can hold them."""

        def in_c() -> list[Value]:
            place = k.gep(problem["c"], k.mul(problem["batch"], problem["c_batch"]))
            place = k.gep(place, k.mul(problem["row"], problem["c_row"]))
            return [k.gep(place, problem["column"], self._kind.accumulator.bytes), problem["c_row"]]

        def in_scratch() -> list[Value]:
            return [room.sums, room.sums_row]

        problem["sums"], problem["sums_row"] = k.if_else(k.compare("ne", problem["uses_scratch"], 0), in_scratch, in_c)

    def _panel(self, k: KernelBuilder, parallel: Value, problem: RecordValue, is_b_packed: Value) -> None:
        """Packs a panel, B only unless it is there already, and computes its blocks."""
        kind, shape = self._kind, self._shape
        steps = self._steps(k, problem["depth"])
        first, last = problem["step"], k.add(problem["step"], problem["depth"])
        adds_to_c = k.select(k.compare("ne", problem["uses_scratch"], 0), 0, problem["accumulate"])
        a_strips = k.select(self._leaves_a(k, problem), 0, ceil_div(k, problem["rows"], self._tile_rows))
        by_rows = k.compare("eq", problem["b_column"], self._element_bytes)
        packs_steps = k.and_(by_rows, k.compare("ge", problem["columns"], WIDE_STRIPS * shape.columns))
        b_parts = k.select(
            packs_steps,
            ceil_div(k, problem["depth"], self._steps_of_part),
            ceil_div(k, problem["columns"], shape.columns),
        )
        if kind.is_packed_in_memory:
            has_wide_steps = self._has_wide_steps_of_a(k, problem)
            problem["packs_wide_steps"] = k.zext(has_wide_steps, I64)
            a_strips = k.select(has_wide_steps, ceil_div(k, a_strips, WIDE_STRIPS), a_strips)
        problem.set(
            adds=k.or_(adds_to_c, k.zext(k.compare("gt", first, 0), I64)),
            is_last=k.zext(k.compare("ge", last, problem["k"]), I64),
            tile_b_strip=strip_bytes(k, steps, shape.columns * kind.packed.bytes),
            a_strips=a_strips,
            packs_steps=k.zext(packs_steps, I64),
        )
        self._describe_a(k, problem, steps)
        self._describe_packed_b(k, problem)
        is_b_packed = k.or_(is_b_packed, self._is_packed_before(k, problem))
        grain = ceil_div(k, k.const(I64, PACKED_CHUNK), k.mul(k.smax(steps, 1), shape.columns))
        k.call(
            parallel,
            [
                k.function_pointer(f"{self._prefix}_pack_strips"),
                problem.place,
                k.add(a_strips, k.select(is_b_packed, 0, b_parts)),
                grain,
            ],
        )
        columns = self._columns_of_block_in_panel(k, problem)
        count = self._set_blocks(k, problem, self._rows_of_block(k, problem, columns), columns)
        self._run_blocks(k, parallel, problem, count)

    def _has_wide_steps_of_a(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether rows of A are side by side at each step, of which a strip has less than a line."""
        is_matrix = k.compare("eq", problem["windows"], k.const(PTR, 0))
        return k.and_(is_matrix, k.compare("eq", problem["a_row"], self._element_bytes))

    def _columns_of_block_in_panel(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """More where each block must copy its rows of A, unless the last one would be narrower: to wait for each other
        takes longer than the copies (300 by 700)."""
        is_wide = k.compare("ge", problem["columns"], 4 * BLOCK_COLUMNS)
        usual = k.select(is_wide, k.const(I64, BLOCK_COLUMNS), BLOCK_COLUMNS // 2)

        def wide() -> Value:
            row_blocks = ceil_div(k, problem["rows"], LEAST_BLOCK_ROWS)
            return self._columns_of_wide_block(k, problem, row_blocks, usual)

        is_even = k.compare("eq", k.and_(problem["columns"], BLOCK_COLUMNS - 1), 0)
        return k.if_else(k.and_(is_even, self._has_crowded_rows(k, problem)), wide, lambda: usual)[0]

    def _rows_of_block(self, k: KernelBuilder, problem: RecordValue, columns: Value) -> Value:
        """Fewer rows where there would be too few blocks to share out evenly, but enough to be worth handing out."""
        column_blocks = ceil_div(k, problem["columns"], columns)
        even = ceil_div(k, k.mul(problem["rows"], column_blocks), _EVEN_BLOCKS)
        across = k.mul(k.smin(problem["columns"], columns), k.smax(problem["depth"], 1))
        least = ceil_div(k, k.const(I64, self._least_work), across)
        return k.smin(self._block_rows, k.smax(even, least))

    # A batch

    def matrices(self) -> None:
        """A range of the batch, each in one thread."""
        self._each_alone("matrices", "matrix")

    def _each_alone(self, name: str, matrix: str) -> None:
        """Writes a function that computes a range of the batch, each by the function for a `matrix`, in one thread."""
        with (
            self._function(name, RANGE, is_glue=True) as k,
            k.loop(k.parameters["begin"], k.parameters["end"]) as item,
        ):
            alone = k.function_pointer(f"{self._prefix}_alone")
            k.call(f"{self._prefix}_{matrix}", [alone, k.parameters["problem"], item.index])

    def _run_packed(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Small matrices in parallel, or parts of a small one, or all that is to be done for each larger one. Windows
        take too long to be packed for each part."""
        is_small, is_single = self._is_small(k, problem), self._is_single(k, problem)
        is_matrix = k.compare("eq", problem["windows"], k.const(PTR, 0))

        def one_by_one() -> None:
            with k.loop(0, problem["batches"]) as item:
                k.call(f"{self._prefix}_matrix", [k.parameters["parallel"], problem.place, item.index])

        def unless_small() -> None:
            has_parts = k.and_(is_matrix, self._suits_parts(k, problem, is_small))
            k.if_else(has_parts, lambda: self._run_parts(k, problem), one_by_one)

        are_small = k.and_(is_small, k.not_(is_single))
        k.if_else(are_small, lambda: self._run_matrices(k, problem, "matrices"), unless_small)

    def _suits_parts(self, k: KernelBuilder, problem: RecordValue, is_small: Value) -> Value:
        """Whether each part of a matrix had better pack what it needs."""
        return k.and_(self._is_single(k, problem), is_small)

    def _is_single(self, k: KernelBuilder, problem: RecordValue) -> Value:
        return k.compare("eq", problem["batches"], 1)

    def _run_matrices(self, k: KernelBuilder, problem: RecordValue, function: str) -> None:
        """The matrices of a batch, by a function that computes a range of them."""
        each = k.mul(k.mul(problem["m"], problem["n"]), work_per_element(k, problem, problem["k"]))
        grain = self._grain(k, problem["batches"], each)
        matrices = k.function_pointer(f"{self._prefix}_{function}")
        k.call(k.parameters["parallel"], [matrices, problem.place, problem["batches"], grain])

    def _run_parts(self, k: KernelBuilder, problem: RecordValue) -> None:
        """What several parts need is packed by each: to wait until all is packed, and to fetch from another core what
        that one has just written, takes longer (bf16, two cores: 128 by 128 30 us before, 22 so; 256: 178 and 161)."""
        m, n = problem["m"], problem["n"]
        rows, columns = self._part_of_rows(k, m, n)
        row_parts = ceil_div(k, m, rows)
        problem.set(batch=0, block_rows=rows, block_columns=columns, row_blocks=row_parts)
        work = k.mul(k.mul(k.smin(rows, m), k.smin(columns, n)), work_per_element(k, problem, problem["k"]))
        count = k.mul(row_parts, ceil_div(k, n, columns))
        grain = self._grain(k, count, work)
        k.call(k.parameters["parallel"], [k.function_pointer(f"{self._prefix}_parts"), problem.place, count, grain])

    def _part_of_rows(self, k: KernelBuilder, m: Value, n: Value) -> tuple[Value, Value]:
        """Rows and columns of a part, with as many rows as a panel has."""
        even_rows = ceil_div(k, k.mul(m, ceil_div(k, n, BLOCK_COLUMNS // 4)), _EVEN_PARTS)
        most_rows = k.smin(k.smax(even_rows, LEAST_BLOCK_ROWS), PANEL_ROWS)
        rows = round_up(k, ceil_div(k, m, ceil_div(k, m, most_rows)), self._tile_rows)
        row_parts = ceil_div(k, m, rows)
        even_columns = ceil_div(k, k.mul(n, row_parts), _EVEN_PARTS)
        most_columns = k.smin(k.smax(even_columns, BLOCK_COLUMNS // 4), PANEL_COLUMNS)
        return rows, round_up(k, ceil_div(k, n, ceil_div(k, n, most_columns)), self._shape.columns)
