"""Small matrices of a batch, one in each lane: how they get there, and back to memory.

They lie in the stack frame meanwhile, a vector for each number of a matrix. A vector of neighbours from each matrix
makes a square block, which is turned over in registers; matrices of less than a vector follow each other in memory, and
their numbers are picked out of as many vectors. So memory is read and written by whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.ir import IRType, KernelBuilder, Operand, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.register_transpose import dealt, joined, transposed
from xlapy.codegen.registers import Element, from_parts, parts_of
from xlapy_runtime.records import Record


class LaneMatrices(Record):
    """Room for as many matrices as `type` has lanes, of `count` elements each, `parts` of them numbers."""

    room: Value
    type: IRType
    parts: int
    count: int

    @classmethod
    def new(cls, k: KernelBuilder, type: IRType, parts: int, count: int) -> LaneMatrices:
        return cls(k.alloca(type, count * parts, align=type.bytes * type.lanes), type, parts, count)

    @property
    def _numbers(self) -> int:
        """Of a matrix."""
        return self.count * self.parts

    @property
    def _vector_bytes(self) -> int:
        return self.type.bytes * self.type.lanes

    def load(self, k: KernelBuilder, place: Operand) -> Element:
        """The elements at one place of their matrices, counted row by row."""
        return from_parts([k.load(self._vector(k, place, part), self.type) for part in range(self.parts)])

    def store(self, k: KernelBuilder, place: Operand, element: Element) -> None:
        for number, part in enumerate(parts_of(element)):
            k.store(self._vector(k, place, number), part)

    def _vector(self, k: KernelBuilder, place: Operand, part: int) -> Value:
        return k.gep(k.gep(self.room, place, self.parts * self._vector_bytes), part, self._vector_bytes)

    def read(self, k: KernelBuilder, source: Value) -> None:
        """Fills the lanes with the matrices from that place on, and fetches those behind them."""
        ahead = self._numbers * self._vector_bytes
        if self._numbers < self.type.lanes:
            k.prefetch(k.gep(source, ahead), ahead)
            vectors = [k.load(place, self.type) for place in self._side_by_side(k, source)]
            self._store_run(k, self.room, dealt(k, vectors))
            return

        def read_block(lines: Sequence[Value], vectors: Value) -> None:
            for line in lines:
                k.prefetch(k.gep(line, ahead), 1)
            self._store_run(k, vectors, transposed(k, [k.load(line, self.type) for line in lines]))

        self._for_blocks(k, source, read_block)

    @property
    def fills_lines(self) -> bool:
        """Whether all that is written are whole lines of the caches, if the first one is."""
        return self._vector_bytes == CACHE_LINE and not self._numbers % self.type.lanes

    def write(self, k: KernelBuilder, target: Value, *, past_caches: bool = False) -> None:
        """Writes the matrices of all lanes from that place on; past the caches, if they begin where lines do."""
        if self._numbers < self.type.lanes:
            vectors = joined(k, self._load_run(k, self.room, self._numbers))
            _store(k, self._side_by_side(k, target), vectors)
            return

        def write_block(lines: Sequence[Value], vectors: Value) -> None:
            turned = transposed(k, self._load_run(k, vectors, self.type.lanes))
            if past_caches and self.fills_lines:
                begins_with_line = k.compare("eq", k.and_(k.address(target), CACHE_LINE - 1), 0)
                k.if_else(begins_with_line, partial(_stream, k, lines, turned), partial(_store, k, lines, turned))
            else:
                _store(k, lines, turned)

        self._for_blocks(k, target, write_block)

    def _side_by_side(self, k: KernelBuilder, place: Value) -> list[Value]:
        """Where the vectors begin that hold all matrices."""
        return [k.gep(place, number * self.type.lanes, self.type.bytes) for number in range(self._numbers)]

    def _for_blocks(self, k: KernelBuilder, place: Value, block: Callable[[Sequence[Value], Value], None]) -> None:
        """Calls `block` with where a vector of each matrix begins, and where the vectors of their lanes do. The last
        one overlaps the one before."""
        lanes, width = self.type.lanes, self.type.bytes
        with k.loop(0, self._numbers, lanes) as loop:
            number = k.smin(loop.index, self._numbers - lanes)
            first = k.gep(place, number, width)
            lines = [k.gep(first, matrix * self._numbers, width) for matrix in range(lanes)]
            block(lines, k.gep(self.room, number, self._vector_bytes))

    def _store_run(self, k: KernelBuilder, place: Value, vectors: Sequence[Value]) -> None:
        for number, vector in enumerate(vectors):
            k.store(k.gep(place, number, self._vector_bytes), vector)

    def _load_run(self, k: KernelBuilder, place: Value, count: int) -> list[Value]:
        return [k.load(k.gep(place, number, self._vector_bytes), self.type) for number in range(count)]


def _store(k: KernelBuilder, places: Sequence[Value], vectors: Sequence[Value]) -> None:
    for place, vector in zip(places, vectors, strict=True):
        k.store(place, vector)


def _stream(k: KernelBuilder, places: Sequence[Value], vectors: Sequence[Value]) -> None:
    for place, vector in zip(places, vectors, strict=True):
        k.store(place, vector, align=CACHE_LINE, nontemporal=True)
