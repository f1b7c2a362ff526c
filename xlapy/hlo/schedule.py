"""The order in which the instructions of each computation run, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xlapy.hlo.graph import Computation, Instruction
from xlapy.support.records import Record, field


class JointRun(Record, eq=False):
    """Kernels that run at the same time, shared out among the threads as one: `members`, one behind the other in the
    order, none of which needs another one. `bytes` are those that they read and write."""

    members: tuple[Instruction, ...]
    bytes: int


class Schedule(Record, eq=False):
    """For each computation that runs as a sequence: all its instructions, each behind what it depends on.

    `joint` has the joint run of each instruction that is in one."""

    order: Mapping[Computation, tuple[Instruction, ...]]
    joint: Mapping[Instruction, JointRun] = field(default_factory=dict)

    def __getitem__(self, computation: Computation) -> tuple[Instruction, ...]:
        return self.order[computation]

    def together(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """What runs at the same time as an instruction, itself included."""
        run = self.joint.get(instruction)
        return (instruction,) if run is None else run.members

    @property
    def joint_runs(self) -> tuple[JointRun, ...]:
        """All of them, in order."""
        return tuple(dict.fromkeys(self.joint.values()))
