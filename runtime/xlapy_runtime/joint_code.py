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
        return b"".join((self._memory, header, len(header).to_bytes(_LENGTH_BYTES, "little")))

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
        known, code, rows, addresses, places = _header(room.content)
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
    if sum([row[3] for row in header[2]]) != begin or sum([size for _, size in header[1]]) > begin:
        raise ValueError("it is longer or shorter than it says")
    return header
