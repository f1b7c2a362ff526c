"""Conditionals that choose nothing: the branch of a constant selector, or the only one, takes their place.

ROOT c = f32[] conditional(true, x, y), branch_computations={f, g}        becomes        the body of f, applied to x
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.patterns import number_of
from xlapy.passes.base import ComputationPass, pinned


@dataclass
class ConditionalSimplification(ComputationPass):
    name: ClassVar[str] = "simplify-conditionals"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode == "conditional" and instruction not in fixed:
                branch = chosen_branch(instruction)
                if branch is not None:
                    result = computation.insert(instruction.called[branch], [instruction.operands[1 + branch]])
                    computation.replace(instruction, result)
                    computation.remove([instruction])
                    changed = True
        return changed


def chosen_branch(conditional: Instruction) -> int | None:
    """The branch that always runs, if that is known."""
    count = len(conditional.called)
    if count == 1:
        return 0
    selector = conditional.operands[0]
    number = number_of(selector)
    if number is None:
        return None
    if selector.shape.element_type is PRED:
        return 0 if number else 1
    return int(number) if 0 <= int(number) < count else count - 1
