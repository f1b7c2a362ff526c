"""What sweeps over rows keep for each other, and when the next rows are fetched."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.codegen.kernels.rows import RowPlan, plan_rows
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse

SUMS = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
CENTERED = """
  x = f32[ROWS,LENGTH] parameter(0)
  g = f32[LENGTH] parameter(1)
  zero = f32[] constant(0)
  m = f32[ROWS] reduce(x, zero), dimensions={1}, to_apply=sum
  n = f32[ROWS,LENGTH] broadcast(m), dimensions={0}
  d = f32[ROWS,LENGTH] subtract(x, n)
  v = f32[ROWS] reduce(d, zero), dimensions={1}, to_apply=sum
  w = f32[ROWS,LENGTH] broadcast(v), dimensions={0}
  y = f32[ROWS,LENGTH] add(d, w)
  c = f32[ROWS,LENGTH] cosine(y)
"""
SCALED = """
  h = f32[ROWS,LENGTH] broadcast(g), dimensions={1}
  e = f32[ROWS,LENGTH] multiply(c, h)
  r = f32[ROWS] reduce(e, zero), dimensions={1}, to_apply=sum
  q = f32[ROWS,LENGTH] broadcast(r), dimensions={0}
  p = f32[ROWS,LENGTH] multiply(e, q)
"""


def text(body: str, root: str, rows: int = 64, length: int = 4096) -> str:
    whole = f"{SUMS} ENTRY main {{ {CENTERED} {body} ROOT t = {root} }}"
    return whole.replace("ROWS", str(rows)).replace("LENGTH", str(length))


def plan(body: str, root: str, length: int = 4096) -> RowPlan:
    return plan_rows(parse(text(body, root, length=length)).entry, 1 << 20, host_target(), in_place=False)


def kept(plan: RowPlan) -> list[list[str]]:
    return [[value.name for value in values] for values in plan.kept]


@pytest.mark.parametrize(("root", "left"), [("add(p, c)", "c"), ("multiply(p, e)", "e")])
def test_what_few_instructions_make_from_what_is_kept_is_made_again(root: str, left: str) -> None:
    """The product `e` of the cosine `c` is made again if that is needed, too; and so is what is made from it."""
    assert kept(plan(SCALED, f"f32[64,4096] {root}")) == [[], [], [left], []]


def test_functions_of_rows_are_computed_once_in_each() -> None:
    """Not for each vector of its elements, as their branches do not leave loops; what has no branch, by itself."""
    body = """
      l = f32[ROWS] log(m)
      q = f32[ROWS,LENGTH] broadcast(l), dimensions={0}
      h = f32[ROWS] negate(v)
      p = f32[ROWS,LENGTH] broadcast(h), dimensions={0}
    """
    beforehand = plan(body, "f32[64,4096] add(p, q)").beforehand
    assert [[value.name for value in values] for values in beforehand] == [[], [], ["l"]]


def test_what_takes_long_to_make_from_what_is_kept_is_kept_too() -> None:
    body = SCALED.replace("multiply(c, h)", "exponential(c)")
    assert kept(plan(body, "f32[64,4096] add(p, c)")) == [[], [], ["c", "e"], []]


def test_what_is_kept_has_room_beside_what_is_not() -> None:
    """Rows of which two have room, and three values that could be kept, one of which makes the others."""
    longer = SCALED + "s = f32[ROWS,LENGTH] multiply(p, c)"
    assert kept(plan(longer, "f32[64,16384] add(s, e)", length=16384)) == [[], [], ["c"], []]


def test_a_sweep_that_computes_functions_folds_few_vectors_and_fetches_the_next_rows() -> None:
    made = plan(SCALED, "f32[64,4096] add(p, d)")
    assert [each.vectors for each in made.reduces[1:]] == [made.reduces[0].vectors, 1]
    (x,) = (operand for operand in made.readers if operand.name == "x")
    assert made.readers[x] == (0, 1, 2, 3)
    assert made.fetching_sweep(x) == 2


def test_the_next_rows_are_fetched_by_the_second_sweep_if_none_computes_functions() -> None:
    made = plan(SCALED.replace("multiply(c, h)", "multiply(d, h)"), "f32[64,4096] add(p, d)")
    (x,) = (operand for operand in made.readers if operand.name == "x")
    assert made.fetching_sweep(x) == made.readers[x][1]


@pytest.mark.parametrize("length", [37, 519, 4096, 16384])
def test_the_results_are_those_of_the_evaluator(length: int) -> None:
    """In f64, as the sums cancel."""
    program = text(SCALED, f"(f32[64,{length}], f32[64]) tuple(p, r)", length=length).replace("f32", "f64")
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(dims) / length for dims in ((64, length), (length,))]
    got, wanted = xlapy.compile(program)(*inputs), xlapy.evaluate(program, *inputs)
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


MOVED = {
    "reversed along rows": ("p = f32[64,4096] reverse(q), dimensions={1}", True),
    "reversed rows": ("p = f32[64,4096] reverse(q), dimensions={0}", False),
    "halves of rows, the other way round": (
        """
        h = f32[64,2048] slice(q), slice={[0:64], [0:2048]}
        t = f32[64,2048] slice(q), slice={[0:64], [2048:4096]}
        p = f32[64,4096] concatenate(t, h), dimensions={1}
        """,
        True,
    ),
    "rows, shifted": (
        """
        h = f32[1,4096] slice(q), slice={[0:1], [0:4096]}
        t = f32[63,4096] slice(q), slice={[1:64], [0:4096]}
        p = f32[64,4096] concatenate(t, h), dimensions={0}
        """,
        False,
    ),
    "rows, padded": (
        """
        t = f32[64,4095] slice(q), slice={[0:64], [1:4096]}
        p = f32[64,4096] pad(t, zero), padding=0_0x1_0
        """,
        True,
    ),
    "pairs in rows": (
        """
        a = f32[64,2048,2] reshape(q)
        b = f32[64,2048,2] reverse(a), dimensions={2}
        p = f32[64,4096] reshape(b)
        """,
        True,
    ),
    "another shape": (
        """
        a = f32[4096,64] reshape(q)
        b = f32[4096,64] reverse(a), dimensions={1}
        p = f32[64,4096] reshape(b)
        """,
        False,
    ),
}


@pytest.mark.parametrize(("moved", "is_kept"), MOVED.values(), ids=MOVED)
def test_what_is_read_at_other_places_is_kept_if_they_are_in_the_same_row(moved: str, *, is_kept: bool) -> None:
    body = f"""
        x = f32[64,4096] parameter(0)
        zero = f32[] constant(0)
        q = f32[64,4096] exponential(x)
        {moved}
        m = f32[64] reduce(q, zero), dimensions={{1}}, to_apply=sum
        n = f32[64,4096] broadcast(m), dimensions={{0}}
        d = f32[64,4096] subtract(p, n)
        ROOT r = f32[64,4096] add(d, q)
    """
    found = plan_rows(parse(f"{SUMS} ENTRY main {{ {body} }}").entry, 1 << 20, host_target(), in_place=False)
    assert kept(found) == [["q"] if is_kept else [], []]
