"""Conditionals that choose nothing, or too little to branch for.

    ROOT c = f32[] conditional(true, x, y), branch_computations={f, g}     becomes     the body of f, applied to x
    ROOT c = f32[] conditional(p, x, y), branch_computations={abs, sin}    becomes     select(p, abs(x), sin(y))
    ROOT c = f32[8] conditional(s32[] convert(p), x, y, z), branch_computations={f, g, h}
        becomes     conditional(p, y, x), branch_computations={g, f}

The branch of a constant selector takes the place of the conditional, as does the only one, or one of several that do
the same with the same operand. A choice between a few operations on scalars is a select: both sides cost less than a
branch, and what uses the result is no longer cut off from what made it. None of them can fail.

A number that is made of a pred chooses between the branches of two numbers: it is the pred that chooses. Branches
change places where it is negated.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import number_of
from xlapy.passes.base import ComputationPass, pinned
from xlapy.passes.cse import content
from xlapy.passes.fusion.cost import operation_cost
from xlapy.support.records import Record


@dataclass
class ConditionalSimplification(ComputationPass):
    name: ClassVar[str] = "simplify-conditionals"
    ops: ClassVar[Set[str]] = frozenset({"conditional"})

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
            elif (choice := _choice_of_pred(instruction)) is not None:
                result = _with_choice(instruction, choice)
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
    number = number_of(conditional.operands[0])
    if number is None:
        choice = _choice_of_pred(conditional)
        return choice.if_true if choice is not None and choice.if_true == choice.if_false else None
    if conditional.operands[0].shape.element_type is PRED:
        return 0 if number else 1
    return _branch_of(int(number), count)


def _branch_of(number: int, count: int) -> int:
    """The branch that a number chooses: the last one serves all that are no branch."""
    return number if 0 <= number < count else count - 1


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


class _Choice(Record):
    """A pred, and the branches that run where it is true and where it is false."""

    predicate: Instruction
    if_true: int
    if_false: int


def _choice_of_pred(conditional: Instruction) -> _Choice | None:
    """The pred of which the selector is made, if it chooses between the same branches."""
    selector, count = conditional.operands[0], len(conditional.called)
    if not conditional.shape.is_static or not selector.operands:
        return None
    source = selector.operands[0]
    if selector.shape.element_type is PRED:
        return _Choice(source, 1, 0) if selector.opcode == "not" else None
    if selector.opcode == "convert" and source.shape.element_type is PRED:
        return _Choice(source, _branch_of(1, count), 0)
    if selector.opcode == "select":
        numbers = [int(number) for number in map(number_of, selector.operands[1:]) if number is not None]
        if len(numbers) == 2:
            return _Choice(source, _branch_of(numbers[0], count), _branch_of(numbers[1], count))
    return None


def _with_choice(conditional: Instruction, choice: _Choice) -> Instruction:
    """The choice between two of the branches."""
    branches = (choice.if_true, choice.if_false)
    operands = [choice.predicate, *(conditional.operands[1 + branch] for branch in branches)]
    return conditional.parent.add_like(conditional, operands, [conditional.called[branch] for branch in branches])


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
