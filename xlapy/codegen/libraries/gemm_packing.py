"""Packing: a strip of an operand, rearranged so that a tile reads it front to back.

    pack(depth, source, across, along, valid, packed)

A strip is as many rows of A (or columns of B) as a tile has; packed, it holds for each step along K the elements of
all of them side by side, as the tile wants them: widened, two to a pair, re beside im. `across` is the distance in
bytes between rows of A (columns of B), `along` that between steps of K. Full strips of the two usual layouts are
copied or transposed vector by vector; edges and unusual layouts go one element at a time, and what is missing is zero.

A vector store may write beyond the step it belongs to, never in front of it: the next step repairs that, and behind
the last one each strip has `SLACK_BYTES` of room.
"""

from __future__ import annotations

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_tile import TileShape
from xlapy.codegen.libraries.gemm_types import GemmType
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.target import Target

SLACK_BYTES = 64

PACK_PARAMETERS = [("depth", I64), ("source", PTR), ("across", I64), ("along", I64), ("valid", I64), ("packed", PTR)]
"""`depth` counts elements along K, `valid` the reals that the strip has across."""


def emit_packing(module: Module, target: Target, kind: GemmType, shape: TileShape, name: str, width: int) -> None:
    """Writes the function `name` for strips of `width` reals."""
    attributes = f"nounwind {target.function_attributes}".rstrip()
    noalias = {"source": "noalias", "packed": "noalias"}
    with KernelBuilder(module, name, PACK_PARAMETERS, None, attributes=attributes, parameter_attributes=noalias) as k:
        PackingEmitter(k, kind, shape, width).emit()


class PackingEmitter:
    def __init__(self, k: KernelBuilder, kind: GemmType, shape: TileShape, width: int) -> None:
        self._k = k
        self._kind = kind
        self._lanes = shape.lanes
        self._has_masks = shape.has_masks
        self._width = width
        self._element_bytes = kind.element.bytes * kind.parts
        self._steps = k.lshr(k.add(k.parameters["depth"], kind.pair - 1), kind.pair - 1)
        self._whole_steps = k.lshr(k.parameters["depth"], kind.pair - 1)

    def emit(self) -> None:
        k = self._k
        is_full = k.compare("eq", k.parameters["valid"], self._width)
        is_row = k.compare("eq", k.parameters["across"], self._element_bytes)
        is_column = k.compare("eq", k.parameters["along"], self._element_bytes)

        def otherwise() -> None:
            if self._kind.parts == 1:
                k.if_else(k.and_(is_full, is_column), self._transpose, self._one_by_one_from_start)
            else:
                self._one_by_one_from_start()

        k.if_else(k.and_(is_full, is_row), self._copy, otherwise)

    # Elements side by side across the strip: copies

    def _copy(self) -> None:
        k = self._k
        with k.loop(0, self._whole_steps) as loop:
            for start in range(0, self._width, self._lanes):
                count = min(self._lanes, self._width - start)
                self._store(loop.index, start, self._across(loop.index, start, count))
        self._one_by_one(self._whole_steps)

    def _across(self, step: Value, start: int, count: int) -> Value:
        """`count` packed elements of one step, in a vector."""
        k, kind = self._k, self._kind
        place = k.gep(self._source(0, k.mul(step, kind.pair)), start * kind.element.bytes)
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
        if self._has_masks and type.bits >= 32:
            mask = k.compare("lt", k.lane_numbers(type.with_kind("i32")), count)
            return k.masked_load(place, type, mask)
        vector = k.const(type, 0)
        for lane in range(count):
            vector = k.insert(vector, k.load(k.gep(place, lane * type.bytes), type.element), lane)
        return vector

    # Elements side by side along K: transposition of square blocks

    def _transpose(self) -> None:
        k, lanes = self._k, self._lanes
        blocks = k.and_(self._whole_steps, -lanes)
        with k.loop(0, blocks, lanes) as loop:
            columns = [self._transposed_block(loop.index, start) for start in range(0, self._width, lanes)]
            for step in range(lanes):
                for start, block in zip(range(0, self._width, lanes), columns, strict=True):
                    self._store(k.add(loop.index, step), start, block[step])
        self._one_by_one(blocks)

    def _transposed_block(self, step: Value, start: int) -> list[Value]:
        """For each of `lanes` steps, the packed elements of the strip from `start` on."""
        k = self._k
        zero = k.const(self._kind.packed.with_lanes(self._lanes), 0)
        rows = [self._along(step, start + row) if start + row < self._width else zero for row in range(self._lanes)]
        return transposed(k, rows)

    def _along(self, step: Value, position: int) -> Value:
        """`lanes` packed elements that follow each other along K, in a vector."""
        k, kind = self._k, self._kind
        place = self._source(position, k.mul(step, kind.pair))
        raw = k.load(place, kind.element.with_lanes(self._lanes * kind.pair))
        return kind.widen(k, raw) if kind.pair == 1 else kind.widen_adjacent(k, raw)

    # One by one

    def _one_by_one_from_start(self) -> None:
        self._one_by_one(self._k.const(I64, 0))

    def _one_by_one(self, first: Value) -> None:
        """The steps from `first` on, with any strides, as many columns as there are, and zeros for the rest."""
        k, kind = self._k, self._kind
        valid = k.parameters["valid"]
        with k.loop(first, self._steps) as step:
            with k.loop(0, valid, kind.parts) as position:
                for part in range(kind.parts):
                    whole = k.lshr(position.index, kind.parts - 1)
                    value = self._single(whole, part, step.index)
                    k.store(self._place(step.index, k.add(position.index, part)), value)
            with k.loop(valid, self._width) as position:
                k.store(self._place(step.index, position.index), k.const(kind.packed, 0))

    def _single(self, whole: Value, part: int, step: Value) -> Value:
        k, kind = self._k, self._kind
        if kind.pair == 1:
            return kind.widen(k, k.load(k.gep(self._source(whole, step), part * kind.element.bytes), kind.element))
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

    def _store(self, step: Value, start: int, vector: Value) -> None:
        self._k.store(self._place(step, start), vector)


def packed_strip_bytes(kind: GemmType, width: int, steps: int) -> int:
    """Room for one strip of `steps` steps, a multiple of a cache line."""
    return -(-(width * steps * kind.packed.bytes + SLACK_BYTES) // 64) * 64
