"""Linked code that programs share, as it lies beside a program in the cache: images with one header for all.

The first program that a process takes from there brings along what it needs besides itself, the libraries that it calls
and the wrapper around calls, and all of it is put into memory as one. That takes one file, one header and one piece of
memory, where each of these would take its own.

    length of the header (8 bytes, little endian) | header in JSON | for each image its data and its code
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import Parts, parts_behind
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
    content = [part for member in members for part in member.image[1:]]
    return b"".join((len(header).to_bytes(_LENGTH_BYTES, "little"), header, *content))


def read_members(data: bytes, identity: str | None) -> list[Member]:
    """What `dump_members` made, where it is; nothing for those that have another identity. Raises InternalError for
    other bytes."""
    view = memoryview(data)
    begin = _LENGTH_BYTES + int.from_bytes(view[:_LENGTH_BYTES], "little")
    try:
        known, rows = read_json(str(view[_LENGTH_BYTES:begin], "utf-8"))
        if known != identity:
            return []
        members = []
        for name, trim, facts in rows:
            end = begin + facts[0] + facts[2]
            members.append(Member(name, trim, parts_behind(facts, view[begin:end])))
            begin = end
    except (IndexError, TypeError, ValueError) as error:
        raise InternalError(f"damaged code that programs share: {error}") from None
    if begin != len(view):
        raise InternalError("damaged code that programs share: it is longer than it says")
    return members
