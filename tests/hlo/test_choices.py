"""Regions that choose are told by what they do, however they are written."""

from __future__ import annotations

import pytest

import xlapy
from tests.support.choices import region
from xlapy.hlo.choices import Choice, Tie, choice_of

FIRST, LAST = Tie.FIRST, Tie.LAST


def chosen(
    body: str, *, key: str = "f32", place: str = "s32", other: str = "iota(), iota_dimension=1"
) -> Choice | None:
    """What a fold along rows chooses whose region ends in `body`."""
    module = xlapy.hlo.parse(f"""HloModule m
      {region("region", body, key, place)}
      ENTRY main {{
        x = {key}[4,100] parameter(0)
        y = {place}[4,100] {other}
        c = {key}[] parameter(1)
        d = {place}[] parameter(2)
        ROOT r = ({key}[4], {place}[4]) reduce(x, y, c, d), dimensions={{1}}, to_apply=region
      }}""")
    return choice_of(module.entry.root)


def test_argmax() -> None:
    body = """keeps = pred[] or(gt, nan)
        tie = pred[] and(eq, before)
        first = pred[] or(keeps, tie)
        v = f32[] select(keeps, a, b)
        p = s32[] select(first, i, j)
        ROOT t = (f32[], s32[]) tuple(v, p)"""
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
