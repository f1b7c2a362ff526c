"""Transposing blocks that lie in vector registers: square ones, and those with fewer columns than a vector has lanes,
of which rows of a piece take the fewest instructions. Blocks with any number of columns are cut into such ones.

In square ones, lanes are exchanged within pieces of 128 bits first, and then these pieces as a whole: processors do
either in a cycle, but take several to bring any lane anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.ir import IRType, KernelBuilder, Value

_PIECE_BITS = 128
_LONGEST_BYTES = 64  # of a vector: four pieces


def transposed(k: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square block: as many rows as each has lanes, a power of two."""
    lanes = len(rows)
    size = min(lanes, _PIECE_BITS // rows[0].type.element.bits)
    groups = [_transposed_in_pieces(k, rows[first : first + size], size) for first in range(0, lanes, size)]
    columns = [_transposed_by_pieces(k, [group[number] for group in groups], size) for number in range(size)]
    return [columns[number][piece] for piece in range(lanes // size) for number in range(size)]


def _transposed_in_pieces(k: KernelBuilder, rows: Sequence[Value], size: int) -> list[Value]:
    """Transposes `size` rows piece by piece: interleaving the first half of them with the second, as often as it can be
    halved."""
    half, lanes = size // 2, rows[0].type.lanes
    low = [lane for first in range(0, lanes, size) for at in range(first, first + half) for lane in (at, lanes + at)]
    high = [lane + half for lane in low]
    block = list(rows)
    for _ in range(size.bit_length() - 1):
        block = [k.shuffle(block[row], block[row + half], order) for row in range(half) for order in (low, high)]
    return block


def _transposed_by_pieces(k: KernelBuilder, vectors: Sequence[Value], size: int) -> list[Value]:
    """The same of pieces of `size` lanes, of as many vectors as each has pieces."""
    if len(vectors) == 1:
        return list(vectors)
    lanes = vectors[0].type.lanes
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = []
    for parity in (0, size):
        order = [at + lane for at in range(parity, 2 * lanes, 2 * size) for lane in range(size)]
        halves.append(_transposed_by_pieces(k, [k.shuffle(one, other, order) for one, other in pairs], size))
    return [column for both in zip(*halves, strict=True) for column in both]


def lane_sums(k: KernelBuilder, vectors: Sequence[Value]) -> list[Value]:
    """The sums of the lanes of each vector, side by side in vectors of a piece, the last of which may have more lanes
    than there are sums. A few vectors are added up in less time than each of them by halves."""
    size = min(vectors[0].type.lanes, _PIECE_BITS // vectors[0].type.element.bits)
    groups = [list(vectors[first : first + size]) for first in range(0, len(vectors), size)]
    groups[-1] += [vectors[-1]] * (size - len(groups[-1]))
    return [_sum_of_pieces(k, _sums_in_pieces(k, group), size) for group in groups]


def _sums_in_pieces(k: KernelBuilder, block: Sequence[Value]) -> Value:
    """Of as many vectors as a piece has lanes: in each piece the sum that each vector has there."""
    size, lanes = len(block), block[0].type.lanes
    half = size // 2
    low = [lane for first in range(0, lanes, size) for at in range(first, first + half) for lane in (at, lanes + at)]
    high = [lane + half for lane in low]
    while len(block) > 1:
        pairs = list(zip(block[: len(block) // 2], block[len(block) // 2 :], strict=True))
        block = [k.add(k.shuffle(*pair, low), k.shuffle(*pair, high)) for pair in pairs]
    return block[0]


def _sum_of_pieces(k: KernelBuilder, vector: Value, size: int) -> Value:
    while vector.type.lanes > size:
        half = vector.type.lanes // 2
        vector = k.add(k.shuffle(vector, None, range(half)), k.shuffle(vector, None, range(half, 2 * half)))
    return vector


def row_piece(type: IRType) -> IRType:
    """The part of a vector of that type in which lanes are exchanged."""
    return type.with_lanes(min(type.lanes, _PIECE_BITS // type.element.bits))


def columns_of_rows(k: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a block whose rows are a piece or longer, a power of two of lanes; there are no fewer rows."""
    size = rows[0].type.lanes
    if size == row_piece(rows[0].type).lanes:
        return _transposed_in_pieces(k, [concatenated(k, rows[row::size]) for row in range(size)], size)
    squares = [transposed(k, rows[first : first + size]) for first in range(0, len(rows), size)]
    return [concatenated(k, column) for column in zip(*squares, strict=True)]


def rows_of_columns(k: KernelBuilder, columns: Sequence[Value]) -> list[Value]:
    """The inverse of `columns_of_rows`: one row for each lane."""
    size, lanes = len(columns), columns[0].type.lanes
    if size == row_piece(columns[0].type).lanes:
        rows = _transposed_in_pieces(k, columns, size)
        return [k.shuffle(row, None, range(first, first + size)) for first in range(0, lanes, size) for row in rows]
    parts = [range(first, first + size) for first in range(0, lanes, size)]
    return [row for part in parts for row in transposed(k, [k.shuffle(column, None, part) for column in columns])]


def cut(count: int, type: IRType) -> list[range]:
    """Which columns of so many make blocks that are turned over, if as many rows are in the lanes of a vector of that
    type. Those at the end may overlap others; of very few columns there are none.

    Blocks of the longest vectors are a piece wide: their pieces are put together while they are loaded, and the first
    half of the exchanges is saved. Processors exchange lanes of such vectors, and of any others meanwhile, in one place
    only. Blocks of shorter vectors are as wide as these, and one column that is left stays alone."""
    least, parts = row_piece(type).lanes, []
    are_pieces = type.bytes * type.lanes >= _LONGEST_BYTES
    most = least if are_pieces else min(type.lanes, 1 << count.bit_length() - 1)
    at = 0
    while at < count and least <= min(most, count):
        left = count - at
        size = min(most, max(least, 1 << (left - 1).bit_length())) if left > 1 or are_pieces else 1
        at = min(at, count - size)
        parts.append(range(at, at + size))
        at += size
    return parts


def concatenated(k: KernelBuilder, vectors: Sequence[Value]) -> Value:
    """One vector of a power of two of them."""
    while len(vectors) > 1:
        lanes = range(2 * vectors[0].type.lanes)
        vectors = [k.shuffle(low, high, lanes) for low, high in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def dealt(k: KernelBuilder, vectors: Sequence[Value], parts: int = 1) -> list[Value]:
    """The columns of a block whose rows of `len(vectors)` elements follow each other in the vectors. An element has so
    many `parts`, each in a lane."""
    count, elements = len(vectors), vectors[0].type.lanes // parts
    picks = [[divmod(at * count + number, elements) for at in range(elements)] for number in range(count)]
    return [picked(k, vectors, _by_parts(each, parts)) for each in picks]


def joined(k: KernelBuilder, columns: Sequence[Value], parts: int = 1) -> list[Value]:
    """The inverse of `dealt`: rows that follow each other, of the elements of as many columns."""
    count, elements = len(columns), columns[0].type.lanes // parts
    picks = [divmod(at, count)[::-1] for at in range(count * elements)]
    rows = [picks[start : start + elements] for start in range(0, len(picks), elements)]
    return [picked(k, columns, _by_parts(row, parts)) for row in rows]


def _by_parts(picks: Sequence[tuple[int, int]], parts: int) -> list[tuple[int, int]]:
    """The lanes (vector, lane) of elements (vector, element)."""
    return [(vector, element * parts + part) for vector, element in picks for part in range(parts)]


def picked(k: KernelBuilder, vectors: Sequence[Value], picks: Sequence[tuple[int, int]]) -> Value:
    """The lanes (vector, lane) of several vectors, of which one more is looked at in each step."""
    lanes = len(picks)
    used = sorted({vector for vector, _ in picks})
    chosen = vectors[used[0]]
    own = [lane if vector == used[0] else 0 for vector, lane in picks]
    if len(used) == 1:
        return k.shuffle(chosen, None, own)
    for number in used[1:]:
        own = [lanes + lane if vector == number else kept for (vector, lane), kept in zip(picks, own, strict=True)]
        chosen = k.shuffle(chosen, vectors[number], own)
        own = list(range(lanes))
    return chosen


def blended(k: KernelBuilder, vectors: Sequence[Value], picks: Sequence[tuple[int, int]]) -> Value:
    """The same for lanes of which no two have the same place: they are chosen where they are, and moved once."""
    lanes = len(picks)
    source = {lane: vector for vector, lane in picks}
    first, *others = sorted({vector for vector, _ in picks})
    chosen = vectors[first]
    for number in others:
        own = [lanes + lane if source[lane] == number else lane for lane in range(lanes)]
        chosen = k.shuffle(chosen, vectors[number], own)
    return k.shuffle(chosen, None, [lane for _, lane in picks])
