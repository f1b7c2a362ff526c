"""The wire format of protocol buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from xlapy.support.errors import ParseError
from xlapy.support.protobuf import (
    BOOL,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    MAX_NESTING,
    STRING,
    UNSIGNED,
    array,
    decode,
    encode,
    present,
    repeated,
    single,
    varint,
    varints,
)


@dataclass(slots=True)
class Sample:
    number: int = single(1, INT)
    text: str = single(2, STRING)
    numbers: list[int] = repeated(4, INT)
    flags: list[bool] = repeated(5, BOOL)
    floats: np.ndarray[Any, Any] | None = array(6, FLOAT)
    words: np.ndarray[Any, Any] | None = array(7, UNSIGNED)
    ratio: float = single(8, DOUBLE)
    data: bytes = single(9, BYTES)
    nested: Sample | None = present(10, lambda: Sample)
    many: list[Sample] = repeated(11, lambda: Sample)
    given: int | None = present(12, INT)
    names: list[str] = repeated(13, STRING)


def test_known_bytes() -> None:
    """The examples of the format's description."""
    assert encode(Sample(150)) == b"\x08\x96\x01"
    assert encode(Sample(text="testing")) == b"\x12\x07testing"
    assert encode(Sample(numbers=[3, 270, 86942])) == b"\x22\x06\x03\x8e\x02\x9e\xa7\x05"
    assert encode(Sample(-1)) == b"\x08" + b"\xff" * 9 + b"\x01"
    assert encode(Sample()) == b""


def test_everything_comes_back() -> None:
    sample = Sample(
        -(1 << 63),
        "größe",
        [0, -1, 1 << 62],
        [True, False],
        None,
        None,
        -0.0,
        b"\x00\xff",
        Sample(1, nested=Sample(2)),
        [Sample(), Sample(text="x")],
        0,
        ["", "a"],
    )
    again = decode(Sample, encode(sample))
    assert again == sample
    assert str(again.ratio) == "-0.0"
    assert decode(Sample, b"").given is None


def test_arrays_of_numbers_come_back() -> None:
    words = np.array([0, 127, 128, 1 << 35, (1 << 64) - 1], np.uint64)
    floats = np.arange(1000, dtype=np.float32)
    again = decode(Sample, encode(Sample(words=words, floats=floats)))
    assert again.words is not None and again.floats is not None
    np.testing.assert_array_equal(again.words, words)
    np.testing.assert_array_equal(again.floats, floats)


@pytest.mark.parametrize("seed", range(3))
def test_varints_in_bulk_are_varints(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(-(1 << 63), (1 << 63) - 1, 100) >> generator.integers(0, 63, 100)
    assert varints(values) == b"".join(varint(int(value)) for value in values)


def test_fields_may_come_in_pieces() -> None:
    """Lists packed or not, in several parts; unknown fields between; a message whose parts are merged."""
    unknown = b"\xf8\x07\x01" + b"\xfa\x07\x01x"
    parts = b"\x20\x01" + b"\x22\x02\x02\x03" + unknown + b"\x52\x02\x08\x07" + b"\x52\x03\x12\x01y" + b"\x20\x04"
    again = decode(Sample, parts)
    assert again.numbers == [1, 2, 3, 4]
    assert again.nested == Sample(7, "y")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "cut off"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "more than 10 bytes"),
        (b"\x12\x05ab", "5 bytes begins 2 bytes before the end"),
        (b"\x12\x01\xff", "'text' is not text"),
        (b"\x00\x00", "0 is not the number of a field"),
        (b"\x0b\x0c", "no wire type 3"),
        (b"\x22\x01\x80", "cut off"),
        (b"\x22\x0b" + b"\x80" * 10 + b"\x00", "more than 10 bytes"),
        (b"\x32\x03\x00\x00\x00", "3 bytes are not a number of values of 4 bytes"),
        (b"\x5a\x04\x0a\x7f\x00\x00", "begins 2 bytes before the end"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "before the end"),
    ],
)
def test_bytes_that_are_no_message(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        decode(Sample, data)


def test_nesting_is_bounded() -> None:
    def nested(depth: int) -> bytes:
        data = b""
        for _ in range(depth):
            data = b"\x52" + varint(len(data)) + data
        return data

    decode(Sample, nested(MAX_NESTING))
    with pytest.raises(ParseError, match="nested more than"):
        decode(Sample, nested(MAX_NESTING + 1))
