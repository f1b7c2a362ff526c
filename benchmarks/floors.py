"""Reference figures, and which of them are reached: `python -m benchmarks.floors`.

The figures were measured with code like ours on a processor with AVX2 and 101 GFLOP/s of f32 per core. Of each, what
carries over to another machine is held here: the share of the machine's limit, how many times as fast as XLA it was, or
a time, told by how much longer or shorter numpy's sum of four elements takes (550 ns there). Most were measured on one
core, and so are ours.

Shares and ratios are medians of those of the rounds, in which engines and the machine take turns: where a host gives a
core half of its speed for a while, it does so to all of them. Times are lower deciles, since other processes only ever
add to them. On one core they are those of the processor, so that a busy machine says nearly the same as an idle one.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from benchmarks.arguments import pattern
from benchmarks.machine import Load, pin
from benchmarks.measure import OURS, XLA, Bench, Outcome, Plan
from benchmarks.report import ratio_text, share_text, time_text
from benchmarks.statistics import lower_decile
from benchmarks.workload import Case
from xlapy.codegen.libraries.gemm_types import unit_name
from xlapy.codegen.target import host_target
from xlapy.report import limits

NOISE = 0.03
"""A figure is reached where ours is at most this much worse."""

FULL = Plan(pairs=30, sample_seconds=0.02, compilations=1, fresh_processes=False)
"""The first call of a sample finds the caches as another process left them, and the figures are of calls one after the
other. In 10 ms a convolution of the largest is called twice."""

QUICK = Plan(pairs=7, sample_seconds=0.003, warm_up_seconds=0.02, compilations=1, fresh_processes=False)

SMALL_SUM = "dispatch/add_4_elements/small"
MANY_KERNELS = "references/many_kernels/small"
NUMPY_SMALL_SUM_SECONDS = 550e-9
"""What numpy takes for it where the figures were measured."""


class Measure(Enum):
    """What a figure says."""

    LIMIT = "share of limit"
    XLA = "XLA / xlapy"
    CALL = "time of a call"
    COMPILE = "time to compile"
    MATRIX_LIBRARY = "time to make"
    FORK_JOIN = "fork and join"

    @property
    def is_time(self) -> bool:
        """Less is better, and the speed of the machine counts."""
        return self not in (Measure.LIMIT, Measure.XLA)

    def text(self, value: float) -> str:
        return time_text(value) if self.is_time else share_text(value) if self is Measure.LIMIT else ratio_text(value)


@dataclass(frozen=True)
class Figure:
    """One expectation: of a case of the workloads, or of what is measured by a function of its own."""

    section: str
    name: str
    measure: Measure
    value: float
    cores: str = "one"  # or "all"


def _figures(
    section: str, cases: str, *values: tuple[str, float | None, float | None], cores: str = "one"
) -> Iterator[Figure]:
    """For each (last part of the name, share of limit, times XLA) the figures that are known."""
    for name, share, ratio in values:
        if share is not None:
            yield Figure(section, cases.format(name), Measure.LIMIT, share, cores)
        if ratio is not None:
            yield Figure(section, cases.format(name), Measure.XLA, ratio, cores)


PRODUCTS = ("matrix products", "convolutions")
"""Sections of what is limited by multiply-adds, or exceeds them by a matrix unit."""

FIGURES = (
    *_figures(
        "matrix products",
        "dot/f32/{}",
        ("64", 0.87, 5.8),
        ("128", 0.89, 1.64),
        ("256", 0.93, 1.12),
        ("512", 0.92, 1.03),
        ("1024", 0.88, 1.13),
        ("2048", 0.94, 1.16),
    ),
    *_figures(
        "matrix products",
        "references/dot/{}",
        ("1x4096x1024", None, 1.46),
        ("1x1024x4096", None, 1.48),
        ("197x768x768", 0.87, 1.04),
    ),
    *_figures(
        "matrix products",
        "dot/skinny_f32/{}",
        ("8x4096x1024", None, 1.30),
        ("32x1000x2048", 0.60, 1.27),
        ("128x3072x768", 0.78, 1.04),
    ),
    *_figures("matrix products", "dot/batched_f32/{}", ("64x64x64x64", 0.94, 1.30)),
    *_figures(
        "matrix products, all cores",
        "dot/f32/{}",
        ("256", 0.85, None),
        ("512", 0.85, 1.0),
        ("1024", 0.92, 1.02),
        cores="all",
    ),
    *_figures(
        "element-wise",
        "references/{}/1M",
        ("gelu_erf", None, 1.42),
        ("gelu_tanh", None, 1.23),
        ("black_scholes", None, 1.12),
        ("exp", None, 1.14),
        ("tanh", None, 1.03),
        ("sin", None, 19.0),
        ("add", None, 1.19),
    ),
    *_figures("rows", "references/{}/1024x1024", ("softmax", None, 1.55), ("layer_norm", None, 2.26)),
    *_figures(
        "reductions",
        "reductions/{}/memory",
        ("sum_all", 1.0, 1.01),
        ("sum_rows", 0.90, 1.12),
        ("sum_columns", 1.0, 1.78),
    ),
    *_figures("transposes", "movement/{}/memory", ("transpose", 0.30, 5.8)),
    *_figures(
        "convolutions",
        "references/convolution/{}",
        ("1x56x56x64-64", 0.96, 1.19),
        ("1x28x28x128-128", 0.97, 1.18),
        ("1x14x14x256-256", 0.97, 1.26),
        ("1x7x7x512-512", 0.76, 2.1),
        ("8x56x56x64-64", 0.94, 1.36),
        ("8x14x14x256-256", 0.82, 1.14),
    ),
    *_figures("memory", "elementwise/{}/memory", ("add_one", 0.78, 11.8)),
    Figure("calls", SMALL_SUM, Measure.CALL, 168e-9),
    Figure("calls", "references/eight_in_three_out/small", Measure.CALL, 356e-9),
    Figure("compilation", MANY_KERNELS, Measure.COMPILE, 268e-3),
    Figure("compilation", "matrix library f32", Measure.MATRIX_LIBRARY, 0.79),
    Figure("threads", "empty tasks, through ctypes", Measure.FORK_JOIN, 1.4e-6, "all"),
)


# -- what is no workload ---------------------------------------------------------------------------------------------


def seconds_to_compile_many_kernels() -> float:
    """Of the processor: the program of 60 kernels, from its text to a function, with nothing on disk."""
    import jax

    os.environ["XLAPY_CACHE_DIR"] = "off"
    import xlapy

    case = _case(MANY_KERNELS)
    text = jax.jit(case.workload.function).lower(*case.inputs()).as_text()
    xlapy.compile("HloModule one\nENTRY e { ROOT x = f32[8] parameter(0) }")  # starts LLVM, makes what is made once
    return min(_processor_seconds(lambda: xlapy.compile(text)) for _ in range(3))


def _processor_seconds(task: Callable[[], object]) -> float:
    began = time.process_time()
    task()
    return time.process_time() - began


def seconds_to_make_the_matrix_library() -> float:
    """Emission and compilation of the products of f32 with many rows, which the cache on disk holds from then on."""
    from xlapy.codegen.libraries.gemm import GEMM_LIBRARIES
    from xlapy.codegen.object_cache import ObjectCache
    from xlapy.codegen.target import host_target

    def make() -> None:
        GEMM_LIBRARIES["f32"].objects(host_target(), ObjectCache(None))

    make()  # starts LLVM
    return min(_processor_seconds(make) for _ in range(2))


def seconds_to_fork_and_join(calls: int = 20_000) -> float:
    """Of eight tasks that do nothing, on two threads that are awake."""
    from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module
    from xlapy.codegen.jit import emit_object
    from xlapy.codegen.object_cache import ObjectCache
    from xlapy.codegen.pool import POOL
    from xlapy.codegen.target import host_target
    from xlapy_runtime import threads
    from xlapy_runtime.linking import link

    target = host_target()
    module = Module(has_fma=target.has_fma)
    with KernelBuilder(module, "nothing", [("data", PTR), ("begin", I64), ("end", I64)], None):
        pass
    code = link([emit_object(module.text(), target)], {}, ["nothing"])
    threads.install(POOL.objects(target, ObjectCache(None)))
    address = threads.parallel_address(2)
    parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    nothing, times = code.address("nothing"), []
    for _ in range(calls):
        began = time.perf_counter()
        parallel(nothing, None, 8, 1)
        times.append(time.perf_counter() - began)
    return lower_decile(times)


PROBES: dict[Measure, Callable[[], float]] = {
    Measure.COMPILE: seconds_to_compile_many_kernels,
    Measure.MATRIX_LIBRARY: seconds_to_make_the_matrix_library,
    Measure.FORK_JOIN: seconds_to_fork_and_join,
}


# -- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What was found for a figure: `floor` is the figure for this machine, `ours` what is to be held against it."""

    figure: Figure
    floor: float
    ours: float | None
    message: str = ""
    share_of_limit: float | None = None  # of ours, where the figure is a ratio to XLA
    may_exceed: bool = False  # the limit, which is that of multiply-adds, by the matrix unit

    @property
    def is_possible(self) -> bool:
        """Whether the limits of the machine leave room for it. XLA's code may be nearer to them than where the figure
        was measured, so that being so much faster would be faster than the machine."""
        if self.figure.measure is not Measure.XLA or not self.ours or self.share_of_limit is None:
            return True
        return self.may_exceed or self.share_of_limit * self.floor / self.ours <= 1

    @property
    def is_credible(self) -> bool:
        """Nothing is faster than the machine, unless that was busy while its limits were measured."""
        is_share = self.figure.measure is Measure.LIMIT and not self.may_exceed
        return self.ours is None or not is_share or self.ours <= 1 + NOISE

    @property
    def reached(self) -> bool:
        if self.ours is None or not self.is_credible:
            return False
        if self.figure.measure.is_time:
            return self.ours <= self.floor * (1 + NOISE)
        return self.ours >= self.floor * (1 - NOISE)

    @property
    def line(self) -> str:
        figure, text = self.figure, self.figure.measure.text
        ours = "-" if self.ours is None else text(self.ours)
        verdict = self.message or ("yes" if self.reached else "no")
        if not self.is_credible:
            verdict = "unknown: the machine was busy while its limits were measured"
        elif not self.reached and not self.is_possible:
            verdict = f"impossible: ours is at {share_text(self.share_of_limit)} of the machine's limit"
        name = f"{figure.section}: {figure.name}"
        return f"{name:58} {figure.cores:>5}  {figure.measure.value:14} {text(self.floor):>8} {ours:>8}  {verdict}"


def findings(figures: Sequence[Figure], plan: Plan) -> Iterator[Finding]:
    """One for each figure, those of one core first."""
    scale = _time_scale(plan) if any(figure.measure.is_time for figure in figures) else 1.0
    for cores in ("one", "all"):
        core = max(os.sched_getaffinity(0)) if cores == "one" else None
        here = [figure for figure in figures if figure.cores == cores]
        timing = replace(plan, processor_time=cores == "one")
        yield from _of_cases([figure for figure in here if figure.measure not in PROBES], timing, core, scale)
        for figure in here:
            if figure.measure in PROBES:
                yield Finding(figure, figure.value * scale, _in_new_process(PROBES[figure.measure], core))


def _time_scale(plan: Plan) -> float:
    """How many times as long as where the figures were measured a call of numpy takes here."""
    core, plan = max(os.sched_getaffinity(0)), replace(plan, processor_time=True)
    with Bench(["numpy"], plan, _limits(core), core) as bench:
        return lower_decile(bench.run(_case(SMALL_SUM)).samples["numpy"]) / NUMPY_SMALL_SUM_SECONDS


def _of_cases(figures: Sequence[Figure], plan: Plan, core: int | None, scale: float) -> Iterator[Finding]:
    if not figures:
        return
    outcomes: dict[str, Outcome] = {}
    with Bench([XLA], plan, _limits(core), core) as bench:
        for figure in figures:
            outcome = outcomes.get(figure.name)
            if outcome is None:
                outcome = outcomes[figure.name] = bench.run(_case(figure.name))
            floor = figure.value * (scale if figure.measure.is_time else 1.0)
            if outcome.measured:
                share = _ours(Measure.LIMIT, outcome) if figure.measure is Measure.XLA else None
                may_exceed = figure.section.startswith(PRODUCTS) and _has_matrix_unit()
                yield Finding(
                    figure, floor, _ours(figure.measure, outcome), share_of_limit=share, may_exceed=may_exceed
                )
            else:
                yield Finding(figure, floor, None, f"{outcome.status}: {outcome.message}")


def _has_matrix_unit() -> bool:
    """Whether products of f32 are computed by more than multiply-adds."""
    return unit_name("f32", host_target()) is not None


def _ours(measure: Measure, outcome: Outcome) -> float | None:
    match measure:
        case Measure.LIMIT if outcome.share_of_limit:
            return outcome.share_of_limit.median
        case Measure.XLA if XLA in outcome.ratios:
            return outcome.ratios[XLA].median
        case Measure.CALL:
            return lower_decile(outcome.samples[OURS])
    return None


def _case(name: str) -> Case:
    from benchmarks.workloads import find

    family, workload, size = name.split("/")
    return Case(find(family, workload), size)


def _limits(core: int | None) -> limits.Limits:
    measured: limits.Limits = _in_new_process(partial(limits.measure, processor_time=core is not None), core)
    return measured


def _in_new_process(task: Callable[[], Any], core: int | None) -> Any:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=pin, initargs=(core,)) as pool:
        return pool.submit(task).result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a figure is not reached that this machine could reach."""
    parser = argparse.ArgumentParser("python -m benchmarks.floors", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="REGEX", type=pattern, default="", help="figures whose section/name matches")
    parser.add_argument("--quick", action="store_true", help="few short samples: for a first look")
    options = parser.parse_args(arguments)
    chosen = [figure for figure in FIGURES if re.search(options.only, f"{figure.section}/{figure.name}")]
    if not chosen:
        parser.error(f"no figure is called {options.only!r}")
    before = Load.now()
    print(f"{'':58} {'cores':>5}  {'':14} {'figure':>8} {'ours':>8}  reached")
    reached = impossible = 0
    for finding in findings(chosen, QUICK if options.quick else FULL):
        print(finding.line, flush=True)
        reached += finding.reached
        impossible += not finding.reached and not finding.is_possible
    print(f"{reached} of {len(chosen)} figures are reached, {impossible} would be faster than this machine; ", end="")
    print(f"load average {before.average:.2f} before, {Load.now().average:.2f} after")
    return int(reached + impossible < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
