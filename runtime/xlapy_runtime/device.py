"""Devices: any number of CPU devices in one process, each with its own queues to the host."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Sequence

from xlapy_runtime.channels import (
    BETWEEN_DEVICES,
    HOST,
    STREAM_CAPACITY,
    Expected,
    Mailbox,
    Mailboxes,
    Stream,
    item_of,
    tree_of,
)
from xlapy_runtime.errors import ArgumentError
from xlapy_runtime.program import Value
from xlapy_runtime.waiting import checked_timeout
from xlapy_runtime.wording import kind_of

SendCallback = Callable[[Value], None]
RecvCallback = Callable[[], Value]


class Device:
    """A place where programs run. All devices share the machine's cores and memory; queues and counters are their own.

    Every method may be called from any thread, also while programs run. Blocking methods release the GIL, end with
    `DeadlineError` after `timeout` seconds (None waits forever), and give way to Ctrl-C.
    """

    def __init__(self, number: int) -> None:
        self.id = number
        self.on_send: dict[int, SendCallback] = {}
        self.on_recv: dict[int, RecvCallback] = {}
        self.begin()

    def begin(self) -> None:
        """Empty queues and counters at zero: at first, and in a forked child, where nobody can release the locks that
        other threads of the parent held."""
        self._lock = threading.Lock()
        self._queues: _Queues | None = None
        self._runs = 0
        self._running = 0
        self._bytes_in_use = 0
        self._peak_bytes_in_use = 0

    @property
    def infeed(self) -> Stream:
        """What the host has handed over for infeeds, and no program has taken yet."""
        return self._all_queues().infeed

    @property
    def outfeed(self) -> Stream:
        """What programs have put out, and the host has not taken yet."""
        return self._all_queues().outfeed

    @property
    def to_device(self) -> Mailboxes:
        """The channels from the host."""
        return self._all_queues().to_device

    @property
    def to_host(self) -> Mailboxes:
        """The channels to the host."""
        return self._all_queues().to_host

    def _all_queues(self) -> _Queues:
        """Made when the first of them is asked for: most programs ask for none."""
        with self._lock:
            if self._queues is None:
                self._queues = _Queues(self.id)
            return self._queues

    def _queues_so_far(self) -> _Queues | None:
        """For what only looks at them: it makes none."""
        with self._lock:
            return self._queues

    def __repr__(self) -> str:
        queues = self._queues_so_far()
        taken_in, put_out = (len(queues.infeed), len(queues.outfeed)) if queues is not None else (0, 0)
        return (
            f"Device(id={self.id}, running={self._running}, infeed={taken_in}/{STREAM_CAPACITY}, "
            f"outfeed={put_out}/{STREAM_CAPACITY})"
        )

    def transfer_to_infeed(self, value: Value, timeout: float | None = None) -> None:
        """Queues an array or a (nested) tuple of arrays for the next infeed. The arrays are copied.

        Waits while the queue is full. Raises `ShapeError` if a program is already waiting for another shape; the
        program fails then, too.
        """
        limit = checked_timeout(timeout)
        self.infeed.put(item_of(value), HOST, limit)

    def transfer_from_outfeed(self, expected: Expected | None = None, timeout: float | None = None) -> Value:
        """Takes the oldest value that a program has put out, nested as the program's outfeed was.

        With `expected`, a shape or something like an array, a value of another shape is a `ShapeError` and stays in the
        queue.
        """
        tree = None if expected is None else tree_of(expected)
        return self.outfeed.get(tree, HOST, checked_timeout(timeout), keep_mismatch=True).value()

    def send_to_device(self, channel: int, value: Value, timeout: float | None = None) -> None:
        """Sends a value to the next recv from the host on `channel`. Waits while the channel is full."""
        limit = checked_timeout(timeout)
        mailbox = self.to_device[(channel,)]
        mailbox.finish_send(mailbox.send(item_of(value)), HOST, limit)

    def receive_from_device(
        self, channel: int, expected: Expected | None = None, timeout: float | None = None
    ) -> Value:
        """The next value that a program has sent to the host on `channel`."""
        limit = checked_timeout(timeout)
        tree = None if expected is None else tree_of(expected)
        mailbox = self.to_host[(channel,)]
        return mailbox.finish_receive(mailbox.receive(), HOST, limit, tree).value()

    def set_send_callback(self, channel: int, callback: SendCallback | None) -> None:
        """Calls `callback(value)`, in the thread of the running program, for each send to the host on `channel`."""
        _set_callback(self.on_send, channel, callback)

    def set_recv_callback(self, channel: int, callback: RecvCallback | None) -> None:
        """Calls `callback()`, in the thread of the running program, for each recv from the host on `channel`."""
        _set_callback(self.on_recv, channel, callback)

    def reset(self) -> None:
        """Drops everything that waits in this device's queues and channels. Callbacks stay.

        A program that waits for an infeed or a message from the host fails, and so does a thread of the host that waits
        for an outfeed or a message: with an `ExecutionError`."""
        queues = self._queues_so_far()
        if queues is not None:
            for queue in queues.all():
                queue.clear()

    def memory_stats(self) -> dict[str, int]:
        """Bytes that running programs and queues hold, the peak of the former, and the number of runs."""
        queues = self._queues_so_far()
        queued = sum(queue.nbytes for queue in queues.all()) if queues is not None else 0
        with self._lock:
            return {
                "bytes_in_use": self._bytes_in_use + queued,
                "peak_bytes_in_use": max(self._peak_bytes_in_use, self._bytes_in_use + queued),
                "bytes_queued": queued,
                "running": self._running,
                "runs": self._runs,
            }

    def begin_run(self, nbytes: int) -> None:
        """Accounts for a program that starts to run and holds `nbytes`."""
        with self._lock:
            self._runs += 1
            self._running += 1
            self._bytes_in_use += nbytes
            self._peak_bytes_in_use = max(self._peak_bytes_in_use, self._bytes_in_use)

    def end_run(self, nbytes: int) -> None:
        """Accounts for its end."""
        with self._lock:
            self._running -= 1
            self._bytes_in_use -= nbytes


class _Queues:
    """What connects a device with the host."""

    def __init__(self, device: int) -> None:
        self.infeed = Stream(f"the infeed of device {device}")
        self.outfeed = Stream(f"the outfeed of device {device}")
        self.to_device = Mailboxes(f"device {device}, host-to-device channel")
        self.to_host = Mailboxes(f"device {device}, device-to-host channel")

    def all(self) -> tuple[Stream | Mailbox, ...]:
        """Those of the channels, as far as somebody has named them, with both streams."""
        return (self.infeed, self.outfeed, *self.to_device.all(), *self.to_host.all())


def _set_callback(callbacks: dict[int, SendCallback] | dict[int, RecvCallback], channel: int, callback: object) -> None:
    if callback is None:
        callbacks.pop(channel, None)
    elif callable(callback):
        callbacks[channel] = callback
    else:
        raise ArgumentError(f"the callback of channel {channel} is {kind_of(callback)}, which is not callable")


MOST_DEVICES = 1 << 16
"""Each has queues of its own, which take memory: a number read from somewhere must not take all there is."""

_devices: list[Device] = []
_devices_lock = threading.Lock()


def devices(count: int | None = None) -> tuple[Device, ...]:
    """The first `count` devices, the same objects every time; without a count all there are, at least one."""
    if count is not None:
        _check_count(count)
    with _devices_lock:
        wanted = max(len(_devices), 1) if count is None else count
        _devices.extend(Device(number) for number in range(len(_devices), wanted))
        return tuple(_devices[:wanted])


def assigned_devices(assignment: Sequence[int] | None) -> tuple[Device, ...] | None:
    """The devices of these numbers, one for each process; None where nobody has assigned any."""
    if assignment is None:
        return None
    if any(number < 0 for number in assignment) or len(set(assignment)) < len(assignment):
        raise ArgumentError(
            f"device_assignment is {list(assignment)}: it lists one device, from 0 on, for each process"
        )
    available = devices(max(assignment, default=0) + 1)
    return tuple(available[number] for number in assignment)


def _check_count(count: int) -> None:
    try:
        number = operator.index(count)
    except TypeError:
        raise ArgumentError(f"a number of devices is an integer, not {count!r}") from None
    if number < 1:
        raise ArgumentError(f"there are no {number} devices: ask for one or more")
    if number > MOST_DEVICES:
        raise ArgumentError(f"there are no {number} devices: ask for at most {MOST_DEVICES}")


def _begin_again() -> None:
    """In a forked child: devices, and the channels between them, as if nothing had run yet."""
    global _devices_lock  # noqa: PLW0603 - the parent's may be held by a thread that is not here
    _devices_lock = threading.Lock()
    BETWEEN_DEVICES.begin()
    for device in _devices:
        device.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
