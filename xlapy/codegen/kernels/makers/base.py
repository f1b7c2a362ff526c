"""What a kernel is, who makes kernels, and what these may know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.tasks import LEAST_LONG_TASKS, MOST_TASKS_WITH_SCRATCH, units_per_task
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.fold import FoldCall
from xlapy.codegen.target import Target
from xlapy.hlo.buffer_plan import FunctionPlans
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS
from xlapy.support.registry import Registry
from xlapy_runtime.records import Record, field

SCRATCH_ALIGNMENT = 64

Body = Callable[[KernelBuilder, Sequence[Array], Sequence[Array], Value, Value], None]
Finish = Callable[[KernelBuilder, Sequence[Array], Sequence[Array]], None]


class Kernel(Record):
    """How one instruction runs: `body(k, operands, results, begin, end)` writes the code for a range of units, unless
    a library has it."""

    units: int
    bytes_per_unit: int
    body: Body | LibraryCall
    overwrites: tuple[tuple[int, int], ...] = ()  # (operand, leaf): the operand must be in the leaf's memory before
    shared_bytes: int = 0  # memory of all tasks: `k.parameters["shared"]`
    clears_shared: bool = False  # that is zeros before the first task
    functions: tuple[Computation, ...] = ()  # regions that it calls as functions
    own_bytes: int = 0  # memory of its own for each task, in which these work, or which it uses itself
    listens: bool = False  # it may take long, and looks whether the run was stopped
    is_quick: bool = False  # it has so little to do that LLVM should not spend time on it
    calls_functions: bool = False  # long functions of its elements are called
    finish: Finish | LibraryCall | None = None  # what is left to do, by one thread, when all units are done
    is_small: bool = False  # it has so little to do, once in a call, that LLVM should not try hard
    is_plain: bool = False  # LLVM would try hard for nothing
    least_units: int = 1  # that a task must have
    has_long_tasks: bool = False  # each unit fetches what the next one reads, and nobody what the first one does
    brief: Callable[[], Kernel | None] | None = None  # one with less code, for where it hardly matters how fast it is

    @property
    def is_light(self) -> bool:
        """LLVM selects instructions and registers, and looks for nothing better."""
        return self.is_small or self.is_plain

    @property
    def is_for_once(self) -> bool:
        """Not good enough for a loop of the program."""
        return self.is_quick or (self.is_small and not self.is_plain)

    @property
    def grain(self) -> int:
        """Units per task: all of them if the kernel is too small to split. Fixed, whatever the threads."""
        grain = units_per_task(self.units, self.bytes_per_unit, self.least_units, is_long=self.has_long_tasks)
        return max(grain, -(-self.units // MOST_TASKS_WITH_SCRATCH)) if self.task_bytes else grain

    @property
    def task_bytes(self) -> int:
        """Memory of its own for each task, behind what they share."""
        return aligned(self.own_bytes)

    @property
    def tasks(self) -> int:
        return -(-self.units // self.grain)


class Situation(Record):
    """What a kernel may know besides the instruction: the target, whether a result overwrites an operand, what
    memory region functions need, whether it runs once per call of the program, or perhaps in a loop, of how many rows
    at a time if not of all that it has, how many bytes its results and others are that nobody reads before the call
    ends (0 if somebody reads its own), and how much work all is that runs once (counted when somebody asks)."""

    target: Target
    in_place: bool
    functions: FunctionPlans = field(default_factory=dict)
    runs_once: bool = False
    part: int = 0
    leaving_bytes: int = 0
    whole_work: Callable[[], float] = lambda: 0


def kernel_of_call(call: LibraryCall, units: int, operands: Sequence[Instruction], root: Instruction) -> Kernel:
    """A kernel that a library has, which reads all operands and writes the result once."""
    total = root.shape.bytes + sum(operand.shape.bytes for operand in operands)
    return Kernel(units, total // units, call)


def kernel_of_fold(fold: FoldCall, operands: Sequence[Instruction], root: Instruction) -> Kernel:
    """The same of a fold. Tasks have units to fold side by side, and long pieces of memory for each, if there are tasks
    enough for many cores then."""
    kernel = kernel_of_call(fold.call, fold.units, operands, root)
    if fold.together == 1:
        return kernel
    has_enough = fold.units >= fold.together * LEAST_LONG_TASKS
    return replace(kernel, has_long_tasks=True, least_units=fold.together if has_enough else 1)


KernelMaker = Callable[[Instruction, Situation], Kernel]
KERNELS: Registry[KernelMaker] = Registry("native kernels", OPS)


def aligned(size: int) -> int:
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
