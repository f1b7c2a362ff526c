"""The entry cut into functions: wherever the cuts are, values find their way."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.codegen.entry import emitter

CARRIES = """
condition { s = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[] get-tuple-element(s), index=1
  b = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  half = f32[] constant(0.5)
  a2 = f32[] multiply(a, half)
  x = f32[] add(a2, b)
  y = f32[] add(b, a)
  y2 = f32[] multiply(y, half)
  ROOT t = (s32[], f32[], f32[]) tuple(j, x, y2) }
ENTRY main { p = f32[] parameter(0)
  q = f32[] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[], f32[]) tuple(z, p, q)
  ROOT w = (s32[], f32[], f32[]) while(t), condition=condition, body=body }
"""

BRANCHES = """
sum { p = (f32[8], f32[]) parameter(0)
  x = f32[8] get-tuple-element(p), index=0
  y = f32[] get-tuple-element(p), index=1
  b = f32[8] broadcast(y), dimensions={}
  z = f32[8] add(x, b)
  e = f32[8] exponential(z)
  m = f32[] multiply(y, y)
  ROOT r = (f32[8], f32[]) tuple(e, m) }
same { p = (f32[8], f32[]) parameter(0)
  x = f32[8] get-tuple-element(p), index=0
  y = f32[] get-tuple-element(p), index=1
  n = f32[] negate(y)
  ROOT r = (f32[8], f32[]) tuple(x, n) }
ENTRY main { c = pred[] parameter(0)
  x = f32[8] parameter(1)
  y = f32[] parameter(2)
  y2 = f32[] add(y, y)
  t = (f32[8], f32[]) tuple(x, y2)
  ROOT r = (f32[8], f32[]) conditional(c, t, t), true_computation=sum, false_computation=same }
"""


@pytest.mark.parametrize("weight", [1, 2, 3, 16, 40])
def test_a_loop_body_in_parts(weight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(emitter, "FUNCTION_WEIGHT", weight)
    arguments = (np.float32(1), np.float32(2))
    assert xlapy.compile(CARRIES)(*arguments) == xlapy.evaluate(CARRIES, *arguments)


@pytest.mark.parametrize("weight", [1, 2, 3, 16, 40])
@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_in_parts(weight: int, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(emitter, "FUNCTION_WEIGHT", weight)
    arguments = (np.bool_(taken), np.linspace(-1, 1, 8, dtype=np.float32), np.float32(0.5))
    array, scalar = xlapy.compile(BRANCHES)(*arguments)
    expected_array, expected_scalar = xlapy.evaluate(BRANCHES, *arguments)
    np.testing.assert_allclose(array, expected_array, rtol=3e-7)
    assert scalar == expected_scalar


def test_a_part_that_only_has_names_is_no_function() -> None:
    """A loop is a part of its own; in front of it, this program has a constant, a tuple and parameters."""
    assert not re.search(r"define [^\n]*\{\nentry:\n  ret i32 0\n\}", xlapy.compile(CARRIES).llvm_ir())


def test_many_scalar_carries_in_one_loop() -> None:
    """Each carry is a mix of its neighbours, so that a mixed-up slot shows at once."""
    count = 40
    b = xlapy.XlaBuilder("carries")
    starts = [xlapy.ops.Parameter(b, n, xlapy.Shape.scalar("float32")) for n in range(count)]

    def condition(state: list[xlapy.XlaOp]) -> xlapy.XlaOp:
        return state[0] < 7

    def body(state: list[xlapy.XlaOp]) -> list[xlapy.XlaOp]:
        i, *carries = state
        mixed = [0.5 * c + 0.25 * carries[n - 1] + 0.125 * n for n, c in enumerate(carries)]
        return [i + 1, *mixed]

    zero = xlapy.ops.Constant(b, np.int32(0))
    computation = b.build(xlapy.ops.While(condition, body, [zero, *starts]))
    arguments = [np.float32(n) for n in range(count)]
    assert xlapy.compile(computation)(*arguments) == xlapy.evaluate(computation, *arguments)


def test_loads_of_what_a_kernel_overwrites_stay_in_front_of_its_stores() -> None:
    """Memory that a kernel writes is not invariant: LLVM may load from there once more, behind the store."""
    b = xlapy.XlaBuilder("in_place")
    x = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (70, 70)), "x")
    product = ops.Dot(x, x)
    overwriting = ops.Exp(product) * x + product
    exe = xlapy.compile(b.build(ops.Dot(overwriting, overwriting)))
    kernels = [text for text in exe.llvm_ir().split("\ndefine ") if "fusion(" in text.partition("\n")[0]]
    loads = [
        line for kernel in kernels for line in kernel.splitlines() if " = load <" in line or " = load float" in line
    ]
    assert any("!invariant.load" in load for load in loads), "of x"
    assert any("!invariant.load" not in load for load in loads), "of the product, where the result goes"


@pytest.mark.parametrize(("size", "is_near"), [(1 << 18, True), (1 << 22, False)])
def test_threads_stay_close_to_each_other_in_what_no_near_cache_holds(size: int, is_near: bool) -> None:
    """The pool is told so by a negative grain."""
    b = xlapy.XlaBuilder("exp")
    exe = xlapy.compile(b.build(ops.Exp(ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (size,)), "x"))))
    (grain,) = re.findall(rf"i64 {size}, i64 (-?\d+)\)", exe.llvm_ir())
    assert (int(grain) > 0) == is_near
