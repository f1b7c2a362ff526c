"""The route: module -> passes -> schedule and buffers -> LLVM IR -> object code -> program. The one file that knows
all of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

from xlapy.codegen.batch_calls import BATCH_CALLS
from xlapy.codegen.call_wrapper import call_wrapper_object
from xlapy.codegen.jit import emit_object
from xlapy.codegen.kernels.registry import scratch_bytes
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.angles import MATH_LIBRARIES
from xlapy.codegen.libraries.fft import FFT_LIBRARIES
from xlapy.codegen.libraries.gemm import GEMM_LIBRARIES
from xlapy.codegen.libraries.linalg import LINALG_LIBRARIES
from xlapy.codegen.libraries.sort import SORT_LIBRARIES
from xlapy.codegen.object_cache import ObjectCache, cache_directory
from xlapy.codegen.pool import POOL
from xlapy.codegen.program import GLUE_LEVEL, EmittedProgram, assembly_of, compile_program, emit_program
from xlapy.codegen.rendezvous import RENDEZVOUS
from xlapy.codegen.target import Target, host_target
from xlapy.hlo.buffer_plan import BufferPlan, FunctionPlans
from xlapy.hlo.cost import cost_analysis
from xlapy.hlo.donation import possible_donations
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.text import fingerprint
from xlapy.hlo.verifier import verify, verify_processes
from xlapy.options import CompileOptions, Environment, environment
from xlapy.passes.analysis.replay import check_plan
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.pipeline import Checks, PipelineReport, Watch
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.scheduling import schedule
from xlapy.passes.user import identity_of
from xlapy.support.collection import paused_collection
from xlapy.support.dump import DumpFolder
from xlapy.support.side_by_side import side_by_side
from xlapy.support.timing import Timings
from xlapy_runtime import lapack, rendezvous, threads
from xlapy_runtime.calling import CallWrapper, load_wrapper
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.program import Program
from xlapy_runtime.program_file import dump_program, load_program

CACHE_LIMIT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class CompileStats:
    """What a compilation produced and what it took."""

    instructions: int  # of the module as given
    kernels: int  # distinct ones; equal kernels are shared
    fusions: int
    arena_bytes: int
    live_bytes: int  # no arena could be smaller
    compile_ms: float
    passes_ms: float
    llvm_ms: float
    flops: float
    transcendentals: float
    bytes_accessed: float
    unknown_trip_counts: float
    cached: bool = False  # the whole program came from the cache on disk

    def __str__(self) -> str:
        source = "loaded" if self.cached else "compiled"
        return (
            f"{self.instructions} instructions in {self.kernels} kernels ({self.fusions} fusions), "
            f"{self.arena_bytes} bytes of temporaries, {source} in {self.compile_ms:.1f} ms "
            f"(passes {self.passes_ms:.1f}, LLVM {self.llvm_ms:.1f})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A compiled program, with what is known about its making. `report` is None if it came from the cache. `source`
    gives the module again that it was made of, for a report on it."""

    program: Program
    stats: CompileStats
    target: Target
    report: PipelineReport | None = None
    source: Callable[[], HloModule] | None = None

    def link(self) -> LinkedCode:
        """The code in memory, ready to run."""
        imports: dict[str, int] = {}
        for name in self.program.libraries:
            imports.update(library_symbols(name, self.target))
        return link(self.program.objects, imports, [self.program.entry, *self.program.kernels])

    def assembly(self) -> str:
        """The assembly of the entry and all kernels."""
        return "\n".join(assembly_of(text, self.target) for text in self.program.llvm_modules)


def compile_cached(key: str, load: Callable[[], HloModule], options: CompileOptions) -> Compiled:
    """Compiles what `load` returns, unless the cache knows the program of `key`, which determines the module.

    A program is cached whole: passes, emission and LLVM are skipped, and with text as the key, even reading it."""
    began = time.perf_counter()
    around = environment()
    cache = object_cache(around)
    target = host_target()
    brought = identity_of(options.passes, options.laws)
    full_key = f"{target.code_key}\n{options.cache_key}\n{brought}\n{key}".encode()
    checked = around.verify or options.verify
    observed = around.dump_to or checked or around.time_passes or around.pass_limit is not None
    found = None if observed else cache.get(_PROGRAM_KIND, full_key)
    if found is not None:
        try:
            program, facts = load_program(found)
            elapsed = (time.perf_counter() - began) * 1e3
            stats = CompileStats(**{**facts, "compile_ms": elapsed, "cached": True})
            return Compiled(program, stats, target, source=load)
        except (ValueError, TypeError):
            pass  # written by another version, or damaged beyond the checksum: compile again
    compiled = compile_module(load(), options, target)
    facts = asdict(compiled.stats) | {"passes_ms": 0.0, "llvm_ms": 0.0}
    cache.put(_PROGRAM_KIND, full_key, dump_program(compiled.program, facts))
    return replace(compiled, source=load)


_PROGRAM_KIND = "programs"


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A program before LLVM: the module behind all passes, its order, its memory, and its code as LLVM IR."""

    module: HloModule
    report: PipelineReport
    schedule: Schedule
    plan: BufferPlan
    emitted: EmittedProgram
    target: Target


@paused_collection()
def compile_module(source: HloModule, options: CompileOptions, target: Target | None = None) -> Compiled:
    """Compiles a module for `target`, or else for this machine. The module is verified and left as it is."""
    began = time.perf_counter()
    around = environment()
    timings = Timings()
    lowered = lower(source, options, target or host_target(), watch_of(options, around), timings)
    _dump(lowered.emitted, around)
    passed = time.perf_counter()
    program = finish(source, lowered, around)
    ended = time.perf_counter()
    timings.add("llvm", ended - passed)
    if around.time_passes:
        sys.stderr.write(f"{source.name}:\n{timings.table()}\n")
    cost = cost_analysis(lowered.module)
    stats = CompileStats(
        instructions=source.instruction_count,
        kernels=lowered.emitted.kernel_count,
        fusions=sum(instruction.opcode == "fusion" for instruction in lowered.module.instructions()),
        arena_bytes=lowered.plan.arena_bytes,
        live_bytes=lowered.plan.live_bytes,
        compile_ms=(ended - began) * 1e3,
        passes_ms=(passed - began) * 1e3,
        llvm_ms=(ended - passed) * 1e3,
        flops=cost["flops"],
        transcendentals=cost["transcendentals"],
        bytes_accessed=cost["bytes accessed"],
        unknown_trip_counts=cost["unknown trip counts"],
    )
    return Compiled(program, stats, lowered.target, lowered.report)


def lower(
    source: HloModule,
    options: CompileOptions,
    target: Target,
    watch: Watch,
    timings: Timings,
    *,
    counting: bool = False,
) -> Lowered:
    """Everything before LLVM; `timings` gets the time of each part. A `counting` program keeps the time of each of its
    kernels."""
    with timings.measure("verify"):
        verify(source)
        module = source.clone()
    if options.num_replicas > 1 or options.num_partitions > 1:
        module.config.num_replicas = options.num_replicas
        module.config.num_partitions = options.num_partitions
    verify_processes(module, module.config.num_replicas, module.config.num_partitions)
    pipeline_options = PipelineOptions(
        fast_math=options.fast_math,
        disabled_laws=options.disabled_laws,
        passes=tuple(options.passes),
        laws=tuple(options.laws),
    )
    report = cpu_pipeline(pipeline_options, watch).run(module)
    for run in report.runs:
        timings.add(run.name, run.seconds)
    donations = possible_donations(source)
    with timings.measure("schedule"):
        order = schedule(module, donations)
    with timings.measure("assign-buffers"):
        plan = assign_buffers(module, order, scratch_for(target), donations)
    if watch.checks is not None:
        check_plan(module, order, plan)
    with timings.measure("emit"):
        emitted = emit_program(module, order, plan, target, counting=counting)
    return Lowered(module, report, order, plan, emitted, target)


def scratch_for(target: Target) -> Callable[[Instruction, FunctionPlans], int]:
    """How much memory kernels for `target` work in."""
    return lambda instruction, functions: scratch_bytes(instruction, target, functions)


def finish(source: HloModule, lowered: Lowered, around: Environment) -> Program:
    """The rest: object code, which is looked up on disk first."""
    signature = source.signature
    compile_ir = _object_compiler(lowered.target, around)
    return compile_program(
        lowered.module, lowered.emitted, lowered.plan, compile_ir, signature.parameters, signature.result
    )


def _object_compiler(target: Target, around: Environment) -> Callable[[Sequence[tuple[str, int]]], list[bytes]]:
    """Modules, as IR text and code generation level, to object code, which is looked up on disk first.

    Glue is not: it belongs to one program, which is kept whole, and takes no longer to compile than to keep."""
    cache = object_cache(around)

    def compile_ir(text: str, level: int) -> bytes:
        if level == GLUE_LEVEL:
            return emit_object(text, target, codegen_level=level)
        key = f"{target.code_key}\n{level}\n{text}".encode()
        found = cache.get("kernels", key)
        if found is None:
            found = emit_object(text, target, codegen_level=level)
            cache.put("kernels", key, found)
        return found

    def compile_all(modules: Sequence[tuple[str, int]]) -> list[bytes]:
        workers = min(sum(len(text) >= _LEAST_TASK for text, _ in modules), threads.thread_limit())
        longest_first = sorted(modules, key=lambda module: -len(module[0]))
        objects = side_by_side([partial(compile_ir, *module) for module in longest_first], workers)
        found = dict(zip(longest_first, objects, strict=True))
        return [found[module] for module in modules]

    return compile_all


_LEAST_TASK = 5000
"""Characters of IR, about a millisecond of work, for which a thread is worth being started."""


def _dump(emitted: EmittedProgram, around: Environment) -> None:
    if around.dump_to:
        folder = DumpFolder(Path(around.dump_to), around.dump_filter)
        folder.write(9000, "glue", suffix="ll", text=emitted.glue)
        folder.write(9001, "loops", suffix="ll", text=emitted.loops)
        for number, text in enumerate(emitted.kernels):
            folder.write(9002 + number, "kernels", suffix="ll", text=text)


def module_key(module: HloModule) -> str:
    """Text that tells modules apart wherever their programs differ: all of it, constants as digests."""
    return "\n".join((module.to_text(long=True, large_constants=False), fingerprint(module)))


def watch_of(options: CompileOptions, around: Environment) -> Watch:
    """How closely the passes are to be watched."""
    checked = options.verify or around.verify
    return Watch(
        checks=Checks(verify, fingerprint) if checked else None,
        dump=DumpFolder(Path(around.dump_to), around.dump_filter) if around.dump_to else None,
        to_text=HloModule.to_text,
        disabled="|".join(sorted(options.disabled_passes)),
        stop_after=around.pass_limit,
    )


def object_cache(around: Environment) -> ObjectCache:
    """The cache of object code on disk, where the environment wants it."""
    return _object_cache(cache_directory(around.cache_dir, around.cache_home))


@cache
def _object_cache(directory: Path | None) -> ObjectCache:
    return ObjectCache(directory, CACHE_LIMIT_BYTES)


@cache
def native_wrapper() -> CallWrapper | None:
    """The native call wrapper of this process; None where only the portable way of calling works."""
    return load_wrapper(call_wrapper_object(host_target(), object_cache(environment())))


@cache
def library_symbols(name: str, target: Target) -> dict[str, int]:
    """The addresses of a library's functions; loaded once, and for as long as the process lives."""
    library = LIBRARIES[name]
    imports: dict[str, int] = {}
    for needed in library.needs:
        imports.update(library_symbols(needed, target))
    linked = link(library.objects(target, object_cache(environment())), imports, library.exports)
    _LOADED_LIBRARIES.append(linked)
    return {symbol: linked.address(symbol) for symbol in library.exports}


LIBRARIES: dict[str, Library] = {
    library.name: library
    for group in (GEMM_LIBRARIES, LINALG_LIBRARIES, SORT_LIBRARIES, FFT_LIBRARIES, MATH_LIBRARIES)
    for library in group.values()
}
"""By name: those that programs call."""

_LOADED_LIBRARIES: list[LinkedCode] = []


def install_rendezvous() -> None:
    """Lets programs run as several processes. Starts no thread."""
    rendezvous.NATIVE.install(RENDEZVOUS.object_code(host_target(), object_cache(environment())))


def parallel_function(num_threads: int | None) -> int:
    """The address of the thread pool's `parallel` for so many threads. Starts none."""
    threads.install(_pool())
    return threads.parallel_address(num_threads)


@cache
def _pool() -> bytes:
    """The object code of the thread pool, which is made or read once in a process."""
    return POOL.object_code(host_target(), object_cache(environment()))


def install_batch_calls(program: Program) -> None:
    """Gives the runtime native loops over the problems of a batch, if the program calls LAPACK."""
    if any(call.attributes.get("target") in lapack.NAMES for call in program.runtime_calls):
        lapack.LOOPS.install(BATCH_CALLS.object_code(host_target(), object_cache(environment())))
