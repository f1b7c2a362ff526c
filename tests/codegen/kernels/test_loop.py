"""Loop kernels: what runs beside the loop over vectors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.native import check_native
from xlapy import ops
from xlapy.builder import XlaOp

INSTRUCTIONS = 1300
"""More than one kernel takes; the second one overwrites the result of the first."""


def chain(x: XlaOp, y: XlaOp) -> XlaOp:
    for number in range(INSTRUCTIONS // 2):
        x = (x + y) if number % 2 else (x - y)
        x = ops.Max(x, y) if number % 3 else ops.Abs(x)
    return x


@pytest.mark.parametrize(("size", "has_rest"), [(256, False), (250, True), (1 << 18, False), ((1 << 18) + 1, True)])
def test_nothing_is_left_over_where_vectors_fill_every_task(size: int, has_rest: bool) -> None:
    """Only a kernel that works in place has code for single elements, and only if its size wants it."""
    random = np.random.default_rng(0)
    executable = check_native(chain, *(random.normal(size=size).astype(np.float32) for _ in range(2)))
    assert executable.compile_stats().kernels > 1
    assert ("fadd float" in executable.llvm_ir()) == has_rest
