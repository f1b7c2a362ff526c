"""Arrays in memory, read and written a vector of lanes at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I16, I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.register_transpose import blended, columns_of_rows, cut, picked
from xlapy.codegen.registers import (
    Element,
    Pair,
    constant_element,
    from_memory,
    memory_type,
    moved,
    parts_of,
    register_type,
    to_memory,
)
from xlapy.hlo.shape import Shape

FETCHED_AHEAD = 4096
"""Bytes from what is loaded to what is fetched meanwhile. The processor itself stops where a page ends: then one core
gets a tenth to a fifth less out of memory, and a tenth less out of the last cache. Far less would come too late."""

MOST_STRIDE = 4  # up to which lanes are picked from whole vectors, rather than gathered one by one
MOST_TURNED = 32  # elements of rows that are turned over, whose every line is read for any column

PAIR = 2
"""Lanes so far apart are picked from two vectors by instructions that all processors have."""

TRIPLE = 3
"""Lanes so far apart no row of integers has that are shifted."""

SHUFFLED_BYTES = 16  # of the longest vector, any of whose bytes are picked in one instruction

MOST_REGISTERS = 8  # from which lanes are picked, rather than gathered one by one
MOST_SHORT_REGISTERS = 4  # of which none is picked from together with another one
LANES_PER_REGISTER = 2  # that take as long to gather as a register to load and pick from
MOST_WORD_REGISTERS = 2  # of integers that each have a row of narrow elements
REGISTER_BYTES = 64  # where there are instructions that pick from two
SHORT_REGISTER_BYTES = 32  # where there are only those that pick from one


@dataclass(frozen=True, slots=True)
class Placement:
    """Whether a vector lies where those do that bypass the caches: not if `is_off`.

    Of one that is, only the lanes are stored that no other vector has, if `distance` says how many lanes behind its
    first one (or in front of it) such a place is: a line that bypasses the caches while in one would be waited for."""

    is_off: Value
    distance: Value | None = None

    def own_part(self, k: KernelBuilder, lanes: int) -> tuple[Value, Value] | None:
        """The first of the lanes of a vector that is off that are stored, and their number; None if that is all."""
        if self.distance is None:
            return None
        first = k.smax(self.distance, 0)
        return first, k.sub(lanes, k.smax(first, k.neg(self.distance)))


@dataclass(frozen=True, slots=True)
class Array:
    """An array at `pointer`, laid out as `shape` says. `alias` names its memory for LLVM, if no other array shares
    it."""

    pointer: Value
    shape: Shape
    alias: str | None = None
    read_only: bool = True
    placement: Placement | None = None  # of stores that bypass the caches
    displacement: int = 0  # bytes from `pointer` to the first element
    ahead: int = 0  # bytes from what is loaded to what is fetched meanwhile; 0 leaves fetching to the processor
    following: Value | None = None  # bytes to what is fetched less far besides, as it will be loaded much later
    blocks: dict[str, list[Value]] | None = field(default=None, compare=False)
    """Columns of rows that were turned over since somebody last stored, by where the first row is, for arrays that are
    not read-only."""

    @property
    def _is_row_major(self) -> bool:
        return self.shape.layout is None or self.shape.layout.is_row_major

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        """Where the element of each lane lies, in elements from the start."""
        if self._is_row_major and index.linear is not None:
            return index.linear
        return ix.linearize(ix.split(index), self.shape.strides())

    def load(self, ix: Indexing, index: Index) -> Element:
        """The elements at `index`: one lane where all lanes read the same, else one for each.

        Lanes outside the mask of the index read nothing; their value is arbitrary."""
        k = ix.k
        if not self.shape.size:
            return constant_element(k, self.shape.type, 0)
        offset = self.offset(ix, index)
        if offset.is_uniform:
            return self._load_uniform(k, offset, index.mask)
        if index.mask is not None and self._may_be_elsewhere(offset, index.mask, ix.lanes):
            start = k.select(index.mask, offset.start, 0)
            return replace(self, ahead=0)._load_neighbours(k, offset._replace(start=start), ix.lanes, None)
        mask = k.splat(index.mask, ix.lanes) if index.mask is not None else None
        if offset.vector is None and offset.step == 1:
            return self._load_neighbours(k, offset, ix.lanes, mask)
        if offset.vector is None and offset.step < 0 and self._is_picked_backwards(k, offset.step, ix.lanes, mask):
            turn = partial(k.shuffle, b=None, lanes=range(ix.lanes - 1, -1, -1))
            first = ix.add(offset, offset.step * (ix.lanes - 1))._replace(step=-offset.step)
            turned = None if mask is None else turn(mask)
            column = None if turned is not None else self._column_of_rows(ix, first, index)
            if first.step == 1:
                loaded = self._load_neighbours(k, first, ix.lanes, turned)
            elif column is not None:
                loaded = self._load_column(ix, first, column)
            else:
                loaded = self._load_strided(ix, first, turned)
            parts = [moved(k, turn, part) for part in parts_of(loaded)]
            return parts[0] if len(parts) == 1 else Pair(parts[0], parts[1])
        column = None if mask is not None else self._column_of_rows(ix, offset, index)
        if column is not None:
            return self._load_column(ix, offset, column)
        column = None if mask is not None else self._column_of_long_rows(ix, offset, index)
        if column is not None:
            return self._load_turned(ix, offset, column)
        if (
            offset.vector is None
            and self._may_be_picked(offset.step, ix.lanes)
            and self._may_be_masked(k, offset.step, mask)
        ):
            return self._load_strided(ix, offset, mask)
        if mask is None and self._fits_registers(ix, offset, index):
            return self._picked(ix, offset)
        return self._gather(ix, offset, mask)

    def store(self, ix: Indexing, index: Index, element: Element) -> None:
        """Writes the elements of all lanes, or of those in the mask of the index; they must be at different positions,
        or there is one lane, and then no mask."""
        k, element_type = ix.k, self.shape.type
        offset = self.offset(ix, index)
        width = memory_type(element_type).bytes
        parts = [k.splat(to_memory(k, part, element_type), ix.lanes) for part in parts_of(element)]
        mask = k.splat(index.mask, ix.lanes) if index.mask is not None else None
        if offset.vector is None and (offset.step == 1 or ix.lanes == 1):
            self._store_neighbours(k, offset.start, parts, ix.lanes, mask)
            return
        start, distances = self._lane_places(ix, offset)
        for number, part in enumerate(parts):
            place = k.gep(start, number, width)
            k.scatter(place, distances, part, mask, alias=self.alias, element_bytes=1)

    def fetch(self, ix: Indexing, index: Index, count: int) -> None:
        """Starts to fetch `count` elements from that of the first lane on, if those of the other lanes follow it."""
        offset = self.offset(ix, index)
        if offset.vector is not None or offset.step != 1:
            return
        self._fetch(ix.k, offset.start, count, 0)

    def fetch_ahead(self, ix: Indexing, index: Index, count: int, distance: int) -> None:
        """Starts to fetch `count` elements that lie so many bytes behind that of the first lane."""
        offset = self.offset(ix, index)
        if offset.vector is None:
            self._fetch(ix.k, offset.start, count, distance)

    def _fetch(self, k: KernelBuilder, start: Value, count: int, distance: int) -> None:
        width = self.shape.type.bytes
        place = k.gep(self._place(k, start, width), distance)
        k.prefetch(place, count * width)
        k.prefetch(k.gep(place, count * width - 1), 1)  # the last line, if the first element is not the first of one

    def _store_neighbours(
        self, k: KernelBuilder, start: Value, parts: Sequence[Value], lanes: int, mask: Value | None
    ) -> None:
        """Writes the parts of elements that lie side by side from the element number `start` on."""
        width = parts[0].type.bytes * len(parts)
        if len(parts) == 1 and mask is None and self.placement is not None:
            self._store_streaming(k, start, parts[0])
            return
        pointer = self._place(k, start, width)
        if len(parts) == 2 and lanes == 1:
            k.store(pointer, parts[0], alias=self.alias)
            k.store(k.gep(pointer, 1, parts[0].type.bytes), parts[1], alias=self.alias)
            return
        whole = parts[0]
        if len(parts) == 2:
            whole = k.shuffle(parts[0], parts[1], [lane + lanes * part for lane in range(lanes) for part in range(2)])
        if mask is not None:
            k.masked_store(pointer, whole, _for_parts(k, mask, len(parts)), alias=self.alias)
        else:
            k.store(pointer, whole, alias=self.alias)

    def _store_streaming(self, k: KernelBuilder, start: Value, whole: Value) -> None:
        """Writes a vector past the caches, if it is in its place.

        Each of the stores works out its address, as part of the instruction: one for both would be ready too late."""
        assert self.placement is not None
        placement, width, alias = self.placement, whole.type.bytes, self.alias

        def as_usual() -> None:
            own, pointer = placement.own_part(k, whole.type.lanes), self._place(k, start, width)
            if own is None:
                k.store(pointer, whole, alias=alias)
            else:
                _store_part(k, pointer, whole, *own)

        k.if_else(
            placement.is_off,
            as_usual,
            lambda: k.store(
                self._place(k, start, width), whole, align=width * whole.type.lanes, alias=alias, nontemporal=True
            ),
            likely=False,
        )

    def _place(self, k: KernelBuilder, start: Value, width: int) -> Value:
        """Where the element number `start` is. What is the same everywhere comes last, as part of an address."""
        return k.gep(k.gep(self.pointer, start, width), self.displacement)

    def _raw_load(self, k: KernelBuilder, pointer: Value, type: IRType, align: int | None = None) -> Value:
        if self.following is not None and type.lanes > 1:
            k.prefetch(k.gep(pointer, self.following), type.bytes * type.lanes, level=2)
        if self.ahead and type.lanes > 1:
            k.prefetch(k.gep(pointer, self.ahead), type.bytes * type.lanes)
        return k.load(pointer, type, align, alias=self.alias, hoistable=self.read_only)

    def _load_uniform(self, k: KernelBuilder, offset: Coordinate, mask: Value | None) -> Element:
        start = offset.start
        if mask is not None:
            start = k.select(k.selects_any(mask), start, 0)  # reading element 0 where no lane is valid is harmless
        width = memory_type(self.shape.type).bytes
        count = 2 if self.shape.type.is_complex else 1
        pointer = self._place(k, start, width * count)
        raw = [self._raw_load(k, k.gep(pointer, part, width), memory_type(self.shape.type)) for part in range(count)]
        values = [from_memory(k, part, self.shape.type) for part in raw]
        return values[0] if count == 1 else Pair(values[0], values[1])

    def _load_neighbours(self, k: KernelBuilder, offset: Coordinate, lanes: int, mask: Value | None) -> Element:
        element_type = self.shape.type
        width = memory_type(element_type).bytes
        if not element_type.is_complex:
            pointer = self._place(k, offset.start, width)
            if mask is not None:
                type = memory_type(element_type, lanes)
                raw = k.masked_load(pointer, type, mask, alias=self.alias, hoistable=self.read_only)
            else:
                raw = self._raw_load(k, pointer, memory_type(element_type, lanes))
            return from_memory(k, raw, element_type)
        pointer = self._place(k, offset.start, 2 * width)
        if mask is not None:
            pairs = k.masked_load(
                pointer, memory_type(element_type, 2 * lanes), _for_parts(k, mask, 2), alias=self.alias
            )
        else:
            pairs = self._raw_load(k, pointer, memory_type(element_type, 2 * lanes))
        return Pair(
            k.shuffle(pairs, None, range(0, 2 * lanes, 2)),
            k.shuffle(pairs, None, range(1, 2 * lanes, 2)),
        )

    def _may_be_elsewhere(self, offset: Coordinate, mask: Value, lanes: int) -> bool:
        """Whether a vector of neighbours that is wanted as a whole or not at all may be read from the start instead,
        where nothing is wanted: a masked load of nothing takes some ten cycles where there is no memory."""
        is_whole = mask.type.lanes == 1 and offset.vector is None and offset.step == 1
        return is_whole and self.shape.size >= lanes and not self.displacement

    def _is_picked_backwards(self, k: KernelBuilder, step: int, lanes: int, mask: Value | None) -> bool:
        """Whether lanes are read the other way round, and turned over."""
        return step == -1 or (self._may_be_picked(-step, lanes) and self._may_be_masked(k, -step, mask))

    def _may_be_picked(self, step: int, lanes: int) -> bool:
        """Whether lanes so far apart are picked from whole vectors, of which none reaches beyond the last lane's
        element."""
        return 1 < step <= min(MOST_STRIDE, lanes + 1) and not self.shape.type.is_complex

    def _may_be_masked(self, k: KernelBuilder, step: int, mask: Value | None) -> bool:
        """Whether vectors that lanes are picked from are loaded in one go if only some lanes are wanted. Where masks
        have registers of their own, lanes are gathered in one go, too, which takes longer than two vectors, but not
        longer than three; but narrow ones one by one."""
        is_wide = memory_type(self.shape.type).bits >= I32.bits
        if not is_wide and k.has_masks and k.module.has_permute:
            return True
        is_quick = k.module.has_permute and step == PAIR if k.has_masks else k.module.has_short_permute
        return mask is None or (is_wide and is_quick)

    def _column_of_rows(self, ix: Indexing, offset: Coordinate, index: Index) -> int | None:
        """The column that the lanes read of as many short rows, if any lanes are picked from registers as these lie, or
        if rows are integers that are shifted. Whoever reads another column of theirs loads the same. Long rows may
        consist of short ones."""
        width, dims, step = memory_type(self.shape.type).bytes, self.shape.dims, offset.step
        if not (index.coordinates and self._is_row_major) or self.shape.type.is_complex:
            return None
        if offset.vector is not None or not 1 < step <= MOST_STRIDE or dims[-1] % step:
            return None
        if width < I32.bytes:
            if dims[-1] != step or not (self._row_word(ix, step) or self._shuffles_columns(ix, step)):
                return None
        elif step != PAIR and not ix.k.module.has_permute and not self._is_blended(ix, step):
            return None
        last = index.coordinates[-1]
        if last.vector is not None:
            return None
        if last.is_uniform and (dims[-1] != step or not 0 <= (last.start.constant or 0) < step):
            return None
        beyond, rest = divmod(self.displacement, width)
        if rest or last.step not in (0, step):
            return None
        column = ix.k.remainder(last.start, step)
        return None if column is None else (column + beyond) % step

    def _is_blended(self, ix: Indexing, step: int) -> bool:
        """Whether a column is chosen among vectors as it lies, and then put in order: what lies three apart has all
        places of a vector."""
        is_wide = memory_type(self.shape.type).bytes >= I32.bytes
        return step == TRIPLE and is_wide and ix.k.module.has_short_permute and ix.lanes & (ix.lanes - 1) == 0

    def _shuffles_columns(self, ix: Indexing, step: int) -> bool:
        """Whether columns of rows of three narrow elements are picked out of vectors that are short enough for one
        instruction."""
        module, width = ix.k.module, memory_type(self.shape.type).bytes
        has_instruction = module.has_short_permute or module.has_permute
        return has_instruction and step == TRIPLE and ix.lanes * width <= SHUFFLED_BYTES

    def _row_word(self, ix: Indexing, step: int) -> IRType | None:
        """What holds rows of so many narrow elements, one in each lane, if that is integers in a register or two."""
        bits = step * memory_type(self.shape.type).bits
        word = next((type for type in (I16, I32, I64) if type.bits == bits), None)
        most = MOST_WORD_REGISTERS * (REGISTER_BYTES if ix.k.module.has_permute else SHORT_REGISTER_BYTES)
        return word.with_lanes(ix.lanes) if word is not None and word.bytes * ix.lanes <= most else None

    def _load_column(self, ix: Indexing, offset: Coordinate, column: int) -> Value:
        """Picks a column out of whole rows, of which there are as many as lanes."""
        k, lanes, step = ix.k, ix.lanes, offset.step
        type, word = memory_type(self.shape.type), self._row_word(ix, step)
        if type.bits < I32.bits and word is not None:
            pointer = self._place(k, ix.add(offset, -column).start, type.bytes)
            rows = self._raw_load(k, pointer, word, type.bytes)
            return from_memory(k, k.trunc(k.lshr(rows, column * type.bits), type), self.shape.type)
        parts = [self._load_neighbours(k, ix.add(offset, n * lanes - column), lanes, None) for n in range(step)]
        places = [divmod(lane * step + column, lanes) for lane in range(lanes)]
        vectors = [part for part in parts if isinstance(part, Value)]
        is_blended = self._is_blended(ix, step) and not k.module.has_permute
        return (blended if is_blended else picked)(k, vectors, places)

    def _column_of_long_rows(self, ix: Indexing, offset: Coordinate, index: Index) -> int | None:
        """The column that the lanes read of as many rows, which have any number of dimensions, if blocks of rows are
        turned over. Whoever reads another column loads the same."""
        type, step, coordinates = memory_type(self.shape.type, ix.lanes), offset.step, index.coordinates
        are_shared = self.read_only or self.blocks is not None
        if offset.vector is not None or coordinates is None or not are_shared or self.shape.type.is_complex:
            return None
        least = MOST_STRIDE + 1 if ix.k.module.has_permute else MOST_STRIDE
        if not (self._is_row_major and least <= step <= MOST_TURNED and cut(step, type)):
            return None
        strides = self.shape.strides()
        inside = [dim for dim, stride in enumerate(strides) if stride < step]
        if math.prod(self.shape.dims[dim] for dim in inside) != step:
            return None
        starts = [coordinates[dim].start.constant if coordinates[dim].is_uniform else None for dim in inside]
        column = sum(start * strides[dim] for start, dim in zip(starts, inside, strict=True) if isinstance(start, int))
        is_displaced = self.displacement % (step * type.element.bytes) != 0
        return None if is_displaced or None in starts or not 0 <= column < step else column

    def _load_turned(self, ix: Indexing, offset: Coordinate, column: int) -> Value:
        """A column of as many rows as there are lanes, out of a block of their columns."""
        k, step = ix.k, offset.step
        type = memory_type(self.shape.type, ix.lanes)
        part = next(part for part in cut(step, type) if column in part)
        first = self._place(k, ix.add(offset, part.start - column).start, type.bytes)
        columns = None if self.blocks is None else self.blocks.get(first.text)
        if columns is None:
            places = [k.gep(first, lane * step, type.bytes) for lane in range(ix.lanes)]
            rows = [self._raw_load(k, place, type.with_lanes(len(part))) for place in places]
            columns = [_in_lanes(k, rows)] if len(part) == 1 else columns_of_rows(k, rows)
        if self.blocks is not None:
            self.blocks[first.text] = columns
        return from_memory(k, columns[column - part.start], self.shape.type)

    def _load_strided(self, ix: Indexing, offset: Coordinate, mask: Value | None) -> Value:
        """Every second (third ...) element: whole vectors side by side, the last one ending with the last lane's
        element, and the lanes picked out of them."""
        k, lanes, step = ix.k, ix.lanes, offset.step
        starts = [number * lanes for number in range(step - 1)] + [step * (lanes - 1) - (lanes - 1)]
        chosen: Value | None = None
        for number, start in enumerate(starts):
            own = [lane for lane in range(lanes) if min(lane * step // lanes, step - 1) == number]
            lane_of = {lane * step - start: lane for lane in own}
            wanted = None if mask is None else _mask_of(k, mask, [lane_of.get(place) for place in range(lanes)])
            part = self._load_neighbours(k, ix.add(offset, start), lanes, wanted)
            assert isinstance(part, Value)
            order = [lanes + lane * step - start if lane in own else lane for lane in range(lanes)]
            pick = partial(k.shuffle, lanes=order)
            chosen = moved(k, pick, part if chosen is None else chosen, part)
        assert chosen is not None
        return chosen

    def _fits_registers(self, ix: Indexing, offset: Coordinate, index: Index) -> bool:
        """Whether all that the lanes may reach are neighbours in the last dimension that fill a few registers: then
        memory is read as it lies, and no lane is fetched on its own, of which each takes a cycle."""
        module, width, reach = ix.k.module, memory_type(self.shape.type).bytes, offset.reach
        can_pick = (module.has_permute and width >= I32.bytes) or (module.has_short_permute and width == I32.bytes)
        if not can_pick or self.shape.type.is_complex or index.coordinates is None:
            return False
        most, register = (
            (MOST_REGISTERS, REGISTER_BYTES) if module.has_permute else (MOST_SHORT_REGISTERS, SHORT_REGISTER_BYTES)
        )
        *others, last = index.coordinates
        return (
            0 < reach * width <= min(most, ix.lanes // LANES_PER_REGISTER) * register
            and not offset.step
            and (self.shape.layout is None or self.shape.layout.is_row_major)
            and last.vector is not None
            and last.reach == reach
            and all(coordinate.vector is None for coordinate in others)
        )

    def _picked(self, ix: Indexing, offset: Coordinate) -> Element:
        """Loads all that the lanes may reach, and picks from that."""
        k, numbers, reach = ix.k, offset.vector, offset.reach
        assert numbers is not None
        register = REGISTER_BYTES if k.module.has_permute else SHORT_REGISTER_BYTES
        type = memory_type(self.shape.type, register // memory_type(self.shape.type).bytes)
        start, registers = self._place(k, offset.start, type.bytes), []
        for first in range(0, reach, type.lanes):
            place = k.gep(start, first, type.bytes)
            if first + type.lanes <= reach:
                registers.append(self._raw_load(k, place, type))
                continue
            inside = [int(number < reach) for number in range(first, first + type.lanes)]
            mask = k.const_vector(I1.with_lanes(type.lanes), inside)
            registers.append(k.masked_load(place, type, mask, alias=self.alias, hoistable=self.read_only))
        index = k.zext(numbers, I64) if type.bits == I64.bits else numbers
        return from_memory(k, k.picked_from(registers, index), self.shape.type)

    def _gather(self, ix: Indexing, offset: Coordinate, mask: Value | None) -> Element:
        k, element_type = ix.k, self.shape.type
        type = memory_type(element_type, ix.lanes)
        mask = mask if mask is not None else k.const(I1.with_lanes(ix.lanes), 1)
        start, distances = self._lane_places(ix, offset)
        self._fetch_picked(ix, offset, start)
        has_instruction = k.module.has_gather and type.bits >= I32.bits
        is_known = offset.vector is None and mask.constant == 1 and not has_instruction
        count = 2 if element_type.is_complex else 1
        values = []
        for part in range(count):
            place = k.gep(start, part, type.bytes)
            if is_known:  # LLVM would work out all places in a vector, and take them out of it
                places = [k.gep(place, lane * offset.step * count, type.bytes) for lane in range(ix.lanes)]
                raw = _in_lanes(k, [self._raw_load(k, lane, type.element) for lane in places])
            else:
                raw = k.gather(place, distances, type, mask, alias=self.alias, element_bytes=1)
            values.append(from_memory(k, raw, element_type))
        return values[0] if len(values) == 1 else Pair(values[0], values[1])

    def _fetch_picked(self, ix: Indexing, offset: Coordinate, start: Value) -> None:
        """Fetches what will be picked from later: all that the lanes reach, if they are about as many as its lines."""
        reach = offset.reach * self.shape.type.bytes
        if self.ahead and not offset.step and 0 < reach <= ix.lanes * CACHE_LINE:
            ix.k.prefetch(ix.k.gep(start, self.ahead), reach)

    def _lane_places(self, ix: Indexing, offset: Coordinate) -> tuple[Value, Value]:
        """A pointer, and how many bytes behind it each lane is: constants, where lanes are a known distance apart."""
        width = memory_type(self.shape.type).bytes * (2 if self.shape.type.is_complex else 1)
        return self._place(ix.k, offset.start, width), ix.distances(offset, width)


def _store_part(k: KernelBuilder, pointer: Value, whole: Value, first: Value, count: Value) -> None:
    """Stores `count` lanes of a vector from the `first` one on, by way of the stack.

    Not with a mask: if it reaches into a line that bypasses the caches, even with lanes that are not stored, that line
    is waited for."""
    room, width = k.alloca(whole.type), whole.type.bytes
    k.store(room, whole)
    k.memcpy(k.gep(pointer, first, width), k.gep(room, first, width), k.mul(count, width))


def _for_parts(k: KernelBuilder, mask: Value, parts: int) -> Value:
    """The mask of elements as that of their parts."""
    return mask if parts == 1 else k.shuffle(mask, None, [lane // parts for lane in range(parts * mask.type.lanes)])


def _mask_of(k: KernelBuilder, mask: Value, places: Sequence[int | None]) -> Value:
    """The lanes of a mask at other places, and none where no place is given."""
    signs = k.sext(mask, I32)
    order = [signs.type.lanes if place is None else place for place in places]
    return k.compare("lt", k.shuffle(signs, k.const(signs.type, 0), order), 0)


def zero_element(k: KernelBuilder, shape: Shape, lanes: int) -> Element:
    """All lanes zero."""
    type = register_type(shape.type, lanes)
    zero = k.const(type, 0.0 if type.is_float else 0)
    return Pair(zero, zero) if shape.type.is_complex else zero


def _in_lanes(k: KernelBuilder, scalars: Sequence[Value]) -> Value:
    """A vector of so many scalars."""
    vector = k.const(scalars[0].type.with_lanes(len(scalars)), 0)
    for lane, scalar in enumerate(scalars):
        vector = k.insert(vector, scalar, lane)
    return vector
