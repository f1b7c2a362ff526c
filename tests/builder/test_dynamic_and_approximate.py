"""Dynamic sizes that come and go, and the approximate TopK: what is refused, and known numbers."""

from __future__ import annotations

import numpy as np
import pytest

from xlapy import ShapeError, XlaBuilder, ops
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError

KNOWN = [  # (input size, rank, k, recall, override) and what XLA answers
    ((1025, 2, 64, 0.8, -1), (640, 1)),
    ((4096, 3, 1, 0.8, -1), (128, 5)),
    ((1 << 20, 2, 100, 1.0, -1), (1 << 20, 0)),
    ((129, 2, 64, 0.95, -1), (129, 0)),
    ((1025, 2, 10, 0.95, 1 << 21), (256, 3)),
    ((129, 2, 2, 0.5, 1 << 21), (256, 0)),
    ((100000, 1, 1, 1.0, 1 << 21), (1024, 11)),
    ((100000, 3, 5, 0.95, 1 << 21), (128, 10)),
    ((100, 1, 5, 0.9, -1), (100, 0)),
]


@pytest.mark.parametrize(("arguments", "answer"), KNOWN)
def test_output_sizes_are_xlas(arguments: tuple[int, int, int, float, int], answer: tuple[int, int]) -> None:
    size, rank, k, recall, override = arguments
    assert ops.ApproxTopKReductionOutputSize(size, rank, k, recall, False, override) == answer
    assert ops.ApproxTopKReductionOutputSize(size, rank, k, recall) == (k, -1)


def test_what_is_refused() -> None:
    b = XlaBuilder("b")
    x = ops.Parameter(b, 0, Shape.array(np.float32, (4, 3)))
    with pytest.raises(ArgumentError, match="recall"):
        ops.ApproxTopKReductionOutputSize(10, 1, 2, 1.5)
    with pytest.raises(ShapeError, match="initial values"):
        ops.ApproxTopK(b, [x], [], 2, 0, lambda p, q: p > q)
    with pytest.raises(ShapeError, match="nothing to choose"):
        ops.ApproxTopK(b, [], [], 2, 0, lambda p, q: p > q)
    with pytest.raises(ShapeError, match="dimension 2"):
        ops.ApproxTopK(b, [x], [0.0], 2, 2, lambda p, q: p > q)
    with pytest.raises(ShapeError, match="no 5 elements"):
        ops.ApproxTopK(b, [x], [0.0], 5, 0, lambda p, q: p > q)
    with pytest.raises(ShapeError, match="dimension 2"):
        ops.RemoveDynamicDimension(x, 2)
    with pytest.raises(ShapeError, match="1 sizes, 2 bounds"):
        ops.DynamicReshape(x, [12], [6, 2], [True, False])
