"""Linked code that a program needs, as it lies beside it in the cache: images that are one piece of memory already.

The first program that a process takes from there brings along what it needs besides itself, the libraries that it calls
and the wrapper around calls. Linked one by one, each of these takes a file, a header and a search for what it calls.
Here they lie as they do in memory, with the program behind them, and know where the others are: they are read to where
they run, and what is left to fill in is the same for all.

    length of the header (8 bytes, little endian) | header in JSON | from the next page on, for each image its pages

The code comes last, because in memory there is other code behind it: the system takes 27 us to make pages code that are
beside such pages, and 37 us where others are on both sides.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import PAGE_BYTES, Code, Facts, Parts, rounded_up, space_of
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


class Joint:
    """Images as one piece of memory, one behind the other, and what is known about them. Offsets are from its
    beginning, in bytes.

    `before` is what lies in front of them, and stays as it is: what many programs share is put together once."""

    def __init__(self, members: Sequence[Member], before: Joint | None = None) -> None:
        self._memory: bytearray = bytearray() if before is None else bytearray(before._memory)
        self._exports: dict[str, int] = {} if before is None else dict(before._exports)
        self._code: list[list[int]] = [] if before is None else [list(piece) for piece in before._code]
        self._facts: list[str] = ["", "", ""] if before is None else before._facts  # see `_told`
        rows: list[tuple[str, str, int, int, dict[str, int]]] = []
        addresses: list[int] = []
        imports: list[tuple[str, list[int]]] = []
        for member in members:
            begin = len(self._memory)
            self._memory += _pages(*member.image)
            size = len(self._memory) - begin
            self._add_code(begin + member.image[0][1], len(self._memory))
            exports = {name: begin + offset for name, offset in member.image[0][3].items()}
            self._exports = {**exports, **self._exports}
            rows.append((member.name, member.trim, begin, size, exports))
        with memoryview(self._memory).cast("q") as words:
            for row, member in zip(rows, members, strict=True):
                self._connect(words, row[2], member.image[0], addresses, imports)
        told: tuple[Sequence[Any], ...] = (rows, addresses, imports)
        self._facts = [_told(before, facts) for before, facts in zip(self._facts, told, strict=True)]

    def dump(self, identity: str) -> bytes:
        """All as bytes, for those that have the same `identity`."""
        rows, addresses, imports = self._facts
        known, code = map(late("json").dumps, (identity, self._code))
        header = f"[{known},{code},[{rows}],[{addresses}],[{imports}]]".encode()
        head = len(header).to_bytes(_LENGTH_BYTES, "little") + header
        return head.ljust(rounded_up(len(head), PAGE_BYTES), b"\0") + self._memory

    def _add_code(self, begin: int, end: int) -> None:
        """Notes a piece of code, by its beginning and its size: one with that before if no data is in between."""
        if self._code and sum(self._code[-1]) == begin:
            begin, _ = self._code.pop()
        self._code.append([begin, end - begin])

    def _connect(
        self, words: memoryview, begin: int, facts: Facts, addresses: list[int], imports: list[tuple[str, list[int]]]
    ) -> None:
        """Lets the words of an image say where they point to in the memory, and notes those that point elsewhere."""
        *_, importing, own = facts
        first = begin // _WORD_BYTES
        for place in own:
            words[first + place] += begin
            addresses.append(first + place)
        for name, places in importing.items():
            filled = [first + place for place in places]
            if name not in self._exports:
                imports.append((name, filled))
                continue
            for place in filled:
                words[place] = self._exports[name]
            addresses += filled


def _told(before: str, facts: Sequence[Any]) -> str:
    """Facts in JSON, behind those that were told before: a list without its brackets."""
    text: str = late("json").dumps(facts)[1:-1]
    return ",".join(filter(None, (before, text)))


def _pages(facts: Facts, data: Code, code: Code) -> bytes:
    """What the memory of an image holds, before it is filled in."""
    space = space_of(facts[1], len(code))
    return (bytes(data).ljust(facts[1], b"\0") + bytes(code)).ljust(space, b"\0")


def link_members(room: Room, identity: str | None, imports: Mapping[str, int]) -> list[tuple[str, str, LinkedCode]]:
    """Links what `Joint.dump` made where it was read to, and takes the room: names, functions that trim, and code, of
    which each is unloaded by itself. Nothing for those that have another identity. Raises InternalError for other
    bytes, and for functions that nobody has."""
    try:
        begin, (known, code, rows, addresses, places) = _header(room.content)
        if known != identity:
            return []
        base = room.address + begin
        fill_in(room.content[begin:].cast("q"), base, addresses, places, imports)
        for place, size in code:
            protect(base + place, size)
        room.hand_over()
        return [
            (name, trim, LinkedCode(exports, functools.partial(release, base + place, size), base))
            for name, trim, place, size, exports in rows
        ]
    except (IndexError, TypeError, ValueError) as error:
        raise InternalError(f"damaged code that programs share: {error}") from None


def _header(memory: memoryview) -> tuple[int, list[Any]]:
    """Where the images begin, and what is known about them."""
    end = _LENGTH_BYTES + int.from_bytes(memory[:_LENGTH_BYTES], "little")
    begin = rounded_up(end, PAGE_BYTES)
    header: list[Any] = read_json(str(memory[_LENGTH_BYTES:end], "utf-8"))
    size = len(memory) - begin
    if sum([row[3] for row in header[2]]) != size or sum([size_of_piece for _, size_of_piece in header[1]]) > size:
        raise ValueError("it is longer or shorter than it says")
    return begin, header
