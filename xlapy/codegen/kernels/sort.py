"""Sort kernels: each row becomes records in scratch memory, is sorted there, and comes back as rows of the results.

Rows may lie at any stride. Long rows of recognised keys are sorted by digits, others by merging; what the comparator says
of other operands is asked element by element, by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I8, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.sort_algorithms import Histograms, emit_lower_bound, emit_merge_sort, emit_radix_sort
from xlapy.codegen.kernels.sort_records import Column, KeyCode, Records, word_type
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.sort_plan import ALIGNMENT, Payload, SortKey, SortPlan, fits_stack

RADIX_LENGTH_PER_BYTE = 16  # rows that are shorter are merged faster than counted


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of all operands and results, and the memory for its records."""

    base: Value
    inputs: Sequence[Column]
    results: Sequence[Column]
    first: Value
    second: Value


def emit_sort(
    k: KernelBuilder,
    instruction: Instruction,
    plan: SortPlan,
    arrays: Sequence[Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """Sorts the rows of units [begin, end). Each unit has its own part of the scratch memory."""
    stack = k.alloca(I8, plan.scratch_bytes, align=ALIGNMENT) if fits_stack(plan) else None
    with k.loop(begin, end) as units:
        memory = stack if stack is not None else k.gep(k.parameters["scratch"], units.index, plan.scratch_bytes)
        first_row = k.udiv(k.mul(units.index, plan.rows), plan.units)
        last_row = k.udiv(k.mul(k.add(units.index, 1), plan.rows), plan.units)
        with k.loop(first_row, last_row) as rows:
            row = _row(k, plan, arrays, outputs, rows.index, memory)
            if plan.key is None:
                _sort_positions(k, plan, instruction.called[0], arrays, row)
            else:
                _sort_keys(k, instruction, plan, plan.key, row)


def _row(
    k: KernelBuilder, plan: SortPlan, arrays: Sequence[Array], outputs: Sequence[Array], number: Value, memory: Value
) -> _Row:
    group = k.udiv(number, plan.stride)
    inner = k.sub(number, k.mul(group, plan.stride))
    base = k.add(k.mul(group, plan.stride * plan.length), inner)
    kept = k.add(k.mul(group, plan.stride * plan.kept), inner)
    return _Row(
        base,
        [Column(array.pointer, array.shape.type.bytes, base, plan.stride) for array in arrays],
        [Column(array.pointer, array.shape.type.bytes, kept, plan.stride) for array in outputs],
        memory,
        k.gep(memory, plan.length * plan.record_bytes),
    )


# -- recognised keys ---------------------------------------------------------------------------------------------------


def _sort_keys(k: KernelBuilder, instruction: Instruction, plan: SortPlan, key: SortKey, row: _Row) -> None:
    code = KeyCode(instruction.operands[key.operand].shape.type, key)
    pair = plan.record_bytes == 2 * I64.bytes
    type = code.type if plan.payload is Payload.NOTHING else I64.with_lanes(2 if pair else 1)
    records = Records(type, plan.payload)
    is_long = plan.length >= RADIX_LENGTH_PER_BYTE * code.type.bytes
    histograms = Histograms.zeroed(k, code.type.bytes) if is_long else None
    has_merged = _encode(k, plan, code, records, row, histograms)
    if histograms is not None:
        memory = emit_radix_sort(k, records, row.first, row.second, plan.length, histograms)
    else:
        memory = emit_merge_sort(
            k, records, row.first, row.second, plan.length, lambda left, right: records.less(k, left, right)
        )
    if plan.payload is Payload.POSITION and instruction.opcode == "sort":
        with k.loop(0, plan.kept) as loop:
            _place(k, row, loop.index, records.payload_of(k, records.load(k, memory, loop.index)))
        return
    _decode(k, plan, code, records, row, memory)
    if has_merged is not None:
        with k.if_(has_merged):
            for merged in code.merged(k):
                _restore_merged(k, plan, code, records, row, memory, merged)


def _encode(
    k: KernelBuilder, plan: SortPlan, code: KeyCode, records: Records, row: _Row, histograms: Histograms | None
) -> Value | None:
    """Writes the records of a row; returns whether a key does not tell its element, where that can happen."""
    source = row.inputs[code.key.operand]
    can_merge = (code.key.merges_zeros or code.key.merges_nans) and plan.payload is not Payload.POSITION
    with k.loop(0, plan.length, carry=[k.const(I1, 0)]) as loop:
        word = source.load(k, loop.index)
        canonical = code.canonical(k, word)
        key = k.zext(code.encode(k, canonical), I64)
        payload = None
        if plan.payload is Payload.POSITION:
            payload = loop.index
        elif plan.payload is Payload.ELEMENT:
            payload = k.zext(row.inputs[1 - code.key.operand].load(k, loop.index), I64)
        records.store(k, row.first, loop.index, records.pack(k, key, payload))
        if histograms is not None:
            histograms.count(k, key)
        if can_merge:
            loop.next = [k.or_(loop.values[0], k.compare("ne", word, canonical))]
    return loop.results[0] if can_merge else None


def _decode(k: KernelBuilder, plan: SortPlan, code: KeyCode, records: Records, row: _Row, memory: Value) -> None:
    """Writes the results from sorted records."""
    with k.loop(0, plan.kept) as loop:
        record = records.load(k, memory, loop.index)
        key = k.trunc(records.key(k, record), code.type)
        row.results[code.key.operand].store(k, loop.index, code.decode(k, key))
        if plan.payload is not Payload.NOTHING:
            other = row.results[1 - code.key.operand]
            other.store(k, loop.index, k.trunc(records.payload_of(k, record), word_type(other.element_bytes)))


def _restore_merged(
    k: KernelBuilder, plan: SortPlan, code: KeyCode, records: Records, row: _Row, memory: Value, merged: Value
) -> None:
    """Gives the elements with the key `merged` their own bits back: they are in the order of the row."""
    source, result = row.inputs[code.key.operand], row.results[code.key.operand]
    start = emit_lower_bound(k, records, memory, plan.length, k.zext(merged, I64))
    with k.loop(0, plan.length, carry=[start]) as loop:
        word = source.load(k, loop.index)
        is_member = k.compare("eq", code.encode(k, code.canonical(k, word)), merged)
        with k.if_(is_member):
            result.store(k, loop.values[0], word)
        loop.next = [k.add(loop.values[0], k.zext(is_member, I64))]


def _place(k: KernelBuilder, row: _Row, number: Value, position: Value) -> None:
    """Element `number` of all results is the one at `position` of the operands."""
    for source, result in zip(row.inputs, row.results, strict=True):
        result.store(k, number, source.load(k, position))


# -- other comparators -------------------------------------------------------------------------------------------------


def _sort_positions(
    k: KernelBuilder, plan: SortPlan, comparator: Computation, arrays: Sequence[Array], row: _Row
) -> None:
    records = Records(I32, Payload.NOTHING)
    with k.loop(0, plan.length) as loop:
        records.store(k, row.first, loop.index, k.trunc(loop.index, I32))

    def element(array: Array, record: Value) -> Element:
        number = k.add(row.base, k.mul(k.zext(record, I64), plan.stride))
        return array.load(Indexing(k, 1), Index(array.shape.dims, None, Coordinate(number)))

    def less(left: Value, right: Value) -> Value:
        arguments = [element(array, record) for array in arrays for record in (left, right)]
        (result,) = emit_region(k, comparator, arguments)
        assert isinstance(result, Value)
        return result

    memory = emit_merge_sort(k, records, row.first, row.second, plan.length, less)
    with k.loop(0, plan.kept) as loop:
        _place(k, row, loop.index, records.key(k, records.load(k, memory, loop.index)))
