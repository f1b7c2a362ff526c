"""What a sort moves about: keys, and records of a key and a payload.

A key is an unsigned integer that orders as the element does. A record is a key alone, a key above a payload in one
64-bit word, or (where either needs 64 bits) a pair of words. Payloads are the bits of an element, or a position.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.ir import I8, I16, I32, I64, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.register_transpose import transposed
from xlapy.hlo.sort_plan import Payload
from xlapy_runtime.records import Record

_WORDS = {1: I8, 2: I16, 4: I32, 8: I64, 16: I64.with_lanes(2)}
PAYLOAD_BITS = 32  # of a record in one word
KEY_LANE, PAYLOAD_LANE = 1, 0  # of a record in two words


def word_type(element_bytes: int) -> IRType:
    """The integers that move elements about without looking at them."""
    return _WORDS[element_bytes]


class Column(Record):
    """The elements of one row of an array, as words: `stride` elements apart, from `base` on.

    Where `base` has lanes, there is a row in each of them; `neighbours` says that they begin next to each other."""

    pointer: Value
    element_bytes: int
    base: Value
    stride: Operand
    neighbours: bool = False

    def place(self, k: KernelBuilder, position: Operand) -> Value:
        """The number of the element at a position."""
        return k.add(k.mul(position, self.stride), self.base)

    def _is_contiguous(self, position: Value) -> bool:
        return self.neighbours and position.type.lanes == 1

    def load(self, k: KernelBuilder, position: Value) -> Value:
        lanes, width, type = self.base.type.lanes, self.element_bytes, word_type(self.element_bytes)
        place = self.place(k, position)
        if lanes == 1:
            return k.load(k.gep(self.pointer, place, width), type)
        if self._is_contiguous(position):
            return k.load(k.gep(self.pointer, k.extract(place, 0), width), type.with_lanes(lanes))
        return k.gather(self.pointer, place, type, element_bytes=width)

    def store(self, k: KernelBuilder, position: Value, word: Value) -> None:
        lanes, width = self.base.type.lanes, self.element_bytes
        place = self.place(k, position)
        if lanes == 1:
            k.store(k.gep(self.pointer, place, width), word)
        elif self._is_contiguous(position):
            k.store(k.gep(self.pointer, k.extract(place, 0), width), word)
        else:
            k.scatter(self.pointer, place, word, element_bytes=width)

    def load_neighbours(self, k: KernelBuilder, position: Value, count: int) -> Value:
        """The words at `count` positions of a row whose elements lie side by side."""
        place = k.gep(self.pointer, self.place(k, position), self.element_bytes)
        return k.load(place, word_type(self.element_bytes).with_lanes(count))

    def load_block(self, k: KernelBuilder, start: Value, count: int) -> list[Value]:
        """The words at `count` positions. More than one are read from each row at a time, as many as there are rows."""
        if count == 1:
            return [self.load(k, start)]
        type = word_type(self.element_bytes).with_lanes(count)
        return transposed(k, [k.load(address, type) for address in self._rows_from(k, start)])

    def store_block(self, k: KernelBuilder, start: Value, words: Sequence[Value]) -> None:
        """Writes what `load_block` reads."""
        if len(words) == 1:
            self.store(k, start, words[0])
            return
        for address, row in zip(self._rows_from(k, start), transposed(k, words), strict=True):
            k.store(address, row)

    def _rows_from(self, k: KernelBuilder, start: Value) -> list[Value]:
        """The address of position `start` in each row, where positions are neighbours."""
        bases = [k.extract(self.base, lane) for lane in range(self.base.type.lanes)]
        return [k.gep(self.pointer, k.add(base, start), self.element_bytes) for base in bases]


class Records(Record):
    """Records in memory, one or (in the lanes of `type`) several. Payloads come out as i64, their upper bits zero."""

    type: IRType
    payload: Payload

    @property
    def bytes(self) -> int:
        return self.type.bytes * self.type.lanes

    @property
    def _is_pair(self) -> bool:
        return self.type.lanes == 2 and self.payload is not Payload.NOTHING

    def load(self, k: KernelBuilder, memory: Value, number: Operand) -> Value:
        return k.load(k.gep(memory, number, self.bytes), self.type)

    def store(self, k: KernelBuilder, memory: Value, number: Operand, record: Value) -> None:
        k.store(k.gep(memory, number, self.bytes), record)

    def pack(self, k: KernelBuilder, key: Value, payload: Value | None) -> Value:
        if payload is None:
            return key
        if self._is_pair:
            return k.insert(k.insert(k.const(self.type, 0), payload, PAYLOAD_LANE), k.zext(key, I64), KEY_LANE)
        return k.or_(k.shl(k.zext(key, I64), PAYLOAD_BITS), payload)

    def key(self, k: KernelBuilder, record: Value) -> Value:
        """The key, in the least significant bits."""
        if self.payload is Payload.NOTHING:
            return record
        return k.extract(record, KEY_LANE) if self._is_pair else k.lshr(record, PAYLOAD_BITS)

    def payload_of(self, k: KernelBuilder, record: Value) -> Value:
        return k.extract(record, PAYLOAD_LANE) if self._is_pair else k.and_(record, (1 << PAYLOAD_BITS) - 1)

    def less(self, k: KernelBuilder, left: Value, right: Value) -> Value:
        """Positions never decide: that the sort is stable says the same."""
        whole = self.payload is Payload.NOTHING or (self.payload is Payload.POSITION and not self._is_pair)
        if not whole:
            left, right = self.key(k, left), self.key(k, right)
        return k.compare("lt", left, right, signed=False)
