"""What native code and the runtime take each other to be, as a short text: saved code runs only where it is the same.

All that both sides lay out in memory, and call by name, is in it. What else could change between two versions, such as
what an attribute of a call site means, is told by the format of saved files.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from xlapy_runtime import calling, result_blocks, threads
from xlapy_runtime.buffers import CONTEXT_WORDS
from xlapy_runtime.digests import blake2b
from xlapy_runtime.late import late

_DIGEST_BYTES = 8


def interface_of_calls() -> str:
    """Of programs, the call wrapper and the thread pool."""
    words = (calling.ContextWord, calling.WrapperWord, calling.Status)
    blocks = (result_blocks.BlockHeader, result_blocks.BlockClass, result_blocks.BlockPool)
    records = (calling.ParameterRecord, calling.ResultRecord, calling.TableRecord, *blocks, threads.PoolState)
    names = (*threads.POOL_SYMBOLS, *calling.PYTHON_SYMBOLS, *calling.WRAPPER_SYMBOLS)
    return _digest([CONTEXT_WORDS, threads.MAX_THREADS, names, *map(_numbers, words), *map(_fields, records)])


def interface_of_runs() -> str:
    """Of programs whose processes meet, and the native code that does it."""
    native, rendezvous = late("xlapy_runtime.native_records"), late("xlapy_runtime.rendezvous")
    records = (
        native.LeafRecord,
        native.GroupRecord,
        native.SiteRecord,
        native.Run,
        native.Member,
        native.Meeting,
        native.Slot,
    )
    words = (native.Kind, native.Reason, native.Attendance, native.SlotWord)
    return _digest([rendezvous.SYMBOLS, *map(list, words), *map(_fields, records)])


def interface_of_plans() -> str:
    """Of programs whose calls of LAPACK need no Python."""
    planned = late("xlapy_runtime.planned_calls")
    records = (planned.PlanRecord, planned.StepRecord)
    return _digest([planned.SYMBOLS, *_numbers(planned.StepKind), *map(_fields, records)])


def _numbers(kind: type) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(kind).items() if not name.startswith("_")]


def _fields(record: type[ctypes.Structure]) -> list[tuple[str, int, int]]:
    names: Iterable[str] = [row[0] for row in record._fields_]
    return [(name, getattr(record, name).offset, getattr(record, name).size) for name in names]


def _digest(facts: list[Any]) -> str:
    return blake2b(repr(facts).encode(), digest_size=_DIGEST_BYTES).hexdigest()
