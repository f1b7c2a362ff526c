"""One compilation with everything on record.

Nothing of this is kept while programs are compiled to run: who asks for a report compiles once more, with a `Recorder`
watching the passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xlapy.codegen.program import EmittedProgram
from xlapy.codegen.target import Target
from xlapy.hlo.buffer_plan import BufferPlan, Timeline
from xlapy.hlo.cost import program_cost
from xlapy.hlo.graph import HloModule
from xlapy.hlo.schedule import Schedule
from xlapy.passes.pipeline import PassRun, PipelineReport
from xlapy.passes.rewrite import LawBook

PRINTED_INSTRUCTIONS = 2_000
"""Modules with more are not printed after each pass: that would take longer than compiling them."""


@dataclass(frozen=True, slots=True)
class State:
    """A module at one moment: how many instructions it has of each op, which kernels it would call as it is, and the
    bytes that they would move. `text` is None for a module that is too large to print so often."""

    opcodes: Mapping[str, int]
    kernels: float
    bytes: float
    text: str | None

    @property
    def instructions(self) -> int:
        return sum(self.opcodes.values())

    @staticmethod
    def of(module: HloModule) -> State:
        """The state of a module."""
        cost = program_cost(module.entry)
        opcodes = Counter(instruction.opcode for instruction in module.instructions())
        is_printed = opcodes.total() <= PRINTED_INSTRUCTIONS
        text = module.to_text(layouts=True, large_constants=False) if is_printed else None
        return State(opcodes, cost.kernels, cost.bytes, text)


@dataclass(slots=True)
class Recorder:
    """Keeps the state of a module after every change; `begin` is the one before the first pass."""

    begin: State
    changes: list[tuple[PassRun, State]] = field(default_factory=list)

    def see(self, run: PassRun, module: HloModule) -> None:
        """What a pipeline calls after every change."""
        self.changes.append((run, State.of(module)))


@dataclass(frozen=True, slots=True)
class Observation:
    """A program from the module as it was given (`source`) to the code of its kernels; `laws` are those it was compiled
    with."""

    source: HloModule
    module: HloModule
    passes: PipelineReport
    recorder: Recorder
    schedule: Schedule
    plan: BufferPlan
    timeline: Timeline
    emitted: EmittedProgram
    target: Target
    laws: LawBook

    def before(self, passes: Sequence[str]) -> State:
        """The state before the first change by one of `passes`, or the last one if none of them changed anything."""
        state = self.recorder.begin
        for run, following in self.recorder.changes:
            if run.name in passes:
                break
            state = following
        return state

    @property
    def end(self) -> State:
        """The state behind all passes."""
        return self.recorder.changes[-1][1] if self.recorder.changes else self.recorder.begin
