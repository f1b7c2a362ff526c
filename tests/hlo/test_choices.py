"""Regions that choose are told by what they do, however they are written."""

from __future__ import annotations

import pytest

import xlapy
from tests.support.choices import region
from xlapy.hlo.choices import Choice, Tie, choice_of, chooses_in_parts
from xlapy.hlo.graph import Instruction

FIRST, LAST = Tie.FIRST, Tie.LAST

ARGMAX = """keeps = pred[] or(gt, nan)
        tie = pred[] and(eq, before)
        first = pred[] or(keeps, tie)
        v = f32[] select(keeps, a, b)
        p = s32[] select(first, i, j)
        ROOT t = (f32[], s32[]) tuple(v, p)"""


def fold(
    body: str,
    *,
    key: str = "f32",
    place: str = "s32",
    other: str = "iota(), iota_dimension=1",
    init: str = "parameter(2)",
) -> Instruction:
    """A fold along rows whose region ends in `body`."""
    module = xlapy.hlo.parse(f"""HloModule m
      {region("region", body, key, place)}
      ENTRY main {{
        x = {key}[4,100] parameter(0)
        y = {place}[4,100] {other}
        c = {key}[] {init}
        d = {place}[] parameter(1)
        ROOT r = ({key}[4], {place}[4]) reduce(x, y, c, d), dimensions={{1}}, to_apply=region
      }}""")
    return module.entry.root


def chosen(
    body: str, *, key: str = "f32", place: str = "s32", other: str = "iota(), iota_dimension=1"
) -> Choice | None:
    """What it chooses."""
    return choice_of(fold(body, key=key, place=place, other=other))


def test_argmax() -> None:
    body = ARGMAX
    assert chosen(body) == Choice(0, True, (LAST, FIRST))
    assert chosen(body, other="parameter(3)") is None, "places must say what is first"
    assert chosen(body.replace("or(gt, nan)", "or(lt, nan)")) == Choice(0, False, (LAST, FIRST))
    assert chosen(body.replace("or(gt, nan)", "or(gt, gt)")) is None, "a NaN must win from both sides"


def test_the_first_of_equals_whatever_comes_with_it() -> None:
    body = """v = s32[] select(ge, a, b)
        p = u8[] select(ge, i, j)
        ROOT t = (s32[], u8[]) tuple(v, p)"""
    assert chosen(body, key="s32", place="u8", other="parameter(3)") == Choice(0, True, (FIRST, FIRST))
    assert chosen(body.replace("ge", "gt"), key="s32", place="u8", other="parameter(3)") == Choice(
        0, True, (LAST, LAST)
    )


def test_sides_in_another_order() -> None:
    body = """less = pred[] not(ge)
        v = s32[] select(less, b, a)
        p = s32[] select(less, j, i)
        ROOT t = (s32[], s32[]) tuple(v, p)"""
    assert chosen(body, key="s32") == Choice(0, True, (FIRST, FIRST))


def test_keys_may_come_second() -> None:
    body = """v = f32[] select(before, a, b)
        p = s32[] select(before, i, j)
        ROOT t = (f32[], s32[]) tuple(v, p)"""
    assert chosen(body, other="parameter(3)") == Choice(1, False, (LAST, LAST))


@pytest.mark.parametrize(
    "body",
    [
        "ROOT t = (s32[], s32[]) tuple(a, i)",
        "v = s32[] add(a, b)\n p = s32[] select(gt, i, j)\n ROOT t = (s32[], s32[]) tuple(v, p)",
        "v = s32[] select(gt, a, b)\n p = s32[] select(gt, j, i)\n ROOT t = (s32[], s32[]) tuple(v, p)",
        "v = s32[] select(gt, a, j)\n p = s32[] select(gt, i, j)\n ROOT t = (s32[], s32[]) tuple(v, p)",
        "z = s32[] constant(0)\n c = pred[] compare(a, z), direction=GT\n v = s32[] select(c, a, b)\n"
        "p = s32[] select(c, i, j)\n ROOT t = (s32[], s32[]) tuple(v, p)",
        "c = pred[] compare(a, j), direction=GT\n v = s32[] select(c, a, b)\n"
        "p = s32[] select(c, i, j)\n ROOT t = (s32[], s32[]) tuple(v, p)",
    ],
)
def test_what_does_something_else(body: str) -> None:
    assert chosen(body, key="s32") is None


def test_total_orders_are_not_the_usual_one() -> None:
    body = """keeps = pred[] compare(a, b), direction=GT, type=TOTALORDER
        v = f32[] select(keeps, a, b)
        p = s32[] select(keeps, i, j)
        ROOT t = (f32[], s32[]) tuple(v, p)"""
    assert chosen(body) is None


def test_truth_values_as_keys() -> None:
    body = """v = pred[] select(ge, a, b)
        p = s32[] select(ge, i, j)
        ROOT t = (pred[], s32[]) tuple(v, p)"""
    assert chosen(body, key="pred") == Choice(0, True, (FIRST, FIRST))
    assert chosen(body.replace("select(ge, a, b)", "or(a, b)"), key="pred") is None
    assert chosen(body.replace("select(ge, a, b)", "select(a, a, b)"), key="pred") is None
    assert chosen(body.replace("(ge, a, b)", "(eq, lt, gt)"), key="pred") is None


@pytest.mark.parametrize(
    ("dims", "cut", "dimension", "ascends"),
    [
        ("[12000]", "[30,400]", 0, True),
        ("[60,200]", "[30,400]", 0, False),
        ("[30,400]", "[30,2,200]", 1, True),
        ("[30,400]", "[30,2,200]", 0, False),
        ("[30,400]", "[60,200]", 1, True),
        ("[30,400,1]", "[30,1,400]", 1, True),
    ],
)
def test_places_may_be_cut(dims: str, cut: str, dimension: int, ascends: bool) -> None:
    """What ascends along a dimension does so along each of its parts, and along nothing else."""
    size = cut.strip("[]").split(",")
    module = xlapy.hlo.parse(f"""HloModule m
      {region("region", ARGMAX, "f32", "s32")}
      ENTRY main {{
        x = f32{cut} parameter(0)
        n = s32{dims} iota(), iota_dimension={dimension}
        y = s32{cut} reshape(n)
        c = f32[] constant(0)
        d = s32[] constant(0)
        ROOT r = (f32[{",".join(size[:-1])}], s32[{",".join(size[:-1])}]) reduce(x, y, c, d),
          dimensions={{{len(size) - 1}}}, to_apply=region
      }}""")
    assert (choice_of(module.entry.root) is not None) == ascends


def test_parts_begin_with_the_initial_values() -> None:
    """These take part several times, which must change nothing."""
    assert chooses_in_parts(fold(ARGMAX, init="constant(-inf)"))
    assert not chooses_in_parts(fold(ARGMAX, init="constant(-0.0)")), "the last of equals may have another sign"
    assert not chooses_in_parts(fold(ARGMAX)), "it may be a zero"
    last = ARGMAX.replace("and(eq, before)", "and(eq, lt)")
    assert chosen(last) == Choice(0, True, (LAST, LAST))
    assert not chooses_in_parts(fold(last, init="constant(-inf)")), "the initial values would come later than an equal"
    first = """v = s32[] select(ge, a, b)
        p = u8[] select(ge, i, j)
        ROOT t = (s32[], u8[]) tuple(v, p)"""
    assert chooses_in_parts(fold(first, key="s32", place="u8", other="parameter(3)"))
    assert not chooses_in_parts(fold(first.replace("(ge, i", "(gt, i"), key="s32", place="u8", other="parameter(3)"))
    assert not chooses_in_parts(fold(first.replace("select(ge, i, j)", "add(i, j)"), key="s32", place="u8"))
