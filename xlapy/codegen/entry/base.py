"""What handlers of instructions share: what is known while the functions of a program are written, and the registry."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field

from xlapy.codegen.clock import exact_clock
from xlapy.codegen.entry.signals import look_at_signals
from xlapy.codegen.frame import Frame, Leaf
from xlapy.codegen.ir import I64, Value
from xlapy.codegen.kernel_calls import share_library
from xlapy.codegen.kernel_library import KernelLibrary
from xlapy.codegen.libraries.copies import call_of_copy, units_of_copy
from xlapy.codegen.runtime_sites import RuntimeSites
from xlapy.codegen.scalar_code import is_scalar_operation
from xlapy.hlo.buffer_plan import BufferPlan, Home, Location
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import SCALAR_RENAMING
from xlapy.hlo.leaves import SAME_VALUE
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.shape import Shape
from xlapy.support.registry import Registry

READS_REGISTERS = SCALAR_RENAMING | {"bitcast-convert"}
NO_CODE = SAME_VALUE | {"parameter", "tuple", "get-tuple-element", "after-all"}

COUNTER_WORDS = 4  # of each instruction in the table of counters: runs, ticks in all, first begin, last end


@dataclass(frozen=True, slots=True)
class Step:
    """One function that the program calls for an instruction: `units` of work, in tasks of `grain` if split."""

    function: str
    units: int = 1
    grain: int = 1

    @property
    def is_split(self) -> bool:
        """The thread pool shares it out."""
        return self.grain < self.units


@dataclass(slots=True, kw_only=True)
class Entry(abc.ABC):
    """The entry while it is written: what handlers know, and note down, such as the numbers of constants that it reads.

    `steps` lists what each instruction calls that is not done in registers. With `counters`, the number of a table
    among the constants, the program keeps the time of each of them there, in the order of `steps`."""

    schedule: Schedule
    plan: BufferPlan
    kernels: KernelLibrary
    sites: RuntimeSites
    libraries: set[str] = field(default_factory=set)
    read_constants: set[int] = field(default_factory=set)
    prefix: str = ""  # of the names of parts
    runs_once: Computation | None = None  # the entry of the program, not of a region function
    steps: dict[Instruction, tuple[Step, ...]] = field(default_factory=dict)
    counters: int | None = None
    counted: dict[Instruction, int] = field(default_factory=dict)  # in the order of `steps`

    @abc.abstractmethod
    def run(self, frame: Frame, computation: Computation) -> None:
        """Writes a computation whose parameters are bound: in `frame`, or as functions that `frame` calls."""

    def write(self, frame: Frame, instruction: Instruction, handler: Handler) -> None:
        """What `handler` writes for an instruction, with the counting of its time."""
        is_timed = self.counters is not None and instruction.opcode != "constant"
        began = exact_clock(frame.k, self.kernels.target) if is_timed and not reads_registers(instruction) else None
        handler(self, frame, instruction)
        if began is not None and instruction in self.steps:
            ended = exact_clock(frame.k, self.kernels.target)
            self.count(frame, instruction, began, ended, frame.k.sub(ended, began))

    def count(self, frame: Frame, instruction: Instruction, began: Value, ended: Value, time: Value) -> None:
        """Adds `time` to the counters of an instruction that ran between `began` and `ended`."""
        assert self.counters is not None
        k = frame.k
        number = self.counted.setdefault(instruction, len(self.counted))
        place = k.gep(frame.pointer(Location(Home.CONSTANT, self.counters)), number * COUNTER_WORDS, I64.bytes)
        words = [k.gep(place, offset, I64.bytes) for offset in range(COUNTER_WORDS)]
        runs, spent, first, _ = (k.load(counter, I64) for counter in words)
        is_first = k.compare("eq", runs, 0)
        updated = (k.add(runs, 1), k.add(spent, time), k.select(is_first, began, first), ended)
        for counter, value in zip(words, updated, strict=True):
            k.store(counter, value)

    def move(self, frame: Frame, source: Leaf, target: Leaf, shape: Shape) -> None:
        """Copies an array leaf to another place, unless it is there already."""
        source_location, target_location = self.plan.location(*source), self.plan.location(*target)
        if source_location != target_location and shape.bytes:
            self.copy(frame, frame.pointer(source_location), frame.pointer(target_location), shape.bytes)

    def copy(self, frame: Frame, source: Value, target: Value, size: int) -> None:
        """Copies so many bytes, of which there are some; large arrays by all threads."""
        call = call_of_copy(size, self.kernels.target)
        if call is None:
            frame.k.memcpy(target, source, size)
            return
        self.libraries.add(call.library)
        share_library(frame, call, [source, target], units_of_copy(size))
        look_at_signals(frame)


Handler = Callable[[Entry, Frame, Instruction], None]
HANDLERS: Registry[Handler] = Registry("entry code")


def reads_registers(instruction: Instruction) -> bool:
    """The instruction takes its scalar operands from registers, not from memory."""
    if instruction.opcode in NO_CODE or Trait.CONTROL in instruction.spec.traits:
        return True
    is_register = instruction.shape.is_scalar and instruction.opcode in READS_REGISTERS
    return is_register or is_scalar_operation(instruction)


def scalar_leaves(shape: Shape) -> list[int]:
    return [number for number, leaf in enumerate(shape.leaves()) if leaf.is_scalar]
