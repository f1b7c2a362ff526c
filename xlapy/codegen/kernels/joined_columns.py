"""Several values of each lane that come to lie side by side, as colours do: columns of the last dimension.

As many vectors as there are columns hold whole rows, so each vector of the result is picked out of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import REGISTER_BYTES, Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I32, Value
from xlapy.codegen.register_transpose import joined
from xlapy.codegen.registers import Element, memory_type, to_memory
from xlapy.hlo.shape import Shape

MOST_BYTES = 32  # of a vector that is picked out of others, where not any lanes are picked from two in one go


def store_columns(ix: Indexing, output: Array, shape: Shape, index: Index, values: Sequence[Element]) -> None:
    """Writes the values of all lanes side by side, for neighbouring elements of an array of `shape`: past the caches if
    the placement of the output says so."""
    k, count, placement = ix.k, len(values), output.placement
    place = replace(output, shape=shape).offset(ix, index)
    width = memory_type(output.shape.type).bytes
    start = k.gep(k.gep(output.pointer, k.mul(place.start, count), width), output.displacement)
    columns = [k.splat(_in_memory(ix, output, value), ix.lanes) for value in values]
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
