"""How threads of parallel runs sleep: the clock, sleeping on a word in memory, and the lock of a run."""

from __future__ import annotations

from xlapy.codegen.futex import futex_wait, futex_wake, has_futex, pause
from xlapy.codegen.ir import I32, I64, PTR, Value
from xlapy.codegen.native_fields import place, word
from xlapy.codegen.rendezvous.functions import Functions
from xlapy_runtime.native_records import Run

_LOCK_SPINS = 200
"""Looks at a lock before the core is left to others, of whom one may hold it."""

_NAP_MICROSECONDS = 50
"""Between two looks at a word, where there is no futex."""

_SECOND = 1_000_000_000


class SleepFunctions(Functions):
    def emit(self) -> None:
        self.clock()
        self.sleep()
        self.lock()

    def clock(self) -> None:
        """The monotonic clock, in nanoseconds."""
        with self.function("now", [], I64) as k:
            timespec = k.alloca(I64, 2)
            k.call("clock_gettime", [k.const(I32, 6 if "apple" in self.target.triple else 1), timespec], I32)
            k.ret(k.add(k.mul(word(k, timespec, 0), _SECOND), word(k, timespec, 1)))

    def sleep(self) -> None:
        """Sleeps while `word` is `expected`, at most so many nanoseconds; may return early."""
        parameters = [("word", PTR), ("expected", I32), ("nanoseconds", I64)]
        with self.function("sleep_on", parameters) as k:
            place, expected, nanoseconds = k.parameters.values()
            if has_futex(self.target):
                timespec = k.alloca(I64, 2)
                k.store(timespec, k.sdiv(nanoseconds, _SECOND))
                k.store(k.gep(timespec, 1, I64.bytes), k.srem(nanoseconds, _SECOND))
                futex_wait(k, self.target, place, expected, timespec)
            else:
                end = k.add(k.call_value("now", [], I64), nanoseconds)

                def goes_on(values: list[Value]) -> Value:
                    is_same = k.compare("eq", k.atomic_load(place, I32), expected)
                    return k.and_(is_same, k.compare("lt", k.call_value("now", [], I64), end))

                def nap(values: list[Value]) -> None:
                    k.call("usleep", [k.const(I32, _NAP_MICROSECONDS)], I32)

                k.while_loop(goes_on, nap, [])
        with self.function("wake", [("word", PTR), ("count", I32)]) as k:
            if has_futex(self.target):
                futex_wake(k, self.target, k.parameters["word"], k.parameters["count"])

    def lock(self) -> None:
        with self.function("lock", [("run", PTR)]) as k:
            place_of_lock = place(k, k.parameters["run"], Run, "lock")

            def is_taken(values: list[Value]) -> Value:
                _, won = k.compare_exchange(place_of_lock, k.const(I32, 0), k.const(I32, 1))
                return k.not_(won)

            def wait(values: list[Value]) -> list[Value]:
                pause(k, self.target)
                with k.if_(k.compare("gt", values[0], _LOCK_SPINS)):
                    k.call("sched_yield", [], I32)
                return [k.add(values[0], 1)]

            k.while_loop(is_taken, wait, [k.const(I64, 0)])
        with self.function("unlock", [("run", PTR)]) as k:
            k.atomic_store(place(k, k.parameters["run"], Run, "lock"), k.const(I32, 0))
