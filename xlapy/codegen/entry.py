"""The entry: scheduled HLO as native functions that call kernels and the runtime.

Handlers by op write what one instruction does in a `Frame`. Everything else is a kernel call, or, for a scalar, code in
registers. Control flow is native: nothing returns to Python between ops. Long sequences are cut into functions of their
own, because LLVM's time grows faster than a function's length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.clock import clock, exact_clock, ticks
from xlapy.codegen.context import (
    CONTEXT_CALL_NUMBER,
    CONTEXT_CANCELLED,
    CONTEXT_INTERRUPTED,
    CONTEXT_OWNER,
    CONTEXT_PARALLEL,
    CONTEXT_POLL,
    CONTEXT_POLLED,
    CONTEXT_PROCESS,
    CONTEXT_RUNTIME_CALL,
    CONTEXT_SEED,
)
from xlapy.codegen.elements import emit_element
from xlapy.codegen.fourier_transforms import fourier_passes, shared_bytes
from xlapy.codegen.frame import Frame, Leaf
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, PTR, Module, Value
from xlapy.codegen.kernel_calls import call_kernel, call_library, call_together, table_of
from xlapy.codegen.kernel_library import KernelLibrary, NativeKernel
from xlapy.codegen.kernels.effort import is_heavy
from xlapy.codegen.kernels.epilogue import EPILOGUE_PARAMETERS
from xlapy.codegen.kernels.linalg import is_large, system_of
from xlapy.codegen.kernels.repack import load_joined
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES, Tasks, joint_tasks
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.gemm import SIZES
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS
from xlapy.codegen.libraries.spread import SPREAD_SIZES
from xlapy.codegen.native_fields import word
from xlapy.codegen.registers import Element, constant_element, from_parts, parts_of
from xlapy.codegen.row_blocks import write_row_blocks
from xlapy.codegen.runtime_sites import RuntimeSites
from xlapy.codegen.scalar_code import ScalarCode, is_scalar_operation
from xlapy.codegen.slice_copies import copy_slice, copy_update, is_block_copy
from xlapy.codegen.target import Target
from xlapy.hlo.buffer_plan import BufferPlan, Home, Location
from xlapy.hlo.evaluate.random import SCRAMBLE, SCRAMBLE_START
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import SCALAR_RENAMING, fused_product, fusion_roots, product_leaf
from xlapy.hlo.leaves import SAME_VALUE, aliased_leaves, is_renaming, leaf_shape, origin_of_leaf
from xlapy.hlo.matrix_products import MatrixProduct, library_product
from xlapy.hlo.ops import Trait
from xlapy.hlo.overwritten import is_overwritten
from xlapy.hlo.row_blocks import RowBlocks, fused_row_blocks
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.shape import Shape
from xlapy.hlo.spread_products import SpreadProduct, spread_product
from xlapy.support.registry import Registry
from xlapy_runtime.calling import Status

SCALARS_PER_CALL = 16  # scalar operations that take LLVM as long as one call with its addresses
FUNCTION_WEIGHT = 128 * SCALARS_PER_CALL  # the most that one function holds
POLL_HUNDREDTHS = 1  # of a second between two looks at Python's signals in a loop
LOOK_HUNDREDTHS = 10  # the same outside of loops
ITERATIONS_PER_CLOCK = 64  # of a loop without calls, between two looks at the clock

READS_REGISTERS = SCALAR_RENAMING | {"bitcast-convert"}
NO_CODE = SAME_VALUE | {"parameter", "tuple", "get-tuple-element", "after-all"}


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


COUNTER_WORDS = 4  # of each instruction in the table of counters: runs, ticks in all, first begin, last end


@dataclass(slots=True)
class EntryEmitter:
    """Writes the functions of one program, or of one region function. Loops go to `loops`; straight-line code, and
    loops with so much to do that their own code does not matter, to `glue`.

    `steps` lists what each instruction calls that is not done in registers. With `counters`, the number of a table
    among the constants, the program keeps the time of each of them there, in the order of `steps`."""

    schedule: Schedule
    plan: BufferPlan
    glue: Module
    loops: Module
    kernels: KernelLibrary
    sites: RuntimeSites
    pointers: dict[Home, dict[int, int]]
    attributes: str
    stored: frozenset[Leaf] = frozenset()
    parts: dict[Computation, list[list[Instruction]]] = field(default_factory=dict)
    function_count: int = 0
    libraries: set[str] = field(default_factory=set)
    prefix: str = ""  # of the names of parts
    runs_once: Computation | None = None  # the entry of the program, not of a region function
    steps: dict[Instruction, tuple[Step, ...]] = field(default_factory=dict)
    counters: int | None = None
    counted: dict[Instruction, int] = field(default_factory=dict)  # in the order of `steps`

    def emit(self, computation: Computation, name: str, *, is_entry: bool = True) -> None:
        """Writes the entry function `name` of the whole program, or a region function."""
        self._split(computation, is_entry=is_entry)
        self.runs_once = computation if is_entry else None
        self.stored = frozenset(self._stored_scalars(computation))
        frame = self._frame(self.glue, name, linkage="")
        self.run(frame, computation)
        self._move_results(frame, computation)
        frame.finish()

    def _frame(self, module: Module, name: str, linkage: str = "") -> Frame:
        return Frame(module, name, self.plan, self.pointers, self.stored, linkage, self.attributes)

    # -- sequences -----------------------------------------------------------------------------------------------

    def _split(self, computation: Computation, *, is_entry: bool) -> None:
        """Cuts a computation (and what it runs) into the parts that become functions; one part stays where it is."""
        parts: list[list[Instruction]] = [[]]
        weight = 0
        for instruction in self.schedule[computation]:
            own = is_entry and instruction.opcode == "while"
            together = self.schedule.together(instruction)
            cost = sum(self._weight(member) for member in together) if instruction is together[0] else 0
            if own or weight + cost > FUNCTION_WEIGHT:
                parts.append([])
                weight = 0
            parts[-1].append(instruction)
            weight = FUNCTION_WEIGHT if own else weight + cost
            for called in instruction.called if Trait.CONTROL in instruction.spec.traits else ():
                self._split(called, is_entry=False)
        self.parts[computation] = [part for part in parts if part]

    def _weight(self, instruction: Instruction) -> int:
        if instruction.opcode in NO_CODE or instruction.opcode == "constant":
            return 0
        if Trait.CONTROL in instruction.spec.traits:
            return sum(self._weight(i) for called in instruction.called for i in self.schedule[called])
        return 1 if instruction.shape.is_scalar else SCALARS_PER_CALL

    def run(self, frame: Frame, computation: Computation) -> None:
        """Writes a computation whose parameters are bound: in `frame`, or as functions that `frame` calls."""
        parts = self.parts[computation]
        if len(parts) == 1:
            self._part(frame, parts[0])
            return
        for part in parts:
            is_tight = part[0].opcode == "while" and not is_heavy(part[0])
            self.function_count += 1
            name = f"{self.prefix}part.{self.function_count}"
            inner = self._frame(self.loops if is_tight or frame.k.module is self.loops else self.glue, name)
            self._part(inner, part)
            inner.finish()
            k = frame.k
            arguments = [k.parameters[table] for table in ("context", "parameters", "results")]
            status = k.call_value(name, arguments, I32)
            frame.fail_if(status)

    def _part(self, frame: Frame, part: Sequence[Instruction]) -> None:
        scalars = ScalarCode(frame, part, self.kernels.target)
        for instruction in part:
            together = self.schedule.together(instruction)
            if len(together) == 1:
                self._instruction(frame, instruction, scalars)
            elif instruction is together[0]:
                _joint_run(self, frame, together)
            scalars.written(instruction)

    def _instruction(self, frame: Frame, instruction: Instruction, scalars: ScalarCode) -> None:
        if instruction.opcode in NO_CODE:
            return
        handler = HANDLERS.get(instruction.opcode)
        if handler is None and Trait.RUNTIME in instruction.spec.traits:
            handler = _runtime_call
        if handler is None and is_scalar_operation(instruction):
            scalars.write(instruction)
            return
        if handler is None and instruction.shape.is_scalar and instruction.opcode in SCALAR_RENAMING:
            handler = _renamed_scalar
        if handler is None and is_renaming(instruction):
            return
        self.write(frame, instruction, handler or _kernel)

    def write(self, frame: Frame, instruction: Instruction, handler: Handler) -> None:
        """What `handler` writes for an instruction, with the counting of its time."""
        is_timed = self.counters is not None and instruction.opcode != "constant"
        began = (
            exact_clock(frame.k, self.kernels.target) if is_timed and not self._reads_registers(instruction) else None
        )
        handler(self, frame, instruction)
        if began is not None and instruction in self.steps:
            ended = exact_clock(frame.k, self.kernels.target)
            self._count(frame, instruction, began, ended, frame.k.sub(ended, began))

    def write_joint(
        self, frame: Frame, together: Mapping[Instruction, tuple[NativeKernel, Sequence[Location]]], tasks: Tasks
    ) -> None:
        """One call for the kernels of several instructions. Each of them took the part of the time that is its part of
        the bytes."""
        k, target = frame.k, self.kernels.target
        for instruction, (kernel, _) in together.items():
            self.steps[instruction] = (Step(kernel.name, kernel.units, kernel.work.piece),)
        calls = [(kernel, _pointers(self, frame, kernel, arrays, None)) for kernel, arrays in together.values()]
        began = None if self.counters is None else exact_clock(k, target)
        call_together(frame, self.kernels, calls, tasks)
        if began is not None:
            ended = exact_clock(k, target)
            total = sum(kernel.work.bytes for kernel, _ in together.values())
            for instruction, (kernel, _) in together.items():
                spent = k.udiv(k.mul(k.sub(ended, began), kernel.work.bytes), total)
                self._count(frame, instruction, began, ended, spent)
        look_at_signals(frame, target)

    def _count(self, frame: Frame, instruction: Instruction, began: Value, ended: Value, time: Value) -> None:
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

    def _stored_scalars(self, entry: Computation) -> set[Leaf]:
        """Scalar leaves that memory must hold: results, what kernels and the runtime read, what crosses functions.

        The caller's memory holds parameters already, and the program's its constants, whatever they are called in
        branches and loops: nothing may write to either."""
        stored: set[Leaf] = set()
        home: dict[Instruction, tuple[int, int]] = {}
        for computation, parts in self.parts.items():
            for number, part in enumerate(parts):
                for instruction in part:
                    if instruction.opcode != "parameter":  # bound by the caller of all parts
                        home[instruction] = (id(computation), number)
        for computation, parts in self.parts.items():
            several = len(parts) > 1
            for instruction in self.schedule[computation]:
                needs_memory = not self._reads_registers(instruction)
                if not needs_memory and not several:
                    continue
                for operand in instruction.operands:
                    for leaf in _scalar_leaves(operand.shape):
                        origin = origin_of_leaf(operand, leaf)
                        if needs_memory or (several and home.get(origin[0]) != home.get(instruction)):
                            stored.add(origin)
            if several:
                stored.update(origin_of_leaf(computation.root, leaf) for leaf in _scalar_leaves(computation.root.shape))
        stored.update(origin_of_leaf(entry.root, leaf) for leaf in _scalar_leaves(entry.root.shape))
        written = (Home.RESULT, Home.ARENA)
        return {
            leaf for leaf in stored if leaf[0] not in entry.parameters and self.plan.location(*leaf).home in written
        }

    def _reads_registers(self, instruction: Instruction) -> bool:
        """The instruction takes its scalar operands from registers, not from memory."""
        if instruction.opcode in NO_CODE or Trait.CONTROL in instruction.spec.traits:
            return True
        is_register = instruction.shape.is_scalar and instruction.opcode in READS_REGISTERS
        return is_register or is_scalar_operation(instruction)

    # -- moving values -------------------------------------------------------------------------------------------

    def move(self, frame: Frame, source: Leaf, target: Leaf, shape: Shape) -> None:
        """Copies an array leaf to another place, unless it is there already."""
        source_location, target_location = self.plan.location(*source), self.plan.location(*target)
        if source_location != target_location and shape.bytes:
            frame.k.memcpy(frame.pointer(target_location), frame.pointer(source_location), shape.bytes)

    def _move_results(self, frame: Frame, computation: Computation) -> None:
        """Puts what is not in the caller's memory yet there."""
        number = 0
        for leaf, shape in enumerate(computation.root.shape.leaves()):
            if not shape.is_array:
                continue
            location = self.plan.location(computation.root, leaf)
            if location.home is not Home.RESULT or location.index != number:
                target = frame.k.load(
                    frame.k.gep(frame.k.parameters["results"], self.pointers[Home.RESULT][number], 8), PTR
                )
                if shape.bytes:
                    frame.k.memcpy(target, frame.pointer(location), shape.bytes)
            number += 1


def _scalar_leaves(shape: Shape) -> list[int]:
    return [number for number, leaf in enumerate(shape.leaves()) if leaf.is_scalar]


Handler = Callable[[EntryEmitter, Frame, Instruction], None]
HANDLERS: Registry[Handler] = Registry("entry code")


# -- straight-line code ------------------------------------------------------------------------------------------------


def _renamed_scalar(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    if not is_renaming(instruction):
        frame.bind(instruction, 0, frame.scalar(instruction.operands[0]))


@HANDLERS.register("bitcast-convert")
def _bits(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """Mostly another name for memory; but a scalar is a register of its own type."""
    operand = instruction.operands[0]
    if is_renaming(instruction):
        return
    if not instruction.shape.is_scalar:
        _kernel(emitter, frame, instruction)
    elif operand.shape.is_scalar:
        frame.bind(instruction, 0, emit_element(frame.k, instruction, [frame.scalar(operand)]))
    elif operand.shape.type.bits < 8:
        joined = load_joined(frame.k, frame.array(operand), operand.shape, instruction.shape.type)
        frame.bind(instruction, 0, joined)
    else:
        parts = Array(frame.array(operand), instruction.shape, read_only=False)
        frame.bind(instruction, 0, parts.load(Indexing(frame.k, 1), Index((), ())))


@HANDLERS.register("constant")
def _constant(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    literal = instruction.attributes["literal"]
    if instruction.shape.is_scalar:
        frame.bind(instruction, 0, constant_element(frame.k, literal.shape.type, literal.scalar()))


@HANDLERS.register("dot", "convolution")
def _product(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """Calls of the matrix product library; what it is not for has a kernel like any other op."""
    spread = spread_product(instruction)
    if spread is not None:
        _spread_call(emitter, frame, instruction, spread)
        return
    call = library_product(instruction)
    if call is None:
        _kernel(emitter, frame, instruction)
        return
    arrays = [frame.array(operand) for operand in instruction.operands]
    _product_call(emitter, frame, instruction, call, [*arrays, frame.array(instruction)])


@HANDLERS.register("fusion")
def _fusion(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """A matrix product takes what is behind it along, or is one of several kernels; any other fusion is one kernel."""
    blocks = fused_row_blocks(instruction.called[0])
    if blocks is not None:
        _row_blocks(emitter, frame, instruction, blocks)
        return
    product = fused_product(instruction)
    call = library_product(product) if product is not None else None
    if product is None or call is None:
        _kernel(emitter, frame, instruction)
        return
    k = frame.k
    operands = [frame.array(operand) for operand in instruction.operands]
    results = [frame.array(instruction, leaf) for leaf in range(len(fusion_roots(instruction.called[0])))]
    pointers = table_of(k, [*operands, *results])
    runs_once = instruction.parent is emitter.runs_once
    epilogue, work = emitter.kernels.epilogue(instruction, runs_once=runs_once)
    k.module.declare(epilogue, None, [type for _, type in EPILOGUE_PARAMETERS])
    leaf = product_leaf(instruction.called[0], product)
    assert leaf is not None
    arrays = [operands[operand.attributes["number"]] for operand in product.operands]
    call = replace(call, sizes={**call.sizes, "epilogue_work": work})
    behind = k.function_pointer(epilogue), pointers
    _product_call(emitter, frame, instruction, call, [*arrays, results[leaf]], *behind)
    emitter.steps[instruction] += (Step(epilogue),)


def _row_blocks(emitter: EntryEmitter, frame: Frame, instruction: Instruction, blocks: RowBlocks) -> None:
    """Calls a function that runs several kernels for a range of blocks of rows, through the pool."""
    k = frame.k
    runs_once = instruction.parent is emitter.runs_once
    function, libraries = write_row_blocks(emitter.kernels, instruction, blocks, runs_once=runs_once)
    emitter.libraries |= libraries
    emitter.steps[instruction] = (Step(function, blocks.units, blocks.grain),)
    parallel = frame.context_word(CONTEXT_PARALLEL)
    arrays = [frame.array(value) for value in (*instruction.operands, instruction)]
    k.module.declare(function, None, [PTR, I64, I64])
    sizes = [k.const(I64, size) for size in (blocks.units, blocks.grain)]
    k.call(parallel, [k.function_pointer(function), table_of(k, [*arrays, parallel]), *sizes])
    look_at_signals(frame, emitter.kernels.target)


def _product_call(
    emitter: EntryEmitter,
    frame: Frame,
    instruction: Instruction,
    call: MatrixProduct,
    arrays: Sequence[Value],
    epilogue: Value | None = None,
    epilogue_arguments: Value | None = None,
) -> None:
    """Multiplies the first two arrays into the third one."""
    k = frame.k
    library = f"gemm_{call.kind}"
    emitter.libraries.add(library)
    function = f"{library}_{'run' if call.windows is None else 'windows'}"
    emitter.steps[instruction] = (Step(function),)
    nothing = k.const(PTR, 0)
    sizes = k.table(I64, [call.sizes.get(name, 0) for name in SIZES])
    numbers = [sizes, epilogue or nothing, epilogue_arguments or nothing]
    if call.windows is not None:
        numbers.append(k.table(I64, [call.windows.get(name, 0) for name in WINDOW_NUMBERS]))
    parallel = frame.context_word(CONTEXT_PARALLEL)
    with ExitStack() as loops:
        for repetition in call.repetitions:
            index = loops.enter_context(k.loop(0, repetition.count)).index
            arrays = [k.gep(array, index, step) for array, step in zip(arrays, repetition.strides, strict=True)]
        k.call(function, [parallel, *arrays, *numbers])
    look_at_signals(frame, emitter.kernels.target)


def _spread_call(emitter: EntryEmitter, frame: Frame, instruction: Instruction, call: SpreadProduct) -> None:
    """A convolution whose products are spread over the result."""
    k, library = frame.k, f"spread_{call.kind}"
    emitter.libraries.add(library)
    function = f"{library}_run"
    emitter.steps[instruction] = (Step(function),)
    arrays = [frame.array(value) for value in (*instruction.operands, instruction)]
    sizes = k.table(I64, [call.sizes[name] for name in SPREAD_SIZES])
    k.call(function, [frame.context_word(CONTEXT_PARALLEL), *arrays, sizes])
    look_at_signals(frame, emitter.kernels.target)


@HANDLERS.register("cholesky")
def _cholesky(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """Large matrices are factored in place by the library, upper factors as those of the transposed matrix."""
    if not is_large(instruction):
        _kernel(emitter, frame, instruction)
        return
    shape = instruction.shape
    rows = shape.dims[-1]
    pitches = (rows, 1) if instruction.attributes["lower"] else (1, rows)
    emitter.move(frame, (instruction.operands[0], 0), (instruction, 0), shape)
    sizes = (shape.size // rows**2, rows, rows**2, *pitches)
    arrays = [frame.array(instruction)]
    _linalg_call(emitter, frame, instruction, f"linalg_{shape.type.name}", "factor", arrays, sizes)


@HANDLERS.register("triangular-solve")
def _triangular_solve(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    if not is_large(instruction):
        _kernel(emitter, frame, instruction)
        return
    a, shape = instruction.operands[0], instruction.shape
    rows = a.shape.dims[-1]
    batches = a.shape.size // rows**2
    each = shape.size // batches
    system = system_of(instruction)
    emitter.move(frame, (instruction.operands[1], 0), (instruction, 0), shape)
    sizes = (
        *(batches, rows, each // rows),
        *(rows**2, system.a_row, system.a_column, each, system.x_row, system.x_column),
        *(system.is_upper, system.unit_diagonal, system.conjugates),
    )
    arrays = [frame.array(a), frame.array(instruction)]
    _linalg_call(emitter, frame, instruction, f"linalg_{shape.type.name}", "solve", arrays, sizes)


def _linalg_call(
    emitter: EntryEmitter,
    frame: Frame,
    instruction: Instruction,
    library: str,
    function: str,
    arrays: Sequence[Value],
    sizes: Sequence[int],
) -> None:
    emitter.libraries.add(library)
    emitter.steps[instruction] = (Step(f"{library}_{function}"),)
    table = frame.k.table(I64, [int(size) for size in sizes])
    frame.k.call(f"{library}_{function}", [frame.context_word(CONTEXT_PARALLEL), *arrays, table])
    look_at_signals(frame, emitter.kernels.target)


@HANDLERS.register("fft")
def _fft(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """A call of the library for each pass. What passes share is in front of the memory that they work in."""
    k, target = frame.k, emitter.kernels.target
    passes = fourier_passes(instruction, target)
    emitter.libraries.update(f"fft_{each.kind}" for each in passes)
    emitter.steps[instruction] = tuple(Step(f"fft_{each.kind}_run", each.units, each.grain) for each in passes)
    arrays = {"operand": frame.array(instruction.operands[0]), "result": frame.array(instruction)}
    for each in passes:
        shared = frame.pointer(emitter.plan.scratch[instruction].location)
        arrays["shared"] = shared
        memory = k.gep(shared, shared_bytes(instruction))
        constants = emitter.kernels.tables_for(each, each.composed)
        tables = [frame.pointer(Location(Home.CONSTANT, number)) for number in constants]
        sides = [arrays[side.array] for side in (each.operand, each.result)]
        k.call(f"fft_{each.kind}_run", [frame.context_word(CONTEXT_PARALLEL), *sides, memory, *tables])
        if each.takes_long:
            look_at_signals(frame, target)


@HANDLERS.register("replica-id")
def _replica_id(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    ids = word(k, k.parameters["context"], CONTEXT_PROCESS)
    frame.bind(instruction, 0, k.trunc(ids, I32))


@HANDLERS.register("partition-id")
def _partition_id(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    ids = word(k, k.parameters["context"], CONTEXT_PROCESS)
    frame.bind(instruction, 0, k.trunc(k.lshr(ids, 32), I32))


@HANDLERS.register("rng-get-and-update-state")
def _random_state(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """Key and counter of `random.program_state`. The word of the call number counts draws in its upper half."""
    k = frame.k
    key = k.add(word(k, k.parameters["context"], CONTEXT_SEED), SCRAMBLE_START)
    for multiplier in SCRAMBLE:
        key = k.mul(k.xor(key, k.lshr(key, 33)), multiplier)
    counter_field = k.gep(k.parameters["context"], CONTEXT_CALL_NUMBER, 8)
    counter = k.load(counter_field, I64)
    k.store(counter_field, k.add(counter, 1 << 32))
    state = frame.array(instruction)
    k.store(state, k.xor(key, k.lshr(key, 33)))
    k.store(k.gep(state, 1, 8), counter)


def _kernel(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """Calls the instruction's kernel over all its units, through the pool if there is enough to do; or does without."""
    shortcut = SHORTCUTS.get(instruction.opcode)
    if shortcut is not None and shortcut(emitter, frame, instruction):
        return
    kernel, arrays = _kernel_of(emitter, instruction)
    emitter.steps[instruction] = (Step(kernel.name, kernel.units, kernel.grain),)
    for number, leaf in kernel.overwrites:
        operand = instruction.operands[number]
        emitter.move(frame, (operand, 0), (instruction, leaf), operand.shape)
    if not kernel.units:
        return
    scratch = emitter.plan.scratch[instruction].location if kernel.has_scratch else None
    pointers = _pointers(emitter, frame, kernel, arrays, scratch)
    if kernel.has_context and not emitter.prefix:
        with _owned(frame):
            call_kernel(frame, kernel, pointers)
    else:
        call_kernel(frame, kernel, pointers)
    if kernel.finish:
        frame.k.call(kernel.finish, pointers if kernel.call is None else _from_table(pointers))
    if kernel.finish_call is not None:
        call_library(frame, kernel.finish_call, [_numbers(emitter, frame, kernel.finish_call), *pointers[1:]])
    if kernel.grain < kernel.units:
        look_at_signals(frame, emitter.kernels.target)
    elif kernel.has_context:
        frame.stop_if_cancelled()


Shortcut = Callable[[EntryEmitter, Frame, Instruction], bool]
"""Writes what an instruction does without a kernel, if it can; whether it did."""

SHORTCUTS: Registry[Shortcut] = Registry("code without a kernel")


@SHORTCUTS.register("broadcast")
def _unread(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> bool:
    return is_overwritten(instruction)


@SHORTCUTS.register("dynamic-slice")
def _slice(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> bool:
    if not is_block_copy(instruction):
        return False
    emitter.steps[instruction] = (Step("memcpy"),)
    copy_slice(frame, instruction)
    return True


@SHORTCUTS.register("dynamic-update-slice")
def _update_slice(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> bool:
    if not is_block_copy(instruction):
        return False
    emitter.steps[instruction] = (Step("memcpy"),)
    emitter.move(frame, (instruction.operands[0], 0), (instruction, 0), instruction.shape)
    copy_update(frame, instruction)
    return True


def _kernel_of(emitter: EntryEmitter, instruction: Instruction) -> tuple[NativeKernel, list[Location]]:
    """The kernel of an instruction, and where its operands and results are."""
    results = [
        emitter.plan.location(instruction, leaf)
        for leaf, shape in enumerate(instruction.shape.leaves())
        if shape.is_array
    ]
    operands = [emitter.plan.location(operand) for operand in instruction.operands]
    overwritten = tuple(number for number, location in enumerate(operands) if location in results)
    runs_once = instruction.parent is emitter.runs_once
    return emitter.kernels.kernel(instruction, overwritten, runs_once=runs_once), [*operands, *results]


def _joint_run(emitter: EntryEmitter, frame: Frame, instructions: Sequence[Instruction]) -> None:
    """Calls several kernels that do not need each other: together, through the pool, those that may be and that have
    enough to do for that; the others one by one."""
    together = {i: found for i in instructions if (found := _kernel_of(emitter, i))[0].may_share_a_run}
    works = [kernel.work for kernel, _ in together.values()]
    tasks = joint_tasks(works)
    is_split = len(tasks) > 1 and sum(work.bytes for work in works) >= PARALLEL_BYTES
    for instruction in instructions:
        if instruction not in together or not is_split:
            emitter.write(frame, instruction, _kernel)
    if is_split:
        emitter.write_joint(frame, together, tasks)


def _pointers(
    emitter: EntryEmitter,
    frame: Frame,
    kernel: NativeKernel,
    arrays: Sequence[Location],
    scratch: Location | None,
) -> list[Value]:
    """The arguments of a kernel, or the table of a function of a library, but for the range."""
    k = frame.k
    places = [frame.pointer(location) for location in arrays]
    memory = [] if scratch is None else [frame.pointer(scratch)]
    context = [k.parameters["context"]] if kernel.has_context else []
    if kernel.call is not None:
        null = [k.const(PTR, 0)]
        return [_numbers(emitter, frame, kernel.call), *(context or null), *(memory or null), *places]
    return [*places, *memory, *context]


def _from_table(pointers: Sequence[Value]) -> list[Value]:
    """The arguments of a kernel of the program, from those of a function of a library that does the first part."""
    _, _, memory, *places = pointers
    return [*places, memory]


def _numbers(emitter: EntryEmitter, frame: Frame, call: LibraryCall) -> Value:
    """What a function of a library is told, which the program is linked with."""
    emitter.libraries.add(call.library)
    return frame.k.table(I64, call.numbers)


@contextmanager
def _owned(frame: Frame) -> Iterator[None]:
    """Around a kernel: writes down which thread runs the program. If it is Python's main thread, others stop too if a
    signal handler raises there while they work for it. Afterwards nobody does, and the context may change hands."""
    k = frame.k
    owner = k.gep(k.parameters["context"], CONTEXT_OWNER, 8)
    k.store(owner, k.call_value("pthread_self", [], I64))
    yield
    k.store(owner, k.const(I64, 0))


def _runtime_call(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    """Asks the runtime: operand and result addresses in one table, a status back."""
    k = frame.k
    emitter.steps[instruction] = (Step(instruction.opcode),)
    site = emitter.sites.site(instruction)
    leaves = emitter.sites.buffers(instruction)
    if instruction.opcode == "custom-call":
        leaves = _aliased(emitter, frame, instruction, leaves)
    table = k.alloca(PTR, max(1, len(leaves)))
    for number, (owner, leaf) in enumerate(leaves):
        k.store(k.gep(table, number, 8), frame.array(owner, leaf))
    arguments = [k.parameters["context"], k.const(I32, site), table]
    status = k.call_value(frame.context_word(CONTEXT_RUNTIME_CALL), arguments, I32)
    frame.fail_if(status)


def _aliased(emitter: EntryEmitter, frame: Frame, instruction: Instruction, leaves: Sequence[Leaf]) -> list[Leaf]:
    """Puts operands that the target changes in place where their results will be; they are passed as those."""
    places = [
        (number, leaf)
        for number, operand in enumerate(instruction.operands)
        for leaf, shape in enumerate(operand.shape.leaves())
        if shape.is_array
    ]
    passed = list(leaves)
    for number, leaf, result_leaf in aliased_leaves(instruction):
        target = (instruction, result_leaf)
        emitter.move(frame, (instruction.operands[number], leaf), target, leaf_shape(instruction.shape, result_leaf))
        passed[places.index((number, leaf))] = target
    return passed


# -- control flow ------------------------------------------------------------------------------------------------------


def _bind_parameter(frame: Frame, parameter: Instruction, value: Instruction, value_leaf: int = 0) -> None:
    """The scalar leaves of `parameter` are those of `value`, from `value_leaf` on."""
    for leaf in _scalar_leaves(parameter.shape):
        frame.bind(parameter, leaf, frame.scalar(value, value_leaf + leaf))


@HANDLERS.register("call")
def _call(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    computation = instruction.called[0]
    for parameter, operand in zip(computation.parameters, instruction.operands, strict=True):
        _bind_parameter(frame, parameter, operand)
    emitter.run(frame, computation)
    for leaf in _scalar_leaves(instruction.shape):
        frame.bind(instruction, leaf, frame.scalar(computation.root, leaf))


@HANDLERS.register("conditional")
def _conditional(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    scalars = _scalar_leaves(instruction.shape)

    def arm(number: int) -> Callable[[], list[Value]]:
        def write() -> list[Value]:
            branch, operand = instruction.called[number], instruction.operands[1 + number]
            with frame.scope():
                _bind_parameter(frame, branch.parameters[0], operand)
                emitter.run(frame, branch)
                loaded = [part for leaf in scalars for part in parts_of(frame.scalar(branch.root, leaf))]
                for leaf, shape in enumerate(instruction.shape.leaves()):
                    if shape.is_array and shape.rank:
                        emitter.move(frame, (branch.root, leaf), (instruction, leaf), shape)
                return loaded

        return write

    selector = frame.scalar(instruction.operands[0])
    assert isinstance(selector, Value)
    last = len(instruction.called) - 1
    if selector.type == I1:
        merged = k.if_else(selector, arm(0), arm(1))
    else:
        merged = k.switch(selector, {number: arm(number) for number in range(last)}, arm(last))
    for leaf, element in zip(
        scalars, _regroup(merged, [leaf_shape(instruction.shape, n) for n in scalars]), strict=True
    ):
        frame.bind(instruction, leaf, element)


@HANDLERS.register("while")
def _while(emitter: EntryEmitter, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    condition, body = instruction.called
    init = instruction.operands[0]
    shapes = list(instruction.shape.leaves())
    scalars = _scalar_leaves(instruction.shape)
    scalar_shapes = [shapes[leaf] for leaf in scalars]
    initial = [part for leaf in scalars for part in parts_of(frame.scalar(init, leaf))]
    for leaf, shape in enumerate(shapes):
        if shape.is_array and shape.rank:
            emitter.move(frame, (init, leaf), (instruction, leaf), shape)
    watch = _Watch(frame, ticks(emitter.kernels.target, POLL_HUNDREDTHS), has_calls=_has_calls(emitter, body))

    def bind(parameter: Instruction, values: Sequence[Value]) -> None:
        for leaf, element in zip(scalars, _regroup(values, scalar_shapes), strict=True):
            frame.bind(parameter, leaf, element)

    def test(values: list[Value]) -> Value:
        with frame.scope():
            bind(condition.parameters[0], values[watch.width :])
            emitter.run(frame, condition)
            result = frame.scalar(condition.root)
            assert isinstance(result, Value)
            return result

    def step(values: list[Value]) -> list[Value]:
        with frame.scope():
            watched = watch.step(values[: watch.width])
            bind(body.parameters[0], values[watch.width :])
            emitter.run(frame, body)
            loaded = [part for leaf in scalars for part in parts_of(frame.scalar(body.root, leaf))]
            for leaf, shape in enumerate(shapes):
                if shape.is_array and shape.rank:
                    emitter.move(frame, (body.root, leaf), (instruction, leaf), shape)
            return watched + loaded

    final = k.while_loop(test, step, [*watch.initial(), *initial])
    bind(instruction, final[watch.width :])


def _regroup(values: Sequence[Value], shapes: Sequence[Shape]) -> list[Element]:
    """The elements that a flat list of parts makes up."""
    elements = []
    position = 0
    for shape in shapes:
        width = 2 if shape.type.is_complex else 1
        elements.append(from_parts(list(values[position : position + width])))
        position += width
    return elements


def _has_calls(emitter: EntryEmitter, body: Computation) -> bool:
    """Iterations take long enough to look at the clock each time."""
    return any(
        not instruction.shape.is_scalar and instruction.opcode not in NO_CODE and not is_renaming(instruction)
        for instruction in emitter.schedule[body]
    )


def look_at_signals(frame: Frame, target: Target) -> None:
    """Behind what may take long: stops a run that was cancelled, and lets Python look at its signals now and then.

    A kernel that a signal has cut short must not go unnoticed: that is what the interrupted word is for.
    """
    k = frame.k
    place = k.gep(k.parameters["context"], CONTEXT_POLLED, 8)
    now = clock(k)
    late = k.compare("gt", k.sub(now, k.load(place, I64)), ticks(target, LOOK_HUNDREDTHS), signed=False)
    interrupted = k.compare("ne", k.load(frame.context_word(CONTEXT_INTERRUPTED), I32, volatile=True), 0)
    with k.if_(k.or_(late, interrupted)):
        k.store(place, now)
        _poll(frame)
    frame.stop_if_cancelled()


def _poll(frame: Frame) -> None:
    k = frame.k
    status = k.call_value(frame.context_word(CONTEXT_POLL), [k.parameters["context"]], I32)
    with k.if_(k.compare("ne", status, 0)):
        k.store(frame.context_word(CONTEXT_CANCELLED), k.const(I32, 1))  # for other threads to see
        k.ret(k.const(I32, Status.CANCELLED))


class _Watch:
    """Lets a loop be stopped: looks at the cancelled flag, and now and then lets Python look at its signals."""

    width = 2  # carried: iterations so far, the clock at the last poll

    def __init__(self, frame: Frame, ticks: int, *, has_calls: bool) -> None:
        self.frame = frame
        self.ticks = ticks
        self.every = 1 if has_calls else ITERATIONS_PER_CLOCK

    def initial(self) -> list[Value]:
        return [self.frame.k.const(I64, 0), clock(self.frame.k)]

    def step(self, values: Sequence[Value]) -> list[Value]:
        k, frame = self.frame.k, self.frame
        count, last = values

        def look() -> list[Value]:
            frame.stop_if_cancelled()
            now = clock(k)
            late = k.compare("gt", k.sub(now, last), self.ticks, signed=False)
            with k.if_(late):
                _poll(frame)
            return [k.select(late, now, last)]

        following = k.add(count, 1)
        if self.every == 1:
            return [following, *look()]
        due = k.compare("eq", k.and_(following, self.every - 1), 0)
        return [following, *k.if_else(due, look, lambda: [last])]
