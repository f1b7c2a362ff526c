"""Loops that make a permutation of pivots: an lu has it already.

    f = (..., s32[9,4], s32[9,4]) lu(a)
    w = while((0, pivots of f, iota)),              becomes        permutation of f
      body={ exchange elements i and pivots[i] of each row }

What JAX makes of the pivots of LAPACK is such a loop, of a few steps that have hardly anything to do. Small ones would
be unrolled; before, laws have brought all of them to one form: what is at i, and what is where pivot i says, are
written to each other's places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.attributes import ComparisonDirection, GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import loop_counter, state_index
from xlapy.hlo.patterns import number_of
from xlapy.passes.base import ComputationPass, Record, pinned

PIVOTS, PERMUTATION = 1, 2
"""Of the results of an lu."""


@dataclass
class ExchangesOfPivots(ComputationPass):
    name: ClassVar[str] = "exchanges-of-pivots"
    ops: ClassVar[Set[str]] = frozenset({"lu"})

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode == "while" and instruction not in fixed:
                changed = self._replace(instruction) or changed
        return changed

    def _replace(self, loop: Instruction) -> bool:
        """What a loop makes of the pivots is read from the lu; the rest of the loop, if any, stays."""
        init = loop.operands[0]
        orders = [] if init.opcode != "tuple" else [i for i, value in enumerate(init.operands) if _counts_rows(value)]
        for index in orders:
            factors = _source_of_exchanges(loop, index)
            results = [user for user in loop.users if _is_part(user, index) and (user.users or user.is_root)]
            if factors is None or not results:
                continue
            self.records.append(Record.of(loop, True, f"makes the permutation that {factors.name} has"))
            found = loop.parent.add("get-tuple-element", [factors], index=PERMUTATION, metadata=loop.metadata)
            for result in results:
                loop.parent.replace(result, found)
            return True
        return False


def _is_part(value: Instruction, index: int) -> bool:
    return value.opcode == "get-tuple-element" and value.attributes["index"] == index


def _counts_rows(value: Instruction) -> bool:
    return value.opcode == "iota" and value.attributes["dimension"] == value.shape.rank - 1


def _source_of_exchanges(loop: Instruction, index: int) -> Instruction | None:
    """The lu whose pivots say what the loop exchanges in element `index` of its state, all of it and nothing else."""
    counter, body = loop_counter(loop), loop.called[1]
    if counter is None or counter.first != 0 or counter.step != 1 or body.root.opcode != "tuple":
        return None
    step = _Step(body, index, counter.index)
    pivots = step.pivots()
    if pivots is None or state_index(body.root.operands[pivots], body) != pivots:
        return None
    source = loop.operands[0].operands[pivots]
    if not _is_part(source, PIVOTS) or source.operands[0].opcode != "lu":
        return None
    (factors,) = source.operands
    is_whole = counter.trips == source.shape.dims[-1] and step.shape == factors.shape.parts[PERMUTATION]
    return factors if is_whole else None


class _Step:
    """The body of a loop, which may exchange elements of each row of element `index` of its state."""

    def __init__(self, body: Computation, index: int, counter: int) -> None:
        self._body = body
        self._index = index
        self._counter = counter
        self.shape = body.root.operands[index].shape

    def pivots(self) -> int | None:
        """The element of the state in which the places are that element i is exchanged with in step i."""
        scatter = self._body.root.operands[self._index]
        if scatter.opcode != "scatter" or len(scatter.operands) != 3 or not _sets_one_in_each_row(scatter):
            return None
        update, place, former = scatter.operands
        if update.opcode != "dynamic-update-slice" or not self._is_state(update.operands[0], self._index):
            return None
        _, other, *starts = update.operands
        if not self._is_here(starts) or other.shape.size != former.shape.size:
            return None
        pivots, read = self._pivot(place), self._place_that_is_read(other)
        is_exchange = pivots is not None and read is not None and self._pivot(read) == pivots
        return pivots if is_exchange and self._element(former) == self._index else None

    def _is_state(self, value: Instruction, index: int) -> bool:
        return state_index(value, self._body) == index

    def _is_here(self, starts: Sequence[Instruction]) -> bool:
        """The first place of each row that the counter says."""
        *outer, last = starts
        if last.opcode == "convert" and last.shape.type.holds(0, self.shape.dims[-1]):
            (last,) = last.operands
        return all(number_of(start) == 0 for start in outer) and self._is_state(last, self._counter)

    def _element(self, value: Instruction) -> int | None:
        """The element of the state of which `value` is element i of each row."""
        value = _plain(value)
        if value.opcode != "dynamic-slice" or not self._is_here(value.operands[1:]):
            return None
        is_column = value.shape.dims == (*value.operands[0].shape.dims[:-1], 1)
        return state_index(value.operands[0], self._body) if is_column else None

    def _pivot(self, value: Instruction) -> int | None:
        """The same of a place, which may be another one where it is negative: no pivot is."""
        value = _plain(value)
        if value.opcode == "select" and _is_negative(value.operands[0], value.operands[2]):
            value = value.operands[2]
        return self._element(value)

    def _place_that_is_read(self, value: Instruction) -> Instruction | None:
        """Where `value` is in each row of the permutation."""
        value = _plain(value)
        if not value.operands or not self._is_state(value.operands[0], self._index):
            return None
        if value.opcode == "gather":
            return value.operands[1] if _reads_one_of_each_row(value) else None
        is_vector = value.opcode == "dynamic-slice" and value.operands[0].shape.rank == 1 and value.shape.size == 1
        return value.operands[1] if is_vector else None


def _plain(value: Instruction) -> Instruction:
    """What has the same elements in the same order, under other dimensions."""
    while value.opcode == "reshape" or (value.opcode == "broadcast" and _adds_only_ones(value)):
        value = value.operands[0]
    return value


def _adds_only_ones(broadcast: Instruction) -> bool:
    dimensions = broadcast.attributes["dimensions"]
    return broadcast.operands[0].shape.size == broadcast.shape.size and list(dimensions) == sorted(dimensions)


def _is_negative(condition: Instruction, value: Instruction) -> bool:
    """The condition is that `value` is negative."""
    if condition.opcode != "compare" or condition.attributes["direction"] is not ComparisonDirection.LT:
        return False
    return condition.operands[0] is value and number_of(condition.operands[1]) == 0


def _reads_one_of_each_row(gather: Instruction) -> bool:
    numbers: GatherDimensionNumbers = gather.attributes["dimension_numbers"]
    operand, indices = gather.operands
    outer = tuple(range(operand.shape.rank - 1))
    by_row = numbers.operand_batching_dims == outer and numbers.start_indices_batching_dims == outer
    is_along_rows = numbers.start_index_map == (len(outer),)
    is_one = set(gather.attributes["slice_sizes"]) == {1}
    return by_row and is_along_rows and is_one and indices.shape.size == gather.shape.size


def _sets_one_in_each_row(scatter: Instruction) -> bool:
    numbers: ScatterDimensionNumbers = scatter.attributes["dimension_numbers"]
    operand, indices, updates = scatter.operands
    outer = tuple(range(operand.shape.rank - 1))
    by_row = numbers.input_batching_dims == outer and numbers.scatter_indices_batching_dims == outer
    is_along_rows = numbers.scatter_dims_to_operand_dims == (len(outer),)
    is_one = updates.shape.size == indices.shape.size == math.prod(operand.shape.dims[:-1])
    region = scatter.called[0]
    return by_row and is_along_rows and is_one and region.root is region.parameters[1]
