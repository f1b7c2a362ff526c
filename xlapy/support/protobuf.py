"""The wire format of protocol buffers: messages are dataclasses whose fields state their numbers.

    @dataclass(slots=True)
    class Tile:
        dimensions: list[int] = repeated(1, INT)

    encode(Tile([8, 128]))  ->  b"\\x0a\\x03\\x08\\x80\\x01"         decode(Tile, ...) is the way back

Fields that a class does not list are skipped, as the format demands. Any bytes are safe to decode: what is no message
of the class is a ParseError that says at which byte, and nothing is believed about a length that is not there.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from xlapy.support.errors import ParseError

Record = TypeVar("Record")

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
MAX_NESTING = 100
"""How deep messages may nest, as in other implementations of the format."""

_MAX_VARINT_BYTES = 10
_SHORT = 64
"""Lists of fewer bytes are read one integer after the other."""

_BYTES = [bytes((value,)) for value in range(0x80)]

_MAX_FIELD = (1 << 29) - 1
_WORD = 1 << 64


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A type of plain values: how one is stored, and what a field has that is not stored."""

    name: str
    wire: int
    default: Any
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any]  # of an int (VARINT) or of bytes
    dtype: np.dtype[Any] | None = None  # of the elements of a packed field that becomes an array

    @property
    def packable(self) -> bool:
        return self.wire != DELIMITED


def varint(value: int) -> bytes:
    """An integer, negative ones as 64 bits of two's complement: seven bits per byte, low ones first."""
    if 0 <= value < 0x80:
        return _BYTES[value]
    value %= _WORD
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _signed(value: int) -> int:
    return value - _WORD if value >> 63 else value


def _same(value: bytes) -> bytes:
    return value


INT = Scalar("integer", VARINT, 0, varint, _signed, np.dtype(np.int64))
"""int32, int64, and enumerations."""

UNSIGNED = Scalar("unsigned integer", VARINT, 0, varint, int, np.dtype(np.uint64))
BOOL = Scalar("bool", VARINT, False, varint, bool, np.dtype(np.bool_))
FLOAT = Scalar(
    "float", FIXED32, 0.0, struct.Struct("<f").pack, lambda data: struct.unpack("<f", data)[0], np.dtype("<f4")
)
DOUBLE = Scalar(
    "double", FIXED64, 0.0, struct.Struct("<d").pack, lambda data: struct.unpack("<d", data)[0], np.dtype("<f8")
)
STRING = Scalar("string", DELIMITED, "", str.encode, bytes.decode)
BYTES = Scalar("bytes", DELIMITED, b"", _same, _same)

FieldType: TypeAlias = "Scalar | type[Any] | Callable[[], type[Any]]"
"""A type of plain values, a message class, or a function that returns one which is defined further down."""

_SINGLE, _PRESENT, _REPEATED, _ARRAY = "single", "present", "repeated", "array"


@dataclass(frozen=True, slots=True)
class _Place:
    """What a field of a message class says of itself."""

    number: int
    type: FieldType
    kind: str


def single(number: int, kind: Scalar) -> Any:
    """A plain value; one that is zero or empty is not stored."""
    return field(default=kind.default, metadata={"place": _Place(number, kind, _SINGLE)})


def present(number: int, kind: FieldType) -> Any:
    """A message or plain value that may be missing: None."""
    return field(default=None, metadata={"place": _Place(number, kind, _PRESENT)})


def repeated(number: int, kind: FieldType) -> Any:
    """A list."""
    return field(default_factory=list, metadata={"place": _Place(number, kind, _REPEATED)})


def array(number: int, kind: Scalar) -> Any:
    """A list of numbers that may be long: a numpy array, None where there are none."""
    return field(default=None, metadata={"place": _Place(number, kind, _ARRAY)})


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    number: int
    scalar: Scalar | None
    message: type[Any] | None
    kind: str

    tag: bytes
    """In front of a plain value."""

    long_tag: bytes
    """In front of what has its length in front."""

    is_float: bool
    """Then -0 is stored, unlike other zeros."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The fields of a message class in the order of their numbers, and how to take all their values at once."""

    fields: tuple[_Field, ...]
    skips_false: tuple[bool, ...]
    """Whether nothing is stored for zero, or an empty list; of what may be missing, zero is said. Most are skipped."""

    by_number: dict[int, _Field]
    values: Callable[[Any], tuple[Any, ...]]


@functools.cache
def _layout(message: Any) -> _Layout:
    found = []
    for item in dataclasses.fields(message):
        place: _Place = item.metadata["place"]
        kind = place.type
        scalar = kind if isinstance(kind, Scalar) else None
        nested = None if scalar is not None else kind if isinstance(kind, type) else kind()  # type: ignore[operator]
        found.append(
            _Field(
                *(item.name, place.number, scalar, nested, place.kind),
                tag=varint(place.number << 3 | (DELIMITED if scalar is None else scalar.wire)),
                long_tag=varint(place.number << 3 | DELIMITED),
                is_float=scalar is FLOAT or scalar is DOUBLE,
            )
        )
    fields = tuple(sorted(found, key=lambda each: each.number))
    names = [each.name for each in fields]

    def values(message: Any) -> tuple[Any, ...]:
        return tuple([getattr(message, name) for name in names])

    getter = operator.attrgetter(*names) if len(names) > 1 else values
    skips_false = tuple([each.kind in (_SINGLE, _REPEATED) for each in fields])
    return _Layout(fields, skips_false, {each.number: each for each in fields}, getter)


# -- writing -------------------------------------------------------------------------------------------------------


def encode(message: Any) -> bytes:
    """The message in its wire format; equal messages give equal bytes."""
    parts: list[bytes] = []
    kind: Any = type(message)
    layout = _layout(kind)
    for item, skips, value in zip(layout.fields, layout.skips_false, layout.values(message), strict=True):
        if value is None or (skips and not value and not (item.is_float and _is_negative_zero(value))):
            continue
        if item.kind == _ARRAY:
            if value.size:
                parts += _delimited(item, _packed_array(item, value))
        elif item.message is not None:
            for element in value if item.kind == _REPEATED else (value,):
                parts += _delimited(item, encode(element))
        else:
            parts += _plain(item, value)
    return b"".join(parts)


def _delimited(item: _Field, data: bytes) -> tuple[bytes, bytes, bytes]:
    return item.long_tag, varint(len(data)), data


def _plain(item: _Field, value: Any) -> Sequence[bytes]:
    scalar = item.scalar
    assert scalar is not None
    if item.kind == _REPEATED:
        if scalar.packable:
            return _delimited(item, b"".join(map(scalar.write, value)))
        return [part for element in value for part in _delimited(item, scalar.write(element))]
    if scalar.wire == DELIMITED:
        return _delimited(item, scalar.write(value))
    return item.tag, scalar.write(value)


def _is_negative_zero(value: Any) -> bool:
    return str(value) == "-0.0"


def _packed_array(item: _Field, values: np.ndarray[Any, Any]) -> bytes:
    assert item.scalar is not None
    if item.scalar.wire == VARINT:
        return varints(values)
    return values.astype(item.scalar.dtype, copy=False).tobytes()


def varints(values: np.ndarray[Any, Any]) -> bytes:
    """The integers of an array, one behind the other."""
    words = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    sizes = np.ones(words.size, np.int64)
    for position in range(1, _MAX_VARINT_BYTES):
        sizes += words >= np.uint64(1 << 7 * position)
    starts = np.cumsum(sizes) - sizes
    result = np.empty(int(sizes.sum()), np.uint8)
    for position in range(int(sizes.max(initial=0))):
        has = sizes > position
        more = np.where(sizes[has] > position + 1, 0x80, 0).astype(np.uint8)
        bits = (words[has] >> np.uint64(7 * position)).astype(np.uint8) & np.uint8(0x7F)
        result[starts[has] + position] = bits | more
    return result.tobytes()


# -- reading -------------------------------------------------------------------------------------------------------


def decode(message: type[Record], data: bytes) -> Record:
    """The message that `data` holds; raises ParseError for bytes that are none of this class."""
    result = message()
    _Reader(data, message.__name__).into(result, 0, len(data), 0)
    return result


class _Reader:
    """A walk over the bytes of one message and those within it."""

    __slots__ = ("_data", "_name")

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name

    def into(self, message: Any, position: int, end: int, depth: int) -> None:
        """Reads the fields from `position` to `end` into a message, on top of what it has."""
        if depth > MAX_NESTING:
            raise self._error(position, f"messages are nested more than {MAX_NESTING} deep")
        kind: Any = type(message)
        fields, data = _layout(kind).by_number, self._data
        while position < end:
            start = position
            tag = data[position]
            if tag < 0x80:
                position += 1
            else:
                tag, position = self._varint(position, end)
            number, wire = tag >> 3, tag & 7
            if not 1 <= number <= _MAX_FIELD:
                raise self._error(start, f"{number} is not the number of a field")
            raw, position = self._value(wire, position, end)
            item = fields.get(number)
            if item is not None:
                self._store(message, item, wire, raw, position, depth)

    def _value(self, wire: int, position: int, end: int) -> tuple[int, int]:
        """A varint's value, or the length of any other value; and the position behind."""
        if wire == VARINT:
            return self._varint(position, end)
        if wire == DELIMITED:
            size, position = self._varint(position, end)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise self._error(position, f"there is no wire type {wire}")
        if size > end - position:
            raise self._error(position, f"a value of {size} bytes begins {end - position} bytes before the end")
        return size, position + size

    def _store(self, message: Any, item: _Field, wire: int, raw: int, end: int, depth: int) -> None:
        start = end - raw
        if item.message is not None:
            if wire == DELIMITED:
                self._nested(message, item, start, end, depth)
            return
        scalar = item.scalar
        assert scalar is not None
        if wire == scalar.wire:
            value = self._plain(item, raw if wire == VARINT else self._data[start:end], start)
            if item.kind == _REPEATED:
                getattr(message, item.name).append(value)
            elif item.kind == _ARRAY:
                self._extend(message, item, np.array([value], scalar.dtype))
            else:
                setattr(message, item.name, value)
        elif wire == DELIMITED and scalar.packable and item.kind in (_REPEATED, _ARRAY):
            if item.kind == _ARRAY:
                self._extend(message, item, self._packed(scalar, start, end))
            elif scalar.wire == VARINT and end - start < _SHORT:
                getattr(message, item.name).extend(map(scalar.read, self._short(start, end)))
            else:
                getattr(message, item.name).extend(self._packed(scalar, start, end).tolist())

    def _plain(self, item: _Field, raw: Any, start: int) -> Any:
        assert item.scalar is not None
        try:
            return item.scalar.read(raw)
        except UnicodeDecodeError:
            raise self._error(start, f"the field {item.name!r} is not text") from None

    def _nested(self, message: Any, item: _Field, start: int, end: int, depth: int) -> None:
        assert item.message is not None
        if item.kind == _REPEATED:
            nested = item.message()
            getattr(message, item.name).append(nested)
        else:
            nested = getattr(message, item.name) or item.message()
            setattr(message, item.name, nested)
        self.into(nested, start, end, depth + 1)

    @staticmethod
    def _extend(message: Any, item: _Field, values: np.ndarray[Any, Any]) -> None:
        before = getattr(message, item.name)
        setattr(message, item.name, values if before is None else np.concatenate([before, values]))

    def _packed(self, scalar: Scalar, start: int, end: int) -> np.ndarray[Any, Any]:
        assert scalar.dtype is not None
        if scalar.wire == VARINT:
            words = self._varints(start, end)
            return words.view(np.int64) if scalar is INT else words.astype(scalar.dtype)
        size = scalar.dtype.itemsize
        if (end - start) % size:
            raise self._error(start, f"{end - start} bytes are not a number of values of {size} bytes")
        return np.frombuffer(self._data, scalar.dtype, (end - start) // size, start)

    def _short(self, position: int, end: int) -> Iterator[int]:
        """The integers between two positions; for a few, this is quicker than numpy."""
        while position < end:
            value, position = self._varint(position, end)
            yield value

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        data = self._data
        if position < end and data[position] < 0x80:  # nearly all of them
            return data[position], position + 1
        value = shift = 0
        start = position
        while position < end:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value % _WORD, position
            shift += 7
            if position - start == _MAX_VARINT_BYTES:
                raise self._error(start, f"an integer of more than {_MAX_VARINT_BYTES} bytes")
        raise self._error(start, "an integer is cut off")

    def _varints(self, start: int, end: int) -> np.ndarray[Any, Any]:
        """All integers between two positions, as words of 64 bits."""
        data = np.frombuffer(self._data, np.uint8, end - start, start)
        last = np.flatnonzero(data < 0x80)
        if not data.size:
            return np.zeros(0, np.uint64)
        if not last.size or last[-1] != data.size - 1:
            raise self._error(start, "an integer is cut off")
        first = np.concatenate([[0], last[:-1] + 1])
        sizes = last - first + 1
        if sizes.max() > _MAX_VARINT_BYTES:
            raise self._error(start, f"an integer of more than {_MAX_VARINT_BYTES} bytes")
        words = np.zeros(last.size, np.uint64)
        for position in range(int(sizes.max())):
            has = sizes > position
            bits = (data[first[has] + position] & 0x7F).astype(np.uint64)
            words[has] |= bits << np.uint64(7 * position)
        return words

    def _error(self, position: int, message: str) -> ParseError:
        return ParseError(f"these bytes are no {self._name}: at byte {position}, {message}")


def enumerated(numbers: Sequence[Any], number: int, what: str) -> Any:
    """The value that an enumeration has at `number`; raises ParseError where there is none."""
    if not 0 <= number < len(numbers) or numbers[number] is None:
        raise ParseError(f"{number} is the number of no {what}")
    return numbers[number]


__all__ = [
    "BOOL",
    "BYTES",
    "DOUBLE",
    "FLOAT",
    "INT",
    "MAX_NESTING",
    "STRING",
    "UNSIGNED",
    "Scalar",
    "array",
    "decode",
    "encode",
    "enumerated",
    "present",
    "repeated",
    "single",
    "varint",
    "varints",
]
