"""Rows of an array read, changed and written back in a loop, in the memory where they are."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same, random_array
from xlapy.hlo.element_types import F32
from xlapy.hlo.graph import HloModule
from xlapy.hlo.text import parse

PROGRAM = """
c {{
  s = (s32[], f32[7,{n}], f32[{n}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT
}}
b {{
  s = (s32[], f32[7,{n}], f32[{n}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  x = f32[7,{n}] get-tuple-element(s), index=1
  v = f32[{n}] get-tuple-element(s), index=2
  d = f32[1,{n}] dynamic-slice(x, {read}), dynamic_slice_sizes={{1,{n}}}
  r = f32[{n}] reshape(d)
  m = f32[{n}] multiply(r, v)
  a = f32[{n}] add(m, r)
  k = f32[1,{n}] reshape(a)
  y = f32[7,{n}] dynamic-update-slice(x, k, i, zero)
  ROOT t = (s32[], f32[7,{n}], f32[{n}]) tuple(j, y, v)
}}
ENTRY main {{
  x = f32[7,{n}] parameter(0)
  v = f32[{n}] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[7,{n}], f32[{n}]) tuple(z, x, v)
  w = (s32[], f32[7,{n}], f32[{n}]) while(t), condition=c, body=b
  ROOT r = f32[7,{n}] get-tuple-element(w), index=1
}}
"""


def program(size: int, read: str = "i, zero", trips: int = 9) -> HloModule:
    return parse(PROGRAM.format(n=size, read=read, trips=trips))


@pytest.mark.parametrize("size", [1, 3, 8, 13, 31, 64, 100, 1003])
@pytest.mark.parametrize("read", ["i, zero", "j, zero", "i, i"])
def test_rows_changed_in_place(size: int, read: str) -> None:
    """Of the same row, of the next one (which is moved inward at the end), of the same by other indices."""
    module = program(size, read)
    random = np.random.default_rng(size)
    x, v = random_array(random, F32, (7, size)), random_array(random, F32, (size,))
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(module, x, v)
    assert_same(xlapy.compile(module, xlapy.CompileOptions(verify=True))(x, v), expected)


def test_a_row_that_is_read_where_it_is_written_has_no_copy() -> None:
    same, next_one = (xlapy.compile(program(1003, read)) for read in ("i, zero", "j, zero"))
    assert same.llvm_ir().count("memcpy.p0") < next_one.llvm_ir().count("memcpy.p0")
    temporaries = [exe.memory_analysis()["temporary_bytes"] for exe in (same, next_one)]
    assert temporaries[0] < 1003 * 4 <= temporaries[1]


def test_a_row_that_is_wanted_as_it_was() -> None:
    text = """ENTRY main {
      p = f32[5,13] parameter(0)
      i = s32[] parameter(1)
      zero = s32[] constant(0)
      x = f32[5,13] tanh(p)
      d = f32[1,13] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,13}
      n = f32[1,13] negate(d)
      y = f32[5,13] dynamic-update-slice(x, n, i, zero)
      ROOT t = (f32[5,13], f32[1,13], f32[5,13]) tuple(y, d, x)
    }"""
    x = np.random.default_rng(0).normal(size=(5, 13)).astype(np.float32)
    got, expected = xlapy.compile(text)(x, np.int32(3)), xlapy.evaluate(text, x, np.int32(3))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


STENCIL = """
c { s = (s32[], f32[N], f32[N]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)  ROOT l = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[N], f32[N]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[N] get-tuple-element(s), index=1  v = f32[N] get-tuple-element(s), index=2
  one = s32[] constant(1)  two = s32[] constant(2)  j = s32[] add(i, one)
  a = f32[INNER] slice(x), slice={[0:INNER]}  b = f32[INNER] slice(x), slice={[1:LAST]}
  c = f32[INNER] slice(x), slice={[2:N]}  w = f32[INNER] slice(v), slice={[1:LAST]}
  STEP
  ROOT t = (s32[], f32[N], f32[N]) tuple(j, u, y) }
ENTRY main { x = f32[N] parameter(0)  v = f32[N] parameter(1)  z = s32[] constant(0)
  t = (s32[], f32[N], f32[N]) tuple(z, x, v)
  ROOT w = (s32[], f32[N], f32[N]) while(t), condition=c, body=b }
"""
KEPT = "y = f32[N] copy(v)"
STENCILS = {
    "a part of itself": f"m = f32[INNER] multiply(b, b)  u = f32[N] dynamic-update-slice(x, m, one) {KEPT}",
    "with another": f"""m = f32[INNER] multiply(b, w)  e = f32[INNER] add(m, b)
        u = f32[N] dynamic-update-slice(x, e, one) {KEPT}""",
    "one before": f"m = f32[INNER] multiply(a, w)  u = f32[N] dynamic-update-slice(x, m, one) {KEPT}",
    "itself and one behind": f"m = f32[INNER] subtract(b, c)  u = f32[N] dynamic-update-slice(x, m, one) {KEPT}",
    "three": f"""m = f32[INNER] add(a, c)  e = f32[INNER] subtract(m, b)
        u = f32[N] dynamic-update-slice(x, e, one) {KEPT}""",
    "at another place": f"m = f32[INNER] multiply(b, w)  u = f32[N] dynamic-update-slice(x, m, two) {KEPT}",
    "what others read": """m = f32[INNER] multiply(b, w)  u = f32[N] dynamic-update-slice(x, m, one)
        d = f32[INNER] subtract(b, c)  y = f32[N] dynamic-update-slice(v, d, one)""",
}


@pytest.mark.parametrize("size", [3, 9, 10, 19, 34, 66, 133, 1003])
@pytest.mark.parametrize("name", STENCILS)
def test_steps_of_stencils(name: str, size: int) -> None:
    """What is replaced is read before, element by element, also where the last vectors overlap."""
    text = STENCIL.replace("STEP", STENCILS[name]).replace("INNER", str(size - 2))
    module = parse(text.replace("LAST", str(size - 1)).replace("[N]", f"[{size}]").replace(":N]", f":{size}]"))
    random = np.random.default_rng(size)
    x, v = (random_array(random, F32, (size,)) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(module, x, v)
    assert_same(xlapy.compile(module, xlapy.CompileOptions(verify=True))(x, v), expected)
