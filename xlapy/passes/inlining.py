"""Call inlining: a called computation becomes part of its caller.

    f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    ROOT c = f32[] call(p), to_apply=f        becomes        ROOT n = f32[] negate(p)

Fusions and composites that the input came with are inlined as well: which kernels there are is decided here anew.
Computations are visited callees first, so nested calls need one walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.passes.base import ComputationPass, pinned, replace_all

INLINED = ("call", "fusion")


@dataclass
class CallInlining(ComputationPass):
    name: ClassVar[str] = "inline-calls"
    required: ClassVar[bool] = True

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        calls = [instruction for instruction in computation.post_order() if instruction.opcode in INLINED]
        results: dict[Instruction, Instruction] = {}
        for call in calls:
            arguments = [results.get(operand, operand) for operand in call.operands]
            if call in fixed:
                _inline_in_place(call, arguments)
            else:
                results[call] = computation.insert(call.called[0], arguments)
        replace_all(computation, results)
        computation.remove(results)
        return bool(calls)


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
