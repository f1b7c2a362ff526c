"""The buffers of a client as a profile in pprof's format, compressed as its tools expect."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.support.protobuf import INT, STRING, encode, repeated, single
from xlapy.xla_client.buffers import Buffer


@dataclass(slots=True)
class ValueType:
    type: int = single(1, INT)
    unit: int = single(2, INT)


@dataclass(slots=True)
class Label:
    key: int = single(1, INT)
    str: int = single(2, INT)


@dataclass(slots=True)
class Sample:
    location_id: list[int] = repeated(1, INT)
    value: list[int] = repeated(2, INT)
    label: list[Label] = repeated(3, Label)


@dataclass(slots=True)
class Line:
    function_id: int = single(1, INT)
    line: int = single(2, INT)


@dataclass(slots=True)
class Location:
    id: int = single(1, INT)
    line: list[Line] = repeated(4, Line)


@dataclass(slots=True)
class Function:
    id: int = single(1, INT)
    name: int = single(2, INT)
    filename: int = single(4, INT)


@dataclass(slots=True)
class Profile:
    sample_type: list[ValueType] = repeated(1, ValueType)
    sample: list[Sample] = repeated(2, Sample)
    location: list[Location] = repeated(4, Location)
    function: list[Function] = repeated(5, Function)
    string_table: list[str] = repeated(6, STRING)


def heap_profile(buffers: Sequence[Buffer]) -> bytes:
    """One sample per buffer: its bytes, its device, and the line that made it, where tracebacks are recorded."""
    profile = Profile(string_table=[""])
    texts = {"": 0}

    def text(value: str) -> int:
        if value not in texts:
            texts[value] = len(texts)
            profile.string_table.append(value)
        return texts[value]

    profile.sample_type = [ValueType(text("allocations"), text("count")), ValueType(text("space"), text("bytes"))]
    for buffer in buffers:
        labels = [Label(text("kind"), text("buffer")), Label(text("device"), text(str(buffer.device())))]
        sample = Sample(value=[1, buffer.on_device_size_in_bytes()], label=labels)
        for frame in buffer.traceback.frames if buffer.traceback is not None else ():
            number = len(profile.location) + 1
            profile.function.append(Function(number, text(frame.function_name), text(frame.file_name)))
            profile.location.append(Location(number, [Line(number, frame.line_num)]))
            sample.location_id.append(number)
        profile.sample.append(sample)
    return gzip.compress(encode(profile))
