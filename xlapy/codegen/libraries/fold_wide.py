"""Folds of columns in memory: wide blocks of them, several rows at a time (`kernels.wide_blocks`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I64, Value
from xlapy.codegen.kernels.fetching import fetched_below
from xlapy.codegen.kernels.wide_blocks import (
    MOST_BYTES,
    STREAMS,
    BlockInMemory,
    BlockValues,
    Edges,
    Fetched,
    Vector,
    VectorFold,
    WideFold,
    first_column,
)
from xlapy.codegen.libraries.fold_maps import ITSELF
from xlapy.codegen.libraries.fold_problem import FoldProblem
from xlapy.codegen.registers import Element, memory_type, register_type
from xlapy.hlo.graph import Instruction

ROWS, TOGETHER = 4, 2
"""So many rows of so many vectors side by side: one core of a Zen 5 sums f32[4096,4096] at 52 GB/s where no vector
crosses a line of the cache, at 48 with eight rows of one vector, and at 38 with two rows of four."""


class WideBlocks:
    """The loop over wide blocks of columns. What comes next is fetched if the target `asks_ahead`: elsewhere extrema of
    f32[4096,4096] are 1.2 times as fast without, and sums of bf16 1.3 times (one core of a Zen 3).

    Vectors begin with the lines of the cache, if rows are whole lines, wherever the first one begins: two at the edges
    of a block overlap the others then. What crosses lines is waited for twice (sums of f32[4096,4096] at 43 GB/s), and
    is fetched by rows, one after the other (at 46), and so is what extrema are found of: fewer loads are under way
    beside so many instructions (37 GB/s, not 46)."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, lanes: int, *, asks_ahead: bool) -> None:
        self._problem = problem
        self._asks_ahead = asks_ahead
        self._combiner = combiner
        self._ix = Indexing(problem.k, lanes)
        self._is_narrow = problem.kind.type.is_narrow_float
        self._is_quick = problem.kind.opcode in ("add", "multiply") and not self._is_narrow
        self._rows, self._together = (ROWS, TOGETHER) if self._is_quick else (STREAMS // problem.kind.map.arrays, 1)
        most = MOST_BYTES // (lanes * register_type(problem.kind.type).bytes)
        self._values = BlockValues(problem.k, [problem.init()], lanes, most + 1)

    def emit(self) -> None:
        problem, k = self._problem, self._problem.k
        blocks, lanes = problem["blocks"], self._ix.lanes
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            group = k.udiv(units.index, blocks)
            block = k.sub(units.index, k.mul(group, blocks))
            self._fold(group, first_column(k, block, k.mul(problem["width"], lanes), problem["columns"]))

    def _fold(self, group: Value, first: Value) -> None:
        """Folds the columns of a block of a group from the `first` one on."""
        problem, k, lanes = self._problem, self._problem.k, self._ix.lanes
        length, columns, width = problem["length"], problem["columns"], problem["width"]
        element_bytes = memory_type(problem.kind.type).bytes
        row_bytes = k.mul(columns, element_bytes)
        begin = k.add(k.mul(k.mul(group, length), columns), first)
        result = k.add(k.mul(group, columns), first)
        if not self._is_quick:
            fold = self._wide_fold(begin, result, row_bytes, width)
        else:
            vector_bytes = lanes * element_bytes
            is_of_lines = k.compare("eq", k.and_(row_bytes, vector_bytes - 1), 0)
            start = k.address(k.gep(problem.inputs()[0].pointer, begin, element_bytes))
            before = k.udiv(k.and_(k.neg(start), vector_bytes - 1), element_bytes)
            skipped = k.select(is_of_lines, before, 0)
            is_skipped = k.zext(k.compare("gt", skipped, 0), I64)
            last = k.sub(k.mul(k.sub(width, 1), lanes), skipped)
            edges = Edges(k.mul(is_skipped, 2), lambda edge: k.select(k.compare("eq", edge, 0), k.neg(skipped), last))
            begin, result = k.add(begin, skipped), k.add(result, skipped)
            fold = self._wide_fold(begin, result, row_bytes, k.sub(width, is_skipped), edges, k.xor(is_of_lines, 1))
        count = fold.all_vectors(k)
        self._values.begin(count)
        fold.emit(k, length)
        with k.loop(0, count) as vectors:
            (value,) = self._values.load(vectors.index)
            problem.store(self._ix, k.add(result, fold.vector(k, vectors.index).column), value)

    def _wide_fold(
        self,
        begin: Value,
        result: Value,
        row_bytes: Value,
        count: Value,
        edges: Edges | None = None,
        is_fetched: Value | None = None,
    ) -> WideFold:
        """Of the columns behind the elements of numbers `begin` and `result`.

        Those of narrow floats are short pieces of rows, as their folds are not split (`passes.split_reduction`): each
        fetches what lies below it, rather than one piece after the other (which is 10 % slower then)."""
        problem, k, lanes = self._problem, self._problem.k, self._ix.lanes
        element_bytes = memory_type(problem.kind.type).bytes
        inputs = [replace(array, pointer=k.gep(array.pointer, begin, element_bytes)) for array in problem.inputs()]
        memory = [BlockInMemory(array.pointer, row_bytes, lanes * element_bytes) for array in inputs]
        if self._is_narrow and self._asks_ahead:
            below = k.mul(row_bytes, self._rows)
            inputs = [fetched_below(array, below) for array in inputs]

        def fold(row: Value, rows: int) -> VectorFold:
            starts = [k.mul(k.add(row, number), row_bytes) for number in range(rows)]
            arrays = [[replace(array, pointer=self._row(array, start)) for array in inputs] for start in starts]

            def of_vector(vector: Vector, state: Sequence[Element]) -> Sequence[Element]:
                each = problem.each(self._ix, k.add(result, vector.column))
                (value,) = state
                for array in arrays:
                    element = problem.load(self._ix, array, vector.column, each)
                    value = emit_element(k, self._combiner, [value, element], unrounded=True)
                return [value]

            return of_vector

        is_by_rows = self._asks_ahead and not self._is_narrow
        fetched = Fetched(memory, STREAMS // len(inputs), is_fetched) if is_by_rows else None
        return WideFold(self._values, count, self._rows, fold, together=self._together, edges=edges, fetched=fetched)

    def _row(self, array: Array, start: Value) -> Value:
        """Where a row begins that is `start` bytes behind the first one.

        LLVM would save registers by adding up from row to row for each vector: as many instructions again as there are
        rows, so that a core has fewer loads under way (sums of f32 on one core: 6 % slower). Extrema of floats, which
        wait for one another, are 10 % quicker then."""
        k, kind = self._problem.k, self._problem.kind
        place = k.gep(array.pointer, start)
        is_sum = kind.map is ITSELF and kind.opcode in ("add", "multiply")
        return k.opaque(place) if is_sum else place
