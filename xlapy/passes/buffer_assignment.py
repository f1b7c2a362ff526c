"""Buffer assignment: where every value lives.

The schedule, with the computations of while and conditional laid out inside it, numbers the points of the program: one
for each instruction, or for all that run together. Each buffer is live in one or more ranges of points. Then

1. names of one thing share its buffer (tuples, bitcasts, the parameters of called computations), and so do parts of
   it that are read where they lie (`hlo/views.py`),
2. values that would be copied move in together where their ranges allow it: the initial and the new state of a while
   with the state, the result of a branch with that of the conditional, an array with what it is after an update. Then
   those for which that only saves memory: an operand with a result that may overwrite it, element by element,
3. a result of the entry that may have the memory of a donated parameter gets it, if nobody needs both at a time; a
   parameter that is changed in place, like the state of an optimizer, is one case of that,
4. other results get memory of the caller's, which takes in what is needed before they exist, if that is much,
5. everything else gets one arena, packed by best fit.

A leaf of a while state that the body passes through unchanged is never copied at all.

A region function is planned by itself, like a program: its arena is scratch memory of the instruction that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from xlapy.hlo.buffer_plan import BufferPlan, FunctionPlans, Home, Lifetime, Location, Scratch, Timeline
from xlapy.hlo.donation import Donation
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.leaves import is_renaming
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.views import is_part
from xlapy.passes.buffers.arena import aligned, live_bytes, place_in_arena
from xlapy.passes.buffers.guests import place_guests
from xlapy.passes.buffers.merging import donate, handovers_of, merge
from xlapy.passes.buffers.walk import Assigner, Buffer, Leaves
from xlapy.support.records import Record

ScratchBytes = Callable[[Instruction, FunctionPlans], int]
"""How much memory an instruction uses while it runs, besides operands and results."""


class _Walk(Record):
    """What decides where the buffers of one computation lie: `functions` are the plans of those that it calls,
    `possible` the donations that the caller allows; results that do not exist yet may take guests in."""

    entry: Computation
    schedule: Schedule
    scratch_bytes: ScratchBytes
    functions: FunctionPlans
    possible: Sequence[Donation] = ()
    takes_guests: bool = False


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
    walk = _Walk(module.entry, schedule, scratch_bytes, functions, donations, takes_guests=True)
    plan = _plan_of(walk, constants)
    return replace(plan, functions=functions)


def arena_timeline(
    module: HloModule, schedule: Schedule, plan: BufferPlan, scratch_bytes: ScratchBytes = lambda i, functions: 0
) -> Timeline:
    """The arena of `plan` over time, found by planning the entry once more."""
    donations = [Donation(*pair) for pair in plan.donations.items()]
    walk = _Walk(module.entry, schedule, scratch_bytes, plan.functions, donations, takes_guests=True)
    assigner, placed, _ = _walked(walk, [])
    owners: dict[Buffer, dict[Instruction, None]] = {buffer: {} for buffer in placed}
    for instruction in assigner.points:
        if Trait.STRUCTURE in instruction.spec.traits or is_renaming(instruction) or is_part(instruction):
            continue
        for buffer in (*assigner.leaves[instruction], assigner.scratch.get(instruction)):
            if buffer is not None and buffer.representative() in owners:
                owners[buffer.representative()].setdefault(instruction)
    lifetimes = [
        Lifetime(
            buffer.location.index,
            aligned(buffer.bytes),
            tuple((a, b) for a, b in buffer.ranges),
            tuple(owners[buffer]),
        )
        for buffer in placed
        if buffer.location is not None
    ]
    return Timeline(assigner.points, tuple(lifetimes))


def _functions_of(module: HloModule) -> list[Computation]:
    """The region functions of the module, callees first."""
    computations = module.computations()
    found = {function for each in computations for caller in each.calling for function in region_functions(caller)}
    return [computation for computation in computations if computation in found]


def _plan_of(walk: _Walk, constants: list[Instruction]) -> BufferPlan:
    """The plan for what the walk comes to. New constants go behind the others."""
    assigner, placed, arena_bytes = _walked(walk, constants)
    leaves = {
        instruction: tuple(None if b is None else b.representative().location for b in buffers)
        for instruction, buffers in assigner.leaves.items()
    }
    for part, start in assigner.starts.items():
        leaves[part] = tuple(place and replace(place, start=start) for place in leaves[part])
    scratch = {
        user: Scratch(buffer.location, buffer.bytes)
        for user, buffer in assigner.scratch.items()
        if buffer.location is not None
    }
    live = live_bytes(placed)
    return BufferPlan(leaves, tuple(constants), arena_bytes, live, scratch, donations=assigner.donations)


def _walked(walk: _Walk, constants: list[Instruction]) -> tuple[Assigner, list[Buffer], int]:
    """The computation with all its buffers placed; those that lie in the arena, and its size."""
    assigner = Assigner(
        walk.schedule, lambda instruction: walk.scratch_bytes(instruction, walk.functions), constants=constants
    )
    arguments = _arguments(assigner, walk.entry, {donation.parameter for donation in walk.possible})
    results = assigner.run(walk.entry, arguments)
    handovers = handovers_of(assigner.candidates)
    given = [buffer for buffer in arguments if buffer is not None]
    produced = [buffer for buffer in results if buffer is not None]
    assigner.donations = donate(given, produced, walk.possible, handovers)
    for candidate in sorted(assigner.candidates, key=lambda candidate: not candidate.saves_copy):
        merge(candidate.first, candidate.second, handovers)
    hosts = _place_results(produced, assigner.donations)
    if walk.takes_guests:
        scratch = frozenset(assigner.scratch.values())
        place_guests([b for b in assigner.buffers if _is_homeless(b) and b not in scratch], hosts)
    placed = [buffer for buffer in assigner.buffers if _is_homeless(buffer)]
    return assigner, placed, place_in_arena(placed)


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


def _is_homeless(buffer: Buffer) -> bool:
    return buffer.merged_into is None and buffer.location is None


def _place_results(results: Sequence[Buffer], donations: Mapping[int, int]) -> dict[Buffer, int]:
    """Gives each result's buffer the caller's memory, unless it is a parameter, a constant or an earlier result.

    Donated memory is first: it is of one certain result. Returns the buffers that have got the caller's, and how many
    bytes that has."""
    placed: dict[Buffer, int] = {}
    for number in (*donations, *range(len(results))):
        representative = results[number].representative()
        if representative.location is None:
            representative.location = Location(Home.RESULT, number)
            placed[representative] = results[number].bytes
    return placed
