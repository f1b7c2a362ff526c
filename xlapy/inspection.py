"""Looking at a compilation afterwards: the program is compiled once more, with everything on record or with clocks."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from xlapy.codegen.program import printed
from xlapy.codegen.target import Target, host_target
from xlapy.compiled import Compiled
from xlapy.compiler import finish, lower, scratch_for, watch_of
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.native import object_cache
from xlapy.options import CompileOptions, environment
from xlapy.passes.buffer_assignment import arena_timeline
from xlapy.passes.user import with_laws
from xlapy.report import limits
from xlapy.report.explain import explain
from xlapy.report.limits import Limits
from xlapy.report.notebook import executable_html, module_html
from xlapy.report.observation import Observation, Recorder, State
from xlapy.report.page import page
from xlapy.report.profile import Profile, measure
from xlapy.support.errors import ArgumentError, UnsupportedError
from xlapy.support.timing import Timings
from xlapy_runtime.executable import ProgramExecutable

__all__ = ["executable_html", "explanation", "html_report", "machine_limits", "module_html", "observe", "profiled"]


def explanation(compiled: Compiled, options: CompileOptions, given: Limits | None) -> str:
    """What `Executable.explain` returns."""
    return explain(observe(compiled, options), _limits(options, given))


def html_report(compiled: Compiled, options: CompileOptions, given: Limits | None, profile: Profile | None) -> str:
    """What `Executable.html_report` returns."""
    if not isinstance(profile, Profile | None):
        raise ArgumentError(f"a profile is what Executable.profile returns, not {profile!r}")
    return page(observe(compiled, options), _limits(options, given), profile)


def _limits(options: CompileOptions, given: Limits | None) -> Limits:
    if given is not None and not isinstance(given, Limits):
        raise ArgumentError(
            f"limits are {given!r}; they are an xlapy.report.limits.Limits, or None. A report is the text of a "
            "page, for you to write: pathlib.Path(name).write_text(exe.html_report())"
        )
    if options.num_threads == 1:
        return (given or machine_limits()).alone()
    return given or machine_limits(options.num_threads)


def profiled(
    compiled: Compiled,
    options: CompileOptions,
    link: Callable[[Compiled, CompileOptions], ProgramExecutable],
    arguments: Sequence[Any],
    calls: int | None,
) -> Profile:
    """What `Executable.profile` returns; `link` makes a compiled program ready to run."""
    program = compiled.program
    if program.num_processes > 1:
        raise UnsupportedError(f"{program.name} runs as {program.num_processes} processes: no profile")
    counting = compile_counting(compiled, options)
    run = link(counting.compiled, options).function
    counters = counting.compiled.program.constants[counting.counters]
    own = copy.deepcopy(arguments) if program.aliases else arguments  # donated ones are written to
    return measure(program.name, lambda: run(*own), counting.steps, counters, calls)


def observe(compiled: Compiled, options: CompileOptions) -> Observation:
    """Compiles the program once more up to LLVM, with everything on record."""
    observation = observe_module(_source_of(compiled), options, compiled.target)
    if printed(observation.module, observation.plan) != compiled.program.hlo_text:
        raise UnsupportedError(
            f"{compiled.program.name} does not compile as it did: its module, or a variable XLAPY_..., was changed "
            "since then; compile it again and ask the new executable"
        )
    return observation


def observe_module(source: HloModule, options: CompileOptions, target: Target) -> Observation:
    """Compiles a module up to LLVM, with everything on record."""
    recorder = Recorder(State.of(source))
    watch = replace(watch_of(options, environment()), dump=None, observe=recorder.see)
    lowered = lower(source, options, target, watch, Timings())
    return Observation(
        source,
        lowered.module,
        lowered.report,
        recorder,
        lowered.schedule,
        lowered.plan,
        arena_timeline(lowered.module, lowered.schedule, lowered.plan, scratch_for(lowered.target, lowered.module)),
        lowered.emitted,
        lowered.target,
        with_laws(options.laws),
    )


@dataclass(frozen=True, slots=True, eq=False)
class CountingProgram:
    """A program that keeps the time of each of `steps` in the table `counters` among its constants."""

    compiled: Compiled
    steps: tuple[Instruction, ...]
    counters: int


def compile_counting(compiled: Compiled, options: CompileOptions) -> CountingProgram:
    """The same program once more, with a clock around each kernel. It must run one call at a time."""
    source = _source_of(compiled)
    around = environment()
    watch = replace(watch_of(options, around), dump=None)
    lowered = lower(source, options, compiled.target, watch, Timings(), counting=True)
    program = finish(source.signature, lowered, around)
    assert lowered.emitted.counters is not None
    return CountingProgram(
        Compiled(program, compiled.make_stats, compiled.target), tuple(lowered.emitted.steps), lowered.emitted.counters
    )


def _source_of(compiled: Compiled) -> HloModule:
    if compiled.source is None:
        raise UnsupportedError(f"{compiled.program.name} is known as code only: its module is not at hand")
    return compiled.source()


def machine_limits(threads: int | None = None) -> Limits:
    """What so many threads can do at best on this machine (None: as many as it has cores; more are of no use).

    Measured once, which takes some seconds, and kept in the cache on disk."""
    cores = host_target().cores
    return _limits_of(min(threads or cores, cores))


@cache
def _limits_of(cores: int) -> Limits:
    cache_on_disk = object_cache(environment())
    key = f"{limits.LIMITS} for {cores} of {host_target()!r}".encode()
    found = cache_on_disk.get("limits", key)
    if found is not None:
        return Limits.from_dict(json.loads(found))
    measured = limits.measure(cores)
    cache_on_disk.put("limits", key, json.dumps(measured.as_dict()).encode())
    return measured
