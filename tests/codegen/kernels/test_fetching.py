"""Large operands are fetched ahead of their use: it must not show but in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.native import check_native
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.target import host_target

LARGE = (3, 311, -(-host_target().l2_bytes // (3 * 311 * 4)) + 5)
"""Dimensions of an array of f32 that is larger than the second-level cache."""


def largest(x: XlaOp, *dimensions: int) -> XlaOp:
    return ops.Reduce(x, -np.inf, ops.Max, dimensions)


PROGRAMS: dict[str, Callable[[XlaOp], XlaOp]] = {
    "elementwise": lambda x: x + x * x,
    "slice": lambda x: ops.Slice(x, [1, 7, 1], [3, 300, 90], [1, 2, 1]),
    "rows": lambda x: largest(ops.Abs(x), 2),
    "rows read twice": lambda x: ops.Sub(x, largest(x, 2), broadcast_dimensions=[0, 1]),
    "columns": lambda x: largest(ops.Abs(x), 0),
    "middle": lambda x: largest(ops.Abs(x), 1),
    "columns of rows": lambda x: largest(ops.Abs(x), 0, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name: str) -> None:
    x = np.random.default_rng(0).normal(size=LARGE).astype(np.float32)
    executable = check_native(PROGRAMS[name], x)
    assert "call void @llvm.prefetch" in executable.llvm_ir()


def test_small_operands_are_left_to_the_processor() -> None:
    executable = check_native(PROGRAMS["rows"], np.ones((3, 31, 64), np.float32))
    assert "call void @llvm.prefetch" not in executable.llvm_ir()
