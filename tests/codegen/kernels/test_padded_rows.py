"""Rows of padded arrays are copied in parts, of which only the ends are asked whether an element lies there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.native import check_native
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.codegen.kernels import loop
from xlapy.codegen.kernels.padded_rows import interior_of
from xlapy.hlo.shape import Shape

Widths = list[tuple[int, int, int]]

PADS: dict[str, tuple[tuple[int, ...], Widths]] = {
    "all around": ((150, 200), [(1, 2, 0), (2, 3, 0)]),
    "no vector within": ((3000, 20), [(0, 1, 0), (3, 9, 0)]),
    "one vector and a bit": ((3000, 33), [(1, 0, 0), (0, 1, 0)]),
    "the ends longer than the middle": ((60, 70), [(0, 0, 0), (300, 200, 0)]),
    "cut at one end": ((200, 300), [(-3, 1, 0), (5, -7, 0)]),
    "cut away": ((200, 300), [(-200, 400, 0), (1, 1, 0)]),
    "nothing to pad": ((0, 300), [(200, 0, 0), (1, 1, 0)]),
    "elements between": ((100, 100), [(1, 2, 1), (2, 3, 0)]),
    "elements between neighbours": ((100, 100), [(1, 2, 0), (2, 3, 2)]),
    "images": ((2, 17, 19, 64), [(0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 0)]),
    "features": ((2, 17, 19, 40), [(0, 0, 0), (1, 1, 0), (0, 2, 0), (0, 24, 0)]),
    "one row": ((1, 40_000), [(0, 0, 0), (3, 4, 0)]),
}


@pytest.mark.parametrize("name", PADS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, ml_dtypes.bfloat16])
def test_pads(name: str, dtype: Any) -> None:
    dims, widths = PADS[name]
    x = np.random.default_rng(0).integers(1, 100, size=dims).astype(dtype)
    check_native(lambda p: ops.Pad(p, np.asarray(7).astype(dtype), widths), x)


def padded(x: XlaOp, low: int, high: int) -> XlaOp:
    return ops.Pad(x, np.float32(-1), [(low, high, 0), (high, low, 0)])


def neighbours(x: XlaOp, width: int = 1) -> XlaOp:
    """The sum of those above, below, left and right."""
    (rows, columns), around = x.shape.dims, ops.Pad(x, np.float32(0), [(width, width, 0)] * 2)
    places = [(0, width), (2 * width, width), (width, 0), (width, 2 * width)]
    parts = [ops.Slice(around, [row, column], [row + rows, column + columns], [1, 1]) for row, column in places]
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


PROGRAMS: dict[str, Callable[[XlaOp], XlaOp]] = {
    "computed before and behind": lambda x: ops.Neg(padded(x * x, 1, 3)) + np.float32(1),
    "two that differ": lambda x: padded(x, 1, 3) * padded(x + x, 3, 1),
    "turned": lambda x: padded(x, 2, 2) + ops.Transpose(padded(x, 3, 1), [1, 0]),
    "reversed": lambda x: ops.Rev(padded(x, 1, 2), [0, 1]) + padded(x, 2, 1),
    "read elsewhere": lambda x: ops.Slice(padded(x, 1, 2), [1, 1], [203, 203], [1, 1]) * padded(x, 1, 1),
    "neighbours": lambda x: x + neighbours(x) * np.float32(0.2),
    "neighbours of neighbours": lambda x: neighbours(neighbours(x, 3) - x),
    "neighbours of few": lambda x: neighbours(ops.Slice(x, [0, 3], [200, 100], [1, 1]), 30),
    "every second": lambda x: ops.Slice(padded(x, 1, 2), [0, 1], [203, 203], [2, 1]),
    "of a pad": lambda x: padded(padded(x, 1, 2), 40, 3),
    "beside a row": lambda x: ops.Mul(padded(x, 3, 3), ops.Slice(padded(x, 3, 3), [0, 0], [1, 206], [1, 1])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pads_inside_of_kernels(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(200, 200)).astype(np.float32)
    check_native(PROGRAMS[name], x)


def test_only_the_edges_of_a_stencil_are_asked() -> None:
    """All neighbours of what is not at an edge are there."""
    builder = XlaBuilder("stencil")
    x = builder.parameter(0, Shape.array("f32", (200, 200)))
    root = builder.build(x + neighbours(x)).module.entry.root
    assert interior_of([root], lambda i: i.opcode == "parameter", 16) == {0: range(1, 199), 1: range(1, 199)}


@pytest.mark.parametrize("widths", [[(1, 1, 0), (1, 0, 0), (0, 0, 0)], [(1, 1, 0), (1, 0, 0), (32, 32, 0)]])
def test_pads_that_are_stored_past_the_caches(widths: Widths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    x = np.random.default_rng(0).normal(size=(30, 40, 64)).astype(np.float32)
    code = check_native(lambda p: ops.Pad(p, np.float32(-1), widths), x).llvm_ir()
    has_edges = widths[-1] == (32, 32, 0)
    assert "!nontemporal" in code
    assert ("call void @llvm.memcpy" in code) == has_edges
    assert "@llvm.masked.store" not in code, "it would reach into lines that bypass the caches"
