"""Wide blocks of columns in memory: several rows at a time are folded onto values that lie in a cache.

    for eight rows:
        for vector of the block: value[vector] = value[vector] + x[row, vector] + ... + x[row + 7, vector]

Each row is read from end to end, as the processor's own prefetching expects of memory: where narrow blocks hold their
values in registers, it sees short pieces far apart. The order of the elements is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I8, KernelBuilder, Operand, Value
from xlapy.codegen.registers import Element, flatten, splat, unflatten
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target

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


def vectors_of_block(vectors: int, groups: int, vector_bytes: int, value_bytes: int) -> int:
    """How many vectors make a wide block, of so many in a row and of so many groups of rows: whole rows, or, where
    there are few to share out, pages or shorter pieces of them. `value_bytes` have the values of a vector."""
    blocks = -(-vectors * value_bytes // MOST_BYTES)
    if groups * blocks < MANY_BLOCKS:
        blocks = max(1, vectors * vector_bytes // PAGE_BYTES)
    if groups * blocks < FEW_BLOCKS:
        blocks = min(-(-FEW_BLOCKS // groups), max(1, vectors * vector_bytes // LEAST_PIECE_BYTES))
    return min(-(-vectors // blocks), MOST_BYTES // value_bytes)


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


def first_column(ix: Indexing, vector: Value, columns: Value) -> Value:
    """Of a vector, the last of which overlaps the one before it."""
    return ix.k.smin(ix.k.mul(vector, ix.lanes), ix.k.sub(columns, ix.lanes))


Fold = Callable[[Value, Sequence[Element], Value, int], Sequence[Element]]
"""What a vector has folded, when elements of so many rows, from one of a number on, are folded onto what it had."""


def fold_rows(
    k: KernelBuilder, values: BlockValues, count: Value, length: Operand, rows: int, fold: Fold, *, weight: int = 1
) -> None:
    """Folds `length` rows onto the values of `count` vectors, about `weight`, so many `rows` at a time: a power of
    two."""

    def several(begin: Operand, end: Operand, together: int) -> None:
        with listening_loop(k, begin, end, together, weight=weight) as group, k.loop(0, count) as vectors:
            vector = vectors.index
            values.store(vector, fold(vector, values.load(vector), group.index, together))

    whole = length // rows * rows if isinstance(length, int) else k.and_(length, -rows)
    several(0, whole, rows)
    if not (isinstance(length, int) and length == whole):
        several(whole, length, 1)
