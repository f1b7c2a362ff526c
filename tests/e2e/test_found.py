"""Programs that were compiled wrongly once, each made small. The title says what was wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import xlapy
from tests.support.guarded_memory import read_only
from tests.support.values import assert_same, edges, random_array
from xlapy.hlo.element_types import C64


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    text: str


CASES = [
    Case(
        "the largest integers of a row, taken for their places",
        """HloModule largest
ENTRY main {
  x = s32[4,5] parameter(0)
  largest = (s32[4,2], s32[4,2]) topk(x), k=2, largest=true
  values = s32[4,2] get-tuple-element(largest), index=0
  five = s32[] constant(5)
  limits = s32[4,2] broadcast(five), dimensions={}
  ROOT above = pred[4,2] compare(values, limits), direction=GE
}""",
    ),
    Case(
        "a number between bounds that are computed",
        """HloModule bounds
ENTRY main {
  x = s32[40] parameter(0)
  seven = s32[] constant(7)
  sevens = s32[40] broadcast(seven), dimensions={}
  low = s32[40] and(x, sevens)
  zero = s32[] constant(0)
  zeros = s32[40] broadcast(zero), dimensions={}
  nine = s32[] constant(9)
  nines = s32[40] broadcast(nine), dimensions={}
  up = s32[40] clamp(low, zeros, nines)
  down = s32[40] clamp(zeros, nines, low)
  is_above = pred[40] compare(up, zeros), direction=GT
  is_below = pred[40] compare(down, sevens), direction=LT
  ROOT both = (pred[40], pred[40]) tuple(is_above, is_below)
}""",
    ),
    Case(
        "elements of a loop's state that change places",
        """HloModule swap
body {
  p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[8] get-tuple-element(p), index=1
  b = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[8], f32[8]) tuple(next, b, a)
}
condition {
  p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  limit = s32[] constant(3)
  ROOT c = pred[] compare(i, limit), direction=LT
}
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8], f32[8]) tuple(zero, x, y)
  ROOT w = (s32[], f32[8], f32[8]) while(t), condition=condition, body=body
}""",
    ),
    Case(
        "a scalar and an array of one element of a loop's state that change places: the check of plans refused it",
        """HloModule refused
body {
  p = (s32[], s32[1], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  array = s32[1] get-tuple-element(p), index=1
  scalar = s32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = s32[1] reshape(scalar)
  s = s32[] reshape(array)
  ROOT t = (s32[], s32[1], s32[]) tuple(next, a, s)
}
condition {
  p = (s32[], s32[1], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  limit = s32[] constant(5)
  ROOT c = pred[] compare(i, limit), direction=LT
}
ENTRY main {
  x = s32[1] parameter(0)
  y = s32[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], s32[1], s32[]) tuple(zero, x, y)
  ROOT w = (s32[], s32[1], s32[]) while(t), condition=condition, body=body
}""",
    ),
    Case(
        "elements of a nested state that change places in an inner loop that does not touch them",
        """HloModule nested
inner_body {
  p = (s32[], (f32[8], f32[8])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ab = (f32[8], f32[8]) get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], (f32[8], f32[8])) tuple(next, ab)
}
condition {
  p = (s32[], (f32[8], f32[8])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  limit = s32[] constant(3)
  ROOT c = pred[] compare(i, limit), direction=LT
}
body {
  p = (s32[], (f32[8], f32[8])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ab = (f32[8], f32[8]) get-tuple-element(p), index=1
  a = f32[8] get-tuple-element(ab), index=0
  b = f32[8] get-tuple-element(ab), index=1
  ba = (f32[8], f32[8]) tuple(b, a)
  zero = s32[] constant(0)
  start = (s32[], (f32[8], f32[8])) tuple(zero, ba)
  w = (s32[], (f32[8], f32[8])) while(start), condition=condition, body=inner_body
  moved = (f32[8], f32[8]) get-tuple-element(w), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], (f32[8], f32[8])) tuple(next, moved)
}
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  xy = (f32[8], f32[8]) tuple(x, y)
  zero = s32[] constant(0)
  t = (s32[], (f32[8], f32[8])) tuple(zero, xy)
  ROOT w = (s32[], (f32[8], f32[8])) while(t), condition=condition, body=body
}""",
    ),
    Case(
        "a broadcast that only transposes, of a square",
        """HloModule broadcast
ENTRY main {
  p = f32[7,7] parameter(0)
  b = f32[7,7] broadcast(p), dimensions={1,0}
  ROOT n = f32[7,7] negate(b)
}""",
    ),
    Case(
        "the bits of a scalar in a register",
        """HloModule bits
ENTRY main {
  q = u64[] parameter(0)
  f = f64[] bitcast-convert(q)
  g = f64[] abs(f)
  h = u64[] bitcast-convert(g)
  parts = u32[2] bitcast-convert(h)
  whole = f64[] bitcast-convert(parts)
  one = u64[] constant(1)
  odd = u64[] or(h, one)
  ROOT t = (f64[], u64[], u32[2], f64[]) tuple(g, odd, parts, whole)
}""",
    ),
    Case(
        "one element, read as two types",
        """HloModule bits
ENTRY main {
  q = u32[1] parameter(0)
  f = f32[1] bitcast-convert(q)
  a = u32[] reshape(q)
  b = f32[] reshape(f)
  c = f32[] convert(a)
  d = s32[] convert(b)
  ROOT t = (f32[], s32[]) tuple(c, d)
}""",
    ),
    Case(
        "the bits of integers narrower than a byte",
        """HloModule bits
ENTRY main {
  q = s4[13] parameter(0)
  u = u4[13] bitcast-convert(q)
  ROOT w = s32[13] convert(u)
}""",
    ),
    Case(
        "a fold of several inputs, of the result of another one",
        """HloModule folds
larger {
  a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(b, a), direction=GT
  v = s32[] select(c, b, a)
  k = s32[] select(c, j, i)
  ROOT t = (s32[], s32[]) tuple(v, k)
}
ENTRY main {
  x = s32[4,1,3] parameter(0)
  i = s32[4,1,3] iota(), iota_dimension=0
  low = s32[] parameter(1)
  zero = s32[] parameter(2)
  r = (s32[4,1], s32[4,1]) reduce(x, i, low, zero), dimensions={2}, to_apply=larger
  v = s32[4,1] get-tuple-element(r), index=0
  k = s32[4,1] get-tuple-element(r), index=1
  s = (s32[4], s32[4]) reduce(v, k, low, zero), dimensions={1}, to_apply=larger
  ROOT g = s32[4] get-tuple-element(s), index=1
}""",
    ),
    Case(
        "whether a complex number is zero depends on both parts",
        """HloModule complex
ENTRY main {
  z = c64[9] parameter(0)
  i = c64[9] constant({(0,0),(0,1),(1,0),(1,1),(0,nan),(nan,0),(-0,0),(0,-0),(inf,0)})
  zero = pred[9] convert(z)
  ROOT t = (pred[9], pred[9]) tuple(zero, pred[9] convert(i))
}""",
    ),
    Case(
        "NaN in a maximum of complex numbers",
        """HloModule complex
ENTRY main {
  y = c128[4] parameter(0)
  x = c128[4] constant({(nan,0),(0,nan),(1,1),(inf,2)})
  a = c128[4] maximum(x, y)
  b = c128[4] maximum(y, x)
  c = c128[4] minimum(x, y)
  d = c128[4] minimum(y, x)
  ROOT t = (c128[4], c128[4], c128[4], c128[4]) tuple(a, b, c, d)
}""",
    ),
    Case(
        "NaN in a type that has none",
        """HloModule narrow
ENTRY main {
  x = f6e3m2fn[5] constant({0, 1, 2, -1, 4})
  p = f6e3m2fn[5] parameter(0)
  zero = f6e3m2fn[5] subtract(p, p)
  r = f6e3m2fn[5] remainder(x, zero)
  ROOT n = f6e3m2fn[5] negate(r)
}""",
    ),
    Case(
        "numbers that a type does not have, inside a fusion: an infinity of f8e4m3fn, a negative zero of f8e5m2fnuz",
        """HloModule narrow
ENTRY main {
  p = f8e4m3fn[9] parameter(0)
  q = f8e4m3fn[9] reduce-precision(p), exponent_bits=2, mantissa_bits=3
  wide = f32[9] convert(q)
  z = f8e5m2fnuz[3] constant({0, 1, -2})
  n = f8e5m2fnuz[3] negate(z)
  one = f32[3] constant({1, 1, 1})
  d = f32[3] divide(one, f32[3] convert(n))
  ROOT t = (f32[9], f32[3]) tuple(wide, d)
}""",
    ),
    Case(
        "false as a power of two, on the way to another type",
        """HloModule narrow
ENTRY main {
  p = pred[9] parameter(0)
  q = f8e8m0fnu[9] convert(p)
  ROOT wide = f32[9] convert(q)
}""",
    ),
    Case(
        "conversion between narrow floats that numpy does not convert between",
        """HloModule narrow
ENTRY main {
  p = f8e8m0fnu[9] parameter(0)
  a = f8e4m3[9] convert(p)
  b = f8e4m3b11fnuz[9] convert(a)
  ROOT c = f8e8m0fnu[9] convert(b)
}""",
    ),
    Case(
        "sums of rows, broadcast so that rows and columns of them change places",
        """HloModule rows
sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
ENTRY main {
  x = s32[3,3,16] parameter(0)
  z = s32[] constant(0)
  r = s32[3,3] reduce(x, z), dimensions={2}, to_apply=sum
  ROOT b = s32[3,3] broadcast(r), dimensions={1,0}
}""",
    ),
    Case(
        "elements that a gather takes from slices without elements, of arrays with and without them",
        """HloModule slices
ENTRY main {
  x = f32[4,5] parameter(0)
  y = f32[4,0] parameter(1)
  i = s32[3] parameter(2)
  one = s32[1] constant({1})
  a = f32[3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1},
    index_vector_dim=1, slice_sizes={4,0}
  b = f32[1,4] gather(y, one), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1},
    index_vector_dim=1, slice_sizes={4,0}
  c = f32[1,4] gather(x, one), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1},
    index_vector_dim=1, slice_sizes={4,0}
  z = f8e8m0fnu[4,0] parameter(3)
  d = f8e8m0fnu[3,4] gather(z, i), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1},
    index_vector_dim=1, slice_sizes={4,0}
  ROOT t = (f32[3,4], f32[1,4], f32[1,4], f8e8m0fnu[3,4]) tuple(a, b, c, d)
}""",
    ),
    Case(
        "a scan with numbers of steps that wrap, so that it reads the first slice again and again",
        """HloModule wraps
body {
  s = (s8[], s32[131,16,8], s32[8,80], s32[16,80]) parameter(0)
  i = s8[] get-tuple-element(s), index=0
  x = s32[131,16,8] get-tuple-element(s), index=1
  w = s32[8,80] get-tuple-element(s), index=2
  h = s32[16,80] get-tuple-element(s), index=3
  first = s8[] constant(60)
  zero = s8[] constant(0)
  one = s8[] constant(1)
  j = s8[] add(i, first)
  part = s32[1,16,8] dynamic-slice(x, j, zero, zero), dynamic_slice_sizes={1,16,8}
  now = s32[16,8] reshape(part)
  p = s32[16,80] dot(now, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  twice = s32[16,80] add(h, h)
  next = s32[16,80] add(twice, p)
  k = s8[] add(i, one)
  ROOT t = (s8[], s32[131,16,8], s32[8,80], s32[16,80]) tuple(k, x, w, next)
}
condition {
  s = (s8[], s32[131,16,8], s32[8,80], s32[16,80]) parameter(0)
  i = s8[] get-tuple-element(s), index=0
  limit = s8[] constant(70)
  ROOT c = pred[] compare(i, limit), direction=LT
}
ENTRY main {
  x = s32[131,16,8] parameter(0)
  w = s32[8,80] parameter(1)
  h = s32[16,80] parameter(2)
  zero = s8[] constant(0)
  t = (s8[], s32[131,16,8], s32[8,80], s32[16,80]) tuple(zero, x, w, h)
  l = (s8[], s32[131,16,8], s32[8,80], s32[16,80]) while(t), condition=condition, body=body
  ROOT r = s32[16,80] get-tuple-element(l), index=3
}""",
    ),
    Case(
        "a fold whose group, joined with what follows, could be joined with more",
        """HloModule again
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
larger {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT m = s32[] maximum(a, b)
}
ENTRY main {
  x = s32[3,3] parameter(0)
  s = s32[] parameter(1)
  zero = s32[] constant(0)
  r = s32[3] reduce(x, zero), dimensions={0}, to_apply=sum
  multiply = s32[3] multiply(r, r)
  low = s32[3] broadcast(s), dimensions={}
  clamp = s32[3] clamp(low, multiply, s)
  seven = s32[] constant(7)
  sevens = s32[3] broadcast(seven), dimensions={}
  xor = s32[3] xor(sevens, clamp)
  add = s32[3] add(sevens, multiply)
  last = s32[3] clamp(seven, xor, add)
  converted = f32[3] convert(add)
  folded = s32[] reduce(clamp, zero), dimensions={0}, to_apply=larger
  everywhere = s32[3] broadcast(folded), dimensions={}
  ROOT t = (s32[3], s32[3], f32[3], s32[3]) tuple(last, xor, converted, everywhere)
}""",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title.replace(" ", "-"))
def test_found(case: Case) -> None:
    module = xlapy.hlo.parse(case.text)
    random = np.random.default_rng(0)
    arguments = [random_array(random, p.shape.type, p.shape.dims) for p in module.entry.parameters]
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(module, *arguments)
    got = xlapy.compile(module, xlapy.CompileOptions(verify=True))(*arguments)
    assert_same(got, expected)


def test_extrema_of_complex_zeros() -> None:
    """Native code took the second of equal numbers, the evaluator the first: with zeros of both signs these differ."""
    zeros = np.array([complex(re, im) for re in (0.0, -0.0) for im in (0.0, -0.0)], np.complex64)
    lhs, rhs = np.repeat(zeros, 4), np.tile(zeros, 4)
    for opcode in ("maximum", "minimum"):
        text = f"ENTRY e {{ x = c64[16] parameter(0)  y = c64[16] parameter(1)  ROOT r = c64[16] {opcode}(x, y) }}"
        expected = xlapy.evaluate(xlapy.hlo.parse(text), lhs, rhs)
        assert_same(xlapy.compile(text)(lhs, rhs), expected)
        assert_same(xlapy.compile(text)(rhs, lhs), expected)


def test_sums_of_complex_products_begin_with_zero() -> None:
    """The evaluator had -0 from numpy's library."""
    random = np.random.default_rng(0)
    lhs, rhs = (random.integers(-1, 2, dims).astype(np.complex64) * -1 for dims in ((5, 3), (3, 2)))
    text = """ENTRY e { x = c64[5,3] parameter(0)  y = c64[3,2] parameter(1)
      ROOT d = c64[5,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    expected = xlapy.evaluate(text, lhs, rhs)
    assert not (np.signbit(expected.real) & (expected.real == 0)).any()
    assert not (np.signbit(expected.imag) & (expected.imag == 0)).any()
    assert_same(xlapy.compile(text)(lhs, rhs), expected)


def test_signs_of_the_smallest_complex_numbers() -> None:
    """The evaluator divided complex numbers, which numpy does by way of reciprocals: infinite ones here."""
    values = np.array([1e-45j, -1e-45, 3 + 4j, complex(np.inf, 0), 0], np.complex64)
    text = "ENTRY e { x = c64[5] parameter(0)  ROOT r = c64[5] sign(x) }"
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(text, values)
    assert_same(expected, np.array([1j, -1, 0.6 + 0.8j, complex(np.nan, 0), 0], np.complex64))
    assert_same(xlapy.compile(text)(values), expected)


def test_complex_numbers_are_ordered() -> None:
    """By real part, then by imaginary part, as StableHLO has it; they were refused. NaN in either part has no order."""
    values = edges(C64)[::5]
    lhs, rhs = np.repeat(values, values.size), np.tile(values, values.size)
    directions = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    n = lhs.size
    lines = [f"{d} = pred[{n}] compare(x, y), direction={d}" for d in directions]
    text = f"""ENTRY e {{ x = c64[{n}] parameter(0)  y = c64[{n}] parameter(1)  s = c64[] constant((1, 2))
      {" ".join(lines)}  arrays = c64[{n}] clamp(x, y, x)  scalars = c64[{n}] clamp(s, y, s)
      ROOT t = ({f"pred[{n}], " * 4}c64[{n}], c64[{n}]) tuple({", ".join(directions)}, arrays, scalars) }}"""
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(text, lhs, rhs)
        wanted = tuple(function(lhs, rhs) for function in directions.values())
    assert_same(expected[:4], wanted)
    assert_same(xlapy.compile(text)(lhs, rhs), expected)


def test_arguments_are_not_written_to() -> None:
    """A scalar that a branch or a called computation was given, and a kernel in it read, was stored where it came from:
    in the caller's memory, which others may change meanwhile, or nobody may."""
    text = """HloModule lent
filled { p = s32[] parameter(0)  ROOT b = s32[3,16,4] broadcast(p), dimensions={} }
one { p = (s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  ROOT b = s32[3,16,4] broadcast(i), dimensions={} }
other { p = (s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0  j = s32[] negate(i)
  ROOT b = s32[3,16,4] broadcast(j), dimensions={} }
ENTRY main {
  which = pred[] parameter(0)  x = s32[] parameter(1)
  t = (s32[]) tuple(x)
  chosen = s32[3,16,4] conditional(which, t, t), true_computation=one, false_computation=other
  called = s32[3,16,4] call(x), to_apply=filled
  ROOT r = (s32[3,16,4], s32[3,16,4]) tuple(chosen, called)
}"""
    run = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"move-out-of-conditionals"}))
    for which in (True, False):
        arguments = [read_only(np.array(value)) for value in (which, np.int32(7))]
        assert_same(run(*arguments), xlapy.evaluate(text, *arguments))


def test_one_number_that_is_gathered_has_no_rows() -> None:
    """A product with copies of a scalar, by places that have no numbers, did not compile."""
    text = """HloModule copies
ENTRY e {
  x = s32[] parameter(0)  i = s32[64,96,0] parameter(1)  v = s32[1,64] parameter(2)
  g = s32[64,96] gather(x, i), offset_dims={}, collapsed_slice_dims={}, start_index_map={}, index_vector_dim=2,
    slice_sizes={}
  ROOT d = s32[1,96] dot(v, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    arguments = np.int32(3), np.zeros((64, 96, 0), np.int32), np.arange(64, dtype=np.int32)[None]
    assert_same(xlapy.compile(text)(*arguments), xlapy.evaluate(text, *arguments))
