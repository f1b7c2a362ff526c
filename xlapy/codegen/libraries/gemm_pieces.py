"""Products of many steps along K and few elements: K is cut into pieces, which are shared out like a batch.

Each piece is a product of its own. Its sums lie in scratch memory, and those of all pieces are added up in their order.
How K is cut depends on the sizes alone, so that an element is the same for any number of threads.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_copied import GemmCopied
from xlapy.codegen.libraries.gemm_dots import DOTS_COLUMNS
from xlapy.codegen.libraries.gemm_in_place import STREAM_LEAST_COLUMNS
from xlapy.codegen.libraries.gemm_problem import (
    BLOCK_COLUMNS,
    CHUNK_WORK,
    LEAST_BLOCK_ROWS,
    LEAST_ROWS,
    PROBLEM,
    RANGE,
    ceil_div,
    round_up,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import STEPS_OF_GROUP
from xlapy.codegen.libraries.gemm_vector import DOT_ROWS
from xlapy.codegen.libraries.scratch import Scratch, acquire_scratch, release_scratch

MOST_PIECES = 16
"""With so many there is enough to share out."""

LEAST_STEPS = 512
"""Of a piece. It takes less time then to store its sums and to add them up than a fiftieth of what it takes to make
them."""

_STEPS_PER_ROW = 16
"""So many times more steps than rows or columns are many. With fewer, an element is one chain of sums, and does not
depend on how many others there are."""

_STREAMED_BYTES = 1 << 24
_STREAMED_PIECES = 4
"""From so many bytes of B on few rows are multiplied in pieces, and how many (1 by 4096 by 4096, two cores: 0.8 of the
time that as many blocks of columns take). No cache of the machine has a part in it, for then bits had one, too."""

_ADDITION_WORK = 4
"""Multiplications in registers that take as long as to add a sum that lies in a cache."""


class GemmPieces(GemmCopied):
    """Writes what decides for this way of computing a product, what cuts it, and what adds the pieces up."""

    def add_pieces(self) -> None:
        """A range of rows: the sums of all pieces, `sums_batch` bytes apart, added to those of the first, and
        finished."""
        with self._function("add_pieces", RANGE) as k:
            begin, end = k.parameters["begin"], k.parameters["end"]
            problem = PROBLEM.at(k, k.parameters["problem"])
            pieces, piece_bytes, pitch = problem["batches"], problem["sums_batch"], problem["sums_row"]
            first = k.gep(problem["sums"], k.mul(begin, pitch))
            vector = self._kind.accumulator.with_lanes(self._shape.lanes)
            reals = k.mul(k.sub(end, begin), k.udiv(pitch, self._kind.accumulator.bytes))  # rows lie side by side
            with k.loop(0, reals, vector.lanes) as loop:
                place = k.gep(first, loop.index, self._kind.accumulator.bytes)
                with k.loop(1, pieces, carry=[k.load(place, vector)]) as piece:
                    sums = k.load(k.gep(place, k.mul(piece.index, piece_bytes)), vector)
                    piece.next = [k.add(piece.values[0], sums)]
                k.store(place, piece.results[0])
            zero = k.const(I64, 0)
            k.call(
                f"{self._prefix}_finish",
                [problem.place, first, pitch, zero, begin, k.sub(end, begin), zero, problem["n"]],
            )

    def _steps_of_piece(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Steps along K of each piece, or K if the product is better computed as a whole."""
        m, n, depth = problem["m"], problem["n"], problem["k"]
        longer, shorter = k.smax(m, n), k.smin(m, n)

        def in_pieces() -> Value:
            is_low = k.compare("le", shorter, DOT_ROWS)
            of_dots = ceil_div(k, longer, DOTS_COLUMNS)
            of_tiles = k.mul(ceil_div(k, m, LEAST_BLOCK_ROWS), ceil_div(k, n, BLOCK_COLUMNS // 2))
            blocks = k.select(is_low, of_dots, of_tiles)
            work = k.mul(k.mul(k.smax(shorter, LEAST_ROWS), longer), depth)
            most = k.smin(k.sdiv(depth, LEAST_STEPS), k.sdiv(work, CHUNK_WORK))
            return self._part_of_depth(k, depth, k.smin(most, k.sdiv(k.const(I64, MOST_PIECES), blocks)))

        def streamed() -> Value:
            return self._part_of_depth(k, depth, k.smin(k.sdiv(depth, LEAST_STEPS), _STREAMED_PIECES))

        def whole_unless_streamed() -> Value:
            return k.if_else(self._is_streamed_from_memory(k, problem), streamed, lambda: depth)[0]

        conditions = [
            k.compare("eq", problem["batches"], 1),
            k.compare("ge", depth, 2 * LEAST_STEPS),
            k.compare("ge", depth, k.mul(longer, _STEPS_PER_ROW)),
        ]
        if not self._kind.accumulates_in_result:  # dot products along K are rounded at once
            conditions.append(k.compare("gt", shorter, DOT_ROWS))
        return k.if_else(functools.reduce(k.and_, conditions), in_pieces, whole_unless_streamed)[0]

    def _part_of_depth(self, k: KernelBuilder, depth: Value, pieces: Value) -> Value:
        """Steps of a piece, if there are to be about so many."""
        return k.smin(round_up(k, ceil_div(k, depth, k.smax(pieces, 1)), STEPS_OF_GROUP), depth)

    def _is_streamed_from_memory(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether rows of a B that is large are added up as they lie."""
        bytes_of_b = k.mul(k.mul(problem["k"], problem["n"]), self._element_bytes)
        conditions = [
            k.compare("eq", problem["batches"], 1),
            k.compare("le", problem["m"], self._shape.streamed_rows),
            k.compare("eq", problem["b_column"], self._element_bytes),
            k.compare("ge", problem["n"], STREAM_LEAST_COLUMNS),
            k.compare("ge", bytes_of_b, _STREAMED_BYTES),
        ]
        return functools.reduce(k.and_, conditions)

    def _run_pieces(self, k: KernelBuilder, problem: RecordValue, steps: Value, multiply: str) -> None:
        """All pieces of `steps` steps, the last of which may be shorter, each by `multiply`, and their sum."""
        parallel, whole_depth, pieces = k.parameters["parallel"], problem["k"], ceil_div(k, problem["k"], steps)
        batch = problem.copy()
        problem["n"] = k.mul(problem["n"], self._kind.parts)
        scratch = self._room_for_pieces(k, problem, pieces)
        batch.set(
            batches=pieces,
            k=steps,
            missing_steps=k.sub(k.mul(pieces, steps), whole_depth),
            a_batch=k.mul(problem["a_step"], steps),
            b_batch=k.mul(problem["b_step"], steps),
            c=scratch.memory,
            c_batch=problem["sums_batch"],
            c_row=problem["sums_row"],
            c_column=self._c_bytes,
            accumulate=0,
            uses_scratch=0,
            epilogue=k.const(PTR, 0),
            epilogue_work=0,
        )
        k.call(multiply, [parallel, batch.place])
        self._add_up_pieces(k, problem)
        release_scratch(k, scratch)

    def _room_for_pieces(self, k: KernelBuilder, problem: RecordValue, pieces: Value) -> Scratch:
        """Scratch memory for the sums of so many pieces, which the problem describes from now on."""
        width = self._kind.accumulator.bytes
        pitch = k.mul(round_up(k, problem["n"], self._shape.lanes), width)
        piece_bytes = k.mul(pitch, problem["m"])
        scratch = acquire_scratch(k, k.mul(pieces, piece_bytes))
        problem.set(batches=pieces, sums=scratch.memory, sums_row=pitch, sums_batch=piece_bytes, uses_scratch=1)
        return scratch

    def _add_up_pieces(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Finishes C with the sums of all pieces."""
        pieces, parallel = problem["batches"], k.parameters["parallel"]
        work = k.mul(work_per_element(k, problem, k.mul(pieces, _ADDITION_WORK)), problem["n"])
        grain = self._grain(k, problem["m"], work)
        rows = k.function_pointer(f"{self._prefix}_add_pieces")
        k.call(parallel, [rows, problem.place, problem["m"], grain])
