"""Copies that no instruction stands for, of loops, branches and results."""

from __future__ import annotations

import pytest

import xlapy
from xlapy.codegen.target import host_target
from xlapy.inspection import observe_module
from xlapy.report.copies import copies_of

RECURRENT = """
condition { s = (s32[], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT t = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  h = f32[16,16] get-tuple-element(s), index=1
  d = f32[16,16] dot(h, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[16,16] tanh(d)
  ROOT r = (s32[], f32[16,16]) tuple(j, NEXT) }
ENTRY main { x = f32[16,16] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[16,16]) tuple(zero, x)
  w = (s32[], f32[16,16]) while(s), condition=condition, body=body
  ROOT h = f32[16,16] get-tuple-element(w), index=1 }
"""

TWO_RESULTS = """ENTRY main { x = f32[8] parameter(0)
  y = f32[8] negate(x)
  ROOT t = (f32[8], f32[8], f32[8]) tuple(x, y, y) }"""

BRANCHES = """
one { a = f32[8] parameter(0)  ROOT n = f32[8] sine(a) }
other { a = f32[8] parameter(0)  ROOT r = f32[8] copy(a) }
ENTRY main { x = f32[8] parameter(0)  p = pred[] parameter(1)
  ROOT c = f32[8] conditional(p, x, x), true_computation=one, false_computation=other }"""


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        (RECURRENT.replace("NEXT", "t"), [(1024, 1.0)]),  # where the state begins; the new one is made in its place
        (RECURRENT.replace("NEXT", "d"), [(1024, 1.0), (1024, 10.0)]),  # a product is not made over what it reads
        (TWO_RESULTS, [(32, 1.0), (32, 1.0)]),
        ("ENTRY main { x = f32[] parameter(0)  ROOT t = (f32[], f32[]) tuple(x, x) }", []),
        (BRANCHES, [(32, 1.0)]),
    ],
)
def test_what_is_copied(text: str, copies: list[tuple[int, float]]) -> None:
    found = observe_module(xlapy.hlo.parse("HloModule m\n" + text), xlapy.CompileOptions(), host_target())
    assert [(copy.bytes, copy.runs) for copy in copies_of(found.module, found.plan)] == copies
