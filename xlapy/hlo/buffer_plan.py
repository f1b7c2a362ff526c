"""Where every value lives while a program runs, as plain data: decided by buffer assignment, read by codegen.

Each array leaf of an instruction's shape has a location. Leaves that share a location share memory. Codegen copies
where a value must move: into the state of a while, out of a branch, into the results. A rank-0 leaf has a location
too, which is used only when its value must be in memory.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from xlapy.hlo.graph import Computation, Instruction
from xlapy.support.records import Record, field


class Home(enum.Enum):
    """Which block of memory a location lies in."""

    PARAMETER = "parameter"  # index: leaf of the entry's parameters; borrowed from the caller, never written
    RESULT = "result"  # index: leaf of the entry's result; fresh for each call, or the memory of a donated parameter
    CONSTANT = "constant"  # index: in the plan's table of constants; never written
    ARENA = "arena"  # index: byte offset in the arena of the call


@dataclass(frozen=True, slots=True)
class Location:
    """A place in memory: a block and an index (or byte offset) in it. A part of an array (`hlo/views.py`) begins
    `start` bytes behind where the array does."""

    home: Home
    index: int
    start: int = 0

    def __str__(self) -> str:
        return f"{self.home.value}[{self.index}]" + (f"+{self.start}" if self.start else "")


class Scratch(Record):
    """Memory that an instruction uses while it runs, besides operands and results."""

    location: Location
    bytes: int


class Lifetime(Record):
    """A block of the arena and when it is needed: `ranges` of points, first and last, ascending.

    `owners` are the instructions whose values, or whose scratch memory, take turns in it."""

    offset: int
    bytes: int
    ranges: tuple[tuple[int, int], ...]
    owners: tuple[Instruction, ...]


class Timeline(Record):
    """The arena over time. `points` numbers the instructions in the order in which the program comes to them."""

    points: Mapping[Instruction, int]
    lifetimes: tuple[Lifetime, ...]


FunctionPlans = Mapping[Computation, "BufferPlan"]
"""The plans of region functions."""


class BufferPlan(Record, eq=False):
    """The memory of one program.

    `leaves` lists, for every instruction that runs, one entry per leaf of its shape, depth first: a location, or None
    for a token. `scratch` is the memory that kernels work in. `constants` are the constant instructions in the order of
    their indices, those of region functions included. `live_bytes` is the largest sum of bytes that are live at once:
    no assignment needs less than that. `functions` are the plans of region functions: their parameters and results are
    scalars in memory of the caller, and each task that calls one gives it an arena of its own, out of the scratch
    memory of the instruction. `donations` are the results, by number of the array leaf, that live in the memory of a
    parameter, which the caller must give them: that parameter has the result's location."""

    leaves: Mapping[Instruction, tuple[Location | None, ...]]
    constants: tuple[Instruction, ...]
    arena_bytes: int
    live_bytes: int
    scratch: Mapping[Instruction, Scratch] = field(default_factory=dict)
    functions: FunctionPlans = field(default_factory=dict)
    donations: Mapping[int, int] = field(default_factory=dict)

    def location(self, instruction: Instruction, leaf: int = 0) -> Location:
        """The location of an array leaf."""
        location = self.leaves[instruction][leaf]
        assert location is not None, f"leaf {leaf} of {instruction} is a token"
        return location
