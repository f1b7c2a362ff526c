"""Element types: what one element of an array is, by HLO's names, as numpy dtypes, and in groups.

Integers narrower than a byte are stored one per byte, as ml_dtypes does.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from xlapy.support.errors import ArgumentError
from xlapy.support.given import spelled


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ElementType:
    """One element type. Instances are the constants of this module and are compared by identity."""

    name: str
    kind: str  # "pred", "signed", "unsigned", "float", "complex"
    bits: int
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return self.dtype.itemsize

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; pred is none."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_signed(self) -> bool:
        """An integer that may be negative."""
        return self.kind == "signed"

    @property
    def is_float(self) -> bool:
        """Real, with an exponent, however narrow."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """Of two parts, which are floats."""
        return self.kind == "complex"

    @property
    def is_narrow_float(self) -> bool:
        """A float narrower than f32: computed in f32 and rounded once per operation."""
        return self.kind == "float" and self.bits < 32

    @property
    def integer_range(self) -> tuple[int, int]:
        """The least and the greatest number of an integer type; pred has the numbers 0 and 1."""
        if not self.is_integer and self.kind != "pred":
            raise TypeError(f"{self} is not a type of integers")
        if self.is_signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def holds(self, low: int, high: int) -> bool:
        """Whether every integer from `low` to `high` is a value of the type: none wraps, none is rounded.

        Of floats narrower than 16 bits this is only known for a single integer, of complex types for none."""
        if self.is_complex:
            return False
        if not self.is_float:
            lowest, highest = self.integer_range
            return lowest <= low and high <= highest
        if low == high:
            with np.errstate(over="ignore"):
                return bool(float(self.dtype.type(low)) == low)
        if self.name not in _EXACT_BITS:
            return False
        magnitude = 1 << _EXACT_BITS[self.name]
        return -magnitude <= low and high <= magnitude

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return element_type_named, (self.name,)


def _type(name: str, kind: str, bits: int, dtype: Any) -> ElementType:
    element_type = ElementType(name, kind, bits, np.dtype(dtype))
    _BY_NAME[name] = element_type
    _BY_DTYPE[element_type.dtype] = element_type
    return element_type


_EXACT_BITS: Final = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""Integers of so many bits, and their negatives, are floats of the type."""

_BY_NAME: dict[str, ElementType] = {}
_BY_DTYPE: dict[np.dtype[Any], ElementType] = {}

PRED: Final = _type("pred", "pred", 1, np.bool_)
S2: Final = _type("s2", "signed", 2, ml_dtypes.int2)
S4: Final = _type("s4", "signed", 4, ml_dtypes.int4)
S8: Final = _type("s8", "signed", 8, np.int8)
S16: Final = _type("s16", "signed", 16, np.int16)
S32: Final = _type("s32", "signed", 32, np.int32)
S64: Final = _type("s64", "signed", 64, np.int64)
U2: Final = _type("u2", "unsigned", 2, ml_dtypes.uint2)
U4: Final = _type("u4", "unsigned", 4, ml_dtypes.uint4)
U8: Final = _type("u8", "unsigned", 8, np.uint8)
U16: Final = _type("u16", "unsigned", 16, np.uint16)
U32: Final = _type("u32", "unsigned", 32, np.uint32)
U64: Final = _type("u64", "unsigned", 64, np.uint64)
F4E2M1FN: Final = _type("f4e2m1fn", "float", 4, ml_dtypes.float4_e2m1fn)
F6E2M3FN: Final = _type("f6e2m3fn", "float", 6, ml_dtypes.float6_e2m3fn)
F6E3M2FN: Final = _type("f6e3m2fn", "float", 6, ml_dtypes.float6_e3m2fn)
F8E3M4: Final = _type("f8e3m4", "float", 8, ml_dtypes.float8_e3m4)
F8E4M3: Final = _type("f8e4m3", "float", 8, ml_dtypes.float8_e4m3)
F8E4M3FN: Final = _type("f8e4m3fn", "float", 8, ml_dtypes.float8_e4m3fn)
F8E4M3FNUZ: Final = _type("f8e4m3fnuz", "float", 8, ml_dtypes.float8_e4m3fnuz)
F8E4M3B11FNUZ: Final = _type("f8e4m3b11fnuz", "float", 8, ml_dtypes.float8_e4m3b11fnuz)
F8E5M2: Final = _type("f8e5m2", "float", 8, ml_dtypes.float8_e5m2)
F8E5M2FNUZ: Final = _type("f8e5m2fnuz", "float", 8, ml_dtypes.float8_e5m2fnuz)
F8E8M0FNU: Final = _type("f8e8m0fnu", "float", 8, ml_dtypes.float8_e8m0fnu)
F16: Final = _type("f16", "float", 16, np.float16)
BF16: Final = _type("bf16", "float", 16, ml_dtypes.bfloat16)
F32: Final = _type("f32", "float", 32, np.float32)
F64: Final = _type("f64", "float", 64, np.float64)
C64: Final = _type("c64", "complex", 64, np.complex64)
C128: Final = _type("c128", "complex", 128, np.complex128)

ALL: Final = tuple(_BY_NAME.values())
SIGNED: Final = frozenset(t for t in ALL if t.kind == "signed")
UNSIGNED: Final = frozenset(t for t in ALL if t.kind == "unsigned")
INTEGER: Final = SIGNED | UNSIGNED
FLOAT: Final = frozenset(t for t in ALL if t.kind == "float")
COMPLEX: Final = frozenset(t for t in ALL if t.kind == "complex")
BOOLEAN: Final = frozenset({PRED})
NUMERIC: Final = INTEGER | FLOAT | COMPLEX
ANY: Final = NUMERIC | BOOLEAN

_AMBIGUOUS: Final = frozenset({"u2", "u4", "u8"})  # bits to HLO, bytes to numpy

_PART = {C64: F32, C128: F64}
_COMPLEX_OF = {part: whole for whole, part in _PART.items()}


def element_type_named(name: str) -> ElementType:
    """The element type with HLO's `name` ("f32"); raises KeyError for an unknown one."""
    return _BY_NAME[name]


def is_element_type_name(name: str) -> bool:
    return name in _BY_NAME


def element_type_of(dtype: Any) -> ElementType:
    """The element type of a numpy dtype (or anything `np.dtype` takes), of HLO's name, of that in capitals, as XLA's
    enumeration has it (F32, U8), or of an `ElementType` itself.

    Raises ArgumentError for what has no element type (strings, objects, records, None, which is f64 to numpy), and for
    the names that mean one thing to HLO and another to numpy ("u8": 8 bits or 8 bytes). Byte order is ignored."""
    if isinstance(dtype, ElementType):
        return dtype
    if isinstance(dtype, str) and dtype.isupper() and dtype.lower() in _BY_NAME:
        return _BY_NAME[dtype.lower()]
    if isinstance(dtype, str) and dtype in _BY_NAME:
        if dtype in _AMBIGUOUS:
            raise ArgumentError(
                f"{dtype!r} is {_BY_NAME[dtype].dtype} to HLO and {np.dtype(dtype)} to numpy; use either name"
            )
        return _BY_NAME[dtype]
    found = _BY_DTYPE.get(dtype) if isinstance(dtype, np.dtype) else None
    if found is None:
        given = _numpy_dtype(dtype)
        found = _BY_DTYPE.get(given.newbyteorder("="))
        if found is None:
            raise ArgumentError(f"xlapy has no element type for numpy dtype {given!s}")
    return found


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """What numpy makes of it."""
    reason = "an element type is a numpy dtype, or a name of HLO"
    if dtype is not None:
        try:
            found: np.dtype[Any] = np.dtype(dtype)
            return found
        except (TypeError, ValueError, SyntaxError) as error:
            reason = str(error)
    raise ArgumentError(f"{_abbreviated(dtype)} is no element type: {reason}")


def _abbreviated(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:
        return spelled(value)


def real_part_type(element_type: ElementType) -> ElementType:
    """The type of the parts of a complex type; any other type is its own part."""
    return _PART.get(element_type, element_type)


def complex_type_of(part: ElementType) -> ElementType:
    """The complex type whose parts are `part` (f32 or f64)."""
    return _COMPLEX_OF[part]


def describe(types: frozenset[ElementType]) -> str:
    """Names a group of element types for an error message: "float or complex" rather than twenty names."""
    groups = {"pred": BOOLEAN, "integer": INTEGER, "signed integer": SIGNED, "float": FLOAT, "complex": COMPLEX}
    whole = [name for name, group in groups.items() if group <= types]
    if "integer" in whole:
        whole.remove("signed integer")
    covered = frozenset[ElementType]().union(*(groups[name] for name in whole))
    return " or ".join(whole + sorted(t.name for t in types - covered))
