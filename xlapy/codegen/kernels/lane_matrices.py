"""Small matrices of a batch, one in each lane: how they get there, and back to memory.

They lie in the stack frame meanwhile, a vector for each number of a matrix. A few neighbours from each matrix, loaded
at once, make a block that is turned over in registers, with a quarter of a square block's code: LLVM takes its time for
each shuffle. Matrices of fewer numbers follow each other in memory, and are picked out of as many vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.ir import IRType, KernelBuilder, Operand, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.register_transpose import (
    columns_of_rows,
    dealt,
    joined,
    row_piece,
    rows_of_columns,
    transposed,
)
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
        if not self._numbers:
            return
        behind = k.gep(source, self._numbers * self._vector_bytes)
        if self._are_tiny:
            k.prefetch(behind, self._numbers * self._vector_bytes)
            vectors = [k.load(place, self.type) for place in self._side_by_side(k, source)]
            self._store_run(k, self.room, dealt(k, vectors))
            return
        piece = row_piece(self.type)

        def read_block(number: Value, lines: Sequence[Value], vectors: Value) -> None:
            k.prefetch(k.gep(behind, number, self._vector_bytes), piece.lanes * self._vector_bytes)
            self._store_run(k, vectors, columns_of_rows(k, [k.load(line, piece) for line in lines]))

        self._for_blocks(k, source, piece.lanes, read_block)

    @property
    def _are_tiny(self) -> bool:
        return self._numbers < row_piece(self.type).lanes

    @property
    def fills_lines(self) -> bool:
        """Whether all that is written are whole lines of the caches, if the first one is."""
        return self._vector_bytes == CACHE_LINE and not self._numbers % self.type.lanes

    def write(self, k: KernelBuilder, target: Value, *, past_caches: bool = False) -> None:
        """Writes the matrices of all lanes from that place on; past the caches, if they begin where lines do."""
        if not self._numbers:
            return
        if self._are_tiny:
            vectors = joined(k, self._load_run(k, self.room, self._numbers))
            _store(k, self._side_by_side(k, target), vectors)
        elif past_caches and self.fills_lines:
            self._write_lines(k, target)
        else:
            self._write_pieces(k, target)

    def _write_pieces(self, k: KernelBuilder, target: Value) -> None:
        size = row_piece(self.type).lanes

        def write_block(_number: Value, lines: Sequence[Value], vectors: Value) -> None:
            _store(k, lines, rows_of_columns(k, self._load_run(k, vectors, size)))

        self._for_blocks(k, target, size, write_block)

    def _write_lines(self, k: KernelBuilder, target: Value) -> None:
        begins_with_line = k.compare("eq", k.and_(k.address(target), CACHE_LINE - 1), 0)

        def write_block(_number: Value, lines: Sequence[Value], vectors: Value) -> None:
            turned = transposed(k, self._load_run(k, vectors, self.type.lanes))
            k.if_else(begins_with_line, partial(_stream, k, lines, turned), partial(_store, k, lines, turned))

        self._for_blocks(k, target, self.type.lanes, write_block)

    def _side_by_side(self, k: KernelBuilder, place: Value) -> list[Value]:
        """Where the vectors begin that hold all matrices."""
        return [k.gep(place, number * self.type.lanes, self.type.bytes) for number in range(self._numbers)]

    def _for_blocks(
        self, k: KernelBuilder, place: Value, size: int, block: Callable[[Value, Sequence[Value], Value], None]
    ) -> None:
        """Calls `block` with the first of `size` numbers, where each matrix has them, and where the vectors of their
        lanes begin. The last block overlaps the one before."""
        with k.loop(0, self._numbers, size) as loop:
            number = k.smin(loop.index, self._numbers - size)
            first = k.gep(place, number, self.type.bytes)
            lines = [k.gep(first, matrix * self._numbers, self.type.bytes) for matrix in range(self.type.lanes)]
            block(number, lines, k.gep(self.room, number, self._vector_bytes))

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
