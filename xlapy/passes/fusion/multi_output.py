"""Multi-output fusion: two loop kernels over the same index space become one that stores several results.

    a = f32[n] add(x, y)      ...stored for a dot
    b = f32[n] multiply(a, x)             becomes        (a, b) = fusion(x, y)

What both read is then read once, and what one reads from the other not at all. Everything stored has a level above
the levels of what it reads. Two kernels may merge when there is room for a level between all that they read and all
that reads them: then no cycle can arise, and no search for paths is needed. Siblings merge when they read a common
array.
"""

from __future__ import annotations

from collections.abc import Iterable

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_blocked_transpose
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Dims
from xlapy.hlo.views import is_part
from xlapy.passes.base import Record
from xlapy.passes.fusion.cost import memory_bytes
from xlapy.passes.fusion.plan import IDENTITY, FusionPlan, Group, is_made_of_rows

MAX_CONSUMERS_TRIED = 8  # of one producer: values with thousands of readers exist


def merge_outputs(plan: FusionPlan) -> None:
    """Merges groups of `plan` where that saves memory traffic and is legal."""
    stored = _Stored(plan)
    for group in list(plan.groups()):
        if _is_mergeable(group):
            _merge_into_consumer(stored, group)
    _merge_siblings(stored)


class _Stored:
    """The instructions that are stored: their levels, their groups, and who reads them."""

    def __init__(self, plan: FusionPlan) -> None:
        self.plan = plan
        self.group_of: dict[Instruction, Group] = {group.root: group for group in plan.groups()}
        self.readers: dict[Instruction, list[Instruction]] = {}
        self._levels: dict[Instruction, float] = {}
        for instruction in plan.order:
            group = self.group_of.get(instruction)
            if group is not None:
                self._enter(instruction, (*group.inputs, *instruction.control_predecessors))
                group.level = self._levels[instruction]
            elif instruction not in plan.groups_of:
                self._enter(instruction, (*instruction.operands, *instruction.control_predecessors))

    def _enter(self, instruction: Instruction, sources: Iterable[Instruction]) -> None:
        self._levels[instruction] = 1.0 + max((self._levels[source] for source in sources), default=0.0)
        for source in dict.fromkeys(sources):
            self.readers.setdefault(source, []).append(instruction)

    def level(self, instruction: Instruction) -> float:
        group = self.group_of.get(instruction)
        return group.level if group else self._levels[instruction]

    def common_level(self, first: Group, second: Group) -> float | None:
        """A level above all that the two groups read and below all that reads them; None if there is none."""
        roots = {*first.roots, *second.roots}
        inputs = {*first.inputs, *second.inputs} - roots
        readers = [reader for root in roots for reader in self.readers.get(root, ())]
        outside = [reader for reader in readers if self.group_of.get(reader) not in (first, second)]
        lowest = max((self.level(instruction) for instruction in inputs), default=0.0)
        highest = min((self.level(reader) for reader in outside), default=lowest + 2.0)
        middle = (lowest + highest) / 2
        return middle if lowest < middle < highest else None

    def try_merge(self, kept: Group, other: Group, reason: str) -> bool:
        """Moves everything of `other` into `kept`, if that is legal and fits one kernel."""
        fits = kept.fits_with(other, self.plan.limits, outputs=len(kept.roots) + len(other.roots))
        fits = fits and _keeps_in_registers(kept, other) and _keeps_in_registers(other, kept)
        level = self.common_level(kept, other) if fits else None
        if level is None:
            return False
        kept.level = level
        first, second, place = kept.root.name, other.root, self.plan.computation.name
        self.plan.records.append(Record(first, True, reason, place, second.metadata, second.name))
        self.plan.absorb(kept, other)
        kept.roots += other.roots
        self.group_of.update(dict.fromkeys(other.roots, kept))
        return True


def _is_mergeable(group: Group) -> bool:
    is_loop = group.kind is FusionKind.LOOP and not group.updates_in_place
    is_read_in_place = len(group.maps) == 1 and is_part(group.root)
    return is_loop and not (is_read_in_place or is_blocked_transpose(group.root) or is_made_of_rows(group.root))


def _merge_into_consumer(stored: _Stored, producer: Group) -> None:
    """Merges a producer that is stored for others too with a consumer that reads it point by point."""
    root = producer.root
    for reader in stored.readers.get(root, ())[:MAX_CONSUMERS_TRIED]:
        consumer = stored.group_of.get(reader)
        if consumer is None or consumer is producer or not _reads_point_by_point(consumer, root):
            continue
        if stored.try_merge(consumer, producer, f"{consumer.root.name} reads {root.name} while it is in registers"):
            return


def _keeps_in_registers(consumer: Group, producer: Group) -> bool:
    """What `consumer` reads of `producer` it would find in registers, or elsewhere as well: one kernel of both computes
    nothing again."""
    if all(Trait.INDEX_MAP in member.spec.traits for member in producer.maps):
        return True
    return all(_reads_point_by_point(consumer, root) for root in producer.roots if root in consumer.inputs)


def _reads_point_by_point(consumer: Group, root: Instruction) -> bool:
    """Every read of `root` in `consumer` is at the point of the index space that is being computed."""
    if not _is_mergeable(consumer) or consumer.root.shape.dims != root.shape.dims:
        return False
    return all(
        consumer.maps[user] == {IDENTITY} and Trait.INDEX_MAP not in user.spec.traits and user.opcode != "dynamic-slice"
        for user in consumer.readers_of(root)
    )


def _merge_siblings(stored: _Stored) -> None:
    reading: dict[tuple[Dims, Instruction], Group] = {}
    for group in list(stored.plan.groups()):
        if not _is_mergeable(group):
            continue
        dims, size = group.root.shape.dims, group.root.shape.size
        keys = [(dims, instruction) for instruction in group.inputs if memory_bytes(instruction) >= size]
        home = next((reading[key] for key in keys if key in reading), group)
        if home is not group:
            common = ", ".join(instruction.name for instruction in group.inputs if instruction in home.inputs)
            if stored.try_merge(home, group, f"both read {common}"):
                group = home
        reading.update(dict.fromkeys(keys, group))
