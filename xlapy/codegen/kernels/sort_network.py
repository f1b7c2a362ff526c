"""Sorting short rows side by side: one row in each lane, by a network of minima and maxima.

A network compares the same positions whatever the data, so that it needs neither branches nor a row of its own. It is
Batcher's merge exchange, which takes any length. It is not stable: equal records must be equal in every bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xlapy.codegen.ir import IRType, KernelBuilder, Operand, Value

UNROLLED_LENGTH = 24  # rows up to this stay in registers (some of them on the stack)
EXCHANGES_PER_STEP = 4


@dataclass(frozen=True, slots=True)
class Phase:
    """Exchanges of i with i + distance, for i in blocks of `block` positions, 2 * `block` apart, from `first` on."""

    block: int
    first: int
    distance: int

    def positions(self, length: int) -> Iterator[int]:
        for start in range(self.first, length - self.distance, 2 * self.block):
            yield from range(start, min(start + self.block, length - self.distance))


def phases(length: int) -> Iterator[Phase]:
    """The network for rows of `length`."""
    block = top = 1 << max(0, (length - 1).bit_length() - 1)
    while block and length > 1:
        first, distance, reach = 0, block, top
        while True:
            yield Phase(block, first, distance)
            if reach == block:
                break
            distance, first, reach = reach - block, block, reach // 2
        block //= 2


def sort_in_registers(k: KernelBuilder, records: list[Value]) -> list[Value]:
    """The vectors in ascending order, lane by lane."""
    ordered = list(records)
    for phase in phases(len(ordered)):
        for i in phase.positions(len(ordered)):
            j = i + phase.distance
            ordered[i], ordered[j] = k.umin(ordered[i], ordered[j]), k.umax(ordered[i], ordered[j])
    return ordered


@dataclass(frozen=True, slots=True)
class Lanes:
    """`length` vectors of records in memory."""

    memory: Value
    type: IRType
    length: int

    def _address(self, k: KernelBuilder, position: Operand) -> Value:
        return k.gep(self.memory, position, self.type.bytes * self.type.lanes)

    def load(self, k: KernelBuilder, position: Operand) -> Value:
        return k.load(self._address(k, position), self.type)

    def store(self, k: KernelBuilder, position: Operand, record: Value) -> None:
        k.store(self._address(k, position), record)

    def sort(self, k: KernelBuilder) -> None:
        for phase in phases(self.length):
            self._run(k, phase)

    def _run(self, k: KernelBuilder, phase: Phase) -> None:
        """Whole blocks in loops, several exchanges at a time; what is left of the last block one by one."""
        available = self.length - phase.distance - phase.first
        whole = max(0, (available + phase.block) // (2 * phase.block))
        rest = phase.first + 2 * phase.block * whole
        step = min(phase.block, EXCHANGES_PER_STEP)
        with k.loop(phase.first, rest, 2 * phase.block) as blocks:
            with k.loop(blocks.index, k.add(blocks.index, phase.block), step) as loop:
                for offset in range(step):
                    self._exchange(k, k.add(loop.index, offset), phase.distance)
        with k.loop(rest, self.length - phase.distance) as loop:
            self._exchange(k, loop.index, phase.distance)

    def _exchange(self, k: KernelBuilder, position: Value, distance: int) -> None:
        other = k.add(position, distance)
        one, two = self.load(k, position), self.load(k, other)
        self.store(k, position, k.umin(one, two))
        self.store(k, other, k.umax(one, two))
