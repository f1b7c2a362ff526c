"""What XLA's header `xla/ffi/api/c_api.h` declares of the typed custom-call API: numbers and structures."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np

FIRST_VERSION, VERSION = (0, 3), (0, 5)
"""Of the header: those between which structures and the table of functions have only grown at their ends."""

_HEAD: list[tuple[str, Any]] = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]
METADATA_EXTENSION = 1
"""The kind of extension of a frame in which a handler says how it was compiled."""

BUFFER = 1
"""The kind of all operands and results."""

DATA_TYPES: Mapping[str, tuple[int, Any]] = {
    "pred": (1, np.bool_),
    "s2": (26, ml_dtypes.int2),
    "s4": (21, ml_dtypes.int4),
    "s8": (2, np.int8),
    "s16": (3, np.int16),
    "s32": (4, np.int32),
    "s64": (5, np.int64),
    "u2": (27, ml_dtypes.uint2),
    "u4": (22, ml_dtypes.uint4),
    "u8": (6, np.uint8),
    "u16": (7, np.uint16),
    "u32": (8, np.uint32),
    "u64": (9, np.uint64),
    "f16": (10, np.float16),
    "f32": (11, np.float32),
    "f64": (12, np.float64),
    "bf16": (16, ml_dtypes.bfloat16),
    "c64": (15, np.complex64),
    "c128": (18, np.complex128),
    "f8e5m2": (19, ml_dtypes.float8_e5m2),
    "f8e3m4": (29, ml_dtypes.float8_e3m4),
    "f8e4m3": (28, ml_dtypes.float8_e4m3),
    "f8e4m3fn": (20, ml_dtypes.float8_e4m3fn),
    "f8e4m3b11fnuz": (23, ml_dtypes.float8_e4m3b11fnuz),
    "f8e5m2fnuz": (24, ml_dtypes.float8_e5m2fnuz),
    "f8e4m3fnuz": (25, ml_dtypes.float8_e4m3fnuz),
    "f4e2m1fn": (32, ml_dtypes.float4_e2m1fn),
    "f8e8m0fnu": (33, ml_dtypes.float8_e8m0fnu),
}
"""The header's number of each element type, by HLO's name."""


class AttributeKind(IntEnum):
    ARRAY = 1
    DICTIONARY = 2
    SCALAR = 3
    STRING = 4


class Stage(IntEnum):
    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ErrorCode(IntEnum):
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


def structure(name: str, *fields: tuple[str, Any], head: bool = True) -> Any:
    """A kind of structure, which begins as most do, with its size, if it has a `head`."""
    return type(name, (ctypes.Structure,), {"_fields_": [*(_HEAD if head else ()), *fields]})


Int, Pointer, Size = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t

ByteSpan = structure("ByteSpan", ("pointer", Pointer), ("length", Size), head=False)
Scalar = structure("Scalar", ("dtype", Int), ("value", Pointer), head=False)
Array = structure("Array", ("dtype", Int), ("size", Size), ("data", Pointer), head=False)
Buffer = structure("Buffer", ("dtype", Int), ("data", Pointer), ("rank", ctypes.c_int64), ("dims", Pointer))
Values = structure("Values", ("size", ctypes.c_int64), ("types", Pointer), ("values", Pointer))
Attributes = structure(
    "Attributes", ("size", ctypes.c_int64), ("types", Pointer), ("names", Pointer), ("values", Pointer)
)
ApiVersion = structure("ApiVersion", ("major", Int), ("minor", Int))
Metadata = structure(
    "Metadata",
    ("struct_size", Size),
    ("version", ApiVersion),
    ("traits", ctypes.c_uint32),
    ("state_type", ctypes.c_int64),
    head=False,
)
MetadataExtension = structure(
    "MetadataExtension",
    ("struct_size", Size),
    ("type", Int),
    ("next", Pointer),
    ("metadata", Pointer),
    head=False,
)
CallFrame = structure(
    "CallFrame",
    ("api", Pointer),
    ("context", Pointer),
    ("stage", Int),
    ("operands", Values),
    ("results", Values),
    ("attributes", Attributes),
    ("future", Pointer),
)
Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def sized(kind: Any, **fields: Any) -> Any:
    """A structure of a kind that begins with its size."""
    return kind(struct_size=ctypes.sizeof(kind), **fields)
