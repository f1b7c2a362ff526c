"""Each pass on the cases of its file in `cases/`."""

from pathlib import Path

import pytest

from tests.support.hlo_cases import Case, check_case, load_cases
from xlapy.passes.async_unwrapping import AsyncUnwrapping
from xlapy.passes.base import Pass
from xlapy.passes.batch_pieces import BatchPieces
from xlapy.passes.conditional_motion import ConditionalMotion
from xlapy.passes.conditional_simplification import ConditionalSimplification
from xlapy.passes.constant_folding import ConstantFolding
from xlapy.passes.cse import Cse
from xlapy.passes.dce import Dce
from xlapy.passes.dynamic.padder import DynamicPadder
from xlapy.passes.exchanges_of_pivots import ExchangesOfPivots
from xlapy.passes.expand.batch_norm import BatchNormExpansion
from xlapy.passes.expand.linalg import WidenMatrices
from xlapy.passes.expand.random import ExpandRandom
from xlapy.passes.flatten_call_graph import FlattenCallGraph
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
from xlapy.passes.products_as_folds import ProductsAsFolds
from xlapy.passes.range_folding import RangeFolding
from xlapy.passes.region_deduplication import RegionDeduplication
from xlapy.passes.region_inlining import RegionInlining
from xlapy.passes.reshaped_folds import ReshapedFolds
from xlapy.passes.running_folds import RunningFolds
from xlapy.passes.scan_batching import ScanBatching
from xlapy.passes.scan_sums import ScanSums
from xlapy.passes.split_reduction import SplitReduction
from xlapy.passes.tuple_simplification import TupleSimplification
from xlapy.passes.while_simplification import WhileSimplification
from xlapy.passes.zero_sized import ZeroSized

CASES = Path(__file__).parent / "cases"
PASSES: list[type[Pass]] = [
    AsyncUnwrapping,
    BatchNormExpansion,
    BatchPieces,
    CallInlining,
    ConditionalMotion,
    ConditionalSimplification,
    ConstantFolding,
    Cse,
    Dce,
    DynamicPadder,
    ExchangesOfPivots,
    ExpandRandom,
    FlattenCallGraph,
    LayoutAssignment,
    LayoutChoice,
    LayoutNormalization,
    LoopInvariantCodeMotion,
    LoopFusion,
    LoopPacking,
    LoopUnrolling,
    OuterProducts,
    PairedSteps,
    ProductEpilogues,
    ProductsAsFolds,
    RangeFolding,
    RegionDeduplication,
    RegionInlining,
    PaddedSelections,
    ReshapedFolds,
    RowBlocking,
    RunningFolds,
    RowFusion,
    ScanBatching,
    ScanSums,
    SharedKernels,
    SiblingReduces,
    SplitReduction,
    TupleSimplification,
    TwoStepFolds,
    WhileSimplification,
    WidenMatrices,
    ZeroSized,
]


def cases() -> list[object]:
    return [
        pytest.param(kind, case, id=f"{kind.name}: {case.title}")
        for kind in PASSES
        for case in load_cases(CASES / f"{kind.name}.hlo")
    ]


@pytest.mark.parametrize(("kind", "case"), cases())
def test_case(kind: type[Pass], case: Case) -> None:
    check_case(case, kind())


def test_every_pass_has_a_case_that_changes_and_one_that_stays() -> None:
    for kind in PASSES:
        verdicts = {case.verdict for case in load_cases(CASES / f"{kind.name}.hlo")}
        assert verdicts == {"becomes", "stays"}, kind.name
