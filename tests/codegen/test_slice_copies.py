"""Loops that read and write single elements: loaded and stored, without a kernel and without a look at each clock."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import assert_same_bits
from xlapy.codegen.entry import emitter

SCAN = """HloModule scan
condition { s = (s32[], T[], T[N], T[N]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(STEPS)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], T[], T[N], T[N]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = T[] get-tuple-element(s), index=1
  x = T[N] get-tuple-element(s), index=2
  y = T[N] get-tuple-element(s), index=3
  o = s32[] constant(OFFSET)
  at = s32[] add(i, o)
  p = T[1] dynamic-slice(x, at), dynamic_slice_sizes={1}
  r = T[] reshape(p)
  b = T[] STEP(r, a)
  u = T[1] broadcast(b), dimensions={}
  z = T[N] dynamic-update-slice(WRITTEN, u, at)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], T[], T[N], T[N]) tuple(j, b, AFTER) }
ENTRY main { a = T[] parameter(0)
  x = T[N] parameter(1)
  i = s32[] constant(0)
  y = T[N] broadcast(a), dimensions={}
  t = (s32[], T[], T[N], T[N]) tuple(i, a, x, y)
  w = (s32[], T[], T[N], T[N]) while(t), condition=condition, body=body
  f = T[] get-tuple-element(w), index=1
  g = T[N] get-tuple-element(w), index=2
  h = T[N] get-tuple-element(w), index=3
  ROOT r = (T[], T[N], T[N]) tuple(f, g, h) }
"""

TYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "s8": np.int8,
    "u16": np.uint16,
    "s64": np.int64,
    "pred": np.bool_,
    "c64": np.complex64,
}


def scan(type: str, *, steps: int = 9, offset: int = 0, step: str = "add", in_place: bool = False) -> str:
    text = SCAN
    written, after = ("x", "z, y") if in_place else ("y", "x, z")
    for name, value in {
        "WRITTEN": written,
        "AFTER": after,
        "STEPS": str(steps),
        "STEP": step,
        "OFFSET": str(offset),
        "T[": f"{type}[",
        "[N]": "[9]",
    }.items():
        text = text.replace(name, value)
    return text


def check(text: str, *arguments: Any) -> xlapy.Executable:
    executable = xlapy.compile(text)
    for found, expected in zip(executable(*arguments), xlapy.evaluate(text, *arguments), strict=True):
        assert_same_bits(found, expected)
    return executable


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("in_place", [False, True])
def test_scans_over_elements(type: str, in_place: bool) -> None:
    step = "xor" if type == "pred" else "add"
    x = np.random.default_rng(0).integers(0, 5, 9).astype(TYPES[type])
    check(scan(type, step=step, in_place=in_place), x[0], x)


@pytest.mark.parametrize("offset", [-4, 3, 20])
@pytest.mark.parametrize("in_place", [False, True])
def test_places_are_moved_inward(offset: int, in_place: bool) -> None:
    """Where they repeat, what was written before is read."""
    x = np.random.default_rng(0).normal(size=9).astype(np.float32)
    check(scan("f32", steps=12, offset=offset, in_place=in_place), x[0], x)


@pytest.mark.parametrize("weight", [1, 2, 3, 16, 40])
def test_a_body_in_parts(weight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(emitter, "FUNCTION_WEIGHT", weight)
    x = np.random.default_rng(0).normal(size=9).astype(np.float32)
    for in_place in (False, True):
        check(scan("f32", in_place=in_place), x[0], x)


def test_single_elements_take_no_kernel() -> None:
    code = xlapy.compile(scan("f32")).llvm_ir()
    loop = code[re.search(r"^while\d+:", code, re.MULTILINE).start() :]  # type: ignore[union-attr]
    assert "call void @kernel" not in loop
    assert "call void @llvm.memcpy" not in loop or "load float" in loop


FIBONACCI = """HloModule fibonacci
condition { s = (s32[], s64[3,30]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(30)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], s64[3,30]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s64[3,30] get-tuple-element(s), index=1
  row = s32[] constant(1)
  one = s32[] constant(1)
  two = s32[] constant(2)
  k = s32[] subtract(i, one)
  l = s32[] subtract(i, two)
  a = s64[1,1] dynamic-slice(x, row, k), dynamic_slice_sizes={1,1}
  b = s64[1,1] dynamic-slice(x, row, l), dynamic_slice_sizes={1,1}
  a0 = s64[] reshape(a)
  b0 = s64[] reshape(b)
  c = s64[] add(a0, b0)
  u = s64[1,1] reshape(c)
  y = s64[3,30] dynamic-update-slice(x, u, row, i)
  j = s32[] add(i, one)
  ROOT t = (s32[], s64[3,30]) tuple(j, y) }
ENTRY main { x = s64[3,30] parameter(0)
  i = s32[] constant(2)
  t = (s32[], s64[3,30]) tuple(i, x)
  w = (s32[], s64[3,30]) while(t), condition=condition, body=body
  ROOT r = s64[3,30] get-tuple-element(w), index=1 }
"""


def test_what_was_written_is_read_again() -> None:
    x = np.ones((3, 30), np.int64)
    found = xlapy.compile(FIBONACCI)(x)
    assert_same_bits(found, xlapy.evaluate(FIBONACCI, x))
    assert found[1, 29] == 832040


def looks_seldom(text: str) -> bool:
    """The loop of a program looks at the clock now and then only."""
    return bool(re.search(r"and i64 %\w+, 63\n *%\w+ = icmp eq", xlapy.compile(text).llvm_ir()))


def test_only_long_iterations_look_at_the_clock_each_time() -> None:
    product = "at = s32[] add(i, o)  m = f32[9] multiply(y, y)"
    short = scan("f32").replace("at = s32[] add(i, o)", product).replace("-slice(y, u", "-slice(m, u")
    assert looks_seldom(scan("f32"))
    assert looks_seldom(short)
    assert not looks_seldom(short.replace("[9]", "[900000]"))


ROWS = """HloModule rows
condition { s = (s32[], f32[256], f32[1024,256], f32[1024,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(1024)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[256], f32[1024,256], f32[1024,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[256] get-tuple-element(s), index=1
  x = f32[1024,256] get-tuple-element(s), index=2
  y = f32[1024,256] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  p = f32[1,256] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,256}
  r = f32[256] reshape(p)
  h = f32[] constant(0.5)
  hs = f32[256] broadcast(h), dimensions={}
  m = f32[256] multiply(a, hs)
  b = f32[256] add(m, r)
  u = f32[1,256] reshape(b)
  z = f32[1024,256] dynamic-update-slice(y, u, i, zero)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[256], f32[1024,256], f32[1024,256]) tuple(j, b, x, z) }
ENTRY main { a = f32[256] parameter(0)
  x = f32[1024,256] parameter(1)
  i = s32[] constant(0)
  z = f32[] constant(0)
  y = f32[1024,256] broadcast(z), dimensions={}
  t = (s32[], f32[256], f32[1024,256], f32[1024,256]) tuple(i, a, x, y)
  w = (s32[], f32[256], f32[1024,256], f32[1024,256]) while(t), condition=condition, body=body
  f = f32[256] get-tuple-element(w), index=1
  h = f32[1024,256] get-tuple-element(w), index=3
  ROOT r = (f32[256], f32[1024,256]) tuple(f, h) }
"""


def test_steps_over_rows_of_large_arrays_are_small() -> None:
    """A step reads a row, however many there are: it is not shared out among threads."""
    x = np.random.default_rng(0).normal(size=(1024, 256)).astype(np.float32)
    executable = check(ROWS, x[0], x)
    assert looks_seldom(ROWS)
    assert ".range" not in executable.llvm_ir()
