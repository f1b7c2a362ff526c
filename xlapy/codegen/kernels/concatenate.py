"""Concatenation: each operand is copied, or computed, into its own stretches of the result.

In memory the result is a number of rows (the dimensions before the joined one), each with one stretch per operand. No
lane ever asks which operand it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.loop import follows_row_major_numbers, widest_lanes
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

SHARE = 8192  # elements of a stretch in one unit of work, where rows are few


class ConcatenatePlan(Record):
    """`stretches` are the elements that each operand has in a row. A unit is `share` elements of a row."""

    concatenate: Instruction
    rows: int
    stretches: tuple[int, ...]
    share: int
    shares: int  # per row
    lanes: int
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
    lanes = min(widest_lanes(between(operands, is_input), target), 1 << (shortest.bit_length() - 1))
    row = sum(stretches)
    shares = -(-row // SHARE)
    units = rows * shares
    total = operand_bytes + shape.bytes
    return ConcatenatePlan(concatenate, rows, stretches, SHARE, shares, lanes, units, total // units)


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
                _copy(k, plan, arrays, operand, k.mul(row, stretch), target, output, (low, high))
            start += stretch


def _copy(
    k: KernelBuilder,
    plan: ConcatenatePlan,
    arrays: Mapping[Instruction, Array],
    operand: Instruction,
    source: Value,
    target: Value,
    output: Array,
    extent: Sequence[Value],
) -> None:
    """Elements [low, high) of one stretch, from element number `source` on, to `target` on."""

    def step(ix: Indexing, position: Value) -> None:
        place = Index(operand.shape.dims, None, ix.along_lanes(k.add(source, position)))
        value = ElementGraph(ix, arrays).values([(operand, place)])[0]
        output.store(ix, Index(output.shape.dims, None, ix.along_lanes(k.add(target, position))), value)

    low, high = extent
    with k.if_(k.compare("lt", low, high)):
        strip(k, low, high, plan.lanes, step, overlapping=True)
