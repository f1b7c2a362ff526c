"""One case after the other: compile with every engine, check that they agree, then time them in turns."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.compare import Agreement, compare
from benchmarks.engines import Program
from benchmarks.machine import Disturbance, Load, total_cpu_seconds
from benchmarks.statistics import Interval, median, paired_ratio
from benchmarks.worker import Worker, WorkerError
from benchmarks.workload import Case
from xlapy.report.limits import Bound, Limits

OURS = "xlapy"
XLA = "xla"
MACHINE = "machine"
"""Whoever does nothing but what limits a program."""

STARTS = 3
"""New processes that compile what is cached: where one of them runs matters to a time of two milliseconds."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    pairs: int = 30
    sample_seconds: float = 0.02
    settle_seconds: float = 0.025
    """Of untimed calls before each sample, where the time is held against a limit of the machine: a processor
    that did something else, or nothing, takes this long to give a program all that it can."""
    warm_up_seconds: float = 0.1
    compilations: int = 5
    processor_time: bool = False  # of all threads of an engine; for engines on one core, on a machine that is busy
    fresh_processes: bool = True  # compile in new processes too: with nothing cached, and with everything cached


QUICK = Plan(
    pairs=7, sample_seconds=0.005, settle_seconds=0.02, warm_up_seconds=0.02, compilations=1, fresh_processes=False
)


@dataclass
class Compilation:
    """Seconds to compile, in the three states that caches can be in, and XLA's in its warm process."""

    program_cold: float | None = None
    nothing_cached: float | None = None
    all_cached: float | None = None
    xla: float | None = None


@dataclass
class Memory:
    """Bytes that a call needs beside its inputs, by engine: those by which a new process grows at most during its first
    call, and those of results and temporaries that the compiler declares."""

    measured: dict[str, int] = field(default_factory=dict)
    declared: dict[str, int] = field(default_factory=dict)


@dataclass
class Outcome:
    """What is known about a case. `status` is "measured", or says why not."""

    case: Case
    status: str = "measured"
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)  # of one warm call, by engine
    samples: dict[str, list[float]] = field(default_factory=dict, repr=False)  # what these are the medians of
    ratios: dict[str, Interval] = field(default_factory=dict)  # opponent's time over ours
    compilation: Compilation = field(default_factory=Compilation)
    memory: Memory = field(default_factory=Memory)
    agreement: Agreement | None = None
    share_of_limit: Interval | None = None  # the time that the machine needs, as a share of ours
    disturbance: Disturbance | None = None
    missing: dict[str, str] = field(default_factory=dict)  # opponents that could not run it, and why

    @property
    def measured(self) -> bool:
        return self.status == "measured"

    @property
    def agrees(self) -> bool:
        return self.agreement is None or self.agreement.holds(self.case.workload.may_differ)


class Bench:
    """The engines at work. Close it, or use it as a context."""

    def __init__(self, opponents: Sequence[str], plan: Plan, limits: Limits, core: int | None = None) -> None:
        self._plan = plan
        self._limits = limits
        self._core = core
        self._scratch = Path(tempfile.mkdtemp(prefix="xlapy-bench-"))
        self.opponents = list(opponents)
        names = dict.fromkeys([XLA, OURS, *opponents])  # XLA lowers, even where it does not compete
        self._workers = {name: self._worker(name, self._scratch / "warm") for name in names}
        self._machine = self._worker(MACHINE, self._scratch / "warm")
        self.unavailable: dict[str, str] = {}

    def __enter__(self) -> Bench:
        for name in list(self._workers):
            try:
                self._workers[name].ask("start")
            except WorkerError as error:
                if name in (OURS, XLA):
                    raise
                self.unavailable[name] = str(error)
                self._workers.pop(name).close()
                self.opponents.remove(name)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self._workers.values(), self._machine):
            worker.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def run(self, case: Case) -> Outcome:
        outcome = Outcome(case)
        before, used = Load.now(), self._used()
        try:
            self._run(case, outcome)
        except WorkerError as error:
            outcome.status, outcome.message = error.status, str(error)
        for name, worker in self._workers.items():
            with _tolerated(outcome, name):
                worker.ask("close")
        outcome.disturbance = Disturbance.between(before, Load.now(), self._used() - used)
        return outcome

    def _run(self, case: Case, outcome: Outcome) -> None:
        inputs = case.inputs()
        workload = case.workload
        key = (workload.family, workload.name, case.size)
        text = self._workers[XLA].ask("lower", key, inputs)
        program = Program(key, text, inputs, workload.equivalent)
        self._workers[OURS].ask("open", program)
        present = [OURS]
        for name in self.opponents:
            try:
                self._workers[name].ask("open", program)
                present.append(name)
            except WorkerError as error:
                outcome.missing[name] = str(error)
        results = self._workers[OURS].ask("results")
        if XLA in present:
            outcome.agreement = compare(results, self._workers[XLA].ask("results"), workload.tolerance)
        self._time(present, self._bound(case, inputs, results), outcome)
        self._time_compilation(program, XLA in present, outcome)
        if self._plan.fresh_processes and workload.compare_memory:
            self._measure_memory(program, XLA in present, outcome.memory)

    def _time(self, present: Sequence[str], bound: Bound | None, outcome: Outcome) -> None:
        """Fills in the times of a call. Engines take turns; who begins changes, so that drift favours nobody.

        Where a limit holds, the machine takes part like an engine: what it can do changes from minute to minute."""
        plan = self._plan
        for name in present:
            self._workers[name].ask("warm_up", plan.warm_up_seconds)
            self._workers[name].rest()
        settle_seconds = plan.settle_seconds if bound else 0.0
        sample = plan.sample_seconds, settle_seconds, plan.processor_time
        turns: list[tuple[str, Worker, Callable[[], float]]] = [
            (name, self._workers[name], partial(self._workers[name].ask, "sample", *sample)) for name in present
        ]
        if bound:
            turns.append((MACHINE, self._machine, partial(self._machine.ask, "limit", bound, *sample)))
        times: dict[str, list[float]] = {name: [] for name, _, _ in turns}
        for number in range(plan.pairs):
            start = number % len(turns)
            for name, worker, seconds in turns[start:] + turns[:start]:
                times[name].append(seconds())
                worker.rest()
        outcome.samples = times
        outcome.seconds = {name: median(times[name]) for name in present}
        outcome.ratios = {name: paired_ratio(times[OURS], times[name]) for name in present if name != OURS}
        outcome.share_of_limit = paired_ratio(times[OURS], times[MACHINE]) if bound else None

    def _time_compilation(self, program: Program, with_xla: bool, outcome: Outcome) -> None:
        engines = [OURS, XLA] if with_xla else [OURS]
        times: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(self._plan.compilations):
            for name in engines:
                times[name].append(self._workers[name].ask("recompile"))
                self._workers[name].rest()
        compilation = outcome.compilation
        compilation.program_cold = median(times[OURS])
        compilation.xla = median(times[XLA]) if with_xla else None
        if self._plan.fresh_processes:
            cache = self._scratch / "fresh"
            compilation.nothing_cached = self._compile_in_new_process(program, cache)
            compilation.all_cached = median([self._compile_in_new_process(program, cache) for _ in range(STARTS)])
            shutil.rmtree(cache, ignore_errors=True)

    def _compile_in_new_process(self, program: Program, cache: Path) -> float:
        """Seconds of the first compilation of a process, without its imports."""
        with self._new_process(OURS, cache, forked=True) as worker:
            return float(worker.ask("open", program))

    def _measure_memory(self, program: Program, with_xla: bool, memory: Memory) -> None:
        """In new processes, whose memory no earlier program has shaped."""
        for name in [OURS, XLA] if with_xla else [OURS]:
            with self._new_process(name, self._scratch / "warm") as worker:
                worker.ask("open", program)
                for figures, command in ((memory.declared, "declared_memory"), (memory.measured, "peak_of_call")):
                    if (size := worker.ask(command)) is not None:
                        figures[name] = size

    @contextmanager
    def _new_process(self, name: str, cache: Path, *, forked: bool = False) -> Iterator[Worker]:
        worker = self._worker(name, cache, forked=forked)
        try:
            worker.ask("start")
            yield worker
        finally:
            worker.close()

    def _bound(self, case: Case, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Bound | None:
        """What the machine's limits say about the case, if they say anything."""
        read = written = 0
        if case.workload.moves_memory:
            read, written = (sum(array.nbytes for array in arrays) for arrays in (inputs, results))
        double = any(array.dtype == np.float64 for array in inputs)
        return self._limits.bound(case.operations(), read, written, double=double)

    def _worker(self, name: str, cache: Path, *, forked: bool = False) -> Worker:
        environment = {"XLAPY_CACHE_DIR": str(cache), "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
        return Worker(name, environment=environment, core=self._core, forked=forked)

    def _used(self) -> float:
        return total_cpu_seconds(worker.process for worker in (*self._workers.values(), self._machine))


@contextmanager
def _tolerated(outcome: Outcome, name: str) -> Iterator[None]:
    """A worker that fails at tidying up after a case is noted, no more."""
    try:
        yield
    except WorkerError as error:
        outcome.missing.setdefault(name, str(error))


Progress = Callable[[int, int, Case], None]


def run_all(bench: Bench, cases: Sequence[Case], progress: Progress) -> Iterator[Outcome]:
    for number, case in enumerate(cases, 1):
        progress(number, len(cases), case)
        yield bench.run(case)
