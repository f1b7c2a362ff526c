"""Which kernels run together, where that puts them in the order, and what it does to their memory."""

from __future__ import annotations

import dataclasses

import pytest

from tests.e2e.random_programs import random_program
from xlapy.hlo.buffer_plan import BufferPlan
from xlapy.hlo.donation import possible_donations
from xlapy.hlo.graph import HloModule
from xlapy.hlo.schedule import JointRun, Schedule
from xlapy.hlo.text import parse
from xlapy.passes import joint_runs
from xlapy.passes.analysis.replay import check_plan
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.joint_runs import join_kernels
from xlapy.passes.pipelines import cpu_pipeline
from xlapy.passes.scheduling import schedule
from xlapy.support.errors import InternalError

ROOM = 1 << 18
"""Elements of f32: a kernel that reads and writes so many moves as much as one may that is in a joint run."""


def planned(text: str, *, compiled: bool = False) -> tuple[HloModule, Schedule, BufferPlan]:
    """A module as it is, or behind the passes, its order and its memory, both checked."""
    module = parse(text)
    donations = possible_donations(module)
    if compiled:
        cpu_pipeline().run(module)
    order = join_kernels(module, schedule(module, donations), donations)
    check_order(module, order)
    plan = assign_buffers(module, order, donations=donations)
    check_plan(module, order, plan)
    return module, order, plan


def check_order(module: HloModule, order: Schedule) -> None:
    """Each instruction is there once, behind all that it needs, and what runs together is side by side."""
    for computation, instructions in order.order.items():
        place = {instruction: number for number, instruction in enumerate(instructions)}
        assert len(place) == len(instructions) == len([*computation])
        for instruction in instructions:
            needed = (*instruction.operands, *instruction.control_predecessors)
            assert all(place[operand] < place[instruction] for operand in needed)
    for run in order.joint_runs:
        places = [order[run.members[0].parent].index(member) for member in run.members]
        assert places == [*range(places[0], places[0] + len(places))]
        assert not any(operand in run.members for member in run.members for operand in member.operands)


def together(order: Schedule) -> list[list[str]]:
    return [[member.name for member in run.members] for run in order.joint_runs]


def program(lines: str, root: str, parameters: int = 4, size: int = ROOM, head: str = "") -> str:
    """An entry of parameters p0, p1 ... of `size` elements."""
    declared = "".join(f"  p{n} = f32[{size}] parameter({n})\n" for n in range(parameters))
    return f"{head}\nENTRY e {{\n{declared}{lines}\n  ROOT {root}\n}}"


TWO = "a = f32[262144] negate(p0)\n b = f32[262144] sine(p1)"
PAIR = "t = (f32[262144], f32[262144]) tuple(a, b)"


def test_kernels_that_do_not_need_each_other_run_together() -> None:
    _, order, plan = planned(program(TWO, PAIR))
    assert together(order) == [["a", "b"]]
    assert order.joint_runs[0].bytes == 4 * 4 * ROOM
    assert plan.arena_bytes == 0


@pytest.mark.parametrize(
    ("size", "why"),
    [(512, "a kernel is too small to be handed out"), (4 * ROOM, "a kernel is enough by itself"), (2048, "too little")],
)
def test_what_gains_nothing_runs_alone(size: int, why: str) -> None:
    _, order, _ = planned(program(TWO, PAIR, size=size).replace("262144", str(size)))
    assert not order.joint_runs, why


def test_a_chain_runs_one_behind_the_other() -> None:
    _, order, _ = planned(program("a = f32[262144] negate(p0)\n b = f32[262144] sine(a)", PAIR))
    assert not order.joint_runs


BEHIND = """
  a = f32[262144] negate(p0)
  m = f32[512,512] reshape(a)
  q = f32[512,512] reshape(p1)
  d = f32[512,512] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ("b = f32[512,512] sine(d)", [["a", "b"]]),
        (
            "c = f32[512,512] dot(m, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nb = f32[512,512] sine(c)",
            [],
        ),
    ],
)
def test_a_kernel_waits_until_it_is_needed(behind: str, expected: list[list[str]]) -> None:
    """And the names of its result wait with it."""
    text = program(BEHIND + behind, "t = (f32[512,512], f32[512,512], f32[262144]) tuple(m, b, a)")
    _, order, _ = planned(text)
    assert together(order) == expected


def test_what_must_not_wait_runs_alone_and_the_rest_waits_on() -> None:
    lines = """
      a = f32[100000] slice(p0), slice={[0:100000]}
      b = f32[262144] sine(p1)
      s = f32[100000] sort(a), dimensions={0}, to_apply=less
      c = f32[262144] negate(p2)
    """
    less = "less { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT l = pred[] compare(x, y), direction=LT }"
    text = program(lines, "t = (f32[100000], f32[262144], f32[100000], f32[262144]) tuple(a, b, s, c)", head=less)
    _, order, _ = planned(text)
    assert together(order) == [["a", "b"]]  # which are enough
    smaller = text.replace("262144", "150000").replace("100000", "50000")
    _, order, _ = planned(smaller)
    assert together(order) == [["b", "c"]]


LOOP = """
less { s = (s32[], f32[1000]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[1000]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[1000] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[1000] sine(x)  ROOT r = (s32[], f32[1000]) tuple(j, y) }
"""


def test_kernels_do_not_move_across_control_flow() -> None:
    lines = """
      a = f32[262144] negate(p0)
      zero = s32[] constant(0)
      x = f32[1000] slice(a), slice={[0:1000]}
      s = (s32[], f32[1000]) tuple(zero, x)
      w = (s32[], f32[1000]) while(s), condition=less, body=step
      y = f32[1000] get-tuple-element(w), index=1
      b = f32[262144] pad(y, p1), padding=0_261144
    """.replace("p1", "z")
    lines = "z = f32[] constant(0)\n" + lines
    _, order, _ = planned(program(lines, PAIR, head=LOOP))
    assert not order.joint_runs


UPDATED = """
  c = f32[262144] sine(p0)
  one = f32[262144] negate(c)
  i = s32[] parameter(4)
  u = f32[1000] slice(p1), slice={[0:1000]}
  new = f32[262144] dynamic-update-slice(c, u, i)
  two = f32[262144] cosine(p2)
"""


def test_a_reader_does_not_wait_behind_an_update_in_place() -> None:
    text = program(UPDATED, "t = (f32[262144], f32[262144], f32[262144]) tuple(one, new, two)")
    module, order, plan = planned(text)
    names = [instruction.name for instruction in order[module.entry]]
    assert names.index("one") < names.index("new")
    place = {instruction.name: locations for instruction, locations in plan.leaves.items()}
    assert place["new"] == place["c"]


def test_what_two_members_read_is_not_written_over() -> None:
    """Alone, the second one would overwrite what both read."""
    lines = """
      c = f32[262144] sine(p0)
      a = f32[262144] negate(c)
      b = f32[131072] slice(c), slice={[0:262144:2]}
      k = f32[131072] sort(b), dimensions={0}, to_apply=less
    """
    less = "less { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT l = pred[] compare(x, y), direction=LT }"
    _, order, plan = planned(program(lines, "t = (f32[262144], f32[131072]) tuple(a, k)", head=less))
    place = {instruction.name: locations for instruction, locations in plan.leaves.items()}
    assert [sorted(names) for names in together(order)] == [["a", "b"]]
    assert place["a"] != place["c"]


def test_a_plan_in_which_members_disturb_each_other_is_found_out() -> None:
    lines = "c = f32[262144] sine(p0)\n a = f32[262144] negate(c)\n b = f32[262144] cosine(c)"
    module = parse(program(lines, PAIR))
    alone = schedule(module)
    plan = assign_buffers(module, alone)
    check_plan(module, alone, plan)
    members = tuple(instruction for instruction in module.entry if instruction.name in "ab")
    run = JointRun(members, 0)
    joint = dataclasses.replace(alone, joint=dict.fromkeys(members, run))
    with pytest.raises(InternalError, match="where it is no more"):
        check_plan(module, joint, plan)
    check_plan(module, joint, assign_buffers(module, joint))


OPTIMIZER = """
HloModule sgd, input_output_alias={ {0}: (0, {}), {1}: (1, {}), {2}: (2, {}) }
ENTRY e {
  p = f32[80000] parameter(0)
  q = f32[300,300] parameter(1)
  r = f32[40000] parameter(2)
  dp = f32[80000] parameter(3)
  dq = f32[300,300] parameter(4)
  dr = f32[40000] parameter(5)
  old = f32[40000] negate(r)
  np = f32[80000] subtract(p, dp)
  nq = f32[300,300] subtract(q, dq)
  nr = f32[40000] subtract(r, dr)
  ROOT t = (f32[80000], f32[300,300], f32[40000], f32[40000]) tuple(np, nq, nr, old)
}
"""


def test_donated_state_is_updated_in_place() -> None:
    _, order, plan = planned(OPTIMIZER)
    assert plan.donations == {0: 0, 1: 1, 2: 2} and plan.arena_bytes == 0
    (names,) = together(order)
    assert {"np", "nq"} < {*names}
    assert not {"nr", "old"} <= {*names}  # one writes over what the other one reads


def test_donated_state_that_may_become_any_result_is_updated_in_place() -> None:
    text = "HloModule any, buffer_donor={ (0, {}), (1, {}), (2, {}) }\n"
    lines = "".join(f"  n{n} = f32[100000] subtract(p{n}, p{n + 3})\n" for n in range(3))
    root = "t = (f32[100000], f32[100000], f32[100000]) tuple(n0, n1, n2)"
    _, order, plan = planned(text + program(lines, root, parameters=6, size=100000))
    assert together(order) == [["n0", "n1", "n2"]]
    assert plan.donations == {0: 0, 1: 1, 2: 2} and plan.arena_bytes == 0


def test_a_reader_of_donated_memory_does_not_wait_behind_its_writer() -> None:
    """The result that takes the memory of p does not read it."""
    text = """
    HloModule given, buffer_donor={ (0, {}) }
    ENTRY e {
      p = f32[262144] parameter(0)
      q = f32[262144] parameter(1)
      a = f32[131072] slice(p), slice={[0:262144:2]}
      b = f32[262144] sine(q)
      c = f32[131072] negate(a)
      d = f32[262144] reverse(q), dimensions={0}
      ROOT t = (f32[262144], f32[131072], f32[262144]) tuple(b, c, d)
    }"""
    _, _, plan = planned(text)
    assert plan.donations == {0: 0} or plan.donations == {2: 0}


@pytest.mark.parametrize("seed", range(12))
def test_any_order_and_plan_is_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LEAST_MEMBER_BYTES", "LEAST_RUN_BYTES"):
        monkeypatch.setattr(joint_runs, limit, 1)
    module = random_program(seed, 80).module.clone()
    cpu_pipeline().run(module)
    order = join_kernels(module, schedule(module))
    check_order(module, order)
    check_plan(module, order, assign_buffers(module, order))
