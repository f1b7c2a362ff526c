"""Scalars of straight-line code; functions of several of them share a vector.

    a = sin(b); c = b + d; e = sin(c)        becomes        c = b + d; a, e = sin(<b, c>)

A function takes dozens of instructions, in a vector as in a scalar register, so that two cost little more than one.
Functions that are the same and as many functions away from what the code begins with do not depend on each other. Where
the first of such a group comes, what the others need is computed early, and then all of them. Nothing but registers
shows it: what memory must hold is stored where it is due.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from xlapy.codegen.elements import emit_element
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import Value
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element, constant_element, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import SCALAR_RENAMING, region_functions
from xlapy.hlo.leaves import origin_of_leaf
from xlapy.hlo.ops import Trait

_LEAST_BYTES = 16
"""Of a vector; shorter ones are computed in registers of this size."""

_MOST_BYTES = 32
"""Lanes go in and out one by one, with scalars around them: longer vectors wait for more of these, and while they are
computed, one unit less is there for scalars (Sapphire Rapids: 16 sines of f32 in each step of a loop 0.77 of the time
that vectors of 64 bytes take, 60 of them 0.72)."""


def is_scalar_operation(instruction: Instruction) -> bool:
    """It is done in registers: element-wise, and no map whose region is a function."""
    is_elementwise = instruction.shape.is_scalar and Trait.ELEMENTWISE in instruction.spec.traits
    return is_elementwise and not region_functions(instruction)


class ScalarCode:
    """The scalars of one part of a computation while it is written, instruction by instruction."""

    def __init__(self, frame: Frame, part: Sequence[Instruction], target: Target) -> None:
        self._frame = frame
        self._target = target
        self._number = {instruction: number for number, instruction in enumerate(part)}
        self._pending = set(part)
        self._early: dict[Instruction, Element] = {}
        self._groups: dict[Hashable, list[Instruction]] = {}
        self._kinds: dict[Instruction, Hashable] = {}
        for instruction, level in self._levels(part):
            if _is_function(instruction):
                kind = self._kinds[instruction] = (*_kind(instruction), level)
                self._groups.setdefault(kind, []).append(instruction)

    def _levels(self, part: Sequence[Instruction]) -> Iterable[tuple[Instruction, int]]:
        """How many functions there are, at most, on the way to the result of each instruction."""
        levels: dict[Instruction, int] = {}
        for instruction in part:
            origins = (origin for origin in _origins(instruction) if origin in self._number)
            level = max((levels[origin] for origin in origins), default=0) + _is_function(instruction)
            levels[instruction] = level
            yield instruction, level

    def write(self, instruction: Instruction) -> None:
        """A scalar operation, where it is due."""
        element = self._early.pop(instruction, None)
        self._frame.bind(instruction, 0, self._element(instruction) if element is None else element)

    def written(self, instruction: Instruction) -> None:
        """What comes later may use its result."""
        self._pending.discard(instruction)

    def _element(self, instruction: Instruction) -> Element:
        """The value of a scalar operation whose operands are known."""
        group = self._groups.get(self._kinds.get(instruction))
        if group and len(group) > 1 and instruction in group:
            self._compute(group, instruction)
            found = self._early.pop(instruction, None)
            if found is not None:
                return found
        return _scalar_element(self._frame, instruction)

    def _compute(self, group: list[Instruction], first: Instruction) -> None:
        """As many functions of a group as fill a vector, `first` among them; if there are no others, none."""
        bits = _register_bits(first)
        most = min(self._target.lanes(bits), _MOST_BYTES * 8 // bits)
        chosen, needed = [first], set[Instruction]()
        for other in group:
            if other is not first and len(chosen) < most and self._add_needed(other, needed):
                chosen.append(other)
        if len(chosen) == 1:
            return
        for other in chosen:
            group.remove(other)
        for instruction in sorted(needed, key=self._number.__getitem__):
            if instruction not in self._early:
                element = self._early[instruction] = self._element(instruction)
                self._frame.define(instruction, 0, element)
        lanes = max(1 << (len(chosen) - 1).bit_length(), _LEAST_BYTES * 8 // bits)
        operands = [self._gathered(scalars, lanes) for scalars in zip(*(one.operands for one in chosen), strict=True)]
        result = emit_element(self._frame.k, first, operands)
        assert isinstance(result, Value)
        for lane, other in enumerate(chosen):
            element = self._early[other] = self._frame.k.extract(result, lane)
            self._frame.define(other, 0, element)

    def _add_needed(self, instruction: Instruction, needed: set[Instruction]) -> bool:
        """Adds the scalar operations that must be computed before `instruction` can be, unless there are others."""
        found, unseen = set[Instruction](), [instruction]
        while unseen:
            for origin in _origins(unseen.pop()):
                if origin in self._pending and origin not in needed and origin not in found:
                    if origin in self._early:
                        continue
                    if not _is_movable(origin):
                        return False
                    found.add(origin)
                    unseen.append(origin)
        needed |= found
        return True

    def _gathered(self, scalars: Sequence[Instruction], lanes: int) -> Value:
        """The scalars in a vector; the lanes behind them hold the first one, whose function is computed anyway."""
        k = self._frame.k
        first, *others = map(self._frame.scalar, scalars)
        assert isinstance(first, Value)
        vector = k.splat(first, lanes)
        for lane, value in enumerate(others, start=1):
            assert isinstance(value, Value)
            vector = k.insert(vector, value, lane)
        return vector


def _scalar_element(frame: Frame, instruction: Instruction) -> Element:
    if instruction.opcode == "constant":
        literal = instruction.attributes["literal"]
        return constant_element(frame.k, literal.shape.type, literal.scalar())
    operands = [frame.scalar(operand) for operand in instruction.operands]
    if instruction.opcode == "map":
        return emit_region(frame.k, instruction.called[0], operands)[0]
    if instruction.opcode in SCALAR_RENAMING:
        return operands[0]
    return emit_element(frame.k, instruction, operands)


def _origins(instruction: Instruction) -> list[Instruction]:
    """What computes the operands, if these are arrays."""
    return [origin_of_leaf(operand, 0)[0] for operand in instruction.operands if operand.shape.is_array]


def _is_movable(instruction: Instruction) -> bool:
    """It may be computed earlier than planned: it reads scalars and writes a register."""
    if not instruction.shape.is_scalar:
        return False
    return instruction.opcode == "constant" or is_scalar_operation(instruction)


def _is_function(instruction: Instruction) -> bool:
    return (
        instruction.opcode in TRANSCENDENTAL and instruction.shape.is_scalar and not instruction.shape.type.is_complex
    )


def _kind(instruction: Instruction) -> tuple[Hashable, ...]:
    """Equal for functions that the same code computes."""
    types = tuple(operand.shape.type for operand in instruction.operands)
    return instruction.opcode, instruction.shape.type, types, tuple(instruction.attributes.items())


def _register_bits(instruction: Instruction) -> int:
    return register_type(instruction.shape.type).bits
