"""The life of a process: the thread that it runs on, its end, and how others wait for it."""

from __future__ import annotations

import ctypes

from xlapy.codegen.ir import I1, I32, I64, PTR, KernelBuilder, Value
from xlapy.codegen.native_fields import get, increase, is_zero, not_zero, place, put, word
from xlapy.codegen.rendezvous.functions import LONGEST_SLEEP, Functions, break_off, is_deadlock, report
from xlapy.codegen.rendezvous.meetings import each_meeting, place_of_attendance
from xlapy_runtime.calling import Status
from xlapy_runtime.native_records import Attendance, GroupRecord, Meeting, Member, Reason, Run, Slot, SlotWord


class ProcessFunctions(Functions):
    def emit(self) -> None:
        self.leave()
        self.process()
        self.serve()
        self.run()
        self.wake()

    def leave(self) -> None:
        """Ends a process: nobody reads its memory any more, and who waits for it learns that it does not come.

        Returns the site of a collective that it had begun and not finished, or -1."""
        with self.function("leave", [("run", PTR), ("member", PTR)], I64) as k:
            run, member = k.parameters.values()
            k.call("lock", [run])
            put(k, member, Member, "finished", 1)
            increase(k, run, Run, "finished")
            all_wait = is_deadlock(k, run)
            with each_meeting(k, run, carry=[k.const(I64, -1)]) as (meeting, loop):
                loop.next = self._leave_one(k, meeting, loop.values, all_wait)
            k.call("unlock", [run])
            k.ret(loop.results[0])

    def _leave_one(self, k: KernelBuilder, meeting: Value, begun: list[Value], all_wait: Value) -> list[Value]:
        """The site that the process has `begun` and not finished: this meeting's, if it is one of those."""
        run, member = k.parameters.values()
        is_used = not_zero(k, get(k, meeting, Meeting, "in_use"))
        return k.if_else(is_used, lambda: [self._abandon(k, run, member, meeting, begun[0], all_wait)], lambda: begun)

    def _abandon(
        self, k: KernelBuilder, run: Value, member: Value, meeting: Value, begun: Value, all_wait: Value
    ) -> Value:
        """What a process that ends has to do with one meeting. Holds the lock, but for a while."""
        group = get(k, meeting, Meeting, "group")
        position = k.call_value("position_in", [group, get(k, member, Member, "process")], I64)
        attendance = k.load(place_of_attendance(k, meeting, k.smax(position, 0)), I64)
        takes_part = k.compare("ge", position, 0)
        is_awaited = k.and_(takes_part, k.compare("eq", attendance, Attendance.EXPECTED))
        is_there = k.and_(takes_part, k.compare("eq", attendance, Attendance.ARRIVED))
        with k.if_(is_there):
            break_off(k, meeting, k.const(I64, Status.CANCELLED))
        with k.if_(k.or_(all_wait, k.or_(is_awaited, is_there))):
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
        with self.function("run_process", [("member", PTR)]) as k:
            member = k.parameters["member"]
            arguments = [get(k, member, Member, name) for name in ("context", "parameters", "results")]
            status = k.call_value(get(k, member, Member, "entry"), arguments, I32)
            begun = k.call_value("leave", [get(k, member, Member, "run"), member], I64)
            put(k, member, Member, "status", k.zext(status, I64))
            with k.if_(k.and_(is_zero(k, status), k.compare("ge", begun, 0))):
                put(k, member, Member, "status", k.zext(report(k, member, begun, Reason.UNFINISHED), I64))
        with self.function("has_ended", [("run", PTR)]) as k:
            unfinished = place(k, k.parameters["run"], Run, "unfinished")
            # Behind this the run may be over, and its memory somebody else's: all that is left of it is an address.
            left = k.atomic_update("sub", unfinished, k.const(I32, 1))
            with k.if_(k.compare("eq", left, 1)):
                k.call("wake", [unfinished, k.const(I32, 1)])

    def serve(self) -> None:
        """Runs the jobs of a slot: 0 when there was none for some time, 1 after one for which nobody waits."""
        with self.function("rendezvous_serve", [("slot", PTR), ("nanoseconds", I64)], I32, exported=True) as k:
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
        with self.function("rendezvous_abandon", [("slot", PTR)], I32, exported=True) as k:
            given, abandoned = k.const(I32, SlotWord.GIVEN), k.const(I32, SlotWord.ABANDONED)
            _, was_busy = k.compare_exchange(place(k, k.parameters["slot"], Slot, "word"), given, abandoned)
            k.ret(k.zext(was_busy, I32))

    def run(self) -> None:
        """Starts all processes: the first in this thread, the others on slots. Then waits for the others, for a while.

        How many have not ended."""
        with self.function("rendezvous_run", [("run", PTR), ("slots", PTR), ("count", I64)], I32, exported=True) as k:
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
        with self.function("rendezvous_wait", [("run", PTR)], I32, exported=True) as k:
            unfinished = place(k, k.parameters["run"], Run, "unfinished")
            left = k.atomic_load(unfinished, I32)
            with k.if_(not_zero(k, left)):
                k.call("sleep_on", [unfinished, left, k.const(I64, LONGEST_SLEEP)])
            k.ret(k.atomic_load(unfinished, I32))

    def wake(self) -> None:
        """Calls everybody who waits: the run was stopped."""
        with self.function("rendezvous_wake", [("run", PTR)], exported=True) as k:
            run = k.parameters["run"]
            k.call("lock", [run])
            with each_meeting(k, run) as (meeting, _):
                count = k.call_value("call_others", [run, meeting], I32)
                k.call("wake", [place(k, meeting, Meeting, "generation"), count])
            k.call("unlock", [run])
