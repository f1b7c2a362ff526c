"""Object files become an image: sections are placed, and what refers to them is filled in.

This is done once, when a program is compiled; see `images`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xlapy_runtime.elf import DamagedObject, ElfObject, Fill, NotKnown, Place, Section, Symbol, read_object
from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import PAGE_BYTES, Image, Layout, is_image, rounded_up

_LINE_BYTES = 64
_WORD_BYTES = 8


def prelinked(objects: Sequence[bytes]) -> tuple[bytes, ...]:
    """One image of all these object files, if they are of a kind that is known here; else the same object files.

    A repeated symbol, or a damaged object, is an InternalError. Symbols that none of them defines are left to whoever
    loads the image."""
    if len(objects) == 1 and is_image(objects[0]):
        return tuple(objects)
    try:
        read = [read_object(code) for code in objects]
        return (_Linker(read).image().dump(),)
    except NotKnown:
        return tuple(objects)
    except DamagedObject as error:
        raise InternalError(f"cannot link object code: {error}") from None


@dataclass(slots=True)
class _Area:
    """Memory that is being filled, from an offset on."""

    start: int
    content: bytearray = field(default_factory=bytearray)

    @property
    def end(self) -> int:
        return self.start + len(self.content)

    def add(self, content: bytes, alignment: int) -> int:
        """Puts it behind what is there; its offset."""
        self.content += bytes(-self.end % alignment)
        offset = self.end
        self.content += content
        return offset


class _Linker:
    """Makes an image of objects: places their sections, and fills in what refers to them."""

    def __init__(self, objects: Sequence[ElfObject]) -> None:
        self._objects = objects
        self._offsets: dict[tuple[int, int], int] = {}  # of sections, by the numbers of object and section
        self._data = _Area(0)
        self._data_bytes = 0
        self._place_data()
        self._code = _Area(rounded_up(self._data.end, PAGE_BYTES))
        self._place_code()
        self._exports = self._all_exports()
        self._slots: dict[str | int, int] = {}  # the offset of the slot of a symbol elsewhere, or of a place here
        self._stubs: dict[str, int] = {}
        self._imports: dict[str, list[int]] = {}
        self._addresses: list[int] = []

    def image(self) -> Image:
        for number, code in enumerate(self._objects):
            targets = [self._target(number, symbol) for symbol in code.symbols]
            for section, places in code.places.items():
                self._fill_all(self._offsets[number, section], places, targets)
        layout = Layout(
            self._data_bytes,
            self._code.start,
            len(self._code.content),
            self._exports,
            self._imports,
            self._addresses,
        )
        return Image(layout, bytes(self._data.content[: self._data_bytes]), bytes(self._code.content))

    def _place_data(self) -> None:
        """What may change; the zeros last, which an image does not contain."""
        kept = self._sections(lambda section: section.is_writable and bool(section.content))
        zeros = self._sections(lambda section: section.is_writable and not section.content)
        for key, section in kept:
            self._offsets[key] = self._data.add(section.content, section.alignment)
        self._data_bytes = self._data.end
        for key, section in zeros:
            self._offsets[key] = self._data.add(bytes(section.size), section.alignment)

    def _place_code(self) -> None:
        """Code, then constants, which share no line of a cache with it."""
        code = self._sections(lambda section: section.is_code)
        constants = self._sections(lambda section: not section.is_code and not section.is_writable)
        for sections in (code, constants):
            self._code.add(b"", _LINE_BYTES)
            for key, section in sections:
                self._offsets[key] = self._code.add(section.content or bytes(section.size), section.alignment)

    def _sections(self, wanted: Callable[[Section], bool]) -> list[tuple[tuple[int, int], Section]]:
        return [
            ((number, index), section)
            for number, code in enumerate(self._objects)
            for index, section in code.sections.items()
            if wanted(section)
        ]

    def _all_exports(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, code in enumerate(self._objects):
            for name, section, offset in code.symbols:
                if name and section is not None:
                    if name in found:
                        raise InternalError(f"cannot link object code: {name} is defined twice")
                    if (number, section) not in self._offsets:
                        raise NotKnown("a symbol in a section that is not loaded")
                    found[name] = self._offsets[number, section] + offset
        return found

    def _target(self, number: int, symbol: Symbol) -> str | int | None:
        """The offset of what a symbol stands for, or its name, if it is elsewhere; None for what is not loaded."""
        if symbol.section is None:
            return self._exports.get(symbol.name, symbol.name)
        begin = self._offsets.get((number, symbol.section))
        return None if begin is None else begin + symbol.offset

    def _fill_all(self, begin: int, places: Sequence[Place], targets: Sequence[str | int | None]) -> None:
        """Fills in what can be, and notes what is to be filled in when the image is loaded."""
        for offset, how, addend in places:
            target, fill, at = targets[how >> 32], how & 0xFFFF_FFFF, begin + offset
            if fill in _RELATIVE and isinstance(target, int):  # nearly all of them
                self._write(at, "<i", target + addend - at)
            elif target is None:
                raise NotKnown("a symbol in a section that is not loaded")
            else:
                self._fill(at, fill, target, addend)

    def _fill(self, at: int, fill: int, target: str | int, addend: int) -> None:
        match fill:
            case Fill.ADDRESS:
                self._fill_address(at, target, addend)
            case Fill.CALL if isinstance(target, str):
                self._write(at, "<i", self._stub(target) + addend - at)
            case Fill.LOAD_OF_SLOT | Fill.LONG_LOAD_OF_SLOT if isinstance(target, int) and self._computes_instead(at):
                self._write(at, "<i", target + addend - at)
            case Fill.SLOT | Fill.LOAD_OF_SLOT | Fill.LONG_LOAD_OF_SLOT:
                self._write(at, "<i", self._slot(target) + addend - at)
            case _:
                raise NotKnown(f"a place of kind {fill}")

    def _fill_address(self, at: int, target: str | int, addend: int) -> None:
        """A word that holds an address: only whoever loads the image knows it."""
        if at % _WORD_BYTES or (isinstance(target, str) and addend):
            raise NotKnown("an address in an odd place")
        if isinstance(target, str):
            self._imports.setdefault(target, []).append(at // _WORD_BYTES)
        else:
            self._write(at, "<q", target + addend)
            self._addresses.append(at // _WORD_BYTES)

    def _slot(self, target: str | int) -> int:
        """The offset of a word with the address of a symbol from elsewhere, or of a place in the image."""
        if target not in self._slots:
            self._slots[target] = self._code.add(bytes(_WORD_BYTES), _WORD_BYTES)
            self._fill_address(self._slots[target], target, 0)
        return self._slots[target]

    def _stub(self, name: str) -> int:
        """The offset of an instruction that jumps to a function from elsewhere."""
        if name not in self._stubs:
            slot = self._slot(name)
            at = self._code.add(_JUMP_BY_SLOT + bytes(4), _WORD_BYTES)
            self._write(at + len(_JUMP_BY_SLOT), "<i", slot - self._code.end)
            self._stubs[name] = at
        return self._stubs[name]

    def _computes_instead(self, at: int) -> bool:
        """Makes an instruction that loads the address of something in the image from a slot compute it, if it is a
        mov."""
        opcode = at - 2 - self._code.start
        if not 0 <= opcode < len(self._code.content) or self._code.content[opcode] != _MOV:
            return False
        self._code.content[opcode] = _LEA
        return True

    def _write(self, at: int, format: str, value: int) -> None:
        area = self._data if at < self._code.start else self._code
        try:
            struct.pack_into(format, area.content, at - area.start, value)
        except struct.error:
            raise DamagedObject(f"{value} does not fit where it belongs") from None


_RELATIVE = frozenset((int(Fill.RELATIVE), int(Fill.CALL)))
_JUMP_BY_SLOT = b"\xff\x25"  # jmp [rip + ...], of which the next four bytes say how far
_MOV, _LEA = 0x8B, 0x8D
