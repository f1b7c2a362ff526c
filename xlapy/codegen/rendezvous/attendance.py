"""Collectives: how a process finds the meeting of its group, waits for the others, and does its share of the work."""

from __future__ import annotations

import ctypes

from xlapy.codegen.context import CONTEXT_MEMBER, CONTEXT_POLL
from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Value
from xlapy.codegen.native_fields import get, increase, is_null, is_zero, not_zero, place, put, word
from xlapy.codegen.rendezvous.functions import (
    LONGEST_SLEEP,
    Functions,
    break_off,
    is_deadlock,
    is_expected,
    is_stopped,
    report,
    working,
)
from xlapy.codegen.rendezvous.meetings import (
    clear_tables,
    each_meeting,
    place_of_arrays,
    place_of_attendance,
    place_of_work,
)
from xlapy_runtime.calling import Status
from xlapy_runtime.native_records import Attendance, GroupRecord, Kind, Meeting, Member, Reason, Run, SiteRecord


class AttendanceFunctions(Functions):
    def emit(self) -> None:
        self.call_others()
        self.find()
        self.arrive()
        self.name_missing()
        self.judge()
        self.wait()
        self.work()
        self.finish()
        self.site()

    def call_others(self) -> None:
        """Calls those who wait for a meeting, holding the lock; how many there are to wake, without it."""
        with self.function("call_others", [("run", PTR), ("meeting", PTR)], I32) as k:
            run, meeting = k.parameters.values()
            waiting = get(k, meeting, Meeting, "waiting")
            increase(k, run, Run, "waiting", k.neg(waiting))
            put(k, meeting, Meeting, "waiting", 0)
            generation = place(k, meeting, Meeting, "generation")
            k.atomic_store(generation, k.add(k.atomic_load(generation, I32), 1))
            k.ret(k.trunc(waiting, I32))
        with self.function("unlock_and_wake", [("run", PTR), ("meeting", PTR), ("count", I32)]) as k:
            run, meeting, count = k.parameters.values()
            k.call("unlock", [run])
            with k.if_(not_zero(k, count)):
                k.call("wake", [place(k, meeting, Meeting, "generation"), count])

    def find(self) -> None:
        """The meeting of a group at its `occurrence`, begun if it is not there. Holds the lock."""
        with self.function("find", [("run", PTR), ("group", PTR), ("occurrence", I64)], PTR) as k:
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
        with self.function("position_in", [("group", PTR), ("process", I64)], I64) as k:
            group, process = k.parameters.values()
            members = get(k, group, GroupRecord, "members")
            with k.loop(0, get(k, group, GroupRecord, "size"), carry=[k.const(I64, -1)]) as loop:
                is_it = k.compare("eq", word(k, members, loop.index), process)
                loop.next = [k.select(is_it, loop.index, loop.values[0])]
            k.ret(loop.results[0])

    def arrive(self) -> None:
        """Brings a process to its meeting: null if it is in no group, and has zeros for its results."""
        parameters = [("context", PTR), ("member", PTR), ("site", PTR), ("buffers", PTR)]
        with self.function("arrive", parameters, PTR) as k:
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
        with working(k, run, meeting, position), k.loop(0, chunks, carry=[k.const(I32, Status.OK)]) as loop:
            arguments = [k.parameters["context"], k.parameters["member"], meeting, loop.index]
            status = k.call_value("exchange_chunk", arguments, I32)
            loop.next = [k.select(not_zero(k, status), status, loop.values[0])]
        put(k, meeting, Meeting, "completed", chunks)
        break_off(k, meeting, k.zext(loop.results[0], I64))
        k.call("unlock_and_wake", [run, meeting, k.call_value("call_others", [run, meeting], I32)])

    def name_missing(self) -> None:
        """Writes down whom a wait is for: who has not come, or else who is still working. Holds the lock."""
        with self.function("name_missing", [("member", PTR), ("meeting", PTR)]) as k:
            member, meeting = k.parameters.values()
            group, missing = get(k, meeting, Meeting, "group"), get(k, member, Member, "missing")
            run, size = get(k, member, Member, "run"), get(k, group, GroupRecord, "size")
            k.memset(missing, 0, k.mul(get(k, run, Run, "size"), I64.bytes))
            all_there = k.compare("eq", get(k, meeting, Meeting, "arrived"), size)
            with k.loop(0, size) as loop:
                is_absent = is_expected(k, meeting, loop.index)
                is_working = not_zero(k, k.load(place_of_work(k, run, meeting, loop.index), I64))
                is_missing = k.select(all_there, is_working, is_absent)
                process = word(k, get(k, group, GroupRecord, "members"), loop.index)
                k.store(k.gep(missing, process, I64.bytes), k.zext(is_missing, I64))

    def judge(self) -> None:
        """Whether nobody can complete a meeting any more. Holds the lock, and counts its caller as waiting."""
        with self.function("is_hopeless", [("run", PTR), ("meeting", PTR)], I32) as k:
            run, meeting = k.parameters.values()
            group = get(k, meeting, Meeting, "group")
            deadlock = k.zext(is_deadlock(k, run), I32)
            with k.loop(0, get(k, group, GroupRecord, "size"), carry=[deadlock]) as loop:
                process = word(k, get(k, group, GroupRecord, "members"), loop.index)
                other = k.gep(get(k, run, Run, "members"), process, ctypes.sizeof(Member))
                is_gone = k.and_(is_expected(k, meeting, loop.index), not_zero(k, get(k, other, Member, "finished")))
                loop.next = [k.or_(loop.values[0], k.zext(is_gone, I32))]
            k.ret(loop.results[0])

    def wait(self) -> None:
        """Waits for the next call from a meeting, or for a while; begins with the lock and ends without it."""
        with self.function("wait", [("context", PTR), ("member", PTR), ("meeting", PTR)], I32) as k:
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
                k.ret(report(k, member, site, Reason.HOPELESS))
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
                k.ret(report(k, member, site, Reason.DEADLINE))
            return [k.smin(left, LONGEST_SLEEP)]

        return k.if_else(k.compare("ge", timeout, 0), limited, lambda: [k.const(I64, LONGEST_SLEEP)])[0]

    def _stop_waiting(self, k: KernelBuilder, run: Value, meeting: Value) -> None:
        increase(k, meeting, Meeting, "waiting", -1)
        increase(k, run, Run, "waiting", -1)

    def _look_at_signals(self, k: KernelBuilder, context: Value, member: Value, was_called: Value) -> None:
        """Lets Python's main thread run its signal handlers; returns from the function if one raises."""
        with k.if_(k.and_(not_zero(k, get(k, member, Member, "polls")), k.not_(was_called))):
            status = k.call_value(word(k, context, CONTEXT_POLL, PTR), [context], I32)
            with k.if_(not_zero(k, status)):
                k.ret(status)

    def work(self) -> None:
        """Takes one chunk and does it; begins with the lock and ends without it. If it fails, the meeting is broken."""
        with self.function("work", [("context", PTR), ("member", PTR), ("meeting", PTR)], I32) as k:
            context, member, meeting = k.parameters.values()
            run = get(k, member, Member, "run")
            group = get(k, meeting, Meeting, "group")
            own = k.call_value("position_in", [group, get(k, member, Member, "process")], I64)
            number = get(k, meeting, Meeting, "next")
            put(k, meeting, Meeting, "next", k.add(number, 1))
            with working(k, run, meeting, own):
                status = k.call_value("exchange_chunk", [context, member, meeting, number], I32)
            break_off(k, meeting, k.zext(status, I64))
            completed = increase(k, meeting, Meeting, "completed")
            is_last = k.compare("eq", completed, get(k, group, GroupRecord, "chunks"))
            with k.if_(k.or_(is_last, not_zero(k, status))):
                k.call("unlock_and_wake", [run, meeting, k.call_value("call_others", [run, meeting], I32)])
                k.ret(k.const(I32, Status.OK))
            k.call("unlock", [run])
            k.ret(k.const(I32, Status.OK))

    def finish(self) -> None:
        """Does a member's part of a meeting, and returns when its results are complete; or with another status."""
        with self.function("finish", [("context", PTR), ("member", PTR), ("meeting", PTR)], I32) as k:
            context, member, meeting = k.parameters.values()
            run, group = get(k, member, Member, "run"), get(k, meeting, Meeting, "group")
            size, chunks = get(k, group, GroupRecord, "size"), get(k, group, GroupRecord, "chunks")
            put(k, member, Member, "deadline", 0)

            def step(values: list[Value]) -> list[Value]:
                with k.if_(is_stopped(k, context)):
                    k.ret(k.const(I32, Status.CANCELLED))
                k.call("lock", [run])
                broken = get(k, meeting, Meeting, "broken")
                with k.if_(not_zero(k, broken)):
                    k.call("unlock", [run])
                    with k.if_(k.compare("eq", broken, Status.NO_MEMORY)):
                        k.ret(report(k, member, get(k, group, GroupRecord, "site"), Reason.NO_MEMORY))
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

    def site(self) -> None:
        """Does what a call site says: natively if it is a collective, else in Python."""
        parameters = [("context", PTR), ("site", I32), ("buffers", PTR)]
        with self.function("rendezvous_call", parameters, I32, exported=True) as k:
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
                    k.ret(report(k, member, k.sext(number, I64), Reason.REPEATED))
                k.store(own, k.call_value("arrive", [context, member, site, buffers], PTR))
                return k.const(I32, Status.OK)

            def done() -> Value:
                begun = k.gep(started, get(k, site, SiteRecord, "start"), PTR.bytes)
                meeting = k.load(begun, PTR)
                k.store(begun, k.const(PTR, 0))
                return finish(meeting)

            cases = {Kind.COLLECTIVE.value: collective, Kind.START.value: start, Kind.DONE.value: done}
            k.ret(k.switch(get(k, site, SiteRecord, "kind"), cases, other)[0])
