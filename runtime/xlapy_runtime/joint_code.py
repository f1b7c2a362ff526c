"""Linked code that programs share, as it lies beside a program in the cache: images with one header for all.

The first program that a process takes from there brings along what it needs besides itself, the libraries that it calls
and the wrapper around calls. That takes one file, one header and one piece of memory, where each of these would take
its own. Images lie in the file as they do in memory, so that they are read to where they run.

    for each image its pages | header in JSON | length of the header (8 bytes, little endian)
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import Code, Facts, Parts, check_facts, space_of
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.records import Record

_LENGTH_BYTES = 8


class Member(Record):
    """An image by the name of what it is. `trim` is the one of its functions that gives memory it keeps back to the
    system, if any."""

    name: str
    trim: str
    image: Parts


def dump_members(identity: str, members: Sequence[Member]) -> bytes:
    """The members as bytes, for those that have the same `identity`."""
    rows = [(member.name, member.trim, member.image[0]) for member in members]
    header = late("json").dumps((identity, rows), separators=(",", ":")).encode()
    pages = [_pages(*member.image) for member in members]
    return b"".join((*pages, header, len(header).to_bytes(_LENGTH_BYTES, "little")))


def _pages(facts: Facts, data: Code, code: Code) -> bytes:
    """What the memory of an image holds, before it is filled in."""
    space = space_of(facts[1], len(code))
    return (bytes(data).ljust(facts[1], b"\0") + bytes(code)).ljust(space, b"\0")


def read_members(memory: memoryview, identity: str | None) -> list[Member]:
    """What `dump_members` made, where it is; nothing for those that have another identity. Raises InternalError for
    other bytes."""
    end = len(memory) - _LENGTH_BYTES
    begin = end - int.from_bytes(memory[max(end, 0) :], "little")
    try:
        if begin < 0:
            raise ValueError("it is cut short")
        known, rows = read_json(str(memory[begin:end], "utf-8"))
        if known != identity:
            return []
        members, place = [], 0
        for name, trim, facts in rows:
            check_facts(facts)
            data_bytes, data_space, code_bytes, *_ = facts
            code = memory[place + data_space : place + data_space + code_bytes]
            members.append(Member(name, trim, (facts, memory[place : place + data_bytes], code)))
            place += space_of(data_space, code_bytes)
    except (IndexError, TypeError, ValueError) as error:
        raise InternalError(f"damaged code that programs share: {error}") from None
    if begin != place:
        raise InternalError("damaged code that programs share: it is longer or shorter than it says")
    return members
