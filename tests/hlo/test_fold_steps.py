"""Where a fused computation is cut that folds in two steps."""

from __future__ import annotations

import numpy as np

import xlapy
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import HloModule
from xlapy.hlo.text import parse

SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
TWO_STEPS = (
    SUM
    + """ENTRY e {
  x = f32[6,20,3] parameter(0)
  start = f32[] parameter(1)
  y = f32[3] parameter(2)
  zero = f32[] constant(0)
  q = f32[6,20,3] multiply(x, x)
  t = f32[6,3] reduce(q, zero), dimensions={1}, to_apply=sum
  n = f32[6,3] negate(t)
  s = f32[3] reduce(n, start), dimensions={0}, to_apply=sum
  ROOT r = f32[3] add(s, y)
}"""
)


def test_the_second_step_takes_the_results_of_the_first() -> None:
    module = parse(TWO_STEPS)
    steps = fold_steps(module.entry)
    assert steps is not None
    first, second = steps
    x = np.random.default_rng(0).standard_normal((6, 20, 3), np.float32)
    start, y = np.float32(2), np.ones(3, np.float32)
    parts = xlapy.evaluate(HloModule("first", first), x, start, y)
    result = xlapy.evaluate(HloModule("second", second), x, start, y, parts)
    np.testing.assert_array_equal(result, xlapy.evaluate(module, x, start, y))
    assert first.root.opcode == "negate" and [i.opcode for i in second if i.opcode != "parameter"] == ["reduce", "add"]


def test_a_chain_over_rows_is_one_step() -> None:
    chain = (
        SUM
        + """ENTRY e {
      x = f32[6,20] parameter(0)
      zero = f32[] constant(0)
      s = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum
      b = f32[6,20] broadcast(s), dimensions={0}
      d = f32[6,20] subtract(x, b)
      ROOT r = f32[6] reduce(d, zero), dimensions={1}, to_apply=sum
    }"""
    )
    assert fold_steps(parse(chain).entry) is None
