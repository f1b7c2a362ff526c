"""Folds of columns in memory: wide blocks of them, several rows at a time (`kernels.wide_blocks`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Value
from xlapy.codegen.kernels.fetching import fetched_below
from xlapy.codegen.kernels.wide_blocks import (
    MOST_BYTES,
    STREAMS,
    BlockInMemory,
    BlockValues,
    VectorFold,
    WideFold,
    first_column,
)
from xlapy.codegen.libraries.fold_maps import ITSELF
from xlapy.codegen.libraries.fold_problem import FoldProblem
from xlapy.codegen.registers import Element, memory_type, register_type
from xlapy.hlo.graph import Instruction


class WideBlocks:
    """The loop over wide blocks of columns."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, lanes: int) -> None:
        vectors = MOST_BYTES // (lanes * register_type(problem.kind.type).bytes)
        self._problem = problem
        self._combiner = combiner
        self._ix = Indexing(problem.k, lanes)
        self._rows = STREAMS // problem.kind.map.arrays
        self._values = BlockValues(problem.k, [problem.init()], lanes, vectors)

    def emit(self) -> None:
        problem, k = self._problem, self._problem.k
        blocks, lanes = problem["blocks"], self._ix.lanes
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            group = k.udiv(units.index, blocks)
            block = k.sub(units.index, k.mul(group, blocks))
            self._fold(group, first_column(k, block, k.mul(problem["width"], lanes), problem["columns"]))

    def _fold(self, group: Value, first: Value) -> None:
        """Folds the columns of a block of a group from the `first` one on.

        Those of narrow floats are short pieces of rows, as their folds are not split (`passes.split_reduction`): each
        fetches what lies below it, rather than one piece after the other (which is 10 % slower then)."""
        problem, k, lanes = self._problem, self._problem.k, self._ix.lanes
        length, columns, count = problem["length"], problem["columns"], problem["width"]
        begin = k.add(k.mul(k.mul(group, length), columns), first)
        result = k.add(k.mul(group, columns), first)

        element_bytes = memory_type(problem.kind.type).bytes
        row_bytes = k.mul(columns, element_bytes)
        inputs = [replace(array, pointer=k.gep(array.pointer, begin, element_bytes)) for array in problem.inputs()]
        fetched = [BlockInMemory(array.pointer, row_bytes, lanes * element_bytes) for array in inputs]
        if problem.kind.type.is_narrow_float:
            below = k.mul(row_bytes, self._rows)
            inputs, fetched = [fetched_below(array, below) for array in inputs], []

        def fold(row: Value, rows: int) -> VectorFold:
            starts = [k.mul(k.add(row, number), row_bytes) for number in range(rows)]
            arrays = [[replace(array, pointer=self._row(array, start)) for array in inputs] for start in starts]

            def of_vector(vector: Value, state: Sequence[Element]) -> Sequence[Element]:
                column = k.mul(vector, lanes)
                each = problem.each(self._ix, k.add(result, column))
                (value,) = state
                for array in arrays:
                    element = problem.load(self._ix, array, column, each)
                    value = emit_element(k, self._combiner, [value, element], unrounded=True)
                return [value]

            return of_vector

        self._values.begin(count)
        WideFold(self._values, count, self._rows, fold, fetched).emit(k, length)
        with k.loop(0, count) as vectors:
            (value,) = self._values.load(vectors.index)
            place = k.add(result, k.mul(vectors.index, lanes))
            problem.result.store(self._ix, problem.place(self._ix, place), value)

    def _row(self, array: Array, start: Value) -> Value:
        """Where a row begins that is `start` bytes behind the first one.

        LLVM would save registers by adding up from row to row for each vector: as many instructions again as there are
        rows, so that a core has fewer loads under way (sums of f32 on one core: 6 % slower). Extrema of floats, which
        wait for one another, are 10 % quicker then."""
        k, kind = self._problem.k, self._problem.kind
        place = k.gep(array.pointer, start)
        is_sum = kind.map is ITSELF and kind.opcode in ("add", "multiply")
        return k.opaque(place) if is_sum else place
