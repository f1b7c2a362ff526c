"""Sorts by comparators of a program's own: the positions in each row are merged in scratch memory, then the elements of
all operands go there. Rows may lie at any stride.

Keys that are recognised are sorted by libraries (`libraries.sort`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I8, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.sort_algorithms import emit_merge_sort
from xlapy.codegen.kernels.sort_records import Column, Records
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.graph import Computation
from xlapy.hlo.sort_plan import ALIGNMENT, Payload, SortPlan, fits_stack
from xlapy_runtime.records import Record


class _Row(Record):
    """One row of all operands and results, and the memory for its records."""

    base: Value
    inputs: Sequence[Column]
    results: Sequence[Column]
    memory: Value


def emit_sort(
    k: KernelBuilder,
    comparator: Computation,
    plan: SortPlan,
    arrays: Sequence[Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """Sorts the rows of units [begin, end). Each unit has its own part of the scratch memory."""
    stack = k.alloca(I8, plan.scratch_bytes, align=ALIGNMENT) if fits_stack(plan) else None
    with k.loop(begin, end) as units:
        memory = stack if stack is not None else k.gep(k.parameters["shared"], units.index, plan.scratch_bytes)
        first = k.udiv(k.mul(units.index, plan.rows), plan.units)
        last = k.udiv(k.mul(k.add(units.index, 1), plan.rows), plan.units)
        with k.loop(first, last) as rows:
            row = _row(k, plan, arrays, outputs, rows.index, memory)
            _sort_positions(k, plan, comparator, arrays, row)


def _row(
    k: KernelBuilder, plan: SortPlan, arrays: Sequence[Array], outputs: Sequence[Array], number: Value, memory: Value
) -> _Row:
    """The row of that number."""
    group = k.udiv(number, plan.stride)
    inner = k.sub(number, k.mul(group, plan.stride))
    base = k.add(k.mul(group, plan.stride * plan.length), inner)
    return _Row(
        base,
        [Column(array.pointer, array.shape.type.bytes, base, plan.stride) for array in arrays],
        [Column(array.pointer, array.shape.type.bytes, base, plan.stride) for array in outputs],
        memory,
    )


def _sort_positions(
    k: KernelBuilder, plan: SortPlan, comparator: Computation, arrays: Sequence[Array], row: _Row
) -> None:
    records = Records(I32, Payload.NOTHING)
    with listening_loop(k, 0, plan.length) as loop:
        records.store(k, row.memory, loop.index, k.trunc(loop.index, I32))

    def element(array: Array, record: Value) -> Element:
        number = k.add(row.base, k.mul(k.zext(record, I64), plan.stride))
        return array.load(Indexing(k, 1), Index(array.shape.dims, None, Coordinate(number)))

    def less(left: Value, right: Value) -> Value:
        arguments = [element(array, record) for array in arrays for record in (left, right)]
        (result,) = emit_region(k, comparator, arguments)
        assert isinstance(result, Value)
        return result

    second = k.gep(row.memory, plan.length * plan.record_bytes)
    memory = emit_merge_sort(k, records, row.memory, second, plan.length, less)
    with listening_loop(k, 0, plan.kept) as loop:
        position = k.zext(records.load(k, memory, loop.index), I64)
        for source, result in zip(row.inputs, row.results, strict=True):
            result.store(k, loop.index, source.load(k, position))
