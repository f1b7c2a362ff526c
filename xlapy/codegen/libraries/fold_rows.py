"""Folds of rows: what whole vectors leave over, several vectors side by side along each, then single vectors; single
elements of what fills no vector.

The same steps in the same order as in the kernels that programs have for such (`kernels.reduce.fold_along`), but for
quick folds, whose results have the same bits: a row that they leave in doubt, and that is still in a cache, is folded
once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Module, Operand, Value
from xlapy.codegen.kernels.folding import Folding, folding, quick_folding
from xlapy.codegen.kernels.reduce import (
    ACCUMULATORS,
    FETCHED_ACCUMULATORS,
    end_of_vectors,
    identity_element,
    with_last_vector,
)
from xlapy.codegen.libraries.fold_lines import LinesOfRow, may_read_lines, pays_by_lines
from xlapy.codegen.libraries.fold_problem import FoldKind, FoldProblem, fold_function
from xlapy.codegen.registers import Element, flatten, memory_type, unflatten
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.support.records import Record

ROWS = "rows"

TOGETHER = 4
"""Pieces of memory that are read side by side, far apart, where the target `reads_side_by_side`. A Zen 3 sums rows of 1
KB and more at 30 GB/s so, in 0.75 of the time of one row after the other. Neighbouring rows are short pieces, which its
own fetching cannot follow: those of 16 KB take 0.8 of that time, of 4 KB as long, and of 1 KB 1.9 times as long."""


def emit_rows(kind: FoldKind, target: Target) -> Module:
    module = Module.of(target)
    with fold_function(module, kind.name(ROWS), kind, target) as problem:
        rows = _Rows(problem, kind.combiner(), target)
        most = 1 if kind.map.hides_latency else ACCUMULATORS
        of_memory = min(most, FETCHED_ACCUMULATORS)
        together, lanes, begin = rows_together(kind, target), kind.lanes(target), problem.k.parameters["begin"]

        def in_memory() -> Value:
            inputs = problem.inputs(FETCHED_AHEAD if target.asks_ahead else 0)
            if rows.are_quick:
                return rows.emit_together(inputs, kind.lanes_of_memory(target), of_memory, together)
            left = rows.emit_together(inputs, lanes, of_memory, together) if together > 1 else begin
            rows.emit(left, inputs, lanes, of_memory)
            return problem.k.parameters["end"]

        is_fetched = problem.k.compare("ne", problem["ahead"], 0)
        (left,) = problem.k.if_else(is_fetched, in_memory, lambda: begin)
        inputs = problem.inputs()

        def as_they_lie() -> None:
            rows.emit(left, inputs, lanes, most)

        def line_by_line() -> None:
            _RowsOfLines(problem, kind.combiner(), target).emit(left, inputs, lanes, most)

        if may_read_lines(kind.type, target) and not kind.map.hides_latency:
            problem.k.if_else(pays_by_lines(problem.k, inputs, problem["length"]), line_by_line, as_they_lie)
        else:
            as_they_lie()
    return module


def rows_together(kind: FoldKind, target: Target) -> int:
    """How many rows in memory are read side by side. What computes long does not wait for memory."""
    if kind.map.hides_latency or not target.reads_side_by_side:
        return 1
    return TOGETHER // kind.map.arrays


class _Row(Record):
    """A row by its number, the arrays from its first elements on, and what it has one number of."""

    number: Value
    inputs: Sequence[Array]
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

    def emit(self, begin: Value, inputs: Sequence[Array], lanes: int, vectors: int) -> None:
        """Writes the loop over rows from one on, of so many vectors side by side."""
        k = self._problem.k
        with k.loop(begin, k.parameters["end"]) as rows:
            self._emit_rows([rows.index], inputs, lanes, vectors)

    def emit_together(self, inputs: Sequence[Array], lanes: int, vectors: int, count: int) -> Value:
        """Writes the loop over all rows in as many pieces as it folds side by side, and says from which one on some are
        left."""
        k = self._problem.k
        begin, end = k.parameters["begin"], k.parameters["end"]
        apart = k.udiv(k.sub(end, begin), count)
        with k.loop(begin, k.add(begin, apart)) as groups:
            numbers = [k.add(groups.index, k.mul(apart, piece)) for piece in range(count)]
            self._emit_rows(numbers, inputs, lanes, vectors)
        return k.add(begin, k.mul(apart, count))

    def _emit_rows(self, numbers: Sequence[Value], inputs: Sequence[Array], lanes: int, vectors: int) -> None:
        """Folds some rows side by side, at equal distances, and once more if a quick fold leaves any of them in
        doubt."""
        k, quick = self._problem.k, self._quick
        rows = [self._row(number, inputs) for number in numbers]
        fold = quick or self._fold
        states = self._states(fold, rows, lanes, vectors)

        def store() -> None:
            for row, (state, rest) in zip(rows, states, strict=True):
                self._store(row, fold.finish(self._init, state, rest))

        def again() -> None:
            apart = k.sub(numbers[1], numbers[0]) if len(numbers) > 1 else 1
            with k.loop(numbers[0], k.add(numbers[-1], 1), apart) as loop:
                row = self._row(loop.index, inputs)
                ((state, rest),) = self._states(self._fold, [row], lanes, 1)
                self._store(row, self._fold.finish(self._init, state, rest))

        if quick is None:
            store()
            return
        doubts = [quick.is_doubtful(state, rest) for state, rest in states]
        k.if_else(reduce(k.or_, doubts), again, store, likely=False)

    def _row(self, number: Value, inputs: Sequence[Array]) -> _Row:
        problem, k, scalar = self._problem, self._problem.k, Indexing(self._problem.k, 1)
        first = k.mul(number, problem["length"])
        element_bytes = memory_type(problem.kind.type).bytes
        own = [replace(array, pointer=k.gep(array.pointer, first, element_bytes)) for array in inputs]
        return _Row(number, own, problem.each(scalar, number))

    def _store(self, row: _Row, result: Element) -> None:
        self._problem.store(Indexing(self._problem.k, 1), row.number, result)

    def _states(self, fold: Folding, rows: Sequence[_Row], lanes: int, vectors: int) -> list[tuple[State, State]]:
        """By rows, what is folded of whole vectors, and of single elements behind them."""
        k, length = self._problem.k, self._problem["length"]
        blocks_end, vectors_end = k.and_(length, -(lanes * vectors)), k.and_(length, -lanes)
        states = self._with_last_vectors(fold, [fold.start(vectors, lanes) for _ in rows], rows, lanes)
        states = self._vector_states(fold, states, rows, lanes, vectors, (blocks_end, vectors_end))
        rests: list[State] = [fold.start(1, 1) for _ in rows]
        rests = self._run(fold, end_of_vectors(k, length, lanes), length, rests, rows, 1, 1)
        return list(zip(states, rests, strict=True))

    def _with_last_vectors(
        self, fold: Folding, states: Sequence[State], rows: Sequence[_Row], lanes: int
    ) -> list[State]:
        """The states with the elements of each row that its whole vectors leave over."""
        problem, k, ix, size = self._problem, self._problem.k, Indexing(self._problem.k, lanes), len(states[0])

        def step(together: Sequence[Element], place: Value) -> list[Element]:
            following: list[Element] = []
            for number, row in enumerate(rows):
                element = problem.load(ix, row.inputs, place, row.each)
                following += fold.step(together[number * size : (number + 1) * size], [element])
            return following

        together = [element for state in states for element in state]
        together = with_last_vector(k, problem["length"], lanes, together, step)
        return [together[number * size : (number + 1) * size] for number in range(len(rows))]

    def _vector_states(
        self,
        fold: Folding,
        states: list[State],
        rows: Sequence[_Row],
        lanes: int,
        vectors: int,
        ends: tuple[Value, Value],
    ) -> list[State]:
        """By rows, the states with what is folded of whole vectors: so many side by side up to the first end, single
        ones up to the second."""
        blocks_end, vectors_end = ends
        states = self._run(fold, 0, blocks_end, states, rows, vectors, lanes)
        return self._run(fold, blocks_end, vectors_end, states, rows, 1, lanes) if vectors > 1 else states

    def _run(
        self,
        fold: Folding,
        begin: Operand,
        end: Value,
        states: list[State],
        rows: Sequence[_Row],
        count: int,
        lanes: int,
    ) -> list[State]:
        """Folds [begin, end), which are places in each row, in steps of `count` vectors."""
        problem, k, ix = self._problem, self._problem.k, Indexing(self._problem.k, lanes)
        size = len(states[0])

        def by_rows(elements: State) -> list[State]:
            return [elements[row * size : (row + 1) * size] for row in range(len(rows))]

        together = [element for state in states for element in state]
        with k.loop(begin, end, lanes * count, carry=flatten(together)) as loop:
            following: list[Element] = []
            starts = [k.add(loop.index, number * lanes) for number in range(count)]
            for row, state in zip(rows, by_rows(unflatten(loop.values, together)), strict=True):
                following += fold.step(state, [problem.load(ix, row.inputs, start, row.each) for start in starts])
            loop.next = flatten(following)
        return by_rows(unflatten(loop.results, together))


class _RowsOfLines(_Rows):
    """The same, one after the other, for rows that do not begin where lines of the caches do: see `fold_lines`."""

    def _vector_states(
        self,
        fold: Folding,
        states: list[State],
        rows: Sequence[_Row],
        lanes: int,
        vectors: int,
        ends: tuple[Value, Value],
    ) -> list[State]:
        (row,), (state,), (blocks_end, vectors_end) = rows, states, ends
        lines = [LinesOfRow.of(self._problem.k, array) for array in row.inputs]
        before = [each.first(self._problem.k) for each in lines]
        state, before = self._run_lines(fold, (0, blocks_end), (state, before), (row, lines), vectors, lanes)
        if vectors > 1:
            state, _ = self._run_lines(fold, (blocks_end, vectors_end), (state, before), (row, lines), 1, lanes)
        return [state]

    def _run_lines(
        self,
        fold: Folding,
        places: tuple[Operand, Value],
        reached: tuple[State, list[Value]],
        read: tuple[_Row, Sequence[LinesOfRow]],
        count: int,
        lanes: int,
    ) -> tuple[State, list[Value]]:
        """Folds such places of a row in steps of `count` vectors. What is `reached` is a state, and the last line of
        each array."""
        problem, k, (state, before), (row, lines) = self._problem, self._problem.k, reached, read
        size = len(flatten(state))
        with k.loop(*places, lanes * count, carry=[*flatten(state), *before]) as loop:
            last, made = loop.values[size:], []
            for number in range(count):
                start = k.add(loop.index, number * lanes)
                loaded = [each.load(k, line, start, lanes) for each, line in zip(lines, last, strict=True)]
                last = [line for _, line in loaded]
                made.append(problem.made(lanes, [element for element, _ in loaded], row.each))
            loop.next = [*flatten(fold.step(unflatten(loop.values[:size], state), made)), *last]
        return unflatten(loop.results[:size], state), loop.results[size:]
