"""Sort kernels: each row becomes records in scratch memory, is sorted there, and comes back as rows of the results.

Rows may lie at any stride. Of recognised keys, many short rows are sorted side by side, long ones by digits, others by
merging; what any other comparator says is asked element by element, by position. A few first elements of long rows are
selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I8, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.selection import emit_selection
from xlapy.codegen.kernels.sort_algorithms import Histograms, emit_merge_sort, emit_radix_sort
from xlapy.codegen.kernels.sort_network import UNROLLED_LENGTH, Lanes, sort_in_registers
from xlapy.codegen.kernels.sort_records import Column, KeyCode, Records, word_type
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.sort_plan import ALIGNMENT, Payload, SortKey, SortPlan, fits_stack

RADIX_LENGTH_PER_BYTE = 16  # rows that are shorter are merged faster than counted


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of all operands and results, and the memory for its records. Or several rows, one in each lane."""

    base: Value
    inputs: Sequence[Column]
    results: Sequence[Column]
    memory: Value


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
        memory = stack if stack is not None else k.gep(k.parameters["shared"], units.index, plan.scratch_bytes)
        first = k.udiv(k.mul(units.index, plan.groups), plan.units)
        last = k.udiv(k.mul(k.add(units.index, 1), plan.groups), plan.units)
        with k.loop(first, last) as groups:
            if plan.lanes > 1:
                number = k.smin(k.mul(groups.index, plan.lanes), plan.rows - plan.lanes)
                _sort_side_by_side(k, instruction, plan, arrays, outputs, number, memory)
            elif plan.key is not None:
                row = _row(k, plan, arrays, outputs, groups.index, memory)
                _sort_keys(k, instruction, plan, plan.key, row)
            else:
                row = _row(k, plan, arrays, outputs, groups.index, memory)
                _sort_positions(k, plan, instruction.called[0], arrays, row)


def _row(
    k: KernelBuilder, plan: SortPlan, arrays: Sequence[Array], outputs: Sequence[Array], number: Value, memory: Value
) -> _Row:
    """The row of that number, or a row for each lane."""
    group = k.udiv(number, plan.stride)
    inner = k.sub(number, k.mul(group, plan.stride))
    base = k.add(k.mul(group, plan.stride * plan.length), inner)
    kept = k.add(k.mul(group, plan.stride * plan.kept), inner)
    neighbours = plan.stride % plan.lanes == 0  # then the lanes of a group begin next to each other
    return _Row(
        base,
        [Column(array.pointer, array.shape.type.bytes, base, plan.stride, neighbours) for array in arrays],
        [Column(array.pointer, array.shape.type.bytes, kept, plan.stride, neighbours) for array in outputs],
        memory,
    )


# -- short rows side by side -------------------------------------------------------------------------------------------


def _sort_side_by_side(
    k: KernelBuilder,
    instruction: Instruction,
    plan: SortPlan,
    arrays: Sequence[Array],
    outputs: Sequence[Array],
    number: Value,
    memory: Value,
) -> None:
    """Sorts `plan.lanes` rows from `number` on."""
    assert plan.key is not None
    numbers = k.add(k.lane_numbers(I64.with_lanes(plan.lanes)), number)
    code = KeyCode(instruction.operands[plan.key.operand].shape.type, plan.key)
    records = Records((code.type if plan.payload is Payload.NOTHING else I64).with_lanes(plan.lanes), plan.payload)
    moves = plan.payload is Payload.POSITION and instruction.opcode == "sort"
    group = _Group(plan, code, records, _row(k, plan, arrays, outputs, numbers, memory), moves)
    in_registers = plan.length <= UNROLLED_LENGTH
    has_merged = group.sort_in_registers(k) if in_registers else group.sort_in_memory(k, memory)
    if code.merges and plan.payload is Payload.NOTHING:
        with k.if_(k.any_lane(has_merged)), k.loop(0, plan.lanes) as loop:
            _restore_merged(k, plan, code, _row(k, plan, arrays, outputs, k.add(number, loop.index), memory))


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that are sorted side by side. `moves`: all results are moved by position, not made from records."""

    plan: SortPlan
    code: KeyCode
    records: Records
    rows: _Row
    moves: bool

    def sort_in_registers(self, k: KernelBuilder) -> Value:
        """Sorts; returns the lanes in which a key does not tell its element."""
        positions = [k.const(I64, position) for position in range(self.plan.length)]
        has_merged = k.const(I1.with_lanes(self.plan.lanes), 0)
        encoded = []
        for position in positions:
            record, differs = self._encode(k, position, self._source.load(k, position))
            has_merged = k.or_(has_merged, differs)
            encoded.append(record)
        ordered = sort_in_registers(k, encoded)
        for position, record in zip(positions[: self.plan.kept], ordered, strict=False):
            self._finish(k, position, [record])
        return has_merged

    def sort_in_memory(self, k: KernelBuilder, memory: Value) -> Value:
        """The same, with the records in `memory`."""
        lanes = Lanes(memory, self.records.type, self.plan.length)
        block = self._block(self.plan.length, [self._source])
        with k.loop(0, self.plan.length, block, carry=[k.const(I1.with_lanes(self.plan.lanes), 0)]) as loop:
            start = k.smin(loop.index, self.plan.length - block)
            has_merged = loop.values[0]
            for offset, word in enumerate(self._source.load_block(k, start, block)):
                record, differs = self._encode(k, k.add(start, offset), word)
                lanes.store(k, k.add(start, offset), record)
                has_merged = k.or_(has_merged, differs)
            loop.next = [has_merged]
        lanes.sort(k)
        block = self._block(self.plan.kept, self.rows.results)
        with k.loop(0, self.plan.kept, block) as finished:
            start = k.smin(finished.index, self.plan.kept - block)
            self._finish(k, start, [lanes.load(k, k.add(start, offset)) for offset in range(block)])
        return loop.results[0]

    @property
    def _source(self) -> Column:
        return self.rows.inputs[self.code.key.operand]

    def _block(self, length: int, columns: Sequence[Column]) -> int:
        """How many positions to read or write at once: a square block where rows are contiguous."""
        are_words = all(column.element_bytes <= I64.bytes for column in columns)
        return self.plan.lanes if self.plan.stride == 1 and length >= self.plan.lanes and are_words else 1

    def _encode(self, k: KernelBuilder, position: Value, word: Value) -> tuple[Value, Value]:
        """The record, and whether its key does not tell the element."""
        canonical = self.code.canonical(k, word)
        payload = position if self.plan.payload is Payload.POSITION else None
        return self.records.pack(k, self.code.encode(k, canonical), payload), k.compare("ne", word, canonical)

    def _finish(self, k: KernelBuilder, start: Value, ordered: Sequence[Value]) -> None:
        """Writes the results at the positions from `start` on, of sorted records."""
        if not self.moves:
            self._finish_from_records(k, start, ordered)
            return
        positions = [self.records.payload_of(k, record) for record in ordered]
        for source, result in zip(self.rows.inputs, self.rows.results, strict=True):
            if source.element_bytes > I64.bytes:
                source.copy_double(k, positions[0], result, start)
            else:
                result.store_block(k, start, [source.load(k, position) for position in positions])

    def _finish_from_records(self, k: KernelBuilder, start: Value, ordered: Sequence[Value]) -> None:
        words = [_word_of(k, self.code, self.records, record) for record in ordered]
        self.rows.results[self.code.key.operand].store_block(k, start, words)
        if self.plan.payload is not Payload.NOTHING:
            payloads = [k.trunc(self.records.payload_of(k, record), I32) for record in ordered]
            self.rows.results[1].store_block(k, start, payloads)


# -- recognised keys ---------------------------------------------------------------------------------------------------


def _sort_keys(k: KernelBuilder, instruction: Instruction, plan: SortPlan, key: SortKey, row: _Row) -> None:
    code = KeyCode(instruction.operands[key.operand].shape.type, key)
    pair = plan.record_bytes == 2 * I64.bytes
    type = code.type if plan.payload is Payload.NOTHING else I64.with_lanes(2 if pair else 1)
    records = Records(type, plan.payload)
    if plan.candidates:
        selected = emit_selection(k, plan, code, records, row.inputs[key.operand], row.memory)
        with k.loop(0, plan.kept) as loop:
            _decode_one(k, code, records, row, loop.index, records.load(k, selected, loop.index))
        return
    is_long = plan.length >= RADIX_LENGTH_PER_BYTE * code.type.bytes
    histograms = Histograms.zeroed(k, code.type.bytes) if is_long else None
    has_merged = _encode(k, plan, code, records, row, histograms)
    second = k.gep(row.memory, plan.length * plan.record_bytes)
    if histograms is not None:
        memory = emit_radix_sort(k, records, row.memory, second, plan.length, histograms)
    else:
        memory = emit_merge_sort(
            k, records, row.memory, second, plan.length, lambda left, right: records.less(k, left, right)
        )
    if plan.payload is Payload.POSITION and instruction.opcode == "sort":
        with listening_loop(k, 0, plan.kept) as loop:
            _place(k, row, loop.index, records.payload_of(k, records.load(k, memory, loop.index)))
        return
    with listening_loop(k, 0, plan.kept) as loop:
        _decode_one(k, code, records, row, loop.index, records.load(k, memory, loop.index))
    if has_merged is not None:
        with k.if_(has_merged):
            _restore_merged(k, plan, code, row)


def _encode(
    k: KernelBuilder, plan: SortPlan, code: KeyCode, records: Records, row: _Row, histograms: Histograms | None
) -> Value | None:
    """Writes the records of a row; returns whether a key does not tell its element, where that can happen."""
    source = row.inputs[code.key.operand]
    can_merge = code.merges and plan.payload is not Payload.POSITION
    with listening_loop(k, 0, plan.length, carry=[k.const(I1, 0)]) as loop:
        word = source.load(k, loop.index)
        canonical = code.canonical(k, word)
        key = code.encode(k, canonical)
        payload = None
        if plan.payload is Payload.POSITION:
            payload = loop.index
        elif plan.payload is Payload.ELEMENT:
            payload = k.zext(row.inputs[1 - code.key.operand].load(k, loop.index), I64)
        records.store(k, row.memory, loop.index, records.pack(k, key, payload))
        if histograms is not None:
            histograms.count(k, key)
        if can_merge:
            loop.next = [k.or_(loop.values[0], k.compare("ne", word, canonical))]
    return loop.results[0] if can_merge else None


def _decode_one(k: KernelBuilder, code: KeyCode, records: Records, row: _Row, position: Value, record: Value) -> None:
    """Writes one element of each result from a sorted record."""
    row.results[code.key.operand].store(k, position, _word_of(k, code, records, record))
    if records.payload is not Payload.NOTHING:
        other = row.results[1 - code.key.operand]
        other.store(k, position, k.trunc(records.payload_of(k, record), word_type(other.element_bytes)))


def _word_of(k: KernelBuilder, code: KeyCode, records: Records, record: Value) -> Value:
    """The element whose key a record has."""
    return code.decode(k, k.trunc(records.key(k, record), code.type))


def _restore_merged(k: KernelBuilder, plan: SortPlan, code: KeyCode, row: _Row) -> None:
    """Gives the elements whose keys are equal, though they are not, their own bits back, in the order of the row."""
    source, result = row.inputs[code.key.operand], row.results[code.key.operand]
    for merged in code.merged(k):
        with listening_loop(k, 0, plan.length, carry=[k.const(I64, 0)]) as loop:
            key = code.encode(k, code.canonical(k, source.load(k, loop.index)))
            loop.next = [k.add(loop.values[0], k.zext(k.compare("lt", key, merged, signed=False), I64))]
        with listening_loop(k, 0, plan.length, carry=loop.results) as loop:
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
        _place(k, row, loop.index, k.zext(records.load(k, memory, loop.index), I64))
