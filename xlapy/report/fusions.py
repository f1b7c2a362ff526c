"""Which instructions became one kernel and why, and which did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xlapy.hlo.graph import Instruction
from xlapy.passes.base import Record
from xlapy.passes.fusion.column_folds import ColumnFolds
from xlapy.passes.fusion.epilogues import ProductEpilogues
from xlapy.passes.fusion.fusion import LoopFusion
from xlapy.passes.fusion.padded_selections import PaddedSelections
from xlapy.passes.fusion.row_blocks import RowBlocking
from xlapy.passes.fusion.rows import RowFusion
from xlapy.passes.fusion.two_step_folds import TwoStepFolds
from xlapy.report.kernels import members, place_of, sources
from xlapy.report.observation import Observation

FUSION_PASSES = tuple(
    each.name
    for each in (RowFusion, ColumnFolds, PaddedSelections, LoopFusion, TwoStepFolds, RowBlocking, ProductEpilogues)
)


@dataclass(frozen=True, slots=True)
class Fusion:
    """One fusion of the compiled program. `sources` are the user's lines, each with the ops that came from it."""

    instruction: Instruction
    reason: str
    sources: Mapping[str, Sequence[str]]

    @property
    def members(self) -> list[Instruction]:
        return members(self.instruction)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Values that were not fused into their users, all for one reason; `places` are the user's lines."""

    reason: str
    names: tuple[str, ...]
    places: tuple[str, ...]


def fusions_of(observation: Observation) -> list[Fusion]:
    """The fusions in the order in which the program comes to them."""
    made = {
        (record.computation, record.subject): record.reason
        for record in _records(observation)
        if record.made and not record.partner
    }
    points = observation.timeline.points
    found = [instruction for instruction in observation.module.instructions() if instruction.opcode == "fusion"]
    found.sort(key=lambda instruction: points.get(instruction, len(points)))
    return [Fusion(i, made.get((i.parent.name, i.name), "the program came with it"), sources(i)) for i in found]


def merges_of(observation: Observation) -> list[Record]:
    """The pairs of kernels that became one with several results: each a subject and its partner."""
    return [record for record in _records(observation) if record.partner]


def refusals_of(observation: Observation) -> list[Refusal]:
    """What was not fused, by reason, in the order in which the passes came to it."""
    grouped: dict[str, list[Record]] = {}
    for record in _records(observation):
        if not record.made:
            grouped.setdefault(record.reason, []).append(record)
    return [
        Refusal(
            reason,
            tuple(record.subject for record in records),
            tuple(dict.fromkeys(place for record in records if (place := place_of(record.metadata)))),
        )
        for reason, records in grouped.items()
    ]


def _records(observation: Observation) -> list[Record]:
    """What the passes that fuse have decided."""
    return [record for name in FUSION_PASSES for record in observation.passes.records.get(name, [])]
