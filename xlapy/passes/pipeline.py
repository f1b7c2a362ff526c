"""How passes run: in order, watched, and with everything they did on record.

A pipeline is data: steps, and switches that say how closely to watch. It times every pass, and can verify the module
and check that `run` told the truth, dump the module after every change, leave passes out, and stop after the n-th
change so that a wrong result is traced to one change by bisection.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from xlapy.hlo.graph import HloModule
from xlapy.passes.base import Pass, Record
from xlapy.support.dump import DumpFolder
from xlapy.support.errors import InternalError
from xlapy.support.timing import Timings


@dataclass(frozen=True)
class FixedPoint:
    """Passes that run again and again until a whole round changes nothing, at most `bound` rounds.

    In a group that is `led`, the others only follow up on what the first one changed: they run where it did."""

    name: str
    passes: tuple[Pass, ...]
    bound: int = 8
    led: bool = False


Step: TypeAlias = Pass | FixedPoint


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Every `first` runs before any `then`, because... Compared by identity: each compilation looks its orders up."""

    first: type[Pass]
    then: type[Pass]
    because: str


@dataclass(frozen=True, slots=True)
class Checks:
    """How a module is examined after a change: its validity, and a value that changes when it does."""

    verify: Callable[[HloModule], None]
    structure: Callable[[HloModule], object]


class PassRun(NamedTuple):
    """One run of one pass: the group it ran in (or ""), whether it changed the module, how long it took."""

    number: int
    group: str
    name: str
    changed: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Watch:
    """How closely a run is watched. The default: not at all. `observe` sees the module after every change."""

    checks: Checks | None = None
    dump: DumpFolder | None = None
    to_text: Callable[[HloModule], str] | None = None  # what is dumped
    disabled: str = ""  # regular expression: optional passes whose whole name it matches are left out
    stop_after: int | None = None  # number of changes by optional passes after which no optional pass runs
    observe: Callable[[PassRun, HloModule], None] | None = None

    def allows(self, name: str, changes: int) -> bool:
        """Whether an optional pass of that name is not left out, behind so many changes by others."""
        if self.stop_after is not None and changes >= self.stop_after:
            return False
        return not (self.disabled and re.fullmatch(self.disabled, name))


@dataclass(slots=True)
class PipelineReport:
    """What happened: every run in order, the records of each pass by name, and how often each law fired."""

    runs: list[PassRun] = field(default_factory=list)
    records: dict[str, list[Record]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    unfinished: list[str] = field(default_factory=list)  # groups that still changed in their last round
    optional_changes: int = 0  # by passes that are not required

    @property
    def changes(self) -> int:
        return sum(run.changed for run in self.runs)

    def timings(self) -> Timings:
        """Time by pass."""
        timings = Timings()
        for run in self.runs:
            timings.add(run.name, run.seconds)
        return timings


@dataclass(frozen=True)
class Pipeline:
    """Steps in order. Building one checks the constraints of `order` that concern its passes."""

    name: str
    steps: tuple[Step, ...]
    order: Sequence[Order] = ()
    watch: Watch = Watch()

    def __post_init__(self) -> None:
        check_order(list(self.passes()), self.order)

    def passes(self) -> Iterator[Pass]:
        """Every pass in order, those of groups once."""
        for step in self.steps:
            yield from step.passes if isinstance(step, FixedPoint) else (step,)

    def run(self, module: HloModule) -> PipelineReport:
        """Changes `module` in place and returns what was done.

        Raises InternalError, naming the pass, when checks are on and a pass leaves an invalid module or lies about
        having changed it."""
        run = _Run(module, self.watch)
        for step in self.steps:
            if isinstance(step, FixedPoint):
                run.fixed_point(step)
            else:
                run.apply(step, "")
        return run.report


def check_order(passes: Sequence[Pass], order: Sequence[Order]) -> None:
    """Raises InternalError when two passes stand in the wrong order."""
    _check_kinds(tuple(map(type, passes)), tuple(order))


@lru_cache(maxsize=64)
def _check_kinds(kinds: tuple[type[Pass], ...], order: tuple[Order, ...]) -> None:
    """Looks at an order once: nearly every compilation has the same."""
    for rule in order:
        firsts = [place for place, kind in enumerate(kinds) if issubclass(kind, rule.first)]
        thens = [place for place, kind in enumerate(kinds) if issubclass(kind, rule.then)]
        if firsts and thens and firsts[-1] > thens[0]:
            raise InternalError(f"{rule.first.name} must run before {rule.then.name}: {rule.because}")


class _Run:
    """The state of one run of a pipeline."""

    def __init__(self, module: HloModule, watch: Watch) -> None:
        self.module = module
        self.watch = watch
        self.report = PipelineReport()
        self.opcodes = module.opcodes()
        self.structure = watch.checks.structure(module) if watch.checks else None

    def fixed_point(self, group: FixedPoint) -> None:
        """Runs the group until every pass in turn, or the first one of a led group, finds nothing to do."""
        idle = 0  # passes in a row that have nothing to do
        for _ in range(group.bound):
            for step in group.passes:
                changed = self.apply(step, group.name)
                idle = int(step.comes_to_rest) if changed else idle + 1
                is_over = group.led and not changed and step is group.passes[0]
                if is_over or idle >= len(group.passes):
                    return
        self.report.unfinished.append(group.name)

    def apply(self, step: Pass, group: str) -> bool:
        if not self.is_wanted(step):
            return False
        number = len(self.report.runs)
        may_change = step.may_change(self.opcodes)
        if not may_change and self.watch.checks is None:
            self.report.runs.append(PassRun(number, group, step.name, False, 0.0))
            return False
        begin = time.perf_counter()
        changed = step.run(self.module)
        if changed:
            if not may_change:
                raise InternalError(f"pass {step.name} changed the module, which has none of its ops")
            self.opcodes = self.module.opcodes()
        seconds = time.perf_counter() - begin
        ran = PassRun(number, group, step.name, changed, seconds)
        self.report.runs.append(ran)
        if step.counts:
            self.report.counts.update(step.take_counts())
        if step.records:
            self.report.records.setdefault(step.name, []).extend(step.take_records())
        self.report.optional_changes += changed and not step.required
        if self.watch.checks is not None:
            self.check(self.watch.checks, step, changed)
        if changed:
            self.dump(number, group, step)
            if self.watch.observe is not None:
                self.watch.observe(ran, self.module)
        return changed

    def is_wanted(self, step: Pass) -> bool:
        return step.required or self.watch.allows(step.name, self.report.optional_changes)

    def check(self, checks: Checks, step: Pass, changed: bool) -> None:
        before, self.structure = self.structure, checks.structure(self.module)
        if changed != (before != self.structure):
            claim = "changed the module without saying so" if not changed else "says it changed the module, but did not"
            raise InternalError(f"pass {step.name} {claim}")
        if changed:
            try:
                checks.verify(self.module)
            except Exception as error:
                raise InternalError(f"pass {step.name} left an invalid module: {error}") from error

    def dump(self, number: int, group: str, step: Pass) -> None:
        folder, to_text = self.watch.dump, self.watch.to_text
        if folder is not None and to_text is not None and folder.wants(group, step.name):
            folder.write(number, group, step.name, suffix="hlo", text=to_text(self.module))
