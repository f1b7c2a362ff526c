"""Folds of columns: a block of neighbouring ones at a time, a lane for each, in the order of the elements.

How wide a block is, is part of a function's name: its results stay in registers. What is in memory is folded by wider
blocks (`fold_wide`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import Module, Value
from xlapy.codegen.kernels.reduce import ACCUMULATORS, WIDE_ACCUMULATORS
from xlapy.codegen.libraries.fold_maps import ITSELF
from xlapy.codegen.libraries.fold_problem import FoldKind, FoldProblem, fold_function
from xlapy.codegen.libraries.fold_wide import WideBlocks
from xlapy.codegen.registers import Element, flatten, memory_type, splat, unflatten
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction

COLUMNS = "columns"
WIDTHS = (*WIDE_ACCUMULATORS, ACCUMULATORS)
"""Vectors in a block."""


def widths_of(kind: FoldKind) -> tuple[int, ...]:
    """The widths of blocks. What is made from elements takes registers, too, and so does what columns have one of."""
    if kind.map.has_each:
        return WIDTHS[-1:]
    return WIDTHS if kind.map is ITSELF else WIDTHS[1:]


def columns_name(kind: FoldKind, vectors: int) -> str:
    return f"{kind.name(COLUMNS)}.{vectors}"


def wide_name(kind: FoldKind) -> str:
    return f"{kind.name(COLUMNS)}.wide"


def emit_columns(kind: FoldKind, target: Target) -> Module:
    module = Module.of(target)
    for vectors in widths_of(kind):
        with fold_function(module, columns_name(kind, vectors), kind, target) as problem:
            blocks = _Blocks(problem, kind.combiner(), kind.lanes(target), vectors)
            is_fetched = problem.k.compare("ne", problem["ahead"], 0)
            problem.k.if_else(is_fetched, partial(blocks.emit, fetches=True), partial(blocks.emit, fetches=False))
    with fold_function(module, wide_name(kind), kind, target) as problem:
        lanes = kind.lanes_of_memory(target)
        WideBlocks(problem, kind.combiner(), lanes, asks_ahead=target.asks_ahead).emit()
    return module


class _Blocks:
    """The loop over blocks of columns."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, lanes: int, vectors: int) -> None:
        self._problem = problem
        self._combiner = combiner
        self._ix = Indexing(problem.k, lanes)
        self._vectors = vectors

    def emit(self, *, fetches: bool) -> None:
        """Writes the loop. The last block of a group overlaps the one before it."""
        problem, k, lanes = self._problem, self._problem.k, self._ix.lanes
        columns, blocks = problem["columns"], problem["blocks"]
        width = lanes * self._vectors
        initial = [splat(k, problem.init(), lanes)] * self._vectors
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            group = k.udiv(units.index, blocks)
            block = k.sub(units.index, k.mul(group, blocks))
            start = k.smin(k.mul(block, width), k.sub(columns, width))
            first = k.add(k.mul(k.mul(group, problem["length"]), columns), start)
            place = k.add(k.mul(group, columns), start)
            each = [problem.each(self._ix, k.add(place, number * lanes)) for number in range(self._vectors)]
            results = self._folded(first, initial, each, fetches=fetches)
            for number, result in enumerate(results):
                problem.store(self._ix, k.add(place, number * lanes), result)

    def _folded(
        self, first: Value, initial: Sequence[Element], each: Sequence[Sequence[Element]], *, fetches: bool
    ) -> list[Element]:
        """The block whose first element has a number."""
        problem, k = self._problem, self._problem.k
        inputs, columns = problem.inputs(), problem["columns"]
        element_bytes = memory_type(problem.kind.type).bytes
        vector_bytes = self._ix.lanes * element_bytes
        with k.loop(0, problem["length"], carry=flatten(initial), runs=True) as loop:
            row = k.add(first, k.mul(loop.index, columns))
            following = []
            for number, old in enumerate(unflatten(loop.values, initial)):
                for source in inputs if fetches else ():
                    ahead = k.gep(k.gep(source.pointer, row, element_bytes), problem["ahead"])
                    k.prefetch(k.gep(ahead, number * vector_bytes), vector_bytes)
                element = problem.load(self._ix, inputs, k.add(row, number * self._ix.lanes), each[number])
                following.append(emit_element(k, self._combiner, [old, element], unrounded=True))
            loop.next = flatten(following)
        return unflatten(loop.results, initial)
