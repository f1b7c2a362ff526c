"""Linked code that only has to be put into memory: an image.

A program is linked once, when it is compiled. What is left to do when it is loaded is little: memory, a copy, the
addresses of functions from elsewhere. LLVM's linker, which did that before, makes an engine first, and LLVM itself is
a large library to load; a program from the cache needs neither.

    magic | length of the header (8 bytes, little endian) | header in JSON | data | code

In memory, data that may change comes first, filled up with zeros, and from the next page on code and constants, which
cannot be written to once they are in use. Behind the constants are slots, words that hold addresses: calls of functions
that are elsewhere jump to what a slot holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from xlapy_runtime.errors import InternalError
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.records import Record, values_of

PAGE_BYTES = 4096

_MAGIC = b"xlapy image 1\n\0\0"
_LENGTH_BYTES = 8


class Layout(Record):
    """What an image is made of. Offsets are from the beginning of the memory.

    `data_bytes` are of data, and `code_bytes` of code and constants; `data_space` is what data takes with its zeros,
    in whole pages. `addresses` are words, by number, to which the address of the memory is added. `imports` are words
    that get the address of something from elsewhere.
    """

    data_bytes: int
    data_space: int
    code_bytes: int
    exports: Mapping[str, int]
    imports: Mapping[str, Sequence[int]]
    addresses: Sequence[int]


Code: TypeAlias = bytes | memoryview
"""Object code, or a part of the bytes that it was read with."""


class Image(Record):
    """A layout, with what is copied into memory."""

    layout: Layout
    data: Code
    code: Code

    def dump(self) -> bytes:
        facts = list(values_of(self.layout).values())
        header = late("json").dumps(facts, separators=(",", ":")).encode()
        return b"".join((_MAGIC, len(header).to_bytes(_LENGTH_BYTES, "little"), header, self.data, self.code))


def is_image(code: Code) -> bool:
    return code[: len(_MAGIC)] == _MAGIC


Facts: TypeAlias = Sequence[Any]
"""The fields of a `Layout`, in order, as a process reads them that only puts the image into memory."""


def read_image(code: Code) -> Image:
    """What `Image.dump` made, where it is."""
    facts, data, own = parts(code)
    return Image(Layout(*facts), data, own)


Parts: TypeAlias = tuple[Facts, Code, Code]
"""The layout of an image, the data and the code."""


def parts(code: Code) -> Parts:
    """An image taken apart, where it is."""
    dumped = memoryview(code)
    start = len(_MAGIC) + _LENGTH_BYTES
    header_end = start + int.from_bytes(dumped[len(_MAGIC) : start], "little")
    try:
        facts = read_json(str(dumped[start:header_end], "utf-8"))
    except ValueError as error:
        raise InternalError(f"cannot link object code: a damaged image: {error}") from None
    return parts_behind(facts, dumped[header_end:])


def parts_behind(facts: Facts, content: memoryview) -> Parts:
    """An image of which the content, and nothing else, is behind the facts somebody has read. What is copied, and what
    is exported, lies in the memory. (Words that do not are found when they are filled in.)"""
    check_facts(facts)
    data_bytes, _, code_bytes, *_ = facts
    if len(content) != data_bytes + code_bytes:
        raise InternalError("cannot link object code: an image cut short")
    return facts, content[:data_bytes], content[data_bytes:]


def check_facts(facts: Facts) -> None:
    """Raises InternalError for those of no image."""
    try:
        data_bytes, data_space, code_bytes, exports, imports, _ = facts
        sizes = (data_bytes, data_space, code_bytes, *exports.values())
        is_sound = {*map(type, sizes)} == _INTEGERS and min(sizes) >= 0 and isinstance(imports, dict)
    except (AttributeError, TypeError, ValueError) as error:
        raise InternalError(f"cannot link object code: a damaged image: {error}") from None
    if not is_sound or data_space % PAGE_BYTES or data_bytes > data_space:
        raise InternalError("cannot link object code: a damaged image: it does not fit into its memory")
    if max(exports.values(), default=0) >= space_of(data_space, code_bytes):
        raise InternalError("cannot link object code: a damaged image: it exports what is not in it")


_INTEGERS = frozenset({int})


def space_of(data_space: int, code_bytes: int) -> int:
    """The memory that an image takes, in whole pages, of which there is one at least."""
    return data_space + rounded_up(max(1, code_bytes), PAGE_BYTES)


def rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step
