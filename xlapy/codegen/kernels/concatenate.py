"""Concatenation: each operand is copied, or computed, into its own stretches of the result.

In memory the result is a number of rows (the dimensions before the joined one), each with one stretch per operand. No
lane ever asks which operand it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array, Placement
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.loop import (
    LEAST_COMPUTED,
    LEAST_MOVED,
    follows_row_major_numbers,
    is_streamed,
    power_of_two_below,
    widest_lanes,
)
from xlapy.codegen.kernels.strip import LEAST_VECTORS, PastCaches, strip
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.support.records import Record

SHARE = 8192  # elements of a stretch in one unit of work, where rows are few


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
    with k.loop(begin, end) as units:
        row = k.udiv(units.index, plan.shares)
        share = k.sub(units.index, k.mul(row, plan.shares))
        first = k.mul(share, plan.share)
        last = k.smin(k.add(first, plan.share), row_length)
        start = 0
        for operand, stretch in zip(plan.concatenate.operands, plan.stretches, strict=True):
            if stretch:
                low = k.smax(k.sub(first, start), 0)
                high = k.smin(k.sub(last, start), stretch)
                target = k.add(k.mul(row, row_length), start)
                _copy(k, plan, arrays, operand, k.mul(row, stretch), target, output, (low, high), past_caches)
            start += stretch
    if plan.streaming:
        k.fence()


def _copy(
    k: KernelBuilder,
    plan: ConcatenatePlan,
    arrays: Mapping[Instruction, Array],
    operand: Instruction,
    source: Value,
    target: Value,
    output: Array,
    extent: Sequence[Value],
    past_caches: PastCaches | None,
) -> None:
    """Elements [low, high) of one stretch, from element number `source` on, to `target` on; a whole vector of them at
    the least, if some at all: what follows is the same whoever writes it."""

    def step(ix: Indexing, position: Value, placement: Placement | None) -> None:
        place = Index(operand.shape.dims, None, ix.along_lanes(k.add(source, position)))
        value = ElementGraph(ix, arrays).values([(operand, place)])[0]
        goal = Index(output.shape.dims, None, ix.along_lanes(k.add(target, position)))
        replace(output, placement=placement).store(ix, goal, value)

    low, high = extent
    with k.if_(k.compare("lt", low, high)):
        high = k.smax(high, plan.lanes)
        if past_caches is not None:
            past_caches.strip(target, low, high, step, pitch=sum(plan.stretches))
        else:
            strip(k, low, high, plan.lanes, lambda ix, position: step(ix, position, None), overlapping=True)
