"""What JAX's handles point to: records that native code and Python share.

JAX drops buffers, events and executables from wherever Python frees an object: with an exception pending, in any
thread, behind the end of the interpreter. No Python function can be called there. So all that these functions touch is
in records of native code, which holds the lock of the platform for the few instructions in which it changes one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

_Pointer, _Number = ctypes.c_void_p, ctypes.c_int64


class BlockHeader(ctypes.Structure):
    """The cache line in front of the data of a block: the next idle one, the class that it returns to, and where the
    system's allocator knows it."""

    _fields_ = (("next", _Pointer), ("home", _Pointer), ("raw", _Pointer))


class BlockClass(ctypes.Structure):
    """Blocks of one size: the first idle one, and how many bytes each holds."""

    _fields_ = (("idle", _Pointer), ("block_bytes", _Number))


class PlatformRecord(ctypes.Structure):
    """What all functions share.

    `lock` is 1 while a thread has it. `python` is a table of what Python does for functions of the API, for those that
    native code does not do alone; `element_bytes` a table by PJRT_Buffer_Type, of -1 where there is no such type;
    `is_interrupted` says that a run has ended by Ctrl-C; `layouts` is a table of `LayoutRecord`, by rank.
    """

    _fields_ = (
        ("lock", _Number),
        ("python", _Pointer),
        ("element_bytes", _Pointer),
        ("ready_event", _Pointer),
        ("dead_executables", _Pointer),
        ("classes", _Pointer),
        ("class_count", _Number),
        ("limit_bytes", _Number),
        ("idle_bytes", _Number),
        ("bytes_in_use", _Number),
        ("peak_bytes_in_use", _Number),
        ("is_interrupted", _Number),
        ("layouts", _Pointer),
    )


class LayoutRecord(ctypes.Structure):
    """PJRT_Layouts_MemoryLayout: how XLA writes it."""

    _fields_ = (("text", _Pointer), ("size", _Number))


class MemoryRecord(ctypes.Structure):
    """PJRT_Memory."""

    _fields_ = (("device", _Pointer), ("kind", _Pointer), ("kind_size", _Number), ("number", _Number))


class DeviceRecord(ctypes.Structure):
    """PJRT_Device, and PJRT_DeviceDescription too."""

    _fields_ = (("memory", _Pointer), ("number", _Number))


class ErrorRecord(ctypes.Structure):
    """PJRT_Error. The message is behind it."""

    _fields_ = (("code", _Number), ("message", _Pointer), ("message_size", _Number))


class EventRecord(ctypes.Structure):
    """PJRT_Event: one that tells when a buffer has no more need of the host's memory. `holders` are JAX and the
    buffer; `waiting` the first of those that are to be called."""

    _fields_ = (("holders", _Number), ("is_ready", _Number), ("waiting", _Pointer))


class WaitingRecord(ctypes.Structure):
    """Who is to be called when an event is ready."""

    _fields_ = (("next", _Pointer), ("callback", _Pointer), ("argument", _Pointer))


class BufferRecord(ctypes.Structure):
    """PJRT_Buffer. The dimensions are behind it.

    `holds` counts the runs that use it, and references from outside; `states` is a sum of `BufferState`. Its memory is
    a `block`, or else somebody's to whom `event` or `on_delete` says that it is not needed any more.
    """

    _fields_ = (
        ("data", _Pointer),
        ("holds", _Number),
        ("states", _Number),
        ("type", _Number),
        ("rank", _Number),
        ("dims", _Pointer),
        ("byte_count", _Number),
        ("device", _Pointer),
        ("memory", _Pointer),
        ("block", _Pointer),
        ("event", _Pointer),
        ("on_delete", _Pointer),
        ("on_delete_argument", _Pointer),
    )


class BufferState:
    """What has been done to a buffer. Its memory goes when it is deleted and not held, its record when it is destroyed
    besides."""

    DELETED = 1
    DESTROYED = 2


class ResultRecord(ctypes.Structure):
    """A result of a program: what its buffer is, the class of its block, the argument in whose memory it is made, or
    -1, and the memory that it is said to be in."""

    _fields_ = (
        ("type", _Number),
        ("rank", _Number),
        ("dims", _Pointer),
        ("byte_count", _Number),
        ("home", _Pointer),
        ("donor", _Number),
        ("memory", _Pointer),
    )


class ExecutableRecord(ctypes.Structure):
    """PJRT_LoadedExecutable, and PJRT_Executable too.

    `entry` is null if Python runs the program. `idle_contexts` is the first context that no run has; `new_context` and
    `failed` are functions of Python's. `donated` are the numbers of arguments that are deleted by a run.
    """

    _fields_ = (
        ("holders", _Number),
        ("next_dead", _Pointer),
        ("is_deleted", _Number),
        ("entry", _Pointer),
        ("parameter_count", _Number),
        ("result_count", _Number),
        ("results", _Pointer),
        ("donated_count", _Number),
        ("donated", _Pointer),
        ("idle_contexts", _Pointer),
        ("call_number", _Number),
        ("new_context", _Pointer),
        ("failed", _Pointer),
        ("replica_count", _Number),
        ("partition_count", _Number),
    )


class ExecuteContextRecord(ctypes.Structure):
    """PJRT_ExecuteContext: what JAX gives to custom calls, of which the last is kept. For a program with Python
    functions that is a list of them."""

    _fields_ = (("data", _Pointer),)


class HostCallbacks(ctypes.Structure):
    """xla::FfiLoadedHostCallbacks: the Python functions of a program, in the order of their numbers."""

    _fields_ = (("functions", _Pointer), ("count", _Number))


class Text:
    """A string with an address."""

    __slots__ = ("_memory", "address", "size")

    def __init__(self, content: str | bytes) -> None:
        data = content.encode() if isinstance(content, str) else content
        self._memory = ctypes.create_string_buffer(data, len(data) + 1)
        self.address = ctypes.addressof(self._memory)
        self.size = len(data)


def numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """A table of integers, or of addresses."""
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def read_numbers(address: int | None, count: int) -> list[int]:
    """What is in such a table."""
    return list((ctypes.c_int64 * count).from_address(address)) if address and count else []
