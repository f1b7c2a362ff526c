"""What each kernel of a program does and costs, and the time that the machine's limits allow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xlapy.codegen.entry import Step
from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.buffer_plan import BufferPlan
from xlapy.hlo.cost import arithmetic_cost, known_trips, traffic
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape
from xlapy.report.limits import Limits
from xlapy.report.observation import Observation
from xlapy.report.units import amount, bytes_text, number, time_text
from xlapy.support.paths import seen_from_here

OPERATIONS_PER_FUNCTION = 20
"""A transcendental function by polynomial takes about so many operations."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One instruction of the compiled program that runs as native code or as a call of the runtime.

    Bytes and operations are those of one run. `runs` counts the runs in one call of the program; those of a loop whose
    trips are not written in it count once, and `is_known` is false. `seconds` is what one run takes at best."""

    instruction: Instruction
    steps: tuple[Step, ...]
    runs: float
    is_known: bool
    read: int
    written: int
    flops: float
    transcendentals: float
    seconds: float
    is_bound_by_memory: bool

    @property
    def name(self) -> str:
        return self.instruction.name

    @property
    def place(self) -> tuple[str, str]:
        """The names of its computation and of its instruction."""
        return self.instruction.parent.name, self.instruction.name

    @property
    def operations(self) -> float:
        """Additions and multiplications, functions counted as so many."""
        return self.flops + self.transcendentals * OPERATIONS_PER_FUNCTION

    @property
    def bytes(self) -> int:
        return self.read + self.written

    @property
    def bound(self) -> str:
        """What limits it: nothing that was measured where its data may stay in a cache and nothing is computed."""
        if self.is_bound_by_memory:
            return "memory"
        return "arithmetic" if self.operations else "cache"


KERNEL_HEAD = ("kernel", "op", "runs", "read", "written", "flops", "functions", "at best", "bound by")
"""What a table of kernels says of each."""

KERNEL_NUMERIC = (2, 3, 4, 5, 6, 7)
"""The columns of numbers."""


def kernel_cells(kernel: Kernel) -> tuple[str, ...]:
    """One row of a table of kernels, under `KERNEL_HEAD`."""
    return (
        kernel.name,
        kernel.instruction.opcode,
        number(kernel.runs) + ("" if kernel.is_known else "?"),
        bytes_text(kernel.read),
        bytes_text(kernel.written),
        amount(kernel.flops),
        amount(kernel.transcendentals),
        time_text(kernel.seconds),
        kernel.bound,
    )


def kernels_of(observation: Observation, limits: Limits) -> list[Kernel]:
    """The kernels in the order in which the program comes to them."""
    times = runs_of(observation.module)
    points = observation.timeline.points
    order = sorted(observation.emitted.steps, key=lambda instruction: points.get(instruction, 0))
    return [_kernel(observation, i, *times.get(i, (1.0, False)), limits) for i in order]


def runs_of(module: HloModule) -> dict[Instruction, tuple[float, bool]]:
    """How often each instruction of a program runs in one call, and whether that is known."""
    times: dict[Instruction, tuple[float, bool]] = {}
    _count_runs(module.entry, 1.0, True, times)
    return times


def _count_runs(
    computation: Computation,
    runs: float,
    is_known: bool,
    times: dict[Instruction, tuple[float, bool]],
    around: Instruction | None = None,
) -> None:
    """Enters how often each instruction of a computation runs, the body of the loop `around` it if there is one, and of
    those that it calls as control flow."""
    for instruction in computation:
        times[instruction] = (runs, is_known)
        if instruction.opcode == "while":
            trips = known_trips(instruction, around)
            is_counted = is_known and trips is not None
            condition, body = instruction.called
            _count_runs(condition, runs * (1 if trips is None else trips + 1), is_counted, times)
            _count_runs(body, runs * (1 if trips is None else trips), is_counted, times, instruction)
        elif Trait.CONTROL in instruction.spec.traits:
            for called in instruction.called:
                _count_runs(called, runs, is_known and len(instruction.called) == 1, times)


def _kernel(observation: Observation, instruction: Instruction, runs: float, is_known: bool, limits: Limits) -> Kernel:
    moved = traffic(instruction, in_place=is_in_place(observation.plan, instruction))
    cost = arithmetic_cost(instruction)
    operations = cost.flops + cost.transcendentals * OPERATIONS_PER_FUNCTION
    arithmetic = limits.arithmetic(operations, double=_is_double(instruction))
    memory = limits.memory(moved.read, moved.written)
    return Kernel(
        instruction,
        observation.emitted.steps[instruction],
        runs,
        is_known,
        moved.read,
        moved.written,
        cost.flops,
        cost.transcendentals,
        max(arithmetic, memory),
        memory > arithmetic,
    )


def is_in_place(plan: BufferPlan, instruction: Instruction) -> bool:
    """A result has the memory of an operand."""
    return any(
        location is not None and location in plan.leaves[operand]
        for location in plan.leaves[instruction]
        for operand in instruction.operands
    )


def _is_double(instruction: Instruction) -> bool:
    """Its numbers are 8 bytes wide, each part of complex ones."""
    types = [leaf.type for leaf in instruction.shape.leaves() if leaf.is_array]
    return any(type.bits >= (128 if type.is_complex else 64) for type in types)


def members(instruction: Instruction) -> list[Instruction]:
    """What an instruction computes: those inside of a fusion, but for parameters and constants, or just itself."""
    if instruction.opcode != "fusion":
        return [instruction]
    return [
        member
        for inside in instruction.called[0].post_order()
        if inside.opcode not in ("parameter", "constant", "tuple")
        for member in members(inside)
    ]


def sources(instruction: Instruction) -> Mapping[str, list[str]]:
    """The lines of the user behind an instruction, with the ops that came from each."""
    lines: dict[str, list[str]] = {}
    for member in members(instruction):
        place = place_of(member.metadata)
        if place:
            lines.setdefault(place, []).append(member.opcode)
    return {place: list(dict.fromkeys(opcodes)) for place, opcodes in lines.items()}


def shape_text(shape: Shape) -> str:
    """The shape, with layouts only if one is not row by row."""
    layouts = any(leaf.layout is not None and not leaf.layout.is_row_major for leaf in shape.leaves())
    return shape.to_text(layouts=layouts)


def place_of(metadata: OpMetadata) -> str:
    """The file and line of the user, or else what a front end called the operation; often nothing.

    Files below the working directory go by their name there."""
    return seen_from_here(metadata.location()) or metadata.op_name
