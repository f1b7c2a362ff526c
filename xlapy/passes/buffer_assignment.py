"""Buffer assignment: where every value lives.

The schedule, with the computations of while and conditional laid out inside it, numbers the points of the program: one
for each instruction, or for all that run together. Each buffer is live in one or more ranges of points. Then

1. names of one thing share its buffer (tuples, bitcasts, the parameters of called computations),
2. values that would be copied move in together where their ranges allow it: the initial and the new state of a while
   with the state, the result of a branch with that of the conditional, an array with what it is after an update. Then
   those for which that only saves memory: an operand with a result that may overwrite it, element by element,
3. a result of the entry that may have the memory of a donated parameter gets it, if nobody needs both at a time; a
   parameter that is changed in place, like the state of an optimizer, is one case of that,
4. other results get memory of the caller's, and everything else one arena, packed by best fit.

A leaf of a while state that the body passes through unchanged is never copied at all.

A region function is planned by itself, like a program: its arena is scratch memory of the instruction that calls it.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xlapy.hlo.buffer_plan import BufferPlan, FunctionPlans, Home, Lifetime, Location, Scratch, Timeline
from xlapy.hlo.donation import Donation
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.leaves import SAME_VALUE, is_renaming, leaf_count, leaf_offset, origin_of_leaf, result_leaves
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.shape import Shape
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.support.records import Record
from xlapy.support.registry import Registry

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for one value, or (once merged) for several that are never needed at the same time."""

    bytes: int
    ranges: list[list[int]]  # [first, last] points at which the value is needed, ascending
    location: Location | None = None  # decided from the start for parameters and constants
    keeps: tuple[Buffer, ...] = ()  # buffers that must live as long as this one: operands of a start op
    merged_into: Buffer | None = None

    def touch(self, point: int) -> None:
        """The value is needed at `point`, which is not before any earlier touch of the current range."""
        pending = [self]
        while pending:
            buffer = pending.pop()
            buffer.ranges[-1][1] = max(buffer.ranges[-1][1], point)
            pending.extend(buffer.keeps)

    def representative(self) -> Buffer:
        buffer = self
        while buffer.merged_into is not None:
            buffer = buffer.merged_into
        return buffer


Leaves = list[Buffer | None]
"""One buffer per leaf of a shape; None for a token."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Two buffers that should be one; at `point` one may end where the other begins. Two different ones would mean a
    copy, or just more memory."""

    first: Buffer
    second: Buffer
    point: int
    saves_copy: bool = True


@dataclass(slots=True)
class Assigner:
    """The walk over the program that finds buffers and their ranges."""

    schedule: Schedule
    scratch_bytes: Callable[[Instruction], int]
    point: int = 0
    readers: Counter[Buffer] = field(default_factory=Counter)  # how many of the instructions of this point read each
    leaves: dict[Instruction, Leaves] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    constants: list[Instruction] = field(default_factory=list)  # of the whole program, as far as it has been walked
    scratch: dict[Instruction, Buffer] = field(default_factory=dict)
    points: dict[Instruction, int] = field(default_factory=dict)
    donations: Mapping[int, int] = field(default_factory=dict)  # result and parameter, known when both are placed

    def new_buffer(self, shape: Shape, location: Location | None = None) -> Buffer:
        return self.new_memory(shape.bytes, location)

    def new_memory(self, size: int, location: Location | None = None) -> Buffer:
        buffer = Buffer(size, [[self.point, self.point]], location)
        self.buffers.append(buffer)
        return buffer

    def new_leaves(self, shape: Shape) -> Leaves:
        return [self.new_buffer(leaf) if leaf.is_array else None for leaf in shape.leaves()]

    def use(self, instruction: Instruction) -> Leaves:
        """The leaves of an operand, needed at this point."""
        leaves = self.leaves[instruction]
        self.touch(leaves)
        return leaves

    def touch(self, leaves: Sequence[Buffer | None]) -> None:
        for buffer in leaves:
            if buffer is not None:
                buffer.touch(self.point)

    def run(self, computation: Computation, arguments: Leaves) -> Leaves:
        """Walks a computation whose parameters are `arguments`; returns the leaves of its root, needed at its end."""
        start = 0
        for parameter in computation.parameters:
            count = leaf_count(parameter.shape)
            self.leaves[parameter] = arguments[start : start + count]
            start += count
        for instruction in self.schedule[computation]:
            if instruction.opcode != "parameter":
                self._come_to(instruction)
                handler = _HANDLERS.get(instruction.opcode) or _produce
                self.leaves[instruction] = handler(self, instruction)
        self.point += 1
        return self.use(computation.root)

    def _come_to(self, instruction: Instruction) -> None:
        """Goes on to the point of an instruction. What runs together has one: all their operands are needed as long as
        one of them runs."""
        together = self.schedule.together(instruction)
        if instruction is together[0]:
            self.point += 1
            read = (buffer for member in together for buffer in self._read(member))
            self.readers = Counter(read) if len(together) > 1 else Counter()
        self.points[instruction] = self.point

    def _read(self, instruction: Instruction) -> set[Buffer]:
        buffers = (buffer for operand in instruction.operands for buffer in self.leaves[operand])
        return {buffer for buffer in buffers if buffer is not None}


_HANDLERS: Registry[Callable[[Assigner, Instruction], Leaves]] = Registry("buffer assignment")


def _produce(assigner: Assigner, instruction: Instruction) -> Leaves:
    """An op that writes its result to memory of its own, or over an operand that nobody needs any more."""
    if is_renaming(instruction):
        return assigner.leaves[instruction.operands[0]]
    operands = [assigner.use(operand) for operand in instruction.operands]
    leaves = assigner.new_leaves(instruction.shape)
    scratch = assigner.scratch_bytes(instruction)
    if scratch:
        assigner.scratch[instruction] = assigner.new_memory(scratch)
    pairs = overwritable_operands(instruction)
    for number, leaf in pairs:
        operand, result = operands[number][0], leaves[leaf]
        if operand is None or result is None or not instruction.operands[number].shape.rank:
            continue
        readers = [other for other, read in enumerate(operands) if operand in read]
        if assigner.readers[operand] > 1:
            continue  # another kernel reads it at the same time
        if all((other, leaf) in pairs for other in readers):  # else one may read it at another index
            assigner.candidates.append(Candidate(operand, result, assigner.point, not _writes_all(instruction)))
    return leaves


def _writes_all(instruction: Instruction) -> bool:
    """The kernel writes each element of its results, also where these lie over an operand."""
    root = instruction.called[0].root if instruction.opcode == "fusion" else instruction
    return root.opcode != "dynamic-update-slice" if root is not instruction else Trait.ELEMENTWISE in root.spec.traits


def _start(assigner: Assigner, instruction: Instruction) -> Leaves:
    """The operands must live until the op is done: as long as what it writes. A first part of the result is them."""
    operands = [buffer for operand in instruction.operands for buffer in assigner.use(operand)]
    own = operands[: result_leaves(instruction).start]
    written = [*instruction.shape.leaves()][len(own) :]
    leaves: Leaves = [assigner.new_buffer(leaf) for leaf in written]
    for buffer in leaves:
        if buffer is not None:
            buffer.keeps = tuple(operand for operand in operands if operand is not None)
    return [*own, *leaves]


def _done(assigner: Assigner, instruction: Instruction) -> Leaves:
    """The results of the start op, complete from now on."""
    started = instruction.operands[0]
    return assigner.use(started)[result_leaves(started)]


for _name, _spec in OPS.items():
    if _spec.start_of is not None:
        _HANDLERS.add(_name, _start)
    if _spec.done_of is not None:
        _HANDLERS.add(_name, _done)


@_HANDLERS.register("constant")
def _constant(assigner: Assigner, instruction: Instruction) -> Leaves:
    assigner.constants.append(instruction)
    return [assigner.new_buffer(instruction.shape, Location(Home.CONSTANT, len(assigner.constants) - 1))]


@_HANDLERS.register("tuple")
def _tuple(assigner: Assigner, instruction: Instruction) -> Leaves:
    return [buffer for operand in instruction.operands for buffer in assigner.leaves[operand]]


@_HANDLERS.register("get-tuple-element")
def _get_tuple_element(assigner: Assigner, instruction: Instruction) -> Leaves:
    operand = instruction.operands[0]
    start = leaf_offset(operand.shape, instruction.attributes["index"])
    return assigner.leaves[operand][start : start + leaf_count(instruction.shape)]


@_HANDLERS.register(*sorted(SAME_VALUE))
def _same(assigner: Assigner, instruction: Instruction) -> Leaves:
    return assigner.leaves[instruction.operands[0]]


@_HANDLERS.register("send")
def _send(assigner: Assigner, instruction: Instruction) -> Leaves:
    sent = assigner.use(instruction.operands[0])
    return [*sent, assigner.new_buffer(instruction.shape.parts[1]), None]


@_HANDLERS.register("recv-done")
def _recv_done(assigner: Assigner, instruction: Instruction) -> Leaves:
    return [*assigner.use(instruction.operands[0])[:-2], None]


@_HANDLERS.register("call")
def _call(assigner: Assigner, instruction: Instruction) -> Leaves:
    arguments = [buffer for operand in instruction.operands for buffer in assigner.use(operand)]
    return assigner.run(instruction.called[0], arguments)


@_HANDLERS.register("conditional")
def _conditional(assigner: Assigner, instruction: Instruction) -> Leaves:
    operands = [assigner.use(operand) for operand in instruction.operands[1:]]
    assigner.use(instruction.operands[0])
    results = assigner.new_leaves(instruction.shape)
    ends: list[int] = []
    for branch, arguments in zip(instruction.called, operands, strict=True):
        before = len(assigner.buffers)
        produced = assigner.run(branch, arguments)
        own = set(assigner.buffers[before:])
        ends.append(assigner.point)
        for made, result in zip(produced, results, strict=True):
            if made is not None and result is not None and made in own:
                assigner.candidates.append(Candidate(made, result, assigner.point))
    assigner.point += 1
    for operand in operands:
        assigner.touch(operand)  # a branch that runs later may read what an earlier one only passes on
    for result in results:
        if result is not None:
            result.ranges = [[end, end] for end in ends] + [[assigner.point, assigner.point]]
    return results


@_HANDLERS.register("while")
def _while(assigner: Assigner, instruction: Instruction) -> Leaves:
    condition, body = instruction.called
    initial = assigner.use(instruction.operands[0])
    begin = assigner.point
    unchanged = [
        origin_of_leaf(body.root, leaf) == (body.parameters[0], leaf) for leaf in range(leaf_count(instruction.shape))
    ]
    state: Leaves = []
    for leaf, shape in enumerate(instruction.shape.leaves()):
        source = initial[leaf]
        if source is None or (unchanged[leaf] and shape.rank):
            state.append(source)
        else:
            kept = assigner.new_buffer(shape)
            state.append(kept)
            assigner.candidates.append(Candidate(source, kept, begin))
    assigner.run(condition, state)
    produced = assigner.run(body, state)
    end = assigner.point
    for made, old in zip(produced, state, strict=True):
        if made is not None and old is not None and made is not old:
            old.ranges.append([end, end])
            assigner.candidates.append(Candidate(made, old, end))
    assigner.point += 1
    assigner.touch(state)
    return state


# -- merging ---------------------------------------------------------------------------------------------------------


Handovers = Mapping[int, Sequence[Candidate]]
"""The candidates by their points."""


def _handovers(candidates: Sequence[Candidate]) -> Handovers:
    found: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.point, []).append(candidate)
    return found


def _merge(one: Buffer, other: Buffer, handovers: Handovers) -> bool:
    """Makes one buffer of two, if their ranges allow it; whether they are one now."""
    first, second = one.representative(), other.representative()
    if first is second:
        return True
    if first.bytes != second.bytes:
        return False
    if first.location is not None or second.location is not None:
        return False  # parameters and constants are never written
    if _conflict(first, second, handovers):
        return False
    first.ranges = _united(first.ranges, second.ranges)
    second.merged_into = first
    return True


def _donate(
    parameters: Sequence[Buffer], results: Sequence[Buffer], possible: Sequence[Donation], handovers: Handovers
) -> dict[int, int]:
    """Joins results with the donated parameters whose memory is free in time; the others are never written, like all
    parameters. Returns result and parameter of each pair that is one now."""
    donations: dict[int, int] = {}
    lent: set[int] = set()
    for result, parameter in possible:
        if result in donations or parameter in lent:
            continue
        if _merge(parameters[parameter], results[result], handovers):
            donations[result] = parameter
            lent.add(parameter)
    for parameter in {parameter for _, parameter in possible} - lent:
        parameters[parameter].location = Location(Home.PARAMETER, parameter)
    return donations


def _conflict(first: Buffer, second: Buffer, handovers: Handovers) -> bool:
    """Whether both are needed at some point, other than one at which the first hands over to the second or back."""
    for one in first.ranges:
        for other in second.ranges:
            start, end = max(one[0], other[0]), min(one[1], other[1])
            if start < end:
                return True
            if start == end and not (
                _is_boundary(one, other, start)
                and any(
                    {candidate.first.representative(), candidate.second.representative()} == {first, second}
                    for candidate in handovers.get(start, ())
                )
            ):
                return True
    return False


def _is_boundary(one: list[int], other: list[int], point: int) -> bool:
    return (one[1] == point == other[0]) or (other[1] == point == one[0])


def _united(first: list[list[int]], second: list[list[int]]) -> list[list[int]]:
    united: list[list[int]] = []
    for start, end in sorted((*first, *second)):
        if united and start <= united[-1][1]:
            united[-1][1] = max(united[-1][1], end)
        else:
            united.append([start, end])
    return united


# -- placing ---------------------------------------------------------------------------------------------------------


ScratchBytes = Callable[[Instruction, FunctionPlans], int]
"""How much memory an instruction uses while it runs, besides operands and results."""


class _Walk(Record):
    """What decides where the buffers of one computation lie: `functions` are the plans of those that it calls,
    `possible` the donations that the caller allows."""

    entry: Computation
    schedule: Schedule
    scratch_bytes: ScratchBytes
    functions: FunctionPlans
    possible: Sequence[Donation] = ()


def assign_buffers(
    module: HloModule,
    schedule: Schedule,
    scratch_bytes: ScratchBytes = lambda instruction, functions: 0,
    donations: Sequence[Donation] = (),
) -> BufferPlan:
    """The plan for the entry of `module`, run in the order of `schedule`, with those of its region functions.

    The region functions that an instruction calls are planned when `scratch_bytes` is asked for it. `donations` are
    those that the caller allows."""
    constants: list[Instruction] = []
    functions: dict[Computation, BufferPlan] = {}
    for function in _functions_of(module):
        functions[function] = _plan_of(_Walk(function, schedule, scratch_bytes, functions), constants)
    plan = _plan_of(_Walk(module.entry, schedule, scratch_bytes, functions, donations), constants)
    return replace(plan, functions=functions)


def arena_timeline(
    module: HloModule, schedule: Schedule, plan: BufferPlan, scratch_bytes: ScratchBytes = lambda i, functions: 0
) -> Timeline:
    """The arena of `plan` over time, found by planning the entry once more."""
    donations = [Donation(*pair) for pair in plan.donations.items()]
    assigner, placed, _ = _walked(_Walk(module.entry, schedule, scratch_bytes, plan.functions, donations), [])
    owners: dict[Buffer, dict[Instruction, None]] = {buffer: {} for buffer in placed}
    for instruction in assigner.points:
        if Trait.STRUCTURE in instruction.spec.traits or is_renaming(instruction):
            continue
        for buffer in (*assigner.leaves[instruction], assigner.scratch.get(instruction)):
            if buffer is not None and buffer.representative() in owners:
                owners[buffer.representative()].setdefault(instruction)
    lifetimes = [
        Lifetime(
            buffer.location.index,
            _aligned(buffer.bytes),
            tuple((a, b) for a, b in buffer.ranges),
            tuple(owners[buffer]),
        )
        for buffer in placed
        if buffer.location is not None
    ]
    return Timeline(assigner.points, tuple(lifetimes))


def _functions_of(module: HloModule) -> list[Computation]:
    """The region functions of the module, callees first."""
    found = {function for instruction in module.instructions() for function in region_functions(instruction)}
    return [computation for computation in module.computations() if computation in found]


def _plan_of(walk: _Walk, constants: list[Instruction]) -> BufferPlan:
    """The plan for what the walk comes to. New constants go behind the others."""
    assigner, placed, arena_bytes = _walked(walk, constants)
    leaves = {
        instruction: tuple(None if b is None else b.representative().location for b in buffers)
        for instruction, buffers in assigner.leaves.items()
    }
    scratch = {
        user: Scratch(buffer.location, buffer.bytes)
        for user, buffer in assigner.scratch.items()
        if buffer.location is not None
    }
    live_bytes = _live_bytes(placed)
    return BufferPlan(leaves, tuple(constants), arena_bytes, live_bytes, scratch, donations=assigner.donations)


def _walked(walk: _Walk, constants: list[Instruction]) -> tuple[Assigner, list[Buffer], int]:
    """The computation with all its buffers placed; those that lie in the arena, and its size."""
    assigner = Assigner(
        walk.schedule, lambda instruction: walk.scratch_bytes(instruction, walk.functions), constants=constants
    )
    arguments = _arguments(assigner, walk.entry, {donation.parameter for donation in walk.possible})
    results = assigner.run(walk.entry, arguments)
    handovers = _handovers(assigner.candidates)
    given = [buffer for buffer in arguments if buffer is not None]
    produced = [buffer for buffer in results if buffer is not None]
    assigner.donations = _donate(given, produced, walk.possible, handovers)
    for candidate in sorted(assigner.candidates, key=lambda candidate: not candidate.saves_copy):
        _merge(candidate.first, candidate.second, handovers)
    _place_results(produced, assigner.donations)
    placed = [b for b in assigner.buffers if b.merged_into is None and b.location is None]
    return assigner, placed, _place_in_arena(placed)


def _arguments(assigner: Assigner, entry: Computation, donated: Collection[int]) -> Leaves:
    """The leaves of the entry's parameters. Where donated ones lie is decided later."""
    arguments: Leaves = []
    number = 0
    for parameter in entry.parameters:
        for leaf in parameter.shape.leaves():
            if not leaf.is_array:
                arguments.append(None)
                continue
            location = None if number in donated else Location(Home.PARAMETER, number)
            arguments.append(assigner.new_buffer(leaf, location))
            number += 1
    return arguments


def _place_results(results: Sequence[Buffer], donations: Mapping[int, int]) -> None:
    """Gives each result's buffer the caller's memory, unless it is a parameter, a constant or an earlier result.

    Donated memory is first: it is of one certain result."""
    for number in (*donations, *range(len(results))):
        representative = results[number].representative()
        if representative.location is None:
            representative.location = Location(Home.RESULT, number)


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


def _place_in_arena(buffers: Sequence[Buffer]) -> int:
    """Gives each buffer an offset; returns the bytes of the arena.

    Buffers that follow each other in time mostly fit where others were. Where that leaves holes, because small ones lie
    in the way when large ones come, the largest choose first."""
    chosen = _by_best_fit(buffers, 0)
    if chosen.bytes - _live_bytes(buffers) > max(chosen.bytes // HOLES, LEAST_HOLE_BYTES):
        chosen = min(chosen, _by_size(buffers), key=lambda placement: placement.bytes)
    for buffer, offset in chosen.offsets.items():
        buffer.location = Location(Home.ARENA, offset)
    return chosen.bytes


HOLES = 64  # parts of the arena, one of which may be wasted
LEAST_HOLE_BYTES = 16 * 1024
MOST_CHOOSING = 192  # buffers that are compared with each other: some milliseconds


class _Placement(Record):
    """Where buffers lie, and how far that reaches."""

    offsets: dict[Buffer, int]
    bytes: int


def _by_best_fit(buffers: Sequence[Buffer], top: int) -> _Placement:
    """Offsets from `top` on, over the points of the program."""
    offsets: dict[Buffer, int] = {}
    free: list[tuple[int, int]] = []  # (size, offset), ascending
    active: list[tuple[int, int, int]] = []  # (last point, offset, size), ascending
    for buffer in sorted(buffers, key=lambda b: (b.ranges[0][0], -b.bytes)):
        first, last, size = buffer.ranges[0][0], buffer.ranges[-1][1], _aligned(buffer.bytes)
        while active and active[0][0] < first:
            _, offset, freed = active.pop(0)
            free = _release(free, offset, freed)
        fit = bisect.bisect_left(free, (size, -1))
        if fit < len(free):
            available, offset = free.pop(fit)
            if available > size:
                bisect.insort(free, (available - size, offset + size))
        else:
            offset = top
            top += size
        offsets[buffer] = offset
        bisect.insort(active, (last, offset, size))
    return _Placement(offsets, top)


def _by_size(buffers: Sequence[Buffer]) -> _Placement:
    """The largest first, each as low as those allow that lie already and are alive at some point of its life; the small
    ones of very many buffers above all that."""
    ordered = sorted(buffers, key=lambda b: (-b.bytes, b.ranges[0][0]))
    offsets: dict[Buffer, int] = {}
    top = 0
    for buffer in ordered[:MOST_CHOOSING]:
        size, offset = _aligned(buffer.bytes), 0
        neighbours = [(offsets[other], other) for other in offsets if _live_together(buffer, other)]
        for start, other in sorted(neighbours, key=lambda neighbour: neighbour[0]):
            if start - offset >= size:
                break
            offset = max(offset, start + _aligned(other.bytes))
        offsets[buffer] = offset
        top = max(top, offset + size)
    rest = _by_best_fit(ordered[MOST_CHOOSING:], top)
    return _Placement(offsets | rest.offsets, rest.bytes)


def _live_together(one: Buffer, other: Buffer) -> bool:
    return one.ranges[0][0] <= other.ranges[-1][1] and other.ranges[0][0] <= one.ranges[-1][1]


def _release(free: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    """The free list with [offset, offset + size) in it, joined to its neighbours."""
    joined = []
    for other_size, other_offset in free:
        if other_offset + other_size == offset:
            offset, size = other_offset, size + other_size
        elif offset + size == other_offset:
            size += other_size
        else:
            joined.append((other_size, other_offset))
    bisect.insort(joined, (size, offset))
    return joined


def _live_bytes(buffers: Sequence[Buffer]) -> int:
    """The largest sum of buffers that are live at one point."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        for first, last in buffer.ranges:
            changes[first] = changes.get(first, 0) + _aligned(buffer.bytes)
            changes[last + 1] = changes.get(last + 1, 0) - _aligned(buffer.bytes)
    live = most = 0
    for point in sorted(changes):
        live += changes[point]
        most = max(most, live)
    return most
