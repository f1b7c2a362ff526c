"""Applying scalar computations to many elements at once.

A region made of element-wise operations on scalars means the same for arrays, element by element, so it is evaluated
once for a whole array. Any other region is run for each element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.evaluate.base import EVALUATORS, Value, align
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait

_PLUMBING = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def applies_to_arrays(computation: Computation) -> bool:
    """Whether every operation of a region of scalars is element-wise and calls nothing."""
    return all(
        instruction.opcode in _PLUMBING
        or (Trait.ELEMENTWISE in instruction.spec.traits and not instruction.called and instruction.shape.is_scalar)
        for instruction in computation
    )


def apply_to_arrays(computation: Computation, arguments: Sequence[Array]) -> Value:
    """The results of a region that `applies_to_arrays`, at every index of the arguments."""
    values: dict[Instruction, Value] = dict(zip(computation.parameters, align(*arguments), strict=True))
    for instruction in computation.post_order():
        if instruction not in values:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction] = EVALUATORS[instruction.opcode](instruction, operands)
    return values[computation.root]


def binary_operation(computation: Computation) -> Instruction | None:
    """The only operation of a region that folds two scalars by one commutative operation, if it is one."""
    root = computation.root
    if Trait.COMMUTATIVE in root.spec.traits and len(computation) == len(computation.parameters) + 1 == 3:
        return root if set(root.operands) == set(computation.parameters) else None
    return None
