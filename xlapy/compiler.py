"""The route: module -> passes -> schedule and buffers -> LLVM IR -> object code -> program. The one file that knows
all of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xlapy.codegen.assembler import assembled
from xlapy.codegen.jit import emit_object
from xlapy.codegen.kernels.effort import work_in
from xlapy.codegen.kernels.registry import scratch_bytes
from xlapy.codegen.math.outlined import outlined_code
from xlapy.codegen.program import GLUE_LEVEL, Compile, EmittedProgram, ModuleText, compile_program, emit_program
from xlapy.codegen.target import Target, host_target
from xlapy.compiled import Compiled, CompileStats
from xlapy.hlo.buffer_plan import BufferPlan, FunctionPlans
from xlapy.hlo.cost import cost_analysis
from xlapy.hlo.donation import possible_donations
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.hlo.nesting import check_copies, check_nesting
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.shape import Signature
from xlapy.hlo.structure import structure
from xlapy.hlo.verifier import verify, verify_processes
from xlapy.native import object_cache
from xlapy.options import CompileOptions, Environment, environment
from xlapy.passes.analysis.replay import check_plan
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.joint_runs import NAME as JOINT_RUNS
from xlapy.passes.joint_runs import join_kernels
from xlapy.passes.pipeline import Checks, PipelineReport, Watch
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.scheduling import schedule
from xlapy.passes.user import check_laws_left_out, check_left_out, with_laws
from xlapy.support.collection import paused_collection
from xlapy.support.dump import DumpFolder
from xlapy.support.errors import ArgumentError
from xlapy.support.side_by_side import side_by_side
from xlapy.support.timing import Timings
from xlapy_runtime import threads
from xlapy_runtime.device import MOST_DEVICES
from xlapy_runtime.program import Program

LEAST_KEPT = 10_000  # characters of kernels that are worth a file of their own, some 5 ms of work for LLVM


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
def compile_module(
    source: HloModule, options: CompileOptions, target: Target | None = None, *, is_own: bool = False
) -> Compiled:
    """Compiles a module for `target`, or else for this machine. The module is verified and left as it is, unless it
    `is_own`, which nobody else has."""
    began = time.perf_counter()
    signature, instructions = source.signature, source.instruction_count
    around = environment()
    timings = Timings()
    lowered = lower(source, options, target or host_target(), watch_of(options, around), timings, is_own=is_own)
    _dump(lowered.emitted, around)
    passed = time.perf_counter()
    program = finish(signature, lowered, around)
    ended = time.perf_counter()
    timings.add("llvm", ended - passed)
    if around.time_passes:
        sys.stderr.write(f"{source.name}:\n{timings.table()}\n")
    cost = cost_analysis(lowered.module)
    stats = CompileStats(
        instructions=instructions,
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
    return Compiled(program, lambda: stats, lowered.target, lowered.report)


def _set_grid(module: HloModule, options: CompileOptions) -> None:
    """The processes that the module runs as: its own grid, unless the options have another one."""
    config = module.config
    if options.num_replicas > 1 or options.num_partitions > 1:
        config.num_replicas = int(options.num_replicas)
        config.num_partitions = int(options.num_partitions)
    if config.num_replicas * config.num_partitions > MOST_DEVICES:
        grid = f"{config.num_replicas} replicas of {config.num_partitions} partitions"
        raise ArgumentError(f"{grid} are more processes than there are devices: at most {MOST_DEVICES}")


def lower(
    source: HloModule,
    options: CompileOptions,
    target: Target,
    watch: Watch,
    timings: Timings,
    *,
    counting: bool = False,
    is_own: bool = False,
) -> Lowered:
    """Everything before LLVM; `timings` gets the time of each part. A `counting` program keeps the time of each of its
    kernels. A module that `is_own`, which nobody else has, is changed; others are copied."""
    with timings.measure("verify"):
        verify(source)
        check_nesting(source)
        check_copies(source)
        donations = possible_donations(source)
        module = source if is_own else source.clone()
    _set_grid(module, options)
    verify_processes(module, module.config.num_replicas, module.config.num_partitions)
    pipeline_options = PipelineOptions(
        fast_math=options.fast_math,
        repeats_functions=target.repeats_functions,
        disabled_laws=options.disabled_laws,
        passes=tuple(options.passes),
        laws=tuple(options.laws),
    )
    pipeline = cpu_pipeline(pipeline_options, watch)
    if options.disabled_passes:
        check_left_out(pipeline, options.disabled_passes, others=(JOINT_RUNS,))
    if options.disabled_laws:
        check_laws_left_out(with_laws(options.laws), options.disabled_laws)
    report = pipeline.run(module)
    for run in report.runs:
        timings.add(run.name, run.seconds)
    with timings.measure("schedule"):
        order = schedule(module, donations)
    if watch.allows(JOINT_RUNS, report.optional_changes):
        with timings.measure(JOINT_RUNS):
            order = join_kernels(module, order, donations)
    with timings.measure("assign-buffers"):
        plan = assign_buffers(module, order, scratch_for(target, module), donations)
    if watch.checks is not None:
        check_plan(module, order, plan)
    with timings.measure("emit"):
        emitted = emit_program(
            module,
            order,
            plan,
            target,
            contracts=options.contract,
            flushes=bool(options.flush_subnormals),
            keeps_excess=options.excess_precision,
            counting=counting,
        )
    return Lowered(module, report, order, plan, emitted, target)


def scratch_for(target: Target, module: HloModule) -> Callable[[Instruction, FunctionPlans], int]:
    """How much memory the kernels of a module work in that are for `target`."""
    entry, whole = module.entry, partial(work_in, module.entry)

    def bytes_of(instruction: Instruction, functions: FunctionPlans) -> int:
        runs_once = instruction.parent is entry
        return scratch_bytes(instruction, target, functions, runs_once=runs_once, whole=whole)

    return bytes_of


def finish(signature: Signature, lowered: Lowered, around: Environment) -> Program:
    """The rest: object code, which is looked up on disk first. Callers see the `signature` that was given."""
    compile_ir = _object_compiler(lowered.target, around)
    code_of = partial(outlined_code, target=lowered.target, cache=object_cache(around))
    return compile_program(
        lowered.module, lowered.emitted, lowered.plan, compile_ir, code_of, signature.parameters, signature.result
    )


def _object_compiler(target: Target, around: Environment) -> Compile:
    """Modules to object code, which is looked up on disk first.

    Glue is not: it belongs to one program, which is kept whole, and takes no longer to compile than to keep; most of it
    is assembled without LLVM. Nor are a few kernels: to keep them takes a twentieth of the time, and other programs
    with the same ones are rare."""
    cache = object_cache(around)

    def compile_ir(module: ModuleText) -> bytes:
        text, level, reduces_strength = module
        straight = assembled(text, target) if level == GLUE_LEVEL else None
        if straight is not None:
            return straight
        if level == GLUE_LEVEL or len(text) < LEAST_KEPT:
            return emit_object(text, target, codegen_level=level, reduces_strength=reduces_strength)
        key = f"{target.code_key}\n{level}{'r' * reduces_strength}\n{text}".encode()
        found = cache.get("kernels", key)
        if found is None:
            found = emit_object(text, target, codegen_level=level, reduces_strength=reduces_strength)
            cache.put("kernels", key, found)
        return found

    def compile_all(modules: Sequence[ModuleText]) -> list[bytes]:
        longest_first = sorted(modules, key=lambda module: -len(module.text))
        objects = side_by_side([partial(compile_ir, module) for module in longest_first], threads.thread_limit())
        found = dict(zip(longest_first, objects, strict=True))
        return [found[module] for module in modules]

    return compile_all


def _dump(emitted: EmittedProgram, around: Environment) -> None:
    if around.dump_to:
        folder = DumpFolder(Path(around.dump_to), around.dump_filter)
        texts = [*(("glue", text) for text in emitted.glue), ("loops", emitted.loops)]
        texts += [("kernels", text) for text in emitted.kernels]
        for number, (name, text) in enumerate(texts, start=9000):
            folder.write(number, name, suffix="ll", text=text)


def watch_of(options: CompileOptions, around: Environment) -> Watch:
    """How closely the passes are to be watched."""
    checked = options.verify or around.verify
    return Watch(
        checks=Checks(verify, structure) if checked else None,
        dump=DumpFolder(Path(around.dump_to), around.dump_filter) if around.dump_to else None,
        to_text=HloModule.to_text,
        disabled="|".join(sorted(options.disabled_passes)),
        stop_after=around.pass_limit,
    )
