"""What instructions carry and no op looks at, as text in the graph and as fields of the message.

Kept are shardings, frontend attributes, the backend's configuration, the schedule of a custom call and the replication
of a parameter. Other such attributes have no place in the messages here, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from xlapy.hlo.proto.messages import (
    FrontendAttributesProto,
    InstructionProto,
    ParameterReplicationProto,
    StringEntry,
)
from xlapy.hlo.proto.shardings import sharding_from_text, sharding_to_text
from xlapy.hlo.text.backend_config import config_bytes, config_text, is_group
from xlapy.hlo.text.lexer import Lexer, quote
from xlapy.support.records import Record
from xlapy.support.source import Source


class Extra(Record):
    """How one of these attributes is found in a message, as text or "", and put there."""

    read: Callable[[InstructionProto], str]
    write: Callable[[InstructionProto, str], None]


def as_value(text: str) -> str:
    """The text in quotes, unless it is a group in braces, such as JSON, which stands in HLO text as it is."""
    return text if is_group(text) else quote(text)


# -- frontend attributes -------------------------------------------------------------------------------------------


def frontend_attributes_to_text(proto: FrontendAttributesProto | None) -> str:
    """`{key="value",other="value"}`, or "" for none."""
    entries = sorted((entry.key, entry.value) for entry in proto.map) if proto is not None else []
    return "{" + ",".join(f"{key}={as_value(value)}" for key, value in entries) + "}" if entries else ""


def frontend_attributes_from_text(text: str) -> FrontendAttributesProto:
    lexer = Lexer(Source(text))
    entries = []
    lexer.expect("{")
    while not lexer.accept("}"):
        key = lexer.word("the name of an attribute")
        lexer.expect("=", " behind the name of an attribute")
        entries.append(StringEntry(key, lexer.string() if lexer.at('"') else lexer.verbatim()))
        lexer.accept(",")
    return FrontendAttributesProto(entries)


def _write_frontend_attributes(proto: InstructionProto, text: str) -> None:
    proto.frontend_attributes = frontend_attributes_from_text(text)


# -- the backend's configuration -----------------------------------------------------------------------------------


def _read_backend_config(proto: InstructionProto) -> str:
    return config_text(proto.backend_config) if proto.backend_config else ""


def _write_backend_config(proto: InstructionProto, text: str) -> None:
    proto.backend_config = config_bytes(text)


# -- flags ---------------------------------------------------------------------------------------------------------

_SCHEDULES = ("", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")


def _read_schedule(proto: InstructionProto) -> str:
    number = proto.custom_call_schedule
    return _SCHEDULES[number] if 0 <= number < len(_SCHEDULES) else ""


def _write_schedule(proto: InstructionProto, text: str) -> None:
    proto.custom_call_schedule = _SCHEDULES.index(text) if text in _SCHEDULES else 0


def _read_replication(proto: InstructionProto) -> str:
    replication = proto.parameter_replication
    if replication is None or not replication.replicated_at_leaf_buffers:
        return ""
    return "{" + ",".join("true" if flag else "false" for flag in replication.replicated_at_leaf_buffers) + "}"


def _write_replication(proto: InstructionProto, text: str) -> None:
    flags = [word == "true" for word in re.findall(r"true|false", text)]
    proto.parameter_replication = ParameterReplicationProto(flags)


def _write_sharding(proto: InstructionProto, text: str) -> None:
    proto.sharding = sharding_from_text(text)


EXTRAS = {
    "sharding": Extra(
        lambda proto: sharding_to_text(proto.sharding) if proto.sharding is not None else "", _write_sharding
    ),
    "frontend_attributes": Extra(
        lambda proto: frontend_attributes_to_text(proto.frontend_attributes), _write_frontend_attributes
    ),
    "backend_config": Extra(_read_backend_config, _write_backend_config),
    "schedule": Extra(_read_schedule, _write_schedule),
    "parameter_replication": Extra(_read_replication, _write_replication),
}
"""By their keys in HLO text."""
