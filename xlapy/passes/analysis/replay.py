"""A proof that a buffer plan is right: the schedule is replayed with tags instead of numbers.

Every value that an instruction produces gets a tag, written to its location; writing removes whatever overlaps. Every
read must find the tag of the value that it means. While bodies are replayed twice, so that what one iteration destroys
is missed in the next; what runs together may run in any order; branches of a conditional start from the same memory,
and their results are one value afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xlapy.hlo.buffer_plan import BufferPlan, Home, Location
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.leaves import SAME_VALUE, is_renaming, leaf_count, leaf_offset, result_leaves
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.views import ADDRESS_BYTES, is_part, is_view
from xlapy.support.errors import InternalError

Tag = object
Tags = list[Tag | None]
"""One tag per leaf of a shape; None for tokens and for scalars, which live in registers."""


@dataclass(slots=True)
class _Memory:
    """What lies where: location to size and tag. Blocks other than the arena never overlap each other."""

    places: dict[Location, tuple[int, Tag]] = field(default_factory=dict)

    def write(self, location: Location, size: int, tag: Tag) -> None:
        if location.home is Home.ARENA:
            for other, (other_size, _) in list(self.places.items()):
                if (
                    other.home is Home.ARENA
                    and other.index < location.index + size
                    and location.index < other.index + other_size
                ):
                    del self.places[other]
        self.places[location] = (size, tag)

    def holds(self, location: Location, tag: Tag) -> bool:
        """Whether what has the tag is there, or what the location is a part of."""
        location = replace(location, start=0)
        return location in self.places and self.places[location][1] is tag


@dataclass(slots=True)
class _Replay:
    plan: BufferPlan
    schedule: Schedule
    memory: _Memory = field(default_factory=_Memory)
    viewed: dict[Tag, tuple[Instruction, Tags]] = field(default_factory=dict)  # the arrays that views are parts of

    def run(self, computation: Computation, arguments: Tags) -> Tags:
        values: dict[Instruction, Tags] = {}
        start = 0
        for parameter in computation.parameters:
            count = leaf_count(parameter.shape)
            values[parameter] = arguments[start : start + count]
            start += count
        for instruction in self.schedule[computation]:
            together = self.schedule.together(instruction)
            if len(together) > 1:
                if instruction is together[0]:
                    values.update(self.run_together(together, values))
            elif instruction.opcode != "parameter":
                values[instruction] = self.step(instruction, [values[operand] for operand in instruction.operands])
        self.read(computation.root, values[computation.root], computation.root)
        return values[computation.root]

    def step(self, instruction: Instruction, operands: Sequence[Tags]) -> Tags:
        match instruction.opcode:
            case "tuple":
                return [tag for operand in operands for tag in operand]
            case "get-tuple-element":
                first = leaf_offset(instruction.operands[0].shape, instruction.attributes["index"])
                return operands[0][first : first + leaf_count(instruction.shape)]
            case "send":
                return [*operands[0], None, None]
        if instruction.opcode in SAME_VALUE or is_renaming(instruction):
            return operands[0]
        if is_part(instruction):
            return operands[0]
        self.disturb(instruction)
        for operand, tags in zip(instruction.operands, operands, strict=True):
            self.read(operand, tags, instruction)
        match instruction.opcode:
            case "call":
                return self.run(instruction.called[0], [tag for operand in operands for tag in operand])
            case "conditional":
                return self.conditional(instruction, operands)
            case "while":
                return self.loop(instruction, operands[0])
            case "recv-done":
                return operands[0][:-2] + [None]
        if instruction.spec.has(Trait.START):
            return self.start(instruction, operands)
        if instruction.spec.done_of is not None:
            return operands[0][result_leaves(instruction.operands[0])]
        if is_view(instruction):
            return self.view(instruction, operands[0])
        return self.produce(instruction)

    def run_together(
        self, members: Sequence[Instruction], values: Mapping[Instruction, Tags]
    ) -> dict[Instruction, Tags]:
        """No member of a joint run may write what another one reads or writes: any may be the first."""
        for member in members:
            self.disturb(member)
        before = dict(self.memory.places)
        for writer in members:
            self.memory.places = dict(before)
            self.produce(writer)
            for reader in members:
                for operand in reader.operands if reader is not writer else ():
                    self.read(operand, values[operand], reader)
        self.memory.places = before
        made = {member: self.step(member, [values[operand] for operand in member.operands]) for member in members}
        for member, tags in made.items():
            self.read(member, tags, member)
        return made

    def start(self, instruction: Instruction, operands: Sequence[Tags]) -> Tags:
        """The operands stay where they are; the rest is written."""
        own = [tag for tags in operands for tag in tags][: result_leaves(instruction).start]
        return own + self.produce(instruction, len(own))

    def view(self, instruction: Instruction, whole: Tags) -> Tags:
        """A place for an address; who reads it reads the whole array, too."""
        tag = object()
        self.memory.write(self.plan.location(instruction), ADDRESS_BYTES, tag)
        self.viewed[tag] = instruction.operands[0], whole
        return [tag]

    def disturb(self, instruction: Instruction) -> None:
        """What lies in the scratch memory of an instruction is gone before it has read its operands."""
        if instruction in self.plan.scratch:
            scratch = self.plan.scratch[instruction]
            self.memory.write(scratch.location, scratch.bytes, object())

    def produce(self, instruction: Instruction, first: int = 0) -> Tags:
        """Fresh tags for all leaves from `first` on, written to their locations."""
        tags: Tags = []
        for leaf, shape in enumerate(instruction.shape.leaves()):
            if leaf < first:
                continue
            if not shape.is_array or not shape.rank or not shape.bytes:
                tags.append(None)
                continue
            tag = object()
            self.memory.write(self.plan.location(instruction, leaf), shape.bytes, tag)
            tags.append(tag)
        return tags

    def read(self, instruction: Instruction, tags: Tags, reader: Instruction) -> None:
        """Raises unless every leaf of `instruction` is where the plan says."""
        for leaf, tag in enumerate(tags):
            location = self.plan.leaves[instruction][leaf]
            if tag is not None and (location is None or not self.memory.holds(location, tag)):
                raise InternalError(f"{reader} reads leaf {leaf} of {instruction} at {location}, where it is no more")
            if tag in self.viewed:
                self.read(*self.viewed[tag], reader)

    def move(self, source: Instruction, tags: Tags, target: Instruction) -> Tags:
        """The leaves of `source` become those of `target`, copied where the places differ. Scalars are loaded into
        registers before anything is copied, perhaps from arrays of one element."""
        shapes = target.shape.leaves()
        moved: Tags = [None] * len(tags)
        present = [leaf for leaf, tag in enumerate(tags) if tag is not None]
        for leaf in sorted(present, key=lambda leaf: shapes[leaf].rank > 0):
            tag = tags[leaf]
            origin, goal = self.plan.location(source, leaf), self.plan.location(target, leaf)
            if not self.memory.holds(origin, tag):
                raise InternalError(f"leaf {leaf} of {source} is overwritten before it is moved to {target}")
            if not shapes[leaf].rank:
                continue
            moved[leaf] = tag
            if origin != goal:
                moved[leaf] = object()
                self.memory.write(goal, shapes[leaf].bytes, moved[leaf])
        return moved

    def loop(self, instruction: Instruction, initial: Tags) -> Tags:
        condition, body = instruction.called
        state = self.move(instruction.operands[0], initial, instruction)
        for _ in range(2):
            self.run(condition, state)
            state = self.move(body.root, self.run(body, state), instruction)
        self.run(condition, state)
        return state

    def conditional(self, instruction: Instruction, operands: Sequence[Tags]) -> Tags:
        before = dict(self.memory.places)
        after: list[dict[Location, tuple[int, Tag]]] = []
        for branch, arguments in zip(instruction.called, operands[1:], strict=True):
            self.memory.places = dict(before)
            self.move(branch.root, self.run(branch, arguments), instruction)
            after.append(self.memory.places)
        common = {place: held for place, held in after[0].items() if all(other.get(place) == held for other in after)}
        self.memory.places = common
        return self.produce(instruction)


def check_plan(module: HloModule, schedule: Schedule, plan: BufferPlan) -> None:
    """Raises InternalError, naming the read, if some value is overwritten while it is still needed."""
    for entry, own in ((module.entry, plan), *plan.functions.items()):
        replay = _Replay(own, schedule)
        replay.run(entry, [tag for parameter in entry.parameters for tag in replay.produce(parameter)])
    for result, parameter in plan.donations.items():
        _check_donation(module, plan, result, parameter)


def _check_donation(module: HloModule, plan: BufferPlan, result: int, parameter: int) -> None:
    """Raises unless result and parameter lie where their caller will put both."""
    shared = Location(Home.RESULT, result)
    parameters = [place for one in module.entry.parameters for place in plan.leaves[one] if place is not None]
    results = [place for place in plan.leaves[module.entry.root] if place is not None]
    if parameters[parameter] != shared or results[result] != shared:
        raise InternalError(
            f"result {result} should live in parameter {parameter}, but they are at {results[result]} and "
            f"{parameters[parameter]}"
        )
