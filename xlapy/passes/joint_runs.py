"""Joint runs: kernels that do not need each other share the threads, instead of one core each.

    a = f32[16384] fusion(p, g)      too small to be shared out among threads
    b = f32[20000] fusion(q, h)      the same            one job of the thread pool computes both

A kernel that moves little runs on one core: to share it out would take longer than it takes. The updates of the many
parameters of a model are such kernels, one behind the other. Together they are enough for all cores, and what is shared
out already pays for one beginning and one end instead of one each.

The kernels stay what they are, and so does the graph. They are only put side by side in the order: a kernel may run as
late as just before the first instruction that needs its result, so kernels may run together if the last of them comes
before all of these. No other instruction can then lie on a way from one to another. Nobody looks for paths, and nothing
is compiled anew.

A kernel does not wait where that would cost a copy (behind something that overwrites what it reads, behind control flow
or behind an effect), and a joint run has no more members than it needs to keep the cores busy: what its members read is
alive until it ends, and should still be in a cache.
"""

from __future__ import annotations

import bisect
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xlapy.hlo.cost import traffic
from xlapy.hlo.donation import Donation
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import may_share_a_run
from xlapy.hlo.leaves import Leaf, array_leaves, origin_of_leaf
from xlapy.hlo.ops import Trait
from xlapy.hlo.overwritten import is_overwritten
from xlapy.hlo.schedule import JointRun, Schedule
from xlapy.hlo.views import array_of, is_name_or_part, is_view
from xlapy.passes.analysis.in_place import overwritable_operands

NAME = "joint-runs"

LEAST_MEMBER_BYTES = 4 * 1024  # moved by a kernel: less takes no longer than to hand it out
MOST_MEMBER_BYTES = 2 << 20  # a kernel that moves more keeps the cores busy by itself
LEAST_RUN_BYTES = 2 << 20  # less takes no longer than to wake the other threads and to wait for them
MOST_RUN_BYTES = 8 << 20  # tasks enough for tens of cores, and still in the last cache
MOST_MEMBERS = 128  # addresses of that many lie on the stack


def join_kernels(module: HloModule, schedule: Schedule, donations: Sequence[Donation] = ()) -> Schedule:
    """The schedule with kernels put side by side that may run together; `donations` are those that are possible."""
    order = dict(schedule.order)
    joint: dict[Instruction, JointRun] = {}
    for computation in _sequences(module.entry):
        lent = donations if computation is module.entry else ()
        runs = _Sequence(order[computation], lent).runs()
        if runs:
            order[computation] = _side_by_side(order[computation], runs)
            joint.update((member, run) for run in runs for member in run.members)
    return replace(schedule, order=order, joint=joint)


def _sequences(entry: Computation) -> list[Computation]:
    """The entry, and what it runs as control flow. What kernels call runs in tasks of the pool, which share nothing."""
    found: dict[Computation, None] = {entry: None}
    pending = [entry]
    while pending:
        for instruction in pending.pop():
            if Trait.CONTROL in instruction.spec.traits:
                pending += [called for called in instruction.called if called not in found]
                found.update(dict.fromkeys(instruction.called))
    return [*found]


@dataclass(frozen=True, slots=True)
class _Member:
    """A kernel that may run together with others, before the instruction at `deadline`."""

    instruction: Instruction
    bytes: int
    deadline: int


@dataclass(slots=True)
class _Sequence:
    """One computation in order, with the kernels that wait for others to run with."""

    order: Sequence[Instruction]
    donations: Sequence[Donation]
    waiting: list[_Member] = field(default_factory=list)
    bytes: int = 0  # of those
    due: int = sys.maxsize  # the earliest of their deadlines
    made: list[JointRun] = field(default_factory=list)

    def runs(self) -> list[JointRun]:
        """The joint runs, in order."""
        moved = {i: size for i in self.order if (size := _moved_bytes(i))}
        if len(moved) < 2 or sum(moved.values()) < LEAST_RUN_BYTES:
            return []
        deadlines = self._deadlines(moved)
        for place, instruction in enumerate(self.order):
            if is_name_or_part(instruction):
                continue
            if _is_barrier(instruction):
                self._close()
            elif self.waiting and self.due <= place:
                self._run_due(place)
            if instruction in moved:
                self._wait(_Member(instruction, moved[instruction], deadlines.get(instruction, len(self.order))))
        self._close()
        return self.made

    def _wait(self, member: _Member) -> None:
        self.waiting.append(member)
        self.bytes += member.bytes
        self.due = min(self.due, member.deadline)
        if self.bytes >= MOST_RUN_BYTES or len(self.waiting) == MOST_MEMBERS:
            self._close()

    def _hold(self, members: list[_Member]) -> None:
        """Only these wait from now on."""
        self.waiting = members
        self.bytes = sum(member.bytes for member in members)
        self.due = min((member.deadline for member in members), default=sys.maxsize)

    def _run_due(self, place: int) -> None:
        """Before the instruction at `place`: if what waits is not enough yet, what cannot wait runs alone."""
        if self.bytes >= LEAST_RUN_BYTES:
            self._close()
        self._hold([member for member in self.waiting if member.deadline > place])

    def _close(self) -> None:
        """What waits runs together, if that is worth it."""
        if len(self.waiting) > 1 and self.bytes >= LEAST_RUN_BYTES:
            members = tuple(member.instruction for member in self.waiting)
            self.made.append(JointRun(members, self.bytes))
        self._hold([])

    def _deadlines(self, kernels: Mapping[Instruction, int]) -> dict[Instruction, int]:
        """The place of the instruction that each kernel must run before, if there is one."""
        needed: dict[Instruction, int] = {}
        for place in reversed(range(len(self.order))):
            instruction = self.order[place]
            own = needed.get(instruction, len(self.order)) if is_name_or_part(instruction) else place
            for operand in (*instruction.operands, *instruction.control_predecessors):
                needed[operand] = min(needed.get(operand, own), own)
        writers = self._writers()
        for place, instruction in enumerate(self.order):
            if writers and instruction in kernels:
                read = {array_of(operand) for operand in instruction.operands}
                later = (_first_behind(place, writers[leaf], len(self.order)) for leaf in read if leaf in writers)
                needed[instruction] = min(needed.get(instruction, len(self.order)), *later, len(self.order))
        return needed

    def _writers(self) -> dict[Leaf, list[int]]:
        """For arrays that several instructions read, the places of what may write over them, ascending: one of these,
        in place, or what makes the result for which they are given away."""
        readers: dict[Leaf, dict[Instruction, int]] = {}
        for place, instruction in enumerate(self.order):
            if not is_name_or_part(instruction):
                for operand in instruction.operands:
                    if operand.shape.is_array and operand.shape.rank:
                        readers.setdefault(array_of(operand), {})[instruction] = place
        writers: dict[Leaf, list[int]] = {}
        for leaf, found in readers.items():
            if len(found) > 1:
                writers[leaf] = [place for instruction, place in found.items() if _may_overwrite(instruction, leaf)]
        for given, writer in self._given_away():
            bisect.insort(writers.setdefault(given, []), writer)
        return writers

    def _given_away(self) -> list[tuple[Leaf, int]]:
        """Donated parameters that only one result may live in, each with the place of what makes that."""
        if not self.donations:
            return []
        entry = self.order[0].parent
        place_of = {instruction: place for place, instruction in enumerate(self.order)}
        parameters = [leaf for parameter in entry.parameters for leaf in array_leaves(parameter)]
        results = array_leaves(entry.root)
        choices = Counter(donation.parameter for donation in self.donations)
        return [
            (parameters[parameter], place_of[origin_of_leaf(*results[result])[0]])
            for result, parameter in self.donations
            if choices[parameter] == 1
        ]


def _first_behind(place: int, places: Sequence[int], end: int) -> int:
    """The first of ascending places that is behind `place`, or `end`."""
    number = bisect.bisect_right(places, place)
    return places[number] if number < len(places) else end


def _moved_bytes(instruction: Instruction) -> int:
    """What a kernel reads and writes, if it may be in a joint run, is of a size for one, and runs at all; else 0."""
    if not may_share_a_run(instruction) or is_name_or_part(instruction) or instruction.control_predecessors:
        return 0
    if is_overwritten(instruction) or is_view(instruction):
        return 0
    moved = traffic(instruction)
    total = moved.read + moved.written
    return total if LEAST_MEMBER_BYTES <= total <= MOST_MEMBER_BYTES else 0


def _may_overwrite(instruction: Instruction, leaf: Leaf) -> bool:
    numbers = {number for number, _ in overwritable_operands(instruction)}
    return any(origin_of_leaf(instruction.operands[number], 0) == leaf for number in numbers)


def _is_barrier(instruction: Instruction) -> bool:
    """Kernels do not move across it: it runs others, or something outside happens."""
    traits = instruction.spec.traits
    return Trait.CONTROL in traits or Trait.RUNTIME in traits or instruction.has_effect


def _side_by_side(order: Sequence[Instruction], runs: Sequence[JointRun]) -> tuple[Instruction, ...]:
    """The order with the members of each run at the place of the last one, and what names their results behind that."""
    run_of = {member: run for run in runs for member in run.members}
    moved: list[Instruction] = []
    late: dict[Instruction, None] = {}
    for instruction in order:
        run = run_of.get(instruction)
        if run is not None and instruction is run.members[-1]:
            moved += run.members
            for member in run.members:
                late.pop(member, None)
            _put_down(late, run_of, moved)
        elif run is not None or any(operand in late for operand in instruction.operands):
            late[instruction] = None
        else:
            moved.append(instruction)
    return tuple(moved)


def _put_down(late: dict[Instruction, None], run_of: Mapping[Instruction, JointRun], moved: list[Instruction]) -> None:
    """Appends the names that no longer wait for a member of a run."""
    for instruction in [*late]:
        if instruction not in run_of and not any(operand in late for operand in instruction.operands):
            del late[instruction]
            moved.append(instruction)
