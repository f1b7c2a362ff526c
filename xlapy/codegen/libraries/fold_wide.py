"""Folds of columns in memory: wide blocks of them, several rows at a time, onto values that lie in a cache.

    for eight rows:
        for vector of the block: value[vector] = value[vector] + x[row, vector] + ... + x[row + 7, vector]

Each row is read from end to end, as the processor's own prefetching expects of memory: where narrow blocks hold their
values in registers (`fold_columns`), it sees short pieces far apart. The order of the elements is the same.
"""

from __future__ import annotations

from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I8, Value
from xlapy.codegen.kernels.folding import only
from xlapy.codegen.libraries.fold_problem import FoldProblem
from xlapy.codegen.registers import Element, register_type, splat
from xlapy.hlo.graph import Instruction

STREAMS = 8
"""Pieces of memory that are read side by side: as many as processors follow."""

MOST_BYTES = 16 * 1024
"""Of the values of a block: half of a first-level cache."""

ALIGNMENT = 64


class WideBlocks:
    """The loop over wide blocks of columns. The last vector of a row overlaps the one before it."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, lanes: int) -> None:
        self._problem = problem
        self._combiner = combiner
        self._ix = Indexing(problem.k, lanes)
        self._inputs = problem.inputs()
        self._values = problem.k.alloca(I8, MOST_BYTES, align=ALIGNMENT)
        self._type = register_type(problem.kind.type).with_lanes(lanes)

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
        rows = STREAMS // len(self._inputs)
        initial = only(splat(k, problem.init(), self._ix.lanes))
        with k.loop(0, count) as vectors:
            k.store(self._place(vectors.index), initial)
        begin = k.mul(group, length)
        whole = k.and_(length, -rows)
        with k.loop(0, whole, rows) as together:
            self._fold_rows(group, k.add(begin, together.index), rows, first, count)
        with k.loop(whole, length) as alone:
            self._fold_rows(group, k.add(begin, alone.index), 1, first, count)
        with k.loop(0, count) as vectors:
            place = k.add(k.mul(group, columns), self._column(first, vectors.index))
            value = k.load(self._place(vectors.index), self._type)
            problem.result.store(self._ix, problem.place(self._ix, place), value)

    def _fold_rows(self, group: Value, row: Value, rows: int, first: Value, count: Value) -> None:
        """Folds what the block has of some rows, the first of which has a number."""
        problem, k = self._problem, self._problem.k
        columns = problem["columns"]
        starts = [k.mul(k.add(row, number), columns) for number in range(rows)]
        with k.loop(0, count) as vectors:
            place, column = self._place(vectors.index), self._column(first, vectors.index)
            each = problem.each(self._ix, k.add(k.mul(group, columns), column))
            value: Element = k.load(place, self._type)
            for start in starts:
                element = problem.load(self._ix, self._inputs, k.add(start, column), each)
                value = emit_element(k, self._combiner, [value, element], unrounded=True)
            k.store(place, only(value))

    def _place(self, vector: Value) -> Value:
        """Where a vector of the block has its value."""
        return self._problem.k.gep(self._values, vector, self._type.bytes * self._type.lanes)

    def _column(self, first: Value, vector: Value) -> Value:
        """The first column of a vector of the block."""
        k, lanes = self._problem.k, self._ix.lanes
        return k.smin(k.mul(k.add(first, vector), lanes), k.sub(self._problem["columns"], lanes))
