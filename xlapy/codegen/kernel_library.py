"""The kernels of one program. Instructions that need the same code share one kernel."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP, strip
from xlapy.codegen.kernels.registry import SCRATCH_ALIGNMENT, Kernel, Situation, aligned, kernel_for, shared_bytes
from xlapy.codegen.region_functions import RegionFunctions, runs_loops
from xlapy.codegen.regions import emit_region, region_context
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_inlinable, region_functions
from xlapy.hlo.shape import Shape


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """A kernel by its symbols. `range_name` takes its pointers from a table, as the pool calls it; it exists only if
    the kernel is worth splitting, into tasks of `grain` units."""

    name: str
    range_name: str
    units: int
    grain: int
    overwrites: tuple[tuple[int, int], ...] = ()
    table: int | None = None  # number among the constants of the program
    has_scratch: bool = False
    has_context: bool = False
    may_stop: bool = False  # it runs loops, which end early when the flag in the context is set


@dataclass(slots=True)
class KernelLibrary:
    """Writes kernels into `module` as they are asked for, and those that hardly matter into `quick_module`."""

    module: Module
    quick_module: Module  # compiled without optimization
    target: Target
    functions: RegionFunctions
    constants: int  # of the program, without tables of kernels
    known: dict[Hashable, tuple[NativeKernel, ...]] = field(default_factory=dict)
    tables: list[np.ndarray[Any, Any]] = field(default_factory=list)
    """Constants of kernels; the program has them behind those of its module."""

    written: int = 0

    def kernels(
        self, instruction: Instruction, overwritten: tuple[int, ...], *, runs_once: bool
    ) -> tuple[NativeKernel, ...]:
        """The kernels of an instruction, mostly one, to be run in order; `overwritten` are the operands whose memory is
        a result's too, `runs_once` says that the program comes to the instruction once in each call."""
        plans = self.functions.plans
        memory = tuple(plans[function].arena_bytes for function in region_functions(instruction))
        key = (overwritten, instruction_key(instruction), memory)
        quick_key = ("quick", key)
        found = self.known.get(key) or (self.known.get(quick_key) if runs_once else None)
        if found is None:
            chain = kernel_for(instruction, Situation(self.target, bool(overwritten), plans, runs_once)).chain
            shared = shared_bytes(chain)
            found = tuple(self._write(instruction, kernel, overwritten, shared) for kernel in chain)
            self.known[quick_key if any(kernel.is_quick for kernel in chain) else key] = found
        return found

    def _write(
        self, instruction: Instruction, kernel: Kernel, overwritten: tuple[int, ...], shared: int
    ) -> NativeKernel:
        name = self._new_name(instruction.opcode.replace("-", "_"))
        operands = [operand.shape for operand in instruction.operands]
        results = [leaf for leaf in instruction.shape.leaves() if leaf.is_array]
        pointers = [f"p{number}" for number in range(len(operands) + len(results))]
        has_scratch, has_context = bool(shared or kernel.task_bytes), bool(kernel.functions)
        pointers += ["scratch"] * has_scratch + ["table"] * (kernel.table is not None) + ["context"] * has_context
        if kernel.units:
            functions = self._functions(kernel.functions)
            with self._builder(self.quick_module if kernel.is_quick else self.module, name, pointers) as k:
                arrays = _arrays(k, [*operands, *results], len(operands), overwritten)
                begin, end = k.parameters["begin"], k.parameters["end"]
                if has_scratch:
                    _cut_scratch(k, kernel, shared)
                if functions:
                    k.functions = functions
                    own = k.gep(k.parameters["scratch"], aligned(kernel.scratch_bytes)) if has_scratch else None
                    k.parameters["region_context"] = region_context(k, own)
                kernel.body(k, arrays[: len(operands)], arrays[len(operands) :], begin, end)
        range_name = f"{name}.range"
        if kernel.grain < kernel.units:
            self._write_range(name, range_name, len(pointers))  # never of a quick one: that is not worth splitting
        table = None if kernel.table is None else self._table(kernel.table)
        may_stop = any(runs_loops(function) for function in kernel.functions)
        return NativeKernel(
            name, range_name, kernel.units, kernel.grain, kernel.overwrites, table, has_scratch, has_context, may_stop
        )

    def _functions(self, regions: Sequence[Computation]) -> dict[Hashable, str]:
        """The names of region functions, which exist by then."""
        return {region: self.functions.name(region) for region in regions}

    def _new_name(self, what: str) -> str:
        self.written += 1
        return f"kernel.{self.written - 1}.{what}"

    def _table(self, numbers: np.ndarray[Any, Any]) -> int:
        self.tables.append(numbers)
        return self.constants + len(self.tables) - 1

    def _builder(self, module: Module, name: str, pointers: Sequence[str]) -> KernelBuilder:
        parameters = [(pointer, PTR) for pointer in pointers] + [("begin", I64), ("end", I64)]
        return KernelBuilder(module, name, parameters, None, attributes=self._attributes)

    @property
    def _attributes(self) -> str:
        return f"nounwind {self.target.function_attributes}".rstrip()

    def _write_range(self, name: str, range_name: str, pointers: int) -> None:
        """The same kernel with its pointers in a table."""
        parameters = [("table", PTR), ("begin", I64), ("end", I64)]
        with KernelBuilder(self.module, range_name, parameters, None, attributes=self._attributes) as k:
            loaded = [k.load(k.gep(k.parameters["table"], number, 8), PTR) for number in range(pointers)]
            k.call(name, [*loaded, k.parameters["begin"], k.parameters["end"]])

    def combine(self, computation: Computation, operand: Instruction) -> str:
        """The kernel of a collective reduction: folds the second array of a table into the first, over a range.

        Behind the arrays the table has the context of a call; only region functions need it."""
        element_type = operand.shape.type
        key = ("combine", element_type, computation_key(computation))
        found = self.known.get(key)
        if found is None:
            name = self._new_name("combine")
            shape = Shape.array(element_type, (1,))
            parameters = [("table", PTR), ("begin", I64), ("end", I64)]
            with KernelBuilder(self.module, name, parameters, None, attributes=self._attributes) as k:
                table = k.parameters["table"]
                arena = None if is_inlinable(computation) else self._enter_combine(k, computation)
                running = Array(k.load(table, PTR), shape, read_only=False)
                incoming = Array(k.load(k.gep(table, 1, 8), PTR), shape, read_only=False)
                lanes = self.target.lanes(max(32, register_type(element_type).bits)) * VECTORS_PER_STEP

                def step(ix: Indexing, position: Value) -> None:
                    index = Index((1,), None, ix.along_lanes(position))
                    values = [array.load(ix, index) for array in (running, incoming)]
                    running.store(ix, index, emit_region(k, computation, values)[0])

                strip(k, k.parameters["begin"], k.parameters["end"], lanes, step, overlapping=False)
                if arena is not None:
                    k.call("free", [arena])
            found = self.known[key] = (NativeKernel(name, name, 0, 0),)
        return found[0].name

    def _enter_combine(self, k: KernelBuilder, region: Computation) -> Value:
        """Makes the region function ready to be called; returns the memory that was allocated for it."""
        size = max(SCRATCH_ALIGNMENT, aligned(self.functions.plans[region].arena_bytes))
        arena = k.call("aligned_alloc", [k.const(I64, SCRATCH_ALIGNMENT), k.const(I64, size)], PTR)
        assert arena is not None
        with k.if_(k.compare("eq", arena, k.const(PTR, 0))):
            k.call("llvm.trap", [])
        k.functions = self._functions([region])
        k.parameters["context"] = k.load(k.gep(k.parameters["table"], 2, PTR.bytes), PTR)
        k.parameters["region_context"] = region_context(k, arena)
        return arena


def _arrays(k: KernelBuilder, shapes: Sequence[Shape], operands: int, overwritten: Sequence[int]) -> list[Array]:
    """The kernel's pointer parameters as arrays. Results are alone in their memory unless operands are overwritten;
    those are not read-only: a load of theirs must stay in front of the store."""
    distinct = not overwritten
    arrays = []
    for number, shape in enumerate(shapes):
        is_result = number >= operands
        alias = f"a{number}" if distinct and is_result else "operands" if distinct else None
        arrays.append(
            Array(k.parameters[f"p{number}"], shape, alias, read_only=not is_result and number not in overwritten)
        )
    return arrays


def _cut_scratch(k: KernelBuilder, kernel: Kernel, shared: int) -> None:
    """The part of the instruction's scratch memory that all tasks share, and behind it that of the task at hand."""
    memory = k.parameters["scratch"]
    k.parameters["shared"] = memory
    task = k.udiv(k.parameters["begin"], kernel.grain)
    k.parameters["scratch"] = k.gep(k.gep(memory, shared), task, kernel.task_bytes)


def instruction_key(instruction: Instruction) -> Hashable:
    """Equal for instructions that need the same code: op, attributes, shapes with layouts, which operands are the
    same."""
    operands = list(dict.fromkeys(instruction.operands))
    return (
        instruction.opcode,
        instruction.shape,
        tuple((operands.index(operand), operand.shape) for operand in instruction.operands),
        tuple(instruction.attributes.items()),
        tuple(computation_key(called) for called in instruction.called),
    )


def computation_key(computation: Computation) -> Hashable:
    """Equal for computations that do the same, whatever their names."""
    order = computation.post_order()
    numbers = {instruction: number for number, instruction in enumerate(order)}
    rows = tuple(
        (
            instruction.opcode,
            instruction.shape,
            tuple(numbers[operand] for operand in instruction.operands),
            tuple(instruction.attributes.items()),
            tuple(computation_key(called) for called in instruction.called),
        )
        for instruction in order
    )
    return (rows, numbers[computation.root])
