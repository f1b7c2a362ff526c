"""The native half of the platform by itself, without a client of JAX: memory, buffers, events and errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.target import reference_target
from xlapy.pjrt import api
from xlapy.pjrt.abi import FUNCTIONS, Semantics, arguments_of
from xlapy.pjrt.buffers import array_in, new_buffer
from xlapy.pjrt.client import client
from xlapy.pjrt.errors import error_of
from xlapy.pjrt.native import emit_platform, native
from xlapy.pjrt.records import BlockHeader, BufferRecord
from xlapy.support.errors import ArgumentError, UnsupportedError
from xlapy.support.late import late
from xlapy_runtime.alignment import LINE_BYTES, data_address


def call(name: str, **given: Any) -> Any:
    """Calls a function of the API, which must not fail; its arguments afterwards."""
    arguments = arguments_of(name)(**given)
    assert not native().function(name)(ctypes.addressof(arguments))
    return arguments


@pytest.fixture
def memory() -> int:
    return client().memories[0].address


@pytest.fixture
def buffer(memory: int) -> Iterator[int]:
    handle = new_buffer(np.arange(6, dtype=np.float32).reshape(2, 3), memory)
    yield handle
    call("PJRT_Buffer_Destroy", buffer=handle)


@pytest.mark.parametrize("byte_count", [0, 1, 256, 257, 320, 321, 511, 512, 513, 5000, 1 << 20, (1 << 20) + 1])
def test_blocks_are_of_the_class_for_their_size(byte_count: int, memory: int) -> None:
    handle = new_buffer(np.zeros(byte_count, np.uint8), memory)
    record = BufferRecord.from_address(handle)
    assert record.data == record.block + LINE_BYTES and record.data % LINE_BYTES == 0
    assert BlockHeader.from_address(record.block).home == native().home_address(byte_count)
    call("PJRT_Buffer_Destroy", buffer=handle)


def test_blocks_wait_for_the_next_who_wants_such_a_one(memory: int) -> None:
    first = new_buffer(np.zeros(3000, np.uint8), memory)
    block = BufferRecord.from_address(first).block
    call("PJRT_Buffer_Destroy", buffer=first)
    second = new_buffer(np.zeros(2900, np.uint8), memory)
    assert BufferRecord.from_address(second).block == block
    call("PJRT_Buffer_Destroy", buffer=second)


def test_buffers_say_what_they_are(buffer: int) -> None:
    dims = call("PJRT_Buffer_Dimensions", buffer=buffer)
    assert list((ctypes.c_int64 * dims.num_dims).from_address(dims.dims)) == [2, 3]
    assert call("PJRT_Buffer_ElementType", buffer=buffer).type == 11
    assert call("PJRT_Buffer_OnDeviceSizeInBytes", buffer=buffer).on_device_size_in_bytes == 24
    assert call("PJRT_Buffer_Device", buffer=buffer).device == client().devices[0].address
    with array_in(buffer) as array:
        assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_who_holds_a_buffer_keeps_its_memory(buffer: int) -> None:
    record = BufferRecord.from_address(buffer)
    with array_in(buffer) as array:
        call("PJRT_Buffer_Delete", buffer=buffer)
        assert call("PJRT_Buffer_IsDeleted", buffer=buffer).is_deleted
        assert array.sum() == 15 and record.block
        assert not native().hold(buffer)
    assert not record.block
    with pytest.raises(ArgumentError, match="deleted"), array_in(buffer):
        pass


def test_memory_of_the_host_is_given_back_when_the_buffer_goes(memory: int) -> None:
    room = np.zeros(40_000, np.uint8)
    given = room[-data_address(room) % LINE_BYTES :][:32_768]
    dims = (ctypes.c_int64 * 1)(given.size)
    made = call(
        "PJRT_Client_BufferFromHostBuffer",
        data=data_address(given),
        type=6,
        dims=ctypes.addressof(dims),
        num_dims=1,
        host_buffer_semantics=Semantics.IMMUTABLE_ZERO_COPY,
        memory=memory,
    )
    assert BufferRecord.from_address(made.buffer).data == data_address(given)
    event, told = made.done_with_host_buffer, []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda error, _: told.append(error))
    call("PJRT_Event_OnReady", event=event, callback=ctypes.cast(callback, ctypes.c_void_p).value)
    assert not call("PJRT_Event_IsReady", event=event).is_ready and not told
    call("PJRT_Buffer_Destroy", buffer=made.buffer)
    assert told == [None]
    assert call("PJRT_Event_IsReady", event=event).is_ready
    call("PJRT_Event_OnReady", event=event, callback=ctypes.cast(callback, ctypes.c_void_p).value)
    assert told == [None, None]
    call("PJRT_Event_Destroy", event=event)


def test_errors_carry_their_message() -> None:
    error = error_of(UnsupportedError("not this: ü"))
    assert call("PJRT_Error_GetCode", error=error).code == 12
    told = call("PJRT_Error_Message", error=error)
    assert ctypes.string_at(told.message, told.message_size).decode() == "not this: ü"
    call("PJRT_Error_Destroy", error=error)


def test_every_function_is_there() -> None:
    assert len(FUNCTIONS) == len(set(FUNCTIONS)) == 135
    assert all(map(native().address, FUNCTIONS))


@pytest.mark.parametrize("name", ["sse2", "avx2", "avx512", "neon"])
def test_other_processors_have_the_functions_too(name: str) -> None:
    target = reference_target(name)
    assert "PJRT_LoadedExecutable_Execute:" in emit_assembly(emit_platform(target).text(), target)


def test_what_is_loaded_late_is_there() -> None:
    inspection = late("xlapy.pjrt.inspection")
    assert {api.FUNCTIONS._functions[name].__module__ for name in api._INSPECTION} == {inspection.__name__}
    api.capsule()
    assert {api.FUNCTIONS._functions[name].__module__ for name in api._INSPECTION} == {inspection.__name__}
