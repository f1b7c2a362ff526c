"""Folds of columns: a block of neighbouring ones at a time, a lane for each, in the order of the elements.

How wide a block is, is part of a function's name: its results stay in registers. What is in memory is folded by wider
blocks (`fold_wide`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I64, Module, Value
from xlapy.codegen.kernels.reduce import ACCUMULATORS, WIDE_ACCUMULATORS
from xlapy.codegen.libraries.fold_lines import LinesOfRow, may_read_lines, pays_in_columns
from xlapy.codegen.libraries.fold_maps import ITSELF
from xlapy.codegen.libraries.fold_problem import FoldKind, FoldProblem, fold_function
from xlapy.codegen.libraries.fold_wide import WideBlocks
from xlapy.codegen.registers import Element, flatten, memory_type, splat, unflatten
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction

COLUMNS = "columns"
WIDTHS = (*WIDE_ACCUMULATORS, ACCUMULATORS)
"""Vectors in a block."""

MOST_BY_LINES = 8
"""Vectors in a block whose registers leave room for those that are picked out of lines."""


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
            near = partial(_emit_near, blocks, problem, by_lines=_may_read_lines(kind, target, vectors))
            problem.k.if_else(is_fetched, partial(blocks.emit, fetches=True), near)
    with fold_function(module, wide_name(kind), kind, target) as problem:
        lanes = kind.lanes_of_memory(target)
        WideBlocks(problem, kind.combiner(), lanes, asks_ahead=target.asks_ahead).emit()
    return module


def _may_read_lines(kind: FoldKind, target: Target, vectors: int) -> bool:
    """Whether blocks of so many vectors may be read line by line. Extrema take longer to compute than to read."""
    is_light = kind.opcode in ("add", "multiply") and not kind.map.hides_latency
    return is_light and vectors <= MOST_BY_LINES and may_read_lines(kind.type, target)


def _emit_near(blocks: _Blocks, problem: FoldProblem, *, by_lines: bool) -> None:
    """The loop over blocks of what a near cache holds."""
    k = problem.k
    if by_lines:
        pays = pays_in_columns(k, problem.inputs(), problem["columns"])
        k.if_else(pays, partial(blocks.emit, by_lines=True), blocks.emit)
    else:
        blocks.emit()


class _Blocks:
    """The loop over blocks of columns."""

    def __init__(self, problem: FoldProblem, combiner: Instruction, lanes: int, vectors: int) -> None:
        self._problem = problem
        self._combiner = combiner
        self._ix = Indexing(problem.k, lanes)
        self._vectors = vectors

    def emit(self, *, fetches: bool = False, by_lines: bool = False) -> None:
        """Writes the loop. The last block of a group overlaps the one before it. Rows that do not begin with a line may
        be read line by line (`fold_lines`)."""
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
            fold = self._folded_by_lines if by_lines else partial(self._folded, fetches=fetches)
            results = fold(first, initial, each)
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

    def _folded_by_lines(
        self, first: Value, initial: Sequence[Element], each: Sequence[Sequence[Element]]
    ) -> list[Element]:
        problem, k, lanes = self._problem, self._problem.k, self._ix.lanes
        element_bytes = memory_type(problem.kind.type).bytes
        rows = [replace(array, pointer=k.gep(array.pointer, first, element_bytes)) for array in problem.inputs()]
        begin = [LinesOfRow.of(k, row) for row in rows]
        with k.loop(0, problem["length"], carry=flatten(initial), runs=True) as loop:
            distance = k.mul(k.mul(loop.index, problem["columns"]), element_bytes)
            lines = [row.behind(k, distance) for row in begin]
            last, following = [row.first(k) for row in lines], []
            for number, old in enumerate(unflatten(loop.values, initial)):
                start = k.const(I64, number * lanes)
                loaded = [row.load(k, line, start, lanes) for row, line in zip(lines, last, strict=True)]
                last = [line for _, line in loaded]
                element = problem.made(lanes, [element for element, _ in loaded], each[number])
                following.append(emit_element(k, self._combiner, [old, element], unrounded=True))
            loop.next = flatten(following)
        return unflatten(loop.results, initial)
