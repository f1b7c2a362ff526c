"""Rows that are one of two things."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_array_equal
from xlapy.codegen.kernels.row_choice import choice_of_rows
from xlapy.hlo.text import parse

PROGRAMS = {
    "rows of two arrays": """
      p = pred[300] parameter(0)
      x = f32[300,130] parameter(1)
      y = f32[300,130] parameter(2)
      b = pred[300,130] broadcast(p), dimensions={0}
      ROOT s = f32[300,130] select(b, x, y)""",
    "rows that are computed": """
      p = pred[300] parameter(0)
      x = f32[300,130] parameter(1)
      y = f32[300,130] parameter(2)
      b = pred[300,130] broadcast(p), dimensions={0}
      n = f32[300,130] negate(x)
      a = f32[300,130] add(x, y)
      ROOT s = f32[300,130] select(b, n, a)""",
    "rows of zeros": """
      p = pred[30,10] parameter(0)
      x = f32[30,10,128] parameter(1)
      z = f32[] constant(0)
      y = f32[30,10,128] broadcast(z), dimensions={}
      b = pred[30,10,128] broadcast(p), dimensions={0,1}
      ROOT s = f32[30,10,128] select(b, x, y)""",
    "a condition that is computed": """
      n = s32[300] parameter(0)
      x = f32[300,130] parameter(1)
      y = f32[300,130] parameter(2)
      i = s32[300] iota(), iota_dimension=0
      p = pred[300] compare(n, i), direction=LT
      b = pred[300,130] broadcast(p), dimensions={0}
      ROOT s = f32[300,130] select(b, x, y)""",
    "mirrored images": """
      p = pred[8] parameter(0)
      x = f32[8,20,70,3] parameter(1)
      r = f32[8,20,70,3] reverse(x), dimensions={2}
      b = pred[8,20,70,3] broadcast(p), dimensions={0}
      ROOT s = f32[8,20,70,3] select(b, r, x)""",
    "mirrored images of bytes": """
      p = pred[8] parameter(0)
      x = u8[8,20,140,3] parameter(1)
      r = u8[8,20,140,3] reverse(x), dimensions={2}
      b = pred[8,20,140,3] broadcast(p), dimensions={0}
      ROOT s = u8[8,20,140,3] select(b, r, x)""",
    "colours that are one of two things": """
      p = pred[8,20] parameter(0)
      x = f32[8,20,70,3] parameter(1)
      y = f32[8,20,70,3] parameter(2)
      n = f32[8,20,70,3] negate(y)
      b = pred[8,20,70,3] broadcast(p), dimensions={0,1}
      ROOT s = f32[8,20,70,3] select(b, x, n)""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_that_are_one_of_two_things(name: str) -> None:
    module = parse(f"ENTRY main {{ {PROGRAMS[name]} }}")
    random = np.random.default_rng(len(name))
    inputs = []
    for parameter in module.entry.parameters:
        numbers = random.normal(0, 100, parameter.shape.dims)
        is_condition = parameter.shape.type.name == "pred"
        inputs.append(numbers > 0 if is_condition else numbers.astype(parameter.shape.type.dtype))
    assert_array_equal(xlapy.compile(module)(*inputs), xlapy.evaluate(module, *inputs))


def test_results_that_bypass_the_caches() -> None:
    module = parse("""ENTRY main {
      p = pred[2100] parameter(0)
      x = f32[2100,2048] parameter(1)
      y = f32[2100,2048] parameter(2)
      b = pred[2100,2048] broadcast(p), dimensions={0}
      ROOT s = f32[2100,2048] select(b, x, y)
    }""")
    p = np.arange(2100) % 3 == 0
    x, y = np.full((2100, 2048), 1, np.float32), np.full((2100, 2048), 2, np.float32)
    assert_array_equal(xlapy.compile(module)(p, x, y), np.where(p[:, None], x, y))


def test_conditions_along_rows_choose_elements() -> None:
    root = parse("""ENTRY main {
      p = pred[130] parameter(0)
      x = f32[300,130] parameter(1)
      y = f32[300,130] parameter(2)
      b = pred[300,130] broadcast(p), dimensions={1}
      ROOT s = f32[300,130] select(b, x, y)
    }""").entry.root
    assert choice_of_rows([root], {1}) is None
    assert choice_of_rows([root], {0}) is root.operands[0]
