"""Conditionals that choose nothing, or too little to branch for.

    ROOT c = f32[] conditional(true, x, y), branch_computations={f, g}     becomes     the body of f, applied to x
    ROOT c = f32[] conditional(p, x, y), branch_computations={abs, sin}    becomes     select(p, abs(x), sin(y))

The branch of a constant selector takes the place of the conditional, as does the only one, or one of several that do
the same with the same operand. A choice between a few operations on scalars is a select: both sides cost less than a
branch, and what uses the result is no longer cut off from what made it. None of them can fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import number_of
from xlapy.passes.base import ComputationPass, pinned
from xlapy.passes.cse import content
from xlapy.passes.fusion.cost import operation_cost


@dataclass
class ConditionalSimplification(ComputationPass):
    name: ClassVar[str] = "simplify-conditionals"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode != "conditional" or instruction in fixed:
                continue
            branch = chosen_branch(instruction)
            if branch is not None:
                result = computation.insert(instruction.called[branch], [instruction.operands[1 + branch]])
            elif _is_select(instruction):
                result = _selected(instruction)
            else:
                continue
            computation.replace(instruction, result)
            computation.remove([instruction])
            changed = True
        return changed


def chosen_branch(conditional: Instruction) -> int | None:
    """The branch that always runs, if that is known."""
    count = len(conditional.called)
    if count == 1 or _are_alike(conditional):
        return 0
    selector = conditional.operands[0]
    number = number_of(selector)
    if number is None:
        return None
    if selector.shape.element_type is PRED:
        return 0 if number else 1
    return int(number) if 0 <= int(number) < count else count - 1


def _are_alike(conditional: Instruction) -> bool:
    """All branches do the same with the same operand."""
    if len({*conditional.operands[1:]}) > 1:
        return False
    first, *others = conditional.called
    if all(branch is first for branch in others):
        return True
    if any(inner.called for branch in conditional.called for inner in branch):
        return False
    return all(content(branch, {}) == content(first, {}) for branch in others)


MOST_SELECTED = 8  # operations of both branches together that a select computes rather than to branch


def _is_select(conditional: Instruction) -> bool:
    """Two branches of a few element-wise operations on scalars."""
    if len(conditional.called) != 2 or conditional.operands[0].shape.element_type is not PRED:
        return False
    computed = [i for branch in conditional.called for i in branch if Trait.STRUCTURE not in i.spec.traits]
    leaves = conditional.shape.leaves()
    return (
        len(computed) <= MOST_SELECTED
        and all(leaf.is_array and leaf.is_scalar for leaf in leaves)
        and all(i.shape.is_scalar and Trait.ELEMENTWISE in i.spec.traits and not i.called for i in computed)
        and sum(map(operation_cost, computed)) <= MOST_SELECTED
        and all(branch.root.opcode == "tuple" or branch.root.shape.is_array for branch in conditional.called)
        and all(part.is_array for part in conditional.shape.elements or ())
    )


def _selected(conditional: Instruction) -> Instruction:
    """Both branches, and the choice between their results."""
    computation = conditional.parent
    predicate, *operands = conditional.operands
    results = [
        computation.insert(branch, [operand]) for branch, operand in zip(conditional.called, operands, strict=True)
    ]
    if not conditional.shape.is_tuple:
        return computation.add("select", [predicate, *results], metadata=conditional.metadata)
    pairs = zip(*(result.operands for result in results), strict=True)
    return computation.add("tuple", [computation.add("select", [predicate, *pair]) for pair in pairs])
