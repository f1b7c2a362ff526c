"""Packing of f32 for the matrix unit: each element as a sum of three bf16, in planes.

    pack_a(depth, source, across, along, valid, packed, seen)        32 rows of A
    pack_b(depth, source, across, along, valid, packed, seen)        32 columns of B

Parameters are those of `gemm_packing`; at `seen` magnitudes are noted (`gemm_magnitudes`). For each tile along K, 32
elements, follow the planes: first that of the elements rounded to bf16, then that of what is left, then that of what is
left then, which is exact. A plane has what tiles of the unit read: of A, for each row of the strip 16 pairs along K; of
B, for each pair those of all columns. An element and the 16th behind it make a pair, so that none changes its lane. K
is filled up with zeros; of rows and columns that a strip does not have, nothing is read afterwards.

Rounding is to nearest, and ties away from zero: that takes two instructions, and any nearest will do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from xlapy.codegen.ir import F32, I16, I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_magnitudes import SeenMagnitudes
from xlapy.codegen.libraries.gemm_packing import PACK_PARAMETERS
from xlapy.codegen.libraries.gemm_tile import TileShape
from xlapy.codegen.libraries.gemm_types import BF16_BYTES, UNIT_ROW_BYTES, UNIT_ROWS, UNIT_STEPS, GemmType
from xlapy.codegen.libraries.gemm_unit_packing import UnitPacking
from xlapy.codegen.register_transpose import transposed

_PARAMETERS = [*PACK_PARAMETERS, ("seen", PTR)]

_LANES = UNIT_STEPS
_VECTOR = F32.with_lanes(_LANES)
_LINE = 2 * _LANES
"""Elements of a tile along K, of one row or column."""

_LOW_BITS = 16
"""Of an f32, which a bf16 does not have."""


def emit_plane_packing(module: Module, kind: GemmType, prefix: str, shape: TileShape, attributes: str) -> None:
    """Writes `PREFIX_pack_a` and `PREFIX_pack_b`."""
    noalias = {"source": "noalias", "packed": "noalias"}
    packings: dict[str, tuple[type[_PlanePacking], int]] = {
        "pack_a": (_Rows, shape.rows),
        "pack_b": (_Columns, shape.columns),
    }
    for name, (packing, width) in packings.items():
        function = f"{prefix}_{name}"
        with KernelBuilder(
            module,
            function,
            _PARAMETERS,
            None,
            attributes=attributes,
            parameter_attributes=noalias,
        ) as k:
            packing(k, kind, width).emit()


class _PlanePacking(UnitPacking):
    """A strip of `width` rows or columns."""

    def __init__(self, k: KernelBuilder, kind: GemmType, width: int) -> None:
        super().__init__(k, kind)
        self._planes = kind.planes
        self._plane_bytes = width * UNIT_ROW_BYTES
        depth = k.parameters["depth"]
        self._whole = k.lshr(depth, _LINE.bit_length() - 1)
        self._tiles = k.lshr(k.add(depth, _LINE - 1), _LINE.bit_length() - 1)
        self._seen = SeenMagnitudes(k)

    def emit(self) -> None:
        super().emit()
        self._seen.tell(self._k.parameters["seen"])

    def _one_by_one(self) -> None:
        """Elements anywhere, with zeros where the last tile has none."""
        k, given = self._k, self._k.parameters
        with (
            k.loop(0, k.mul(self._tiles, _LINE)) as step,
            k.loop(0, given["valid"]) as position,
        ):
            is_there = k.compare("lt", step.index, given["depth"])
            place = self._source(position.index, k.smin(step.index, k.sub(given["depth"], 1)))
            element = k.select(is_there, k.load(place, F32), 0.0)
            tile = self._tile(k.lshr(step.index, _LINE.bit_length() - 1))
            pair = self._offset_of_pair(position.index, k.and_(step.index, _LANES - 1))
            is_second = k.and_(k.lshr(step.index, _LANES.bit_length() - 1), 1)
            goal = k.gep(k.gep(tile, pair), is_second, BF16_BYTES)
            self._seen.look_at(element)
            for plane, bits in enumerate(planes_of(k, element, self._planes)):
                k.store(k.gep(goal, plane * self._plane_bytes), k.trunc(k.lshr(bits, _LOW_BITS), I16))

    @abstractmethod
    def _offset_of_pair(self, position: Value, pair: Value) -> Value:
        """In bytes, of one in the first plane, from the beginning of its tile."""

    def _tile(self, number: Value) -> Value:
        """Where the planes of a tile along K begin."""
        return self._k.gep(self._k.parameters["packed"], number, self._planes * self._plane_bytes)

    def _store(self, place: Value, planes: Sequence[Value]) -> None:
        """A line of each plane."""
        for plane, line in enumerate(planes):
            self._k.store(self._k.gep(place, plane * self._plane_bytes), line)

    def _pairs(self, first: Value, second: Value) -> list[Value]:
        for elements in (first, second):
            self._seen.look_at(elements)
        return pairs_of_planes(self._k, first, second, self._planes)

    def _load_along(self, position: Value, step: Value) -> Value:
        """Elements that follow each other along K, with zeros behind the end, and for what the strip does not have."""
        k, given = self._k, self._k.parameters
        left = k.select(k.compare("lt", position, given["valid"]), k.sub(given["depth"], step), 0)
        return k.masked_load(self._source(position, step), _VECTOR, k.first_lanes(left, _LANES))

    def _load_across(self, position: Value, step: Value) -> Value:
        """Elements side by side across the strip, with zeros for what it does not have, and behind the end of K."""
        k, given = self._k, self._k.parameters
        left = k.select(k.compare("lt", step, given["depth"]), k.sub(given["valid"], position), 0)
        return k.masked_load(self._source(position, step), _VECTOR, k.first_lanes(left, _LANES))


class _Rows(_PlanePacking):
    """A strip of A: of each row and plane, 16 pairs along K side by side."""

    def _along(self) -> None:
        k = self._k
        with k.loop(0, k.parameters["valid"]) as row:
            source, offset = self._source(row.index, k.const(I64, 0)), k.mul(row.index, UNIT_ROW_BYTES)
            with k.loop(0, self._whole) as tile:
                place = k.gep(source, tile.index, _LINE * F32.bytes)
                halves = [k.load(k.gep(place, start * F32.bytes), _VECTOR) for start in (0, _LANES)]
                self._store(k.gep(self._tile(tile.index), offset), self._pairs(*halves))
            with k.loop(self._whole, self._tiles) as tile:
                first = k.mul(tile.index, _LINE)
                low, high = self._load_along(row.index, first), self._load_along(row.index, k.add(first, _LANES))
                self._store(k.gep(self._tile(tile.index), offset), self._pairs(low, high))

    def _across(self) -> None:
        """Blocks of 16 rows by 32 elements along K, turned round."""
        k = self._k
        with k.loop(0, self._tiles) as tile, k.loop(0, k.parameters["valid"], UNIT_ROWS) as first:
            step = k.mul(tile.index, _LINE)
            low, high = (
                transposed(k, [self._load_across(first.index, k.add(step, start + n)) for n in range(_LANES)])
                for start in (0, _LANES)
            )
            for number, halves in enumerate(zip(low, high, strict=True)):
                offset = k.mul(k.add(first.index, number), UNIT_ROW_BYTES)
                self._store(k.gep(self._tile(tile.index), offset), self._pairs(*halves))

    def _offset_of_pair(self, position: Value, pair: Value) -> Value:
        k = self._k
        return k.add(k.mul(position, UNIT_ROW_BYTES), k.mul(pair, I32.bytes))


class _Columns(_PlanePacking):
    """A strip of B: of each plane and pair along K, the columns side by side."""

    def _along(self) -> None:
        """Blocks of 16 columns by 32 elements along K, turned round."""
        k = self._k
        with k.loop(0, self._tiles) as tile, k.loop(0, k.parameters["valid"], _LANES) as first:
            steps = [k.add(k.mul(tile.index, _LINE), start) for start in (0, _LANES)]
            columns = [k.add(first.index, number) for number in range(_LANES)]
            halves = (transposed(k, [self._load_along(column, step) for column in columns]) for step in steps)
            for number, pair in enumerate(zip(*halves, strict=True)):
                self._store_pair(tile.index, k.const(I64, number), first.index, *pair)

    def _across(self) -> None:
        k = self._k
        columns = self._plane_bytes // UNIT_ROW_BYTES
        is_full = k.compare("eq", k.parameters["valid"], columns)

        def full() -> None:
            with k.loop(0, self._whole) as tile, k.loop(0, UNIT_STEPS) as group:
                step = k.add(k.mul(tile.index, _LINE), group.index)
                place = self._source(k.const(I64, 0), step)
                below = k.gep(place, k.mul(k.parameters["along"], _LANES))
                for start in range(0, columns, _LANES):
                    pair = [k.load(k.gep(row, start * F32.bytes), _VECTOR) for row in (place, below)]
                    self._store_pair(tile.index, group.index, k.const(I64, start), *pair)

        def some(first: Value) -> None:
            with (
                k.loop(first, self._tiles) as tile,
                k.loop(0, UNIT_STEPS) as group,
                k.loop(0, k.parameters["valid"], _LANES) as column,
            ):
                step = k.add(k.mul(tile.index, _LINE), group.index)
                pair = [self._load_across(column.index, place) for place in (step, k.add(step, _LANES))]
                self._store_pair(tile.index, group.index, column.index, *pair)

        with k.if_(is_full):
            full()
        some(k.select(is_full, self._whole, 0))

    def _store_pair(self, tile: Value, pair: Value, column: Value, first: Value, second: Value) -> None:
        """A pair of each of 16 columns side by side."""
        place = self._k.gep(self._tile(tile), self._offset_of_pair(column, pair))
        self._store(place, self._pairs(first, second))

    def _offset_of_pair(self, position: Value, pair: Value) -> Value:
        k = self._k
        return k.add(k.mul(pair, self._plane_bytes // UNIT_STEPS), k.mul(position, I32.bytes))


def pairs_of_planes(k: KernelBuilder, first: Value, second: Value, count: int) -> list[Value]:
    """Of each plane, pairs of the elements of two vectors."""
    planes = zip(planes_of(k, first, count), planes_of(k, second, count), strict=True)
    return [k.or_(k.lshr(low, _LOW_BITS), high) for low, high in planes]


def planes_of(k: KernelBuilder, element: Value, count: int) -> list[Value]:
    """The bits of so many f32 that are bf16, too, whose sum is the element: as exactly as they can be, which is exactly
    if there are three."""
    whole = I32 if element.type.lanes == 1 else I32.with_lanes(element.type.lanes)
    planes = []
    for _ in range(count - 1):
        bits = k.bitcast(element, whole)
        rounded = k.and_(k.add(bits, 1 << (_LOW_BITS - 1)), -(1 << _LOW_BITS))
        planes.append(rounded)
        element = k.sub(element, k.bitcast(rounded, element.type))
    return [*planes, k.bitcast(element, whole)]
