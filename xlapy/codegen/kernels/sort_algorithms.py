"""Stable sorting of records in memory: by digits of their keys, or by merging.

Both move all records between two places, back and forth, and say where they are in the end.
"""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import I32, I64, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.sort_records import Records
from xlapy.codegen.stopping import listening_loop
from xlapy_runtime.records import Record

DIGIT_BITS = 8  # 11 would mean fewer passes, but twice the time: the buckets do not fit the innermost cache
BUCKETS = 1 << DIGIT_BITS
RUN = 8  # records that are inserted one by one before runs are merged

Less = Callable[[Value, Value], Value]


class Histograms(Record):
    """How often each digit of the keys occurs, digit after digit, in memory on the stack."""

    memory: Value
    digits: int

    @classmethod
    def zeroed(cls, k: KernelBuilder, digits: int) -> Histograms:
        memory = k.alloca(I32, digits * BUCKETS, align=64)
        k.memset(memory, 0, digits * BUCKETS * I32.bytes)
        return cls(memory, digits)

    def table(self, k: KernelBuilder, digit: Operand) -> Value:
        return k.gep(self.memory, digit, BUCKETS * I32.bytes)

    def counter(self, k: KernelBuilder, table: Value, key: Value, shift: Operand) -> Value:
        """The address of the counter, in the table of one digit, that belongs to a key."""
        return k.gep(table, k.and_(k.lshr(k.zext(key, I64), shift), BUCKETS - 1), I32.bytes)

    def count(self, k: KernelBuilder, key: Value) -> None:
        """Counts all digits of a key."""
        for digit in range(self.digits):
            counter = self.counter(k, self.table(k, digit), key, digit * DIGIT_BITS)
            k.store(counter, k.add(k.load(counter, I32), 1))

    def counts_to_starts(self, k: KernelBuilder, table: Value) -> None:
        """Where the records of each bucket begin."""
        with k.loop(0, BUCKETS, carry=[k.const(I32, 0)]) as loop:
            counter = k.gep(table, loop.index, I32.bytes)
            count = k.load(counter, I32)
            k.store(counter, loop.values[0])
            loop.next = [k.add(loop.values[0], count)]


def emit_radix_sort(
    k: KernelBuilder, records: Records, first: Value, second: Value, length: Operand, histograms: Histograms
) -> Value:
    """Sorts by one digit after the other, least significant first. A digit that all keys share costs nothing."""
    with k.loop(0, histograms.digits, carry=[first, second]) as digits:
        source, target = digits.values
        table = histograms.table(k, digits.index)
        shift = k.mul(digits.index, DIGIT_BITS)

        def counter_of(record: Value) -> Value:
            return histograms.counter(k, table, records.key(k, record), shift)

        def move() -> list[Value]:
            histograms.counts_to_starts(k, table)
            with listening_loop(k, 0, length) as loop:
                record = records.load(k, source, loop.index)
                counter = counter_of(record)
                place = k.load(counter, I32)
                records.store(k, target, k.zext(place, I64), record)
                k.store(counter, k.add(place, 1))
            return [target, source]

        shared = k.zext(k.load(counter_of(records.load(k, source, 0)), I32), I64)
        digits.next = k.if_else(k.compare("eq", shared, length), lambda: [source, target], move)
    return digits.results[0]


def emit_merge_sort(
    k: KernelBuilder, records: Records, first: Value, second: Value, length: Operand, less: Less
) -> Value:
    """Sorts short runs by insertion, then merges neighbours until one run is left."""
    with listening_loop(k, 0, length, RUN) as runs:
        _insert_all(k, records, first, runs.index, k.smin(k.add(runs.index, RUN), length), less)
    if isinstance(length, int) and length <= RUN:
        return first

    def merge_all(values: list[Value]) -> list[Value]:
        width, source, target = values
        with k.loop(0, length, k.shl(width, 1)) as pairs:
            _merge(k, records, source, target, pairs.index, width, length, less)
        return [k.shl(width, 1), target, source]

    carry = [k.const(I64, RUN), first, second]
    return k.while_loop(lambda values: k.compare("lt", values[0], length), merge_all, carry)[1]


def _insert_all(k: KernelBuilder, records: Records, memory: Value, begin: Value, end: Value, less: Less) -> None:
    """Sorts [begin, end): each record moves left past those that it is less than."""
    with k.loop(k.add(begin, 1), end) as loop:
        record = records.load(k, memory, loop.index)

        def belongs_further_left(values: list[Value]) -> Value:
            neighbour = records.load(k, memory, k.smax(k.sub(values[0], 1), begin))
            return k.and_(k.compare("gt", values[0], begin), less(record, neighbour))

        def make_room(values: list[Value]) -> list[Value]:
            left = k.sub(values[0], 1)
            records.store(k, memory, values[0], records.load(k, memory, left))
            return [left]

        (place,) = k.while_loop(belongs_further_left, make_room, [loop.index])
        records.store(k, memory, place, record)


def _merge(
    k: KernelBuilder,
    records: Records,
    source: Value,
    target: Value,
    begin: Value,
    width: Value,
    length: Operand,
    less: Less,
) -> None:
    """Merges the runs [begin, begin + width) and the next `width`; of equals the left one goes first."""
    middle = k.smin(k.add(begin, width), length)
    end = k.smin(k.add(middle, width), length)
    last = k.sub(length, 1) if isinstance(length, Value) else k.const(I64, length - 1)

    def step_by_step() -> None:
        with listening_loop(k, begin, end, carry=[begin, middle]) as loop:
            left, right = loop.values
            left_record = records.load(k, source, k.smin(left, last))
            right_record = records.load(k, source, k.smin(right, last))
            left_is_over = k.compare("ge", left, middle)
            goes_first = k.or_(left_is_over, less(right_record, left_record))
            takes_right = k.and_(k.compare("lt", right, end), goes_first)
            records.store(k, target, loop.index, k.select(takes_right, right_record, left_record))
            step = k.zext(takes_right, I64)
            loop.next = [k.add(left, k.sub(1, step)), k.add(right, step)]

    def as_it_is() -> None:
        k.memcpy(
            k.gep(target, begin, records.bytes),
            k.gep(source, begin, records.bytes),
            k.mul(k.sub(end, begin), records.bytes),
        )

    border = records.load(k, source, k.smin(middle, last))
    swaps = less(border, records.load(k, source, k.sub(middle, 1)))
    k.if_else(k.and_(k.compare("lt", middle, end), swaps), step_by_step, as_it_is)
