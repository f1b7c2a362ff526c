"""Collectives between threads of one Python process: members read each other's memory.

A collective of one run is a `Meeting` of the members of its group. When the last of them has arrived, either that one
does the work of all (small arrays: one wake-up instead of a barrier per phase), or each does its own share, phase by
phase.

All meetings of a run share one lock, so that a wait can look at everybody else: a member that has finished its
program without arriving, or a ring of members that wait for each other, is an error at once instead of a silent halt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from xlapy_runtime.errors import DeadlineError, ExecutionError
from xlapy_runtime.process_groups import Grid
from xlapy_runtime.transports import Collective, Deposit
from xlapy_runtime.waiting import Cancellation, seconds

SMALL_BYTES = 128 * 1024
"""Up to this many bytes of operands in all, the last to arrive does everybody's work: below, a thread switch costs
more than the copy."""


class Rendezvous:
    """Where the members of one run meet."""

    def __init__(self, grid: Grid, cancellation: Cancellation, timeout: float | None, names: Sequence[str]) -> None:
        self.cancellation = cancellation
        self.timeout = timeout
        self.lock = threading.Lock()
        self.idle = threading.Condition(self.lock)
        self._grid = grid
        self._names = names
        self._meetings: dict[tuple[object, ...], Meeting] = {}
        self._finished: set[int] = set()
        self._waiting: dict[int, Callable[[], bool]] = {}

    def member(self, process: int, context: int = 0) -> Member:
        """The transport of one process; `context` is the address of the context of its native code."""
        return Member(self, process, context)

    def meeting(self, key: tuple[object, ...], collective: Collective) -> Meeting:
        """The meeting under `key`, made by whoever comes first. Holds the lock."""
        if key not in self._meetings:
            self._meetings[key] = Meeting(self, key, collective)
        return self._meetings[key]

    def forget(self, key: tuple[object, ...]) -> None:
        """Drops a meeting that all members have left. Holds the lock."""
        del self._meetings[key]

    def leave(self, process: int, meetings: Sequence[Meeting]) -> None:
        """Marks a process as finished, and waits until nobody is in the middle of reading its memory.

        A process that leaves before one of its meetings is over cannot come back: that ends the run for the others.
        """
        if meetings:
            self.cancellation.cancel(ExecutionError(f"{self.name(process)} left {meetings[0].label} unfinished"))
        with self.lock:
            self._finished.add(process)
            while any(meeting.working for meeting in meetings):
                self.idle.wait()
            self._wake_all()

    def wait(self, process: int, meeting: Meeting, ready: Callable[[], bool]) -> None:
        """Waits, holding the lock, for the others; raises if they cannot come, or not in time."""
        self._waiting[process] = ready
        if not ready() and self._is_deadlock():
            self._wake_all()
        try:
            in_time = self.cancellation.wait(
                meeting.changed, lambda: ready() or self._is_hopeless(meeting), self.timeout
            )
            if ready():
                return
            if not in_time:
                raise DeadlineError(
                    f"{self.name(process)} waited {seconds(self.timeout or 0)} for {self._names_of(meeting.missing())}"
                ).add_context(subject=meeting.label, where=meeting.where)
            raise self._explain(process, meeting)
        finally:
            del self._waiting[process]

    def name(self, process: int) -> str:
        """A process as errors name it."""
        replica, partition = self._grid.coordinates(process)
        return f"{self._names[process]} (replica {replica}, partition {partition})"

    def _wake_all(self) -> None:
        for meeting in self._meetings.values():
            meeting.changed.notify_all()

    def _is_hopeless(self, meeting: Meeting) -> bool:
        return not self._finished.isdisjoint(meeting.missing()) or self._is_deadlock()

    def _is_deadlock(self) -> bool:
        """Whether every process that still runs waits for another one."""
        if len(self._waiting) + len(self._finished) < self._grid.size:
            return False
        return not any(ready() for ready in self._waiting.values())

    def _explain(self, process: int, meeting: Meeting) -> ExecutionError:
        gone = [other for other in meeting.missing() if other in self._finished]
        if gone:
            reason = f"{self._names_of(gone)} finished without taking part, {self.name(process)} waits in vain"
        else:
            others = self._names_of(meeting.missing())
            reason = f"deadlock: {self.name(process)} waits for {others}, which wait elsewhere"
        return ExecutionError(reason).add_context(subject=meeting.label, where=meeting.where)

    def _names_of(self, processes: Sequence[int]) -> str:
        return ", ".join(self.name(process) for process in processes)


class Meeting:
    """One occurrence of one collective. Every attribute is guarded by the lock of the run."""

    def __init__(self, rendezvous: Rendezvous, key: tuple[object, ...], collective: Collective) -> None:
        self.label = collective.label
        self.where = collective.where
        self.changed = threading.Condition(rendezvous.lock)
        self.working = 0
        self._rendezvous = rendezvous
        self._key = key
        self._group = collective.group
        self._work = collective.work
        self._deposits: list[Deposit | None] = [None] * len(collective.group)
        self._arrived = 0
        self._done: list[set[int]] = [set() for _ in collective.work.phases]
        self._left = 0
        self._small = False

    def missing(self) -> list[int]:
        """The processes that the others wait for: those that have not arrived, or not done their share."""
        absent = [process for process, deposit in zip(self._group, self._deposits, strict=True) if deposit is None]
        if absent:
            return absent
        shares = (done for done in self._done if len(done) < len(self._group))
        return [process for process in self._group if process not in next(shares, self._group)]

    def arrive(self, process: int, deposit: Deposit) -> None:
        """Brings a member's share; does all the work if it is the last and the work is small."""
        size = len(self._group)
        with self._rendezvous.lock:
            self._deposits[self._group.index(process)] = deposit
            self._arrived += 1
            if self._arrived < size:
                return
            self._small = sum(array.nbytes for array in deposit.operands) * size <= SMALL_BYTES
            if self._small:
                self._begin_work()
            else:
                self.changed.notify_all()
        if self._small:
            self._do_everything()

    def finish(self, process: int) -> None:
        """Does a member's part of the work, and waits for what it needs from the others."""
        with self._rendezvous.lock:
            self._wait(process, self._is_my_turn)
            if self._small:
                self._leave()
                return
        position = self._group.index(process)
        for number in range(len(self._work.phases)):
            self._do_phase(number, position)
            with self._rendezvous.lock:
                self._wait(process, partial(self._is_done, number))
        with self._rendezvous.lock:
            self._leave()

    def _leave(self) -> None:
        """Forgets the meeting when the last member has what it needs. Holds the lock."""
        self._left += 1
        if self._left == len(self._group):
            self._rendezvous.forget(self._key)

    def _is_my_turn(self) -> bool:
        """Whether a member may begin its share or, where one does the work of all, go home."""
        if self._small:
            return self._is_done(-1)
        return self._arrived == len(self._group)

    def _is_done(self, number: int) -> bool:
        return len(self._done[number]) == len(self._group)

    def _wait(self, process: int, ready: Callable[[], bool]) -> None:
        self._rendezvous.wait(process, self, ready)

    def _do_everything(self) -> None:
        try:
            self._work.together(self._members())
        finally:
            self._end_work()
        with self._rendezvous.lock:
            for done in self._done:
                done.update(self._group)
            self.changed.notify_all()

    def _do_phase(self, number: int, position: int) -> None:
        with self._rendezvous.lock:
            self._begin_work()
        try:
            self._work.phases[number](self._members(), position)
        finally:
            self._end_work()
        with self._rendezvous.lock:
            self._done[number].add(self._group[position])
            if self._is_done(number):
                self.changed.notify_all()

    def _begin_work(self) -> None:
        """From here on the others must not leave. Holds the lock."""
        self._rendezvous.cancellation.check()
        self.working += 1

    def _end_work(self) -> None:
        with self._rendezvous.lock:
            self.working -= 1
            self._rendezvous.idle.notify_all()

    def _members(self) -> list[Deposit]:
        return [deposit for deposit in self._deposits if deposit is not None]


class Member:
    """The transport of one process of a run."""

    def __init__(self, rendezvous: Rendezvous, process: int, context: int) -> None:
        self.process = process
        self.context = context
        self.meetings: list[Meeting] = []
        self._rendezvous = rendezvous
        self._occurrences: dict[tuple[object, ...], int] = {}

    def start(
        self, collective: Collective, operands: tuple[np.ndarray, ...], results: tuple[np.ndarray, ...] | None
    ) -> Attendance:
        """Brings this process's share to the meeting whose turn it is."""
        occurrence = self._occurrences.get(collective.key, 0)
        self._occurrences[collective.key] = occurrence + 1
        with self._rendezvous.lock:
            meeting = self._rendezvous.meeting((*collective.key, occurrence), collective)
        attendance = Attendance(self, meeting, operands)
        if results is not None:
            attendance.arrive(results)
        return attendance

    def leave(self) -> None:
        self._rendezvous.leave(self.process, self.meetings)


class Attendance:
    """One process's part in one meeting."""

    __slots__ = ("_meeting", "_member", "_operands", "_results")

    def __init__(self, member: Member, meeting: Meeting, operands: tuple[np.ndarray, ...]) -> None:
        self._member = member
        self._meeting = meeting
        self._operands = operands
        self._results: tuple[np.ndarray, ...] | None = None

    def arrive(self, results: tuple[np.ndarray, ...]) -> None:
        """Joins the meeting, now that the place of the results is known.

        Operands that share memory with the results are copied first, because others read them while results are
        written.
        """
        shared = any(np.may_share_memory(operand, result) for operand in self._operands for result in results)
        operands = tuple(operand.copy() for operand in self._operands) if shared else self._operands
        self._results = results
        self._member.meetings.append(self._meeting)
        self._meeting.arrive(self._member.process, Deposit(operands, results, self._member.context))

    def finish(self, results: tuple[np.ndarray, ...] | None) -> None:
        """Waits until the results are complete, and copies them if they are wanted elsewhere than the start said."""
        if self._results is None:
            self.arrive(results or ())
        self._meeting.finish(self._member.process)
        self._member.meetings.remove(self._meeting)
        for have, wanted in zip(self._results or (), results or (), strict=False):
            if have.ctypes.data != wanted.ctypes.data:
                np.copyto(wanted, have)

    def abandon(self) -> None:
        """Nothing to do: `Member.leave` ends all of a process's meetings at once."""
