"""Folds of rows: several vectors side by side along each, then single vectors, then single elements.

The same steps in the same order as in the kernels that programs have for such (`kernels.reduce.fold_along`), but for
quick folds, whose results have the same bits: a row that they leave in doubt, and that is still in a cache, is folded
once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Module, Operand, Value
from xlapy.codegen.kernels.folding import Folding, folding, quick_folding
from xlapy.codegen.kernels.reduce import ACCUMULATORS, FETCHED_ACCUMULATORS, identity_element
from xlapy.codegen.libraries.fold_problem import FoldKind, FoldProblem, fold_function
from xlapy.codegen.registers import Element, flatten, unflatten
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.support.records import Record

ROWS = "rows"

TOGETHER = 4
"""Pieces of memory that are read side by side, of several rows: a core waits less for these (the largest of each row of
f32[4096,4096] on one core of a Zen 3: four rows of two vectors take 0.8 of the time of one row of four). Vectors of one
register let registers hold all of them; so this is for quick folds, whose results do not depend on the order. What adds
up keeps that of kernels."""


def emit_rows(kind: FoldKind, target: Target) -> Module:
    module = Module.of(target)
    with fold_function(module, kind.name(ROWS), kind, target) as problem:
        rows = _Rows(problem, kind.combiner(), target)
        most = 1 if kind.map.hides_latency else ACCUMULATORS
        of_memory = min(most, FETCHED_ACCUMULATORS)
        ahead = FETCHED_AHEAD if target.asks_ahead else 0
        together = TOGETHER // kind.map.arrays if rows.are_quick and not kind.map.hides_latency else 1
        narrow, wide = kind.lanes_of_memory(target), kind.lanes(target)
        is_fetched = problem.k.compare("ne", problem["ahead"], 0)
        problem.k.if_else(
            is_fetched,
            lambda: rows.emit(problem.inputs(ahead), narrow if together > 1 else wide, of_memory, together),
            lambda: rows.emit(problem.inputs(), wide, most),
        )
    return module


class _Row(Record):
    """A row by its number, the number of its first element, and what it has one number of."""

    number: Value
    first: Value
    each: Sequence[Element]


State = Sequence[Element]


class _Rows:
    """The loop over rows, for inputs that are fetched ahead or not."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, target: Target) -> None:
        k, identity = problem.k, identity_element(problem.k, combiner)
        self._problem = problem
        self._init = problem.init()
        self._fold = folding(k, combiner, identity)
        self._quick = quick_folding(k, combiner, identity, target)

    @property
    def are_quick(self) -> bool:
        return self._quick is not None

    def emit(self, inputs: Sequence[Array], lanes: int, vectors: int, together: int = 1) -> None:
        """Writes the loop, with so many rows side by side, and so many vectors of each."""
        k = self._problem.k
        begin, end = k.parameters["begin"], k.parameters["end"]
        if together > 1:
            blocks_end = k.add(begin, k.and_(k.sub(end, begin), -together))
            with k.loop(begin, blocks_end, together) as blocks:
                self._emit_rows(blocks.index, inputs, lanes, vectors, together)
            begin = blocks_end
        with k.loop(begin, end) as rows:
            self._emit_rows(rows.index, inputs, lanes, vectors, 1)

    def _emit_rows(self, number: Value, inputs: Sequence[Array], lanes: int, vectors: int, count: int) -> None:
        """Folds `count` rows side by side, from one on, and once more if a quick fold leaves any of them in doubt."""
        k, quick = self._problem.k, self._quick
        rows = [self._row(k.add(number, below)) for below in range(count)]
        fold = quick or self._fold
        states = self._states(fold, rows, inputs, lanes, vectors)

        def store() -> None:
            for row, (state, rest) in zip(rows, states, strict=True):
                self._store(row, fold.finish(self._init, state, rest))

        def again() -> None:
            with k.loop(number, k.add(number, count)) as loop:
                row = self._row(loop.index)
                ((state, rest),) = self._states(self._fold, [row], inputs, lanes, 1)
                self._store(row, self._fold.finish(self._init, state, rest))

        if quick is None:
            store()
            return
        doubts = [quick.is_doubtful(state, rest) for state, rest in states]
        k.if_else(reduce(k.or_, doubts), again, store, likely=False)

    def _row(self, number: Value) -> _Row:
        problem, scalar = self._problem, Indexing(self._problem.k, 1)
        return _Row(number, problem.k.mul(number, problem["length"]), problem.each(scalar, number))

    def _store(self, row: _Row, result: Element) -> None:
        problem, scalar = self._problem, Indexing(self._problem.k, 1)
        problem.result.store(scalar, problem.place(scalar, row.number), result)

    def _states(
        self, fold: Folding, rows: Sequence[_Row], inputs: Sequence[Array], lanes: int, vectors: int
    ) -> list[tuple[State, State]]:
        """By rows, what is folded of whole vectors, and of single elements behind them."""
        k, length = self._problem.k, self._problem["length"]
        first = rows[0].first
        blocks_end = k.add(first, k.and_(length, -(lanes * vectors)))
        vectors_end = k.add(first, k.and_(length, -lanes))
        states: list[State] = [fold.start(vectors, lanes) for _ in rows]
        states = self._run(fold, first, blocks_end, states, rows, inputs, vectors, lanes)
        if vectors > 1:
            states = self._run(fold, blocks_end, vectors_end, states, rows, inputs, 1, lanes)
        rests: list[State] = [fold.start(1, 1) for _ in rows]
        rests = self._run(fold, vectors_end, k.add(first, length), rests, rows, inputs, 1, 1)
        return list(zip(states, rests, strict=True))

    def _run(
        self,
        fold: Folding,
        begin: Value,
        end: Operand,
        states: list[State],
        rows: Sequence[_Row],
        inputs: Sequence[Array],
        count: int,
        lanes: int,
    ) -> list[State]:
        """Folds [begin, end), which are places in the first row, in steps of `count` vectors of each row."""
        problem, k, ix = self._problem, self._problem.k, Indexing(self._problem.k, lanes)
        size = len(states[0])
        below = [k.sub(row.first, rows[0].first) if row is not rows[0] else 0 for row in rows]

        def by_rows(elements: State) -> list[State]:
            return [elements[row * size : (row + 1) * size] for row in range(len(rows))]

        together = [element for state in states for element in state]
        with k.loop(begin, end, lanes * count, carry=flatten(together)) as loop:
            following: list[Element] = []
            for row, distance, state in zip(rows, below, by_rows(unflatten(loop.values, together)), strict=True):
                starts = [k.add(k.add(loop.index, distance), number * lanes) for number in range(count)]
                elements = [problem.load(ix, inputs, start, row.each) for start in starts]
                following += fold.step(state, elements)
            loop.next = flatten(following)
        return by_rows(unflatten(loop.results, together))
