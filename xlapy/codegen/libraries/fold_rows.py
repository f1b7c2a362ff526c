"""Folds of rows: several vectors side by side along each, then single vectors, then single elements.

The same steps in the same order as in the kernels that programs have for such (`kernels.reduce.fold_along`), but for
quick folds, whose results have the same bits: a row that they leave in doubt, and that is still in a cache, is folded
once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Module, Operand, Value
from xlapy.codegen.kernels.folding import Folding, folding, only, quick_folding
from xlapy.codegen.kernels.reduce import ACCUMULATORS, FETCHED_ACCUMULATORS, identity_element
from xlapy.codegen.libraries.fold_problem import FoldKind, FoldProblem, fold_function
from xlapy.codegen.registers import Element, flatten, unflatten
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.support.records import Record

ROWS = "rows"


def emit_rows(kind: FoldKind, target: Target) -> Module:
    module = Module.of(target)
    with fold_function(module, kind.name(ROWS), kind, target) as problem:
        combiner = kind.combiner()
        rows = _Rows(problem, combiner, target)
        most = 1 if kind.map.hides_latency else ACCUMULATORS
        ahead = FETCHED_AHEAD if target.asks_ahead else 0
        is_fetched = problem.k.compare("ne", problem["ahead"], 0)
        problem.k.if_else(
            is_fetched,
            lambda: rows.emit(problem.inputs(ahead), min(most, FETCHED_ACCUMULATORS)),
            lambda: rows.emit(problem.inputs(), most),
        )
    return module


class _Row(Record):
    """The number of its first element, what it is read from, and what it has one number of."""

    first: Value
    inputs: Sequence[Array]
    each: Sequence[Element]


class _Rows:
    """The loop over rows, for inputs that are fetched ahead or not."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, target: Target) -> None:
        k, identity = problem.k, identity_element(problem.k, combiner)
        self._problem = problem
        self._fold = folding(k, combiner, identity)
        self._quick = quick_folding(k, combiner, identity, target)
        self._lanes = problem.kind.lanes(target)

    def emit(self, inputs: Sequence[Array], vectors: int) -> None:
        """Writes the loop, with so many vectors side by side."""
        problem, k, scalar = self._problem, self._problem.k, Indexing(self._problem.k, 1)
        init = problem.init()
        with k.loop(k.parameters["begin"], k.parameters["end"]) as rows:
            each = problem.each(scalar, rows.index)
            result = self._result(init, _Row(k.mul(rows.index, problem["length"]), inputs, each), vectors)
            problem.result.store(scalar, problem.place(scalar, rows.index), result)

    def _result(self, init: Value, row: _Row, vectors: int) -> Element:
        k, quick = self._problem.k, self._quick
        if quick is None:
            return self._fold.finish(init, *self._states(self._fold, row, vectors))
        states = self._states(quick, row, vectors)

        def again() -> Value:
            return only(self._fold.finish(init, *self._states(self._fold, row, 1)))

        (result,) = k.if_else(
            quick.is_doubtful(*states), again, lambda: only(quick.finish(init, *states)), likely=False
        )
        return result

    def _states(self, fold: Folding, row: _Row, vectors: int) -> tuple[list[Element], list[Element]]:
        """What is folded of whole vectors, and of single elements behind them."""
        k, lanes, length = self._problem.k, self._lanes, self._problem["length"]
        blocks_end = k.add(row.first, k.and_(length, -(lanes * vectors)))
        vectors_end = k.add(row.first, k.and_(length, -lanes))
        state = self._run(fold, row.first, blocks_end, fold.start(vectors, lanes), row, vectors, lanes)
        if vectors > 1:
            state = self._run(fold, blocks_end, vectors_end, state, row, 1, lanes)
        rest = self._run(fold, vectors_end, k.add(row.first, length), fold.start(1, 1), row, 1, 1)
        return state, rest

    def _run(
        self,
        fold: Folding,
        begin: Value,
        end: Operand,
        state: Sequence[Element],
        row: _Row,
        count: int,
        lanes: int,
    ) -> list[Element]:
        """Folds [begin, end) in steps of `count` vectors."""
        problem, k, ix = self._problem, self._problem.k, Indexing(self._problem.k, lanes)
        with k.loop(begin, end, lanes * count, carry=flatten(state)) as loop:
            starts = [k.add(loop.index, number * lanes) for number in range(count)]
            elements = [problem.load(ix, row.inputs, start, row.each) for start in starts]
            loop.next = flatten(fold.step(unflatten(loop.values, state), elements))
        return unflatten(loop.results, state)
