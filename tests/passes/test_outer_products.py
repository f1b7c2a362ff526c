"""Products of a few steps, as the kernels that they become."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.text import parse
from xlapy.passes.outer_products import MOST_STEPS


def product(rows: int, steps: int, columns: int) -> str:
    return f"""ENTRY main {{
      x = f32[{rows},{steps}] parameter(0)
      w = f32[{steps},{columns}] parameter(1)
      d = f32[{rows},{columns}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      b = f32[{columns}] parameter(2)
      c = f32[{rows},{columns}] broadcast(b), dimensions={{1}}
      ROOT s = f32[{rows},{columns}] add(d, c)
    }}"""


@pytest.mark.parametrize("steps", [2, 3, MOST_STEPS])
def test_products_of_few_steps_are_one_kernel_with_what_follows(steps: int) -> None:
    random = np.random.default_rng(steps)
    x, w, b = (random.standard_normal(dims).astype(np.float32) for dims in ((1000, steps), (steps, 70), (70,)))
    executable = xlapy.compile(parse(product(1000, steps, 70)))
    assert "gemm" not in executable.llvm_ir()
    np.testing.assert_allclose(executable(x, w, b), x.astype(np.float64) @ w + b, rtol=1e-5, atol=1e-6)


def test_sums_of_negative_zeros_are_zero() -> None:
    module = parse("""ENTRY main {
      x = f32[1024,2] parameter(0)
      w = f32[2,64] parameter(1)
      ROOT d = f32[1024,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }""")
    x, w = np.zeros((1024, 2), np.float32), np.full((2, 64), -1, np.float32)
    assert not np.signbit(xlapy.compile(module)(x, w)).any()
