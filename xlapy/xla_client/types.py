"""Element types and the other enumerations, with the numbers that scripts and protos know them by."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from xlapy.hlo.element_types import ALL, ElementType, element_type_named, element_type_of, is_element_type_name
from xlapy.support.errors import ArgumentError


class PrimitiveType(enum.IntEnum):
    """What a shape is made of: the element types, and markers for what is no array."""

    PRIMITIVE_TYPE_INVALID = 0
    PRED = 1
    S8 = 2
    S16 = 3
    S32 = 4
    S64 = 5
    U8 = 6
    U16 = 7
    U32 = 8
    U64 = 9
    F16 = 10
    F32 = 11
    F64 = 12
    TUPLE = 13
    OPAQUE_TYPE = 14
    C64 = 15
    BF16 = 16
    TOKEN = 17
    C128 = 18
    F8E5M2 = 19
    F8E4M3FN = 20
    S4 = 21
    U4 = 22
    F8E4M3B11FNUZ = 23
    F8E5M2FNUZ = 24
    F8E4M3FNUZ = 25
    S2 = 26
    U2 = 27
    F8E4M3 = 28
    F8E3M4 = 29
    F4E2M1FN = 32
    F8E8M0FNU = 33
    F6E3M2FN = 35
    F6E2M3FN = 36

    @property
    def element_type(self) -> ElementType:
        """xlapy's element type; raises ArgumentError for the markers."""
        name = self.name.lower()
        if not is_element_type_name(name):
            raise ArgumentError(f"{self.name} is not the type of an array's elements")
        return element_type_named(name)


def primitive_type_of(element_type: Any) -> PrimitiveType:
    """The enumerator of an element type, a numpy dtype, or an enumerator."""
    if isinstance(element_type, PrimitiveType):
        return element_type
    return PrimitiveType[element_type_of(element_type).name.upper()]


def dtype_to_etype(dtype: Any) -> PrimitiveType:
    """The element type of a numpy dtype, or of anything that numpy makes one of."""
    return primitive_type_of(np.dtype(dtype))


XLA_ELEMENT_TYPE_TO_DTYPE: dict[PrimitiveType, np.dtype[Any]] = {
    **{primitive_type_of(element_type): element_type.dtype for element_type in ALL},
    PrimitiveType.TUPLE: np.dtype(np.object_),
    PrimitiveType.TOKEN: np.dtype(np.object_),
}

DTYPE_TO_XLA_ELEMENT_TYPE: dict[str, PrimitiveType] = {
    str(element_type.dtype): primitive_type_of(element_type) for element_type in ALL
}
"""Element types by the names of numpy dtypes."""


class FftType(enum.IntEnum):
    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class PaddingType(enum.Enum):
    VALID = 1
    SAME = 2


class HostBufferSemantics(enum.IntEnum):
    """Who may touch an array that became a buffer. Buffers are copied wherever that could be noticed."""

    IMMUTABLE_ONLY_DURING_CALL = 0
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    ZERO_COPY = 2


class ArrayCopySemantics(enum.IntEnum):
    """What becomes of an array that is put elsewhere. Arrays are copied wherever a change could be noticed."""

    ALWAYS_COPY = 0
    REUSE_INPUT = 1
    DONATE_INPUT = 2


class AutotuneCacheMode(enum.IntEnum):
    """How other compilers use a cache of what they tried; xlapy tries nothing out."""

    UNSPECIFIED = 0
    UPDATE = 1
    READ = 2


class CustomCallTargetTraits(enum.IntFlag):
    """What may be done with a custom call target; xlapy records no commands, so there is no difference."""

    DEFAULT = 0
    COMMAND_BUFFER_COMPATIBLE = 1


class RandomAlgorithm(enum.IntEnum):
    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


class TriangularSolveOptions_Transpose(enum.IntEnum):
    TRANSPOSE_INVALID = 0
    NO_TRANSPOSE = 1
    TRANSPOSE = 2
    ADJOINT = 3


class CustomCallSchedule(enum.IntEnum):
    SCHEDULE_NONE = 0
    SCHEDULE_LATEST = 1
    SCHEDULE_EARLIEST = 2


class CustomCallApiVersion(enum.IntEnum):
    API_VERSION_ORIGINAL = 1
    API_VERSION_STATUS_RETURNING = 2
    API_VERSION_STATUS_RETURNING_UNIFIED = 3
    API_VERSION_TYPED_FFI = 4
