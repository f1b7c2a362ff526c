"""Deduplication of regions: reduces that fold alike call one computation.

    r = reduce(x, zero), to_apply=sum.1                      r = reduce(x, zero), to_apply=sum.1
    s = reduce(y, zero), to_apply=sum.2        becomes       s = reduce(y, zero), to_apply=sum.1

Front ends write a region for every use. What runs as control flow keeps a computation of its own: see
flatten-call-graph.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule
from xlapy.hlo.ops import Trait
from xlapy.passes.base import Pass
from xlapy.passes.cse import content


@dataclass
class RegionDeduplication(Pass):
    name: ClassVar[str] = "deduplicate-regions"

    def run(self, module: HloModule) -> bool:
        changed = False
        first_of: dict[Hashable, Computation] = {}
        first: dict[Computation, Computation] = {}
        identities: dict[Computation, int] = {}
        for computation in module.computations():
            for instruction in computation:
                called = tuple(first[callee] for callee in instruction.called)
                if called != instruction.called and Trait.CONTROL not in instruction.spec.traits:
                    computation.set_called(instruction, called)
                    changed = True
            if computation is not module.entry:  # which nobody calls, and is long
                first[computation] = first_of.setdefault(content(computation, identities), computation)
                identities[computation] = identities.get(first[computation], len(identities))
        return changed
