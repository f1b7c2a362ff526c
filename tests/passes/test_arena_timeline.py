"""The arena over time: what it shows is the plan."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.report.programs import LOOP, SOFTMAX, chain
from xlapy.hlo.buffer_plan import Home
from xlapy.hlo.text import parse
from xlapy.passes.buffer_assignment import arena_timeline, assign_buffers
from xlapy.passes.pipelines import cpu_pipeline
from xlapy.passes.scheduling import schedule

SORTED = """HloModule sorted
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY main {
  x = f32[1000] parameter(0)
  e = f32[1000] exponential(x)
  s = f32[1000] sort(e), dimensions={0}, to_apply=less
  ROOT r = f32[1000] reverse(s), dimensions={0}
}
"""
SCRATCH_BYTES = 8192


@pytest.mark.parametrize("text", [SOFTMAX, LOOP, SORTED, chain(40)], ids=["softmax", "loop", "sort", "chain"])
def test_blocks_that_overlap_in_time_do_not_overlap_in_memory(text: str) -> None:
    module = parse(text)
    cpu_pipeline().run(module)
    order = schedule(module)
    scratch = {"sort": SCRATCH_BYTES}
    plan = assign_buffers(module, order, lambda instruction, functions: scratch.get(instruction.opcode, 0))
    timeline = arena_timeline(module, order, plan, lambda instruction, functions: scratch.get(instruction.opcode, 0))
    assert timeline.lifetimes
    for block in timeline.lifetimes:
        assert block.offset + block.bytes <= plan.arena_bytes
        for owner in block.owners:
            homes = [location for location in plan.leaves[owner] if location is not None]
            homes += [plan.scratch[owner].location] if owner in plan.scratch else []
            assert any(home.home is Home.ARENA and home.index == block.offset for home in homes)
    for one, other in combinations(timeline.lifetimes, 2):
        apart_in_time = one.ranges[-1][1] < other.ranges[0][0] or other.ranges[-1][1] < one.ranges[0][0]
        apart_in_memory = one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
        assert apart_in_time or apart_in_memory
    points = {point for block in timeline.lifetimes for first, last in block.ranges for point in (first, last)}
    live = [
        sum(block.bytes for block in timeline.lifetimes for first, last in block.ranges if first <= point <= last)
        for point in points
    ]
    assert max(live) == plan.live_bytes
