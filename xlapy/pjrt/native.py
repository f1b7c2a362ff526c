"""The native half of the platform: compiled once per machine, linked once per process, there until its end."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import element_type_named, is_element_type_name
from xlapy.native import host_target, object_cache
from xlapy.options import environment
from xlapy.pjrt.abi import ELEMENT_TYPES, FUNCTIONS
from xlapy.pjrt.native_buffers import (
    HOLD_SYMBOL,
    MOST_RANK,
    NEW_BUFFER_SYMBOL,
    NEW_RECORD_SYMBOL,
    UNHOLD_SYMBOL,
    emit_buffers,
)
from xlapy.pjrt.native_buffers import SYMBOLS as BUFFER_SYMBOLS
from xlapy.pjrt.native_memory import LEAST_BYTES, MOST_BYTES, PLATFORM_SYMBOL, TRIM_SYMBOL, MemoryFunctions
from xlapy.pjrt.native_runs import (
    DEAD_EXECUTABLES_SYMBOL,
    IS_ENDING_SYMBOL,
    NEW_ERROR_SYMBOL,
    emit_python_slots,
    emit_runs,
)
from xlapy.pjrt.records import BlockClass, EventRecord, LayoutRecord, PlatformRecord, Text, numbers
from xlapy_runtime import result_blocks, trimming
from xlapy_runtime.capsules import keep_for_good
from xlapy_runtime.linking import LinkedCode, link, symbol_address
from xlapy_runtime.size_classes import class_bytes, size_class

EXTENSION_FUNCTIONS = (
    "PJRT_FFI_UserData_Add",
    "PJRT_Layouts_MemoryLayout_Destroy",
    "PJRT_Layouts_MemoryLayout_Serialize",
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout",
)
"""Of the API's extensions, those of native code."""

_CLASS_COUNT = size_class(MOST_BYTES, LEAST_BYTES) + 1
_HIGHEST_LIMIT_BYTES = 1 << 30


def emit_platform(target: Target) -> Module:
    module = Module.of(target)
    MemoryFunctions(module, target).emit()
    emit_buffers(module)
    emit_runs(module)
    emit_python_slots(module, [name for name in FUNCTIONS if not module.defines(name)])
    return module


PLATFORM = Library(
    "pjrt",
    (*FUNCTIONS, *EXTENSION_FUNCTIONS, NEW_ERROR_SYMBOL, DEAD_EXECUTABLES_SYMBOL, TRIM_SYMBOL, *BUFFER_SYMBOLS),
    emit_platform,
    optimization="light",
)


class Native:
    """The linked code with its record."""

    def __init__(self) -> None:
        self.record = _new_platform()
        objects = PLATFORM.objects(host_target(), object_cache(environment()))
        imports = {PLATFORM_SYMBOL: ctypes.addressof(self.record), IS_ENDING_SYMBOL: _is_ending_address()}
        self._code: LinkedCode = link(objects, imports, PLATFORM.exports)
        for kept in (self._code, self.record):
            keep_for_good(kept)
        trimming.add_native(self._code.address(TRIM_SYMBOL))
        self.new_error = self._function(NEW_ERROR_SYMBOL, _NEW_ERROR)
        self.dead_executables = self._function(DEAD_EXECUTABLES_SYMBOL, _TAKE)
        self.new_record = self._function(NEW_RECORD_SYMBOL, _NEW_BUFFER)
        self.new_buffer = self._function(NEW_BUFFER_SYMBOL, _NEW_BUFFER)
        self.hold = self._function(HOLD_SYMBOL, _HOLD)
        self.unhold = self._function(UNHOLD_SYMBOL, _UNHOLD)

    def address(self, function: str) -> int:
        """Of a function of the API or its extensions."""
        return self._code.address(function)

    def function(self, name: str) -> Callable[[int], int | None]:
        """A function of the API, for calls from Python."""
        return self._function(name, _API_FUNCTION)

    def _function(self, symbol: str, prototype: Any) -> Callable[..., Any]:
        function: Callable[..., Any] = prototype(self._code.address(symbol))
        return function

    def home_address(self, byte_count: int) -> int:
        """Of the class whose blocks hold so many bytes, or of the largest, which there is no memory for."""
        number = size_class(min(max(1, byte_count), MOST_BYTES), LEAST_BYTES)
        return int(self.record.classes) + number * ctypes.sizeof(BlockClass)

    def expect(self, byte_count: int) -> None:
        """Lets as much memory wait for the next run as the results of a program have."""
        wanted = min(byte_count, _HIGHEST_LIMIT_BYTES)
        self.record.limit_bytes = max(self.record.limit_bytes, wanted)

    def layout(self, rank: int) -> int:
        """The handle of the layout of arrays of a rank: the last dimension side by side."""
        return int(self.record.layouts) + min(rank, MOST_RANK) * ctypes.sizeof(LayoutRecord)

    @property
    def ready_event(self) -> int:
        return int(self.record.ready_event)

    def unlock(self) -> None:
        """In a child of fork, where the thread that may have had the lock is not."""
        self.record.lock = 0


_NUMBER = ctypes.c_int64
_NEW_ERROR = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64)
_TAKE = ctypes.PYFUNCTYPE(ctypes.c_void_p)
_NEW_BUFFER = ctypes.PYFUNCTYPE(ctypes.c_void_p, *(_NUMBER,) * 2, ctypes.c_void_p, _NUMBER, ctypes.c_void_p)
_HOLD = ctypes.PYFUNCTYPE(_NUMBER, ctypes.c_void_p)
_UNHOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_API_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


@functools.cache
def native() -> Native:
    """The one of this process."""
    return Native()


def _new_platform() -> PlatformRecord:
    classes = (BlockClass * _CLASS_COUNT)()
    for number, kind in enumerate(classes):
        kind.block_bytes = class_bytes(number, LEAST_BYTES)
    functions = numbers([0] * len(FUNCTIONS))
    sizes = numbers([element_bytes(type) for type in range(max(ELEMENT_TYPES) + 8)])
    ready = EventRecord(holders=1, is_ready=1)
    texts = [Text("{" + ",".join(map(str, reversed(range(rank)))) + "}") for rank in range(MOST_RANK + 1)]
    layouts = (LayoutRecord * len(texts))(*[LayoutRecord(text.address, text.size) for text in texts])
    record = PlatformRecord(
        python=ctypes.addressof(functions),
        element_bytes=ctypes.addressof(sizes),
        ready_event=ctypes.addressof(ready),
        classes=ctypes.addressof(classes),
        class_count=_CLASS_COUNT,
        limit_bytes=result_blocks.LIMIT_BYTES,
        layouts=ctypes.addressof(layouts),
    )
    for kept in (classes, functions, sizes, ready, texts, layouts):
        keep_for_good(kept)
    return record


def element_bytes(type: int) -> int:
    """How many bytes an element of a PJRT_Buffer_Type takes in buffers; -1 for none that there is."""
    name = ELEMENT_TYPES.get(type, "")
    return element_type_named(name).dtype.itemsize if is_element_type_name(name) else -1


def _is_ending_address() -> int:
    """The function got a public name with Python 3.13."""
    try:
        return symbol_address("Py_IsFinalizing")
    except ValueError:
        return symbol_address("_Py_IsFinalizing")
