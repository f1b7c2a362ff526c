"""Range folding: what follows from where the numbers of loop counters and iotas lie.

    b { i = get-tuple-element(s), index=0    ...where i counts from 0 to 63
        n = pred[] compare(i, 0), direction=LT
        j = s32[] select(n, i + 64, i)
        u = f32[64,8] scatter(x, j, row), to_apply=set ... }

becomes

    b { u = f32[64,8] dynamic-update-slice(x, row, i, 0) ... }

Comparisons that always have the same outcome are that; bounds that never bind are dropped; what 16 or 32 bits hold is
computed in them (`narrow_arithmetic.py`). One window scattered to
where it surely fits is written in place: a dynamic-update-slice, which fuses with what computes the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.passes import new
from xlapy.passes.algebra.scatters import scatter_as_update
from xlapy.passes.analysis.ranges import Ranges, ranges_by_computation
from xlapy.passes.base import Pass, pinned, replace_all
from xlapy.passes.narrow_arithmetic import in_fewer_bits
from xlapy.passes.new import Value, materialize


@dataclass
class RangeFolding(Pass):
    name: ClassVar[str] = "fold-ranges"

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation, known in ranges_by_computation(module):
            changed = _fold(computation, known) or changed
        return changed


def _fold(computation: Computation, known: Ranges) -> bool:
    fixed = pinned(computation)
    replacements: dict[Instruction, Instruction] = {}
    for instruction in computation.post_order():
        rule = _RULES.get(instruction.opcode)
        simpler = rule(instruction, known) if rule is not None and instruction not in fixed else None
        if simpler is not None:
            replacements[instruction], _ = materialize(simpler, computation, instruction)
    replace_all(computation, replacements)
    return computation.remove(replacements)


def _decided(compare: Instruction, known: Ranges) -> Value | None:
    outcome = known.get(compare)
    return None if outcome is None else new.number(bool(outcome[0]), like=compare)


def _settled(shift: Instruction, known: Ranges) -> Value | None:
    """The only number that is left, as of the high halves of numbers that the low ones hold."""
    found = known.get(shift)
    return None if found is None or found[0] != found[1] else new.number(found[0], like=shift)


def _unbound(clamp: Instruction, known: Ranges) -> Value | None:
    """The value, where it lies within the bounds anyway."""
    low, value, high = (known.get(operand) for operand in clamp.operands)
    if low is None or value is None or high is None:
        return None
    return clamp.operands[1] if low[1] <= value[0] and value[1] <= high[0] else None


def _small(remainder: Instruction, known: Ranges) -> Value | None:
    """The value, where it is below the divisor anyway."""
    value, divisor = (known.get(operand) for operand in remainder.operands)
    if value is None or divisor is None:
        return None
    return remainder.operands[0] if value[0] >= 0 and value[1] < divisor[0] else None


def _placed(scatter: Instruction, known: Ranges) -> Value | None:
    return scatter_as_update(scatter, known.get) if len(scatter.operands) == 3 else None


_RULES = {
    "compare": _decided,
    "clamp": _unbound,
    "remainder": _small,
    "scatter": _placed,
    "convert": in_fewer_bits,
    "shift-right-arithmetic": _settled,
    "shift-right-logical": _settled,
}
