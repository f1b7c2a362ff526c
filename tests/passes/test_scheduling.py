"""The order of execution: what it holds at once, and what keeps it as it is."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from xlapy.hlo.graph import topological
from xlapy.hlo.text import parse
from xlapy.passes.analysis.peak import peak_bytes
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.pipelines import cpu_pipeline
from xlapy.passes.scheduling import schedule

LESS = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }\n"
SMALL_AFTER_BIG = (
    LESS
    + """ENTRY main {
  x = f32[4096] parameter(0)
  y = f32[4096] parameter(1)
  big = f32[4096] sort(x), dimensions={0}, to_apply=less
  other = f32[4096] sort(y), dimensions={0}, to_apply=less
  small = f32[64] slice(other), slice={[0:64]}
  again = f32[64] sort(small), dimensions={0}, to_apply=less
  ROOT t = (f32[4096], f32[64]) tuple(big, again)
}"""
)


def test_what_leaves_little_behind_comes_first() -> None:
    module = parse(SMALL_AFTER_BIG)
    order = schedule(module)[module.entry]
    names = [instruction.name for instruction in order]
    assert names.index("again") < names.index("big")
    assert peak_bytes(order) < peak_bytes(topological([module.entry.root, *module.entry]))


@pytest.mark.parametrize(
    "kept",
    [
        "o = f32[1000] opt-barrier(a)",
        "t = token[] after-all()  o = f32[1000] add-dependency(a, t)",
        "t = (f32[1000], f32[]) tuple(a, s)  b = (f32[1000], f32[]) opt-barrier(t)  "
        "o = f32[1000] get-tuple-element(b), index=0",
    ],
)
def test_what_stands_behind_a_barrier_is_alive_until_its_last_reader(kept: str) -> None:
    module = parse(f"""ENTRY main {{
      p = f32[1000] parameter(0)
      s = f32[] parameter(1)
      a = f32[1000] tanh(p)
      {kept}
      c = f32[1000] sine(p)
      ROOT r = f32[1000] add(o, c)
    }}""")
    assert peak_bytes(tuple(module.entry)) == 3 * 4 * 1000


def test_less_memory_is_planned() -> None:
    module = parse(SMALL_AFTER_BIG.replace("tuple(big", "tuple(late").replace("ROOT t", CHAIN + "ROOT t"))
    cpu_pipeline().run(module)
    plan = assign_buffers(module, schedule(module), lambda instruction, functions: 0)
    assert plan.live_bytes < 2 * 4096 * 4


CHAIN = "late = f32[4096] reverse(big), dimensions={0}\n  "


def test_control_edges_and_updates_keep_the_order() -> None:
    text = SMALL_AFTER_BIG.replace("to_apply=less\n  small", "to_apply=less, control-predecessors={big}\n  small")
    module = parse(text)
    assert list(schedule(module)[module.entry]) == topological([module.entry.root, *module.entry])


@pytest.mark.parametrize("seed", range(8))
def test_no_order_holds_more_than_the_plain_one(seed: int) -> None:
    program = random_program(seed, 40)
    module = program.module.clone()
    cpu_pipeline().run(module)
    for computation, order in schedule(module).order.items():
        assert peak_bytes(order) <= peak_bytes(topological([computation.root, *computation]))
        place = {instruction: number for number, instruction in enumerate(order)}
        assert all(place[operand] < place[instruction] for instruction in order for operand in instruction.operands)


def test_results_stay() -> None:
    x, y = (np.random.default_rng(seed).normal(size=4096).astype(np.float32) for seed in (0, 1))
    for got, expected in zip(xlapy.compile(SMALL_AFTER_BIG)(x, y), xlapy.evaluate(SMALL_AFTER_BIG, x, y), strict=True):
        np.testing.assert_array_equal(got, expected)
