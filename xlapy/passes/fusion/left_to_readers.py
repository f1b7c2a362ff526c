"""What a chain of rows leaves to its readers: values that they make of others as cheaply as they would read them.

    m = f32[n] reduce(x, zero), dimensions={1}, to_apply=sum      in a kernel over rows
    e = f32[n,c] exponential(x)                                   too, and stored for a kernel that is behind it
    d = f32[n,c] multiply(two, e)                                 the same kernel needs this
    b = f32[n,c] broadcast(m)                                     and this

The kernel stores e and m, but neither d nor b: who needs them multiplies by two, and reads the number of the row. So
are the gradients of normalizations: of five arrays that they read, what is normalized and two numbers of each row say
everything, and all would lie in memory from the forward step to the backward one.

A value is left to its readers if it is made of at most one array that lies in memory anyway, by a few cheap operations,
and if all that reads it from memory can make it, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import FOLDS, RowSpace, is_blocked_transpose, is_element_op
from xlapy.passes.fusion.cost import CHEAP, memory_bytes, operation_cost

MOST_STEPS = 3 * CHEAP
"""Operations that readers repeat for an element: to store four bytes and to read them once costs four."""

SMALL_PART = 8
"""A number of each row, or what is the same for all rows, counts as no array where it has one of so many bytes."""


@dataclass
class ChainResults:
    """What a chain stores, and what it leaves to its readers. `members` are in order, operands first; `lies_in_memory`
    says so of what is not a member."""

    members: Sequence[Instruction]
    space: RowSpace
    lies_in_memory: Callable[[Instruction], bool]
    stored: set[Instruction] = field(init=False)
    left: set[Instruction] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._inside = frozenset(self.members)
        self._steps: dict[Instruction, float] = {}
        self.stored = {i for i in self.members if i.is_root or not self._inside.issuperset(i.users)}
        for member in reversed(self.members):
            if member in self.stored and self._is_better_left(member):
                self._leave(member)

    def _is_better_left(self, member: Instruction, *, behind: float = 0.0) -> bool:
        """`behind`: steps that readers make from it in any case."""
        if member.is_root or not self.space.is_full(member) or not is_element_op(member):
            return False
        repeated = [self._steps[user] for user in member.users if user in self.left]
        self._steps[member] = operation_cost(member) + max([behind, *repeated])
        readers = [user for user in member.users if user not in self._inside]
        if self._steps[member] > MOST_STEPS or not all(map(_can_make, readers)):
            return False
        sources = [operand for operand in dict.fromkeys(member.operands) if not _is_small_part(operand, member)]
        return len(sources) <= 1 and all(self._is_source(source, member) for source in sources)

    def _is_source(self, source: Instruction, member: Instruction) -> bool:
        if memory_bytes(source) > member.shape.bytes:
            return False
        if source not in self._inside:
            return self.lies_in_memory(source)
        known = source in self.stored or source in self.left
        return known or self._is_better_left(source, behind=self._steps[member])

    def _leave(self, member: Instruction) -> None:
        """Lets readers make it, and what it is made of; the numbers of rows are stored."""
        self.stored.discard(member)
        self.left.add(member)
        for operand in member.operands:
            if operand in self._inside and operand not in self.stored and operand not in self.left:
                if self.space.is_full(operand):
                    self._steps.setdefault(operand, 0.0)  # of a broadcast
                    self._leave(operand)
                else:
                    self.stored.add(operand)


def _can_make(reader: Instruction) -> bool:
    """It computes what it reads element by element, if that is not in memory."""
    return (is_element_op(reader) or reader.opcode in FOLDS) and not is_blocked_transpose(reader)


def _is_small_part(operand: Instruction, member: Instruction) -> bool:
    return SMALL_PART * memory_bytes(operand) <= member.shape.bytes
