"""Folds of rows: several vectors side by side along each, then single vectors, then single elements.

The same steps in the same order as in the kernels that programs have for such (`kernels.reduce.fold_along`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Module, Operand, Value
from xlapy.codegen.kernels.folding import Folding, folding
from xlapy.codegen.kernels.reduce import ACCUMULATORS, FETCHED_ACCUMULATORS, identity_element
from xlapy.codegen.libraries.fold_problem import FoldKind, FoldProblem, fold_function
from xlapy.codegen.registers import Element, flatten, unflatten
from xlapy.codegen.target import Target

ROWS = "rows"


def emit_rows(kind: FoldKind, target: Target) -> Module:
    module = Module.of(target)
    with fold_function(module, kind.name(ROWS), kind, target) as problem:
        combiner = kind.combiner()
        fold = folding(problem.k, combiner, identity_element(problem.k, combiner))
        rows = _Rows(problem, fold, kind.lanes(target))
        most = 1 if kind.map.hides_latency else ACCUMULATORS
        ahead = FETCHED_AHEAD if target.asks_ahead else 0
        is_fetched = problem.k.compare("ne", problem["ahead"], 0)
        problem.k.if_else(
            is_fetched,
            lambda: rows.emit(problem.inputs(ahead), min(most, FETCHED_ACCUMULATORS)),
            lambda: rows.emit(problem.inputs(), most),
        )
    return module


class _Rows:
    """The loop over rows, for inputs that are fetched ahead or not."""

    def __init__(self, problem: FoldProblem, fold: Folding, lanes: int) -> None:
        self._problem = problem
        self._fold = fold
        self._lanes = lanes

    def emit(self, inputs: Sequence[Array], vectors: int) -> None:
        """Writes the loop, with so many vectors side by side."""
        problem, k, lanes = self._problem, self._problem.k, self._lanes
        length, scalar = problem["length"], Indexing(problem.k, 1)
        init = problem.init()
        with k.loop(k.parameters["begin"], k.parameters["end"]) as rows:
            first = k.mul(rows.index, length)
            each = problem.each(scalar, rows.index)
            blocks_end = k.add(first, k.and_(length, -(lanes * vectors)))
            vectors_end = k.add(first, k.and_(length, -lanes))
            state = self._fold.start(vectors, lanes)
            state = self._run(first, blocks_end, state, inputs, each, vectors, lanes)
            if vectors > 1:
                state = self._run(blocks_end, vectors_end, state, inputs, each, 1, lanes)
            rest = self._run(vectors_end, k.add(first, length), self._fold.start(1, 1), inputs, each, 1, 1)
            result = self._fold.finish(init, state, rest)
            problem.result.store(scalar, problem.place(scalar, rows.index), result)

    def _run(
        self,
        begin: Value,
        end: Operand,
        state: Sequence[Element],
        inputs: Sequence[Array],
        each: Sequence[Element],
        count: int,
        lanes: int,
    ) -> list[Element]:
        """Folds [begin, end) in steps of `count` vectors."""
        problem, k, ix = self._problem, self._problem.k, Indexing(self._problem.k, lanes)
        with k.loop(begin, end, lanes * count, carry=flatten(state)) as loop:
            starts = [k.add(loop.index, number * lanes) for number in range(count)]
            elements = [problem.load(ix, inputs, start, each) for start in starts]
            loop.next = flatten(self._fold.step(unflatten(loop.values, state), elements))
        return unflatten(loop.results, state)
