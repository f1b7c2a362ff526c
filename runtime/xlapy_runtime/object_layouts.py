"""How Python and numpy lay out the objects that the native call wrapper looks into, and whether it is so here.

Each field is compared with what Python says about probe objects. That is done once for each Python and numpy
(`calling.layout_identity`): processes that find the wrapper in the cache load nothing of this.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from xlapy_runtime.alignment import data_address
from xlapy_runtime.calling import Array, NumpyApi, is_ready, numpy_api
from xlapy_runtime.program import ArraySpec
from xlapy_runtime.result_blocks import HANDLER_CAPSULE

_NUMPY_ABI_VERSIONS = (0x01000009, 0x02000000)
"""Those of numpy 1 and 2, whose arrays agree in the fields that the wrapper reads."""


class _ObjectFields(ctypes.Structure):
    """CPython's PyObject."""

    _fields_ = (("reference_count", ctypes.c_int64), ("type", ctypes.c_void_p))


class ArrayFields(ctypes.Structure):
    """numpy's PyArrayObject."""

    _fields_ = (
        ("object", _ObjectFields),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int),
        ("dims", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("base", ctypes.c_void_p),
        ("descriptor", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("weak_references", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("memory_handler", ctypes.c_void_p),
    )


class ArrayFlags:
    """Those of numpy that the wrapper sets."""

    OWNS_DATA = 0x4
    CONTIGUOUS_AND_WRITEABLE = 0x501


class DtypeFields(ctypes.Structure):
    """numpy's PyArray_Descr, as far as the wrapper knows it. Dtypes that came out of a pickle are not numpy's own ones,
    but `identity` is the same."""

    _fields_ = (
        ("object", _ObjectFields),
        ("scalar_type", ctypes.c_void_p),
        ("identity", ctypes.c_int64),  # characters for kind, type, byte order and flags, and the number of the type
    )


@functools.cache
def is_layout_known() -> bool:
    """Whether Python and numpy are laid out in memory as the wrapper takes for granted. Computed once."""
    return _is_known_python() and _is_known_numpy() and all(map(_fields_agree, _probe_arrays()))


def _is_known_python() -> bool:
    """CPython with 64 bits and its lock; without the lock, objects are larger."""
    is_64_bit = struct.calcsize("P") == 8
    return sys.implementation.name == "cpython" and is_64_bit and _OBJECT_BYTES == 16


_OBJECT_BYTES = object.__basicsize__


def _is_known_numpy() -> bool:
    try:
        api = numpy_api()
    except (KeyError, AttributeError, ValueError):
        return False
    if api[NumpyApi.ARRAY_TYPE] != id(np.ndarray):
        return False
    version = _VERSION(api[NumpyApi.ABI_VERSION])()
    is_same_size = np.ndarray.__basicsize__ == ctypes.sizeof(ArrayFields)
    return is_same_size and version in _NUMPY_ABI_VERSIONS and _makes_arrays(api[NumpyApi.NEW_FROM_DESCRIPTOR])


_POINTER, _OBJECT = ctypes.c_void_p, ctypes.py_object
_VERSION = ctypes.PYFUNCTYPE(ctypes.c_uint)
_NEW_ARRAY = ctypes.PYFUNCTYPE(
    _OBJECT, _POINTER, _OBJECT, ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER
)


def _makes_arrays(address: int) -> bool:
    """Whether numpy's PyArray_NewFromDescr is at the address: tries it."""
    new_array = _NEW_ARRAY(address)
    dtype = np.dtype(np.float32)
    dims = (ctypes.c_int64 * 2)(3, 5)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
    array = new_array(id(np.ndarray), dtype, 2, ctypes.addressof(dims), None, None, 0, None)
    return type(array) is np.ndarray and is_ready(ArraySpec(dtype, (3, 5)), array)


def _probe_arrays() -> Iterable[Array]:
    """Arrays that differ in every field the wrapper reads."""
    yield np.empty((2, 3, 4, 5))[:, 1:, ::2].T
    yield np.empty((), np.int8)
    yield np.empty((0, 7), np.complex64)
    yield np.frombuffer(b"read only bytes!", np.uint16)


def _fields_agree(array: Array) -> bool:
    fields = ArrayFields.from_address(id(array))
    if fields.object.type != id(np.ndarray) or fields.rank != array.ndim or fields.flags != array.flags.num:
        return False
    dims = (ctypes.c_int64 * array.ndim).from_address(fields.dims) if array.ndim else ()
    strides = (ctypes.c_int64 * array.ndim).from_address(fields.strides) if array.ndim else ()
    return (
        tuple(dims) == array.shape
        and tuple(strides) == array.strides
        and fields.data == data_address(array)
        and fields.base == (None if array.base is None else id(array.base))
        and fields.descriptor == id(array.dtype)
        and _names_handler(fields) == array.flags.owndata
        and _is_identity(DtypeFields.from_address(id(array.dtype)).identity, array.dtype)
    )


def _names_handler(fields: ArrayFields) -> bool:
    """Whether an array says who frees its memory, as those do that own it."""
    return fields.memory_handler is not None and bool(_IS_CAPSULE(fields.memory_handler, HANDLER_CAPSULE))


_IS_CAPSULE = ctypes.PYFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def _is_identity(identity: int, dtype: np.dtype[Any]) -> bool:
    kind, character, order, _, number = struct.unpack("=cccBi", struct.pack("=q", identity))
    text = (kind + character + order).decode("latin-1")
    return text == dtype.kind + dtype.char + dtype.byteorder and bool(number == dtype.num)
