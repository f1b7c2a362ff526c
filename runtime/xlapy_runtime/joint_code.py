"""Linked code that a program needs, as it lies beside it in the cache: images that are one piece of memory already.

The first program that a process takes from there brings along what it needs besides itself, the libraries that it calls
and the wrapper around calls. Linked one by one, each of these takes a file, a header and a search for what it calls.
Here they lie as they do in memory, with the program behind them, and know where the others are: they are read to where
they run, and what is left to fill in is the same for all.

    for each image its pages | header in JSON | length of the header (8 bytes, little endian)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import Code, Facts, Parts, space_of
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.linking import LinkedCode, Room, fill_in, protect, release
from xlapy_runtime.records import Record

_LENGTH_BYTES = 8
_WORD_BYTES = 8


class Member(Record):
    """An image by the name of what it is. `trim` is the one of its functions that gives memory it keeps back to the
    system, if any."""

    name: str
    trim: str
    image: Parts


class _Joint:
    """Memory that images are put into, one behind the other. Offsets are from its beginning, in bytes."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.rows: list[tuple[str, str, int, int, dict[str, int]]] = []
        self.code: list[list[int]] = []  # begin and size of each piece
        self.addresses: list[int] = []  # words, by number
        self.imports: dict[str, list[int]] = {}
        self.memory = bytearray()
        self._exports: dict[str, int] = {}
        begins = [self._add(member) for member in members]
        with memoryview(self.memory).cast("q") as words:
            for begin, member in zip(begins, members, strict=True):
                self._connect(words, begin, member.image[0])

    def _add(self, member: Member) -> int:
        """Puts an image behind the others; where it begins."""
        begin = len(self.memory)
        facts, data, code = member.image
        self.memory += _pages(facts, data, code)
        exports = {name: begin + offset for name, offset in facts[3].items()}
        self._exports = {**exports, **self._exports}
        self.rows.append((member.name, member.trim, begin, len(self.memory) - begin, exports))
        begin_of_code = begin + facts[1]
        if self.code and sum(self.code[-1]) == begin_of_code:
            self.code[-1][1] = len(self.memory) - self.code[-1][0]
        else:
            self.code.append([begin_of_code, len(self.memory) - begin_of_code])
        return begin

    def _connect(self, words: memoryview, begin: int, facts: Facts) -> None:
        """Lets the words of an image say where they point to in the memory, and notes those that point elsewhere."""
        *_, imports, addresses = facts
        first = begin // _WORD_BYTES
        for place in addresses:
            words[first + place] += begin
            self.addresses.append(first + place)
        for name, places in imports.items():
            own = [first + place for place in places]
            if name not in self._exports:
                self.imports[name] = self.imports.get(name, []) + own
                continue
            for place in own:
                words[place] = self._exports[name]
            self.addresses += own


def dump_members(identity: str, members: Sequence[Member]) -> bytes:
    """The members as bytes, for those that have the same `identity`."""
    joint = _Joint(members)
    facts = identity, joint.rows, joint.code, joint.addresses, joint.imports
    header = late("json").dumps(facts, separators=(",", ":")).encode()
    return b"".join((joint.memory, header, len(header).to_bytes(_LENGTH_BYTES, "little")))


def _pages(facts: Facts, data: Code, code: Code) -> bytes:
    """What the memory of an image holds, before it is filled in."""
    space = space_of(facts[1], len(code))
    return (bytes(data).ljust(facts[1], b"\0") + bytes(code)).ljust(space, b"\0")


def link_members(room: Room, identity: str | None, imports: Mapping[str, int]) -> list[tuple[str, str, LinkedCode]]:
    """Links what `dump_members` made where it was read to, and takes the room: names, functions that trim, and code, of
    which each is unloaded by itself. Nothing for those that have another identity. Raises InternalError for other
    bytes, and for functions that nobody has."""
    try:
        known, rows, code, addresses, places = _header(room.content)
        if known != identity:
            return []
        fill_in(room.memory.cast("q"), room.address, addresses, places, imports)
        for begin, size in code:
            protect(room.address + begin, size)
        base = room.hand_over()
        return [
            (name, trim, LinkedCode(exports, functools.partial(release, base + begin, size), base))
            for name, trim, begin, size, exports in rows
        ]
    except (IndexError, TypeError, ValueError) as error:
        raise InternalError(f"damaged code that programs share: {error}") from None


def _header(memory: memoryview) -> list[Any]:
    """What is known about the images, behind which it lies."""
    end = len(memory) - _LENGTH_BYTES
    begin = end - int.from_bytes(memory[max(end, 0) :], "little")
    if begin < 0:
        raise ValueError("it is cut short")
    header: list[Any] = read_json(str(memory[begin:end], "utf-8"))
    if sum([row[3] for row in header[1]]) != begin or sum([size for _, size in header[2]]) > begin:
        raise ValueError("it is longer or shorter than it says")
    return header
