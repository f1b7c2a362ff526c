"""Concatenation: each operand is copied, or computed, into its own stretches of the result.

In memory the result is a number of rows (the dimensions before the joined one), each with one stretch per operand. No
lane ever asks which operand it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Protocol

from xlapy.codegen.arrays import Array, Placement
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.loop import (
    LEAST_COMPUTED,
    LEAST_MOVED,
    follows_row_major_numbers,
    is_streamed,
    power_of_two_below,
    widest_lanes,
)
from xlapy.codegen.kernels.strip import LEAST_VECTORS, PastCaches, strip
from xlapy.codegen.registers import Element
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.support.records import Record

SHARE = 8192  # elements of a stretch in one unit of work, where rows are few
LONG_STRETCH = 512  # elements behind which it does not matter that their number is read from a table


class ConcatenatePlan(Record):
    """`stretches` are the elements that each operand has in a row. A unit is `share` elements of a row. `streaming`
    results are too large to stay in cache until somebody reads them."""

    concatenate: Instruction
    rows: int
    stretches: tuple[int, ...]
    share: int
    shares: int  # per row
    lanes: int
    streaming: bool
    units: int
    bytes_per_unit: int


def plan_concatenate(
    concatenate: Instruction, is_input: Callable[[Instruction], bool], operand_bytes: int, target: Target
) -> ConcatenatePlan | None:
    """How to join; None if some operand is not computed element by element in row-major order."""
    shape = concatenate.shape
    dimension: int = concatenate.attributes["dimension"]
    operands = [operand for operand in concatenate.operands if operand.shape.size]
    if not operands or not (shape.layout is None or shape.layout.is_row_major):
        return None
    for operand in operands:
        inside = between([operand], is_input)
        if not all(follows_row_major_numbers(i, operand.shape.size, is_input(i)) for i in inside):
            return None
    rows = math.prod(shape.dims[:dimension])
    stretches = tuple(math.prod(operand.shape.dims[dimension:]) for operand in concatenate.operands)
    shortest = min(stretch for stretch in stretches if stretch)
    least = LEAST_MOVED if all(map(is_input, operands)) else LEAST_COMPUTED
    widest = widest_lanes(between(operands, is_input), target, least_bits=least)
    lanes = min(widest, power_of_two_below(shortest))
    row = sum(stretches)
    shares = -(-row // SHARE)
    units = rows * shares
    streaming = shortest >= LEAST_VECTORS * lanes and is_streamed([concatenate], lanes, target)
    total = operand_bytes + shape.bytes
    return ConcatenatePlan(concatenate, rows, stretches, SHARE, shares, lanes, streaming, units, total // units)


def emit_concatenate(
    k: KernelBuilder,
    plan: ConcatenatePlan,
    arrays: Mapping[Instruction, Array],
    output: Array,
    begin: Value,
    end: Value,
) -> None:
    """Writes units [begin, end)."""
    row_length = sum(plan.stretches)
    past_caches = PastCaches.of(k, output, plan.lanes) if plan.streaming else None
    parts: _Parts = _EqualParts(k, plan, arrays) if _are_equal(plan, arrays) else _OwnParts(k, plan, arrays)
    with k.loop(begin, end) as units:
        row = k.udiv(units.index, plan.shares) if plan.rows > 1 else k.const(I64, 0)
        share = k.sub(units.index, k.mul(row, plan.shares))
        first = k.mul(share, plan.share)
        last = k.smin(k.add(first, plan.share), row_length)
        for part in parts.of_row(row):
            low = k.smax(k.sub(first, part.start), 0)
            high = k.smin(k.sub(last, part.start), part.stretch)
            target = k.add(k.mul(row, row_length), part.start)
            _copy(k, plan, part, target, output, (low, high), past_caches)
    if plan.streaming:
        k.fence()


def _are_equal(plan: ConcatenatePlan, arrays: Mapping[Instruction, Array]) -> bool:
    """Whether all parts are read from memory, and so long, in so much work, that one code is as fast as several."""
    in_memory = all(operand in arrays for operand in plan.concatenate.operands)
    return in_memory and plan.units > 1 and all(not 0 < stretch < LONG_STRETCH for stretch in plan.stretches)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one operand has in a row: `stretch` elements from element `start` of the row on. `value` gives them at
    positions counted from there."""

    start: Operand
    stretch: Operand
    value: Callable[[Indexing, Value], Element]


class _Parts(Protocol):
    """What rows are made of."""

    def of_row(self, row: Value) -> Iterator[_Part]:
        """All parts of a row, in order, each to be written where it is given."""


@dataclass(frozen=True, slots=True)
class _OwnParts:
    """Parts with code of their own, because they are computed."""

    k: KernelBuilder
    plan: ConcatenatePlan
    arrays: Mapping[Instruction, Array]

    def of_row(self, row: Value) -> Iterator[_Part]:
        start = 0
        for operand, stretch in zip(self.plan.concatenate.operands, self.plan.stretches, strict=True):
            if stretch:
                yield _Part(start, stretch, partial(self._value, operand, self.k.mul(row, stretch)))
            start += stretch

    def _value(self, operand: Instruction, begin: Value, ix: Indexing, position: Value) -> Element:
        place = Index(operand.shape.dims, None, ix.along_lanes(self.k.add(begin, position)))
        return ElementGraph(ix, self.arrays).values([(operand, place)])[0]


class _EqualParts:
    """Parts that are read from memory, all by the same code, which takes LLVM as long for many as for one."""

    def __init__(self, k: KernelBuilder, plan: ConcatenatePlan, arrays: Mapping[Instruction, Array]) -> None:
        self._k = k
        self._arrays = [arrays[operand] for operand in plan.concatenate.operands if operand.shape.size]
        stretches = [stretch for stretch in plan.stretches if stretch]
        self._stretches = k.table(I64, stretches)
        self._starts = k.table(I64, [0, *accumulate(stretches[:-1])])
        self._pointers = k.alloca(PTR, len(self._arrays))
        for number, array in enumerate(self._arrays):
            k.store(k.gep(self._pointers, number, PTR.bytes), array.pointer)

    def of_row(self, row: Value) -> Iterator[_Part]:
        k, dims, size = self._k, self._arrays[0].shape.dims, self._arrays[0].shape.type.bytes
        with k.loop(0, len(self._arrays)) as parts:
            start, stretch = (k.load(k.gep(t, parts.index, I64.bytes), I64) for t in (self._starts, self._stretches))
            pointer = k.gep(k.load(k.gep(self._pointers, parts.index, PTR.bytes), PTR), k.mul(row, stretch), size)
            array = replace(self._arrays[0], pointer=pointer, ahead=max(array.ahead for array in self._arrays))
            yield _Part(start, stretch, lambda ix, place: array.load(ix, Index(dims, None, ix.along_lanes(place))))


def _copy(
    k: KernelBuilder,
    plan: ConcatenatePlan,
    part: _Part,
    target: Value,
    output: Array,
    extent: Sequence[Value],
    past_caches: PastCaches | None,
) -> None:
    """Elements [low, high) of one part, to element number `target` of the result and on; a whole vector of them at the
    least, if some at all: what follows is the same whoever writes it."""
    begin = replace(output, pointer=k.gep(output.pointer, target, output.shape.type.bytes))

    def step(ix: Indexing, position: Value, placement: Placement | None) -> None:
        goal = Index(output.shape.dims, None, ix.along_lanes(position))
        replace(begin, placement=placement).store(ix, goal, part.value(ix, position))

    low, high = extent
    with k.if_(k.compare("lt", low, high)):
        high = k.smax(high, plan.lanes)
        if past_caches is not None:
            past_caches.strip(target, low, high, step, pitch=sum(plan.stretches))
        else:
            strip(k, low, high, plan.lanes, lambda ix, position: step(ix, position, None), overlapping=True)
