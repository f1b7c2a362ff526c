"""Loop fusion: chains of element-wise and index-mapping instructions become one kernel, with the reduce that reads
them.

    m = f32[8,8] multiply(x, y)
    ROOT r = f32[8] reduce(m, zero), dimensions={1}, to_apply=sum

becomes

    fused.r { x = parameter(0)  y = parameter(1)  zero = constant(0)  m = multiply(x, y)  ROOT r = reduce(m, zero) ... }
    ROOT r.fusion = f32[8] fusion(x, y), kind=kInput, calls=fused.r

What may be in one kernel is fixed in `hlo/kernel_plan.py`; what shall be is decided by cost in `plan.py`,
`multi_output.py` and `fold_results.py`. Every fusion made, and every refusal, is on record with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.graph import HloModule
from xlapy.hlo.kernel_plan import KernelLimits
from xlapy.passes.base import Pass, program_computations
from xlapy.passes.fusion.build import build_fusions
from xlapy.passes.fusion.fold_results import join_results
from xlapy.passes.fusion.multi_output import merge_outputs
from xlapy.passes.fusion.plan import FusionPlan


@dataclass
class LoopFusion(Pass):
    """`multi_output` lets one kernel store several results."""

    name: ClassVar[str] = "fusion"

    limits: KernelLimits = field(default_factory=KernelLimits)
    multi_output: bool = True

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            plan = FusionPlan(computation, self.limits, self.multi_output)
            if self.multi_output:
                merge_outputs(plan)
            join_results(plan)
            changed = build_fusions(plan) or changed
            self.records += plan.records
        return changed
