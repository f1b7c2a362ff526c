"""Call inlining: a called computation becomes part of its caller.

    f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    ROOT c = f32[] call(p), to_apply=f        becomes        ROOT n = f32[] negate(p)

Fusions and composites that the input came with are inlined as well: which kernels there are is decided here anew.
Computations are visited callees first, so nested calls need one walk.

    ROOT c = f32[] conditional(p, x, y), branch_computations={f, f}

calls f, too, of x or y: with a copy of it for each branch, such conditionals inside each other would double at each
level. So what chooses is another conditional, whose branches do nothing; where x and y are the same, nothing is left
to choose. A computation without control flow has no levels, and may have copies.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes.base import ComputationPass, pinned, replace_all

INLINED = frozenset({"call", "fusion"})


@dataclass
class CallInlining(ComputationPass):
    name: ClassVar[str] = "inline-calls"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = INLINED | {"conditional"}

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        calls = [instruction for instruction in computation.post_order() if _is_inlined(instruction)]
        results: dict[Instruction, Instruction] = {}
        for call in calls:
            arguments = [results.get(operand, operand) for operand in call.operands]
            if call.opcode == "conditional":
                arguments = [_chosen(call, arguments)]
            if call in fixed:
                _inline_in_place(call, arguments)
            else:
                results[call] = computation.insert(call.called[0], arguments)
        replace_all(computation, results)
        computation.remove(results)
        return bool(calls)


def _is_inlined(instruction: Instruction) -> bool:
    """A call, or a conditional that calls one computation in any case."""
    if instruction.opcode != "conditional":
        return instruction.opcode in INLINED
    branch = instruction.called[0]
    if any(other is not branch for other in instruction.called):
        return False
    one_operand = len({*instruction.operands[1:]}) == 1
    return one_operand or any(Trait.CONTROL in inside.spec.traits for inside in branch)


def _chosen(conditional: Instruction, arguments: Sequence[Instruction]) -> Instruction:
    """The operand of the branch that a conditional takes."""
    operands = arguments[1:]
    if len({*operands}) == 1:
        return operands[0]
    branches = []
    for operand in operands:
        branch = Computation("chosen")
        branch.set_root(branch.add("parameter", number=0, shape=operand.shape))
        branches.append(branch)
    return conditional.parent.add("conditional", arguments, called=branches, metadata=conditional.metadata)


def _inline_in_place(call: Instruction, arguments: Sequence[Instruction]) -> None:
    """Inlines a call that control edges hold: everything that the callee computes runs behind what held the call."""
    caller = call.parent
    before = set(caller)
    result = caller.insert(call.called[0], arguments)
    for instruction in caller:
        if instruction not in before:
            for predecessor in call.control_predecessors:
                caller.add_control_edge(predecessor, instruction)
    caller.replace(call, result)
    caller.remove([call])
