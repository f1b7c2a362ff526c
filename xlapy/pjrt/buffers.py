"""Buffers that need more than a copy of all bytes: other orders of elements, other memories, memory of others.

What is simple is native code (`native_buffers`), which calls these functions for the rest.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from xlapy.hlo.element_types import element_type_named
from xlapy.pjrt.abi import ELEMENT_TYPES, LayoutType, TiledLayout
from xlapy.pjrt.client import client
from xlapy.pjrt.native import native
from xlapy.pjrt.records import BufferRecord, numbers, read_numbers
from xlapy.pjrt.table import implements
from xlapy.support.errors import ArgumentError, OutOfMemoryError, UnsupportedError
from xlapy_runtime.alignment import data_address

Array = np.ndarray[Any, Any]


def dtype_of(type: int) -> np.dtype[Any]:
    """The element type of a PJRT_Buffer_Type."""
    name = ELEMENT_TYPES.get(type, str(type))
    if name == "token":
        return np.dtype(np.bool_)
    return element_type_named(name).dtype


def type_of(dtype: np.dtype[Any]) -> int:
    """The PJRT_Buffer_Type of an element type."""
    return _TYPES[dtype]


_TYPES = {dtype_of(type): type for type, name in ELEMENT_TYPES.items() if name != "token"}


def array_at(address: int, dims: Sequence[int], dtype: np.dtype[Any], strides: Sequence[int] | None = None) -> Array:
    """An array of memory that is somebody else's."""
    if not math.prod(dims):
        return np.empty(dims, dtype)
    steps = [(size - 1) * step for size, step in zip(dims, strides or (), strict=bool(strides))]
    before = -sum(step for step in steps if step < 0)
    behind = sum(step for step in steps if step > 0) + dtype.itemsize if strides else math.prod(dims) * dtype.itemsize
    memory: Any = (ctypes.c_ubyte * (before + behind)).from_address(address - before)
    return np.ndarray(dims, dtype, memory, before, strides)


@contextmanager
def array_in(buffer: int) -> Iterator[Array]:
    """The array in a buffer, which keeps its memory meanwhile."""
    if not native().hold(buffer):
        raise ArgumentError("the buffer has been deleted or donated")
    try:
        record = BufferRecord.from_address(buffer)
        yield array_at(record.data, read_numbers(record.dims, record.rank), dtype_of(record.type))
    finally:
        native().unhold(buffer)


def new_buffer(array: Array, memory: int) -> int:
    """A buffer with a copy of the array."""
    buffer = empty_buffer(type_of(array.dtype), array.shape, memory)
    with array_in(buffer) as own:
        np.copyto(own, array)
    return buffer


def empty_buffer(type: int, dims: Sequence[int], memory: int) -> int:
    """A buffer whose elements may be anything."""
    byte_count, sizes = math.prod(dims) * dtype_of(type).itemsize, numbers(dims)
    buffer = native().new_buffer(type, len(dims), ctypes.addressof(sizes), byte_count, memory)
    if not buffer:
        raise OutOfMemoryError(f"no memory for an array of {byte_count:,} bytes")
    return int(buffer)


def memory_of(arguments: Any) -> int:
    """The memory that the arguments of a function name, or that of the device."""
    return int(arguments.memory or client().device(arguments.device).record.memory)


@implements("PJRT_Client_BufferFromHostBuffer")
def buffer_from_host(arguments: Any) -> None:
    """Arrays whose elements lie in another order, or apart."""
    dims = read_numbers(arguments.dims, arguments.num_dims)
    strides = read_numbers(arguments.byte_strides, arguments.num_byte_strides)
    if arguments.device_layout:
        _check_layout(arguments.device_layout, len(dims))
    if arguments.type not in ELEMENT_TYPES:
        raise UnsupportedError(f"there is no element type {arguments.type}")
    source = array_at(arguments.data, dims, dtype_of(arguments.type), strides or None)
    arguments.buffer = new_buffer(source, memory_of(arguments))
    arguments.done_with_host_buffer = native().ready_event


def _check_layout(address: int, rank: int) -> None:
    layout = TiledLayout.from_address(address)
    order = read_numbers(layout.numbers, layout.num_numbers)
    if layout.type != LayoutType.TILED or layout.num_tiles or order != list(range(rank - 1, -1, -1)):
        raise UnsupportedError("arrays of this platform have their last dimension side by side in memory")


@implements("PJRT_Client_CreateUninitializedBuffer")
def uninitialized_buffer(arguments: Any) -> None:
    dims = read_numbers(arguments.shape_dims, arguments.shape_num_dims)
    arguments.buffer = empty_buffer(arguments.shape_element_type, dims, memory_of(arguments))


@implements("PJRT_Client_CreateViewOfDeviceBuffer")
def view_of_memory(arguments: Any) -> None:
    """A buffer in memory of another library, which is told when it is not needed any more."""
    if arguments.layout:
        _check_layout(arguments.layout, arguments.num_dims)
    type, rank, dims = arguments.element_type, arguments.num_dims, arguments.dims
    byte_count = math.prod(read_numbers(dims, rank)) * dtype_of(type).itemsize
    buffer = native().new_record(type, rank, dims, byte_count, memory_of(arguments))
    record = BufferRecord.from_address(buffer)
    record.data = arguments.device_buffer_ptr
    record.on_delete, record.on_delete_argument = arguments.on_delete_callback, arguments.on_delete_callback_arg
    arguments.buffer = buffer


@implements("PJRT_Buffer_ToHostBuffer")
def buffer_to_host(arguments: Any) -> None:
    """Into memory where elements are in another order, or apart."""
    with array_in(arguments.src) as source:
        if arguments.dst_size < source.nbytes:
            raise ArgumentError(f"{source.nbytes} bytes do not fit into {arguments.dst_size}")
        layout = TiledLayout.from_address(arguments.host_layout)
        given = read_numbers(layout.numbers, layout.num_numbers)
        if layout.type == LayoutType.STRIDES:
            np.copyto(array_at(arguments.dst, source.shape, source.dtype, given), source)
        elif layout.num_tiles:
            raise UnsupportedError("memory of the host is not tiled")
        else:
            turned = source.transpose(given[::-1])
            np.copyto(array_at(arguments.dst, turned.shape, source.dtype), turned)
    arguments.event = native().ready_event


@implements("PJRT_Buffer_CopyRawToHost")
def copy_bytes_to_host(arguments: Any) -> None:
    begin, size = arguments.offset, arguments.transfer_size
    with array_in(arguments.buffer) as source:
        if not 0 <= begin <= begin + size <= source.nbytes:
            raise ArgumentError(f"no {size} bytes from {begin} on in {source.nbytes}")
        ctypes.memmove(arguments.dst, data_address(source) + begin, size)
    arguments.event = native().ready_event


@implements("PJRT_Buffer_CopyToDevice")
def copy_to_device(arguments: Any) -> None:
    arguments.dst_buffer = _copied(arguments.buffer, client().device(arguments.dst_device).record.memory)


@implements("PJRT_Buffer_CopyToMemory")
def copy_to_memory(arguments: Any) -> None:
    arguments.dst_buffer = _copied(arguments.buffer, arguments.dst_memory)


def _copied(buffer: int, memory: int) -> int:
    with array_in(buffer) as source:
        return new_buffer(source, memory)


@implements("PJRT_Buffer_IncreaseExternalReferenceCount")
def refer(arguments: Any) -> None:
    """Native code could not hold the buffer."""
    raise ArgumentError("the buffer has been deleted or donated")
