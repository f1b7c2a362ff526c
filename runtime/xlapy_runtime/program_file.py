"""Programs as bytes, as caches keep them.

A header in JSON holds the structure; constants and object code follow as they are. Nothing in it is executed on
reading, and everything is checked: bytes that are not a program of this format are a ValueError. Texts are not kept:
they are most of what there is to write, and hardly anybody reads them.

    magic (8 bytes) | length of the header (8 bytes, little endian) | header | blobs, each in a multiple of 16 bytes
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlapy_runtime.images import rounded_up
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.program import ArraySpec, Program, RuntimeCall, Texts, TokenSpec
from xlapy_runtime.wording import kind_of

MAGIC = b"xlapy\x00\x05\n"
_LENGTH_BYTES = 8
_ALIGNMENT = 16
"""Of constants and code in the data, which is as aligned itself."""


def dump_program(program: Program, extra: Mapping[str, Any] | None = None) -> bytes:
    """The program as bytes; `extra` are facts for which `load_program` gives a function."""
    header = (
        program.name,
        [len(code) for code in program.objects],
        program.entry,
        [_encode(tree) for tree in program.parameters],
        _encode(program.result),
        program.kernels,
        program.parameter_names,
        program.arena_bytes,
        [(constant.dtype.name, constant.shape) for constant in program.constants],
        [_encode_call(call) for call in program.runtime_calls],
        program.num_replicas,
        program.num_partitions,
        sorted(program.aliases.items()),
        program.libraries,
        program.has_loops,
        late("json").dumps(dict(extra or {})),
    )
    text = late("json").dumps(header).encode()
    head = b"".join((MAGIC, len(text).to_bytes(_LENGTH_BYTES, "little"), text))
    blobs = (head, *(constant.tobytes() for constant in program.constants), *program.objects)
    return b"".join(blob.ljust(rounded_up(len(blob), _ALIGNMENT), b"\0") for blob in blobs)


def load_program(
    data: bytes | memoryview, texts: Callable[[], Texts] = Texts
) -> tuple[Program, Callable[[], dict[str, Any]]]:
    """The program in `data`, and what reads the extra facts beside it. Raises ValueError if `data` is not one.
    Constants stay where they are in `data`."""
    start = len(MAGIC) + _LENGTH_BYTES
    if data[: len(MAGIC)] != MAGIC or len(data) < start:
        raise ValueError("not a program of xlapy, or of another version")
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        header = read_json(str(data[start : start + length], "utf-8"))
        if tuple(map(type, header)) != _KINDS:
            raise ValueError("its header has other fields")
        name, sizes, entry, parameters, result, kernels, parameter_names, arena_bytes, *rest = header
        arrays, calls, num_replicas, num_partitions, aliases, libraries, has_loops, extra = rest
        blobs = _Blobs(data, start + length, _ALIGNMENT)
        constants = tuple([blobs.array(_dtype(dtype), dims) for dtype, dims in arrays])
        program = Program(
            name,
            tuple([bytes(blobs.take(size)) for size in sizes]),
            entry,
            tuple([_decode(tree) for tree in parameters]),
            _decode(result),
            tuple(kernels),
            tuple(parameter_names),
            arena_bytes,
            constants,
            tuple([_decode_call(row) for row in calls]),
            num_replicas,
            num_partitions,
            dict(aliases),
            texts,
            tuple(libraries),
            has_loops,
        )
        return program, functools.partial(read_json, extra)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"a damaged program: {error}") from error


_KINDS = (str, list, str, list, dict, list, list, int, list, list, int, int, list, list, bool, str)
"""Of the fields of a header, in order."""


class _Blobs:
    """What is behind the header, in order: each begins where the alignment has it, and stays where it is."""

    def __init__(self, data: bytes | memoryview, position: int, alignment: int) -> None:
        self._data = memoryview(data)
        self._position = rounded_up(position, alignment)
        self._alignment = alignment

    def take(self, size: int) -> memoryview:
        begin = self._position
        self._position = begin + rounded_up(size, self._alignment)
        if size < 0 or self._position > len(self._data):
            raise ValueError("a program cut short")
        return self._data[begin : begin + size]

    def array(self, dtype: np.dtype[Any], dims: Sequence[int]) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.take(math.prod(dims) * dtype.itemsize), dtype).reshape(dims)


def _encode_call(call: RuntimeCall) -> list[Any]:
    return [
        call.kind,
        call.label,
        call.where,
        [_encode(spec) for spec in call.operands],
        [_encode(spec) for spec in call.results],
        _encode(dict(call.attributes)),
    ]


def _decode_call(row: Sequence[Any]) -> RuntimeCall:
    kind, label, where, operands, results, attributes = row
    return RuntimeCall(
        kind, label, where, tuple(map(_decode, operands)), tuple(map(_decode, results)), _decode(attributes)
    )


_USUAL = {name: np.dtype(name) for name in ("bool", "float32", "float64", "int32", "int64", "uint8", "uint32")}


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    """The element type of that name, which numpy may not know by itself."""
    if name in _USUAL:
        return _USUAL[name]
    try:
        return np.dtype(name)
    except TypeError:
        scalar_type: type[Any] = late("ml_dtypes").__dict__[name]
        known: np.dtype[Any] = np.dtype(scalar_type)
        return known


def _encode(value: Any) -> Any:
    """Plain data as JSON; what JSON does not have becomes a dictionary with one key that says what it is."""
    match value:
        case ArraySpec():
            return {"array": [value.dtype.name, list(value.dims), list(value.dynamic), list(value.order)]}
        case TokenSpec():
            return {"token": None}
        case tuple() | list():
            return {"tuple": [_encode(part) for part in value]}
        case bytes():
            return {"bytes": value.hex()}
        case Mapping() if all(type(part) in _SCALARS for part in value.values()):
            return {"scalars": dict(value)}
        case Mapping():
            return {"mapping": [[key, _encode(part)] for key, part in value.items()]}
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"{kind_of(value)} is not plain data")


_SCALARS = (bool, int, float, str, type(None))


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "array":
            name, dims, dynamic, order = content
            return ArraySpec(_dtype(name), tuple(dims), tuple(dynamic), tuple(order))
        case "scalars":
            return dict(content)
        case "token":
            return TokenSpec()
        case "tuple":
            return tuple(_decode(part) for part in content)
        case "bytes":
            return bytes.fromhex(content)
        case "mapping":
            return {key: _decode(part) for key, part in content}
    raise ValueError(f"{kind!r} is unknown")
