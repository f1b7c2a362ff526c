"""Files of saved programs: a header in JSON, and the parts that it names, under one checksum.

    magic | format | length of the header | length of all behind this head | checksum | header | parts

The head is of 64 bytes, and each part begins at a multiple of 16. The checksum covers everything else, and nothing is
looked at before it has held: parts hold machine code. Who may write such a file may run code in the process that loads
it. The checksum is there to notice damage, not to tell whom a file is from.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xlapy_runtime.digests import blake2b
from xlapy_runtime.errors import SavedProgramError
from xlapy_runtime.images import Code, rounded_up
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late

MAGIC = b"\x89xlapy saved\r\n\x1a\n"
"""With bytes that are lost where a file is taken for text on its way."""

FORMAT = 1
"""To be counted up when files mean something else than before."""

_DIGEST_BYTES = 32
_FACTS = struct.Struct(f"<{len(MAGIC)}sIIQ")
_HEAD_BYTES = _FACTS.size + _DIGEST_BYTES
_ALIGNMENT = 16
_PARTS = "parts"

Parts = Mapping[str, Sequence[Code]]
"""Lists of bytes by name."""


def write_saved(path: str, header: Mapping[str, Any], parts: Parts) -> None:
    """Writes a file, under another name until it is complete. Raises OSError where that fails, and leaves what was
    there before."""
    sizes = {name: [len(code) for code in codes] for name, codes in parts.items()}
    text = late("json").dumps({**header, _PARTS: sizes}).encode()
    body = _padded([text, *(code for codes in parts.values() for code in codes)])
    facts = _FACTS.pack(MAGIC, FORMAT, len(text), sum(map(len, body)))
    _write(path, (facts, _checksum(facts, body), *body))


def _padded(blobs: Iterable[Code]) -> list[Code]:
    """The blobs, each followed by what is missing to the next aligned place."""
    return [part for blob in blobs for part in (blob, bytes(-len(blob) % _ALIGNMENT))]


def _checksum(facts: bytes, body: Iterable[Code]) -> bytes:
    digest = blake2b(facts, digest_size=_DIGEST_BYTES)
    for part in body:
        digest.update(part)
    return digest.digest()


def _write(path: str, parts: Iterable[Code]) -> None:
    temporary = os.path.join(os.path.dirname(path), f".saving-{os.getpid()}-{os.urandom(8).hex()}")
    try:
        with open(temporary, "xb") as file:
            file.writelines(parts)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            raise OSError(error.errno, error.strerror, path) from None  # by the name that somebody knows
        raise


def is_saved(beginning: bytes) -> bool:
    """Whether a file that begins like this is a saved program, whole or damaged."""
    return beginning[: len(MAGIC)] == MAGIC


def read_saved(path: str) -> tuple[dict[str, Any], dict[str, list[memoryview]]]:
    """The header of a file, and its parts where they are in memory. Raises SavedProgramError for a file that is not as
    `write_saved` left it, and OSError for one that cannot be read."""
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SavedProgramError(f"{path} is no regular file: give one that `executable.save(path)` wrote")
        head = file.read(_HEAD_BYTES)
        header_bytes, body_bytes = _checked_head(path, head)
        body = memoryview(file.read())
    if len(body) != body_bytes:
        is_short = len(body) < body_bytes
        have, wanted = _HEAD_BYTES + len(body), _HEAD_BYTES + body_bytes
        wrong = f"cut short: it has {have:,} of {wanted:,} bytes" if is_short else "damaged: something follows its end"
        raise SavedProgramError(f"{path} is {wrong}; copy it again, or save the program again")
    if _checksum(head[: _FACTS.size], (body,)) != head[_FACTS.size :]:
        raise SavedProgramError(f"{path} is damaged: its checksum is wrong; copy it again, or save the program again")
    header = read_json(str(body[:header_bytes], "utf-8"))
    return header, _taken_apart(body, rounded_up(header_bytes, _ALIGNMENT), header[_PARTS])


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file, and does not wait until somebody writes to it if it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _checked_head(path: str, head: bytes) -> tuple[int, int]:
    """The lengths of the header and of all that follows the head."""
    if not head:
        raise SavedProgramError(f"{path} is empty; save the program again")
    if not is_saved(head) and not MAGIC.startswith(head):
        raise SavedProgramError(f"{path} is no saved program: give a file that `executable.save(path)` wrote")
    if len(head) < _HEAD_BYTES:
        raise SavedProgramError(f"{path} is cut short: it has {len(head)} bytes; copy it again, or save it again")
    _, format, header_bytes, body_bytes = _FACTS.unpack_from(head)
    if format != FORMAT:
        raise SavedProgramError(
            f"{path} is of format {format}, and this version of xlapy reads format {FORMAT}; save the program again "
            "with this version, or load it with the one that saved it"
        )
    return header_bytes, body_bytes


def _taken_apart(body: memoryview, position: int, sizes: Mapping[str, Sequence[int]]) -> dict[str, list[memoryview]]:
    found: dict[str, list[memoryview]] = {}
    for name, lengths in sizes.items():
        found[name] = []
        for length in lengths:
            found[name].append(body[position : position + length])
            position += rounded_up(length, _ALIGNMENT)
    return found
