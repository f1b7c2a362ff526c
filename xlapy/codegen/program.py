"""From a scheduled module with a buffer plan to a `Program`: object code, tables, constants.

Three LLVM modules, by what their code deserves: `kernels` (loop nests), `loops` (control flow around scalars), both
with optimizing instruction selection, and `glue` (the straight-line entry that calls them, loops around much work, and
kernels with next to nothing to do), compiled as fast as LLVM can. The first and the last are cut into parts where there
is much to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from xlapy.codegen.entry import COUNTER_WORDS, EntryEmitter, Step, write_entry
from xlapy.codegen.ir import Module
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.kernel_library import KernelLibrary, Table
from xlapy.codegen.math.outlined import OutlinedFunction
from xlapy.codegen.packed_constants import PackedConstant, elements_in_memory
from xlapy.codegen.region_functions import RegionFunctions
from xlapy.codegen.runtime_sites import RuntimeSites
from xlapy.codegen.specs import tree_of
from xlapy.codegen.stored_code import StoredCode
from xlapy.codegen.target import Target
from xlapy.hlo.buffer_plan import BufferPlan, Home
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.shape import Shape
from xlapy_runtime.prelinking import prelinked
from xlapy_runtime.program import Program, Texts
from xlapy_runtime.records import Record

ENTRY = "xlapy.entry"
_BODY = "xlapy.body"
PRINTED_CONSTANTS = 10_000  # elements of constants in the text that is kept; with more, it is for reading only
KERNEL_LEVEL = 1  # LLVM's effort; 2 and 3 take longer and make no faster code of IR that is optimized already
GLUE_LEVEL = 0
_NOTHING = np.zeros(0, np.uint8)  # in the place of a constant that nobody reads as it is
LEAST_GLUE = 20_000  # characters that are worth a module of their own, some 4 ms of work for LLVM


class ModuleText(NamedTuple):
    """LLVM IR, and the effort for it: a level, and whether LLVM looks for better addresses in loops."""

    text: str
    level: int
    reduces_strength: bool = False


Compile = Callable[[Sequence[ModuleText]], list[bytes]]
"""Modules to object code; may look in a cache first."""

CodeOf = Callable[[OutlinedFunction], StoredCode]
"""The object code of a function that kernels call; may look in a cache first."""


class EmittedProgram(Record):
    """LLVM IR of one program, with what is needed to run it. Many kernels are several modules.

    `steps` lists the functions that each instruction calls. `counters` is the number among the program's constants of
    the table that keeps their times, in the same order, if there is one."""

    kernels: tuple[str, ...]
    loops: str
    glue: tuple[str, ...]
    kernel_count: int
    sites: RuntimeSites
    symbols: tuple[str, ...]
    read_constants: frozenset[int]  # numbers of those that it reads, tables included
    tables: tuple[Table, ...]  # constants of its code, behind those of the module
    libraries: tuple[str, ...]  # names of those whose functions it calls
    outlined: tuple[OutlinedFunction, ...]  # those that are to be linked with it
    steps: Mapping[Instruction, tuple[Step, ...]]
    counters: int | None = None

    @property
    def modules(self) -> list[ModuleText]:
        """What there is to compile.

        Loops over scalars are not written with addresses in mind, as kernels are. Where there are some, LLVM looks for
        better ones in the kernels, too: what is emitted otherwise would wait (`codegen/strength_reduction.py`)."""
        has_loops = "define" in self.loops
        optimized = [*self.kernels, self.loops] if has_loops else self.kernels
        return [
            *(ModuleText(text, GLUE_LEVEL) for text in self.glue),
            *(ModuleText(text, KERNEL_LEVEL, has_loops) for text in optimized if "define" in text),
        ]


def emit_program(
    module: HloModule,
    schedule: Schedule,
    plan: BufferPlan,
    target: Target,
    *,
    contracts: bool = False,
    keeps_excess: bool = False,
    flushes: bool = False,
    counting: bool = False,
) -> EmittedProgram:
    """Writes the IR of the entry and of everything it calls. If it `contracts`, kernels of its own may add products
    unrounded, and if it `keeps_excess`, narrow floats are rounded where kernels store them; if it `flushes`, subnormal
    results are zeros. If `counting`, the program keeps the time of each call; it must then run one call at a time."""
    parts = kernels, loops, glue = tuple(
        Module.of_program(target, contracts=contracts, keeps_excess=keeps_excess) for _ in range(3)
    )
    attributes = f"nounwind {target.function_attributes}".rstrip()

    def write_function(region: Computation, name: str) -> None:
        """Like the program, but all in the module that is optimized: it runs for each element."""
        numbers = _numbers_of_region(region)
        inner = EntryEmitter(
            schedule=schedule,
            plan=plan.functions[region],
            glue=loops,
            loops=loops,
            kernels=library,
            sites=sites,
            pointers=numbers,
            attributes=attributes,
            libraries=emitter.libraries,
            read_constants=emitter.read_constants,
            prefix=f"{name}.",
        )
        inner.emit(region, name, is_entry=False)

    functions = RegionFunctions(plan.functions, write_function)
    library = KernelLibrary(kernels, glue, target, functions, len(plan.constants), module.entry)
    sites = RuntimeSites(library.combine)
    pointers = {
        Home.PARAMETER: _pointer_numbers(module, plan, results=False),
        Home.RESULT: _pointer_numbers(module, plan, results=True),
    }
    emitter = EntryEmitter(
        schedule=schedule,
        plan=plan,
        glue=glue,
        loops=loops,
        kernels=library,
        sites=sites,
        pointers=pointers,
        attributes=attributes,
    )
    if counting:
        emitter.counters = library.add_table(np.zeros(0, np.int64))  # how many there are is known at the end
    emitter.emit(module.entry, _BODY)
    write_entry(glue, target, ENTRY, _BODY, attributes, flushes=flushes)
    if emitter.counters is not None:
        library.tables[emitter.counters - len(plan.constants)] = np.zeros((len(emitter.steps), COUNTER_WORDS), np.int64)
    combines = tuple(
        kernel.name for key, kernel in library.known.items() if isinstance(key, tuple) and key[0] == "combine"
    )
    outlined = {name: function for part in parts for name, function in (part.outlined or {}).items()}
    return EmittedProgram(
        tuple(kernels.parts(target.cores)),
        loops.text(),
        tuple(glue.parts(target.cores, least=LEAST_GLUE)),
        library.written,
        sites,
        combines,
        frozenset(emitter.read_constants),
        tuple(library.tables),
        tuple(sorted(emitter.libraries.union(*(part.libraries or () for part in parts)))),
        tuple(outlined.values()),
        emitter.steps,
        emitter.counters,
    )


def _pointer_numbers(module: HloModule, plan: BufferPlan, *, results: bool) -> dict[int, int]:
    """From array leaves as the plan numbers them to entries of the table of pointers.

    The runtime puts the sizes of dynamic dimensions directly behind the array that they belong to; in the padded module
    they come last."""
    sizes = module.config.size_results if results else module.config.size_parameters
    if results:
        shapes = [leaf for leaf in module.entry.root.shape.leaves() if leaf.is_array]
    else:
        shapes = [leaf for p in module.entry.parameters for leaf in p.shape.leaves() if leaf.is_array]
    arrays = len(shapes) - len(sizes)
    numbers: dict[int, int] = {}
    position = 0
    for leaf in range(arrays):
        numbers[leaf] = position
        position += 1
        for order, size in enumerate(sizes):
            if size.leaf == leaf:
                numbers[arrays + order] = position
                position += 1
    return numbers


def _numbers_of_region(region: Computation) -> dict[Home, dict[int, int]]:
    """Each scalar has its own entry in the tables of pointers."""
    results = sum(1 for _ in region.root.shape.leaves())
    return {Home.PARAMETER: _each(len(region.parameters)), Home.RESULT: _each(results)}


def _each(count: int) -> dict[int, int]:
    return {number: number for number in range(count)}


def compile_program(
    module: HloModule,
    emitted: EmittedProgram,
    plan: BufferPlan,
    compile_ir: Compile,
    code_of: CodeOf,
    parameters: tuple[Shape, ...],
    result: Shape,
) -> Program:
    """Object code and tables. `parameters` and `result` are the shapes that the caller sees."""
    modules = emitted.modules
    outlined = [code_of(function) for function in emitted.outlined]
    return Program(
        name=module.name,
        objects=prelinked([*compile_ir(modules), *(bytes(part) for code in outlined for part in code.objects)]),
        entry=ENTRY,
        parameters=tuple(tree_of(shape) for shape in parameters),
        result=tree_of(result),
        kernels=emitted.symbols,
        parameter_names=tuple(parameter.name for parameter in module.entry.parameters[: len(parameters)]),
        arena_bytes=plan.arena_bytes,
        constants=(
            *(
                elements_in_memory(constant) if number in emitted.read_constants else _NOTHING
                for number, constant in enumerate(plan.constants)
            ),
            *(table.array() if isinstance(table, PackedConstant) else table for table in emitted.tables),
        ),
        runtime_calls=tuple(emitted.sites.calls),
        num_replicas=module.config.num_replicas,
        num_partitions=module.config.num_partitions,
        aliases=plan.donations,
        libraries=tuple(sorted({*emitted.libraries, *(name for code in outlined for name in code.needs)})),
        has_loops=any(
            i.opcode == "while" or region_functions(i) for each in module.computations() for i in each.calling
        ),
        texts=_texts_of(module, plan, emitted),
    )


def _texts_of(module: HloModule, plan: BufferPlan, emitted: EmittedProgram) -> Callable[[], Texts]:
    """What makes the texts of a program when they are asked for. They are made at once if the module would be kept for
    them with large constants that the program has in another form."""

    def make() -> Texts:
        return Texts(printed(module, plan), tuple(module.text for module in emitted.modules))

    is_packed = any(isinstance(table, PackedConstant) for table in emitted.tables)
    if not is_packed or _prints_constants(plan):
        return cache(make)
    made = make()
    return lambda: made


def printed(module: HloModule, plan: BufferPlan) -> str:
    """The text of a compiled module that is kept with the program."""
    return module.to_text(large_constants=_prints_constants(plan))


def _prints_constants(plan: BufferPlan) -> bool:
    return sum(constant.shape.size for constant in plan.constants) <= PRINTED_CONSTANTS


def assembly_of(text: str, target: Target, level: int = KERNEL_LEVEL, *, reduces_strength: bool = False) -> str:
    """The assembly of IR text, to read."""
    return emit_assembly(text, target, codegen_level=level, reduces_strength=reduces_strength)
