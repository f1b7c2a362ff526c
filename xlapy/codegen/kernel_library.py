"""The kernels of one program. Instructions that need the same code share one kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.kernels.effort import work_in
from xlapy.codegen.kernels.epilogue import EPILOGUE_PARAMETERS, emit_epilogue, plan_epilogue
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP, streamed_bytes
from xlapy.codegen.kernels.makers import SCRATCH_ALIGNMENT, Kernel, Situation, aligned
from xlapy.codegen.kernels.registry import kernel_for
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.kernels.tasks import Work
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.packed_constants import PackedConstant
from xlapy.codegen.region_functions import RegionFunctions
from xlapy.codegen.regions import emit_region, region_context
from xlapy.codegen.registers import from_parts, parts_of, register_type, splat
from xlapy.codegen.stopping import define_look
from xlapy.codegen.target import Target
from xlapy.hlo.contents import content
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_inlinable, region_functions
from xlapy.hlo.leaves import bytes_leaving_with
from xlapy.hlo.shape import Shape
from xlapy_runtime.calling import Status
from xlapy_runtime.records import Record

Table = np.ndarray[Any, Any] | PackedConstant
"""A constant that code reads, or what it is made of."""


class NativeKernel(Record):
    """A kernel by its symbols. `range_name` takes its pointers from a table, as the pool calls it; it exists only if
    the kernel is worth splitting, into tasks of `grain` units, or is a function of a library."""

    name: str
    range_name: str
    units: int
    grain: int
    bytes_per_unit: int = 0
    overwrites: tuple[tuple[int, int], ...] = ()
    has_scratch: bool = False
    has_context: bool = False  # it ends early when the flag in the context is set
    call: LibraryCall | None = None  # it is a function of a library, by both names
    finish: str = ""  # what one thread calls afterwards, with the same pointers, if anything
    finish_call: LibraryCall | None = (
        None  # the same, of a library: with one table of the same pointers but the numbers
    )
    least_units: int = 1  # that a task must have
    cleared_bytes: int = 0  # of its scratch memory, before it is called

    @property
    def may_share_a_run(self) -> bool:
        """Parts of it may run beside parts of other kernels: it takes arrays and a range, and nothing else."""
        return self.units > 0 and not (
            self.overwrites or self.has_scratch or self.has_context or self.finish or self.finish_call
        )

    @property
    def work(self) -> Work:
        return Work(self.units, self.bytes_per_unit, self.grain, self.least_units)


@dataclass(slots=True)
class KernelLibrary:
    """Writes kernels into `module` as they are asked for, and those that hardly matter into `quick_module`."""

    module: Module
    quick_module: Module  # compiled without optimization
    target: Target
    functions: RegionFunctions
    constants: int  # of the program, without tables of kernels
    whole: Computation  # what runs once
    known: dict[Hashable, NativeKernel] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    """Constants that code reads; the program has them behind those of its module."""

    shared_tables: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    names: int = 0
    written: int = 0
    """Kernels that are different. Some with different names turn out to be the same code."""

    def kernel(
        self, instruction: Instruction, overwritten: tuple[int, ...], *, runs_once: bool, part: int = 0
    ) -> NativeKernel:
        """The kernel of an instruction; `overwritten` are the operands whose memory is a result's too, `runs_once` says
        that the program comes to the instruction once in each call, and `part` that it calls the kernel for so many
        rows at a time."""
        plans = self.functions.plans
        memory = tuple(plans[function].arena_bytes for function in region_functions(instruction))
        leaving_bytes = bytes_leaving_with(instruction) if runs_once else 0
        key = (overwritten, part, instruction_key(instruction), memory, leaving_bytes >= streamed_bytes(self.target))
        quick_key = ("quick", key)
        found = self.known.get(key) or (self.known.get(quick_key) if runs_once else None)
        if found is None:
            work = self._work_of_whole
            situation = Situation(self.target, bool(overwritten), plans, runs_once, part, leaving_bytes, work)
            kernel = kernel_for(instruction, situation)
            found = self._write(instruction, kernel, overwritten)
            # What a library is told of a reduce may depend on more than the key: on the constant that it begins with.
            if found.call is None or instruction.opcode == "fusion":
                self.known[quick_key if kernel.is_for_once else key] = found
        return found

    def _work_of_whole(self) -> float:
        return work_in(self.whole)

    def epilogue(self, fusion: Instruction, *, runs_once: bool) -> tuple[str, int]:
        """The function that a matrix product calls for what a fusion has behind it, and what an element of that takes,
        in multiplications."""
        whole = self._work_of_whole if runs_once else lambda: 0.0
        plan = plan_epilogue(fusion, self.target, runs_once=runs_once, whole=whole)
        key = ("epilogue", instruction_key(fusion), plan.is_quick, plan.is_light)
        found = self.known.get(key)
        if found is None:
            name = self.new_name("epilogue")
            module = self.quick_module if plan.is_quick else self.module
            operands = [operand.shape for operand in fusion.operands]
            shapes = [*operands, *(root.shape for root in plan.roots)]
            with KernelBuilder(
                module,
                name,
                EPILOGUE_PARAMETERS,
                None,
                attributes=self._attributes(is_quick=plan.is_quick, is_light=plan.is_light),
                hoists_constants=plan.is_light,
                is_quick=plan.is_quick,
                joins_offsets=True,
                hoists_addresses=True,
                is_shared=True,
            ) as k:
                for number in range(len(shapes)):
                    place = k.gep(k.parameters["pointers"], number, PTR.bytes)
                    k.parameters[f"p{number}"] = k.load(place, PTR, hoistable=True)
                arrays = _arrays(k, shapes, len(operands), (), self.target)
                outputs = arrays[len(operands) :]
                bound = dict(zip(fusion.called[0].parameters, arrays, strict=False))
                emit_epilogue(k, plan, bound, outputs)
            self.written -= k.name != name
            found = self.known[key] = NativeKernel(k.name, k.name, 0, 0)
        return found.name, plan.work

    def _write(self, instruction: Instruction, kernel: Kernel, overwritten: tuple[int, ...]) -> NativeKernel:
        if isinstance(kernel.body, LibraryCall) and (kernel.finish is None or isinstance(kernel.finish, LibraryCall)):
            return _of_library(kernel, kernel.body)
        name = self.new_name(instruction.opcode.replace("-", "_"))
        operands = [operand.shape for operand in instruction.operands]
        results = [leaf for leaf in instruction.shape.leaves() if leaf.is_array]
        pointers = [f"p{number}" for number in range(len(operands) + len(results))]
        has_scratch, has_context = bool(kernel.shared_bytes or kernel.task_bytes), kernel.listens
        pointers += ["scratch"] * has_scratch + ["context"] * has_context
        if isinstance(kernel.body, LibraryCall):
            finish = self._write_finish(name, pointers, instruction, kernel, overwritten)
            return replace(_of_library(kernel, kernel.body), finish=finish)
        own_name = name
        if kernel.units:
            functions = self._functions(kernel.functions)
            module = self.quick_module if kernel.is_quick else self.module
            with self._builder(module, name, pointers, kernel) as k:
                arrays = _arrays(k, [*operands, *results], len(operands), overwritten, self.target)
                begin, end = k.parameters["begin"], k.parameters["end"]
                if has_scratch:
                    _cut_scratch(k, kernel)
                if kernel.listens:
                    define_look(k.module, self.target)
                    k.leave = k.ret
                if functions:
                    k.functions = functions
                    k.parameters["region_context"] = region_context(k, k.parameters.get("scratch"))
                kernel.body(k, arrays[: len(operands)], arrays[len(operands) :], begin, end)
            name = k.name
            if name != own_name:
                self.written -= 1
        finish = self._write_finish(own_name, pointers, instruction, kernel, ()) if kernel.finish is not None else ""
        range_name = f"{name}.range"
        if kernel.grain < kernel.units and not self.quick_module.defines(range_name):
            self._write_range(name, range_name, len(pointers))
        work = (kernel.units, kernel.grain, kernel.bytes_per_unit)
        return NativeKernel(
            name,
            range_name,
            *work,
            kernel.overwrites,
            has_scratch,
            has_context,
            finish=finish,
            least_units=kernel.least_units,
            cleared_bytes=kernel.shared_bytes if kernel.clears_shared else 0,
        )

    def _write_finish(
        self,
        name: str,
        pointers: Sequence[str],
        instruction: Instruction,
        kernel: Kernel,
        overwritten: tuple[int, ...],
    ) -> str:
        """The function that does what is left to do when all units of the kernel `name` are done."""
        assert kernel.finish is not None and not isinstance(kernel.finish, LibraryCall)
        name = f"{name}.finish"
        operands = [operand.shape for operand in instruction.operands]
        results = [leaf for leaf in instruction.shape.leaves() if leaf.is_array]
        parameters = [(pointer, PTR) for pointer in pointers]
        module = self.quick_module if kernel.is_quick else self.module
        attributes = self._attributes(is_quick=kernel.is_quick, is_light=kernel.is_light)
        with KernelBuilder(
            module,
            name,
            parameters,
            None,
            attributes=attributes,
            hoists_constants=kernel.is_light,
            is_quick=kernel.is_quick,
        ) as k:
            arrays = _arrays(k, [*operands, *results], len(operands), overwritten, self.target)
            if kernel.shared_bytes:
                k.parameters["shared"] = k.parameters["scratch"]
            kernel.finish(k, arrays[: len(operands)], arrays[len(operands) :])
        return name

    def _functions(self, regions: Sequence[Computation]) -> dict[Hashable, str]:
        """The names of region functions, which exist by then."""
        return {region: self.functions.name(region) for region in regions}

    def new_name(self, what: str) -> str:
        self.written += 1
        self.names += 1
        return f"kernel.{self.names - 1}.{what}"

    def add_table(self, numbers: Table) -> int:
        """Adds a constant that code reads; its number among the constants of the program."""
        self.tables.append(numbers)
        return self.constants + len(self.tables) - 1

    def tables_for(self, key: Hashable, make: Callable[[], Sequence[Table]]) -> tuple[int, ...]:
        """The numbers of constants of a library's caller, made once for all equal keys."""
        found = self.shared_tables.get(key)
        if found is None:
            found = self.shared_tables[key] = tuple(self.add_table(table) for table in make())
        return found

    def _builder(self, module: Module, name: str, pointers: Sequence[str], kernel: Kernel) -> KernelBuilder:
        parameters = [(pointer, PTR) for pointer in pointers] + [("begin", I64), ("end", I64)]
        is_quick = module is self.quick_module
        return KernelBuilder(
            module,
            name,
            parameters,
            None,
            attributes=self._attributes(is_quick=is_quick, is_light=kernel.is_light),
            hoists_constants=kernel.is_light,
            is_quick=is_quick,
            calls_functions=kernel.calls_functions,
            joins_offsets=True,
            hoists_addresses=True,
            is_shared=True,
        )

    def _attributes(self, *, is_quick: bool, is_light: bool) -> str:
        """Those of a function that LLVM is to compile fast, or not to try hard for."""
        light, frame = "noinline optnone " if is_light else "", f" {_ALIGNED_FRAME}" if is_quick else ""
        return f"{light}{self.attributes}{frame}"

    @property
    def attributes(self) -> str:
        return f"nounwind {self.target.function_attributes}".rstrip()

    def range_function(self, kernel: NativeKernel, pointers: int) -> str:
        """The name of the kernel that takes so many pointers from a table. One that is too small to be split has such
        a function only if somebody asks for it; functions of libraries are such."""
        if kernel.call is None and kernel.grain >= kernel.units and not self.quick_module.defines(kernel.range_name):
            self._write_range(kernel.name, kernel.range_name, pointers)
        return kernel.range_name

    def joint_range(self) -> str:
        """The name of the function that runs tasks of several kernels; written when it is first asked for.

        Its table has three addresses: of a range function and its table for each kernel, of the number of the first
        piece of each task, and of the kernel, begin and end of each piece."""
        if not self.quick_module.defines(_JOINT_RANGE):
            with KernelBuilder(self.quick_module, _JOINT_RANGE, _RANGE, None, attributes=self.attributes) as k:
                table = k.parameters["table"]
                kernels, tasks, pieces = (k.load(k.gep(table, n, PTR.bytes), PTR) for n in range(3))
                first, last = (k.load(k.gep(tasks, k.parameters[bound], I64.bytes), I64) for bound in ("begin", "end"))
                with k.loop(first, last) as loop:
                    piece = k.gep(pieces, k.mul(loop.index, 3), I64.bytes)
                    number, begin, end = (k.load(k.gep(piece, n, I64.bytes), I64) for n in range(3))
                    kernel = k.gep(kernels, k.mul(number, 2), PTR.bytes)
                    function, arrays = (k.load(k.gep(kernel, n, PTR.bytes), PTR) for n in range(2))
                    k.call(function, [arrays, begin, end])
        return _JOINT_RANGE

    def _write_range(self, name: str, range_name: str, pointers: int) -> None:
        """The same kernel with its pointers in a table."""
        module = self.quick_module  # its code hardly matters
        module.declare(name, None, [PTR] * pointers + [I64, I64])
        with KernelBuilder(module, range_name, _RANGE, None, attributes=self.attributes) as k:
            loaded = [k.load(k.gep(k.parameters["table"], number, 8), PTR) for number in range(pointers)]
            k.call(name, [*loaded, k.parameters["begin"], k.parameters["end"]])

    def combine(self, computation: Computation, operand: Instruction) -> str:
        """The kernel of a collective reduction: folds a range of several arrays, into another one.

        `xlapy_runtime.collectives` says how it is called."""
        element_type = operand.shape.type
        key = ("combine", element_type, computation_key(computation))
        found = self.known.get(key)
        if found is None:
            name = self.new_name("combine")
            with KernelBuilder(self.module, name, _COMBINE, I32, attributes=self.attributes) as k:
                arena = None if is_inlinable(computation) else self._enter_combine(k, computation)
                shape = Shape.array(element_type, (1,))
                lanes = self.target.lanes(max(32, register_type(element_type).bits)) * VECTORS_PER_STEP

                def step(ix: Indexing, position: Value) -> None:
                    _combine_step(ix, computation, shape, position)

                begin, end = k.parameters["begin"], k.parameters["end"]
                if arena is None:  # several lines of each source at once: that is how memory is read fastest
                    wide = _COMBINED_STEPS * lanes
                    whole = k.add(begin, k.and_(k.sub(end, begin), -wide))
                    strip(k, begin, whole, wide, step, overlapping=False, fits=True)
                    begin = whole
                strip(k, begin, end, lanes, step, overlapping=False)
                if arena is not None:
                    k.call("free", [arena])
                k.ret(k.const(I32, Status.OK))
            found = self.known[key] = NativeKernel(name, name, 0, 0)
        return found.name

    def _enter_combine(self, k: KernelBuilder, region: Computation) -> Value:
        """Makes the region function ready to be called; returns the memory that was allocated for it."""
        size = max(SCRATCH_ALIGNMENT, aligned(self.functions.plans[region].arena_bytes))
        arena = k.call_value("aligned_alloc", [k.const(I64, SCRATCH_ALIGNMENT), k.const(I64, size)], PTR)
        with k.if_(k.compare("eq", arena, k.const(PTR, 0))):
            k.ret(k.const(I32, Status.NO_MEMORY))
        k.functions = self._functions([region])
        k.parameters["context"] = k.load(k.parameters["table"], PTR)
        k.parameters["region_context"] = region_context(k, arena)

        def leave() -> None:
            k.call("free", [arena])
            k.ret(k.const(I32, Status.CANCELLED))

        define_look(k.module, self.target)
        k.leave = leave
        return arena


_ALIGNED_FRAME = '"stackrealign"'
"""An attribute of functions that are compiled fast: what LLVM keeps in the frame, as it does over calls, crosses no
lines, where loading it again would have to wait."""

_RANGE = [("table", PTR), ("begin", I64), ("end", I64)]
_JOINT_RANGE = "kernel.joint"

_COMBINED_STEPS = 4
"""Steps of an element-wise kernel that one of a reduction over processes does together: the sums fit the registers."""

_COMBINE = [("table", PTR), ("sources", I64), ("begin", I64), ("end", I64)]


def _combine_step(ix: Indexing, computation: Computation, shape: Shape, position: Value) -> None:
    """Folds what all sources have at some positions, in registers."""
    k = ix.k
    sources, index = k.parameters["sources"], Index((1,), None, ix.along_lanes(position))

    def array(number: Operand) -> Array:
        place = k.gep(k.parameters["table"], k.add(number, 1) if isinstance(number, Value) else number + 1, PTR.bytes)
        return Array(k.load(place, PTR), shape, read_only=False)

    with k.loop(1, sources, carry=parts_of(array(0).load(ix, index))) as fold:
        arguments = [from_parts(fold.values), array(fold.index).load(ix, index)]
        (folded,) = emit_region(k, computation, arguments)
        fold.next = parts_of(splat(k, folded, ix.lanes))
    array(sources).store(ix, index, from_parts(fold.results))


def _of_library(kernel: Kernel, call: LibraryCall) -> NativeKernel:
    return NativeKernel(
        call.function,
        call.function,
        kernel.units,
        kernel.grain,
        kernel.bytes_per_unit,
        has_scratch=kernel.shared_bytes + kernel.task_bytes > 0,
        has_context=kernel.listens,
        call=call,
        finish_call=kernel.finish if isinstance(kernel.finish, LibraryCall) else None,
        least_units=kernel.least_units,
    )


def _arrays(
    k: KernelBuilder, shapes: Sequence[Shape], operands: int, overwritten: Sequence[int], target: Target
) -> list[Array]:
    """The kernel's pointer parameters as arrays. Results are alone in their memory unless operands are overwritten;
    those are not read-only: a load of theirs must stay in front of the store."""
    distinct = not overwritten
    arrays = []
    for number, shape in enumerate(shapes):
        is_result = number >= operands
        alias = f"a{number}" if distinct and is_result else "operands" if distinct else None
        read_only = not is_result and number not in overwritten
        ahead = FETCHED_AHEAD if not is_result and shape.bytes > target.l2_bytes else 0
        arrays.append(Array(k.parameters[f"p{number}"], shape, alias, read_only=read_only, ahead=ahead))
    return arrays


def _cut_scratch(k: KernelBuilder, kernel: Kernel) -> None:
    """The part of the instruction's scratch memory that all tasks share, and behind it that of the task at hand."""
    memory = k.parameters["scratch"]
    k.parameters["shared"] = memory
    task = k.udiv(k.parameters["begin"], kernel.grain)
    k.parameters["scratch"] = k.gep(k.gep(memory, aligned(kernel.shared_bytes)), task, kernel.task_bytes)


def instruction_key(instruction: Instruction) -> Hashable:
    """Equal for instructions that need the same code: op, attributes, shapes with layouts, which operands are the
    same."""
    operands = list(dict.fromkeys(instruction.operands))
    return (
        instruction.opcode,
        instruction.shape,
        tuple((operands.index(operand), operand.shape) for operand in instruction.operands),
        _attributes_and_called(instruction),
    )


def computation_key(computation: Computation) -> Hashable:
    """Equal for computations that need the same code."""
    return content(computation, _attributes_and_called)


def _attributes_and_called(instruction: Instruction) -> Hashable:
    called = tuple(computation_key(computation) for computation in instruction.called)
    return tuple(instruction.attributes.items()), called
