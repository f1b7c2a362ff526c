"""Steps that look at one number at a time: copies between any two places, and products with numbers of the table.

    copy        pairs to pairs
    turn        pairs to pairs, lines of the source to columns of the target
    copy_in     real numbers to pairs
    copy_out    pairs to real numbers
    clear       makes numbers zero
    times       pairs times numbers of the table
    times_rows  the same for several transforms, each row of them times one number

Distances are those of the inner loop. What is next to each other on both sides goes by vectors.
"""

from __future__ import annotations

from xlapy.codegen.ir import Value
from xlapy.codegen.libraries.fft_butterflies import multiply
from xlapy.codegen.libraries.fft_step import StepEmitter


def emit_copy(e: StepEmitter, source_parts: int, target_parts: int) -> None:
    """Copies what both sides have: pairs (two parts) or their real parts. Imaginary parts become zero otherwise."""
    k, lanes = e.k, e.lanes
    is_dense = k.and_(
        k.compare("eq", e["source_distance"], source_parts), k.compare("eq", e["target_distance"], target_parts)
    )
    inner = e.inner
    whole = k.select(is_dense, k.and_(inner, -lanes), 0)
    with k.loop(0, e["count"]) as rows:
        source = e.moved(e.source, k.mul(rows.index, e["source_step"]))
        target = e.moved(e.target, k.mul(rows.index, e["target_step"]))
        with k.loop(0, whole, lanes) as vectors:
            value = _load(e, e.moved(source, k.mul(vectors.index, source_parts)), source_parts, lanes)
            _store(e, e.moved(target, k.mul(vectors.index, target_parts)), value, source_parts, target_parts, lanes)
        with k.loop(whole, inner) as each:
            value = _load(e, e.moved(source, k.mul(each.index, e["source_distance"])), source_parts, 1)
            place = e.moved(target, k.mul(each.index, e["target_distance"]))
            _store(e, place, value, source_parts, target_parts, 1)


def _load(e: StepEmitter, place: Value, parts: int, lanes: int) -> Value:
    return e.k.load(place, e.type.with_lanes(parts * lanes))


def _store(e: StepEmitter, place: Value, value: Value, source_parts: int, target_parts: int, lanes: int) -> None:
    k = e.k
    if source_parts > target_parts:
        value = k.shuffle(value, None, range(0, 2 * lanes, 2))
    value = k.mul(value, _factors(e, source_parts, target_parts, lanes))
    if source_parts < target_parts:
        zero = k.const(value.type, 0.0)
        value = e.shuffled(value, zero, [lane + lanes * part for lane in range(lanes) for part in range(2)])
    k.store(place, value)


def _factors(e: StepEmitter, source_parts: int, target_parts: int, lanes: int) -> Value:
    """The factors of the step in all lanes, in turns if there are pairs on both sides."""
    if source_parts + target_parts < 4:
        return e.factor("re_factor", lanes)
    pair = e.shuffled(e.factor("re_factor", 1), e.factor("im_factor", 1), [0, 1])
    return e.k.shuffle(pair, None, [0, 1] * lanes)


def emit_turn(e: StepEmitter) -> None:
    """Squares of as many pairs each way as a vector holds; those at an end overlap the ones before. There are `count`
    lines of `inner` pairs: each of the two is enough for a square, and 0 stands for the number of columns."""
    k, side = e.k, e.lanes // 2
    count, inner = e.size("count"), e.inner
    with k.loop(0, count, side) as lines, k.loop(0, inner, side) as pairs:
        line, pair = k.smin(lines.index, k.sub(count, side)), k.smin(pairs.index, k.sub(inner, side))
        source = e.moved(e.moved(e.source, k.mul(line, e["source_step"])), k.mul(pair, 2))
        target = e.moved(e.moved(e.target, k.mul(pair, e["target_step"])), k.mul(line, 2))
        square = []
        for _ in range(side):
            square.append(k.load(source, e.vector))
            source = e.moved(source, e["source_step"])
        for column in _turned(e, square):
            k.store(target, column)
            target = e.moved(target, e["target_step"])


def _turned(e: StepEmitter, square: list[Value]) -> list[Value]:
    """The columns of a square of pairs: the first half of the lines with the second in turns, as often as it goes."""
    side = len(square)
    half = side // 2
    low, high = (
        [2 * (lane + line * side) + part for lane in lanes for line in range(2) for part in range(2)]
        for lanes in (range(half), range(half, side))
    )
    for _ in range(side.bit_length() - 1):
        square = [
            e.k.shuffle(square[line], square[line + half], order) for line in range(half) for order in (low, high)
        ]
    return square


def emit_clear(e: StepEmitter) -> None:
    """`count` real numbers."""
    e.k.memset(e.target, 0, e.k.mul(e["count"], e.type.bytes))


def emit_times(e: StepEmitter) -> None:
    k = e.k
    with k.loop(0, e["count"], e.lanes) as vectors:
        at = k.mul(e.clamped(vectors.index, e["count"]), 2)
        root = e.load_roots(e.moved(e.roots, k.mul(vectors.index, 2)), 0)
        value = multiply(k, e.load_pairs(e.moved(e.source, at)), root)
        e.store_pairs(e.moved(e.target, at), e.scaled(value))


def emit_times_rows(e: StepEmitter) -> None:
    k, inner = e.k, e.inner
    with k.loop(0, e["count"]) as rows:
        source = e.moved(e.source, k.mul(rows.index, e["source_step"]))
        target = e.moved(e.target, k.mul(rows.index, e["target_step"]))
        root = e.load_root(e.moved(e.roots, k.mul(rows.index, 2)), 0)
        with k.loop(0, inner, e.lanes) as vectors:
            at = k.mul(e.clamped(vectors.index, inner), 2)
            value = multiply(k, e.load_pairs(e.moved(source, at)), root)
            e.store_pairs(e.moved(target, at), e.scaled(value))
