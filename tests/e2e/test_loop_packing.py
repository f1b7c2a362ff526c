"""Matrices that are packed for a loop: the same numbers, whatever threads and layouts there are."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.machine import LIMITS
from xlapy.hlo.text import parse

FEW_ROWS_BY_COLUMNS = "few rows, stored by columns"
LOOPS = {  # rows, columns of the state, element type, dimension of the matrix that is contracted
    "few rows of a large matrix": (3, 576, "f32", 0),
    "more rows of a large matrix": (8, 576, "f32", 0),
    "large, of doubles": (2, 416, "f64", 0),
    FEW_ROWS_BY_COLUMNS: (5, 128, "f32", 1),
    "stored by columns": (17, 128, "f32", 1),
    "stored by columns, no whole strips": (17, 72, "f32", 1),
    "with an epilogue": (65, 256, "f32", 1),
    "integers": (9, 128, "s32", 1),
}


def loop(rows: int, width: int, kind: str, depth: int, steps: int = 9) -> str:
    """A loop that multiplies its state by a matrix and moves it a little."""
    state = f"(s32[], {kind}[{rows},{width}], {kind}[{width},{width}])"
    finish = "remainder(a, m)" if kind == "s32" else "tanh(a)"
    return f"""HloModule m
        c {{
          s = {state} parameter(0)
          i = s32[] get-tuple-element(s), index=0
          n = s32[] constant({steps})
          ROOT l = pred[] compare(i, n), direction=LT
        }}
        b {{
          s = {state} parameter(0)
          i = s32[] get-tuple-element(s), index=0
          one = s32[] constant(1)
          j = s32[] add(i, one)
          h = {kind}[{rows},{width}] get-tuple-element(s), index=1
          w = {kind}[{width},{width}] get-tuple-element(s), index=2
          p = {kind}[{rows},{width}] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{depth}}}
          o = {kind}[] constant(7)
          m = {kind}[{rows},{width}] broadcast(o), dimensions={{}}
          a = {kind}[{rows},{width}] add(p, m)
          y = {kind}[{rows},{width}] {finish}
          ROOT t = {state} tuple(j, y, w)
        }}
        ENTRY main {{
          h = {kind}[{rows},{width}] parameter(0)
          w = {kind}[{width},{width}] parameter(1)
          z = s32[] constant(0)
          t = {state} tuple(z, h, w)
          l = {state} while(t), condition=c, body=b
          ROOT r = {kind}[{rows},{width}] get-tuple-element(l), index=1
        }}"""


def arguments(rows: int, width: int, kind: str) -> list[np.ndarray]:
    generator = np.random.default_rng(rows)
    if kind == "s32":
        return [generator.integers(-9, 9, (size, width), np.int32) for size in (rows, width)]
    dtype = np.dtype({"f32": np.float32, "f64": np.float64}[kind])
    state, matrix = (generator.standard_normal((size, width)) for size in (rows, width))
    return [state.astype(dtype), (matrix / width).astype(dtype)]


@pytest.mark.parametrize("name", LOOPS)
def test_packing_changes_no_number(name: str) -> None:
    rows, width, kind, depth = LOOPS[name]
    text, values = loop(rows, width, kind, depth), arguments(rows, width, kind)
    runs = [xlapy.compile(text, xlapy.CompileOptions(num_threads=count)) for count in (1, 2, 3, 8)]
    assert "packed once for 9 steps" in runs[0].explain(LIMITS)
    results = [run(*values) for run in runs]
    assert len({result.tobytes() for result in results}) == 1
    alone = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"pack-for-loops"}))(*values)
    if name == FEW_ROWS_BY_COLUMNS:  # sums along K in another order
        np.testing.assert_allclose(results[0], alone, rtol=1e-5, atol=1e-6)
    else:
        assert results[0].tobytes() == alone.tobytes()
    np.testing.assert_allclose(results[0], xlapy.evaluate(text, *values), rtol=1e-4, atol=1e-5)


def test_many_rows_take_a_large_matrix_as_it_is() -> None:
    """To pack it would save little of each step, and take its memory twice."""
    executable = xlapy.compile(loop(33, 576, "f32", depth=0))
    assert "packed once" not in executable.explain(LIMITS)


@pytest.mark.parametrize("offset", range(0, 64, 16))
@pytest.mark.parametrize(("rows", "width", "kind"), [(16, 128, "f32"), (3, 80, "f64"), (9, 64, "s32")])
def test_rows_of_a_caller_lie_anywhere(rows: int, width: int, kind: str, offset: int) -> None:
    """They are copied to where cache lines begin; bits are those of a product in place."""
    text, (state, matrix) = loop(rows, width, kind, depth=0, steps=20), arguments(rows, width, kind)
    memory = np.zeros(matrix.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 64 + offset
    moved = memory[first : first + matrix.nbytes].view(matrix.dtype).reshape(matrix.shape)
    moved[:] = matrix
    runs = [xlapy.compile(text, xlapy.CompileOptions(num_threads=count)) for count in (1, 2, 3, 8)]
    assert "copied once for 20 steps" in runs[0].explain(LIMITS)
    alone = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"pack-for-loops"}))(state, moved)
    assert {run(state, moved).tobytes() for run in runs} == {alone.tobytes()}
    np.testing.assert_allclose(alone, xlapy.evaluate(text, state, matrix), rtol=1e-4, atol=1e-5)


STRIPS = {
    "strips of columns": """
      x = f32[5,40] parameter(0)
      w = f32[3,40,32] parameter(1)
      ROOT d = f32[5,3,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}""",
    "several dimensions of rows and columns": """
      x = f64[2,3,40] parameter(0)
      w = f64[3,40,4,8] parameter(1)
      ROOT d = f64[2,3,3,4,8] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={1}""",
    "a left side by columns": """
      x = s32[40,50] parameter(0)
      w = s32[3,40,33] parameter(1)
      ROOT d = s32[50,3,33] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={1}""",
    "complex numbers": """
      x = c64[7,40] parameter(0)
      w = c64[3,40,16] parameter(1)
      ROOT d = c64[7,3,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}""",
    "with an epilogue": """
      x = f32[64,40] parameter(0)
      w = f32[3,40,64] parameter(1)
      c = f32[3,64] parameter(2)
      d = f32[64,3,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      e = f32[64,3,64] broadcast(c), dimensions={1,2}
      ROOT r = f32[64,3,64] add(d, e)""",
}


@pytest.mark.parametrize("name", STRIPS)
def test_strips_are_a_batch_of_the_library(name: str) -> None:
    text = f"HloModule m\nENTRY main {{{STRIPS[name]}\n}}"
    generator = np.random.default_rng(5)
    kinds = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "c64": np.complex64}
    values = []
    for parameter in parse(text).entry.parameters:
        shape = parameter.shape
        values.append((generator.standard_normal(shape.dims) * 9).astype(kinds[shape.type.name]))
    compiled = xlapy.compile(text)
    assert "gemm_" in compiled.llvm_ir()
    assert ("kind=kCustom" in compiled.hlo_text()) == (name == "with an epilogue")
    np.testing.assert_allclose(compiled(*values), xlapy.evaluate(text, *values), rtol=1e-4, atol=1e-3)
