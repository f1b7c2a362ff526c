"""Folds of a few arrays side by side, which are not asked for each element which of them it is in."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import flatten

SUM = "sum { a = T[] parameter(0)  b = T[] parameter(1)  ROOT s = T[] add(a, b) }"

FOLDS = {
    "rows": """x = T[70,90] parameter(0)  y = T[70,90] parameter(1)  z = T[] constant(0)
        a = T[1,70,90] reshape(x)  b = T[1,70,90] reshape(y)  s = T[1,70,90] add(a, b)
        c = T[3,70,90] concatenate(a, s, b), dimensions={0}
        ROOT r = T[70,90] reduce(c, z), dimensions={0}, to_apply=sum""",
    "parts of several": """x = T[70,90] parameter(0)  y = T[70,90] parameter(1)  z = T[] constant(0)
        a = T[2,35,90] reshape(x)  b = T[2,35,90] reshape(y)  s = T[2,35,90] multiply(a, b)
        c = T[6,35,90] concatenate(a, s, b), dimensions={0}  d = T[6,35,90] multiply(c, c)
        ROOT r = T[35,90] reduce(d, z), dimensions={0}, to_apply=sum""",
    "two dimensions": """x = T[70,90] parameter(0)  y = T[70,90] parameter(1)  z = T[] constant(0)
        a = T[7,1,10,90] reshape(x)  b = T[7,1,10,90] reshape(y)
        c = T[7,2,10,90] concatenate(a, b), dimensions={1}  d = T[7,2,10,90] multiply(c, c)
        ROOT r = T[7,90] reduce(d, z), dimensions={1,2}, to_apply=sum""",
    "neighbours": """x = T[70,90] parameter(0)  y = T[70,90] parameter(1)  z = T[] constant(0)
        a = T[70,90,1] reshape(x)  b = T[70,90,1] reshape(y)  s = T[70,90,1] subtract(a, b)
        c = T[70,90,4] concatenate(a, s, b, a), dimensions={2}
        ROOT r = T[70,90] reduce(c, z), dimensions={2}, to_apply=sum""",
    "too many": """x = T[70,90] parameter(0)  y = T[70,90] parameter(1)  z = T[] constant(0)
        a = T[10,7,90] reshape(x)  b = T[10,7,90] reshape(y)
        c = T[20,7,90] concatenate(a, b), dimensions={0}  d = T[20,7,90] multiply(c, c)
        ROOT r = T[7,90] reduce(d, z), dimensions={0}, to_apply=sum""",
}


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize(
    ("type", "dtype"), [("f32", np.float32), ("s16", np.int16), ("bf16", ml_dtypes.bfloat16), ("c64", np.complex64)]
)
def test_sums_of_what_is_joined(name: str, type: str, dtype: Any) -> None:
    text = f"HloModule m {SUM} ENTRY e {{ {FOLDS[name]} }}".replace("T[", f"{type}[")
    if type == "c64":
        text = text.replace("constant(0)", "constant((0, 0))")
    generator = np.random.default_rng(0)
    x, y = (generator.integers(-5, 5, (70, 90)).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(xlapy.compile(text)(x, y), xlapy.evaluate(text, x, y))


FIRST = """HloModule m
largest { a = pred[] parameter(0)  i = s32[] parameter(1)  b = pred[] parameter(2)  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(i, j), direction=LT  n = pred[] and(e, l)  o = pred[] or(g, n)
  v = pred[] select(g, a, b)  p = s32[] select(o, i, j)
  ROOT t = (pred[], s32[]) tuple(v, p) }
ENTRY e { x = f32[3000] parameter(0)
  zero = f32[] constant(0)  zeros = f32[3000] broadcast(zero), dimensions={}
  one = f32[] constant(1)  ones = f32[3000] broadcast(one), dimensions={}
  p = pred[3000] compare(x, zeros), direction=LT  q = pred[3000] compare(x, ones), direction=LT
  p1 = pred[1,3000] reshape(p)  q1 = pred[1,3000] reshape(q)
  f = pred[] constant(false)  f1 = pred[1,3000] broadcast(f), dimensions={}
  c = pred[3,3000] concatenate(f1, p1, q1), dimensions={0}
  i = s32[3,3000] iota(), iota_dimension=0
  n = s32[] constant(0)
  ROOT r = (pred[3000], s32[3000]) reduce(c, i, f, n), dimensions={0}, to_apply=largest }
"""


def test_the_first_of_several_conditions() -> None:
    x = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    for found, expected in zip(flatten(xlapy.compile(FIRST)(x)), flatten(xlapy.evaluate(FIRST, x)), strict=True):
        np.testing.assert_array_equal(found, expected)
