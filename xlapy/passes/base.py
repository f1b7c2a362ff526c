"""What a pass is.

A pass is a dataclass whose fields are its options. `run` changes a module in place and says truthfully whether it did.
What it decided on the way, made or refused, goes to `records`, for the report of the pipeline.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import NO_METADATA, Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import sequences


@dataclass(frozen=True, slots=True)
class Record:
    """One decision of a pass: what was done, or deliberately not done, to which instruction, and why.

    `computation` names where the instruction is, `metadata` the line of the user that it came from. `partner` names the
    instruction that became one kernel with it, each with its own result."""

    subject: str
    made: bool
    reason: str
    computation: str = ""
    metadata: OpMetadata = NO_METADATA
    partner: str = ""

    @staticmethod
    def of(instruction: Instruction, made: bool, reason: str) -> Record:
        """The record of a decision about one instruction."""
        return Record(instruction.name, made, reason, instruction.parent.name, instruction.metadata)


def _no_counts() -> dict[str, int]:
    """Counters of anything, that are made where they are asked for: a pipeline has many passes, few of which count."""
    return defaultdict(int)


@dataclass
class Pass(ABC):
    """Changes a module. Subclasses are dataclasses; a `required` one is never switched off: later steps rely on it.

    One that changes nothing in a module that has none of some `ops` names these, and is left out there. One that
    `comes_to_rest` would find nothing to do in what it leaves."""

    name: ClassVar[str]
    required: ClassVar[bool] = False
    comes_to_rest: ClassVar[bool] = False
    ops: ClassVar[Set[str]] = frozenset()

    records: list[Record] = field(default_factory=list, init=False, repr=False, compare=False)
    counts: dict[str, int] = field(default_factory=_no_counts, init=False, repr=False, compare=False)
    """How often each thing with a name happened: each law that fired."""

    @abstractmethod
    def run(self, module: HloModule) -> bool:
        """Runs on the whole module; returns whether anything changed."""

    def may_change(self, opcodes: Set[str]) -> bool:
        """Whether a module with these ops may have something to do for it."""
        return not self.ops or not self.ops.isdisjoint(opcodes)

    def take_records(self) -> list[Record]:
        """The records since the last call."""
        taken, self.records = self.records, []
        return taken

    def take_counts(self) -> dict[str, int]:
        """The counts since the last call."""
        taken, self.counts = self.counts, _no_counts()
        return taken


@dataclass
class ComputationPass(Pass):
    """A pass that looks at one computation at a time, callees first."""

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in module.computations():
            changed = self.run_on(computation) or changed
        return changed

    @abstractmethod
    def run_on(self, computation: Computation) -> bool:
        """Runs on one computation; returns whether anything changed."""


def program_computations(module: HloModule) -> list[Computation]:
    """The entry, what it runs as control flow, and region functions with what they run, callees first: where
    instructions have buffers and become kernels.

    The others are inlined regions (of reduce, map ...) and fused computations: they become part of their caller's
    kernel."""
    reached = {module.entry}
    for computation in reversed(module.computations()):
        if computation in reached:
            for instruction in computation.calling:
                reached.update(sequences(instruction))
    return [computation for computation in module.computations() if computation in reached]


def replace_all(computation: Computation, replacements: Mapping[Instruction, Instruction]) -> bool:
    """Makes users of each key use its value instead (followed to the end of a chain); returns whether there were keys.

    Like `Computation.replace` for many at once, but no key may be at the end of a control edge: see `pinned`."""
    final = {old: _end_of_chain(old, replacements) for old in replacements}
    for user in dict.fromkeys(user for old in final for user in old.users):
        computation.set_operands(user, [final.get(operand, operand) for operand in user.operands])
    if computation.root in final:
        computation.set_root(final[computation.root])
    return bool(final)


def supplant(computation: Computation, replacements: Mapping[Instruction, Instruction]) -> bool:
    """Makes users of each key use its value instead, at the ends of control edges too, and removes the keys; returns
    whether there were any."""
    fixed = pinned(computation)
    for old, new in replacements.items():
        if old in fixed:
            computation.replace(old, new)
    replace_all(computation, {old: new for old, new in replacements.items() if old not in fixed})
    return computation.remove(replacements)


def _end_of_chain(old: Instruction, replacements: Mapping[Instruction, Instruction]) -> Instruction:
    new = old
    while new in replacements:
        new = replacements[new]
    return new


def pinned(computation: Computation) -> set[Instruction]:
    """The instructions at either end of a control edge: passes neither merge, move nor drop them."""
    ends: set[Instruction] = set()
    for instruction in computation.held:
        ends.add(instruction)
        ends.update(instruction.control_predecessors)
    return ends


def needed_by(roots: Iterable[Instruction], but: Set[Instruction] = frozenset()) -> set[Instruction]:
    """`roots` and everything they depend on, through operands and control edges; without `but`, and what only that
    depends on."""
    needed: set[Instruction] = set()
    stack = list(roots)
    while stack:
        instruction = stack.pop()
        if instruction not in needed and instruction not in but:
            needed.add(instruction)
            stack.extend(instruction.operands)
            stack.extend(instruction.control_predecessors)
    return needed


def callers(module: HloModule) -> Mapping[Computation, list[Instruction]]:
    """The instructions that call each computation, callers in the order of the module."""
    found: dict[Computation, list[Instruction]] = {computation: [] for computation in module.computations()}
    for computation in module.computations():
        for instruction in computation.calling:
            for called in dict.fromkeys(instruction.called):
                found[called].append(instruction)
    return found
