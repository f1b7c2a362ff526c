"""Dead code elimination.

    e = f32[4] exponential(p)
    ROOT n = f32[4] negate(p)        becomes        ROOT n = f32[4] negate(p)

An instruction is alive if the root needs it, if it has an effect of its own, or if it is a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation
from xlapy.passes.base import ComputationPass, needed_by


@dataclass
class Dce(ComputationPass):
    name: ClassVar[str] = "dce"
    comes_to_rest: ClassVar[bool] = True

    def run_on(self, computation: Computation) -> bool:
        effectful = [instruction for instruction in computation if instruction.has_effect]
        alive = needed_by([computation.root, *effectful, *computation.parameters])
        return computation.remove([instruction for instruction in computation if instruction not in alive])
