"""Products with few rows and a large B: each block copies its part of B, chunk by chunk, just before it multiplies.

Tiles walk down columns of B, which memory is bad at: each step along K is a short piece of another page, often in the
same set of the caches as the last one. So a chunk of a block's columns is read row by row, in long pieces, into strips
in the second-level cache (`stage`), where its tiles find it. Packing the whole of B first would write it to memory and
read it again, which takes as long as the product when there are few rows.

    stage(depth, source, along, columns, packed, strip)       along, strip: bytes between rows of B, packed strips
"""

from __future__ import annotations

import os

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_panels import GemmPanels
from xlapy.codegen.libraries.gemm_problem import CHUNK_WORK, LEAST_ROWS, PROBLEM, RANGE, ceil_div, even_part, strip_bytes
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_scratch import acquire_scratch, release_scratch
from xlapy.codegen.libraries.gemm_vector import PartialVectors

_BLOCK_BYTES = int(os.environ.get("SW", "1024"))
"""Of one row of B in a block."""

_CHUNK_ROWS = int(os.environ.get("SD", "256"))
_AHEAD = int(os.environ.get("SA", "8"))


class GemmStaged(GemmPanels):
    def stage(self) -> None:
        parameters = [("depth", I64), ("source", PTR), ("along", I64), ("columns", I64), ("packed", PTR), ("strip", I64)]
        with self._function("stage", parameters) as k:
            given, shape, kind = k.parameters, self._shape, self._kind
            partial = PartialVectors(k, self._target, shape)
            type = kind.element.with_lanes(shape.lanes)
            vector_bytes = shape.lanes * type.bytes
            columns = given["columns"]
            whole = k.sub(columns, k.srem(columns, shape.columns))
            ahead = k.mul(given["along"], _AHEAD)
            with k.loop(0, given["depth"]) as row:
                source = k.gep(given["source"], k.mul(row.index, given["along"]))
                goal = k.gep(given["packed"], row.index, shape.columns * type.bytes)
                with k.loop(0, whole, shape.columns, carry=[source, goal]) as strip:
                    place, packed = strip.values
                    for index in range(shape.vectors):
                        here = k.gep(place, index * vector_bytes)
                        if _AHEAD:
                            k.call("llvm.prefetch.p0", [k.gep(here, ahead), k.const(I32, 0), k.const(I32, 3), k.const(I32, 1)])
                        k.store(k.gep(packed, index * vector_bytes), k.load(here, type))
                    strip.next = [k.gep(place, shape.vectors * vector_bytes), k.gep(packed, given["strip"])]
                place, packed = strip.results
                rest = k.sub(columns, whole)
                vectors = k.and_(rest, -shape.lanes)
                with k.loop(0, vectors, shape.lanes) as column:
                    k.store(k.gep(packed, column.index, type.bytes), k.load(k.gep(place, column.index, type.bytes), type))
                with k.if_(k.compare("lt", vectors, rest)):
                    last = partial.load(k.gep(place, vectors, type.bytes), type, k.sub(rest, vectors))
                    k.store(k.gep(packed, vectors, type.bytes), last)

    def staged(self) -> None:
        """A range of blocks, each as wide as a block and as high as C."""
        with self._function("staged", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            slot, memory = acquire_scratch(k, f"{self._prefix}_scratch")
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                batch = k.sdiv(item.index, problem["column_blocks"])
                number = k.sub(item.index, k.mul(batch, problem["column_blocks"]))
                self._staged_block(k, problem, memory, batch, k.mul(number, problem["block_columns"]))
            release_scratch(k, f"{self._prefix}_scratch", slot, memory)

    def _staged_block(
        self, k: KernelBuilder, problem: RecordValue, memory: Value, batch: Value, column: Value
    ) -> None:
        kind, shape = self._kind, self._shape
        columns = k.smin(k.sub(problem["columns"], column), problem["block_columns"])
        rows, steps = problem["rows"], problem["depth"]
        a = k.gep(problem["tile_a"], k.mul(batch, problem["tile_a_batch"]))
        b = k.gep(k.gep(problem["tile_b"], k.mul(batch, problem["tile_b_batch"])), column, kind.element.bytes)
        sums = k.gep(k.gep(problem["sums"], k.mul(batch, problem["sums_batch"])), column, kind.accumulator.bytes)
        b_row = problem["b_step"]
        with k.loop(0, k.smax(steps, 1), _CHUNK_ROWS) as chunk:
            depth = k.smin(k.sub(steps, chunk.index), _CHUNK_ROWS)
            strip = strip_bytes(k, depth, shape.columns * kind.packed.bytes)
            accumulate = k.or_(problem["adds"], k.zext(k.compare("gt", chunk.index, 0), I64))
            is_last = k.compare("ge", k.add(chunk.index, _CHUNK_ROWS), steps)
            a_chunk = k.gep(a, k.mul(chunk.index, problem["tile_a_step"]))
            b_chunk = k.gep(b, k.mul(chunk.index, b_row))
            k.call(f"{self._prefix}_stage", [depth, b_chunk, b_row, columns, memory, strip])
            with k.loop(0, columns, shape.columns, carry=[memory]) as strips:
                width = k.smin(k.sub(columns, strips.index), shape.columns)
                place = k.gep(sums, strips.index, kind.accumulator.bytes)
                width_of_strip = k.const(I64, shape.columns)
                packed = strips.values[0]
                self._strip(k, problem, rows, depth, a_chunk, packed, place, width, width_of_strip, accumulate)
                with k.if_(is_last):
                    place_of_c = [batch, k.const(I64, 0), rows, k.add(column, strips.index), width]
                    k.call(f"{self._prefix}_finish", [problem.place, place, *place_of_c])
                strips.next = [k.gep(packed, strip)]

    def _run_staged(self, k: KernelBuilder, problem: RecordValue) -> None:
        kind, shape = self._kind, self._shape
        problem.set(streams=0, tile_b_step=shape.columns * kind.packed.bytes)
        block_columns = even_part(k, problem["n"], _BLOCK_BYTES // kind.element.bytes, shape.columns)
        column_blocks = ceil_div(k, problem["n"], block_columns)
        problem.set(block_columns=block_columns, column_blocks=column_blocks)
        work = k.mul(k.mul(k.smax(problem["m"], LEAST_ROWS), block_columns), k.smax(problem["k"], 1))
        grain = ceil_div(k, k.const(I64, CHUNK_WORK), work)
        count = k.mul(problem["batches"], column_blocks)
        k.call(
            k.parameters["parallel"],
            [k.function_pointer(f"{self._prefix}_staged"), problem.place, count, grain],
        )
