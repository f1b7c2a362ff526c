"""Forgetting layouts, so that the passes in between see logical arrays only.

What the module says about its own parameters and results is kept in `config.entry_layout`. A bitcast, whose meaning
hangs on layouts, is spelled out in logical operations:

    b = f32[6]{0} bitcast(f32[2,3]{0,1} x)        becomes        t = f32[3,2] transpose(x)    b = f32[6] reshape(t)

Custom calls keep their layouts: those belong to their interface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.bitcasts import logical_steps
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.passes.base import Pass

KEEPING_LAYOUTS = ("custom-call",)


@dataclass
class LayoutNormalization(Pass):
    name: ClassVar[str] = "forget-layouts"
    required: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        changed = module.config.entry_layout is None
        if changed:
            module.config.entry_layout = module.signature
        for computation in module.computations():
            changed = _expand_bitcasts(computation) or changed
            for instruction in computation:
                if instruction.opcode not in KEEPING_LAYOUTS:
                    logical = instruction.shape.without_layout()
                    changed = changed or logical != instruction.shape
                    computation.set_shape(instruction, logical)
        return changed


def _expand_bitcasts(computation: Computation) -> bool:
    bitcasts = [instruction for instruction in computation.post_order() if instruction.opcode == "bitcast"]
    for bitcast in bitcasts:
        computation.replace(bitcast, _logical(bitcast))
    return computation.remove(bitcasts)


def _logical(bitcast: Instruction) -> Instruction:
    value = bitcast.operands[0]
    for step in logical_steps(bitcast):
        value = bitcast.parent.add(step.opcode, [value], shape=step.shape, metadata=bitcast.metadata, **step.attributes)
    return value
