"""Which passes run, in which order, and why in that order."""

from __future__ import annotations

from dataclasses import dataclass, field

from xlapy.hlo.kernel_plan import KernelLimits
from xlapy.passes.cse import Cse
from xlapy.passes.dce import Dce
from xlapy.passes.flatten_call_graph import FlattenCallGraph
from xlapy.passes.fusion.fusion import LoopFusion
from xlapy.passes.inlining import CallInlining
from xlapy.passes.pipeline import FixedPoint, Order, Pipeline, Watch
from xlapy.passes.tuple_simplification import TupleSimplification

ORDER = (
    Order(CallInlining, FlattenCallGraph, "what is inlined needs no clone"),
    Order(FlattenCallGraph, LoopFusion, "a loop body is fused for the one place that runs it"),
)


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """What a compilation may choose about its passes."""

    fast_math: bool = False  # laws that are not exact
    disabled_laws: frozenset[str] = frozenset()
    limits: KernelLimits = field(default_factory=KernelLimits)
    multi_output_fusion: bool = True


def cpu_pipeline(options: PipelineOptions | None = None, watch: Watch | None = None) -> Pipeline:
    """The passes from a verified module to one whose instructions are kernels, runtime calls and control flow."""
    options = options or PipelineOptions()
    return Pipeline(
        "cpu",
        (
            CallInlining(),
            FlattenCallGraph(),
            FixedPoint("simplify", (TupleSimplification(), Cse(), Dce())),
            LoopFusion(options.limits, options.multi_output_fusion),
            Dce(),
        ),
        ORDER,
        watch or Watch(),
    )
