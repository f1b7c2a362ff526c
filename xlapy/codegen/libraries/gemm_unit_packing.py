"""Packing for the matrix unit: rows of A along K, and strips of B in which groups along K fill 32 bits.

    copy_rows(depth, source, across, along, valid, packed, pitch)

brings rows of A together, `pitch` bytes apart, each contiguous along K, whatever their layout was.

    pack_b(depth, source, across, along, valid, packed)

packs a strip of B: of each group of steps along K that fills 32 bits, the elements of all columns side by side.
Parameters are those of `gemm_packing`. Both fill up K with zeros to whole tiles; of rows and columns that a strip does
not have, nothing is read afterwards.

Elements that lie side by side along K or across the strip go by vectors, with masks where that ends; others one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

from xlapy.codegen.ir import I32, I64, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_packing import PACK_PARAMETERS
from xlapy.codegen.libraries.gemm_types import UNIT_ROW_BYTES, UNIT_ROWS, UNIT_STEPS, GemmType
from xlapy.codegen.register_transpose import transposed

_GROUPS = I32.with_lanes(UNIT_STEPS)
"""A line: a group of elements along K in each lane."""


def emit_unit_packing(module: Module, kind: GemmType, prefix: str, columns: int, attributes: str) -> None:
    """Writes `PREFIX_copy_rows`, and `PREFIX_pack_b` for strips of so many columns."""
    noalias = {"source": "noalias", "packed": "noalias"}
    writers: dict[str, tuple[list[tuple[str, IRType]], type[_Packing]]] = {
        "copy_rows": ([*PACK_PARAMETERS, ("pitch", I64)], _Rows),
        "pack_b": (PACK_PARAMETERS, _Strip),
    }
    for name, (parameters, packing) in writers.items():
        with KernelBuilder(
            module, f"{prefix}_{name}", parameters, None, attributes=attributes, parameter_attributes=noalias
        ) as k:
            packing(k, kind, columns).emit()


class UnitPacking(ABC):
    """Packing of a strip in the way that suits its layout."""

    def __init__(self, k: KernelBuilder, kind: GemmType) -> None:
        self._k = k
        self._kind = kind
        self._element_bytes = kind.element.bytes

    def emit(self) -> None:
        k, given = self._k, self._k.parameters
        is_along = k.compare("eq", given["along"], self._element_bytes)
        is_across = k.compare("eq", given["across"], self._element_bytes)
        k.if_else(is_along, self._along, lambda: k.if_else(is_across, self._across, self._one_by_one))

    @abstractmethod
    def _along(self) -> None:
        """Packs what is contiguous along K."""

    @abstractmethod
    def _across(self) -> None:
        """Packs what is contiguous across the strip."""

    @abstractmethod
    def _one_by_one(self) -> None:
        """Packs elements that lie anywhere."""

    def _source(self, position: Value, step: Value) -> Value:
        """Where the element is that lies `position` across the strip and `step` along K."""
        k, given = self._k, self._k.parameters
        return k.gep(k.gep(given["source"], k.mul(given["across"], position)), k.mul(given["along"], step))


class _Packing(UnitPacking):
    """What both share: vectors along K, and groups of several steps across the strip."""

    def __init__(self, k: KernelBuilder, kind: GemmType, columns: int) -> None:
        super().__init__(k, kind)
        self._columns = columns
        self._line = UNIT_ROW_BYTES // self._element_bytes
        """Elements of a line along K."""
        self._raw_line = kind.element.with_lanes(self._line)
        depth = k.parameters["depth"]
        self._lines = k.lshr(k.add(depth, self._line - 1), self._line.bit_length() - 1)
        self._whole_groups = k.lshr(depth, kind.pair_bits)

    @abstractmethod
    def _place(self, position: Value, group: Value) -> Value:
        """Where the group is packed that lies `position` across the strip."""

    def _one_by_one(self) -> None:
        k, given = self._k, self._k.parameters
        self._clear_ends()
        with k.loop(0, given["depth"]) as step, k.loop(0, given["valid"]) as position:
            element = k.load(self._source(position.index, step.index), self._kind.element)
            number = k.and_(step.index, self._kind.pair - 1)
            group = self._place(position.index, k.lshr(step.index, self._kind.pair_bits))
            k.store(k.gep(group, number, self._element_bytes), element)

    def _clear_ends(self) -> None:
        """Sets the groups to zero that elements do not fill."""
        k = self._k
        groups = k.mul(self._lines, UNIT_STEPS)
        with k.loop(self._whole_groups, groups) as group, k.loop(0, k.parameters["valid"]) as position:
            k.store(self._place(position.index, group.index), k.const(I32, 0))

    def _line_along(self, position: Value, line: Value) -> Value:
        """The groups of a line along K, with zeros behind the end; nothing of what the strip does not have."""
        k = self._k
        first = k.mul(line, self._line)
        left = k.select(k.compare("lt", position, k.parameters["valid"]), k.sub(k.parameters["depth"], first), 0)
        mask = k.first_lanes(left, self._line)
        return k.bitcast(k.masked_load(self._source(position, first), self._raw_line, mask), _GROUPS)

    def _groups_across(self, first: Value, group: Value, lanes: int, *, may_end: bool) -> list[Value]:
        """The groups at one place along K of so many neighbours across the strip, with zeros for what it does not have.
        K may end within them."""
        k, pair = self._k, self._kind.pair
        raw = self._kind.element.with_lanes(lanes)
        left = k.sub(k.parameters["valid"], first)
        vectors = []
        for number in range(pair):
            step = k.add(k.mul(group, pair), number)
            count = k.select(k.compare("lt", step, k.parameters["depth"]), left, 0) if may_end else left
            vectors.append(k.masked_load(self._source(first, step), raw, k.first_lanes(count, lanes)))
        return [k.bitcast(vector, _GROUPS) for vector in _interleaved(k, vectors, _GROUPS.lanes)]


class _Rows(_Packing):
    """Rows of A, each a run of groups."""

    def _along(self) -> None:
        k = self._k
        whole = k.lshr(self._whole_groups, UNIT_STEPS.bit_length() - 1)
        with k.loop(0, k.parameters["valid"]) as row:
            source, goal = self._source(row.index, k.const(I64, 0)), self._place(row.index, k.const(I64, 0))
            with k.loop(0, whole) as line:
                raw = k.load(k.gep(source, line.index, UNIT_ROW_BYTES), self._raw_line)
                k.store(k.gep(goal, line.index, UNIT_ROW_BYTES), k.bitcast(raw, _GROUPS))
            with k.loop(whole, self._lines) as line:
                k.store(k.gep(goal, line.index, UNIT_ROW_BYTES), self._line_along(row.index, line.index))

    def _across(self) -> None:
        """Blocks of 16 rows by a line along K, turned round."""
        k = self._k
        with k.loop(0, k.parameters["valid"], UNIT_ROWS) as first, k.loop(0, self._lines) as line:
            start = k.mul(line.index, UNIT_STEPS)
            is_whole = k.compare("le", k.add(start, UNIT_STEPS), self._whole_groups)
            of_block = (first.index, start)
            whole, end = (partial(self._block, *of_block, may_end=may_end) for may_end in (False, True))
            rows = k.if_else(is_whole, whole, end)
            for number, vector in enumerate(rows):
                k.store(self._place(k.add(first.index, number), start), vector)

    def _block(self, first: Value, start: Value, *, may_end: bool) -> list[Value]:
        """A line along K of each of 16 rows that are side by side in memory. K may end within it."""
        k = self._k
        groups = [k.add(start, number) for number in range(UNIT_STEPS)]
        across = [self._groups_across(first, group, UNIT_ROWS, may_end=may_end)[0] for group in groups]
        return transposed(k, across)

    def _place(self, position: Value, group: Value) -> Value:
        k, given = self._k, self._k.parameters
        return k.gep(k.gep(given["packed"], k.mul(given["pitch"], position)), group, I32.bytes)


class _Strip(_Packing):
    """A strip of B: at each group along K, its columns side by side."""

    def _along(self) -> None:
        """Blocks of 16 columns by a line along K, turned round."""
        k = self._k
        with k.loop(0, self._lines) as line, k.loop(0, k.parameters["valid"], UNIT_ROWS) as first:
            columns = [k.add(first.index, number) for number in range(UNIT_ROWS)]
            block = transposed(k, [self._line_along(column, line.index) for column in columns])
            for number, vector in enumerate(block):
                group = k.add(k.mul(line.index, UNIT_STEPS), number)
                k.store(self._place(first.index, group), vector)

    def _across(self) -> None:
        k = self._k
        for begin, end, may_end in (
            (0, self._whole_groups, False),
            (self._whole_groups, k.mul(self._lines, UNIT_STEPS), True),
        ):
            with k.loop(begin, end) as group:
                vectors = self._groups_across(k.const(I64, 0), group.index, self._columns, may_end=may_end)
                for number, vector in enumerate(vectors):
                    k.store(self._place(k.const(I64, number * UNIT_ROWS), group.index), vector)

    def _place(self, position: Value, group: Value) -> Value:
        k = self._k
        step = k.mul(group, self._columns * I32.bytes)
        return k.gep(k.gep(k.parameters["packed"], step), position, I32.bytes)


def _interleaved(k: KernelBuilder, vectors: Sequence[Value], groups: int) -> list[Value]:
    """Two or four vectors as those of so many groups: the first lanes of all of them, the second ones, ..."""
    count, lanes = len(vectors), vectors[0].type.lanes
    joined = list(vectors)
    while len(joined) > 2:
        order = range(2 * joined[0].type.lanes)
        joined = [k.shuffle(low, high, order) for low, high in zip(joined[::2], joined[1::2], strict=True)]
    low, high = joined
    return [
        k.shuffle(low, high, [part * lanes + lane for lane in range(first, first + groups) for part in range(count)])
        for first in range(0, lanes, groups)
    ]
