"""Processes of a program that are processes of the system, perhaps on several machines, and talk over MPI (mpi4py).

Every run begins with the word of all that they run the same program, and ends with the word of all how it went: it
fails in each process if it fails in one, and if one has left what another sent it. Messages within go from one process
to another and never block, so that every wait is open to Ctrl-C, to its deadline, and to the notice that another one
has failed, or has finished without doing its part.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from xlapy_runtime.errors import ArgumentError, DeadlineError, ExecutionError
from xlapy_runtime.late import late
from xlapy_runtime.waiting import describe, seconds

NOTICE_TAG = 0
"""Of the notice that a process has failed or finished. Other messages have greater tags."""

_PATIENCE_SECONDS = 0.05
"""How long a process that has finished waits for the others before it tells them so: mostly they need no telling."""

_SPINS = 2000
"""Looks for a message before the core is left to sleep: each of them yields it."""

_NAP_SECONDS = 50e-6

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Result = TypeVar("Result")


def partners_in(communicator: Any) -> Partners:
    """The processes of a communicator of mpi4py, the same object every time; None is the one of all processes."""
    mpi = _load()
    if communicator is None:
        communicator = mpi.COMM_WORLD
    if not isinstance(communicator, mpi.Intracomm):
        raise ArgumentError(f"communicator is one of mpi4py within a group of processes, not {communicator!r}")
    known = communicator.Get_attr(_attribute())
    if known is None:
        known = Partners(mpi, communicator)
        communicator.Set_attr(_attribute(), known)
    partners: Partners = known
    return partners


@functools.cache
def _load() -> Any:
    try:
        return late("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise ExecutionError(
            f"run_distributed needs mpi4py and an MPI library (pip install 'xlapy[mpi]'): {describe(error)}"
        ) from error


@functools.cache
def _attribute() -> int:
    """Under which a communicator keeps its `Partners`."""
    key: int = _load().Comm.Create_keyval()
    return key


class Message:
    """One array of bytes on its way to a process or from it. The memory is its own until it has arrived.

    Before it in the run, `number` messages of its tag went the same way.
    """

    __slots__ = ("data", "is_incoming", "number", "peer", "request", "tag")

    def __init__(self, request: Any, peer: int, tag: int, data: Bytes, *, is_incoming: bool, number: int = 0) -> None:
        self.request = request
        self.peer = peer
        self.tag = tag
        self.data = data
        self.is_incoming = is_incoming
        self.number = number


class Account:
    """The messages that this process has begun in one run, by the other process and the tag."""

    def __init__(self, size: int) -> None:
        self.sent: Counter[tuple[int, int]] = Counter()
        self.received: Counter[tuple[int, int]] = Counter()
        self._size = size

    def balance(self) -> int:
        """Of all processes together it is 0 if nothing is left of what was sent."""
        return self.sent.total() - self.received.total()

    def to(self, process: int) -> dict[str, Any]:
        """What another process is told: how many messages of each tag it was sent, and how many it was to send."""
        return {
            way: {str(tag): count for (peer, tag), count in counts.items() if peer == process}
            for way, counts in (("sent", self.sent), ("received", self.received))
        }

    def by_process(self, counts: Counter[tuple[int, int]]) -> np.ndarray[Any, Any]:
        """Such counts of all tags together."""
        totals = np.zeros(self._size, np.int64)
        for (process, _), count in counts.items():
            totals[process] += count
        return totals


class Partners:
    """The processes of one communicator, of which this is number `rank`. They run one program at a time."""

    def __init__(self, mpi: Any, communicator: Any) -> None:
        self._mpi = mpi
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()
        self._busy = threading.Lock()
        self._unanswered: Any = None  # the wait for the word of everybody that did not end, and its memory
        self._run = 0  # its number: notices of earlier ones come late
        self._account = Account(self.size)
        self._heard = ""  # which process has failed in this run, and why: others may have done so too
        self._finished: dict[int, Any] = {}  # the accounts of those who have told that they finished this run
        self._open: list[Message] = []
        self._sent = np.zeros(self.size, np.int64)  # messages to each process so far
        self._received = np.zeros(self.size, np.int64)
        self._communicator = communicator
        self._is_own = False  # no messages of others come there
        self._is_clear = True  # nor any of a run that failed

    def _duplicate(self, timeout: float | None) -> None:
        """Goes over to a communicator of its own."""
        duplicate, request = self._communicator.Idup()
        self._agree(request.Test, timeout, "begin a run", memory=(request, duplicate))
        self._communicator, self._is_own = duplicate, True

    def run(self, digest: bytes, timeout: float | None, work: Callable[[], Result]) -> Result:
        """The result of `work` in this process, when all have done theirs. `digest` says what they work on.

        Raises this process's error, or else that of the first process that has failed."""
        with self._alone():
            self._begin(digest, timeout)
            try:
                result = work()
                if not all(map(_is_notice, self._open)):
                    raise ExecutionError(f"process {self.rank} left a collective unfinished")
            except BaseException as error:
                with contextlib.suppress(ExecutionError):  # that the others do not end either is no news
                    self._end(error, timeout)
                raise
            self._end(None, timeout)
            return result

    @contextlib.contextmanager
    def _alone(self) -> Iterator[Self]:
        if not self._busy.acquire(blocking=False):
            raise ArgumentError("another thread runs a program on this communicator: give each one of its own")
        try:
            yield self
        finally:
            self._busy.release()

    def _begin(self, digest: bytes, timeout: float | None) -> None:
        if self._unanswered is not None:
            raise ExecutionError("an earlier run on this communicator has not ended in all processes: start them again")
        if not self._is_own:
            self._duplicate(timeout)
        if not self._is_clear:
            self._clear(timeout)
        self._open = [message for message in self._open if not message.request.Test()]  # notices, if any
        self._heard, self._finished, self._account = "", {}, Account(self.size)
        self._run += 1
        own = np.frombuffer(digest, np.uint8)
        everybody = np.empty((self.size, own.size), np.uint8)
        request = self._communicator.Iallgather(own, everybody)
        self._agree(request.Test, timeout, "begin a run", memory=request)
        others = [str(process) for process, row in enumerate(everybody) if not np.array_equal(row, everybody[0])]
        if others:
            raise ArgumentError(f"all processes must run the same program: {', '.join(others)} and 0 do not")

    def _end(self, error: BaseException | None, timeout: float | None) -> None:
        """Tells the others how the run went, and learns it from them."""
        is_first = error is not None and not self._heard
        if error is not None and is_first:
            self._heard = f"process {self.rank} failed: {describe(error)}"
            self._notify({"failed": self._heard})
        words = self._words([is_first, self._account.balance()], "end a run", timeout, is_last=error is None)
        failed = np.flatnonzero(words[:, 0])
        if failed.size:
            self._is_clear = False
            if error is None:
                self._hear(int(failed[0]))
                raise ExecutionError(self._heard)
        elif error is None and words[:, 1].sum():
            self._is_clear = False
            raise ExecutionError(self._left_behind(timeout))

    def _words(
        self, own: Sequence[int], what: str, timeout: float | None, *, is_last: bool = False
    ) -> np.ndarray[Any, Any]:
        """The numbers of all processes, a row for each. `is_last`: this one has finished the run, and others that take
        long are told."""
        row, rows = np.array(own, np.int64), np.empty((self.size, len(own)), np.int64)
        request = self._communicator.Iallgather(row, rows)
        deadline = time.monotonic() + _PATIENCE_SECONDS if is_last else None

        def have_come() -> bool:
            nonlocal deadline
            if request.Test():
                return True
            if deadline is not None and time.monotonic() >= deadline:
                deadline = None
                self._notify({})
            return False

        self._agree(have_come, timeout, what, memory=(request, row, rows))
        return rows

    def _notify(self, word: dict[str, Any]) -> None:
        """Tells all others that this process has failed, or finished the run if `word` does not say so."""
        for process in range(self.size):
            if process != self.rank:
                account = {} if word else self._account.to(process)
                notice = json.dumps({"run": self._run} | word | account).encode()
                self._send(process, NOTICE_TAG, np.frombuffer(notice, np.uint8), 0)

    def _left_behind(self, timeout: float | None) -> str:
        """Who has finished without receiving what another process has sent. All processes ask it together."""
        own, announced = self._account.by_process(self._account.sent), np.zeros(self.size, np.int64)
        request = self._communicator.Ialltoall(own, announced)
        self._agree(request.Test, timeout, "end a run", memory=(request, own, announced))
        left = np.flatnonzero(announced > self._account.by_process(self._account.received))
        senders = self._words([int(left[0]) if left.size else self.size], "end a run", timeout)[:, 0]
        process = int(np.flatnonzero(senders < self.size)[0])
        return _without_part(process, f"process {senders[process]} has sent in vain")

    def _agree(self, has_come: Callable[[], bool], timeout: float | None, what: str, memory: Any = None) -> None:
        """Waits for the word of everybody; without it, nobody knows what messages are still to come. `memory` is what
        must live as long as that may come."""
        self._unanswered = has_come, memory
        if not _wait(has_come, timeout):
            raise DeadlineError(f"process {self.rank} waited {seconds(timeout or 0)} for the others to {what}")
        self._unanswered = None

    def send(self, process: int, tag: int, data: Bytes) -> Message:
        """Sends bytes, which must not change until the message has arrived."""
        number = self._account.sent[process, tag]
        self._account.sent[process, tag] += 1
        return self._send(process, tag, data, number)

    def _send(self, process: int, tag: int, data: Bytes, number: int) -> Message:
        request = self._communicator.Isend(data, process, tag)
        message = Message(request, process, tag, data, is_incoming=False, number=number)
        self._open.append(message)
        self._sent[process] += 1
        return message

    def receive(self, process: int, tag: int, byte_count: int) -> Message:
        """A message whose data will have been sent when it has arrived. Those of a tag arrive in the order of sends."""
        data = np.empty(byte_count, np.uint8)
        number = self._account.received[process, tag]
        self._account.received[process, tag] += 1
        request = self._communicator.Irecv(data, process, tag)
        message = Message(request, process, tag, data, is_incoming=True, number=number)
        self._open.append(message)
        return message

    def arrive(self, messages: Sequence[Message], timeout: float | None) -> list[int]:
        """Waits until all have arrived; in vain for these processes. Raises the failure of another process, or
        that one has finished and will never do its part."""
        requests = [message.request for message in messages]

        def have_arrived() -> bool:
            if self._mpi.Request.Testall(requests):
                return True
            self._listen()
            for message in messages if self._finished else ():
                self._check_hope(message)
            return False

        if not _wait(have_arrived, timeout):
            return sorted({message.peer for message in messages if not message.request.Test()})
        gone = set(map(id, messages))
        still_open = [message for message in self._open if id(message) not in gone]
        sources = [message.peer for message in messages if message.is_incoming]
        received = self._received + np.bincount(sources, minlength=self.size)
        self._open, self._received = still_open, received  # at once: Ctrl-C comes between calls
        return []

    def _check_hope(self, message: Message) -> None:
        """Raises that it will never arrive, if the other process has finished and says so."""
        account = self._finished.get(message.peer)
        if account is None or message.request.Test():
            return
        counterparts = account["sent" if message.is_incoming else "received"]
        if message.number >= counterparts.get(str(message.tag), 0):
            raise ExecutionError(_without_part(message.peer, f"process {self.rank} waits in vain"))

    def _listen(self) -> None:
        """Takes the notices that have come, and raises the failure of another process."""
        status = self._mpi.Status()
        while self._communicator.Iprobe(self._mpi.ANY_SOURCE, NOTICE_TAG, status):
            self._take_notice(status)
            if self._heard:
                raise ExecutionError(self._heard)

    def _hear(self, process: int) -> None:
        """Takes the notice of a process that is known to have failed."""
        status = self._mpi.Status()
        while not self._heard:
            self._communicator.Probe(process, NOTICE_TAG, status)
            self._take_notice(status)

    def _take_notice(self, status: Any) -> None:
        """Receives a notice that is there. One of an earlier run says nothing any more."""
        process = status.Get_source()
        data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        self._communicator.Recv(data, process, NOTICE_TAG)
        self._received[process] += 1
        notice = json.loads(bytes(data))
        if notice["run"] != self._run:
            return
        if "failed" in notice:
            self._heard = notice["failed"]
        else:
            self._finished[process] = notice

    def _clear(self, timeout: float | None) -> None:
        """Ends all messages of a run that has failed, and forgets them: those that nobody asked for are received, too.
        Everybody knows that it failed, and sends no more of them."""
        for message in self._open:
            if message.is_incoming and message.request:
                message.request.Cancel()
        announced = np.zeros(self.size, np.int64)
        request = self._communicator.Ialltoall(self._sent.copy(), announced)
        self._agree(
            lambda: request.Test() and self._has_all(announced), timeout, "begin a run", memory=(request, announced)
        )
        self._is_clear = True

    def _has_all(self, announced: np.ndarray[Any, Any]) -> bool:
        """Goes on with messages that are open, begins to receive others, and looks whether so many came from each."""
        status = self._mpi.Status()
        while message := self._communicator.Improbe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
            source, tag = status.Get_source(), status.Get_tag()
            self._open.append(Message(message.Irecv(data), source, tag, data, is_incoming=True))
        self._open = [message for message in self._open if not self._has_ended(message)]
        return not self._open and np.array_equal(self._received, announced)

    def _has_ended(self, message: Message) -> bool:
        """Whether it has arrived, which is counted, or was taken back."""
        status = self._mpi.Status()
        if not message.request.Test(status):
            return False
        self._received[message.peer] += message.is_incoming and not status.Is_cancelled()
        return True


def _is_notice(message: Message) -> bool:
    return message.tag == NOTICE_TAG


def _without_part(process: int, consequence: str) -> str:
    return f"process {process} finished without taking part, {consequence}"


def _wait(has_come: Callable[[], bool], timeout: float | None) -> bool:
    """Looks until something has come; False if so many seconds passed first."""
    deadline = None if timeout is None else time.monotonic() + timeout
    spins = 0
    while not has_come():
        if deadline is not None and time.monotonic() >= deadline:
            return False
        spins += 1
        if spins < _SPINS:
            os.sched_yield()
        else:
            time.sleep(_NAP_SECONDS)
    return True
