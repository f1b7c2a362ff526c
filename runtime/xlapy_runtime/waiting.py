"""How a running program waits: with a deadline, open to cancellation, and never deaf to Ctrl-C.

Every wait is a wait on a `threading.Condition`, which Python's main thread leaves when a signal handler raises. A
cancellation remembers the conditions that its participants wait on and wakes them all when it is triggered.
"""

from __future__ import annotations

import ctypes
import math
import numbers
import threading
import time
from collections.abc import Callable
from typing import Any

from xlapy_runtime.errors import ArgumentError, CancelledExecution

LONGEST_SECONDS = 1e9
"""Of a wait that ends: some thirty years. In nanoseconds and from now it is a word still, for the system too."""


class Cancellation:
    """Stops everything that belongs to one run: native loops through their flags, waits through their conditions."""

    __slots__ = ("_alarm", "_conditions", "_flags", "_lock", "reason")

    def __init__(self, alarm: Callable[[], object] | None = None) -> None:
        """`alarm` wakes those who wait in native code, when the flags are set."""
        self._alarm = alarm
        self.reason: BaseException | None = None
        self._lock = threading.Lock()
        self._conditions: list[threading.Condition] = []
        self._flags: list[ctypes.c_int32] = []

    def cancel(self, reason: BaseException) -> None:
        """Stops the run. The first reason stays; the caller must hold no condition that a participant waits on."""
        with self._lock:
            if self.reason is None:
                self.reason = reason
            for flag in self._flags:
                flag.value = 1
            conditions = tuple(self._conditions)
        if self._alarm is not None:
            self._alarm()
        for condition in conditions:
            with condition:
                condition.notify_all()

    def attach(self, flag: ctypes.c_int32) -> None:
        """Makes `flag`, which native code polls, follow this cancellation."""
        with self._lock:
            flag.value = self.reason is not None
            self._flags.append(flag)

    def detach(self, flag: ctypes.c_int32) -> None:
        with self._lock:
            self._flags = [other for other in self._flags if other is not flag]

    def check(self) -> None:
        """Raises `CancelledExecution` if the run was stopped."""
        if self.reason is not None:
            raise CancelledExecution(f"the run was stopped because of {describe(self.reason)}") from self.reason

    def wait(self, condition: threading.Condition, ready: Callable[[], bool], timeout: float | None) -> bool:
        """Waits, holding `condition`, until `ready`; False if `timeout` seconds passed first."""
        if ready():
            return True
        with self._lock:
            self._conditions.append(condition)
        try:
            return wait_until(condition, ready, timeout, self.check)
        finally:
            with self._lock:
                self._conditions.remove(condition)


def wait_until(
    condition: threading.Condition,
    ready: Callable[[], bool],
    timeout: float | None,
    check: Callable[[], None] = lambda: None,
) -> bool:
    """Waits, holding `condition`, until `ready`; `check` may raise after each wake-up. False if time ran out."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while not ready():
        check()
        remaining = None if deadline is None else deadline - time.monotonic()
        if remaining is not None and remaining <= 0:
            return False
        condition.wait(remaining)
    return True


def checked_timeout(timeout: Any) -> float | None:
    """How many seconds a wait may take, or None for ever; raises ArgumentError for what is neither."""
    if timeout is None:
        return None
    is_number = isinstance(timeout, numbers.Real) and not isinstance(timeout, bool)
    if not is_number or not timeout >= 0:
        raise ArgumentError(f"timeout is {timeout!r}; it must be seconds, 0 or more, or None to wait for ever")
    return None if timeout == math.inf else float(min(timeout, LONGEST_SECONDS))


def describe(error: BaseException) -> str:
    """An error in one line, for messages about other errors."""
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def seconds(duration: float) -> str:
    """A duration for messages: 0.05 s, 12 s."""
    return f"{duration:.3g} s"
