"""Regions with loops, branches and arrays in them: functions that kernels call, beside the evaluator and beside XLA."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.e2e.test_collectives import run_parallel
from tests.support.values import Array, assert_same, random_array
from xlapy.hlo.element_types import ALL, ElementType, element_type_of
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import HloModule
from xlapy.support.errors import UnsupportedError

CHECKED = xlapy.CompileOptions(verify=True)

# What the regions below share. `number` makes a small integer of anything; T is the element type.
SHARED = """
number { x = T[] parameter(0)  REAL  f = f32[] convert(r)  low = f32[] constant(0)  high = f32[] constant(5)
  n = f32[] clamp(low, f, high)  is_number = pred[] compare(f, f), direction=EQ  s = f32[] select(is_number, n, low)
  ROOT i = s32[] convert(s) }
fold { a = T[] parameter(0)  b = T[] parameter(1)  ROOT s = T[] FOLD(a, b) }
more { s = (s32[], s32[], T[], T[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT c = pred[] compare(i, n), direction=LE }
step { s = (s32[], s32[], T[], T[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  a = T[] get-tuple-element(s), index=2  b = T[] get-tuple-element(s), index=3
  one = s32[] constant(1)  j = s32[] add(i, one)  c = T[] add(a, b)
  ROOT t = (s32[], s32[], T[], T[]) tuple(j, n, c, b) }
looping { a = T[] parameter(0)  b = T[] parameter(1)  zero = s32[] constant(0)  n = s32[] call(b), to_apply=number
  s = (s32[], s32[], T[], T[]) tuple(zero, n, a, b)
  w = (s32[], s32[], T[], T[]) while(s), condition=more, body=step  ROOT r = T[] get-tuple-element(w), index=2 }
sum_of { s = (T[], T[]) parameter(0)  a = T[] get-tuple-element(s), index=0  b = T[] get-tuple-element(s), index=1
  ROOT r = T[] add(a, b) }
product_of { s = (T[], T[]) parameter(0)  a = T[] get-tuple-element(s), index=0  b = T[] get-tuple-element(s), index=1
  ROOT r = T[] multiply(a, b) }
second_of { s = (T[], T[]) parameter(0)  ROOT b = T[] get-tuple-element(s), index=1 }
"""

REGIONS = {
    "looping": "",
    "branching": """
region { a = T[] parameter(0)  b = T[] parameter(1)  x = s32[] call(a), to_apply=number  y = s32[] call(b), to_apply=number
  s = (T[], T[]) tuple(a, b)  less = pred[] compare(x, y), direction=LT
  p = T[] conditional(less, s, s), true_computation=sum_of, false_computation=product_of
  n = s32[] subtract(x, y)
  q = T[] conditional(n, s, s, s), branch_computations={second_of, product_of, sum_of}  ROOT r = T[] add(p, q) }
""",
    "on_arrays": """
region { a = T[] parameter(0)  b = T[] parameter(1)  n = s32[] call(b), to_apply=number
  row = T[6] broadcast(b), dimensions={}  i = s32[6] iota(), iota_dimension=0  k = s32[6] constant({5, 3, 4, 1, 0, 2})
  numbers = T[6] convert(i)  products = T[6] multiply(row, numbers)  zero = T[] constant(ZERO)
  total = T[] reduce(products, zero), dimensions={0}, to_apply=fold
  ordered = s32[6] sort(k), dimensions={0}, to_apply=before  other = s32[6] add(ordered, k)
  taken = s32[1] dynamic-slice(other, n), dynamic_slice_sizes={1}  t = T[1] convert(taken)  u = T[] reshape(t)
  mix = T[] add(total, u)  ROOT r = T[] add(a, mix) }
before { x = s32[] parameter(0)  y = s32[] parameter(1)  ROOT c = pred[] compare(x, y), direction=LT }
""",
    "nested": """
region { a = T[] parameter(0)  b = T[] parameter(1)  ra = T[2,3] broadcast(a), dimensions={}
  rb = T[2,3] broadcast(b), dimensions={}  zero = T[] constant(ZERO)
  m = T[2,3] map(ra, rb), dimensions={0,1}, to_apply=looping
  t = T[2] reduce(m, zero), dimensions={1}, to_apply=looping
  ROOT r = T[] reduce(t, a), dimensions={0}, to_apply=fold }
""",
    "calling": """
region { a = T[] parameter(0)  b = T[] parameter(1)  x = T[] call(a, b), to_apply=inner  ROOT r = T[] call(x, b), to_apply=inner }
inner { a = T[] parameter(0)  b = T[] parameter(1)  m = T[] map(a, b), dimensions={}, to_apply=looping
  n = T[] call(m, b), to_apply=looping  ROOT r = T[] add(n, b) }
""",
    "updating": """
region { a = T[] parameter(0)  b = T[] parameter(1)  zero = s32[] constant(0)  n = s32[] call(b), to_apply=number
  memory = T[7] broadcast(a), dimensions={}  other = T[7] broadcast(b), dimensions={}
  s = (s32[], s32[], T[7], T[7]) tuple(zero, n, memory, other)
  w = (s32[], s32[], T[7], T[7]) while(s), condition=goes_on, body=update
  m = T[7] get-tuple-element(w), index=2  o = T[7] get-tuple-element(w), index=3  p = T[7] add(m, o)
  z = T[] constant(ZERO)  ROOT r = T[] reduce(p, z), dimensions={0}, to_apply=fold }
goes_on { s = (s32[], s32[], T[7], T[7]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT c = pred[] compare(i, n), direction=LE }
update { s = (s32[], s32[], T[7], T[7]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  m = T[7] get-tuple-element(s), index=2  o = T[7] get-tuple-element(s), index=3
  u = T[1] dynamic-slice(o, i), dynamic_slice_sizes={1}  v = T[1] dynamic-slice(m, n), dynamic_slice_sizes={1}
  uv = T[1] add(u, v)  x = T[7] dynamic-update-slice(m, uv, i)  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT t = (s32[], s32[], T[7], T[7]) tuple(j, n, o, x) }
""",
}

# Two values at once, and a comparison, made of the region at hand.
DERIVED = """
both { a = T[] parameter(0)  n = s32[] parameter(1)  b = T[] parameter(2)  m = s32[] parameter(3)
  x = T[] map(a, b), dimensions={}, to_apply=region  k = s32[] call(x), to_apply=number  l = s32[] add(n, m)
  o = s32[] add(k, l)  ROOT t = (T[], s32[]) tuple(x, o) }
less { a = T[] parameter(0)  b = T[] parameter(1)  zero = T[] constant(ZERO)
  x = T[] map(zero, a), dimensions={}, to_apply=region  y = T[] map(zero, b), dimensions={}, to_apply=region
  k = s32[] call(x), to_apply=number  l = s32[] call(y), to_apply=number  ROOT c = pred[] compare(k, l), direction=LT }
less_of_two { a = T[] parameter(0)  b = T[] parameter(1)  n = s32[] parameter(2)  m = s32[] parameter(3)
  c = pred[] call(a, b), to_apply=less  d = pred[] call(b, a), to_apply=less  e = pred[] or(c, d)
  f = pred[] compare(n, m), direction=LT  ROOT r = pred[] select(e, c, f) }
"""

OPERATIONS = {
    "map": """  x = T[2,1,3,1,4] parameter(0)  y = T[24] parameter(1)  z = T[2,1,3,1,4] reshape(y)
  m = T[2,1,3,1,4] map(x, z), dimensions={0,1,2,3,4}, to_apply=region
  a = T[1] slice(y), slice={[3:4]}  b = T[] reshape(a)  c = T[] map(b, b), dimensions={}, to_apply=region
  v = T[6,4] reshape(y)  e = T[0,4] slice(v), slice={[2:2], [0:4]}
  f = T[0,4] map(e, e), dimensions={0,1}, to_apply=region
  ROOT t = (T[2,1,3,1,4], T[], T[0,4]) tuple(m, c, f)""",
    "reduce": """  x = T[2,3,4] parameter(0)  y = T[24] parameter(1)  i = T[] constant(ZERO)  k = s32[24] iota(), iota_dimension=0
  n = s32[] constant(1)  c = T[4,6] reshape(y)  d = T[4,6] add(c, c)
  p = T[2,4] reduce(x, i), dimensions={1}, to_apply=region  q = T[] reduce(x, i), dimensions={0,1,2}, to_apply=region
  r = T[6] reduce(d, i), dimensions={0}, to_apply=region  s = T[4] reduce(d, i), dimensions={1}, to_apply=region
  e = T[0,3] constant({})  f = T[3] reduce(e, i), dimensions={0}, to_apply=region
  v = (T[], s32[]) reduce(y, k, i, n), dimensions={0}, to_apply=both
  ROOT t = (T[2,4], T[], T[6], T[4], T[3], (T[], s32[])) tuple(p, q, r, s, f, v)""",
    "reduce-window": """  x = T[4,6] parameter(0)  y = T[24] parameter(1)  i = T[] constant(ZERO)  j = s32[24] iota(), iota_dimension=0
  n = s32[] constant(0)
  p = T[3,5] reduce-window(x, i), window={size=2x2}, to_apply=region
  q = T[4,4] reduce-window(x, i), window={size=3x2 stride=1x2 pad=1_1x1_1 rhs_dilate=1x1}, to_apply=region
  s = T[24] reduce-window(y, i), window={size=24 pad=23_0}, to_apply=region
  d = T[25] reduce-window(y, i), window={size=4 stride=2 pad=3_3 lhs_dilate=2}, to_apply=region
  v = (T[12], s32[12]) reduce-window(y, j, i, n), window={size=3 stride=2 pad=1_0}, to_apply=both
  ROOT t = (T[3,5], T[4,4], T[24], T[25], (T[12], s32[12])) tuple(p, q, s, d, v)""",
    "select-and-scatter": """  x = T[4,6] parameter(0)  y = T[24] parameter(1)  a = T[6] slice(y), slice={[0:6]}
  s = T[2,3] reshape(a)  i = T[] constant(ZERO)
  p = T[4,6] select-and-scatter(x, s, i), window={size=2x2 stride=2x2}, select=less, scatter=region
  b = T[12] slice(y), slice={[0:12]}  u = T[2,6] reshape(b)
  q = T[4,6] select-and-scatter(x, u, i), window={size=4x1 stride=2x1 pad=1_1x0_0}, select=less, scatter=region
  ROOT t = (T[4,6], T[4,6]) tuple(p, q)""",
    "scatter": """  x = T[4,6] parameter(0)  y = T[24] parameter(1)  k = s32[3,1] constant({{2}, {0}, {2}})
  a = T[18] slice(y), slice={[0:18]}  u = T[3,6] reshape(a)
  p = T[4,6] scatter(x, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=region
  b = T[3] slice(y), slice={[5:8]}
  q = T[24] scatter(y, k, b), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=region
  ROOT t = (T[4,6], T[24]) tuple(p, q)""",
    "sort": """  x = T[3,8] parameter(0)  y = T[24] parameter(1)  i = s32[24] iota(), iota_dimension=0
  p = T[3,8] sort(x), dimensions={1}, is_stable=true, to_apply=less
  q = T[3,8] sort(x), dimensions={0}, is_stable=true, to_apply=less
  v = (T[24], s32[24]) sort(y, i), dimensions={0}, is_stable=true, to_apply=less_of_two
  ROOT t = (T[3,8], T[3,8], (T[24], s32[24])) tuple(p, q, v)""",
}


def module_of(entry: str, region: str, element_type: ElementType) -> HloModule:
    """The operation of `entry` with one of the regions, on arrays of a type."""
    real = "r = f32[] real(w)  w = c64[] convert(x)" if element_type.is_complex else "r = T[] copy(x)"
    text = SHARED.replace("REAL", real) + REGIONS[region] + DERIVED + f"ENTRY e {{\n{entry}\n}}\n"
    if region == "looping":
        text = text.replace("to_apply=region", "to_apply=looping").replace("scatter=region", "scatter=looping")
    text = text.replace("FOLD", "add" if element_type.is_complex else "maximum")  # in any order the same bits
    zero = {"pred": "false"}.get(element_type.kind, "(0, 0)" if element_type.is_complex else "0")
    if element_type.kind == "pred":
        text = text.replace("multiply(", "and(").replace("= T[] add(", "= T[] xor(").replace("= T[1] add(", "= T[1] xor(")
        text = text.replace("= T[7] add(", "= T[7] or(").replace("= T[4,6] add(", "= T[4,6] or(")
    return xlapy.hlo.parse("HloModule m\n" + text.replace("ZERO", zero).replace("T[", f"{element_type}["))


def arguments_of(module: HloModule, seed: int = 3) -> list[Array]:
    random = np.random.default_rng(seed)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    return [random_array(random, shape.type, shape.dims) for shape in shapes]


def check(module: HloModule) -> None:
    """Native code and the evaluator agree to the bit."""
    arguments = arguments_of(module)
    assert_same(xlapy.compile(module, CHECKED)(*arguments), evaluate(module, *arguments))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_applies_a_region(operation: str, region: str) -> None:
    check(module_of(OPERATIONS[operation], region, element_type_of(np.dtype(np.float32))))
