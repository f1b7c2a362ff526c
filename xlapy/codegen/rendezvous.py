"""The native half of parallel runs: entry threads, and the meetings of processes in collectives.

    i32 rendezvous_call(context, site, buffers)     what programs with collectives call for every call site
    i32 rendezvous_run(run, slots, count)           starts all processes, the first in this thread
    i32 rendezvous_wait(run)                        waits for a while for all to end; how many have not
    i32 rendezvous_serve(slot, nanoseconds)         the life of an entry thread, until it was idle for so long

The records are those of `xlapy_runtime.native_records`. A member of a collective leaves the addresses of its arrays at
a meeting. When all have come, its work is cut into chunks (`exchange`), which the members take one after the other;
whoever finds none left waits for those that are being worked on. Of small work, the last to come does all.

Whoever waits sleeps on the meeting's generation at once: there are mostly more processes than cores, and even where
there are not, a thread that only looks keeps the one for which it waits from running. It wakes now and then: to let
Python's main thread look at its signals, and to see that its time is over. Python is entered for nothing else, and for
what went wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlapy.codegen.context import CONTEXT_CANCELLED, CONTEXT_MEMBER, CONTEXT_POLL
from xlapy.codegen.exchange import emit_exchange
from xlapy.codegen.futex import futex_wait, futex_wake, has_futex, pause
from xlapy.codegen.ir import I1, I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.meetings import clear_tables, each_meeting, place_of_arrays, place_of_attendance, place_of_work
from xlapy.codegen.native_fields import get, increase, is_null, is_zero, not_zero, place, put, word
from xlapy.codegen.target import Target
from xlapy_runtime.calling import Status
from xlapy_runtime.native_records import (
    Attendance,
    GroupRecord,
    Kind,
    Meeting,
    Member,
    Reason,
    Run,
    SiteRecord,
    Slot,
    SlotWord,
)
from xlapy_runtime.rendezvous import SYMBOLS

_LOCK_SPINS = 200
"""Looks at a lock before the core is left to others, of whom one may hold it."""

_SLICE = 50_000_000
"""Nanoseconds between two looks at signals and at the time, while a thread waits."""

_NAP_MICROSECONDS = 50
"""Between two looks at a word, where there is no futex."""

_SECOND = 1_000_000_000


def emit_rendezvous(target: Target) -> Module:
    module = Module(has_fma=target.has_fma)
    emit_exchange(module)
    emitter = _Emitter(module, target)
    emitter.clock()
    emitter.sleep()
    emitter.lock()
    emitter.call_others()
    emitter.find()
    emitter.arrive()
    emitter.name_missing()
    emitter.judge()
    emitter.wait()
    emitter.work()
    emitter.finish()
    emitter.site()
    emitter.leave()
    emitter.process()
    emitter.serve()
    emitter.run()
    emitter.wake()
    return module


RENDEZVOUS = Library("rendezvous", SYMBOLS, emit_rendezvous)


class _Emitter:
    """Writes the functions in the order in which they build on each other."""

    def __init__(self, module: Module, target: Target) -> None:
        self._module = module
        self._target = target

    def _function(
        self,
        name: str,
        parameters: Sequence[tuple[str, IRType]],
        returns: IRType | None = None,
        *,
        exported: bool = False,
    ) -> KernelBuilder:
        return KernelBuilder(self._module, name, parameters, returns, "" if exported else "internal")

    # -- time and sleep ------------------------------------------------------------------------------------------

    def clock(self) -> None:
        """The monotonic clock, in nanoseconds."""
        with self._function("now", [], I64) as k:
            timespec = k.alloca(I64, 2)
            k.call("clock_gettime", [k.const(I32, 6 if "apple" in self._target.triple else 1), timespec], I32)
            k.ret(k.add(k.mul(word(k, timespec, 0), _SECOND), word(k, timespec, 1)))

    def sleep(self) -> None:
        """Sleeps while `word` is `expected`, at most so many nanoseconds; may return early."""
        parameters = [("word", PTR), ("expected", I32), ("nanoseconds", I64)]
        with self._function("sleep_on", parameters) as k:
            place, expected, nanoseconds = k.parameters.values()
            if has_futex(self._target):
                timespec = k.alloca(I64, 2)
                k.store(timespec, k.sdiv(nanoseconds, _SECOND))
                k.store(k.gep(timespec, 1, I64.bytes), k.srem(nanoseconds, _SECOND))
                futex_wait(k, self._target, place, expected, timespec)
            else:
                end = k.add(k.call_value("now", [], I64), nanoseconds)

                def goes_on(values: list[Value]) -> Value:
                    is_same = k.compare("eq", k.atomic_load(place, I32), expected)
                    return k.and_(is_same, k.compare("lt", k.call_value("now", [], I64), end))

                def nap(values: list[Value]) -> None:
                    k.call("usleep", [k.const(I32, _NAP_MICROSECONDS)], I32)

                k.while_loop(goes_on, nap, [])
        with self._function("wake", [("word", PTR), ("count", I32)]) as k:
            if has_futex(self._target):
                futex_wake(k, self._target, k.parameters["word"], k.parameters["count"])

    def lock(self) -> None:
        with self._function("lock", [("run", PTR)]) as k:
            place_of_lock = place(k, k.parameters["run"], Run, "lock")

            def is_taken(values: list[Value]) -> Value:
                _, won = k.compare_exchange(place_of_lock, k.const(I32, 0), k.const(I32, 1))
                return k.not_(won)

            def wait(values: list[Value]) -> list[Value]:
                pause(k, self._target)
                with k.if_(k.compare("gt", values[0], _LOCK_SPINS)):
                    k.call("sched_yield", [], I32)
                return [k.add(values[0], 1)]

            k.while_loop(is_taken, wait, [k.const(I64, 0)])
        with self._function("unlock", [("run", PTR)]) as k:
            k.atomic_store(place(k, k.parameters["run"], Run, "lock"), k.const(I32, 0))

    # -- meetings ------------------------------------------------------------------------------------------------

    def call_others(self) -> None:
        """Calls those who wait for a meeting, holding the lock; how many there are to wake, without it."""
        with self._function("call_others", [("run", PTR), ("meeting", PTR)], I32) as k:
            run, meeting = k.parameters.values()
            waiting = get(k, meeting, Meeting, "waiting")
            increase(k, run, Run, "waiting", k.neg(waiting))
            put(k, meeting, Meeting, "waiting", 0)
            generation = place(k, meeting, Meeting, "generation")
            k.atomic_store(generation, k.add(k.atomic_load(generation, I32), 1))
            k.ret(k.trunc(waiting, I32))
        with self._function("unlock_and_wake", [("run", PTR), ("meeting", PTR), ("count", I32)]) as k:
            run, meeting, count = k.parameters.values()
            k.call("unlock", [run])
            with k.if_(not_zero(k, count)):
                k.call("wake", [place(k, meeting, Meeting, "generation"), count])

    def find(self) -> None:
        """The meeting of a group at its `occurrence`, begun if it is not there. Holds the lock."""
        with self._function("find", [("run", PTR), ("group", PTR), ("occurrence", I64)], PTR) as k:
            run, group, occurrence = k.parameters.values()
            key = get(k, group, GroupRecord, "key")
            with each_meeting(k, run, carry=[k.const(PTR, 0)]) as (found, loop):
                is_used = not_zero(k, get(k, found, Meeting, "in_use"))
                is_same = k.compare("eq", get(k, found, Meeting, "key"), key)
                is_now = k.compare("eq", get(k, found, Meeting, "occurrence"), occurrence)
                with k.if_(k.and_(is_used, k.and_(is_same, is_now))):
                    k.ret(found)
                loop.next = [k.select(is_used, loop.values[0], found)]
            meeting = loop.results[0]
            with k.if_(is_null(k, meeting)):
                k.call("llvm.trap", [])  # there is one for whatever all processes may have begun at once
            for name in ("waiting", "arrived", "left", "next", "active", "completed", "broken"):
                put(k, meeting, Meeting, name, 0)
            clear_tables(k, run, meeting)
            put(k, meeting, Meeting, "in_use", 1)
            put(k, meeting, Meeting, "group", group)
            put(k, meeting, Meeting, "key", key)
            put(k, meeting, Meeting, "occurrence", occurrence)
            k.ret(meeting)
        self._position()

    def _position(self) -> None:
        """The position of a process in a group, or -1."""
        with self._function("position_in", [("group", PTR), ("process", I64)], I64) as k:
            group, process = k.parameters.values()
            members = get(k, group, GroupRecord, "members")
            with k.loop(0, get(k, group, GroupRecord, "size"), carry=[k.const(I64, -1)]) as loop:
                is_it = k.compare("eq", word(k, members, loop.index), process)
                loop.next = [k.select(is_it, loop.index, loop.values[0])]
            k.ret(loop.results[0])

    def arrive(self) -> None:
        """Brings a process to its meeting: null if it is in no group, and has zeros for its results."""
        parameters = [("context", PTR), ("member", PTR), ("site", PTR), ("buffers", PTR)]
        with self._function("arrive", parameters, PTR) as k:
            _, member, site, buffers = k.parameters.values()
            run, process = get(k, member, Member, "run"), get(k, member, Member, "process")
            group = word(k, get(k, site, SiteRecord, "groups"), process, PTR)
            operands, results = get(k, site, SiteRecord, "operands"), get(k, site, SiteRecord, "results")
            with k.if_(is_null(k, group)):
                sizes = get(k, site, SiteRecord, "result_bytes")
                with k.loop(0, results) as loop:
                    k.memset(word(k, buffers, k.add(operands, loop.index), PTR), 0, word(k, sizes, loop.index))
                k.ret(k.const(PTR, 0))
            k.call("lock", [run])
            count = k.gep(get(k, member, Member, "occurrences"), get(k, group, GroupRecord, "key"), I64.bytes)
            occurrence = k.load(count, I64)
            k.store(count, k.add(occurrence, 1))
            meeting = k.call_value("find", [run, group, occurrence], PTR)
            position = k.call_value("position_in", [group, process], I64)
            k.store(place_of_attendance(k, meeting, position), k.const(I64, Attendance.ARRIVED))
            k.memcpy(place_of_arrays(k, run, meeting, position), buffers, k.mul(k.add(operands, results), I64.bytes))
            arrived = increase(k, meeting, Meeting, "arrived")
            # The leaves of this site's group are those of the meeting: whoever meets exchanges the same.
            with k.if_(k.compare("lt", arrived, get(k, group, GroupRecord, "size"))):
                k.call("unlock", [run])
                k.ret(meeting)
            with k.if_(not_zero(k, get(k, group, GroupRecord, "is_small"))):
                self._work_alone(k, run, meeting, position, group)
                k.ret(meeting)
            k.call("unlock_and_wake", [run, meeting, k.call_value("call_others", [run, meeting], I32)])
            k.ret(meeting)

    def _work_alone(self, k: KernelBuilder, run: Value, meeting: Value, position: Value, group: Value) -> None:
        """Does all the work, for everybody, beginning with the lock and ending without it."""
        chunks = get(k, group, GroupRecord, "chunks")
        put(k, meeting, Meeting, "next", chunks)
        with _working(k, run, meeting, position), k.loop(0, chunks, carry=[k.const(I32, Status.OK)]) as loop:
            arguments = [k.parameters["context"], k.parameters["member"], meeting, loop.index]
            status = k.call_value("exchange_chunk", arguments, I32)
            loop.next = [k.select(not_zero(k, status), status, loop.values[0])]
        put(k, meeting, Meeting, "completed", chunks)
        _break(k, meeting, k.zext(loop.results[0], I64))
        k.call("unlock_and_wake", [run, meeting, k.call_value("call_others", [run, meeting], I32)])

    def name_missing(self) -> None:
        """Writes down whom a wait is for: who has not come, or else who is still working. Holds the lock."""
        with self._function("name_missing", [("member", PTR), ("meeting", PTR)]) as k:
            member, meeting = k.parameters.values()
            group, missing = get(k, meeting, Meeting, "group"), get(k, member, Member, "missing")
            run, size = get(k, member, Member, "run"), get(k, group, GroupRecord, "size")
            k.memset(missing, 0, k.mul(get(k, run, Run, "size"), I64.bytes))
            all_there = k.compare("eq", get(k, meeting, Meeting, "arrived"), size)
            with k.loop(0, size) as loop:
                is_absent = _is_expected(k, meeting, loop.index)
                is_working = not_zero(k, k.load(place_of_work(k, run, meeting, loop.index), I64))
                is_missing = k.select(all_there, is_working, is_absent)
                process = word(k, get(k, group, GroupRecord, "members"), loop.index)
                k.store(k.gep(missing, process, I64.bytes), k.zext(is_missing, I64))

    # -- waiting -------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Whether nobody can complete a meeting any more. Holds the lock, and counts its caller as waiting."""
        with self._function("is_hopeless", [("run", PTR), ("meeting", PTR)], I32) as k:
            run, meeting = k.parameters.values()
            group = get(k, meeting, Meeting, "group")
            deadlock = k.zext(_is_deadlock(k, run), I32)
            with k.loop(0, get(k, group, GroupRecord, "size"), carry=[deadlock]) as loop:
                process = word(k, get(k, group, GroupRecord, "members"), loop.index)
                other = k.gep(get(k, run, Run, "members"), process, ctypes.sizeof(Member))
                is_gone = k.and_(_is_expected(k, meeting, loop.index), not_zero(k, get(k, other, Member, "finished")))
                loop.next = [k.or_(loop.values[0], k.zext(is_gone, I32))]
            k.ret(loop.results[0])

    def wait(self) -> None:
        """Waits for the next call from a meeting, or for a while; begins with the lock and ends without it."""
        with self._function("wait", [("context", PTR), ("member", PTR), ("meeting", PTR)], I32) as k:
            context, member, meeting = k.parameters.values()
            run = get(k, member, Member, "run")
            site = get(k, get(k, meeting, Meeting, "group"), GroupRecord, "site")
            duration = self._time_left(k, member, meeting, run, site)
            increase(k, meeting, Meeting, "waiting")
            increase(k, run, Run, "waiting")
            with k.if_(not_zero(k, k.call_value("is_hopeless", [run, meeting], I32))):
                self._stop_waiting(k, run, meeting)
                k.call("name_missing", [member, meeting])
                k.call("unlock", [run])
                k.ret(_report(k, member, site, Reason.HOPELESS))
            place_of_generation = place(k, meeting, Meeting, "generation")
            generation = k.atomic_load(place_of_generation, I32)
            k.call("unlock", [run])
            k.call("sleep_on", [place_of_generation, generation, duration])
            k.call("lock", [run])
            was_called = k.compare("ne", k.atomic_load(place_of_generation, I32), generation)
            with k.if_(k.not_(was_called)):
                self._stop_waiting(k, run, meeting)
            k.call("unlock", [run])
            self._look_at_signals(k, context, member, was_called)
            k.ret(k.const(I32, Status.OK))

    def _time_left(self, k: KernelBuilder, member: Value, meeting: Value, run: Value, site: Value) -> Value:
        """How long to sleep. Returns from the function if there is no time left."""
        timeout = get(k, run, Run, "timeout")

        def limited() -> list[Value]:
            now = k.call_value("now", [], I64)
            with k.if_(is_zero(k, get(k, member, Member, "deadline"))):
                put(k, member, Member, "deadline", k.add(now, timeout))
            left = k.sub(get(k, member, Member, "deadline"), now)
            with k.if_(k.compare("le", left, 0)):
                k.call("name_missing", [member, meeting])
                k.call("unlock", [run])
                k.ret(_report(k, member, site, Reason.DEADLINE))
            return [k.smin(left, _SLICE)]

        return k.if_else(k.compare("ge", timeout, 0), limited, lambda: [k.const(I64, _SLICE)])[0]

    def _stop_waiting(self, k: KernelBuilder, run: Value, meeting: Value) -> None:
        increase(k, meeting, Meeting, "waiting", -1)
        increase(k, run, Run, "waiting", -1)

    def _look_at_signals(self, k: KernelBuilder, context: Value, member: Value, was_called: Value) -> None:
        """Lets Python's main thread run its signal handlers; returns from the function if one raises."""
        with k.if_(k.and_(not_zero(k, get(k, member, Member, "polls")), k.not_(was_called))):
            status = k.call_value(word(k, context, CONTEXT_POLL, PTR), [context], I32)
            with k.if_(not_zero(k, status)):
                k.ret(status)

    # -- the work ------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Takes one chunk and does it; begins with the lock and ends without it. If it fails, the meeting is broken."""
        with self._function("work", [("context", PTR), ("member", PTR), ("meeting", PTR)], I32) as k:
            context, member, meeting = k.parameters.values()
            run = get(k, member, Member, "run")
            group = get(k, meeting, Meeting, "group")
            own = k.call_value("position_in", [group, get(k, member, Member, "process")], I64)
            number = get(k, meeting, Meeting, "next")
            put(k, meeting, Meeting, "next", k.add(number, 1))
            with _working(k, run, meeting, own):
                status = k.call_value("exchange_chunk", [context, member, meeting, number], I32)
            _break(k, meeting, k.zext(status, I64))
            completed = increase(k, meeting, Meeting, "completed")
            is_last = k.compare("eq", completed, get(k, group, GroupRecord, "chunks"))
            with k.if_(k.or_(is_last, not_zero(k, status))):
                k.call("unlock_and_wake", [run, meeting, k.call_value("call_others", [run, meeting], I32)])
                k.ret(k.const(I32, Status.OK))
            k.call("unlock", [run])
            k.ret(k.const(I32, Status.OK))

    def finish(self) -> None:
        """Does a member's part of a meeting, and returns when its results are complete; or with another status."""
        with self._function("finish", [("context", PTR), ("member", PTR), ("meeting", PTR)], I32) as k:
            context, member, meeting = k.parameters.values()
            run, group = get(k, member, Member, "run"), get(k, meeting, Meeting, "group")
            size, chunks = get(k, group, GroupRecord, "size"), get(k, group, GroupRecord, "chunks")
            put(k, member, Member, "deadline", 0)

            def step(values: list[Value]) -> list[Value]:
                with k.if_(_is_stopped(k, context)):
                    k.ret(k.const(I32, Status.CANCELLED))
                k.call("lock", [run])
                broken = get(k, meeting, Meeting, "broken")
                with k.if_(not_zero(k, broken)):
                    k.call("unlock", [run])
                    with k.if_(k.compare("eq", broken, Status.NO_MEMORY)):
                        k.ret(_report(k, member, get(k, group, GroupRecord, "site"), Reason.NO_MEMORY))
                    k.ret(k.trunc(broken, I32))
                is_open = k.compare("eq", get(k, meeting, Meeting, "arrived"), size)
                is_complete = k.compare("eq", get(k, meeting, Meeting, "completed"), chunks)
                with k.if_(k.and_(is_open, is_complete)):
                    self._leave_meeting(k, run, member, meeting, group)
                    k.ret(k.const(I32, Status.OK))
                has_work = k.and_(is_open, k.compare("lt", get(k, meeting, Meeting, "next"), chunks))
                arguments = [context, member, meeting]
                return k.if_else(
                    has_work, lambda: k.call_value("work", arguments, I32), lambda: k.call_value("wait", arguments, I32)
                )

            carry = [k.const(I32, Status.OK)]
            k.ret(k.while_loop(lambda values: is_zero(k, values[0]), step, carry)[0])

    def _leave_meeting(self, k: KernelBuilder, run: Value, member: Value, meeting: Value, group: Value) -> None:
        own = k.call_value("position_in", [group, get(k, member, Member, "process")], I64)
        k.store(place_of_attendance(k, meeting, own), k.const(I64, Attendance.LEFT))
        left = increase(k, meeting, Meeting, "left")
        with k.if_(k.compare("eq", left, get(k, group, GroupRecord, "size"))):
            put(k, meeting, Meeting, "in_use", 0)
        k.call("unlock", [run])

    # -- call sites ----------------------------------------------------------------------------------------------

    def site(self) -> None:
        """Does what a call site says: natively if it is a collective, else in Python."""
        parameters = [("context", PTR), ("site", I32), ("buffers", PTR)]
        with self._function("rendezvous_call", parameters, I32, exported=True) as k:
            context, number, buffers = k.parameters.values()
            member = word(k, context, CONTEXT_MEMBER, PTR)
            run = get(k, member, Member, "run")
            site = k.gep(get(k, run, Run, "sites"), k.sext(number, I64), ctypes.sizeof(SiteRecord))
            started = get(k, member, Member, "started")
            own = k.gep(started, k.sext(number, I64), PTR.bytes)

            def other() -> Value:
                return k.call_value(get(k, run, Run, "call"), [context, number, buffers], I32)

            def finish(meeting: Value) -> Value:
                nothing = k.const(I32, Status.OK)
                return k.if_else(
                    is_null(k, meeting),
                    lambda: nothing,
                    lambda: k.call_value("finish", [context, member, meeting], I32),
                )[0]

            def collective() -> Value:
                return finish(k.call_value("arrive", [context, member, site, buffers], PTR))

            def start() -> Value:
                with k.if_(k.not_(is_null(k, k.load(own, PTR)))):
                    k.ret(_report(k, member, k.sext(number, I64), Reason.REPEATED))
                k.store(own, k.call_value("arrive", [context, member, site, buffers], PTR))
                return k.const(I32, Status.OK)

            def done() -> Value:
                begun = k.gep(started, get(k, site, SiteRecord, "start"), PTR.bytes)
                meeting = k.load(begun, PTR)
                k.store(begun, k.const(PTR, 0))
                return finish(meeting)

            cases = {Kind.COLLECTIVE.value: collective, Kind.START.value: start, Kind.DONE.value: done}
            k.ret(k.switch(get(k, site, SiteRecord, "kind"), cases, other)[0])

    # -- processes -----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Ends a process: nobody reads its memory any more, and who waits for it learns that it does not come.

        Returns the site of a collective that it had begun and not finished, or -1."""
        with self._function("leave", [("run", PTR), ("member", PTR)], I64) as k:
            run, member = k.parameters.values()
            k.call("lock", [run])
            put(k, member, Member, "finished", 1)
            increase(k, run, Run, "finished")
            is_deadlock = _is_deadlock(k, run)
            with each_meeting(k, run, carry=[k.const(I64, -1)]) as (meeting, loop):
                loop.next = self._leave_one(k, meeting, loop.values, is_deadlock)
            k.call("unlock", [run])
            k.ret(loop.results[0])

    def _leave_one(self, k: KernelBuilder, meeting: Value, begun: list[Value], is_deadlock: Value) -> list[Value]:
        """The site that the process has `begun` and not finished: this meeting's, if it is one of those."""
        run, member = k.parameters.values()
        is_used = not_zero(k, get(k, meeting, Meeting, "in_use"))
        return k.if_else(
            is_used, lambda: [self._break_off(k, run, member, meeting, begun[0], is_deadlock)], lambda: begun
        )

    def _break_off(
        self, k: KernelBuilder, run: Value, member: Value, meeting: Value, begun: Value, is_deadlock: Value
    ) -> Value:
        """What a process that ends has to do with one meeting. Holds the lock, but for a while."""
        group = get(k, meeting, Meeting, "group")
        position = k.call_value("position_in", [group, get(k, member, Member, "process")], I64)
        attendance = k.load(place_of_attendance(k, meeting, k.smax(position, 0)), I64)
        takes_part = k.compare("ge", position, 0)
        is_expected = k.and_(takes_part, k.compare("eq", attendance, Attendance.EXPECTED))
        is_there = k.and_(takes_part, k.compare("eq", attendance, Attendance.ARRIVED))
        with k.if_(is_there):
            _break(k, meeting, k.const(I64, Status.CANCELLED))
        with k.if_(k.or_(is_deadlock, k.or_(is_expected, is_there))):
            count = k.call_value("call_others", [run, meeting], I32)
            k.call("wake", [place(k, meeting, Meeting, "generation"), count])

        def others_read(values: list[Value]) -> Value:
            return k.and_(is_there, not_zero(k, get(k, meeting, Meeting, "active")))

        def let_them(values: list[Value]) -> None:
            k.call("unlock", [run])
            k.call("sched_yield", [], I32)
            k.call("lock", [run])

        k.while_loop(others_read, let_them, [])
        return k.select(is_there, get(k, group, GroupRecord, "site"), begun)

    def process(self) -> None:
        """Runs one process, from its entry to its end; without telling that it has ended."""
        with self._function("run_process", [("member", PTR)]) as k:
            member = k.parameters["member"]
            arguments = [get(k, member, Member, name) for name in ("context", "parameters", "results")]
            status = k.call_value(get(k, member, Member, "entry"), arguments, I32)
            begun = k.call_value("leave", [get(k, member, Member, "run"), member], I64)
            put(k, member, Member, "status", k.zext(status, I64))
            with k.if_(k.and_(is_zero(k, status), k.compare("ge", begun, 0))):
                put(k, member, Member, "status", k.zext(_report(k, member, begun, Reason.UNFINISHED), I64))
        with self._function("has_ended", [("run", PTR)]) as k:
            unfinished = place(k, k.parameters["run"], Run, "unfinished")
            # Behind this the run may be over, and its memory somebody else's: all that is left of it is an address.
            left = k.atomic_update("sub", unfinished, k.const(I32, 1))
            with k.if_(k.compare("eq", left, 1)):
                k.call("wake", [unfinished, k.const(I32, 1)])

    def serve(self) -> None:
        """Runs the jobs of a slot: 0 when there was none for some time, 1 after one for which nobody waits."""
        with self._function("rendezvous_serve", [("slot", PTR), ("nanoseconds", I64)], I32, exported=True) as k:
            slot, nanoseconds = k.parameters.values()
            place_of_word = place(k, slot, Slot, "word")
            idle, given = k.const(I32, SlotWord.IDLE), k.const(I32, SlotWord.GIVEN)

            def work() -> None:
                member = get(k, slot, Slot, "member")
                run = get(k, member, Member, "run")
                k.call("run_process", [member])
                # The slot is free before the run can end: whoever starts the next one may give to it at once.
                _, is_wanted = k.compare_exchange(place_of_word, given, idle)
                with k.if_(k.not_(is_wanted)):
                    k.ret(k.const(I32, 1))
                k.call("has_ended", [run])

            def sleep() -> None:
                k.call("sleep_on", [place_of_word, idle, nanoseconds])
                with k.if_(k.compare("eq", k.atomic_load(place_of_word, I32), idle)):
                    k.ret(k.const(I32, 0))

            def live(values: list[Value]) -> None:
                has_job = k.compare("eq", k.atomic_load(place_of_word, I32), given)
                k.if_else(has_job, work, sleep)

            k.while_loop(lambda _: k.const(I1, 1), live, [])
            k.ret(k.const(I32, 0))
        with self._function("rendezvous_abandon", [("slot", PTR)], I32, exported=True) as k:
            given, abandoned = k.const(I32, SlotWord.GIVEN), k.const(I32, SlotWord.ABANDONED)
            _, was_busy = k.compare_exchange(place(k, k.parameters["slot"], Slot, "word"), given, abandoned)
            k.ret(k.zext(was_busy, I32))

    def run(self) -> None:
        """Starts all processes: the first in this thread, the others on slots. Then waits for the others, for a while.

        How many have not ended."""
        with self._function("rendezvous_run", [("run", PTR), ("slots", PTR), ("count", I64)], I32, exported=True) as k:
            run, slots, count = k.parameters.values()
            members = get(k, run, Run, "members")
            k.atomic_store(place(k, run, Run, "unfinished"), k.trunc(k.add(count, 1), I32))
            with k.loop(0, count) as loop:
                slot = word(k, slots, loop.index, PTR)
                put(k, slot, Slot, "member", k.gep(members, k.add(loop.index, 1), ctypes.sizeof(Member)))
                place_of_word = place(k, slot, Slot, "word")
                k.atomic_store(place_of_word, k.const(I32, SlotWord.GIVEN))
                k.call("wake", [place_of_word, k.const(I32, 1)])
            k.call("run_process", [members])
            k.call("has_ended", [run])
            k.ret(k.call_value("rendezvous_wait", [run], I32))
        with self._function("rendezvous_wait", [("run", PTR)], I32, exported=True) as k:
            unfinished = place(k, k.parameters["run"], Run, "unfinished")
            left = k.atomic_load(unfinished, I32)
            with k.if_(not_zero(k, left)):
                k.call("sleep_on", [unfinished, left, k.const(I64, _SLICE)])
            k.ret(k.atomic_load(unfinished, I32))

    def wake(self) -> None:
        """Calls everybody who waits: the run was stopped."""
        with self._function("rendezvous_wake", [("run", PTR)], exported=True) as k:
            run = k.parameters["run"]
            k.call("lock", [run])
            with each_meeting(k, run) as (meeting, _):
                count = k.call_value("call_others", [run, meeting], I32)
                k.call("wake", [place(k, meeting, Meeting, "generation"), count])
            k.call("unlock", [run])


def _report(k: KernelBuilder, member: Value, site: Value, reason: Reason) -> Value:
    """Tells Python what went wrong; the status to return."""
    context, run = get(k, member, Member, "context"), get(k, member, Member, "run")
    return k.call_value(get(k, run, Run, "report"), [context, k.trunc(site, I32), k.const(I32, reason)], I32)


def _break(k: KernelBuilder, meeting: Value, status: Value) -> None:
    """Says why a meeting cannot be completed, unless that is known already or `status` is OK. Holds the lock."""
    broken = get(k, meeting, Meeting, "broken")
    put(k, meeting, Meeting, "broken", k.select(is_zero(k, broken), status, broken))


def _is_expected(k: KernelBuilder, meeting: Value, position: Value) -> Value:
    """Whether a member has not come yet."""
    return k.compare("eq", k.load(place_of_attendance(k, meeting, position), I64), Attendance.EXPECTED)


def _is_deadlock(k: KernelBuilder, run: Value) -> Value:
    """Whether everybody waits, who has not finished. Holds the lock."""
    everybody = k.add(get(k, run, Run, "waiting"), get(k, run, Run, "finished"))
    return k.compare("eq", everybody, get(k, run, Run, "size"))


def _is_stopped(k: KernelBuilder, context: Value) -> Value:
    return not_zero(k, k.load(word(k, context, CONTEXT_CANCELLED, PTR), I32, volatile=True))


@contextmanager
def _working(k: KernelBuilder, run: Value, meeting: Value, position: Value) -> Iterator[None]:
    """What a member does for a meeting without the lock, which it holds before and after: others may see who works."""
    own = place_of_work(k, run, meeting, position)
    increase(k, meeting, Meeting, "active")
    k.store(own, k.const(I64, 1))
    k.call("unlock", [run])
    yield
    k.call("lock", [run])
    increase(k, meeting, Meeting, "active", -1)
    k.store(own, k.const(I64, 0))
