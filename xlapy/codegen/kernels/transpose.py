"""Transposes that change the fastest dimension, by square blocks.

Reading along one dimension and writing along the other touches a new cache line per element on one side. So R x R
blocks are read by rows, turned over in registers and written by rows; and they are walked within larger squares, so
that the lines of both sides are still in cache when the next block needs their other half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import IRType, KernelBuilder, Value
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.registers import memory_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction

SQUARE_BYTES = 256  # side of the larger squares: four lines of each row, and rows enough to use them up
MOST_LANES = 16


@dataclass(frozen=True, slots=True)
class TransposePlan:
    """Which dimensions are turned over. `fast` and `slow` are dimensions of the operand: its own fastest and the one
    that becomes the fastest of the result. `lanes` is the side of a block, `square` that of the larger squares."""

    transpose: Instruction
    fast: int
    slow: int
    lanes: int
    square: int
    rows_of_squares: int
    units: int
    bytes_per_unit: int


def plan_transpose(transpose: Instruction, target: Target) -> TransposePlan | None:
    """How to run a transpose by blocks; None if it keeps its fastest dimension, or a side is shorter than a block."""
    operand = transpose.operands[0].shape
    permutation: tuple[int, ...] = transpose.attributes["permutation"]
    row_major = all(shape.layout is None or shape.layout.is_row_major for shape in (operand, transpose.shape))
    wide = [dim for dim in range(operand.rank) if operand.dims[dim] > 1]
    if not row_major or len(wide) < 2 or operand.type.is_complex:
        return None
    fast = wide[-1]
    slow = [dim for dim in permutation if operand.dims[dim] > 1][-1]
    width = memory_type(operand.type).bytes
    lanes = min(target.vector_bytes // width, MOST_LANES)
    if fast == slow or min(operand.dims[fast], operand.dims[slow]) < lanes:
        return None
    square = max(lanes, SQUARE_BYTES // width)
    rows_of_squares = -(-operand.dims[fast] // square)
    outer = math.prod(size for dim, size in enumerate(operand.dims) if dim not in (fast, slow))
    units = outer * rows_of_squares
    return TransposePlan(transpose, fast, slow, lanes, square, rows_of_squares, units, 2 * operand.bytes // units)


def emit_transpose(
    k: KernelBuilder, plan: TransposePlan, source: Array, result: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end): strips of the result, `square` wide in the operand's fastest dimension."""
    ix = Indexing(k, 1)
    dims = source.shape.dims
    outer = [dim for dim in range(len(dims)) if dim not in (plan.fast, plan.slow)]
    permutation: tuple[int, ...] = plan.transpose.attributes["permutation"]
    source_strides = source.shape.strides()
    result_strides = [result.shape.strides()[permutation.index(dim)] for dim in range(len(dims))]
    width = memory_type(source.shape.type).bytes
    block = memory_type(source.shape.type, plan.lanes)
    with k.loop(begin, end) as units:
        position, strip = ix.divide(Coordinate(units.index), plan.rows_of_squares)
        places = ix.delinearize(position, [dims[dim] for dim in outer])
        bases = [
            ix.linearize(places, [strides[dim] for dim in outer]).start for strides in (source_strides, result_strides)
        ]
        assert strip.start is not None and bases[0] is not None and bases[1] is not None
        first = k.mul(strip.start, plan.square)
        last = k.smin(k.add(first, plan.square), dims[plan.fast])
        with k.loop(0, dims[plan.slow], plan.square) as across:
            edge = k.smin(k.add(across.index, plan.square), dims[plan.slow])
            with k.loop(first, last, plan.lanes) as columns:
                column = k.smin(columns.index, dims[plan.fast] - plan.lanes)
                with k.loop(across.index, edge, plan.lanes) as rows:
                    row = k.smin(rows.index, dims[plan.slow] - plan.lanes)
                    _turn_block(
                        k,
                        block,
                        _place(k, source.pointer, bases[0], row, source_strides[plan.slow], column, width),
                        source_strides[plan.slow] * width,
                        _place(k, result.pointer, bases[1], column, result_strides[plan.fast], row, width),
                        result_strides[plan.fast] * width,
                    )


def _place(
    k: KernelBuilder, pointer: Value, base: Value, line: Value, line_stride: int, position: Value, width: int
) -> Value:
    return k.gep(pointer, k.add(base, k.add(k.mul(line, line_stride), position)), width)


def _turn_block(
    k: KernelBuilder, block: IRType, source: Value, source_stride: int, target: Value, target_stride: int
) -> None:
    """Reads as many lines as they are long, and writes them as columns."""
    lines = [k.load(k.gep(source, line * source_stride), block) for line in range(block.lanes)]
    for line, column in enumerate(transposed(k, lines)):
        k.store(k.gep(target, line * target_stride), column)
