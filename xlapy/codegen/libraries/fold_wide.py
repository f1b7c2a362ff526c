"""Folds of columns in memory: wide blocks of them, several rows at a time (`kernels.wide_blocks`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Value
from xlapy.codegen.kernels.wide_blocks import MOST_BYTES, STREAMS, BlockValues, first_column, fold_rows
from xlapy.codegen.libraries.fold_problem import FoldProblem
from xlapy.codegen.registers import Element, memory_type, register_type
from xlapy.hlo.graph import Instruction


class WideBlocks:
    """The loop over wide blocks of columns. The last vector of a row overlaps the one before it."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, lanes: int) -> None:
        vectors = MOST_BYTES // (lanes * register_type(problem.kind.type).bytes)
        self._problem = problem
        self._combiner = combiner
        self._ix = Indexing(problem.k, lanes)
        self._rows = STREAMS // problem.kind.map.arrays
        self._inputs = self._fetched(problem.inputs())
        self._values = BlockValues(problem.k, [problem.init()], lanes, vectors)

    def _fetched(self, inputs: Sequence[Array]) -> list[Array]:
        """The next rows come into the second-level cache while these are folded (two cores: 4 to 10 % faster)."""
        k, bytes = self._problem.k, memory_type(self._problem.kind.type, 1).bytes
        following = k.mul(self._problem["columns"], self._rows * bytes)
        return [replace(array, following=following) for array in inputs]

    def emit(self) -> None:
        problem, k = self._problem, self._problem.k
        blocks, width = problem["blocks"], problem["width"]
        vectors = k.udiv(k.add(problem["columns"], self._ix.lanes - 1), self._ix.lanes)
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            group = k.udiv(units.index, blocks)
            first = k.mul(k.sub(units.index, k.mul(group, blocks)), width)
            self._fold(group, first, k.smin(width, k.sub(vectors, first)))

    def _fold(self, group: Value, first: Value, count: Value) -> None:
        """Folds so many vectors of columns of a group, from the vector of a number on."""
        problem, k = self._problem, self._problem.k
        length, columns = problem["length"], problem["columns"]
        begin = k.mul(group, length)

        def fold(vector: Value, state: Sequence[Element], row: Value, rows: int) -> Sequence[Element]:
            column = self._column(first, vector)
            each = problem.each(self._ix, k.add(k.mul(group, columns), column))
            (value,) = state
            for number in range(rows):
                start = k.mul(k.add(k.add(begin, row), number), columns)
                element = problem.load(self._ix, self._inputs, k.add(start, column), each)
                value = emit_element(k, self._combiner, [value, element], unrounded=True)
            return [value]

        self._values.begin(count)
        fold_rows(k, self._values, count, length, self._rows, fold)
        with k.loop(0, count) as vectors:
            place = k.add(k.mul(group, columns), self._column(first, vectors.index))
            (value,) = self._values.load(vectors.index)
            problem.result.store(self._ix, problem.place(self._ix, place), value)

    def _column(self, first: Value, vector: Value) -> Value:
        """The first column of a vector of the block."""
        return first_column(self._ix, self._problem.k.add(first, vector), self._problem["columns"])
