"""The processes of a parallel run and their meetings: memory for the native half, and words for its errors.

`codegen.rendezvous` writes the native half. It runs every process on a thread of its own and does the collectives
between them; Python prepares records (`native_records`), starts a run, and is asked only when something goes wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlapy_runtime import calls, planned_calls
from xlapy_runtime.alignment import aligned_words
from xlapy_runtime.buffers import Context
from xlapy_runtime.calling import ContextWord
from xlapy_runtime.errors import DeadlineError, ExecutionError, InternalError, XlaError
from xlapy_runtime.images import Code
from xlapy_runtime.linking import InstalledOnce, LinkedCode, link
from xlapy_runtime.native_records import WORD_BYTES, Member, Reason, Run, meeting_words
from xlapy_runtime.process_groups import Grid
from xlapy_runtime.waiting import seconds

SYMBOLS = (
    "rendezvous_abandon",
    "rendezvous_call",
    "rendezvous_run",
    "rendezvous_serve",
    "rendezvous_wait",
    "rendezvous_wake",
)
"""What the native half exports."""

_NANOSECONDS = 1e9


class Native:
    """The native half, linked."""

    def __init__(self, objects: Sequence[Code]) -> None:
        self._code: LinkedCode = link(objects, {}, SYMBOLS)
        self.call_address = self._code.address("rendezvous_call")
        self.run = self._function("rendezvous_run", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self.wait = self._function("rendezvous_wait", ctypes.c_void_p)
        self.wake = self._function("rendezvous_wake", ctypes.c_void_p)
        self.serve = self._function("rendezvous_serve", ctypes.c_void_p, ctypes.c_int64)
        self.abandon = self._function("rendezvous_abandon", ctypes.c_void_p)

    def _function(self, symbol: str, *parameters: Any) -> Any:
        return ctypes.CFUNCTYPE(ctypes.c_int32, *parameters)(self._code.address(symbol))


NATIVE: InstalledOnce[Native] = InstalledOnce("the native code of parallel runs", Native)


@dataclass(frozen=True, slots=True, eq=False)
class MeetingPlan:
    """The collectives of an executable: a record for each call site, and what their meetings need.

    keys: how many different ones groups have. starts: how many start ops. width: how many arrays a member brings at
    most. `others` has the labels of sites that share a site's channel and do not meet it, as they do something
    else. `kept` is what the records point to.
    """

    sites: Any
    site_count: int
    keys: int
    starts: int
    width: int
    others: Mapping[int, Sequence[str]]
    kept: Sequence[object]


class Records:
    """The records of one run at a time, and of the processes in it."""

    def __init__(self, plan: MeetingPlan, grid: Grid, contexts: Sequence[Context], entry: int) -> None:
        self._plan = plan
        size = grid.size
        self._own_words = plan.keys + plan.site_count  # of each member: occurrences, started
        words = meeting_words(size, plan.width)
        meetings = size * (plan.starts + 1)
        member_words = ctypes.sizeof(Member) // WORD_BYTES
        sections = [
            ctypes.sizeof(Run) // WORD_BYTES,
            size * member_words,
            size * self._own_words + meetings * words,
            size * size,
            size * (size + 2),
        ]
        parts = np.split(aligned_words(sum(sections)), np.cumsum(sections)[:-1])
        run, members, self._changing, self._missing, scratch = parts
        self.address: int = run.ctypes.data
        self.run = Run.from_address(self.address)
        self._members = members.reshape(size, member_words)
        self._missing = self._missing.reshape(size, size)
        self.members = [Member.from_address(row.ctypes.data) for row in self._members]
        own, held = np.split(self._changing, [size * self._own_words])
        self._fill_run(size, held.ctypes.data, meetings, words)
        for number, (member, context) in enumerate(zip(self.members, contexts, strict=True)):
            occurrences = own.ctypes.data + number * self._own_words * WORD_BYTES
            member.run, member.process, member.entry = self.address, number, entry
            member.context = context.address
            member.parameters, member.results = context.parameters_address, context.results_address
            member.occurrences, member.started = occurrences, occurrences + plan.keys * WORD_BYTES
            member.missing = self._missing[number : number + 1].ctypes.data
            member.scratch = scratch.ctypes.data + number * (size + 2) * WORD_BYTES
            context.words[ContextWord.MEMBER] = ctypes.addressof(member)

    def _fill_run(self, size: int, meetings: int, meeting_count: int, words: int) -> None:
        run = self.run
        run.size, run.sites, run.members = size, ctypes.addressof(self._plan.sites), ctypes.addressof(self.members[0])
        run.meetings, run.meeting_count, run.meeting_bytes = meetings, meeting_count, words * WORD_BYTES
        run.width = self._plan.width
        run.call, run.report = planned_calls.call_address(), REPORT_ADDRESS

    def begin(self, *, timeout: float | None, polls: bool) -> None:
        """Makes the records those of a new run; `polls` if its first process is in Python's main thread."""
        self._changing.fill(0)
        self._members[:, _FIRST_CHANGING:] = 0
        run = self.run
        run.waiting = run.finished = run.unfinished = 0
        run.timeout = -1 if timeout is None else int(timeout * _NANOSECONDS)
        self.members[0].polls = polls

    def others(self, site: int) -> Sequence[str]:
        """The sites that could be taken for those that meet at a site, and do not."""
        return self._plan.others.get(site, ())

    def missing(self, process: int) -> list[int]:
        """The processes for which this one's last wait was in vain."""
        return [int(other) for other in np.flatnonzero(self._missing[process])]

    def await_ends(self, *, left_alone: int) -> None:
        """Waits until all others have told that they have ended: a thread is free shortly before it does."""
        while self.run.unfinished > left_alone:
            with contextlib.suppress(KeyboardInterrupt):
                time.sleep(0)

    def has_finished(self, process: int) -> bool:
        return bool(self.members[process].finished)

    def wake(self) -> None:
        """Lets everybody who waits see that the run was stopped."""
        NATIVE.get().wake(self.address)


_FIRST_CHANGING = Member.finished.offset // WORD_BYTES


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """One run as its errors describe it."""

    records: Records
    grid: Grid
    names: Sequence[str]
    timeout: float | None

    def explain(self, process: int, site: int, reason: Reason) -> XlaError:
        """The error for why native code gave up in a process, at a call site."""
        missing = self.records.missing(process)
        match reason:
            case Reason.DEADLINE:
                waited = seconds(self.timeout or 0)
                return DeadlineError(f"{self._name(process)} waited {waited} for {self._names(missing)}")
            case Reason.HOPELESS:
                others = ", ".join(self.records.others(site))
                hint = f"; {others} of the same channel exchange something else, and do not meet it" if others else ""
                return ExecutionError(self._why_hopeless(process, missing) + hint)
            case Reason.NO_MEMORY:
                return ExecutionError("there is no memory for what the reduction's computation needs")
            case Reason.UNFINISHED:
                return ExecutionError(f"{self._name(process)} left a collective unfinished")
            case Reason.REPEATED:
                return InternalError("it was started again before it was done")

    def _why_hopeless(self, process: int, missing: Sequence[int]) -> str:
        gone = [other for other in missing if self.records.has_finished(other)]
        if gone:
            return f"{self._names(gone)} finished without taking part, {self._name(process)} waits in vain"
        return f"deadlock: {self._name(process)} waits for {self._names(missing)}, which wait elsewhere"

    def _name(self, process: int) -> str:
        """A process as errors name it."""
        replica, partition = self.grid.coordinates(process)
        return f"{self.names[process]} (replica {replica}, partition {partition})"

    def _names(self, processes: Sequence[int]) -> str:
        return ", ".join(self._name(process) for process in processes)


@calls.guarded_from_the_start
def _report(context: int, site: int, reason: int) -> int:
    """`i32 report(ptr context, i32 site, i32 reason)`: native code gives up a collective; the status of the run."""
    try:
        call = calls.running(context)
        call.cancellation.check()
        if call.rendezvous is None:
            raise InternalError("native code reports on a run without meetings")
        raise call.rendezvous.explain(call.process, site, Reason(reason))
    except BaseException as error:  # noqa: BLE001 - kept, and raised again in the caller
        return calls.keep(context, error, site)


_native_report = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)(_report)
REPORT_ADDRESS = ctypes.cast(_native_report, ctypes.c_void_p).value or 0
