"""How attributes are found in the messages of instructions, and put there: the registry of their codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlapy.hlo.proto.messages import InstructionProto
from xlapy.support.records import Record
from xlapy.support.registry import Registry

Read = Callable[[InstructionProto], Any]
Write = Callable[[InstructionProto, Any], None]


class Codec(Record):
    """How one attribute is found in a message and put there."""

    read: Read
    write: Write


CODECS: Registry[Codec] = Registry("attributes in protocol buffers")
"""By `op.attribute`, by the name of the attribute's type, or by the name of the attribute, asked in this order."""


def add_codec(read: Read, write: Write, *keys: str) -> None:
    """One codec for all of these keys."""
    for key in keys:
        CODECS.add(key, Codec(read, write))
