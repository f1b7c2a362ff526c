"""Meetings of processes in memory, as native code walks over them.

Behind a `Meeting` lie three tables, by the position of members; `native_records.meeting_words` says how long they are:

    words [0, size)                     what each member has to do with it, an `Attendance`
    words [size, 2 size)                whether it works on a chunk
    words [2 size, 2 size + size width) the addresses of its arrays

`size` is that of the grid, which no group exceeds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlapy.codegen.ir import I64, KernelBuilder, Loop, Operand, Value
from xlapy.codegen.native_fields import get
from xlapy_runtime.native_records import Meeting, Run


def place_of_attendance(k: KernelBuilder, meeting: Value, position: Operand) -> Value:
    return k.gep(_tables(k, meeting), position, I64.bytes)


def place_of_work(k: KernelBuilder, run: Value, meeting: Value, position: Value) -> Value:
    return k.gep(_tables(k, meeting), k.add(get(k, run, Run, "size"), position), I64.bytes)


def place_of_arrays(k: KernelBuilder, run: Value, meeting: Value, position: Value) -> Value:
    size, width = get(k, run, Run, "size"), get(k, run, Run, "width")
    return k.gep(_tables(k, meeting), k.add(k.mul(size, 2), k.mul(position, width)), I64.bytes)


def clear_tables(k: KernelBuilder, run: Value, meeting: Value) -> None:
    """Nobody has come, nobody works."""
    k.memset(_tables(k, meeting), 0, k.mul(get(k, run, Run, "size"), 2 * I64.bytes))


def _tables(k: KernelBuilder, meeting: Value) -> Value:
    return k.gep(meeting, ctypes.sizeof(Meeting))


@contextmanager
def each_meeting(k: KernelBuilder, run: Value, carry: Sequence[Value] = ()) -> Iterator[tuple[Value, Loop]]:
    """A loop over all meetings of a run, in use or not."""
    first, stride = get(k, run, Run, "meetings"), get(k, run, Run, "meeting_bytes")
    with k.loop(0, get(k, run, Run, "meeting_count"), carry=carry) as loop:
        yield k.gep(first, k.mul(loop.index, stride)), loop
