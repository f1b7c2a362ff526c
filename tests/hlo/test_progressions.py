"""How integers change from iteration to iteration of a loop."""

from __future__ import annotations

import pytest

from xlapy.hlo.progressions import MOST_FOLLOWED, Progression, progression
from xlapy.hlo.text import parse


def progression_of_last(lines: list[str]) -> Progression | None:
    """Of the last of some values `v` in the body of a loop over `i`, of eight iterations."""
    module = parse(f"""
      fewer {{ p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 k = s32[] constant(8)
        ROOT q = pred[] compare(i, k), direction=LT }}
      body {{ p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 one = s32[] constant(1)
        j = s32[] add(i, one) {" ".join(lines)} ROOT t = (s32[], s32[]) tuple(j, v{len(lines) - 1}) }}
      ENTRY e {{ x = s32[] parameter(0) zero = s32[] constant(0) s = (s32[], s32[]) tuple(zero, x)
        ROOT w = (s32[], s32[]) while(s), condition=fewer, body=body }}""")
    loop = module.entry.root
    return progression(loop.called[1].root.operands[1], loop)


def test_sums_with_a_counter() -> None:
    assert progression_of_last(["v0 = s32[] add(i, i)", "v1 = s32[] subtract(v0, one)"]) == Progression(-1, 2)
    assert progression_of_last(["v0 = s32[] multiply(i, i)"]) is None


@pytest.mark.parametrize("steps", [40, 2000])
def test_values_that_many_ways_lead_to_are_followed_once(steps: int) -> None:
    """Both operands of each are the value before it: there are twice as many ways behind each step."""
    lines = ["v0 = s32[] add(i, one)"] + [f"v{n} = s32[] subtract(v{n - 1}, v{n - 1})" for n in range(1, steps)]
    assert progression_of_last(lines) == (Progression(0, 0) if steps < MOST_FOLLOWED else None)
