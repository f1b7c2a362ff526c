"""Matrix products: C[m, n] (+)= sum over k of A[m, k] B[k, n], for a batch of matrices with any strides.

    void gemm_f32_run(parallel, a, b, c, sizes, epilogue, epilogue_args)

`parallel` is the thread pool's function; `sizes` holds the numbers of `SIZES`, with strides in elements. If there is an
`epilogue`, it is called for each block of C once that is finished and while it is in cache, possibly from several
threads at once; the blocks cover C without overlap:

    void epilogue(args, block, batch, row, rows, column, columns)     block: where C[batch, row, column] is

How a product is computed:

    panel      a part of A, B and C that is packed at once, if packing pays: strips of A and of B, in shared scratch
    block      a part of the panel's C, the unit of work of a thread; A's and B's parts of it fit the second-level cache
    chunk      a stretch of K, so that a strip of B stays in the first-level cache while all strips of A go by
    tile       what the registers hold (`gemm_tile`)

Operands are described to tiles by strides, so that "packed" and "where it lies" are the same code. All splits depend on
the sizes alone; each element of C is summed in one order, whatever the number of threads.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.gemm_packing import SLACK_BYTES, emit_packing, packed_strip_bytes
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.libraries.gemm_scratch import acquire_scratch, emit_scratch, release_scratch
from xlapy.codegen.libraries.gemm_tile import TILE_PARAMETERS, TileShape, emit_tile, tile_shape, tiles_of
from xlapy.codegen.libraries.gemm_types import GEMM_TYPES, GemmType
from xlapy.codegen.libraries.gemm_vector import (
    DOT_COLUMNS,
    STREAM_ROWS,
    dot_rows,
    dots_name,
    emit_dots,
    emit_stream,
    stream_name,
)
from xlapy.codegen.target import Target

SIZES = (
    "batches",
    "m",
    "n",
    "k",
    "a_batch",
    "a_row",
    "a_step",
    "b_batch",
    "b_step",
    "b_column",
    "c_batch",
    "c_row",
    "c_column",
    "accumulate",
)
"""The numbers a caller passes, in order: sizes, strides in elements, and 1 to add to C or 0 to replace it."""

_CHUNK_STEPS = 256
_PANEL_STEP_BYTES = 4096
"""Bytes along K of one packed row in a panel: a multiple of the chunk for every type."""

_PANEL_ROWS = 1008
_PANEL_COLUMNS = 2048
_BLOCK_ROWS = 120
_BLOCK_COLUMNS = 256
_STREAMED_ELEMENTS = 32768
"""Elements of B in a block that is read only once."""

_STREAM_COLUMNS = 1024
"""Columns of C that stay in the first-level cache while rows of B are streamed."""

_STREAM_LEAST_COLUMNS = 256
_DOTS_ROWS = 8
"""The most rows (or columns) of a product that is computed as so many dot products along K."""

_DOTS_COLUMNS = 16
_DOTS_DEPTH = 32
_LEAST_ROWS = 16
"""With fewer rows than this the time is that of reading B, as if there were so many."""

_UNPACKED_WORK = 256**3
"""Below so many multiplications packing costs more than it gains."""

_UNPACKED_TILES = 4
"""Up to so many tiles one below the other a strip of B is not read often enough to be packed."""

_CHUNK_WORK = 1 << 21
"""Multiplications that make it worth to hand work to another thread: some ten microseconds."""

_PACKED_CHUNK = 1 << 16
"""Elements that a thread packs at a time."""

_PROBLEM = Record(
    # The call; a product whose C is stored by columns is turned into that of the transposes.
    a=PTR,
    b=PTR,
    c=PTR,
    batches=I64,
    m=I64,
    n=I64,
    k=I64,
    a_batch=I64,
    a_row=I64,
    a_step=I64,
    b_batch=I64,
    b_step=I64,
    b_column=I64,
    c_batch=I64,
    c_row=I64,
    c_column=I64,
    accumulate=I64,
    is_transposed=I64,
    epilogue=PTR,
    epilogue_args=PTR,
    # The panel at hand. Columns count reals.
    batch=I64,
    row=I64,
    rows=I64,
    column=I64,
    columns=I64,
    step=I64,
    depth=I64,
    adds=I64,
    is_last=I64,
    # How tiles find its operands and where they put the sums: in C, or in scratch to be rounded or scattered.
    uses_scratch=I64,
    tile_a=PTR,
    tile_a_batch=I64,
    tile_a_strip=I64,
    tile_a_row=I64,
    tile_a_step=I64,
    tile_b=PTR,
    tile_b_batch=I64,
    tile_b_strip=I64,
    tile_b_step=I64,
    sums=PTR,
    sums_batch=I64,
    sums_row=I64,
    streams=I64,
    # Its blocks.
    strip_columns=I64,
    block_rows=I64,
    block_columns=I64,
    row_blocks=I64,
    column_blocks=I64,
    a_strips=I64,
)

_TRANSPOSED = {"a": "b", "m": "n", "a_batch": "b_batch", "a_row": "b_column", "a_step": "b_step", "c_row": "c_column"}
"""The fields that a product and that of the transposes have exchanged."""

_RANGE = [("problem", PTR), ("begin", I64), ("end", I64)]
_RUN = [("parallel", PTR), ("a", PTR), ("b", PTR), ("c", PTR), ("sizes", PTR), ("epilogue", PTR), ("args", PTR)]


def emit_gemm(kind: GemmType, target: Target) -> str:
    module = Module(has_fma=target.has_fma)
    emitter = _GemmEmitter(module, kind.on(target), target)
    emitter.tiles()
    emitter.packing()
    emitter.copy_out()
    emitter.finish()
    emitter.block()
    emitter.blocks()
    emitter.pack_strips()
    emitter.alone()
    emitter.matrix()
    emitter.matrices()
    emitter.dots()
    emitter.run()
    return module.text()


def _library(kind: GemmType) -> Library:
    return Library(f"gemm_{kind.name}", (f"gemm_{kind.name}_run",), lambda target: emit_gemm(kind, target))


GEMM_LIBRARIES = {name: _library(kind) for name, kind in GEMM_TYPES.items()}
"""By the element type of the operands; "bf16_f32" and "f16_f32" leave the sums as they are."""


class _GemmEmitter:
    """Writes the functions of one library, in the order in which they build on each other."""

    def __init__(self, module: Module, kind: GemmType, target: Target) -> None:
        self._module = module
        self._kind = kind
        self._target = target
        self._shape: TileShape = tile_shape(kind, target)
        self._prefix = f"gemm_{kind.name}"
        self._attributes = f"nounwind {target.function_attributes}".rstrip()
        self._tile_rows = self._shape.rows // kind.parts
        """Rows of C in a tile; `shape.rows` counts reals."""
        self._element_bytes = kind.element.bytes * kind.parts
        self._result_bytes = kind.result.bytes
        self._c_bytes = kind.result.bytes * kind.parts
        self._panel_steps = _PANEL_STEP_BYTES // kind.packed.bytes
        panel_strips = -(-_PANEL_ROWS // self._tile_rows), _PANEL_COLUMNS // self._shape.columns
        self._b_offset = panel_strips[0] * packed_strip_bytes(kind, self._shape.rows, self._panel_steps)
        self._sums_offset = self._b_offset + panel_strips[1] * packed_strip_bytes(
            kind, self._shape.columns, self._panel_steps
        )
        self._scratch_bytes = (
            self._sums_offset + panel_strips[0] * self._tile_rows * _PANEL_COLUMNS * kind.accumulator.bytes
        )

    def _function(self, name: str, parameters: list[tuple[str, IRType]], linkage: str = "internal") -> KernelBuilder:
        return KernelBuilder(self._module, f"{self._prefix}_{name}", parameters, None, linkage, self._attributes)

    # Tiles and packing

    def tiles(self) -> None:
        """The tiles, and a table to find them in: by edge or not, number of vectors, number of rows."""
        names = {}
        for tile in tiles_of(self._kind, self._shape):
            emit_tile(self._module, self._target, self._kind, self._shape, tile)
            names[self._tile_index(tile.is_edge, tile.vectors, tile.rows)] = tile.name(self._kind)
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
        return 2 * self._shape.wide_vectors * self._shape.rows

    def _tile_index(self, is_edge: bool, vectors: int, rows: int) -> int:
        return (is_edge * self._shape.wide_vectors + vectors - 1) * self._shape.rows + rows - 1

    def packing(self) -> None:
        for name, width in (("pack_a", self._shape.rows), ("pack_b", self._shape.columns)):
            emit_packing(self._module, self._target, self._kind, self._shape, f"{self._prefix}_{name}", width)
        emit_scratch(self._module, self._target, f"{self._prefix}_scratch", self._scratch_bytes)

    def pack_strips(self) -> None:
        """A range of the panel's strips, those of A first."""
        kind, shape = self._kind, self._shape
        with self._function("pack_strips", _RANGE) as k:
            problem = _PROBLEM.at(k, k.parameters["problem"])
            a_strips = problem["a_strips"]

            def pack(function: str, strip: Value, width: int, matrix: str, names: tuple[str, str, str]) -> None:
                across, start, count = names
                position = k.mul(strip, width // kind.parts if matrix == "a" else width)
                valid = k.smin(
                    k.sub(k.mul(problem[count], kind.parts if matrix == "a" else 1), k.mul(strip, width)), width
                )
                whole = position if matrix == "a" else self._whole_columns(k, position)
                first = k.add(whole, problem[start] if matrix == "a" else self._whole_columns(k, problem[start]))
                source = k.gep(problem[matrix], k.mul(problem["batch"], problem[f"{matrix}_batch"]))
                source = k.gep(source, k.mul(first, problem[across]))
                source = k.gep(source, k.mul(problem["step"], problem[f"{matrix}_step"]))
                packed = k.gep(problem[f"tile_{matrix}"], k.mul(strip, problem[f"tile_{matrix}_strip"]))
                depth = problem["depth"]
                k.call(function, [depth, source, problem[across], problem[f"{matrix}_step"], valid, packed])

            with k.loop(k.parameters["begin"], k.parameters["end"]) as strip:
                k.if_else(
                    k.compare("lt", strip.index, a_strips),
                    lambda: pack(f"{self._prefix}_pack_a", strip.index, shape.rows, "a", ("a_row", "row", "rows")),
                    lambda: pack(
                        f"{self._prefix}_pack_b",
                        k.sub(strip.index, a_strips),
                        shape.columns,
                        "b",
                        ("b_column", "column", "columns"),
                    ),
                )

    def _whole_columns(self, k: KernelBuilder, reals: Value) -> Value:
        return k.lshr(reals, self._kind.parts - 1)

    # Finished blocks

    def copy_out(self) -> None:
        """Sums in scratch to C: rounded, added, scattered, as the product wants it."""
        parameters = [("problem", PTR), ("sums", PTR), ("c", PTR), ("rows", I64), ("columns", I64)]
        with self._function("copy_out", parameters) as k:
            problem = _PROBLEM.at(k, k.parameters["problem"])
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

    def finish(self) -> None:
        """What happens to a part of C once its sums are complete."""
        parameters = [("problem", PTR), ("sums", PTR)]
        parameters += [(name, I64) for name in ("batch", "row", "rows", "column", "columns")]
        with self._function("finish", parameters) as k:
            given = k.parameters
            problem = _PROBLEM.at(k, given["problem"])
            column = self._whole_columns(k, given["column"])
            c = k.gep(problem["c"], k.mul(given["batch"], problem["c_batch"]))
            c = k.gep(k.gep(c, k.mul(given["row"], problem["c_row"])), k.mul(column, problem["c_column"]))
            with k.if_(k.compare("ne", problem["uses_scratch"], 0)):
                copied = [given["problem"], given["sums"], c, given["rows"], given["columns"]]
                k.call(f"{self._prefix}_copy_out", copied)
            epilogue = problem["epilogue"]
            with k.if_(k.compare("ne", epilogue, k.const(PTR, 0))):
                rows = [given["row"], given["rows"]]
                columns = [column, self._whole_columns(k, given["columns"])]
                args = [problem["epilogue_args"], c, given["batch"]]
                k.if_else(
                    k.compare("ne", problem["is_transposed"], 0),
                    lambda: _nothing(k.call(epilogue, [*args, *columns, *rows])),
                    lambda: _nothing(k.call(epilogue, [*args, *rows, *columns])),
                )

    # Blocks

    def block(self) -> None:
        """One block of the panel: chunk by chunk along K, strip by strip of B, tile by tile down the strips of A."""
        parameters = [("problem", PTR), ("batch", I64)]
        parameters += [(name, I64) for name in ("row", "rows", "column", "columns")]
        with self._function("block", parameters) as k:
            given = k.parameters
            problem = _PROBLEM.at(k, given["problem"])
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
            with k.loop(0, k.smax(steps, 1), _CHUNK_STEPS) as chunk:
                depth = k.smin(k.sub(steps, chunk.index), _CHUNK_STEPS)
                accumulate = k.or_(adds, k.zext(k.compare("gt", chunk.index, 0), I64))
                a_chunk = k.gep(a, k.mul(chunk.index, a_step))
                b_chunk = k.gep(b, k.mul(chunk.index, b_step))
                ends = k.and_(is_last, k.zext(k.compare("ge", k.add(chunk.index, _CHUNK_STEPS), steps), I64))
                with k.loop(0, given["columns"], strip_columns, carry=[b_chunk]) as strip:
                    columns = k.smin(k.sub(given["columns"], strip.index), strip_columns)
                    place = k.gep(sums, strip.index, self._kind.accumulator.bytes)
                    b_here = strip.values[0]
                    self._strip(k, problem, depth, a_chunk, b_here, place, columns, strip_columns, accumulate)
                    with k.if_(k.compare("ne", ends, 0)):
                        rows = [k.add(problem["row"], given["row"]), given["rows"]]
                        column = k.add(problem["column"], k.add(given["column"], strip.index))
                        place_of_c = [k.add(problem["batch"], batch), *rows, column, columns]
                        k.call(f"{self._prefix}_finish", [given["problem"], place, *place_of_c])
                    strip.next = [k.gep(b_here, b_strip)]

    def _steps(self, k: KernelBuilder, depth: Value) -> Value:
        """Packed steps for `depth` elements along K."""
        return k.lshr(k.add(depth, self._kind.pair - 1), self._kind.pair - 1)

    def _strip(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        depth: Value,
        a: Value,
        b: Value,
        sums: Value,
        columns: Value,
        strip_columns: Value,
        accumulate: Value,
    ) -> None:
        """All tiles of one strip of B."""
        kind, shape = self._kind, self._shape
        vectors = k.sdiv(k.add(columns, shape.lanes - 1), shape.lanes)
        is_edge = k.zext(k.compare("lt", columns, strip_columns), I64)
        index = k.mul(k.sub(k.add(k.mul(is_edge, shape.wide_vectors), vectors), 1), shape.rows)
        index = k.select(k.compare("ne", problem["streams"], 0), self._stream_index, index)
        table = k.gep(k.function_pointer(f"{self._prefix}_tiles"), index, 8)
        a_strip, a_row, a_step = problem["tile_a_strip"], problem["tile_a_row"], problem["tile_a_step"]
        b_step, sums_row, rows = problem["tile_b_step"], problem["sums_row"], k.parameters["rows"]
        with k.loop(0, rows, self._tile_rows, carry=[a, sums]) as tile:
            height = k.smin(k.sub(rows, tile.index), self._tile_rows)
            function = k.load(k.gep(table, k.sub(k.mul(height, kind.parts), 1), 8), PTR)
            place_a, place_c = tile.values
            arguments = [depth, place_a, a_row, a_step, b, b_step, place_c, sums_row, columns, accumulate]
            assert len(arguments) == len(TILE_PARAMETERS)
            k.call(function, arguments)
            tile.next = [k.gep(place_a, a_strip), k.gep(place_c, k.mul(sums_row, self._tile_rows))]

    def blocks(self) -> None:
        """A range of blocks, those of one row of blocks next to each other."""
        with self._function("blocks", _RANGE) as k:
            problem = _PROBLEM.at(k, k.parameters["problem"])
            row_blocks, column_blocks = problem["row_blocks"], problem["column_blocks"]
            block_rows, block_columns = problem["block_rows"], problem["block_columns"]
            total_rows, total_columns = problem["rows"], problem["columns"]
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                rest = k.sdiv(item.index, column_blocks)
                column = k.mul(k.sub(item.index, k.mul(rest, column_blocks)), block_columns)
                batch = k.sdiv(rest, row_blocks)
                row = k.mul(k.sub(rest, k.mul(batch, row_blocks)), block_rows)
                rows = k.smin(k.sub(total_rows, row), block_rows)
                columns = k.smin(k.sub(total_columns, column), block_columns)
                k.call(f"{self._prefix}_block", [problem.place, batch, row, rows, column, columns])

    def _set_blocks(self, k: KernelBuilder, problem: RecordValue, rows: Value | int, columns: Value) -> Value:
        """Cuts the panel into blocks of about this size; how many there are in one matrix."""
        row_blocks = _ceil_div(k, problem["rows"], rows)
        block_rows = _round_up(k, _ceil_div(k, problem["rows"], row_blocks), self._tile_rows)
        block_columns = _round_up(k, columns, problem["strip_columns"])
        row_blocks = _ceil_div(k, problem["rows"], block_rows)
        column_blocks = _ceil_div(k, problem["columns"], block_columns)
        problem.set(
            block_rows=block_rows, block_columns=block_columns, row_blocks=row_blocks, column_blocks=column_blocks
        )
        return k.mul(row_blocks, column_blocks)

    def _run_blocks(self, k: KernelBuilder, parallel: Value, problem: RecordValue, count: Value) -> None:
        rows = k.smax(problem["block_rows"], _LEAST_ROWS)
        work = k.mul(k.mul(rows, problem["block_columns"]), k.smax(problem["depth"], 1))
        grain = _ceil_div(k, k.const(I64, _CHUNK_WORK), work)
        k.call(parallel, [k.function_pointer(f"{self._prefix}_blocks"), problem.place, count, grain])

    # One matrix, packed panel by panel

    def alone(self) -> None:
        """A `parallel` that uses no other thread."""
        parameters = [("kernel", PTR), ("args", PTR), ("count", I64), ("grain", I64)]
        with self._function("alone", parameters) as k:
            kernel, args, count, _ = k.parameters.values()
            k.call(kernel, [args, k.const(I64, 0), count])

    def matrix(self) -> None:
        """Number `batch` of the problem's products, panel by panel."""
        with self._function("matrix", [("parallel", PTR), ("problem", PTR), ("batch", I64)]) as k:
            parallel = k.parameters["parallel"]
            problem = _PROBLEM.at(k, k.parameters["problem"]).copy()
            problem["batch"] = k.parameters["batch"]
            slot, memory = acquire_scratch(k, f"{self._prefix}_scratch")
            problem["strip_columns"] = self._shape.columns
            self._describe_packed_tiles(k, problem, memory)
            m, n, depth = problem["m"], problem["n"], problem["k"]
            panel_rows = _even_part(k, m, _PANEL_ROWS, self._tile_rows)
            panel_columns = _even_part(k, n, _PANEL_COLUMNS, self._shape.columns)
            panel_depth = self._panel_steps * self._kind.pair
            with k.loop(0, n, panel_columns) as column:
                problem["column"] = column.index
                problem["columns"] = k.smin(k.sub(n, column.index), panel_columns)
                with k.loop(0, m, panel_rows) as row:
                    problem["row"] = row.index
                    problem["rows"] = k.smin(k.sub(m, row.index), panel_rows)
                    self._place_sums(k, problem, memory)
                    with k.loop(0, k.smax(depth, 1), panel_depth) as step:
                        problem["step"] = step.index
                        problem["depth"] = k.smin(k.sub(depth, step.index), panel_depth)
                        is_packed = k.and_(k.compare("gt", row.index, 0), k.compare("le", depth, panel_depth))
                        self._panel(k, parallel, problem, is_packed)
            release_scratch(k, f"{self._prefix}_scratch", slot, memory)

    def _describe_packed_tiles(self, k: KernelBuilder, problem: RecordValue, memory: Value) -> None:
        kind, shape = self._kind, self._shape
        problem.set(
            tile_a=memory,
            tile_a_batch=0,
            tile_a_row=kind.packed.bytes * kind.parts,
            tile_a_step=kind.packed.bytes * shape.rows,
            tile_b=k.gep(memory, self._b_offset),
            tile_b_batch=0,
            tile_b_step=kind.packed.bytes * shape.columns,
            sums_batch=0,
            streams=0,
        )

    def _place_sums(self, k: KernelBuilder, problem: RecordValue, memory: Value) -> None:
        """Where the panel's sums grow: in C if it can hold them."""

        def in_c() -> list[Value]:
            place = k.gep(problem["c"], k.mul(problem["batch"], problem["c_batch"]))
            place = k.gep(place, k.mul(problem["row"], problem["c_row"]))
            return [k.gep(place, problem["column"], self._result_bytes), problem["c_row"]]

        def in_scratch() -> list[Value]:
            return [k.gep(memory, self._sums_offset), k.const(I64, _PANEL_COLUMNS * self._kind.accumulator.bytes)]

        problem["sums"], problem["sums_row"] = k.if_else(k.compare("ne", problem["uses_scratch"], 0), in_scratch, in_c)

    def _panel(self, k: KernelBuilder, parallel: Value, problem: RecordValue, is_b_packed: Value) -> None:
        """Packs a panel, B only unless it is there already, and computes its blocks."""
        kind, shape = self._kind, self._shape
        steps = self._steps(k, problem["depth"])
        first, last = problem["step"], k.add(problem["step"], problem["depth"])
        adds_to_c = k.select(k.compare("ne", problem["uses_scratch"], 0), 0, problem["accumulate"])
        a_strips = _ceil_div(k, problem["rows"], self._tile_rows)
        b_strips = k.select(is_b_packed, 0, _ceil_div(k, problem["columns"], shape.columns))
        problem.set(
            adds=k.or_(adds_to_c, k.zext(k.compare("gt", first, 0), I64)),
            is_last=k.zext(k.compare("ge", last, problem["k"]), I64),
            tile_a_strip=_strip_bytes(k, steps, shape.rows * kind.packed.bytes),
            tile_b_strip=_strip_bytes(k, steps, shape.columns * kind.packed.bytes),
            a_strips=a_strips,
        )
        grain = _ceil_div(k, k.const(I64, _PACKED_CHUNK), k.mul(k.smax(steps, 1), shape.columns))
        k.call(
            parallel,
            [k.function_pointer(f"{self._prefix}_pack_strips"), problem.place, k.add(a_strips, b_strips), grain],
        )
        wide = k.compare("ge", problem["columns"], 4 * _BLOCK_COLUMNS)
        columns = k.select(wide, k.const(I64, _BLOCK_COLUMNS), _BLOCK_COLUMNS // 2)
        count = self._set_blocks(k, problem, _BLOCK_ROWS, columns)
        self._run_blocks(k, parallel, problem, count)

    def matrices(self) -> None:
        """A range of the batch, each in one thread."""
        with self._function("matrices", _RANGE) as k, k.loop(k.parameters["begin"], k.parameters["end"]) as item:
            alone = k.function_pointer(f"{self._prefix}_alone")
            k.call(f"{self._prefix}_matrix", [alone, k.parameters["problem"], item.index])

    # Few rows or columns, the other operand contiguous along K

    def dots(self) -> None:
        """A range of groups of `_DOTS_COLUMNS` columns."""
        for rows in range(1, dot_rows(self._kind) + 1):
            for columns in (1, DOT_COLUMNS):
                emit_dots(self._module, self._target, self._kind, self._shape, rows, columns)
        with self._function("dots", _RANGE) as k:
            problem = _PROBLEM.at(k, k.parameters["problem"])
            n, groups = problem["n"], problem["column_blocks"]
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                batch = k.sdiv(item.index, groups)
                first = k.mul(k.sub(item.index, k.mul(batch, groups)), _DOTS_COLUMNS)
                last = k.smin(k.add(first, _DOTS_COLUMNS), n)
                fours = k.add(first, k.and_(k.sub(last, first), -DOT_COLUMNS))
                with k.loop(first, fours, DOT_COLUMNS) as column:
                    self._dot_columns(k, problem, batch, column.index, DOT_COLUMNS)
                with k.loop(fours, last) as column:
                    self._dot_columns(k, problem, batch, column.index, 1)
                reals = [k.mul(count, self._kind.parts) for count in (first, k.sub(last, first))]
                place_of_c = [batch, k.const(I64, 0), problem["m"], *reals]
                k.call(f"{self._prefix}_finish", [problem.place, k.const(PTR, 0), *place_of_c])

    def _dot_columns(self, k: KernelBuilder, problem: RecordValue, batch: Value, column: Value, columns: int) -> None:
        """The products of all rows of A with `columns` columns of B."""
        m, a_row, c_row = problem["m"], problem["a_row"], problem["c_row"]
        a = k.gep(problem["a"], k.mul(batch, problem["a_batch"]))
        b_column, c_column = problem["b_column"], problem["c_column"]
        b = k.gep(k.gep(problem["b"], k.mul(batch, problem["b_batch"])), k.mul(column, b_column))
        c = k.gep(k.gep(problem["c"], k.mul(batch, problem["c_batch"])), k.mul(column, c_column))
        depth, accumulate = problem["k"], problem["accumulate"]
        most = dot_rows(self._kind)
        with k.loop(0, m, most) as row:
            a_here, c_here = k.gep(a, k.mul(row.index, a_row)), k.gep(c, k.mul(row.index, c_row))
            arguments = [depth, a_here, a_row, b, b_column, c_here, c_row, c_column, accumulate]

            def call(rows: int, arguments: list[Value] = arguments) -> None:
                k.call(dots_name(self._kind, rows, columns), arguments)

            cases = {rows: functools.partial(call, rows) for rows in range(1, most)}
            k.switch(k.smin(k.sub(m, row.index), most), cases, functools.partial(call, most))

    def _run_dots_if_suited(self, k: KernelBuilder, problem: RecordValue) -> None:
        def suited(few: str, along: str, other_along: str) -> Value:
            """Few rows (or columns), the other operand contiguous along K, this one too or small enough to copy."""
            copied = k.mul(k.mul(problem[few], problem["k"]), self._element_bytes)
            can_copy = k.and_(k.compare("eq", problem["batches"], 1), k.compare("le", copied, self._scratch_bytes))
            is_contiguous = k.compare("eq", problem[along], self._element_bytes)
            is_few = k.compare("le", problem[few], _DOTS_ROWS)
            other = k.compare("eq", problem[other_along], self._element_bytes)
            return k.and_(k.and_(is_few, other), k.or_(is_contiguous, can_copy))

        is_long = k.compare("ge", problem["k"], _DOTS_DEPTH)
        as_given = suited("m", "a_step", "b_step")
        with k.if_(k.and_(is_long, k.and_(k.not_(as_given), suited("n", "b_step", "a_step")))):
            _transpose(k, problem)
            self._run_dots(k, problem)
            k.ret()
        with k.if_(k.and_(is_long, as_given)):
            self._run_dots(k, problem)
            k.ret()

    def _run_dots(self, k: KernelBuilder, problem: RecordValue) -> None:
        problem.set(uses_scratch=0, column_blocks=_ceil_div(k, problem["n"], _DOTS_COLUMNS))
        work = k.mul(k.mul(k.smax(problem["m"], _LEAST_ROWS), problem["k"]), _DOTS_COLUMNS)
        grain = _ceil_div(k, k.const(I64, _CHUNK_WORK), work)
        count = k.mul(problem["batches"], problem["column_blocks"])
        arguments = [k.function_pointer(f"{self._prefix}_dots"), problem.place, count, grain]

        def copied() -> None:
            slot, memory = acquire_scratch(k, f"{self._prefix}_scratch")
            self._copy_rows_of_a(k, problem, memory)
            k.call(k.parameters["parallel"], arguments)
            release_scratch(k, f"{self._prefix}_scratch", slot, memory)

        def in_place() -> None:
            k.call(k.parameters["parallel"], arguments)

        k.if_else(k.compare("eq", problem["a_step"], self._element_bytes), in_place, copied)

    def _copy_rows_of_a(self, k: KernelBuilder, problem: RecordValue, memory: Value) -> None:
        a, a_row, a_step, depth = problem["a"], problem["a_row"], problem["a_step"], problem["k"]
        with k.loop(0, problem["m"]) as row:
            source = k.gep(a, k.mul(row.index, a_row))
            goal = k.gep(memory, k.mul(row.index, depth), self._element_bytes)
            with k.loop(0, depth) as step:
                place = k.gep(source, k.mul(step.index, a_step))
                for part in range(self._kind.parts):
                    offset = part * self._kind.element.bytes
                    element = k.load(k.gep(place, offset), self._kind.element)
                    k.store(k.gep(k.gep(goal, step.index, self._element_bytes), offset), element)
        problem.set(a=memory, a_row=k.mul(depth, self._element_bytes), a_step=self._element_bytes)

    # The entry

    def run(self) -> None:
        with self._function("run", _RUN, linkage="") as k:
            problem = _PROBLEM.new(k)
            self._read_call(k, problem)
            with k.if_(k.compare("le", k.smin(k.smin(problem["batches"], problem["m"]), problem["n"]), 0)):
                k.ret()
            self._run_dots_if_suited(k, problem)
            problem["n"] = k.mul(problem["n"], self._kind.parts)
            scattered = k.compare("ne", problem["c_column"], self._c_bytes)
            problem["uses_scratch"] = k.zext(scattered, I64) if self._kind.accumulates_in_result else 1
            self._run_streams_if_suited(k, problem)
            if self._kind.is_packed_in_memory:
                with k.if_(self._stays_unpacked(k, problem, scattered)):
                    self._run_unpacked(k, problem)
                    k.ret()
            self._run_packed(k, problem)

    def _read_call(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Fills in the problem, in bytes and reals, with C by rows if that can be had by transposing."""
        given = k.parameters
        for index, name in enumerate(SIZES):
            number = k.load(k.gep(given["sizes"], index, 8), I64)
            if name.startswith(("a_", "b_")):
                number = k.mul(number, self._element_bytes)
            elif name.startswith("c_"):
                number = k.mul(number, self._c_bytes)
            problem[name] = number
        problem.set(
            a=given["a"],
            b=given["b"],
            c=given["c"],
            is_transposed=0,
            epilogue=given["epilogue"],
            epilogue_args=given["args"],
        )
        is_column_of_c = k.compare("eq", problem["c_row"], self._c_bytes)
        is_single = k.compare("eq", problem["n"], 1)
        unsuited = k.or_(k.compare("ne", problem["c_column"], self._c_bytes), is_single)
        with k.if_(k.and_(k.compare("gt", problem["m"], 1), k.and_(is_column_of_c, unsuited))):
            _transpose(k, problem)
        # The stride of a single column means nothing; that of a row is the good one.
        is_single = k.compare("eq", problem["n"], 1)
        problem["b_column"] = k.select(is_single, self._element_bytes, problem["b_column"])
        problem["c_column"] = k.select(is_single, self._c_bytes, problem["c_column"])

    def _stays_unpacked(self, k: KernelBuilder, problem: RecordValue, scattered: Value) -> Value:
        """Whether tiles can read the operands where they lie, and packing would not pay."""
        m, n = problem["m"], problem["n"]
        possible = k.and_(k.not_(scattered), k.compare("eq", problem["b_column"], self._element_bytes))
        if not self._shape.has_masks:
            possible = k.and_(possible, k.compare("eq", k.and_(n, self._shape.lanes - 1), 0))
        work = k.mul(k.mul(m, n), problem["k"])
        small = k.or_(k.compare("le", work, _UNPACKED_WORK), k.compare("le", m, _UNPACKED_TILES * self._tile_rows))
        return k.and_(possible, small)

    def _run_unpacked(self, k: KernelBuilder, problem: RecordValue) -> None:
        """One panel per matrix, the whole of it, read where it lies; all matrices at once."""
        shape, parts = self._shape, self._kind.parts
        is_wide = k.compare("le", problem["m"], shape.wide_rows // parts)
        strip_columns = k.select(is_wide, k.const(I64, shape.wide_vectors * shape.lanes), shape.columns)
        self._describe_operands_in_place(k, problem)
        problem.set(
            tile_b_strip=k.mul(strip_columns, self._kind.element.bytes),
            streams=0,
            strip_columns=strip_columns,
        )
        is_streamed = k.compare("le", problem["m"], self._tile_rows)
        columns = k.select(is_streamed, self._streamed_columns(k, problem), _BLOCK_COLUMNS // 2)
        count = self._set_blocks(k, problem, _BLOCK_ROWS, columns)
        self._run_blocks(k, k.parameters["parallel"], problem, k.mul(count, problem["batches"]))

    def _describe_operands_in_place(self, k: KernelBuilder, problem: RecordValue) -> None:
        """One panel, the whole matrix, as it lies in memory."""
        problem.set(
            batch=0,
            row=0,
            rows=problem["m"],
            column=0,
            columns=problem["n"],
            step=0,
            depth=problem["k"],
            adds=problem["accumulate"],
            is_last=1,
            tile_a=problem["a"],
            tile_a_batch=problem["a_batch"],
            tile_a_strip=k.mul(problem["a_row"], self._tile_rows),
            tile_a_row=problem["a_row"],
            tile_a_step=problem["a_step"],
            tile_b=problem["b"],
            tile_b_batch=problem["b_batch"],
            tile_b_step=problem["b_step"],
            sums=problem["c"],
            sums_batch=problem["c_batch"],
            sums_row=problem["c_row"],
        )

    def _streamed_columns(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """How many columns of B make a block when all of B is read only once."""
        return k.smax(k.sdiv(k.const(I64, _STREAMED_ELEMENTS), k.smax(problem["k"], 1)), 1)

    # Few rows, B by rows

    def _run_streams_if_suited(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Adds up rows of B, in C or in scratch if C cannot hold the sums and scratch can."""
        m, n = problem["m"], problem["n"]
        is_row = k.compare("eq", problem["b_column"], self._element_bytes)
        is_few = k.and_(k.compare("le", m, STREAM_ROWS), k.compare("ge", n, _STREAM_LEAST_COLUMNS))
        sums_row = k.mul(n, self._kind.accumulator.bytes)
        fits = k.and_(k.compare("eq", problem["batches"], 1), k.compare("le", k.mul(m, sums_row), self._scratch_bytes))
        is_in_c = k.compare("eq", problem["uses_scratch"], 0)
        with k.if_(k.and_(k.and_(is_row, is_few), k.or_(is_in_c, fits))):
            self._describe_operands_in_place(k, problem)
            problem.set(
                streams=1, strip_columns=_STREAM_COLUMNS, tile_b_strip=_STREAM_COLUMNS * self._kind.element.bytes
            )

            def in_scratch() -> None:
                slot, memory = acquire_scratch(k, f"{self._prefix}_scratch")
                problem.set(sums=memory, sums_row=sums_row, adds=0)
                self._run_streams(k, problem)
                release_scratch(k, f"{self._prefix}_scratch", slot, memory)

            k.if_else(is_in_c, lambda: self._run_streams(k, problem), in_scratch)
            k.ret()

    def _run_streams(self, k: KernelBuilder, problem: RecordValue) -> None:
        count = self._set_blocks(k, problem, STREAM_ROWS, self._streamed_columns(k, problem))
        self._run_blocks(k, k.parameters["parallel"], problem, k.mul(count, problem["batches"]))

    # Packed

    def _run_packed(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Small matrices in parallel, or the parts of each in parallel."""
        parallel = k.parameters["parallel"]
        work = k.mul(k.mul(problem["m"], problem["n"]), k.smax(problem["k"], 1))
        small = k.and_(k.compare("gt", problem["batches"], 1), k.compare("le", work, _UNPACKED_WORK))

        def together() -> None:
            grain = _ceil_div(k, k.const(I64, _CHUNK_WORK), work)
            matrices = k.function_pointer(f"{self._prefix}_matrices")
            k.call(parallel, [matrices, problem.place, problem["batches"], grain])

        def one_by_one() -> None:
            with k.loop(0, problem["batches"]) as item:
                k.call(f"{self._prefix}_matrix", [parallel, problem.place, item.index])

        k.if_else(small, together, one_by_one)


def _transpose(k: KernelBuilder, problem: RecordValue) -> None:
    """Turns the problem into that of the transposes: C' = B' A'."""
    for first, second in _TRANSPOSED.items():
        problem[first], problem[second] = problem[second], problem[first]
    problem["is_transposed"] = k.xor(problem["is_transposed"], 1)


def _nothing(value: Value | None) -> None:
    """Drops the result of a call that has none."""


def _ceil_div(k: KernelBuilder, count: Value, size: Value | int) -> Value:
    return k.sdiv(k.sub(k.add(count, size), 1), size)


def _round_up(k: KernelBuilder, count: Value, size: Value | int) -> Value:
    return k.mul(_ceil_div(k, count, size), size)


def _even_part(k: KernelBuilder, count: Value, limit: int, multiple: int) -> Value:
    """The size of the fewest equal parts that are at most `limit`, a multiple of `multiple`."""
    return _round_up(k, _ceil_div(k, count, _ceil_div(k, count, limit)), multiple)


def _strip_bytes(k: KernelBuilder, steps: Value, step_bytes: int) -> Value:
    return k.and_(k.add(k.mul(steps, step_bytes), SLACK_BYTES + 63), -64)
