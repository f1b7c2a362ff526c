"""Arrays whose neighbours come in short runs from elsewhere, as the colours of pixels do that are mirrored, or cut into
blocks.

    f32[64,64,3] reverse(x), dimensions={1}        copies 64 * 64 runs of 12 bytes
    u8[64,64,3] reverse(x), dimensions={2}         and so do the pixels whose colours are named the other way round

What is close together in the result and in the operand as well is loaded in whole vectors, which trade lanes. Else a
run is copied by as few loads and stores as hold it, of which the last one may overlap the one before: their number is
known here, while a loop over the elements of each run, which has to find out where that ends, takes several times as
long. Either is done for some neighbouring runs together, and these for all levels (`hlo/moved_runs.py`) of the result.
If runs of another level lie closer together in the operand than those of a row, some of these come first: lines that
are read once need not be in a cache later. The last ones of a level overlap those before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import I8, I16, I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.tasks import TASK_BYTES
from xlapy.codegen.libraries.runs import LEAST_RUN_BYTES
from xlapy.codegen.register_transpose import picked
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.moved_runs import Level, moved_runs, near_runs
from xlapy_runtime.records import Record

LEAST_BYTES = 1 << 10  # of a result, for which loops of its own are worth their code
MOST_UNIT_BYTES = TASK_BYTES // 8  # of a unit of several levels
MOST_TOGETHER = 4  # runs that are written down one behind the other
MOST_TURNED = 4  # neighbouring elements in another order that count as a run
VECTOR_BYTES = 16  # lanes are traded in vectors of that size
MOST_VECTORS = 8  # that hold what neighbouring runs come from
WORDS = {word.bytes: word for word in (I8, I16, I32, I64)}


class Trade(Record):
    """Elements of some neighbouring runs: the places of vectors in the operand, in bytes from the first element on, and
    which lanes of them each vector of the result has."""

    type: IRType
    places: tuple[int, ...]
    picks: tuple[tuple[tuple[int, int], ...], ...]


class Blocks(Record):
    """What a level has, so many together."""

    level: Level
    size: int = 1

    @property
    def count(self) -> int:
        """How many blocks there are; the last one may overlap the one before it."""
        return -(-self.level.count // self.size)

    def first(self, k: KernelBuilder, number: Value) -> Value:
        """Where in the level a block begins."""
        first = k.mul(number, self.size)
        return k.smin(first, self.level.count - self.size) if self.level.count % self.size else first


class ShortRunsPlan(Record):
    """Runs of `run` bytes from `start` on, `together` of them neighbours in a `row` of those that there are. A unit is
    one of what is `outer`, and all that is `inner`; so many of either. Steps and places are bytes."""

    start: int
    run: int
    outer: tuple[Blocks, ...]
    inner: tuple[Blocks, ...]
    row: Level
    together: int
    trade: Trade | None
    widest: int
    units: int
    bytes_per_unit: int


def plan_short_runs(
    root: Instruction, is_input: Callable[[Instruction], bool], target: Target
) -> tuple[Instruction, ShortRunsPlan] | None:
    """The input that `root` is made of by moving short runs of its elements, and how; None if it is not."""
    if not root.shape.is_array or root.shape.bytes < LEAST_BYTES:
        return None
    pieces = moved_runs(root, is_input, 1)
    if pieces is None:
        return None
    (piece,) = pieces
    width = root.shape.bytes // root.shape.size
    levels = [Level(level.count, level.source_step * width, level.result_step * width) for level in piece.levels]
    elements = Level(piece.run, width, width)
    if piece.run == 1 and len(levels) > 1 and levels[-1].count <= MOST_TURNED:
        elements = levels.pop()
    run = elements.count * width
    if elements.count == 1 or run >= LEAST_RUN_BYTES or not levels or any(level.source_step == 0 for level in levels):
        return None
    *levels, row = levels
    trade = _trade(elements, row, width)
    if trade is None and elements.source_step != width:
        return None
    together = len(trade.picks) * VECTOR_BYTES // run if trade is not None else min(row.count, MOST_TOGETHER)
    blocks = [*map(Blocks, levels), Blocks(row, together)]
    near = near_runs(run, row, levels) if root.shape.bytes > target.l1_bytes else None
    if near is not None:
        place, size = near
        blocks[place] = Blocks(levels[place], size)
        blocks.append(Blocks(replace(levels[place], count=size)))
    outside, most_outside = 1, len(blocks) if near is None else len(blocks) - 2
    while outside < most_outside and blocks[outside - 1].level.result_step * blocks[outside - 1].size > MOST_UNIT_BYTES:
        outside += 1
    units = math.prod(each.count for each in blocks[:outside])
    plan = ShortRunsPlan(
        piece.source_start * width,
        run,
        tuple(blocks[:outside]),
        tuple(blocks[outside:]),
        row,
        together,
        trade,
        target.vector_bytes,
        units,
        2 * root.shape.bytes // units,
    )
    return piece.source, plan


def _trade(elements: Level, row: Level, width: int) -> Trade | None:
    """How as few neighbouring runs as fill vectors trade lanes, if these come from so few vectors that it pays."""
    run = elements.count * width
    count = VECTOR_BYTES // math.gcd(run, VECTOR_BYTES)
    if len(_parts(run, VECTOR_BYTES)) == 1 and run >= WORDS[max(WORDS)].bytes and elements.source_step == width:
        return None
    type = WORDS.get(math.gcd(elements.source_step, row.source_step, width))
    if type is None or row.count < count:
        return None
    per_element, lanes = width // type.bytes, VECTOR_BYTES // type.bytes
    sources = [
        number * row.source_step + at * elements.source_step + part * type.bytes
        for number in range(count)
        for at in range(elements.count)
        for part in range(per_element)
    ]
    first, window = min(sources), max(sources) + type.bytes - min(sources)
    loaded = min(VECTOR_BYTES, window)  # less than a vector, where elements are repeated
    if window > MOST_VECTORS * VECTOR_BYTES or loaded == type.bytes:
        return None
    places = [min(at, window - loaded) for at in range(0, window, VECTOR_BYTES)]

    def pick(source: int) -> tuple[int, int]:
        at = source - first
        vector = min(at // VECTOR_BYTES, len(places) - 1)
        return vector, (at - places[vector]) // type.bytes

    picks = [pick(source) for source in sources]
    vectors = [tuple(picks[at : at + lanes]) for at in range(0, len(picks), lanes)]
    return Trade(type.with_lanes(loaded // type.bytes), tuple(first + place for place in places), tuple(vectors))


def emit_short_runs(
    k: KernelBuilder, plan: ShortRunsPlan, source: Array, result: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end)."""
    parts = _parts(plan.run, plan.widest)

    def at_block(places: Sequence[tuple[Blocks, Value]]) -> None:
        """Copies the runs of a block."""
        own, to = k.gep(source.pointer, source.displacement + plan.start), k.gep(result.pointer, result.displacement)
        for blocks, number in places:
            first = blocks.first(k, number)
            own, to = k.gep(own, first, blocks.level.source_step), k.gep(to, first, blocks.level.result_step)
        if plan.trade is not None:
            _trade_lanes(k, plan.trade, own, to, source.alias, result.alias)
            return
        for run in range(plan.together):
            here, there = run * plan.row.source_step, run * plan.row.result_step
            loaded = [k.load(k.gep(own, here + at), type, 1, source.alias) for at, type in parts]
            for (at, _), value in zip(parts, loaded, strict=True):
                k.store(k.gep(to, there + at), value, 1, result.alias)

    def from_level(inner: Sequence[Blocks], known: Sequence[tuple[Blocks, Value]]) -> None:
        if not inner:
            at_block(known)
            return
        with k.loop(0, inner[0].count) as loop:
            from_level(inner[1:], [*known, (inner[0], loop.index)])

    with k.loop(begin, end) as units:
        digits = Indexing(k, 1).delinearize(Coordinate(units.index), [blocks.count for blocks in plan.outer])
        starts = [digit.start for digit in digits]
        from_level(plan.inner, list(zip(plan.outer, starts, strict=True)))


def _trade_lanes(
    k: KernelBuilder, trade: Trade, own: Value, to: Value, own_alias: str | None, to_alias: str | None
) -> None:
    vectors = [k.load(k.gep(own, place), trade.type, 1, own_alias) for place in trade.places]
    for number, picks in enumerate(trade.picks):
        k.store(k.gep(to, number * VECTOR_BYTES), picked(k, vectors, picks), 1, to_alias)


def _parts(run: int, widest: int) -> list[tuple[int, IRType]]:
    """Where in a run what is loaded at once begins, and as what."""
    parts, at = [], 0
    while at < run:
        size = min(widest, 1 << ((run - at).bit_length() - 1))
        if size < run - at < widest and 2 * size <= run:
            size *= 2  # one that overlaps, instead of several smaller ones
        at = min(at, run - size)
        parts.append((at, WORDS.get(size, I8.with_lanes(size))))
        at += size
    return parts
