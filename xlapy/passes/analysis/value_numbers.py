"""Which instructions compute the same value, across the regions of control flow too.

Computations are entered one after the other. What a region is given has the number that it has outside, so that equal
work on both sides of a border is seen; an element of a tuple has the number of what was put there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes.base import pinned
from xlapy.passes.cse import content, kind_of
from xlapy.support.ordering import post_order

Numbers = dict[Instruction, int]


class ValueNumbers:
    """Numbers of values: equal numbers, equal values.

    What runs computations as control flow or has an effect is like nothing else, nor is what a control edge holds."""

    def __init__(self) -> None:
        self._fresh = count()
        self._known: dict[Hashable, int] = {}
        self._elements: dict[int, tuple[int, ...]] = {}
        self._contents: dict[Hashable, int] = {}
        self._identities: dict[Computation, int] = {}

    def fresh(self) -> int:
        """The number of a value like no other."""
        return next(self._fresh)

    def tuple_of(self, elements: Sequence[int]) -> int:
        """The number of a tuple of values."""
        number = self._number(("tuple", *elements))
        self._elements[number] = tuple(elements)
        return number

    def element(self, number: int, index: int) -> int:
        """The number of an element of a tuple."""
        elements = self._elements.get(number)
        return elements[index] if elements is not None else self._number(("element", number, index))

    def enter(self, computation: Computation) -> Numbers:
        """The numbers of the instructions of a computation, whose parameters are like nothing else."""
        numbers = self.enter_region(computation, [self.fresh() for _ in computation.parameters])
        for instruction, number in numbers.items():
            if instruction.opcode == "tuple":
                self._elements.setdefault(number, tuple(numbers[operand] for operand in instruction.operands))
        return numbers

    def enter_region(self, computation: Computation, parameters: Sequence[int]) -> Numbers:
        """The numbers of the instructions of a computation whose parameters have the numbers `parameters`.

        Of tuples only those are looked into that are made outside: their elements are there for sure."""
        numbers = dict(zip(computation.parameters, parameters, strict=True))
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction in fixed or not is_movable(instruction):
                numbers.setdefault(instruction, self.fresh())
            elif instruction not in numbers:
                numbers[instruction] = self._of(instruction, [numbers[operand] for operand in instruction.operands])
        return numbers

    def _of(self, instruction: Instruction, operands: Sequence[int]) -> int:
        if instruction.opcode == "tuple":
            return self._number(("tuple", *operands))
        if instruction.opcode == "get-tuple-element":
            return self.element(operands[0], instruction.attributes["index"])
        for called in instruction.called:
            if called not in self._identities:
                self._identify(called)
        return self._number(kind_of(instruction, operands, self._identities))

    def _number(self, kind: Hashable) -> int:
        number = self._known.get(kind)
        if number is None:
            number = self._known[kind] = self.fresh()
        return number

    def _identify(self, computation: Computation) -> None:
        for called in post_order([computation], Computation.called_computations):
            if called not in self._identities:
                kind = content(called, self._identities)
                self._identities[called] = self._contents.setdefault(kind, len(self._contents))


def is_movable(instruction: Instruction) -> bool:
    """It may be computed elsewhere: pure, and nothing that runs other computations or asks the runtime."""
    return instruction.is_pure and not instruction.spec.traits & _BOUND


_BOUND = frozenset({Trait.CONTROL, Trait.RUNTIME, Trait.COLLECTIVE})
