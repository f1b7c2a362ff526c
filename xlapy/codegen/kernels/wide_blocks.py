"""Wide blocks of columns in memory: several rows at a time are folded onto values that lie in a cache.

    for eight rows:
        for vector of the block: value[vector] = value[vector] + x[row, vector] + ... + x[row + 7, vector]

Each row is read from end to end, as the processor's own prefetching expects of memory: where narrow blocks hold their
values in registers, it sees short pieces far apart. The order of the elements is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from xlapy.codegen.ir import I8, I64, KernelBuilder, Operand, Value
from xlapy.codegen.registers import Element, flatten, splat, unflatten
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.support.records import Record

STREAMS = 8
"""Pieces of memory that are read side by side: as many as processors follow."""

MOST_BYTES = 16 * 1024
"""Of the values of a block: half of a first-level cache."""

ALIGNMENT = 64
PAGE_BYTES = 4096  # of a row that is worth to be read by itself; processors fetch ahead within one
LEAST_PIECE_BYTES = 1024
LONG_PIECE_BYTES = 8192  # as good as a whole row
MANY_BLOCKS = 8  # with so many it does not matter whether all threads get equally many
FEW_THREADS, SOME_THREADS = 2, 4  # that read nearly as fast, and as fast, as memory gives


def is_in_memory(bytes: int, target: Target) -> bool:
    """Whether arrays are nowhere near the processor. Others share the last cache."""
    return bytes > target.l3_bytes // 2


def vectors_of_block(columns: int, lanes: int, groups: int, column_bytes: int, value_bytes: int) -> int:
    """How many vectors of `lanes` columns make a wide block, of so many columns of so many groups of rows: whole rows,
    or, where there are few to share out, no more pieces of them than give some threads as many. (Of two pieces one core
    of a Zen 3 reads f32[8192,2048] at 18 GB/s, of four at 12, and whole rows at 21.) No wider than the columns: what is
    left over beside vectors is in another block. `value_bytes` has what is folded of a column."""
    vectors, row_bytes = -(-columns // lanes), columns * column_bytes
    blocks = -(-vectors * lanes * value_bytes // MOST_BYTES)
    if groups * blocks < MANY_BLOCKS:
        threads = SOME_THREADS if row_bytes >= SOME_THREADS * LONG_PIECE_BYTES else FEW_THREADS
        step = threads // math.gcd(threads, groups)
        blocks = max(blocks, min(-(-blocks // step) * step, row_bytes // LEAST_PIECE_BYTES))
    width = min(-(-vectors // blocks), MOST_BYTES // (lanes * value_bytes))
    return width if width * lanes <= columns else max(1, -(-vectors // 2))


class BlockValues:
    """The values of a block: for each of its vectors of columns the elements that a fold carries."""

    def __init__(self, k: KernelBuilder, initial: Sequence[Element], lanes: int, vectors: int) -> None:
        self.lanes = lanes
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
            self._k.load_apart(self._place(room, type.bytes * type.lanes, vector), type)
            for room, type in zip(self._rooms, self._types, strict=True)
        ]
        return unflatten(loaded, self._model)

    def store(self, vector: Value, elements: Sequence[Element]) -> None:
        values = flatten([splat(self._k, element, self.lanes) for element in elements])
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


class Vector(Record):
    """One of the vectors of a block: its number, which is that of its values, and its first column."""

    number: Value
    column: Value


VectorFold = Callable[[Vector, Sequence[Element]], Sequence[Element]]
"""What a vector has folded, when elements are folded onto what it had."""

Fold = Callable[[Value, int], VectorFold]
"""The fold of so many rows, from one of a number on: where they begin is found once for all vectors."""


class Edges(Record):
    """Vectors that overlap the others of a block at its ends: how many there are, and the first column of each."""

    count: Value
    column: Callable[[Value], Value]


class Fetched(Record):
    """What comes from memory by rows: so many of them, a power of two, while as many are folded in front of them. Only
    if `wanted`, and there are no edges then."""

    blocks: Sequence[BlockInMemory]
    rows: int
    wanted: Value | None = None


class WideFold(Record):
    """How the rows of a block are folded onto the values of its `count` vectors, so many `rows` at a time, a power of
    two, and so many vectors `together`. The values of edges are behind those."""

    values: BlockValues
    count: Value
    rows: int
    fold: Fold
    weight: int = 1  # about how many vectors there are
    together: int = 1
    edges: Edges | None = None
    fetched: Fetched | None = None

    def emit(self, k: KernelBuilder, length: Operand) -> None:
        """Writes the loops over `length` rows."""
        whole = self._fold_whole(k, length)
        if not (isinstance(length, int) and whole.constant == length):
            with listening_loop(k, whole, length, weight=self.weight) as row:
                self._fold_singly(k, self.fold(row.index, 1), 0)

    def _fold_whole(self, k: KernelBuilder, length: Operand) -> Value:
        """Folds several rows at a time, and says from which one on some are left."""
        fetched = self.fetched
        if fetched is None:
            return self._several(k, length, self.rows, self._fold_all)
        fetching = partial(self._several, k, length, fetched.rows, partial(self._fold_and_fetch, fetched))
        if fetched.wanted is None:
            return fetching()
        (whole,) = k.if_else(fetched.wanted, fetching, partial(self._several, k, length, self.rows, self._fold_all))
        return whole

    def _several(
        self, k: KernelBuilder, length: Operand, rows: int, fold: Callable[[KernelBuilder, Value], None]
    ) -> Value:
        whole = k.const(I64, length // rows * rows) if isinstance(length, int) else k.and_(length, -rows)
        with listening_loop(k, 0, whole, rows, weight=self.weight) as group:
            fold(k, group.index)
        return whole

    def _fold_all(self, k: KernelBuilder, row: Value) -> None:
        """Folds some rows, from one of a number on."""
        fold = self.fold(row, self.rows)
        self._fold_singly(k, fold, self._fold_together(k, fold))

    def _fold_and_fetch(self, fetched: Fetched, k: KernelBuilder, row: Value) -> None:
        """The same. As many rows behind these come into the second-level cache meanwhile, one after the other. (4096
        columns of f32, one core of a Zen 5: sums at 37 GB/s and extrema at 32; at 35 and 28, where each vector fetches
        what lies below it, and at 32 and 25, where the processor does it all.)"""
        rows = fetched.rows
        fold = self.fold(row, rows)
        share = k.udiv(k.add(self.count, rows - 1), rows)
        with k.loop(0, rows) as part:
            first = k.mul(part.index, share)
            following = k.add(k.add(row, rows), part.index)
            pieces = [(source.row(k, following), source.vector_bytes * rows) for source in fetched.blocks]
            behind = [(k.gep(place, k.neg(first), piece_bytes), piece_bytes) for place, piece_bytes in pieces]

            with k.loop(first, k.smin(k.add(first, share), self.count)) as vectors:
                for place, piece_bytes in behind:
                    k.prefetch(k.gep(place, vectors.index, piece_bytes), piece_bytes, level=2)
                self._fold_vector(fold, self._inside(k, vectors.index))

    def _fold_together(self, k: KernelBuilder, fold: VectorFold) -> Operand:
        """Folds several vectors at a time, and says from which one on some are left."""
        if self.together == 1:
            return 0
        left = k.and_(self.count, -self.together)
        with k.loop(0, left, self.together) as vectors:
            for number in range(self.together):
                self._fold_vector(fold, self._inside(k, k.add(vectors.index, number)))
        return left

    def _fold_singly(self, k: KernelBuilder, fold: VectorFold, begin: Operand) -> None:
        """Folds the vectors from one on, and those at the edges."""
        with k.loop(begin, self.all_vectors(k)) as vectors:
            self._fold_vector(fold, self.vector(k, vectors.index))

    def _fold_vector(self, fold: VectorFold, vector: Vector) -> None:
        self.values.store(vector.number, fold(vector, self.values.load(vector.number)))

    def all_vectors(self, k: KernelBuilder) -> Value:
        """How many there are, with those at the edges."""
        return self.count if self.edges is None else k.add(self.count, self.edges.count)

    def vector(self, k: KernelBuilder, number: Value) -> Vector:
        """One that may be at an edge."""
        inside = self._inside(k, number)
        if self.edges is None:
            return inside
        at_edge = self.edges.column(k.sub(number, self.count))
        return Vector(number, k.select(k.compare("lt", number, self.count), inside.column, at_edge))

    def _inside(self, k: KernelBuilder, number: Value) -> Vector:
        return Vector(number, k.mul(number, self.values.lanes))
