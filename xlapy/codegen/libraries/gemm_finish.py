"""Finished parts of C: what is left to do once the sums are complete, and the epilogue that sees them.

Sums that are kept elsewhere are rounded and copied. An epilogue gets them from where they are in the nearest cache: if
it can be had, from a buffer in the stack frame, so that C is written once only, with what the epilogue makes of them.
Then memory is not waited for twice, and rows of C that are a power of two apart are in nobody's way.
"""

from __future__ import annotations

import math

from xlapy.codegen.ir import I8, I64, PTR, IRType, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_problem import PROBLEM, GemmFunctions
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_windows import has_windows

TILES_OF_SHORT_COLUMN = 4
"""Tiles one below the other that are computed before an epilogue sees them, or something else is done."""


class GemmFinish(GemmFunctions):
    """Writes the functions that finish parts of C."""

    def finish(self) -> None:
        """What happens to a part of C once its sums are complete; columns count reals."""
        parameters = [("problem", PTR), ("sums", PTR), ("sums_row", I64)]
        parameters += [(name, I64) for name in ("batch", "row", "rows", "column", "columns")]
        with self._function("finish", parameters) as k:
            given = k.parameters
            problem = PROBLEM.at(k, given["problem"])
            column = self._whole_columns(k, given["column"])
            c = k.gep(problem["c"], k.mul(given["batch"], problem["c_batch"]))
            c = k.gep(k.gep(c, k.mul(given["row"], problem["c_row"])), k.mul(column, problem["c_column"]))
            as_they_are = [given["sums"], given["sums_row"], problem["c_column"]]
            uses_scratch = k.compare("ne", problem["uses_scratch"], 0)
            source = k.if_else(uses_scratch, lambda: self._rounded(k, problem, c), lambda: as_they_are)
            self._look_for_special(k, problem, source[0])
            part = [given["row"], given["rows"], column, self._whole_columns(k, given["columns"])]
            self._run_epilogue(k, problem, [c, given["batch"], *part], source)

    def _rounded(self, k: KernelBuilder, problem: RecordValue, c: Value) -> list[Value]:
        """Copies sums to where the epilogue looks for them, or else to C: the place, and the distances in it from row
        to row and from column to column."""
        rows, columns = k.parameters["rows"], k.parameters["columns"]
        buffer = k.alloca(I8, self._buffer_elements * self._result_bytes, align=64)

        def copied(goal: Value, row: Value, column: Value | int, accumulate: Value | int) -> list[Value]:
            place = [goal, row, k.const(I64, column) if isinstance(column, int) else column]
            adds = k.const(I64, accumulate) if isinstance(accumulate, int) else accumulate
            sums = [k.parameters["sums"], k.parameters["sums_row"]]
            k.call(f"{self._prefix}_copy_out", [*sums, *place, rows, columns, adds])
            return place

        fits = k.compare("le", k.mul(rows, columns), self._buffer_elements)
        return k.if_else(
            k.and_(fits, self._may_buffer(k, problem)),
            lambda: copied(buffer, k.mul(columns, self._result_bytes), self._c_bytes, 0),
            lambda: copied(c, problem["c_row"], problem["c_column"], problem["accumulate"]),
        )

    @property
    def _buffer_elements(self) -> int:
        """Reals of the largest tile, or of the columns that an epilogue sees."""
        column = (self._shape.rows * TILES_OF_SHORT_COLUMN, self._shape.vectors)
        return max(rows * vectors for rows, vectors in (column, *self._shape.wide)) * self._shape.lanes

    def _may_buffer(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether sums may go to the epilogue without having been in C. It wants neighbours in a row of the caller's
        to be neighbours."""
        has_epilogue = k.compare("ne", problem["epilogue"], k.const(PTR, 0))
        has_rows = k.or_(k.compare("eq", problem["is_transposed"], 0), k.compare("eq", problem["m"], 1))
        return k.and_(k.and_(has_epilogue, has_rows), k.compare("eq", problem["accumulate"], 0))

    def _run_epilogue(self, k: KernelBuilder, problem: RecordValue, place: list[Value], source: list[Value]) -> None:
        """Shows a finished part of C to the epilogue, if there is one: where it lies, batch, rows and columns, and
        where its values are, with their distances from row to row and from column to column."""
        c, batch, row, rows, column, columns = place
        values, source_row, source_column = source
        epilogue, args = problem["epilogue"], [problem["epilogue_args"], c, batch]

        def call(part: list[Value], pitch: Value) -> None:
            k.call(epilogue, [*args, *part, values, pitch])

        with k.if_(k.compare("ne", epilogue, k.const(PTR, 0))):
            k.if_else(
                k.compare("ne", problem["is_transposed"], 0),
                lambda: call([column, columns, row, rows], source_column),
                lambda: call([row, rows, column, columns], source_row),
            )

    def _look_for_special(self, k: KernelBuilder, problem: RecordValue, values: Value) -> None:
        """Raises the flag of a convolution if this part of the first row of C is not finite."""
        if not self._sums_again:
            return
        suspect, given = problem["suspect"], k.parameters
        is_first = k.compare("eq", given["row"], 0)
        with k.if_(k.and_(is_first, k.compare("ne", suspect, k.const(PTR, 0)))):
            one_row = k.const(I64, 1), k.const(I64, 0)
            is_special = self._has_special(k, values, self._kind.result, *one_row, given["columns"])
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
        """Sums in scratch to C, or where it is made: rounded, added, scattered, as the product wants it."""
        parameters = [("sums", PTR), ("sums_row", I64), ("c", PTR)]
        parameters += [(name, I64) for name in ("c_row", "c_column", "rows", "columns", "accumulate")]
        with self._function("copy_out", parameters) as k:
            c_row, c_column, accumulate = (k.parameters[name] for name in ("c_row", "c_column", "accumulate"))
            sums_row = k.parameters["sums_row"]
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
