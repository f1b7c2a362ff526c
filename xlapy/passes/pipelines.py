"""Which passes run, in which order, and why in that order."""

from __future__ import annotations

import xlapy.passes.algebra  # noqa: F401  (fills the book of laws)
from xlapy.hlo.kernel_plan import KernelLimits
from xlapy.passes.async_unwrapping import AsyncUnwrapping
from xlapy.passes.batch_pieces import BatchPieces
from xlapy.passes.conditional_motion import ConditionalMotion
from xlapy.passes.conditional_simplification import ConditionalSimplification
from xlapy.passes.constant_folding import ConstantFolding
from xlapy.passes.copy_insertion import CopyInsertion
from xlapy.passes.cse import Cse
from xlapy.passes.dce import Dce
from xlapy.passes.dynamic.padder import DynamicPadder
from xlapy.passes.exchanges_of_pivots import ExchangesOfPivots
from xlapy.passes.expand.batch_norm import BatchNormExpansion
from xlapy.passes.expand.linalg import WidenMatrices
from xlapy.passes.expand.random import ExpandRandom
from xlapy.passes.flatten_call_graph import FlattenCallGraph
from xlapy.passes.folds_in_parts import FoldsInParts
from xlapy.passes.fusion.column_folds import ColumnFolds
from xlapy.passes.fusion.epilogues import ProductEpilogues
from xlapy.passes.fusion.fusion import LoopFusion
from xlapy.passes.fusion.padded_selections import PaddedSelections
from xlapy.passes.fusion.row_blocks import RowBlocking
from xlapy.passes.fusion.rows import RowFusion
from xlapy.passes.fusion.shared_kernels import SharedKernels
from xlapy.passes.fusion.sibling_reduces import SiblingReduces
from xlapy.passes.fusion.two_step_folds import TwoStepFolds
from xlapy.passes.inlining import CallInlining
from xlapy.passes.layout_assignment import LayoutAssignment
from xlapy.passes.layout_choice import LayoutChoice
from xlapy.passes.layout_normalization import LayoutNormalization
from xlapy.passes.loop_invariants import LoopInvariantCodeMotion
from xlapy.passes.loop_packing import LoopPacking
from xlapy.passes.loop_unrolling import LoopUnrolling
from xlapy.passes.outer_products import OuterProducts
from xlapy.passes.paired_steps import PairedSteps
from xlapy.passes.pipeline import FixedPoint, Order, Pipeline, Watch
from xlapy.passes.products_as_folds import ProductsAsFolds
from xlapy.passes.range_folding import RangeFolding
from xlapy.passes.region_deduplication import RegionDeduplication
from xlapy.passes.region_inlining import RegionInlining
from xlapy.passes.reshaped_folds import ReshapedFolds
from xlapy.passes.rewrite import AlgebraicSimplification, LawBook
from xlapy.passes.running_folds import RunningFolds
from xlapy.passes.scan_batching import ScanBatching
from xlapy.passes.scan_sums import ScanSums
from xlapy.passes.split_reduction import SplitReduction
from xlapy.passes.tuple_simplification import TupleSimplification
from xlapy.passes.user import Placement, placed, with_laws
from xlapy.passes.while_simplification import WhileSimplification
from xlapy.passes.zero_sized import ZeroSized
from xlapy.support.records import Record, field

ORDER = (
    Order(AsyncUnwrapping, CallInlining, "what is not a collective becomes a call"),
    Order(LayoutNormalization, CallInlining, "a callee may see other layouts than its caller"),
    Order(CallInlining, FlattenCallGraph, "what is inlined needs no clone"),
    Order(ExpandRandom, AlgebraicSimplification, "an expansion has much to simplify"),
    Order(BatchNormExpansion, DynamicPadder, "the expansion asks for run-time sizes"),
    Order(DynamicPadder, AlgebraicSimplification, "laws look at static arrays only"),
    Order(FlattenCallGraph, WhileSimplification, "a loop is rewritten for the one place that runs it"),
    Order(FlattenCallGraph, ConditionalMotion, "a branch is rewritten for the one place that runs it"),
    Order(FlattenCallGraph, LoopUnrolling, "a body is put in the one place that runs it"),
    Order(FlattenCallGraph, ExchangesOfPivots, "a loop is looked at with the one place that runs it"),
    Order(ExchangesOfPivots, LoopUnrolling, "what is a loop can be told from other exchanges"),
    Order(DynamicPadder, LoopUnrolling, "sizes that a loop changes are elements of its state by then"),
    Order(FlattenCallGraph, RangeFolding, "what a counter counts is so for the one loop that runs the body"),
    Order(LoopUnrolling, LoopInvariantCodeMotion, "a loop that is gone has nothing to move out of"),
    Order(FlattenCallGraph, LoopInvariantCodeMotion, "a loop is rewritten for the one place that runs it"),
    Order(AlgebraicSimplification, RunningFolds, "laws put what is between one another side by side"),
    Order(RunningFolds, LayoutChoice, "what folds along a dimension decides which is the fastest"),
    Order(AlgebraicSimplification, ScanBatching, "laws bring slices to where they are read"),
    Order(ScanBatching, LoopInvariantCodeMotion, "one product for all steps is taken out of the loop"),
    Order(ScanBatching, ScanSums, "what is made in front of a loop needs to be kept for nobody"),
    Order(AlgebraicSimplification, ScanSums, "laws bring slices to where they are read"),
    Order(ScanSums, LoopInvariantCodeMotion, "what a loop hands on by then is no part of it"),
    Order(ScanSums, OuterProducts, "products of all steps may be large enough"),
    Order(AlgebraicSimplification, ProductsAsFolds, "laws bring transposes and conversions to where they stay"),
    Order(ScanBatching, ProductsAsFolds, "one product for all steps is better than a fold in each"),
    Order(ProductsAsFolds, LoopInvariantCodeMotion, "a matrix of its own would be computed in front of a loop"),
    Order(ProductsAsFolds, SplitReduction, "what is a fold by then may be split"),
    Order(AlgebraicSimplification, OuterProducts, "laws bring transposes to where they stay"),
    Order(ScanBatching, OuterProducts, "products of all steps may be large enough"),
    Order(ProductsAsFolds, OuterProducts, "folds read a matrix once for few vectors"),
    Order(OuterProducts, LayoutChoice, "what is element-wise has any order"),
    Order(LoopInvariantCodeMotion, LayoutChoice, "what moves out of a loop has neighbours there"),
    Order(AlgebraicSimplification, LayoutChoice, "transposes that laws take away need no order"),
    Order(ZeroSized, LayoutChoice, "arrays without elements lie nowhere"),
    Order(LayoutChoice, BatchPieces, "which dimension comes first is known then, and so is what stays between kernels"),
    Order(BatchPieces, LayoutAssignment, "pieces are read and written in the order of the whole"),
    Order(BatchPieces, RowFusion, "kernels are made of pieces"),
    Order(LayoutChoice, LoopPacking, "it would take the strips of a matrix for a transpose that nobody needs"),
    Order(LoopPacking, LayoutAssignment, "strips are logical arrays"),
    Order(LayoutChoice, SplitReduction, "which dimensions are the fast ones decides how a reduce is split"),
    Order(LayoutChoice, LayoutAssignment, "orders are chosen for logical arrays"),
    Order(LayoutNormalization, AlgebraicSimplification, "laws look at logical arrays only"),
    Order(AlgebraicSimplification, LayoutAssignment, "laws drop layouts"),
    Order(ZeroSized, LoopFusion, "kernels have a point to compute"),
    Order(LayoutChoice, FoldsInParts, "which dimensions are the fast ones decides how an array is cut"),
    Order(AlgebraicSimplification, FoldsInParts, "laws would put parts together again"),
    Order(AlgebraicSimplification, ReshapedFolds, "laws bring folds in front of reshapes"),
    Order(LayoutChoice, ReshapedFolds, "rows are what is behind one another in memory"),
    Order(ReshapedFolds, FoldsInParts, "arrays are cut under the dimensions that a chain has"),
    Order(ReshapedFolds, RowFusion, "a chain has one shape"),
    Order(FoldsInParts, SplitReduction, "what reads an array once needs no parts of another kind"),
    Order(FoldsInParts, RowFusion, "what is folded of a part is a chain over its rows or columns"),
    Order(AlgebraicSimplification, SplitReduction, "laws merge what is split"),
    Order(SplitReduction, LoopFusion, "both steps fuse with their neighbours"),
    Order(SplitReduction, RowFusion, "a row that is long enough to split is in no cache"),
    Order(LayoutAssignment, RowFusion, "rows lie in memory one after the other"),
    Order(RowFusion, ColumnFolds, "a fold joins a kernel over rows that is there"),
    Order(ColumnFolds, SiblingReduces, "what a kernel over rows folds needs no sweep of its own"),
    Order(RowFusion, SiblingReduces, "a chain over rows takes its reduces with it"),
    Order(SiblingReduces, LoopFusion, "what is folded is then computed in the kernel of all the reduces"),
    Order(RowFusion, LoopFusion, "a chain is taken whole, before loops take it apart"),
    Order(PaddedSelections, LoopFusion, "a pad is then computed in the kernel of what reads it"),
    Order(LayoutAssignment, PaddedSelections, "a fused selection has one layout for all its arrays"),
    Order(LayoutAssignment, LoopFusion, "a fused loop has one layout per operand"),
    Order(LoopFusion, TwoStepFolds, "a fold has its producers, and what is made from its results, by then"),
    Order(LoopFusion, ProductEpilogues, "a product takes the kernel behind it as it is"),
    Order(RowFusion, RowBlocking, "what runs block by block are kernels"),
    Order(LoopFusion, RowBlocking, "which values are read by one kernel only is known once there are kernels"),
    Order(RowBlocking, ProductEpilogues, "a product that takes something along is no longer one of a block"),
    Order(RowBlocking, CopyInsertion, "a product makes an element of a loop's state anew"),
    Order(ProductEpilogues, SharedKernels, "which fusions are alike is known once all are there"),
    Order(SharedKernels, CopyInsertion, "what reads a part of an array needs no copy of it"),
    Order(ProductEpilogues, PairedSteps, "which kernels could write where they read is known once all are there"),
    Order(PairedSteps, CopyInsertion, "a step that is followed by another has no place to write to"),
    Order(ProductEpilogues, CopyInsertion, "a product makes an element of a loop's state anew"),
    Order(LoopFusion, CopyInsertion, "whether an element of a loop's state is made anew is known once kernels are"),
    Order(FlattenCallGraph, LoopFusion, "a loop body is fused for the one place that runs it"),
)


EXPANDED = {
    "async-start": "unwrap-async",
    "async-update": "unwrap-async",
    "async-done": "unwrap-async",
    "get-dimension-size": "dynamic-padder",
    "set-dimension-size": "dynamic-padder",
    "batch-norm-training": "expand-batch-norm",
    "batch-norm-inference": "expand-batch-norm",
    "batch-norm-grad": "expand-batch-norm",
    "rng": "expand-random",
}
"""Ops that no program has any more after the passes, by the pass that takes them away."""


class PipelineOptions(Record):
    """What a compilation may choose about its passes."""

    fast_math: bool = False  # laws that are not exact
    disabled_laws: frozenset[str] = frozenset()
    limits: KernelLimits = field(default_factory=KernelLimits)
    multi_output_fusion: bool = True
    passes: tuple[Placement, ...] = ()  # of users, and their places
    laws: tuple[LawBook, ...] = ()  # of users
    repeats_functions: bool = True  # of elements that are read again: a fact of the machine, for `FoldsInParts`
    keep_entry_layouts: bool = False  # arrays of callers are row-major, whatever layout a dump had on its device


def cpu_pipeline(options: PipelineOptions | None = None, watch: Watch | None = None) -> Pipeline:
    """The passes from a verified module to one whose instructions are kernels, runtime calls and control flow."""
    options = options or PipelineOptions()
    laws = with_laws(options.laws)
    steps = (
        AsyncUnwrapping(),
        LayoutNormalization(),
        CallInlining(),
        FlattenCallGraph(),
        TupleSimplification(),
        BatchNormExpansion(),
        DynamicPadder(),
        WidenMatrices(),
        RegionInlining(),
        ExpandRandom(),
        FixedPoint(
            "simplify",
            (
                TupleSimplification(),
                ConditionalSimplification(),
                ConditionalMotion(),
                WhileSimplification(),
                ExchangesOfPivots(),
                LoopUnrolling(),
                AlgebraicSimplification(options.fast_math, options.disabled_laws, laws),
                RangeFolding(),
                ConstantFolding(),
                Cse(),
                Dce(),
            ),
        ),
        RunningFolds(),
        Dce(),
        ScanBatching(),
        ScanSums(),
        ProductsAsFolds(),
        OuterProducts(),
        FixedPoint(
            "hoist",
            (
                LoopInvariantCodeMotion(),
                Cse(),
                ConditionalMotion(),
                WhileSimplification(),
                TupleSimplification(),
                Dce(),
            ),
            led=True,
        ),
        ZeroSized(),
        LayoutChoice(keep_entry_layouts=options.keep_entry_layouts),
        BatchPieces(),
        LoopPacking(),
        ReshapedFolds(),
        FoldsInParts(repeats_functions=options.repeats_functions),
        SplitReduction(),
        Dce(),
        RegionDeduplication(),
        LayoutAssignment(keep_entry_layouts=options.keep_entry_layouts),
        RowFusion(options.limits),
        ColumnFolds(options.limits),
        SiblingReduces(),
        PaddedSelections(),
        LoopFusion(options.limits, options.multi_output_fusion),
        TwoStepFolds(options.limits),
        RowBlocking(),
        ProductEpilogues(options.limits),
        SharedKernels(),
        PairedSteps(),
        Dce(),
        CopyInsertion(),
    )
    return Pipeline("cpu", placed(steps, options.passes), ORDER, watch or Watch())
