"""Products of few rows or columns by dot products: the elements of either side lie side by side along K.

Each of a group of columns is multiplied with all rows, some at a time, as registers have room for. Where there are more
rows than these, the columns come from a near cache for the later ones: so they are taken chunk by chunk along K, and
what the next ones need is fetched by all passes over these rows, each a share, so that memory has no rest:

    for each chunk of K: for each few columns of a group: for each few rows: C[rows, columns] += A[rows] . B[columns]
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_far_rows import GemmFarRows
from xlapy.codegen.libraries.gemm_problem import (
    LEAST_ROWS,
    PROBLEM,
    RANGE,
    ceil_div,
    depth_of,
    transpose,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_vector import (
    DOT_PARAMETERS,
    DOT_ROWS,
    dot_columns,
    dot_heights,
    dot_rows,
    dots_name,
    emit_dots,
    has_sharing_dots,
    reads_lines,
)
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy.support.records import Record

DOTS_COLUMNS = 16
"""Columns that are handed out together."""

_DOTS_DEPTH = 32
_DOTS_DEPTH_OF_MANY = 256
"""Shorter products would mostly sum up lanes; of more than `DOT_ROWS` rows, those that could as well be turned (16 by
64 by 64: 2.4 us, not 1.5, 10 by 128 by 128 4.8 and 4.5, 16 by 256 by 256 22 and 23)."""

_MOST_FAR_ROWS = 12
"""By more rows than these, a B from afar is not multiplied so (by 4096 by 1024, one core: 12 rows take 0.95 of the time
of tiles that take columns for rows, 16 1.2)."""

_CHUNK_BYTES = 2048
"""Of a column in a chunk, which the nearest cache holds beside a few others and the rows (Sapphire Rapids, one core, 8
by 4096 by 1024: 0.62 ms, without chunks 0.81, without shares 0.95)."""


class _Part(Record):
    """A chunk of the products of one matrix: where it begins in A and B, its steps along K, and whether to add to what
    C holds."""

    batch: Value
    bytes: Value
    steps: Value
    accumulate: Value


class GemmDots(GemmFarRows):
    """Writes what decides for this way of computing a product, and the units of work."""

    def dots(self) -> None:
        """A range of groups of `DOTS_COLUMNS` columns."""
        heights = dot_heights(self._kind, self._shape)
        few, many = (dot_columns(self._kind, self._shape, rows) for rows in (heights[-1], 1))
        for rows, columns in sorted({(1, many), *((rows, few) for rows in heights)}):
            emit_dots(self._module, self._target, self._kind, self._shape, rows, columns)
        if self._has_sharing_dots:
            emit_dots(self._module, self._target, self._kind, self._shape, heights[-1], few, shares=True)
        with self._function("dots", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            n, groups, width = problem["n"], problem["column_blocks"], problem["block_columns"]
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                batch = k.sdiv(item.index, groups)
                first = k.mul(k.sub(item.index, k.mul(batch, groups)), width)
                last = k.smin(k.add(first, width), n)
                step = k.select(k.compare("eq", problem["m"], 1), k.const(I64, many), few)
                depth, chunk_steps = depth_of(k, problem, batch, problem["k"]), problem["chunk_steps"]
                with k.loop(0, k.smax(depth, 1), chunk_steps) as chunk:
                    adds = k.zext(k.compare("gt", chunk.index, 0), I64)
                    part = _Part(
                        batch,
                        k.mul(chunk.index, self._element_bytes),
                        k.smin(k.sub(depth, chunk.index), chunk_steps),
                        k.or_(problem["accumulate"], adds),
                    )
                    self._columns_of_group(k, problem, part, first, last, step)
                reals = [k.mul(count, self._kind.parts) for count in (first, k.sub(last, first))]
                c = k.gep(problem["c"], k.mul(batch, problem["c_batch"]))
                sums = k.gep(c, k.mul(first, problem["c_column"]))
                place_of_c = [batch, k.const(I64, 0), problem["m"], *reals]
                k.call(f"{self._prefix}_finish", [problem.place, sums, problem["c_row"], *place_of_c])

    @property
    def _has_sharing_dots(self) -> bool:
        return has_sharing_dots(self._kind, self._shape)

    def _columns_of_group(
        self, k: KernelBuilder, problem: RecordValue, part: _Part, first: Value, last: Value, step: Value
    ) -> None:
        """The products with columns of B from `first` to `last`, of which `step` are taken together: each the
        `column_distance`-th behind the one before, if there are about so many: of fewer, some are computed again."""

        def neighbours() -> None:
            with k.loop(first, last, step) as column:
                left, below = k.smin(k.sub(last, column.index), step), k.add(column.index, step)
                later = self._columns_below(k, problem, part, first, last, below) if self._has_sharing_dots else None
                self._dot_columns(k, problem, part, column.index, left, later=later)

        def apart() -> None:
            width = k.mul(step, distance)
            with k.loop(first, last, width) as start:
                end = k.smin(k.add(start.index, width), last)
                with k.loop(start.index, k.smin(k.add(start.index, distance), end)) as column:
                    count = ceil_div(k, k.sub(end, column.index), distance)
                    self._dot_columns(k, problem, part, column.index, count, distance)

        if not reads_lines(self._target, self._kind, self._shape):
            neighbours()
            return
        distance = problem["column_distance"]
        are_many = k.compare("ge", k.mul(k.sub(last, first), 4), k.mul(k.mul(step, distance), 3))
        k.if_else(k.and_(k.compare("gt", distance, 1), are_many), apart, neighbours)

    def _dot_columns(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        part: _Part,
        column: Value,
        columns: Value,
        distance: Value | int = 1,
        *,
        later: Value | None = None,
    ) -> None:
        """The products of all rows of A with `columns` columns of B, up to as many as `dot_columns` says. Those that
        follow are at `later`."""
        m, a_row, c_row = problem["m"], problem["a_row"], problem["c_row"]
        a = k.gep(k.gep(problem["a"], k.mul(part.batch, problem["a_batch"])), part.bytes)
        b = k.gep(self._place_in_b(k, problem, part, column), part.bytes)
        c = k.gep(k.gep(problem["c"], k.mul(part.batch, problem["c_batch"])), k.mul(column, problem["c_column"]))
        b_column, c_column = (k.mul(problem[name], distance) for name in ("b_column", "c_column"))
        heights = dot_heights(self._kind, self._shape)
        few, many = (dot_columns(self._kind, self._shape, height) for height in (heights[-1], 1))
        names = {height: dots_name(self._kind, height, few) for height in heights}
        with k.loop(0, m, heights[-1]) as row:
            rows = k.smin(k.sub(m, row.index), heights[-1])
            a_here, c_here = k.gep(a, k.mul(row.index, a_row)), k.gep(c, k.mul(row.index, c_row))
            arguments = [part.steps, a_here, a_row, b, b_column, c_here, c_row, c_column, part.accumulate]
            arguments += [rows, columns]
            some: Callable[[], None] = functools.partial(self._call_fitting, k, rows, names, arguments)
            if few != many:
                some = functools.partial(self._single_or, k, m, arguments, some)
            if later is None:
                some()
            else:
                self._shared_passes(k, m, row.index, arguments, later, some)

    def _single_or(self, k: KernelBuilder, m: Value, arguments: list[Value], some: Callable[[], None]) -> None:
        """A single row by as many columns as there can be of it, or `some` rows."""
        name = dots_name(self._kind, 1, dot_columns(self._kind, self._shape, 1))
        k.if_else(k.compare("eq", m, 1), functools.partial(k.call, name, arguments), some)

    def _shared_passes(
        self, k: KernelBuilder, m: Value, row: Value, arguments: list[Value], later: Value, some: Callable[[], None]
    ) -> None:
        """A pass over as many rows of A as there can be, the first of which is `row`, which fetches a share of the
        columns at `later`; or `some`, if there are fewer, or no more than these."""
        height = dot_heights(self._kind, self._shape)[-1]
        few = dot_columns(self._kind, self._shape, height)
        named = dict(zip([name for name, _ in DOT_PARAMETERS], arguments, strict=True))
        columns = named["columns"]
        share = ceil_div(k, columns, ceil_div(k, m, height))
        first = k.smin(k.mul(k.udiv(row, height), share), k.sub(columns, 1))
        sharing = [*arguments, k.gep(later, k.mul(named["b_column"], first)), share]
        shares = k.and_(k.compare("gt", m, height), k.compare("eq", named["rows"], height))
        name = dots_name(self._kind, height, few, shares=True)
        k.if_else(shares, functools.partial(k.call, name, sharing), some)

    def _columns_below(
        self, k: KernelBuilder, problem: RecordValue, part: _Part, first: Value, last: Value, below: Value
    ) -> Value:
        """Where a chunk of the columns from `below` on begins, or the next chunk of the first of the group."""
        next_chunk = k.add(part.bytes, k.mul(problem["chunk_steps"], self._element_bytes))
        is_last = k.compare("ge", below, last)
        columns = self._place_in_b(k, problem, part, k.select(is_last, first, below))
        return k.gep(columns, k.select(is_last, next_chunk, part.bytes))

    def _place_in_b(self, k: KernelBuilder, problem: RecordValue, part: _Part, column: Value) -> Value:
        """Where a column begins, all of K."""
        matrix = k.gep(problem["b"], k.mul(part.batch, problem["b_batch"]))
        return k.gep(matrix, k.mul(column, problem["b_column"]))

    def _run_dots_if_suited(self, k: KernelBuilder, problem: RecordValue) -> None:
        many = k.const(I64, dot_rows(self._kind, self._shape))
        is_far = k.compare("gt", self._bytes_of_b(k, problem), self._near_bytes)
        many = k.select(is_far, k.smin(many, _MOST_FAR_ROWS), many)
        many = k.select(k.compare("ge", problem["k"], _DOTS_DEPTH_OF_MANY), many, DOT_ROWS)

        def suited(few: str, most: Value | int, along: str, other_along: str) -> Value:
            """Few rows (or columns), the other operand contiguous along K, this one too or small enough to copy."""
            copied = k.mul(k.mul(problem[few], problem["k"]), self._element_bytes)
            can_copy = k.and_(k.compare("eq", problem["batches"], 1), k.compare("le", copied, self._most_scratch_bytes))
            is_contiguous = k.compare("eq", problem[along], self._element_bytes)
            is_few = k.compare("le", problem[few], most)
            other = k.compare("eq", problem[other_along], self._element_bytes)
            return k.and_(k.and_(is_few, other), k.or_(is_contiguous, can_copy))

        is_long = k.compare("ge", problem["k"], _DOTS_DEPTH)
        as_given = suited("m", many, "a_step", "b_step")
        with k.if_(k.and_(is_long, k.and_(k.not_(as_given), suited("n", DOT_ROWS, "b_step", "a_step")))):
            transpose(k, problem)
            self._run_dots(k, problem)
            k.ret()
        with k.if_(k.and_(is_long, as_given)):
            self._run_dots(k, problem)
            k.ret()

    def _run_dots(self, k: KernelBuilder, problem: RecordValue) -> None:
        distance = self._column_distance(k, problem)
        width = k.smax(k.mul(distance, dot_columns(self._kind, self._shape, 1)), DOTS_COLUMNS)
        problem.set(
            uses_scratch=0,
            chunk_steps=self._steps_of_dots(k, problem),
            column_distance=distance,
            block_columns=width,
            column_blocks=ceil_div(k, problem["n"], width),
        )
        rows = k.smax(problem["m"], LEAST_ROWS)
        work = k.mul(k.mul(rows, work_per_element(k, problem, problem["k"])), width)
        count = k.mul(problem["batches"], problem["column_blocks"])
        grain = self._grain(k, count, work)
        arguments = [k.function_pointer(f"{self._prefix}_dots"), problem.place, count, grain]

        def copied() -> None:
            scratch = acquire_scratch(k, k.mul(k.mul(problem["m"], problem["k"]), self._element_bytes))
            self._copy_rows_of_a(k, problem, scratch.memory)
            k.call(k.parameters["parallel"], arguments)
            release_scratch(k, scratch)

        def in_place() -> None:
            k.call(k.parameters["parallel"], arguments)

        k.if_else(k.compare("eq", problem["a_step"], self._element_bytes), in_place, copied)

    def _steps_of_dots(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of a chunk, or all, if all rows are multiplied at once."""
        if not self._has_sharing_dots:
            return problem["k"]
        has_passes = k.compare("gt", problem["m"], dot_heights(self._kind, self._shape)[-1])
        return k.select(has_passes, k.const(I64, _CHUNK_BYTES // self._element_bytes), problem["k"])

    def _column_distance(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """How far apart columns of B are that are multiplied together: as far as it takes for all of them to begin at
        the same place of a line, so that vectors are whole lines, if B is in a near cache, and there is a single row of
        A (513 by 513, f32: 12.1 -> 8.4 us, 520 by 520 11.9 -> 8.8; of several rows nothing is gained). Else they are
        neighbours."""
        one = k.const(I64, 1)
        if not reads_lines(self._target, self._kind, self._shape):
            return one
        b_column = problem["b_column"]
        lowest = k.and_(b_column, k.neg(b_column))  # the largest power of two that divides it
        is_near = k.compare("le", k.mul(problem["n"], b_column), self._target.l2_bytes)
        pays = k.and_(k.compare("eq", problem["m"], 1), k.and_(is_near, k.compare("lt", lowest, CACHE_LINE)))
        (distance,) = k.if_else(pays, lambda: k.udiv(CACHE_LINE, lowest), lambda: one)
        return distance

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
