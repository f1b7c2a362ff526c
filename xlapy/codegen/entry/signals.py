"""How running code finds out that it is to stop: behind what may take long, and in loops."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.clock import clock, ticks
from xlapy.codegen.context import CONTEXT_CANCELLED, CONTEXT_LOOK, CONTEXT_POLL
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import I32, I64, Value
from xlapy.codegen.target import Target
from xlapy_runtime.calling import Status

POLL_HUNDREDTHS = 1  # of a second between two looks at Python's signals in a loop
ITERATIONS_PER_CLOCK = 64  # of a loop with little to do, between two looks at the clock


def look_at_signals(frame: Frame) -> None:
    """Behind what may take long: stops a run that was cancelled, and lets Python look at its signals now and then.

    A function that all programs share does it: most of what LLVM had to compile of an entry would be this."""
    frame.fail_if(frame.k.call_value(frame.context_word(CONTEXT_LOOK), [frame.k.parameters["context"]], I32))


class Watch:
    """Lets a loop be stopped: looks at the cancelled flag, and now and then lets Python look at its signals."""

    width = 2  # carried: iterations so far, the clock at the last poll

    def __init__(self, frame: Frame, target: Target, *, takes_long: bool) -> None:
        self.frame = frame
        self.ticks = ticks(target, POLL_HUNDREDTHS)
        self.every = 1 if takes_long else ITERATIONS_PER_CLOCK

    def initial(self) -> list[Value]:
        return [self.frame.k.const(I64, 0), clock(self.frame.k)]

    def step(self, values: Sequence[Value]) -> list[Value]:
        k, frame = self.frame.k, self.frame
        count, last = values

        def look() -> list[Value]:
            frame.stop_if_cancelled()
            now = clock(k)
            late = k.compare("gt", k.sub(now, last), self.ticks, signed=False)
            with k.if_(late):
                self._poll()
            return [k.select(late, now, last)]

        following = k.add(count, 1)
        if self.every == 1:
            return [following, *look()]
        due = k.compare("eq", k.and_(following, self.every - 1), 0)
        return [following, *k.if_else(due, look, lambda: [last])]

    def _poll(self) -> None:
        k, frame = self.frame.k, self.frame
        status = k.call_value(frame.context_word(CONTEXT_POLL), [k.parameters["context"]], I32)
        with k.if_(k.compare("ne", status, 0)):
            k.store(frame.context_word(CONTEXT_CANCELLED), k.const(I32, 1))  # for other threads to see
            k.ret(k.const(I32, Status.CANCELLED))
