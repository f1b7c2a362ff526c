"""Donation in the plan: which results share the memory of parameters, and a check that does not believe it blindly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xlapy.hlo.buffer_plan import BufferPlan, Home, Location
from xlapy.hlo.donation import MOST_PAIRS, Donation, possible_donations
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.text import parse
from xlapy.passes import scheduling
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.passes.analysis.replay import check_plan
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.scheduling import schedule
from xlapy.support.errors import InternalError


def planned(text: str) -> tuple[HloModule, Schedule, BufferPlan]:
    module = parse(text)
    donations = possible_donations(module)
    order = schedule(module, donations)
    plan = assign_buffers(module, order, donations=donations)
    check_plan(module, order, plan)
    return module, order, plan


UPDATE = """
HloModule update, input_output_alias={ {0}: (0, {}) }
ENTRY e {
  p = f32[8] parameter(0)
  g = f32[8] parameter(1)
  new = f32[8] subtract(p, g)
  old = f32[8] negate(p)
  ROOT t = (f32[8], f32[8]) tuple(new, old)
}
"""


def test_the_writer_waits_for_the_last_reader() -> None:
    module, order, plan = planned(UPDATE)
    names = [instruction.name for instruction in order[module.entry]]
    assert names.index("old") < names.index("new")
    assert plan.donations == {0: 0}
    assert plan.leaves[module.entry.parameters[0]] == (Location(Home.RESULT, 0),)


def test_a_writer_that_the_reader_needs_cannot_wait() -> None:
    _, _, plan = planned(UPDATE.replace("negate(p)", "add(p, new)"))
    assert plan.donations == {}


def test_a_wrong_order_is_found_out() -> None:
    module, order, plan = planned(UPDATE)
    by_name = {instruction.name: instruction for instruction in module.entry}
    wrong = Schedule({module.entry: tuple(by_name[name] for name in ("p", "g", "new", "old", "t"))})
    with pytest.raises(InternalError, match=r"old = .* reads leaf 0 of <p = "):
        check_plan(module, wrong, plan)
    with pytest.raises(InternalError, match="result 1 should live in parameter 0"):
        check_plan(module, order, replace(plan, donations={1: 0}))


def test_the_first_donor_that_fits_is_used_once() -> None:
    _, _, plan = planned("""
    HloModule donors, buffer_donor={ (0, {}), (1, {}) }
    ENTRY e {
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      r = f32[8] reverse(p), dimensions={0}
      ROOT s = f32[8] add(q, r)
    }
    """)
    assert plan.donations == {0: 0}  # p is free when s is written


def test_what_may_move_is_static_and_has_dimensions() -> None:
    module = parse("""
    HloModule kinds, input_output_alias={ {0}: (0, {}), {1}: (1, {1}) }, buffer_donor={ (1, {0}), (2, {}) }
    ENTRY e {
      x = f32[] parameter(0)
      pair = (f32[4], s32[4]) parameter(1)
      a = f32[4] get-tuple-element(pair), index=0
      b = s32[4] get-tuple-element(pair), index=1
      bounded = f32[<=4] parameter(2)
      ROOT t = (f32[], s32[4], f32[4], f32[<=4]) tuple(x, b, a, bounded)
    }
    """)
    assert possible_donations(module) == [Donation(1, 2), Donation(2, 1)]


def test_thousands_of_donors_of_one_shape_are_offered_to_their_neighbours() -> None:
    """Not each of them to each result; and the result of its own place is among those."""
    count = 1000
    donors = ", ".join(f"({number}, {{}})" for number in range(count))
    lines = "".join(f"p{n} = f32[8] parameter({n})  n{n} = f32[8] negate(p{n})\n" for n in range(count))
    results = ", ".join(f"n{n}" for n in range(count))
    shapes = ", ".join(["f32[8]"] * count)
    module = parse(
        f"HloModule m, buffer_donor={{ {donors} }}\nENTRY e {{\n{lines}ROOT t = ({shapes}) tuple({results})\n}}"
    )
    possible = possible_donations(module)
    assert len(possible) <= MOST_PAIRS
    assert {Donation(number, number) for number in range(count)} <= {*possible}
    plan = assign_buffers(module, schedule(module, possible), donations=possible)
    assert plan.donations == {number: number for number in range(count)}


def test_many_donors_of_one_shape_are_each_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result is looked at once, not once for each parameter that it might live in."""
    count, looked_at = 30, []

    def look(instruction: Instruction) -> list[tuple[int, int]]:
        looked_at.append(instruction)
        return overwritable_operands(instruction)

    monkeypatch.setattr(scheduling, "overwritable_operands", look)
    lines = [f"p{n} = f32[8] parameter({n})  s{n} = f32[8] negate(p{n})" for n in range(count)]
    donors = ", ".join(f"({n}, {{}})" for n in range(count))
    results = ", ".join(f"s{n}" for n in reversed(range(count)))
    shapes = ", ".join(["f32[8]"] * count)
    body = "\n".join([*lines, f"ROOT t = ({shapes}) tuple({results})"])
    _, _, plan = planned(f"HloModule many, buffer_donor={{ {donors} }}\nENTRY e {{\n{body}\n}}")
    assert plan.donations.keys() == set(range(count))
    assert sorted(plan.donations.values()) == [*range(count)]
    assert len(looked_at) == count
