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


def product(name: str, left: str, right: str, columns: int = 256) -> str:
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return f"{name} = f32[256,{columns}] dot({left}, {right}), {dims}\n"


PRODUCTS = f"""HloModule products
ENTRY main {{
  x = f32[256,256] parameter(0)
  w = f32[256,1024] parameter(1)
  u = f32[1024,256] parameter(2)
  {product("a", "x", "x")}
  {product("b", "a", "x")}
  {product("c", "a", "b")}
  {product("d", "b", "c")}
  {product("e", "d", "c")}
  {product("f", "e", "w", 1024)}
  {product("g", "f", "u")}
  ROOT {product("h", "g", "e")}
}}
"""


@pytest.mark.parametrize(
    "text", [SOFTMAX, LOOP, SORTED, chain(40), PRODUCTS], ids=["softmax", "loop", "sort", "chain", "products"]
)
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


def test_the_largest_have_no_holes_below_them() -> None:
    """Buffers in order of time would lie in the way of a large one."""
    module = parse(PRODUCTS)
    plan = assign_buffers(module, schedule(module), lambda instruction, functions: 0)
    assert plan.arena_bytes == plan.live_bytes


@pytest.mark.parametrize("count", [3, 300])
def test_very_many_buffers(count: int) -> None:
    """Only the largest ones are compared with each other."""
    lines = ["x = f32[64,64] parameter(0)", "w = f32[64,640] parameter(1)", "u = f32[640,64] parameter(2)"]
    last = "x"
    for number in range(count):
        lines.append(f"a{number} = f32[64,64] dot({last}, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        lines.append(
            f"b{number} = f32[64,640] dot(a{number}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )
        lines.append(
            f"c{number} = f32[64,64] dot(b{number}, u), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )
        last = f"c{number}"
    lines.append("ROOT r = f32[64,64] dot(a0, " + last + "), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    module = parse("ENTRY main {\n" + "\n".join(lines) + "\n}")
    order = schedule(module)
    plan = assign_buffers(module, order, lambda instruction, functions: 0)
    assert plan.live_bytes <= plan.arena_bytes <= 2 * plan.live_bytes
    for one, other in combinations(arena_timeline(module, order, plan, lambda *_: 0).lifetimes, 2):
        apart_in_time = one.ranges[-1][1] < other.ranges[0][0] or other.ranges[-1][1] < one.ranges[0][0]
        assert apart_in_time or one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
