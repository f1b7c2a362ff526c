"""Rows that do not begin where lines of the caches do, read line by line: whole ones, or blocks of their columns.

Arrays of numpy begin 16 bytes behind a line. A register as long as a line would be read from two of them, which takes
nearly twice the time in a near cache: 5.3 us instead of 3.0 for 512 KB (a late Intel server). So each line is read
once, and registers are picked out of it and the line before. Memory is slower than either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.register_transpose import concatenated
from xlapy.codegen.registers import Element, from_memory, memory_type, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.support.records import Record
from xlapy_runtime.records import replaced

LEAST_BYTES = 1024
"""Of a row: to begin with a line, and to find what its registers have, takes ten cycles."""


def may_read_lines(type: ElementType, target: Target) -> bool:
    """Whether registers are as long as lines, and elements of the type are picked out of two in one go."""
    return target.has_permute and memory_type(type).bits == register_type(type).bits


def pays_by_lines(k: KernelBuilder, arrays: Sequence[Array], length: Value) -> Value:
    """Whether rows of such a length begin in the middle of lines, at least some of them, and are so long that it
    counts."""
    width = memory_type(arrays[0].shape.type).bytes
    begins = _between_elements(k, width, _within_line(k, k.mul(length, width), *_addresses(k, arrays)))
    return k.and_(begins, k.compare("ge", length, LEAST_BYTES // width))


def pays_in_columns(k: KernelBuilder, arrays: Sequence[Array], columns: Value) -> Value:
    """Whether all rows of so many columns begin in the middle of lines, at the same place."""
    width = memory_type(arrays[0].shape.type).bytes
    are_alike = k.compare("eq", _within_line(k, k.mul(columns, width)), 0)
    return k.and_(are_alike, _between_elements(k, width, _within_line(k, *_addresses(k, arrays))))


def _addresses(k: KernelBuilder, arrays: Sequence[Array]) -> list[Value]:
    return [k.address(array.pointer) for array in arrays]


def _within_line(k: KernelBuilder, *places: Value) -> Value:
    """Zero if all places, or distances, are whole lines."""
    return k.and_(reduce(k.or_, places), CACHE_LINE - 1)


def _between_elements(k: KernelBuilder, width: int, within_line: Value) -> Value:
    """Whether lines begin between two elements of a row: not with the row, nor in the middle of an element, as those of
    an array do that somebody has found among other bytes."""
    is_off = k.compare("ne", within_line, 0)
    return k.and_(is_off, k.compare("eq", k.and_(within_line, width - 1), 0))


class LinesOfRow(Record):
    """A row, the places of its first line and of the one from which the first register is filled up, and which elements
    of two lines a register has: the last ones of the first, or none of them if a row begins with a line."""

    row: Array
    begin: Value
    following: Value
    numbers: Value

    @classmethod
    def of(cls, k: KernelBuilder, row: Array) -> LinesOfRow:
        type = memory_type(row.shape.type)
        line, address = type.with_lanes(CACHE_LINE // type.bytes), k.address(row.pointer)
        begin = k.gep(row.pointer, k.neg(k.and_(address, CACHE_LINE - 1)))
        past_one = k.and_(k.sub(address, type.bytes), CACHE_LINE - 1)
        skipped = k.add(k.udiv(past_one, type.bytes), 1)
        integers = type.integer()
        first_number = skipped if integers == I64 else k.trunc(skipped, integers)
        numbers = k.add(k.splat(first_number, line.lanes), k.lane_numbers(integers.with_lanes(line.lanes)))
        following = k.gep(row.pointer, k.sub(CACHE_LINE, k.mul(skipped, type.bytes)))
        return cls(row, begin, following, numbers)

    def behind(self, k: KernelBuilder, distance: Value) -> LinesOfRow:
        """A row so many bytes behind, which are whole lines."""
        return replaced(self, begin=k.gep(self.begin, distance), following=k.gep(self.following, distance))

    def first(self, k: KernelBuilder) -> Value:
        """The first line."""
        return self._line(k, self.begin)

    def load(self, k: KernelBuilder, before: Value, start: Value, lanes: int) -> tuple[Element, Value]:
        """So many elements from the one at `start` on, a multiple of a line's, and the last line that they reach into;
        `before` is the one that the first of them may lie in."""
        line, found = before.type, []
        for at in range(0, lanes, line.lanes):
            place = k.gep(k.gep(self.following, start, line.bytes), at * line.bytes)
            here = self._line(k, place)
            found.append(k.picked_from([before, here], self.numbers))
            before = here
        return from_memory(k, concatenated(k, found), self.row.shape.type), before

    def _line(self, k: KernelBuilder, place: Value) -> Value:
        type = memory_type(self.row.shape.type)
        return k.load(place, type.with_lanes(CACHE_LINE // type.bytes), CACHE_LINE, alias=self.row.alias)
