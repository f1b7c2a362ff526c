"""Convolutions by loop nests: whether places of the window and input features are one loop, with the same sums."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.codegen.kernels.convolution import plan_convolution
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse


def convolution(source: str, kernel: str, result: str, rest: str) -> str:
    return f"""HloModule m
      ENTRY main {{
        x = f32[{source}] parameter(0)
        k = f32[{kernel}] parameter(1)
        ROOT c = f32[{result}] convolution(x, k), {rest}
      }}"""


LAST = "dim_labels=b01f_01io->b01f"
SAME = "window={size=3x3 pad=1_1x1_1}"
IN_LINES = {
    "channels last": convolution("2,9,13,3", "3,3,3,8", "2,9,13,8", f"{SAME}, {LAST}"),
    "one channel, and some outside": convolution(
        "2,9,13,1", "3,5,1,9", "2,9,15,9", f"window={{size=3x5 pad=1_1x4_2}}, {LAST}"
    ),
    "by twos, rows apart": convolution(
        "2,9,14,3", "3,4,3,8", "2,3,6,8", f"window={{size=3x4 stride=2x2 rhs_dilate=2x1}}, {LAST}"
    ),
    "a line": convolution("3,40,5", "3,5,6", "3,40,6", "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"),
    "rows backwards": convolution(
        "2,9,13,3", "3,3,3,8", "2,9,13,8", f"window={{size=3x3 pad=1_1x1_1 rhs_reversal=1x0}}, {LAST}"
    ),
}
APART = {
    "backwards": convolution(
        "2,9,13,3", "3,3,3,8", "2,9,13,8", f"window={{size=3x3 pad=1_1x1_1 rhs_reversal=0x1}}, {LAST}"
    ),
    "places apart": convolution(
        "2,9,13,3", "3,3,3,8", "2,9,9,8", f"window={{size=3x3 pad=1_1x0_0 rhs_dilate=1x2}}, {LAST}"
    ),
    "holes": convolution("2,9,13,3", "3,3,3,8", "2,9,25,8", f"window={{size=3x3 pad=1_1x1_1 lhs_dilate=1x2}}, {LAST}"),
    "groups": convolution("2,9,13,6", "3,3,3,8", "2,9,13,8", f"{SAME}, {LAST}, feature_group_count=2"),
    "features in front of places": convolution(
        "2,9,13,3", "3,3,3,8", "2,9,13,8", f"{SAME}, dim_labels=b01f_0i1o->b01f"
    ),
    "channels first": convolution("2,3,9,13", "8,3,3,3", "2,8,9,13", f"{SAME}, dim_labels=bf01_oi01->bf01"),
}


@pytest.mark.parametrize("name", [*IN_LINES, *APART])
def test_loops_over_places_and_features(name: str) -> None:
    text = (IN_LINES | APART)[name]
    module = parse(text)
    assert plan_convolution(module.entry.root, host_target()).has_lines == (name in IN_LINES)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    arrays = [np.random.default_rng(n).normal(size=shape.dims).astype(np.float32) for n, shape in enumerate(shapes)]
    arrays[0].flat[7], arrays[1].flat[3] = np.inf, np.nan  # which must not meet what lies outside
    got, wanted = xlapy.compile(text)(*arrays), xlapy.evaluate(text, *arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)
