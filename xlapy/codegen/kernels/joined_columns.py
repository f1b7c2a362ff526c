"""Several values of each lane that come to lie side by side, as colours do: columns of the last dimension.

As many vectors as there are columns hold whole rows, so each vector of the result is picked out of them. Of many
columns that takes too long, and LLVM longer still: these are turned over, and stored row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import REGISTER_BYTES, Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I32, KernelBuilder, Value
from xlapy.codegen.register_transpose import cut, joined, rows_of_columns
from xlapy.codegen.registers import Element, memory_type, to_memory
from xlapy.hlo.shape import Shape

LEAST_TURNED = 4  # columns, of which each vector of the result would be picked out of as many
MOST_BYTES = 32  # of a vector that is picked out of others, where not any lanes are picked from two in one go


def store_columns(ix: Indexing, output: Array, shape: Shape, index: Index, values: Sequence[Element]) -> None:
    """Writes the values of all lanes side by side, for neighbouring elements of an array of `shape`: past the caches if
    the placement of the output says so."""
    k, count, placement = ix.k, len(values), output.placement
    place = replace(output, shape=shape).offset(ix, index)
    width = memory_type(output.shape.type).bytes
    start = k.gep(k.gep(output.pointer, k.mul(place.start, count), width), output.displacement)
    columns = [k.splat(_in_memory(ix, output, value), ix.lanes) for value in values]
    if ix.lanes > 1 and count >= LEAST_TURNED and cut(count, columns[0].type):
        if placement is None:
            _store_rows(k, start, columns, output.alias)
        else:
            _stream_rows(k, start, columns, placement.is_off)
        return
    vectors = columns if ix.lanes == 1 else _joined(ix, columns, width)
    size = vectors[0].type.lanes * width

    def store(align: int | None) -> None:
        for number, vector in enumerate(vectors):
            pointer = k.gep(start, number * size)
            k.store(pointer, vector, align=align, alias=output.alias, nontemporal=align is not None)

    if placement is None:
        store(None)
    else:
        k.if_else(placement.is_off, lambda: store(None), lambda: store(size), likely=False)


def _store_rows(k: KernelBuilder, start: Value, columns: Sequence[Value], alias: str | None) -> None:
    """Writes the rows of the columns, one behind the other, in parts."""
    type, count = columns[0].type, len(columns)
    for part in cut(count, type):
        block = columns[part.start : part.stop]
        rows = (
            [k.extract(block[0], lane) for lane in range(type.lanes)] if len(part) == 1 else rows_of_columns(k, block)
        )
        for number, row in enumerate(rows):
            k.store(k.gep(start, number * count + part.start, type.bytes), row, alias=alias)


def _stream_rows(k: KernelBuilder, start: Value, columns: Sequence[Value], is_off: Value) -> None:
    """The same past the caches, which whole vectors are put together for in the stack frame, unless the place
    `is_off`."""
    type = columns[0].type
    size = type.bytes * type.lanes
    room = k.alloca(type, len(columns), align=size)
    _store_rows(k, k.select(is_off, start, room), columns, None)
    with k.if_(k.not_(is_off)), k.loop(0, len(columns)) as loop:
        k.store(
            k.gep(start, loop.index, size), k.load(k.gep(room, loop.index, size), type), align=size, nontemporal=True
        )


def _in_memory(ix: Indexing, output: Array, value: Element) -> Value:
    assert isinstance(value, Value)
    return to_memory(ix.k, value, output.shape.type)


def _joined(ix: Indexing, columns: Sequence[Value], width: int) -> list[Value]:
    """The rows of the columns, one behind the other: in vectors as long as the target has them."""
    k = ix.k
    is_one_register = k.module.has_permute and width >= I32.bytes
    lanes = min(ix.lanes, (REGISTER_BYTES if is_one_register else MOST_BYTES) // width)
    parts = [[k.shuffle(column, None, range(at, at + lanes)) for column in columns] for at in range(0, ix.lanes, lanes)]
    return [vector for part in parts for vector in joined(k, part)]
