"""Object files of x86-64 in ELF, as LLVM writes them: sections, symbols, and what is to be filled in.

Only what position-independent kernels consist of is known. An object with anything else, or of another kind, is
`NotKnown`, and LLVM's own linker takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

MOST_ALIGNMENT = 4096  # a page, on which memory begins
MOST_BYTES = 1 << 28  # of a section; kernels have next to nothing


class NotKnown(Exception):
    """Nothing is wrong with the object, but here is not who can link it."""


class DamagedObject(Exception):
    """The file begins like an object of x86-64 and does not go on like one."""


class Fill(IntEnum):
    """How a place is filled in, by ELF's numbers: S is the symbol, A the addend, P the place, G a slot that holds S."""

    ADDRESS = 1
    """64 bits of S + A"""
    RELATIVE = 2
    """32 bits of S + A - P"""
    CALL = 4
    """the same, of a call or a jump, which may go by way of a stub"""
    SLOT = 9
    """32 bits of G + A - P"""
    LOAD_OF_SLOT = 41
    """the same, in an instruction that may as well compute the address"""
    LONG_LOAD_OF_SLOT = 42
    """the same, with one more byte in front of the instruction"""


@dataclass(frozen=True, slots=True)
class Section:
    """What is copied into memory; without `content`, zeros."""

    size: int
    content: bytes
    alignment: int
    is_writable: bool
    is_code: bool


class Symbol(NamedTuple):
    """A name, or a place in a section. `section` is None for what other objects define, `name` empty for what no other
    object sees."""

    name: str
    section: int | None
    offset: int


Place = tuple[int, int, int]
"""Something to be filled in: an offset in a section, the number of a symbol above 32 bits that say how (see `Fill`),
and the addend. Large programs have thousands."""


@dataclass(frozen=True, slots=True)
class ElfObject:
    """An object file. Sections, and the places in them, by the numbers that sections have in it."""

    sections: dict[int, Section]
    symbols: Sequence[Symbol]
    places: dict[int, list[Place]]


def read_object(data: bytes) -> ElfObject:
    """Reads an object file of x86-64."""
    if len(data) < _HEADER.size or data[: len(_IDENTITY)] != _IDENTITY:
        raise NotKnown("not an object file of 64 bits")
    if _HEADER.unpack_from(data)[1:3] != (_RELOCATABLE, _X86_64):
        raise NotKnown("not an object file of x86-64")
    try:
        return _Reader(data).read()
    except (struct.error, IndexError, KeyError, ValueError) as error:
        raise DamagedObject(str(error)) from None


class _Reader:
    """Reads one object file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        header = _HEADER.unpack_from(data)
        first, count, names = header[6], header[12], header[13]
        if first + count * _SECTION.size > len(data):
            raise DamagedObject("cut short")
        self._rows = [_SECTION.unpack_from(data, first + number * _SECTION.size) for number in range(count)]
        self._names = self._rows[names]
        self._contents: dict[int, Section] = {}

    def read(self) -> ElfObject:
        for number, row in enumerate(self._rows):
            if row[_FLAGS] & _IN_MEMORY and not self._text(self._names, row[_NAME]).startswith(_OF_UNWINDING):
                self._contents[number] = self._section(row)
        symbols = self._symbols()
        return ElfObject(self._contents, symbols, self._places(len(symbols)))

    def _section(self, row: Sequence[int]) -> Section:
        if row[_FLAGS] & ~_KNOWN_FLAGS or row[_TYPE] not in (_CONTENT, _ZEROS):
            raise NotKnown("a section of another kind")
        name, alignment = self._text(self._names, row[_NAME]), max(1, row[_ALIGNMENT])
        if alignment > MOST_ALIGNMENT or row[_SIZE] > MOST_BYTES:
            raise NotKnown("a section of unusual size")
        return Section(
            size=row[_SIZE],
            content=b"" if row[_TYPE] == _ZEROS else self._bytes(row),
            alignment=alignment,
            is_writable=bool(row[_FLAGS] & _WRITABLE) and not name.startswith(_CONSTANT_ONCE_FILLED_IN),
            is_code=bool(row[_FLAGS] & _CODE),
        )

    def _symbols(self) -> list[Symbol]:
        tables = [row for row in self._rows if row[_TYPE] == _SYMBOL_TABLE]
        if len(tables) != 1:
            raise NotKnown("an object without symbols")
        names = self._rows[tables[0][_LINK]]
        return [self._symbol(names, entry) for entry in _SYMBOL.iter_unpack(self._bytes(tables[0]))]

    def _symbol(self, names: Sequence[int], entry: tuple[int, ...]) -> Symbol:
        name, info, _, section, value, _ = entry
        binding, kind = info >> 4, info & 15
        if kind == _FILE:
            return _NOTHING
        if binding not in (_LOCAL, _GLOBAL) or kind > _SECTION_ITSELF or section >= _SPECIAL_SECTIONS:
            raise NotKnown("a symbol of another kind")
        return Symbol(self._text(names, name) if binding == _GLOBAL else "", section or None, value)

    def _places(self, symbol_count: int) -> dict[int, list[Place]]:
        found: dict[int, list[Place]] = {}
        for row in self._rows:
            if row[_TYPE] == _PLACES_WITHOUT_ADDENDS and row[_INFO] in self._contents:
                raise NotKnown("addends in other places")
            if row[_TYPE] == _PLACES and row[_INFO] in self._contents:
                places = list(_PLACE.iter_unpack(self._bytes(row)))
                last = max((offset for offset, _, _ in places), default=0)
                most = max((how >> 32 for _, how, _ in places), default=0)
                if last >= max(1, self._contents[row[_INFO]].size) or most >= symbol_count:
                    raise DamagedObject("a place outside of its section")
                found.setdefault(row[_INFO], []).extend(places)
        return found

    def _bytes(self, row: Sequence[int]) -> bytes:
        if row[_OFFSET] + row[_SIZE] > len(self._data):
            raise DamagedObject("cut short")
        return self._data[row[_OFFSET] : row[_OFFSET] + row[_SIZE]]

    def _text(self, names: Sequence[int], offset: int) -> str:
        start = names[_OFFSET] + offset
        return self._data[start : self._data.index(0, start)].decode()


_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian, version 1
_RELOCATABLE, _X86_64 = 1, 62

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PLACE = struct.Struct("<QQq")

_NAME, _TYPE, _FLAGS, _, _OFFSET, _SIZE, _LINK, _INFO, _ALIGNMENT, _ = range(10)
"""The columns of the table of sections."""

_CONTENT, _SYMBOL_TABLE, _PLACES, _ZEROS, _PLACES_WITHOUT_ADDENDS = 1, 2, 4, 8, 9
"""Types of sections."""

_WRITABLE, _IN_MEMORY, _CODE, _MERGEABLE, _STRINGS = 1, 2, 4, 16, 32
_KNOWN_FLAGS = _WRITABLE | _IN_MEMORY | _CODE | _MERGEABLE | _STRINGS

_CONSTANT_ONCE_FILLED_IN = ".data.rel.ro"
_OF_UNWINDING = ".eh_frame"  # nobody is told of it: no exception passes through kernels

_LOCAL, _GLOBAL = 0, 1
_SECTION_ITSELF, _FILE = 3, 4
_SPECIAL_SECTIONS = 0xFF00

_NOTHING = Symbol("", None, 0)
