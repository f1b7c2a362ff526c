"""Packing: a strip of an operand, rearranged so that a tile reads it front to back.

    pack(depth, source, across, along, valid, packed)

A strip is as many rows of A (or columns of B) as a tile has; packed, it holds for each step along K the elements of
all of them side by side, as the tile wants them: widened, two to a pair, re beside im. `across` is the distance in
bytes between rows of A (columns of B), `along` that between steps of K. Strips of the two usual layouts are copied or
transposed vector by vector, up to the last one that a row or column is in; unusual layouts go one element at a time.
What is missing in a vector are numbers, some or other, that nobody reads.

    copy_rows(depth, source, across, along, valid, packed, pitch)

keeps rows of A that are contiguous along K as they are but for being widened, `pitch` bytes apart: tiles read them as
quickly, and a copy takes a third of the time that turning them round does. Those that need not be widened are
read where they lie, unless vectors are short and they are read often: then they are turned round, too.

A vector store may write beyond the step it belongs to, never in front of it: the next step repairs that, and behind
the last one each strip has `SLACK_BYTES` of room.

    transpose(rows, offset, packed, step_bytes)

packs one square block: as many steps of K as a vector has lanes, from `offset` bytes behind the addresses in `rows`.

    transpose_some(rows, offset, packed, step_bytes, count)

packs fewer steps, where a part of a vector can be read.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import F64, I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_tile import TileShape, first_lanes
from xlapy.codegen.libraries.gemm_types import GemmType
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.target import Target

SLACK_BYTES = 64

PACK_PARAMETERS = [("depth", I64), ("source", PTR), ("across", I64), ("along", I64), ("valid", I64), ("packed", PTR)]
"""`depth` counts elements along K, `valid` the reals that the strip has across."""


_STEPS_AHEAD = 16
"""How early the rows of what is copied step by step are fetched: they lie apart, so that the processor does not foresee
them (Zen 3, weights of a convolution of 14 by 14 with 256 features: 0.98 of the time of all)."""

_BLOCK_PARAMETERS = [("rows", PTR), ("offset", I64), ("packed", PTR), ("step_bytes", I64)]


def emit_packing(
    module: Module, target: Target, kind: GemmType, shape: TileShape, prefix: str, *, turns_rows: bool
) -> None:
    """Writes `PREFIX_pack_a`, which is fast for rows along K if it `turns_rows`, `PREFIX_pack_b`, `PREFIX_copy_rows`,
    and what they call."""
    attributes = f"nounwind {target.function_attributes}".rstrip()
    if _has_blocks(kind):
        name = transpose_name(prefix)
        with KernelBuilder(module, name, _BLOCK_PARAMETERS, None, attributes=attributes) as k:
            _emit_block(k, kind, _block_lanes(kind, shape))
        if _reads_parts(kind, shape):
            parameters = [*_BLOCK_PARAMETERS, ("count", I64)]
            with KernelBuilder(module, _transpose_some_name(prefix), parameters, None, attributes=attributes) as k:
                _emit_some_steps(k, kind, _block_lanes(kind, shape))
    emitters: list[tuple[str, list[tuple[str, IRType]], type[PackingEmitter], int]] = [
        ("pack_a", PACK_PARAMETERS, TurningEmitter if turns_rows else PackingEmitter, shape.rows),
        ("pack_b", PACK_PARAMETERS, TurningEmitter, shape.columns),
        ("copy_rows", [*PACK_PARAMETERS, ("pitch", I64)], RowCopyEmitter, shape.rows),
    ]
    noalias = {"source": "noalias", "packed": "noalias"}
    for name, parameters, emitter, width in emitters:
        with KernelBuilder(
            module, f"{prefix}_{name}", parameters, None, attributes=attributes, parameter_attributes=noalias
        ) as k:
            emitter(k, kind, shape, width, prefix).emit()


def transpose_name(prefix: str) -> str:
    return f"{prefix}_transpose"


def _transpose_some_name(prefix: str) -> str:
    return f"{prefix}_transpose_some"


def _has_blocks(kind: GemmType) -> bool:
    """Whether elements fit a lane: two complex parts of 32 bits do."""
    return kind.element.bits * kind.parts <= I64.bits


def _block_lanes(kind: GemmType, shape: TileShape) -> int:
    """Rows, and steps, of a block."""
    return shape.lanes // kind.parts


def _block_vector(kind: GemmType, lanes: int) -> IRType:
    """What is loaded of a row."""
    element = kind.element if kind.parts == 1 else F64
    return element.with_lanes(lanes * kind.pair)


def _reads_parts(kind: GemmType, shape: TileShape) -> bool:
    """Whether a part of a vector along K can be read."""
    return shape.has_masks and kind.element.bits >= I32.bits


def _emit_block(k: KernelBuilder, kind: GemmType, lanes: int) -> None:
    """Elements side by side along K, of as many rows, to steps in which rows are side by side."""
    given, type = k.parameters, _block_vector(kind, lanes)
    rows = [packed_along(k, kind, _place_in_row(k, row), type) for row in range(lanes)]
    for step, vector in enumerate(transposed(k, rows)):
        k.store(k.gep(given["packed"], k.mul(given["step_bytes"], step)), vector)


def _emit_some_steps(k: KernelBuilder, kind: GemmType, lanes: int) -> None:
    """The same of the first steps only."""
    given, type = k.parameters, _block_vector(kind, lanes)
    mask = first_lanes(k, lanes, given["count"])
    rows = [k.masked_load(_place_in_row(k, row), type, mask) for row in range(lanes)]
    for step, vector in enumerate(transposed(k, rows)):
        with k.if_(k.compare("gt", given["count"], step)):
            k.store(k.gep(given["packed"], k.mul(given["step_bytes"], step)), vector)


def _place_in_row(k: KernelBuilder, row: int) -> Value:
    """Where a block begins in one of its rows."""
    return k.gep(k.load(k.gep(k.parameters["rows"], row * PTR.bytes), PTR), k.parameters["offset"])


def packed_along(k: KernelBuilder, kind: GemmType, place: Value, type: IRType) -> Value:
    """A vector of packed elements that follow each other along K."""
    raw = k.load(place, type)
    return kind.widen(k, raw) if kind.pair == 1 else kind.widen_adjacent(k, raw)


class PackingEmitter:
    def __init__(self, k: KernelBuilder, kind: GemmType, shape: TileShape, width: int, prefix: str) -> None:
        self._k = k
        self._kind = kind
        self._lanes = shape.lanes
        self._width = width
        self._shape = shape
        self._prefix = prefix
        self._element_bytes = kind.element.bytes * kind.parts
        self._steps = k.lshr(k.add(k.parameters["depth"], kind.pair - 1), kind.pair_bits)
        self._whole_steps = k.lshr(k.parameters["depth"], kind.pair_bits)

    def emit(self) -> None:
        k = self._k
        is_row = k.compare("eq", k.parameters["across"], self._element_bytes)
        copy = functools.partial(k.if_else, self._is_full(), self._copy, self._copy_some)
        self._one_by_one(k.if_else(is_row, lambda: copy()[0], self._along)[0])

    def _is_full(self) -> Value:
        """Whether the strip has all its rows or columns."""
        return self._k.compare("eq", self._k.parameters["valid"], self._width)

    def _along(self) -> Value:
        """Packs some steps of what is contiguous along K, if that can be done; how many."""
        return self._k.const(I64, 0)

    def _copy(self) -> Value:
        """Copies the whole steps; how many there are."""
        k, kind = self._k, self._kind
        ahead = k.mul(k.parameters["along"], _STEPS_AHEAD)
        with k.loop(0, self._whole_steps) as loop:
            step = self._source(0, k.mul(loop.index, kind.pair))
            k.prefetch(k.gep(step, ahead), self._width * kind.element.bytes)
            for start in range(0, self._width, self._lanes):
                count = min(self._lanes, self._width - start)
                self._store(loop.index, start, self._across(loop.index, start, count))
        return self._whole_steps

    def _copy_some(self) -> Value:
        """The same for some columns: those that make no whole vector are read by a mask, or else with others before
        them, if there are as many."""
        k, kind, lanes = self._k, self._kind, self._lanes
        valid = k.parameters["valid"]
        whole, last = k.and_(valid, -lanes), k.sub(valid, lanes)
        has_rest = k.compare("lt", whole, valid)
        reads_parts = _reads_parts(kind, self._shape)

        def rest(step: Value) -> None:
            if reads_parts:
                self._store(step, whole, self._load_first(step, whole, k.sub(valid, whole)))
                return
            self._store(step, whole, k.const(kind.packed.with_lanes(lanes), 0))
            self._store(step, last, self._across(step, last, lanes))

        def columns() -> Value:
            with k.loop(0, self._whole_steps) as step:
                with k.loop(0, whole, lanes) as column:
                    self._store(step.index, column.index, self._across(step.index, column.index, lanes))
                with k.if_(has_rest):
                    rest(step.index)
            return self._whole_steps

        if reads_parts:
            return columns()
        return k.if_else(k.compare("ge", last, 0), columns, lambda: k.const(I64, 0))[0]

    def _load_first(self, step: Value, column: Value, count: Value) -> Value:
        """The first `count` elements of one step from a column on, with zeros behind them (not for pairs)."""
        k, type = self._k, self._kind.element.with_lanes(self._lanes)
        place = k.gep(self._source(0, step), column, self._kind.element.bytes)
        mask = first_lanes(k, self._lanes, count)
        return self._kind.widen(k, k.masked_load(place, type, mask))

    def _across(self, step: Value, start: Value | int, count: int) -> Value:
        """`count` packed elements of one step, in a vector."""
        k, kind = self._k, self._kind
        place = k.gep(self._source(0, k.mul(step, kind.pair)), start, kind.element.bytes)
        first = self._load_some(place, count)
        if kind.pair == 1:
            return kind.widen(k, first)
        return kind.widen_pairs(k, first, self._load_some(k.gep(place, k.parameters["along"]), count))

    def _load_some(self, place: Value, count: int) -> Value:
        """The first `count` lanes of a vector; nothing behind them is touched."""
        k = self._k
        type = self._kind.element.with_lanes(self._lanes)
        if count == self._lanes:
            return k.load(place, type)
        if self._shape.has_masks and type.bits >= 32:
            mask = k.compare("lt", k.lane_numbers(type.with_kind("i32")), count)
            return k.masked_load(place, type, mask)
        vector = k.const(type, 0)
        for lane in range(count):
            vector = k.insert(vector, k.load(k.gep(place, lane * type.bytes), type.element), lane)
        return vector

    def _one_by_one(self, first: Value) -> None:
        """The steps from `first` on, with any strides, as many columns as there are, and zeros for the rest of what
        vectors have."""
        k, kind = self._k, self._kind
        valid = k.parameters["valid"]
        end = k.smin(k.and_(k.add(valid, self._lanes - 1), -self._lanes), self._width)
        with k.loop(first, self._steps) as step:
            with k.loop(0, valid, kind.parts) as position:
                whole = k.lshr(position.index, kind.parts - 1)
                k.store(self._place(step.index, position.index), self._single(whole, step.index))
            with k.loop(valid, end) as position:
                k.store(self._place(step.index, position.index), k.const(kind.packed, 0))

    def _single(self, whole: Value, step: Value) -> Value:
        """A packed element, with all its parts."""
        k, kind = self._k, self._kind
        if kind.pair == 1:
            raw = k.load(self._source(whole, step), kind.element.with_lanes(kind.parts))
            return kind.widen(k, raw)
        first = k.load(self._source(whole, k.mul(step, 2)), kind.element)
        has_second = k.compare("lt", step, self._whole_steps)
        second_place = self._source(whole, k.add(k.mul(step, 2), k.zext(has_second, I64)))
        second = k.select(has_second, k.load(second_place, kind.element), 0)
        return kind.widen_pairs(k, first, second)

    # Places

    def _source(self, position: Value | int, depth: Value) -> Value:
        """Where the element is that lies `position` across the strip and `depth` along K."""
        k = self._k
        base = k.gep(k.parameters["source"], k.mul(k.parameters["across"], position))
        return k.gep(base, k.mul(k.parameters["along"], depth))

    def _place(self, step: Value, position: Value | int) -> Value:
        k = self._k
        return k.gep(
            k.gep(k.parameters["packed"], k.mul(step, self._width * self._kind.packed.bytes)),
            position,
            self._kind.packed.bytes,
        )

    def _store(self, step: Value, start: Value | int, vector: Value) -> None:
        self._k.store(self._place(step, start), vector)


class TurningEmitter(PackingEmitter):
    """Strips of elements that are side by side along K: square blocks are transposed."""

    _can_call_some = True
    """Whether the function for fewer steps is in the same module."""

    def _along(self) -> Value:
        k = self._k
        if not _has_blocks(self._kind):
            return k.const(I64, 0)
        is_column = k.compare("eq", k.parameters["along"], self._element_bytes)
        return k.if_else(is_column, lambda: self._transpose(self._row_addresses()), lambda: k.const(I64, 0))[0]

    @property
    def _rows(self) -> int:
        """Of A, or columns of B, that a strip has; of complex elements each is two reals."""
        return self._width // self._kind.parts

    def _row_addresses(self) -> Value:
        """Where the rows are that blocks transpose, the last one as often as a block has room for."""
        k, count = self._k, padded_width(self._rows, _block_lanes(self._kind, self._shape))
        addresses = k.alloca(PTR, count)
        last = k.sub(k.lshr(k.parameters["valid"], self._kind.parts - 1), 1)
        with k.loop(0, count) as row:
            k.store(k.gep(addresses, row.index, PTR.bytes), self._source(k.smin(row.index, last), k.const(I64, 0)))
        return addresses

    def _transpose(self, rows: Value) -> Value:
        """Packs whole blocks, and what is left along K, if that can be done: as a block that repeats some steps, or one
        that has fewer. How many steps these are. Of each step the last block comes first, since what it writes beyond
        the step belongs to others."""
        k, kind, steps = self._k, self._kind, self._whole_steps
        size = _block_lanes(kind, self._shape)
        blocks = k.and_(steps, -size)
        with k.loop(0, blocks, size) as loop:
            self._blocks(rows, loop.index)

        def rest() -> Value:
            if not (self._can_call_some and _reads_parts(kind, self._shape)):
                return blocks
            self._blocks(rows, k.const(I64, 0), steps)
            return steps

        def again() -> Value:
            self._blocks(rows, k.sub(steps, size))
            return steps

        def unless_whole() -> Value:
            return k.if_else(k.compare("ge", steps, size), again, rest)[0]

        return k.if_else(k.compare("lt", blocks, steps), unless_whole, lambda: steps)[0]

    def _blocks(self, rows: Value, step: Value, count: Value | None = None) -> None:
        """The blocks of all rows that there are, from a step on."""
        k, kind = self._k, self._kind
        offset = k.mul(step, kind.pair * self._element_bytes)
        step_bytes = k.const(I64, self._width * kind.packed.bytes)
        for start in reversed(range(0, self._rows, _block_lanes(kind, self._shape))):
            place = self._place(step, start * kind.parts)
            arguments = [k.gep(rows, start * PTR.bytes), offset, place, step_bytes]

            def block(arguments: list[Value] = arguments) -> None:
                if count is None:
                    k.call(transpose_name(self._prefix), arguments)
                else:
                    k.call(_transpose_some_name(self._prefix), [*arguments, count])

            if start:
                with k.if_(self._has_row(start)):
                    block()
            else:
                block()

    def _has_row(self, number: int) -> Value:
        return self._k.compare("gt", self._k.parameters["valid"], number * self._kind.parts)


class RowCopyEmitter(PackingEmitter):
    """Rows of A as they are along K, each for itself, a vector at a time."""

    def emit(self) -> None:
        k, kind = self._k, self._kind
        reals = k.mul(self._whole_steps, kind.parts)
        in_vectors = k.and_(reals, -self._lanes)
        with k.loop(0, k.lshr(k.parameters["valid"], kind.parts - 1)) as row:
            source = self._source(row.index, k.const(I64, 0))
            goal = k.gep(k.parameters["packed"], k.mul(k.parameters["pitch"], row.index))
            below = k.mul(k.parameters["across"], self._width // kind.parts)
            with k.loop(0, in_vectors, self._lanes) as loop:
                place = k.gep(source, loop.index, kind.pair * kind.element.bytes)
                k.prefetch(k.gep(place, below), 1, level=2)
                type = kind.element.with_lanes(self._lanes * kind.pair)
                k.store(k.gep(goal, loop.index, kind.packed.bytes), packed_along(k, kind, place, type))
            with k.loop(k.lshr(in_vectors, kind.parts - 1), self._steps) as step:
                place = k.gep(goal, step.index, kind.parts * kind.packed.bytes)
                k.store(place, self._single(row.index, step.index))


def padded_width(width: int, lanes: int) -> int:
    """Rows of the blocks that make up a strip."""
    return -(-width // lanes) * lanes


def packed_strip_bytes(kind: GemmType, width: int, steps: int) -> int:
    """Room for one strip of `steps` steps, a multiple of a cache line."""
    return -(-(width * steps * kind.packed.bytes + SLACK_BYTES) // 64) * 64
