"""The functions of a program: sequences of instructions, each written by its handler."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from xlapy.codegen.entry.base import HANDLERS, NO_CODE, Entry, reads_registers, scalar_leaves
from xlapy.codegen.entry.kernels import write_joint_run, write_kernel
from xlapy.codegen.entry.runtime_calls import call_runtime
from xlapy.codegen.entry.scalars import bind_renamed_scalar
from xlapy.codegen.float_environment import settings, settings_of_thread, use_settings
from xlapy.codegen.frame import ENTRY_PARAMETERS, Frame, Leaf
from xlapy.codegen.ir import I32, PTR, KernelBuilder, Module
from xlapy.codegen.kernels.effort import is_heavy
from xlapy.codegen.scalar_code import ScalarCode, is_scalar_operation
from xlapy.codegen.slice_copies import reads_only_registers
from xlapy.codegen.target import Target
from xlapy.hlo.buffer_plan import Home
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import SCALAR_RENAMING
from xlapy.hlo.leaves import is_renaming, origin_of_leaf
from xlapy.hlo.ops import Trait

SCALARS_PER_CALL = 16  # scalar operations that take LLVM as long as one call with its addresses
FUNCTION_WEIGHT = 128 * SCALARS_PER_CALL  # the most that one function holds


@dataclass(slots=True, kw_only=True)
class EntryEmitter(Entry):
    """Writes the functions of one program, or of one region function. Loops go to `loops`; straight-line code, and
    loops with so much to do that their own code does not matter, to `glue`."""

    glue: Module
    loops: Module
    pointers: dict[Home, dict[int, int]]
    attributes: str
    stored: frozenset[Leaf] = frozenset()
    parts: dict[Computation, list[list[Instruction]]] = field(default_factory=dict)
    function_count: int = 0

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
        places = self.plan, self.pointers, self.stored
        is_optimized = module is self.loops
        return Frame(module, name, *places, linkage, self.attributes, self.read_constants, is_optimized=is_optimized)

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
            if inner.k.is_empty:
                continue  # it only had names for what the caller, or another part, has
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
                write_joint_run(self, frame, together)
            scalars.written(instruction)

    def _instruction(self, frame: Frame, instruction: Instruction, scalars: ScalarCode) -> None:
        if instruction.opcode in NO_CODE:
            return
        handler = HANDLERS.get(instruction.opcode)
        if handler is None and Trait.RUNTIME in instruction.spec.traits:
            handler = call_runtime
        if handler is None and is_scalar_operation(instruction):
            scalars.write(instruction)
            return
        if handler is None and instruction.shape.is_scalar and instruction.opcode in SCALAR_RENAMING:
            handler = bind_renamed_scalar
        if handler is None and is_renaming(instruction):
            return
        self.write(frame, instruction, handler or write_kernel)

    # -- memory --------------------------------------------------------------------------------------------------

    def _stored_scalars(self, entry: Computation) -> set[Leaf]:
        """Scalar leaves that memory must hold: results, what kernels and the runtime read, what crosses functions.

        The caller's memory holds parameters already, and the program's its constants, whatever they are called in
        branches and loops: nothing may write to either."""
        part_of = self._part_of_each()
        stored = set(_scalar_origins(entry.root))
        for computation, parts in self.parts.items():
            several = len(parts) > 1
            if several:
                stored.update(_scalar_origins(computation.root))
            for instruction in self.schedule[computation]:
                read = itertools.chain.from_iterable(map(_scalar_origins, instruction.operands))
                if not (reads_registers(instruction) or self._takes_places_from_registers(instruction)):
                    stored.update(read)
                elif several:
                    part = part_of.get(instruction)
                    stored.update(origin for origin in read if part_of.get(origin[0]) != part)
        written = (Home.RESULT, Home.ARENA)
        return {
            leaf for leaf in stored if leaf[0] not in entry.parameters and self.plan.location(*leaf).home in written
        }

    def _takes_places_from_registers(self, instruction: Instruction) -> bool:
        """It moves a block or an element, by no kernel, and all of its scalars say where, or what."""
        return len(self.schedule.together(instruction)) == 1 and reads_only_registers(instruction)

    def _part_of_each(self) -> dict[Instruction, tuple[Computation, int]]:
        """The function that each instruction is in. Parameters are in none: the caller of all parts binds them."""
        return {
            instruction: (computation, number)
            for computation, parts in self.parts.items()
            for number, part in enumerate(parts)
            for instruction in part
            if instruction.opcode != "parameter"
        }

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
                    self.copy(frame, frame.pointer(location), target, shape.bytes)
            number += 1


def _scalar_origins(value: Instruction) -> Iterator[Leaf]:
    """Where the scalars of a value come from."""
    return (origin_of_leaf(value, leaf) for leaf in scalar_leaves(value.shape))


def write_entry(module: Module, target: Target, name: str, body: str, attributes: str, *, flushes: bool) -> None:
    """The entry `name` of a program: runs `body` with its settings."""
    module.adopt(_entry(target, name, body, attributes, flushes=flushes))


@lru_cache(maxsize=8)
def _entry(target: Target, name: str, body: str, attributes: str, *, flushes: bool) -> Module:
    """A module of it, which is the same for all programs."""
    module = Module.of_program(target)
    with KernelBuilder(module, name, ENTRY_PARAMETERS, I32, "", attributes) as k:
        arguments = list(k.parameters.values())
        wanted, found = k.const(I32, settings(target, flushes=flushes)), settings_of_thread(k, target)
        with k.if_(k.compare("eq", found, wanted)):
            k.ret(k.call_value(body, arguments, I32))
        use_settings(k, target, wanted)
        status = k.call_value(body, arguments, I32)
        use_settings(k, target, found)
        k.ret(status)
    return module
