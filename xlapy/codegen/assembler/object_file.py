"""Object files in ELF for x86-64, as `xlapy_runtime.elf` reads them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from xlapy_runtime.elf import Fill

_HEADER, _SECTION, _SYMBOL, _PLACE = (struct.Struct(f) for f in ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"))
_IDENTITY = b"\x7fELF\x02\x01\x01" + bytes(9)
_RELOCATABLE, _X86_64 = 1, 62
_CONTENT, _SYMBOLS, _NAMES, _PLACES = 1, 2, 3, 4  # kinds of sections
_IN_MEMORY, _CODE, _OF_SECTION = 2, 4, 64  # flags
_GLOBAL, _FUNCTION = 1 << 4, 2
_SECTION_NAMES = b"\0.text\0.rodata\0.rela.text\0.symtab\0.strtab\0"
_TEXT, _RODATA, _SYMTAB, _STRTAB = 1, 2, 4, 5  # numbers of sections
_ALIGNMENT = 64


def object_file(
    code: bytes, constants: bytes, symbols: Mapping[str, tuple[int, bool]], places: Sequence[tuple[int, Fill, str, int]]
) -> bytes:
    """An object of code and constants. Symbols have their offset, and whether that is in the code, which others see;
    those in `places` without one are elsewhere."""
    names, entries, numbers = bytearray(b"\0"), [bytes(_SYMBOL.size)], {}
    outside = dict.fromkeys(symbol for _, _, symbol, _ in places if symbol not in symbols)
    local = [name for name, (_, is_code) in symbols.items() if not is_code]
    for name in (*local, *(name for name in symbols if name not in local), *outside):
        numbers[name] = len(entries)
        offset, is_code = symbols.get(name, (0, False))
        section = _TEXT if is_code else 0 if name in outside else _RODATA
        kind = 0 if section == _RODATA else _GLOBAL | _FUNCTION * is_code
        entries.append(_SYMBOL.pack(len(names), kind, 0, section, offset, 0))
        names += name.encode() + b"\0"
    filled = b"".join(
        _PLACE.pack(offset, numbers[symbol] << 32 | how, addend) for offset, how, symbol, addend in places
    )
    contents = (b"", code, constants, filled, b"".join(entries), bytes(names), _SECTION_NAMES)
    file = bytearray(_HEADER.size)
    rows = []
    for content, (title, kind, flags, link, info, entry_bytes) in zip(contents, _rows(len(local)), strict=True):
        file += bytes(-len(file) % _ALIGNMENT)
        alignment = _ALIGNMENT if flags & _IN_MEMORY else 1
        place = _SECTION_NAMES.index(b"\0" + title + b"\0") + 1 if title else 0
        rows.append(_SECTION.pack(place, kind, flags, 0, len(file), len(content), link, info, alignment, entry_bytes))
        file += content
    file += bytes(-len(file) % _ALIGNMENT)
    first, sizes = len(file), (_HEADER.size, 0, 0, _SECTION.size, len(rows), len(rows) - 1)
    _HEADER.pack_into(file, 0, _IDENTITY, _RELOCATABLE, _X86_64, 1, 0, 0, first, 0, *sizes)
    return bytes(file) + b"".join(rows)


def _rows(local: int) -> list[tuple[bytes, int, int, int, int, int]]:
    """Name, kind, flags, two numbers of what belongs to it, and size of its entries, for each section."""
    return [
        (b"", 0, 0, 0, 0, 0),
        (b".text", _CONTENT, _IN_MEMORY | _CODE, 0, 0, 0),
        (b".rodata", _CONTENT, _IN_MEMORY, 0, 0, 0),
        (b".rela.text", _PLACES, _OF_SECTION, _SYMTAB, _TEXT, _PLACE.size),
        (b".symtab", _SYMBOLS, 0, _STRTAB, local + 1, _SYMBOL.size),
        (b".strtab", _NAMES, 0, 0, 0, 0),
        (b".strtab", _NAMES, 0, 0, 0, 0),
    ]
