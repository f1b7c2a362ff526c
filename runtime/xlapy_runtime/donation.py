"""Donated arguments: results that are made of the caller's own arrays.

A program may write a result over a parameter (`Program.aliases`). The argument that a caller passes for it then becomes
the result, the same array object, if nothing else can notice: it owns its memory, may be written, and shares no byte
with another argument of the run. Otherwise a copy of it takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from xlapy_runtime import result_memory
from xlapy_runtime.program import Value

Array = np.ndarray[Any, Any]


def may_be_lent(array: Array) -> bool:
    """Whether native code may write to the array: it is aligned, writeable, and all of the memory that it lies in."""
    flags = array.flags
    return flags.writeable and flags.aligned and flags.c_contiguous and _owns_its_memory(array)


def _owns_its_memory(array: Array) -> bool:
    return array.flags.owndata or result_memory.owns_block(array)


def lent(arrays: Sequence[Array], numbers: Collection[int]) -> list[Array]:
    """The arrays, with copies of those at `numbers` that may not be lent."""
    return [
        _copied(array) if number in numbers and not may_be_lent(array) else array for number, array in enumerate(arrays)
    ]


def apart(
    rows: Sequence[Sequence[Array]], given: Sequence[Sequence[Value]], numbers: Collection[int]
) -> list[list[Array]]:
    """The arguments of all processes of a run, one row each, with copies of those at `numbers` that share memory with
    another argument of any row; or with what was `given` for it, where that itself had to be copied to be read."""
    used = [array for row in rows for array in row]
    known = {id(array) for array in used}
    copied = [value for row in given for value in row if isinstance(value, np.ndarray) and id(value) not in known]
    shared = _overlapping([*used, *copied])
    return [
        [_copied(array) if number in numbers and id(array) in shared else array for number, array in enumerate(row)]
        for row in rows
    ]


def _overlapping(arrays: Sequence[Array]) -> set[int]:
    """The ids of the arrays whose memory touches that of another, or that occur twice."""
    spans = sorted((*_span(array), id(array)) for array in arrays if array.nbytes)
    found: set[int] = set()
    furthest, holder = 0, 0
    for begin, end, identity in spans:
        if begin < furthest:
            found |= {identity, holder}
        if end > furthest:
            furthest, holder = end, identity
    return found


def _span(array: Array) -> tuple[int, int]:
    """The first byte of the array's elements, and the one behind the last."""
    begin = end = array.ctypes.data
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            begin += (size - 1) * stride
        else:
            end += (size - 1) * stride
    return begin, end + array.itemsize


def _copied(array: Array) -> Array:
    copy = result_memory.allocate(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy
