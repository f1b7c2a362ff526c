"""Programs as bytes: what caches keep and what `save` writes.

A header in JSON holds the structure; object code, constants and texts follow as they are. Nothing in it is executed on
reading, and everything is checked: bytes that are not a program of this format are a ValueError.

    magic (8 bytes) | length of the header (8 bytes, little endian) | header | blobs, one behind the other
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.program import ArraySpec, Program, RuntimeCall, TokenSpec

MAGIC = b"xlapy\x00\x02\n"
_LENGTH_BYTES = 8


def dump_program(program: Program, extra: Mapping[str, Any] | None = None) -> bytes:
    """The program as bytes; `extra` is plain data that `load_program` gives back."""
    texts = [text.encode("utf-8", "surrogatepass") for text in (program.hlo_text, *program.llvm_modules)]
    blobs: list[bytes] = [*program.objects, *(constant.tobytes() for constant in program.constants), *texts]
    header = {
        "name": program.name,
        "entry": program.entry,
        "kernels": list(program.kernels),
        "libraries": list(program.libraries),
        "has_loops": program.has_loops,
        "parameters": [_encode(tree) for tree in program.parameters],
        "parameter_names": list(program.parameter_names),
        "result": _encode(program.result),
        "arena_bytes": program.arena_bytes,
        "runtime_calls": [_encode_call(call) for call in program.runtime_calls],
        "num_replicas": program.num_replicas,
        "num_partitions": program.num_partitions,
        "aliases": sorted(program.aliases.items()),
        "objects": [len(code) for code in program.objects],
        "texts": [len(text) for text in texts],
        "constants": [[constant.dtype.name, list(constant.shape)] for constant in program.constants],
        "extra": _encode(dict(extra or {})),
    }
    text = late("json").dumps(header).encode()
    return b"".join([MAGIC, len(text).to_bytes(_LENGTH_BYTES, "little"), text, *blobs])


def load_program(data: bytes) -> tuple[Program, dict[str, Any]]:
    """The program in `data`, and the extra data beside it. Raises ValueError if `data` is not one."""
    start = len(MAGIC) + _LENGTH_BYTES
    if data[: len(MAGIC)] != MAGIC or len(data) < start:
        raise ValueError("not a program of xlapy, or of another version")
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        header = read_json(data[start : start + length].decode())
        blobs = _Blobs(data, start + length)
        objects = tuple(blobs.take(size) for size in header["objects"])
        constants = tuple(blobs.array(_dtype(name), dims) for name, dims in header["constants"])
        hlo_text, *llvm_modules = (blobs.take(size).decode("utf-8", "surrogatepass") for size in header["texts"])
        program = Program(
            name=header["name"],
            objects=objects,
            entry=header["entry"],
            parameters=tuple(_decode(tree) for tree in header["parameters"]),
            result=_decode(header["result"]),
            kernels=tuple(header["kernels"]),
            libraries=tuple(header["libraries"]),
            has_loops=header["has_loops"],
            parameter_names=tuple(header["parameter_names"]),
            arena_bytes=header["arena_bytes"],
            constants=constants,
            runtime_calls=tuple(_decode_call(row) for row in header["runtime_calls"]),
            num_replicas=header["num_replicas"],
            num_partitions=header["num_partitions"],
            aliases=dict(header["aliases"]),
            hlo_text=hlo_text,
            llvm_modules=tuple(llvm_modules),
        )
        return program, _decode(header["extra"])
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"a damaged program: {error}") from error


class _Blobs:
    """The bytes behind the header, taken in order."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise ValueError("a program cut short")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def array(self, dtype: np.dtype[Any], dims: Sequence[int]) -> np.ndarray[Any, Any]:
        count = int(np.prod(dims, dtype=np.int64))
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).reshape(dims)


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


def _dtype(name: str) -> np.dtype[Any]:
    """The element type of that name, which numpy may not know by itself."""
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
        case Mapping():
            return {"mapping": [[key, _encode(part)] for key, part in value.items()]}
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"a {type(value).__name__} is not plain data")


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "array":
            name, dims, dynamic, order = content
            return ArraySpec(_dtype(name), tuple(dims), tuple(dynamic), tuple(order))
        case "token":
            return TokenSpec()
        case "tuple":
            return tuple(_decode(part) for part in content)
        case "bytes":
            return bytes.fromhex(content)
        case "mapping":
            return {key: _decode(part) for key, part in content}
    raise ValueError(f"{kind!r} is unknown")
