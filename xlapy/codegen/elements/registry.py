"""Emitters of element-wise ops: one function per op, for scalars and vectors alike.

    @element("add")
    def add(e: Emission, x: Element, y: Element) -> Element: ...

An emitter gets the operands in registers (see `registers`) with equal lanes, and returns the result in a register. It
does not round narrow results: `emit_element` does, once, unless the emitter is `exact` (its result is always an
operand's value, or its negation ...).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import NamedTuple

from xlapy.codegen.elements.ranges import is_exactly_scaled, note_range
from xlapy.codegen.ir import IRType, KernelBuilder, Value
from xlapy.codegen.registers import (
    Element,
    Pair,
    is_positive_zero,
    is_rounded,
    lanes_of,
    note_rounded,
    register_type,
    rounded,
    splat,
    with_zero_added,
)
from xlapy.hlo.element_types import BF16, F16, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS
from xlapy.support.registry import Registry


class Emission(NamedTuple):
    """What an element emitter works with: the builder, the instruction, and how many lanes."""

    k: KernelBuilder
    instruction: Instruction
    lanes: int

    @property
    def result_type(self) -> ElementType:
        return self.instruction.shape.type

    @property
    def operand_type(self) -> ElementType:
        return self.instruction.operands[0].shape.type

    @property
    def register(self) -> IRType:
        """The IR type of the result (of its parts)."""
        return register_type(self.result_type, self.lanes)


ElementEmitter = Callable[..., Element]
ELEMENTS: Registry[ElementEmitter] = Registry("native elements", OPS)
EXACT: set[str] = set()
SIGN_CHANGES: set[str] = set()  # exact for floats that have numbers and zeros of both signs
SMOOTH: set[str] = set()  # functions that `NarrowFloat.round_smooth` is for
_SIGNED_FLOATS = (BF16, F16)


def element(
    *names: str, exact: bool = False, changes_sign: bool = False, smooth: bool = False
) -> Callable[[ElementEmitter], ElementEmitter]:
    """Registers the emitter of each of `names`."""

    def register(emitter: ElementEmitter) -> ElementEmitter:
        for name in names:
            ELEMENTS.add(name, emitter)
            if exact:
                EXACT.add(name)
            if changes_sign:
                SIGN_CHANGES.add(name)
            if smooth:
                SMOOTH.add(name)
        return emitter

    return register


def emit_element(
    k: KernelBuilder, instruction: Instruction, operands: Sequence[Element], *, unrounded: bool = False
) -> Element:
    """The value of an element-wise instruction for operands in registers, with as many lanes as the widest operand.

    `unrounded` leaves a narrow float in f32 precision, as accumulators want it."""
    lanes = max(map(lanes_of, operands), default=1)
    spread = [splat(k, operand, lanes) for operand in operands]
    result = ELEMENTS[instruction.opcode](Emission(k, instruction, lanes), *spread)
    if unrounded:
        return result
    value = result if _may_stay(k, instruction) else _rounded_as_it_must(k, instruction, operands, spread, result)
    note_range(k, instruction, spread, value)
    return value


def _may_stay(k: KernelBuilder, instruction: Instruction) -> bool:
    """Whether a narrow float may be what registers have of it. Conversions are asked for, and what looks at bits, or
    stores them, rounds. NaNs look as before (`NarrowFloat.round_result`)."""
    is_inside = k.module.keeps_excess and instruction.users and instruction.opcode != "convert"
    return bool(is_inside) and instruction.shape.type.is_narrow_float


def _rounded_as_it_must(
    k: KernelBuilder,
    instruction: Instruction,
    operands: Sequence[Element],
    spread: Sequence[Element],
    result: Element,
) -> Element:
    """A result that was computed as registers have it. `spread` are the operands in all lanes."""
    type = instruction.shape.type
    if instruction.opcode in EXACT or (instruction.opcode in SIGN_CHANGES and type in _SIGNED_FLOATS):
        return _as_rounded_as(k, result, instruction, operands)
    if not isinstance(result, Pair) and is_exactly_scaled(k, instruction, spread):
        return note_rounded(k, result, type)
    if instruction.opcode == "add" and type.is_narrow_float and isinstance(result, Value):
        for number, other in permutations(spread):
            if is_positive_zero(number) and not isinstance(other, Pair) and is_rounded(k, other, type):
                return with_zero_added(k, other, result, type)
    smooth = instruction.opcode in SMOOTH
    return rounded(k, result, type, of_its_type=_takes_its_type(instruction), smooth=smooth)


def _takes_its_type(instruction: Instruction) -> bool:
    """Whether all floats that the operation takes are of the type of its result."""
    types = {operand.shape.type for operand in instruction.operands}
    return all(type is instruction.shape.type or not (type.is_float or type.is_complex) for type in types)


def _as_rounded_as(k: KernelBuilder, result: Element, instruction: Instruction, operands: Sequence[Element]) -> Element:
    """The result of an exact operation, which is known to be rounded if all operands of its type are."""
    type = instruction.shape.type
    if not type.is_narrow_float or isinstance(result, Pair):
        return result
    values = [
        value
        for operand, value in zip(instruction.operands, operands, strict=True)
        if operand.shape.type is type and not isinstance(value, Pair)
    ]
    known = all(value.constant is not None or is_rounded(k, value, type) for value in values)
    return note_rounded(k, result, type) if values and known else result
