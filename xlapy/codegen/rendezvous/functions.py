"""What the native functions of parallel runs share: how they are begun, and what they say of a meeting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlapy.codegen.context import CONTEXT_CANCELLED
from xlapy.codegen.ir import I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.native_fields import get, increase, is_zero, not_zero, put, word
from xlapy.codegen.rendezvous.meetings import place_of_attendance, place_of_work
from xlapy.codegen.target import Target
from xlapy_runtime.native_records import Attendance, Meeting, Member, Reason, Run

LONGEST_SLEEP = 50_000_000
"""Nanoseconds between two looks at signals and at the time, while a thread waits."""


class Functions(ABC):
    """A group of functions that are written into one module."""

    def __init__(self, module: Module, target: Target) -> None:
        self.module = module
        self.target = target

    @abstractmethod
    def emit(self) -> None:
        """Writes the functions, in the order in which they build on each other."""

    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, IRType]],
        returns: IRType | None = None,
        *,
        exported: bool = False,
    ) -> KernelBuilder:
        return KernelBuilder(self.module, name, parameters, returns, "" if exported else "internal")


def report(k: KernelBuilder, member: Value, site: Value, reason: Reason) -> Value:
    """Tells Python what went wrong; the status to return."""
    context, run = get(k, member, Member, "context"), get(k, member, Member, "run")
    return k.call_value(get(k, run, Run, "report"), [context, k.trunc(site, I32), k.const(I32, reason)], I32)


def break_off(k: KernelBuilder, meeting: Value, status: Value) -> None:
    """Says why a meeting cannot be completed, unless that is known already or `status` is OK. Holds the lock."""
    broken = get(k, meeting, Meeting, "broken")
    put(k, meeting, Meeting, "broken", k.select(is_zero(k, broken), status, broken))


def is_expected(k: KernelBuilder, meeting: Value, position: Value) -> Value:
    """Whether a member has not come yet."""
    return k.compare("eq", k.load(place_of_attendance(k, meeting, position), I64), Attendance.EXPECTED)


def is_deadlock(k: KernelBuilder, run: Value) -> Value:
    """Whether everybody waits, who has not finished. Holds the lock."""
    everybody = k.add(get(k, run, Run, "waiting"), get(k, run, Run, "finished"))
    return k.compare("eq", everybody, get(k, run, Run, "size"))


def is_stopped(k: KernelBuilder, context: Value) -> Value:
    return not_zero(k, k.load(word(k, context, CONTEXT_CANCELLED, PTR), I32, volatile=True))


@contextmanager
def working(k: KernelBuilder, run: Value, meeting: Value, position: Value) -> Iterator[None]:
    """What a member does for a meeting without the lock, which it holds before and after: others may see who works."""
    own = place_of_work(k, run, meeting, position)
    increase(k, meeting, Meeting, "active")
    k.store(own, k.const(I64, 1))
    k.call("unlock", [run])
    yield
    k.call("lock", [run])
    increase(k, meeting, Meeting, "active", -1)
    k.store(own, k.const(I64, 0))
