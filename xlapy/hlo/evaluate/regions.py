"""Applying scalar computations to many elements at once.

A region made of element-wise operations on scalars means the same for arrays, element by element, so it is evaluated
once for a whole array. Any other region is run for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from xlapy.hlo.evaluate.base import EVALUATORS, Bound, Value, align
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait

_PLUMBING = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


ArrayFunction: TypeAlias = Callable[[Sequence[Array]], tuple[Array, ...]]


def array_function(computation: Computation) -> ArrayFunction | None:
    """What a computation of scalars makes of arrays of one shape, at each index; one array for each of its results.

    None if some operation in it is not element-wise, or calls another computation."""
    if not all(map(_applies_to_arrays, computation)):
        return None
    needed = _needed(computation)
    constants = [instruction for instruction in needed if instruction.opcode == "constant"]
    places = {instruction: place for place, instruction in enumerate((*computation.parameters, *constants))}
    known = [EVALUATORS["constant"](constant, []) for constant in constants]
    steps: list[tuple[Bound, list[int]]] = []
    for instruction in needed:
        if instruction not in places:
            operands = [places[operand] for operand in instruction.operands]
            steps.append((EVALUATORS[instruction.opcode].bind(instruction), operands))
            places[instruction] = len(places)
    root = places[computation.root]

    def apply(arguments: Sequence[Array]) -> tuple[Array, ...]:
        values: list[Value] = [*align(*arguments), *known]
        for evaluate, operands in steps:
            values.append(evaluate([values[place] for place in operands]))
        results = values[root] if isinstance(values[root], tuple) else (values[root],)
        shape = arguments[0].shape
        return tuple([result if result.shape == shape else np.broadcast_to(result, shape) for result in results])

    return apply


def _applies_to_arrays(instruction: Instruction) -> bool:
    if instruction.opcode in _PLUMBING:
        return True
    return Trait.ELEMENTWISE in instruction.spec.traits and not instruction.called and instruction.shape.is_scalar


def _needed(computation: Computation) -> list[Instruction]:
    """The instructions that the root depends on, operands first."""
    needed = {computation.root}
    order = computation.post_order()
    for instruction in reversed(order):
        if instruction in needed:
            needed.update(instruction.operands)
    return [instruction for instruction in order if instruction in needed]


def binary_operation(computation: Computation) -> Instruction | None:
    """The only operation of a region that folds two scalars by one commutative operation, if it is one."""
    root = computation.root
    if Trait.COMMUTATIVE in root.spec.traits and len(computation) == len(computation.parameters) + 1 == 3:
        return root if set(root.operands) == set(computation.parameters) else None
    return None
