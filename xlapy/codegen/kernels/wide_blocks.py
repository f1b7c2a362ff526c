"""Wide blocks of columns in memory: several rows at a time are folded onto values that lie in a cache.

    for eight rows:
        for vector of the block: value[vector] = value[vector] + x[row, vector] + ... + x[row + 7, vector]

Each row is read from end to end, as the processor's own prefetching expects of memory: where narrow blocks hold their
values in registers, it sees short pieces far apart. The order of the elements is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.ir import I8, KernelBuilder, Operand, Value
from xlapy.codegen.registers import Element, flatten, splat, unflatten
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.support.records import Record

STREAMS = 8
"""Pieces of memory that are read side by side: as many as processors follow."""

MOST_BYTES = 16 * 1024
"""Of the values of a block: half of a first-level cache."""

ALIGNMENT = 64
PAGE_BYTES = 4096  # of a row, and a piece of it that is worth to be read by itself; processors fetch ahead within one
LEAST_PIECE_BYTES = 1024
MANY_BLOCKS = 8  # whole rows are read best, where there are so many to share out
FEW_BLOCKS = 4  # that there should be at the least: so many threads can read as fast as memory gives


def is_in_memory(bytes: int, target: Target) -> bool:
    """Whether arrays are nowhere near the processor. Others share the last cache."""
    return bytes > target.l3_bytes // 2


def vectors_of_block(columns: int, lanes: int, groups: int, column_bytes: int, value_bytes: int) -> int:
    """How many vectors of `lanes` columns make a wide block, of so many columns of so many groups of rows: whole rows,
    or, where there are few to share out, pages or shorter pieces of them. No wider than the columns: what is left over
    beside vectors is in another block. `value_bytes` has what is folded of a column."""
    vectors = -(-columns // lanes)
    blocks = -(-vectors * lanes * value_bytes // MOST_BYTES)
    if groups * blocks < MANY_BLOCKS:
        blocks = max(1, columns * column_bytes // PAGE_BYTES)
    if groups * blocks < FEW_BLOCKS:
        blocks = min(-(-FEW_BLOCKS // groups), max(1, columns * column_bytes // LEAST_PIECE_BYTES))
    width = min(-(-vectors // blocks), MOST_BYTES // (lanes * value_bytes))
    return width if width * lanes <= columns else max(1, -(-vectors // 2))


class BlockValues:
    """The values of a block: for each of its vectors of columns the elements that a fold carries."""

    def __init__(self, k: KernelBuilder, initial: Sequence[Element], lanes: int, vectors: int) -> None:
        self._k = k
        self._model = [splat(k, element, lanes) for element in initial]
        values = flatten(self._model)
        self._types = [value.type for value in values]
        self._rooms = [k.alloca(I8, type.bytes * type.lanes * vectors, align=ALIGNMENT) for type in self._types]

    def begin(self, count: Value) -> None:
        """Gives the first `count` vectors what folds begin with."""
        with self._k.loop(0, count) as vectors:
            self.store(vectors.index, self._model)

    def load(self, vector: Value) -> list[Element]:
        loaded = [
            self._k.load(self._place(room, type.bytes * type.lanes, vector), type)
            for room, type in zip(self._rooms, self._types, strict=True)
        ]
        return unflatten(loaded, self._model)

    def store(self, vector: Value, elements: Sequence[Element]) -> None:
        lanes = self._types[0].lanes
        values = flatten([splat(self._k, element, lanes) for element in elements])
        for room, type, value in zip(self._rooms, self._types, values, strict=True):
            self._k.store(self._place(room, type.bytes * type.lanes, vector), value)

    def _place(self, room: Value, size: int, vector: Value) -> Value:
        return self._k.gep(room, vector, size)


def first_column(k: KernelBuilder, block: Value, width: Operand, columns: Value) -> Value:
    """The first column of a block of a number, all of which are `width` columns wide: the last one overlaps the one
    before it.

    Were it the last vector of a row that overlaps, addresses would take more instructions than the work, and a core
    would have fewer loads under way (36 GB/s of sums, not 47)."""
    return k.smin(k.mul(block, width), k.sub(columns, width))


class BlockInMemory(Record):
    """A block of an array that is folded: where it begins in the first row, how far apart its rows are, and how large
    each of its vectors is."""

    pointer: Value
    row_bytes: Operand
    vector_bytes: int

    def row(self, k: KernelBuilder, number: Value) -> Value:
        return k.gep(self.pointer, k.mul(number, self.row_bytes))


VectorFold = Callable[[Value, Sequence[Element]], Sequence[Element]]
"""What a vector has folded, when elements are folded onto what it had."""

Fold = Callable[[Value, int], VectorFold]
"""The fold of so many rows, from one of a number on: where they begin is found once for all vectors."""


class WideFold(Record):
    """How the rows of a block are folded onto the values of its `count` vectors, so many `rows` at a time: a power of
    two."""

    values: BlockValues
    count: Value
    rows: int
    fold: Fold
    fetched: Sequence[BlockInMemory] = ()  # what comes from memory by rows
    weight: int = 1  # about how many vectors there are

    def emit(self, k: KernelBuilder, length: Operand) -> None:
        """Writes the loops over `length` rows."""
        whole = length // self.rows * self.rows if isinstance(length, int) else k.and_(length, -self.rows)
        with listening_loop(k, 0, whole, self.rows, weight=self.weight) as group:
            if self.fetched:
                self._fold_and_fetch(k, group.index)
            else:
                self._fold_vectors(k, self.fold(group.index, self.rows), 0, self.count)
        if not (isinstance(length, int) and length == whole):
            with listening_loop(k, whole, length, weight=self.weight) as row:
                self._fold_vectors(k, self.fold(row.index, 1), 0, self.count)

    def _fold_and_fetch(self, k: KernelBuilder, row: Value) -> None:
        """Folds some rows. The same number of them behind these comes into the second-level cache meanwhile, one after
        the other. (4096 columns of f32, one core of a Zen 5: sums at 37 GB/s and extrema at 32; at 35 and 28, where
        each vector fetches what lies below it, and at 32 and 25, where the processor does it all.)"""
        fold = self.fold(row, self.rows)
        share = k.udiv(k.add(self.count, self.rows - 1), self.rows)
        with k.loop(0, self.rows) as part:
            first = k.mul(part.index, share)
            following = k.add(k.add(row, self.rows), part.index)
            pieces = [(source.row(k, following), source.vector_bytes * self.rows) for source in self.fetched]
            behind = [(k.gep(place, k.neg(first), piece_bytes), piece_bytes) for place, piece_bytes in pieces]

            def fetch(vector: Value) -> None:
                for place, piece_bytes in behind:
                    k.prefetch(k.gep(place, vector, piece_bytes), piece_bytes, level=2)

            self._fold_vectors(k, fold, first, k.smin(k.add(first, share), self.count), fetch)

    def _fold_vectors(
        self,
        k: KernelBuilder,
        fold: VectorFold,
        begin: Operand,
        end: Operand,
        fetch: Callable[[Value], None] = lambda _: None,
    ) -> None:
        with k.loop(begin, end) as vectors:
            vector = vectors.index
            fetch(vector)
            self.values.store(vector, fold(vector, self.values.load(vector)))
