"""The memory that the native half of parallel runs works on: what the runtime lays out and `codegen.rendezvous` reads.

Two kinds of records. Those of an executable never change: a `SiteRecord` for each call site, a `GroupRecord` for each
group of processes that meets there, a `LeafRecord` for each array that they exchange. Those of a run belong to one run
at a time: one `Run`, a `Member` for each process, a `Meeting` for each collective that is under way.

The lock of a `Run` guards all that changes in it and its records, unless said otherwise.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, ClassVar

WORD_BYTES = 8
_LINE = 64


class Kind(IntEnum):
    """What a call site is to native code."""

    OTHER = 0
    """Python's: custom calls, streams, channels."""
    COLLECTIVE = 1
    START = 2
    DONE = 3


class Reason(IntEnum):
    """Why native code gives up, as it tells Python."""

    DEADLINE = 1
    """The others did not come, or not finish, in time."""
    HOPELESS = 2
    """Someone who is missing has finished, or everybody waits for somebody else."""
    NO_MEMORY = 3
    """A reduction has no memory for its region function."""
    UNFINISHED = 4
    """A process left a collective that it had started."""
    REPEATED = 5
    """A start op came again before its done op."""


class LeafRecord(ctypes.Structure):
    """One array of a collective, in each member's operands and results.

    The part that a source has for a target is `rows` rows of `row_bytes`. It begins `source_step` bytes times the
    target's position into the source's operand, and goes `target_step` bytes times the source's position into the
    target's result; from row to row it is `source_pitch` and `target_pitch` bytes. It is cut into `blocks`, of
    `rows_per_block` whole rows, or of `segment_bytes` each where one row makes several `segments`.

    operand, result: the number of the array; a step is added for each position of the target, or of the source.
    owners: how many sources (or, of a reduction, targets) have parts of their own.
    combine: the kernel of a reduction, in whose place there is nothing if data is only copied; element_bytes: of its
    elements; to_all: every member gets the same, of which the first one's copy is made first.
    """

    _fields_: ClassVar[list[Any]] = [
        ("combine", ctypes.c_void_p),
        ("operand", ctypes.c_int64),
        ("operand_step", ctypes.c_int64),
        ("result", ctypes.c_int64),
        ("result_step", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("row_bytes", ctypes.c_int64),
        ("source_pitch", ctypes.c_int64),
        ("source_step", ctypes.c_int64),
        ("target_pitch", ctypes.c_int64),
        ("target_step", ctypes.c_int64),
        ("rows_per_block", ctypes.c_int64),
        ("segment_bytes", ctypes.c_int64),
        ("segments", ctypes.c_int64),
        ("blocks", ctypes.c_int64),
        ("owners", ctypes.c_int64),
        ("element_bytes", ctypes.c_int64),
        ("to_all", ctypes.c_int64),
    ]


class GroupRecord(ctypes.Structure):
    """The processes that meet at one site.

    key: equal for groups that meet each other, at this site or at another one of the same channel.
    sources: for each member the position of the only one whose data it gets, or -1 for zeros; null where it gets
    everybody's. operands: how many arrays each member brings; its results follow them.
    chunks: the work, of all leaves; is_small: it is less than the way to another thread.
    """

    _fields_: ClassVar[list[Any]] = [
        ("key", ctypes.c_int64),
        ("site", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("members", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("operands", ctypes.c_int64),
        ("leaves", ctypes.c_void_p),
        ("leaf_count", ctypes.c_int64),
        ("chunks", ctypes.c_int64),
        ("is_small", ctypes.c_int64),
    ]


class SiteRecord(ctypes.Structure):
    """A call site. groups: a group for each process, or null if it takes no part and gets zeros; start: the site of the
    start op of a done op; operands, results: how many arrays; result_bytes: the size of each result."""

    _fields_: ClassVar[list[Any]] = [
        ("kind", ctypes.c_int64),
        ("start", ctypes.c_int64),
        ("groups", ctypes.c_void_p),
        ("operands", ctypes.c_int64),
        ("results", ctypes.c_int64),
        ("result_bytes", ctypes.c_void_p),
    ]


class Run(ctypes.Structure):
    """One run of a grid.

    lock: 1 while somebody holds it.
    waiting, finished: how many processes wait for a meeting and have not been called yet; how many have ended.
    unfinished: processes that were started and have not ended. Atomic, not guarded: when it is 0, the records may serve
    the next run.
    size, sites, meetings, meeting_count, meeting_bytes, width: the grid, the records, and how many arrays a member
    brings to a meeting at most.
    call, report: functions of Python, for sites of other kinds and for errors.
    timeout: in nanoseconds, or -1.
    """

    _fields_: ClassVar[list[Any]] = [
        ("lock", ctypes.c_int32),
        ("_0", ctypes.c_char * (_LINE - 4)),
        ("waiting", ctypes.c_int64),
        ("finished", ctypes.c_int64),
        ("_1", ctypes.c_char * (_LINE - 16)),
        ("unfinished", ctypes.c_int32),
        ("_2", ctypes.c_char * (_LINE - 4)),
        ("size", ctypes.c_int64),
        ("sites", ctypes.c_void_p),
        ("members", ctypes.c_void_p),
        ("meetings", ctypes.c_void_p),
        ("meeting_count", ctypes.c_int64),
        ("meeting_bytes", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("call", ctypes.c_void_p),
        ("report", ctypes.c_void_p),
        ("timeout", ctypes.c_int64),
    ]


class Member(ctypes.Structure):
    """One process of a run.

    entry, context, parameters, results: its call. polls: it runs in Python's main thread, which looks for signals.
    occurrences: for each key, to how many meetings it has come. started: for each site, the meeting of a start op.
    missing: for each process, whether a wait that failed was for it. scratch: a table for combine kernels.

    What follows changes in a run. finished: it has ended, with `status`. deadline: of its present wait, by the
    monotonic clock; 0 before that is known.
    """

    _fields_: ClassVar[list[Any]] = [
        ("run", ctypes.c_void_p),
        ("process", ctypes.c_int64),
        ("entry", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("polls", ctypes.c_int64),
        ("occurrences", ctypes.c_void_p),
        ("started", ctypes.c_void_p),
        ("missing", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("finished", ctypes.c_int64),
        ("status", ctypes.c_int64),
        ("deadline", ctypes.c_int64),
        ("_0", ctypes.c_char * (2 * _LINE - 14 * WORD_BYTES)),
    ]


class Meeting(ctypes.Structure):
    """One occurrence of a collective, from when the first member arrives until the last one leaves.

    generation: counts the calls to those who wait, who sleep on it; waiting: how many of them were not called yet.
    in_use, group, key, occurrence: what it is. arrived, left: how many members.
    next: the first chunk that nobody has taken; active: how many are being worked on; completed: how many are done.
    broken: once it can no longer be completed, the `Status` that says why; it stays.

    Behind it, by the position of members: what each has to do with it (`Attendance`), whether it works on a chunk, and
    the addresses of its arrays. `codegen.rendezvous.meetings` finds them.
    """

    _fields_: ClassVar[list[Any]] = [
        ("generation", ctypes.c_int32),
        ("_0", ctypes.c_int32),
        ("in_use", ctypes.c_int64),
        ("group", ctypes.c_void_p),
        ("key", ctypes.c_int64),
        ("occurrence", ctypes.c_int64),
        ("waiting", ctypes.c_int64),
        ("arrived", ctypes.c_int64),
        ("left", ctypes.c_int64),
        ("next", ctypes.c_int64),
        ("active", ctypes.c_int64),
        ("completed", ctypes.c_int64),
        ("broken", ctypes.c_int64),
    ]


def meeting_words(size: int, width: int) -> int:
    """How many words a meeting takes with all that is behind it, in a grid of `size` processes, of which each brings
    up to `width` arrays."""
    return ctypes.sizeof(Meeting) // WORD_BYTES + size * (2 + width)


class Attendance(IntEnum):
    """What a member has to do with a meeting."""

    EXPECTED = 0
    ARRIVED = 1
    LEFT = 2


class Slot(ctypes.Structure):
    """What an entry thread sleeps on, and its job. word: a `SlotWord`."""

    _fields_: ClassVar[list[Any]] = [("word", ctypes.c_int32), ("_0", ctypes.c_int32), ("member", ctypes.c_void_p)]


class SlotWord(IntEnum):
    IDLE = 0
    GIVEN = 1
    ABANDONED = 2
    """Its job goes on, but nobody waits for it any more."""
