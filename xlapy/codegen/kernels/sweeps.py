"""What sweeps over the same rows, or columns, have to do with each other: who computes a value first, and who needs it
again."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from xlapy.codegen.element_graph import between
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import INDEXED_AT_RUN_TIME, RowSpace
from xlapy.hlo.ops import Trait
from xlapy_runtime.records import Record

DEAR = TRANSCENDENTAL | {"divide", "remainder", "sqrt", "map", *INDEXED_AT_RUN_TIME}
"""Ops that take longer than a store and a load."""

MOST_MADE_AGAIN = 4
"""Instructions that take no longer than a store and a load; what is kept competes for the nearest cache."""


class Uses(Record):
    """Sweeps by number: for each value the `first` one that needs it, and for those that are kept from then on the
    `last` one that reads them."""

    first: dict[Instruction, int]
    last: dict[Instruction, int]

    def made_in(self, sweep: int) -> list[Instruction]:
        """What a sweep computes to be kept."""
        return [value for value in self.last if self.first[value] == sweep]


def uses_of_sweeps(space: RowSpace, sweeps: Sequence[Sequence[Instruction]], room: float = math.inf) -> Uses:
    """Who needs what, of sweeps that compute some instructions each. What is dear and needed again is kept, as far as
    there is room (in bytes, for one row)."""
    uses = _uses_within(space, sweeps, math.inf)
    fits = sum(_row_bytes(value, space) for value in uses.last) <= room
    return uses if fits else _uses_within(space, sweeps, room)


def _uses_within(space: RowSpace, sweeps: Sequence[Sequence[Instruction]], room: float) -> Uses:
    """The same, where what is met first gets the room. Of a value that rows need of other rows, nothing is kept."""
    uses = Uses({}, {})
    elsewhere = space.read_elsewhere(between([goal for goals in sweeps for goal in goals], is_parameter))
    for number, goals in enumerate(sweeps):
        pending, seen = [*goals], set(goals)
        while pending:
            value = pending.pop()
            is_again = uses.first.setdefault(value, number) < number
            if value.opcode in ("parameter", "reduce"):
                continue
            if is_again and space.is_full(value) and value not in elsewhere and is_dear(value):
                size = 0 if value in uses.last else _row_bytes(value, space)
                if size <= room:
                    room -= size
                    uses.last[value] = number
                    continue
            pending += [operand for operand in value.operands if operand not in seen]
            seen.update(value.operands)
    for value in [*uses.last]:
        _forget_if_cheap(value, uses)
    return uses


def is_parameter(value: Instruction) -> bool:
    return value.opcode == "parameter"


def _row_bytes(value: Instruction, space: RowSpace) -> int:
    return value.shape.bytes // space.rows


def _forget_if_cheap(value: Instruction, uses: Uses) -> None:
    """Keeps a value no longer if few instructions make it from others that are kept: these are then read instead."""
    kept = uses.last.keys() - {value}
    inside = between([value], lambda i: i in kept or i.opcode in ("parameter", "reduce"))
    sources = [i for i in inside if i in kept]
    made = [i for i in inside if i.shape.dims == value.shape.dims and i.operands and i.opcode != "broadcast"]
    if sources and len(made) - len(sources) <= MOST_MADE_AGAIN and not is_dear(value, kept):
        last = uses.last.pop(value)
        uses.last.update((source, max(last, uses.last[source])) for source in sources)


def readers_of_sweeps(
    space: RowSpace, sweeps: Sequence[Sequence[Instruction]], kept: Sequence[Sequence[Instruction]]
) -> dict[Instruction, tuple[int, ...]]:
    """The sweeps that read each operand that is a whole array. `sweeps` compute some instructions each, and leave those
    in `kept` for later ones."""
    readers: dict[Instruction, tuple[int, ...]] = {}
    for number, sources in enumerate(sources_of_sweeps(sweeps, kept)):
        for source in sources:
            if source.opcode == "parameter" and space.is_full(source):
                readers[source] = (*readers.get(source, ()), number)
    return readers


def sources_of_sweeps(
    sweeps: Sequence[Sequence[Instruction]], kept: Sequence[Sequence[Instruction]]
) -> list[tuple[Instruction, ...]]:
    """What each sweep begins with: operands, the results of folds, and what earlier sweeps left in `kept`."""
    found = []
    stored: set[Instruction] = set()
    for goals, left in zip(sweeps, kept, strict=True):

        def is_source(value: Instruction) -> bool:
            return value.opcode in ("parameter", "reduce") or value in stored

        found.append(tuple(filter(is_source, between(goals, is_source))))
        stored.update(left)
    return found


def is_dear(value: Instruction, known: Collection[Instruction] = ()) -> bool:
    """Computing an element again takes longer than reading it, even if it is made from others that are `known`."""
    if value.shape.type.is_complex:
        return False
    inside = between([value], lambda instruction: instruction in known or instruction.opcode in ("parameter", "reduce"))
    return any(
        instruction.opcode in DEAR
        or (Trait.INDEX_MAP in instruction.spec.traits and instruction.opcode not in ("broadcast", "reshape"))
        for instruction in inside
        if instruction.shape.dims == value.shape.dims and instruction not in known
    )
