"""Constant folding: what depends on constants alone is computed now, by the reference evaluator.

    a = s32[2] constant({1, 2})
    b = s32[2] constant({3, 4})
    ROOT c = s32[2] add(a, b)        becomes        ROOT c = s32[2] constant({4, 6})

Only operations that have one right answer are folded: integers, data movement, and correctly rounded float
operations. So folding changes no bit. Results beyond a bound stay, as do broadcasts: they are cheaper to compute than
to load. Operations on repeated numbers are folded at any size, as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xlapy.hlo.evaluate.base import EVALUATORS
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import NUMBERS, number_of
from xlapy.hlo.shape import Shape
from xlapy.passes.base import ComputationPass, pinned, replace_all

CORRECTLY_ROUNDED = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "remainder", "sqrt", "negate", "abs", "sign", "maximum", "minimum"),
        *("ceil", "floor", "round-nearest-afz", "round-nearest-even", "is-finite", "reduce-precision", "convert"),
        *("compare", "select", "clamp", "copy", "complex", "real", "imag"),
    )
)
MOVEMENT = frozenset(("dynamic-slice", "dynamic-update-slice", "bitcast-convert"))


@dataclass
class ConstantFolding(ComputationPass):
    """`bound` is the largest number of elements of a result that is folded."""

    name: ClassVar[str] = "fold-constants"

    bound: int = 1 << 16

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements: dict[Instruction, Instruction] = {}
        for instruction in computation.post_order():
            operands = [replacements.get(operand, operand) for operand in instruction.operands]
            if not all(operand.opcode in NUMBERS for operand in operands):
                continue
            if instruction in fixed or not _is_foldable(instruction):
                continue
            folded = self._fold(instruction, operands)
            if folded is not None:
                replacements[instruction] = folded
        replace_all(computation, replacements)
        return computation.remove(replacements)

    def _fold(self, instruction: Instruction, operands: Sequence[Instruction]) -> Instruction | None:
        numbers = [number_of(operand) for operand in operands]
        if Trait.ELEMENTWISE in instruction.spec.traits and all(number is not None for number in numbers):
            return _fold_numbers(instruction, numbers)
        if instruction.shape.size > self.bound or any(operand.opcode != "constant" for operand in operands):
            return None
        values = [operand.attributes["literal"].array for operand in operands]
        return _constant(instruction, EVALUATORS[instruction.opcode](instruction, values))


def _is_foldable(instruction: Instruction) -> bool:
    if instruction.opcode == "broadcast" or instruction.called or instruction.opcode not in EVALUATORS:
        return False
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    if not instruction.operands or not all(shape.is_array and shape.is_static for shape in shapes):
        return False
    if Trait.INDEX_MAP in instruction.spec.traits or instruction.opcode in MOVEMENT:
        return instruction.opcode != "bitcast"
    if Trait.ELEMENTWISE not in instruction.spec.traits:
        return False
    if instruction.opcode in CORRECTLY_ROUNDED:
        return not any(shape.type.is_complex for shape in shapes)
    return not any(shape.type.is_float or shape.type.is_complex for shape in shapes)


def _fold_numbers(instruction: Instruction, numbers: Sequence[Any]) -> Instruction:
    """The operation on one element, repeated."""
    scratch = Computation("scratch")
    scalars = [scratch.add("constant", literal=Literal(number)) for number in numbers]
    scalar = scratch.add_copy(instruction, scalars, Shape.scalar(instruction.shape.type))
    values = [operand.attributes["literal"].array for operand in scalars]
    constant = _constant(instruction, EVALUATORS[scalar.opcode](scalar, values), scalar.shape)
    if instruction.shape.is_scalar:
        return constant
    shape = instruction.shape.without_layout()
    return instruction.parent.add("broadcast", [constant], shape=shape, dimensions=())


def _constant(instruction: Instruction, value: Any, shape: Shape | None = None) -> Instruction:
    shape = shape or instruction.shape.without_layout()
    literal = Literal(np.ascontiguousarray(value).reshape(shape.dims), shape)
    return instruction.parent.add("constant", name=instruction.name, metadata=instruction.metadata, literal=literal)
