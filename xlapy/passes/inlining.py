"""Call inlining: a called computation becomes part of its caller.

    f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    ROOT c = f32[] call(p), to_apply=f        becomes        ROOT n = f32[] negate(p)

Fusions and composites that the input came with are inlined as well: which kernels there are is decided here anew.
Computations are visited callees first, so nested calls need one walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.passes.base import ComputationPass

INLINED = ("call", "fusion")


@dataclass
class CallInlining(ComputationPass):
    name: ClassVar[str] = "inline-calls"
    required: ClassVar[bool] = True

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.post_order():
            if instruction.opcode in INLINED:
                inline(instruction)
                changed = True
        return changed


def inline(call: Instruction) -> Instruction:
    """Replaces a call by a copy of what it calls; returns the copy of the root.

    Where the call was held by control edges, everything that the callee computes is held by them."""
    caller = call.parent
    before = set(caller) if call.control_predecessors else set()
    result = caller.insert(call.called[0], call.operands)
    if call.control_predecessors:
        for instruction in caller:
            if instruction not in before:
                for predecessor in call.control_predecessors:
                    caller.add_control_edge(predecessor, instruction)
    caller.replace(call, result)
    caller.remove([call])
    return result
