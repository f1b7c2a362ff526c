"""Kernels with next to nothing to do: compiled without optimization, beside the entry; the results are the same."""

from __future__ import annotations

import numpy as np

import xlapy
from xlapy.codegen.kernels.loop import LONG_ROW
from xlapy.executable import Executable

ONCE = """HloModule once
ENTRY main {{ x = f32[{size}] parameter(0)
  e = f32[{size}] exponential(x)
  t = f32[{size}] tanh(x)
  ROOT y = f32[{size}] divide(e, t) }}
"""
REPEATED = """HloModule repeated
body {
  s = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[100] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[100] tanh(x)
  ROOT next = (s32[], f32[100]) tuple(j, y)
}
condition {
  s = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[100] parameter(0)
  before = f32[100] tanh(x)
  zero = s32[] constant(0)
  start = (s32[], f32[100]) tuple(zero, before)
  ROOT end = (s32[], f32[100]) while(start), condition=condition, body=body
}
"""


def inputs(size: int) -> np.ndarray:
    return np.linspace(-3, 3, size, dtype=np.float32) + np.float32(0.01)


def modules_of(executable: Executable) -> tuple[str, ...]:
    return executable._compiled.program.llvm_modules


def test_a_small_kernel_is_in_the_module_of_the_entry() -> None:
    for size in (1, 15, 16, 17, 100):
        text = ONCE.format(size=size)
        executable = xlapy.compile(text)
        (only,) = modules_of(executable)
        assert "define void @kernel." in only
        np.testing.assert_allclose(executable(inputs(size)), xlapy.evaluate(text, inputs(size)), rtol=1e-6)


def long_row(size: int, operations: int, function: str = "negate") -> str:
    """Sums and products in turn, the first of which a function follows."""
    opcodes = ("add", "multiply")
    lines = [f"  y{n + 1} = f32[{size}] {opcodes[n % 2]}(y{n}, x)" for n in range(operations)]
    lines[-1] = lines[-1].replace("  y", "  ROOT y")
    body = "\n".join([f"  y0 = f32[{size}] {function}(x)", *lines])
    return f"HloModule row\nENTRY main {{ x = f32[{size}] parameter(0)\n{body} }}"


def test_a_long_row_of_operations_with_few_elements_is_in_the_module_of_the_entry() -> None:
    x = inputs(512) / 4
    text = long_row(512, 2 * LONG_ROW)
    executable = xlapy.compile(text)
    assert len(modules_of(executable)) == 1
    np.testing.assert_array_equal(executable(x), xlapy.evaluate(text, x))
    for other in (long_row(1 << 14, 2 * LONG_ROW), long_row(1 << 11, 32), long_row(512, 2 * LONG_ROW, "exponential")):
        assert len(modules_of(xlapy.compile(other))) == 2


def test_a_large_kernel_is_optimized() -> None:
    """In the module of the entry is only what hands it pointers from a table."""
    glue, kernels = modules_of(xlapy.compile(ONCE.format(size=1 << 16)))
    assert "kernel.0.fusion.range" in glue
    assert "define void @kernel.0.fusion(" not in glue and "define void @kernel.0.fusion(" in kernels


def test_wide_elements_count_twice() -> None:
    """Half as many of them fill a vector."""
    text = "HloModule m\nENTRY e {{ x = {type}[1024] parameter(0) ROOT y = {type}[1024] log(x) }}"
    assert [len(modules_of(xlapy.compile(text.format(type=type)))) for type in ("f32", "f64")] == [1, 2]


def test_size_does_not_change_a_bit() -> None:
    few, many = 100, 1 << 16
    x = np.resize(inputs(few), many)
    small, large = xlapy.compile(ONCE.format(size=few)), xlapy.compile(ONCE.format(size=many))
    assert small(x[:few]).tobytes() == large(x)[:few].tobytes()


def test_what_runs_in_a_loop_is_optimized() -> None:
    executable = xlapy.compile(REPEATED)
    optimized = "".join(modules_of(executable)[1:])
    assert "define void @kernel." in optimized and "optnone" not in optimized
    found, expected = executable(inputs(100))[1], xlapy.evaluate(REPEATED, inputs(100))[1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
