"""Sorting short rows side by side: one row in each lane, by a network of minima and maxima.

A network compares the same positions whatever the data, so that it needs neither branches nor a row of its own. It is
Batcher's merge exchange, which takes any length. It is not stable: equal records must be equal in every bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from xlapy.codegen.ir import I64, IRType, KernelBuilder, Operand, Value
from xlapy_runtime.records import Record

FEW = 16  # vectors that are sorted in registers (some of them on the stack)
EXCHANGES_PER_STEP = 4


class Phase(Record):
    """Exchanges of i with i + distance, for i in blocks of `block` positions, 2 * `block` apart, from `first` on."""

    block: int
    first: int
    distance: int

    def positions(self, length: int) -> Iterator[int]:
        for start in range(self.first, length - self.distance, 2 * self.block):
            yield from range(start, min(start + self.block, length - self.distance))


def phases(length: int) -> Iterator[Phase]:
    """The network for rows of `length`."""
    block = top = top_of(length)
    while block:
        yield Phase(block, 0, block)
        reach = top
        while reach > block:
            yield Phase(block, block, reach - block)
            reach //= 2
        block //= 2


def top_of(length: int) -> int:
    """The largest power of two below `length`; 0 if there is nothing to exchange."""
    return 1 << ((length - 1).bit_length() - 1) if length > 1 else 0


def sort_in_registers(k: KernelBuilder, records: list[Value]) -> list[Value]:
    """The vectors in ascending order, lane by lane."""
    ordered = list(records)
    for phase in phases(len(ordered)):
        for i in phase.positions(len(ordered)):
            j = i + phase.distance
            ordered[i], ordered[j] = k.umin(ordered[i], ordered[j]), k.umax(ordered[i], ordered[j])
    return ordered


class Lanes(Record):
    """`length` vectors of records in memory. `top` is the largest power of two below `length`."""

    memory: Value
    type: IRType
    length: Value
    top: Value

    def _address(self, k: KernelBuilder, position: Operand) -> Value:
        return k.gep(self.memory, position, self.type.bytes * self.type.lanes)

    def load(self, k: KernelBuilder, position: Operand) -> Value:
        return k.load(self._address(k, position), self.type)

    def store(self, k: KernelBuilder, position: Operand, record: Value) -> None:
        k.store(self._address(k, position), record)

    def sort(self, k: KernelBuilder) -> None:
        """Sorts each lane; the memory has room for `FEW` vectors at least."""
        is_few = k.compare("le", self.length, FEW)
        k.if_else(is_few, lambda: self._sort_few(k), lambda: self._sort_many(k))

    def _sort_few(self, k: KernelBuilder) -> None:
        """In registers, filled up with records that stay behind all others."""
        with k.loop(self.length, FEW) as rest:
            self.store(k, rest.index, k.const(self.type, -1))
        ordered = sort_in_registers(k, [self.load(k, position) for position in range(FEW)])
        for position, record in enumerate(ordered):
            self.store(k, position, record)

    def _sort_many(self, k: KernelBuilder) -> None:
        """Goes through the phases, in loops."""

        def run_and_halve(values: list[Value]) -> list[Value]:
            self._run_block(k, values[0], EXCHANGES_PER_STEP)
            return [k.lshr(values[0], 1)]

        k.while_loop(lambda values: k.compare("ge", values[0], EXCHANGES_PER_STEP), run_and_halve, [self.top])
        block = EXCHANGES_PER_STEP // 2
        while block:
            self._run_block(k, k.const(I64, block), block)
            block //= 2

    def _run_block(self, k: KernelBuilder, block: Value, step: int) -> None:
        """All phases of one block size, a multiple of `step`."""
        self._run(k, block, k.const(I64, 0), block, step)

        def run_and_halve(values: list[Value]) -> list[Value]:
            self._run(k, block, block, k.sub(values[0], block), step)
            return [k.lshr(values[0], 1)]

        k.while_loop(lambda values: k.compare("gt", values[0], block), run_and_halve, [self.top])

    def _run(self, k: KernelBuilder, block: Value, first: Value, distance: Value, step: int) -> None:
        """One phase: whole blocks `step` exchanges at a time; what is left of the last block one by one."""
        end = k.sub(self.length, distance)
        apart = k.shl(block, 1)
        whole = k.and_(k.add(k.sub(end, first), block), k.neg(apart))
        rest = k.add(first, whole)
        with k.loop(first, rest, apart) as blocks, k.loop(blocks.index, k.add(blocks.index, block), step) as loop:
            for offset in range(step):
                self._exchange(k, k.add(loop.index, offset), distance)
        with k.loop(rest, end) as loop:
            self._exchange(k, loop.index, distance)

    def _exchange(self, k: KernelBuilder, position: Value, distance: Value) -> None:
        other = k.add(position, distance)
        one, two = (k.load_apart(self._address(k, place), self.type) for place in (position, other))
        self.store(k, position, k.umin(one, two))
        self.store(k, other, k.umax(one, two))
