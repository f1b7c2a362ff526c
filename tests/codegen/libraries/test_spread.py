"""Convolutions whose products are spread over the result, against the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.random_windows import random_array
from xlapy.hlo.spread_products import spread_product
from xlapy.hlo.text import parse

CONVOLUTIONS = {
    "the gradient of a stride": """
      x = f32[1,28,28,64] parameter(0)
      k = f32[7,7,64,3] parameter(1)
      ROOT c = f32[1,56,56,3] convolution(x, k),
        window={size=7x7 pad=4_3x4_3 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f""",
    "features first": """
      x = f32[2,32,28,27] parameter(0)
      k = f32[32,3,7,5] parameter(1)
      ROOT c = f32[2,3,56,57] convolution(x, k),
        window={size=7x5 pad=4_3x4_4 lhs_dilate=2x2}, dim_labels=bf01_io01->bf01""",
    "holes in lines only, far outside, one reversed": """
      x = f32[2,30,20,32] parameter(0)
      k = f32[5,4,32,15] parameter(1)
      ROOT c = f32[2,26,57,15] convolution(x, k),
        window={size=5x4 pad=-3_3x9_12 lhs_dilate=1x2 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f""",
    "holes between lines, cut at the end": """
      x = f32[2,20,60,32] parameter(0)
      k = f32[3,5,32,5] parameter(1)
      ROOT c = f32[2,61,58,5] convolution(x, k),
        window={size=3x5 pad=1_4x4_-2 lhs_dilate=3x1}, dim_labels=b01f_01io->b01f""",
    "steps longer than the window": """
      x = f64[2,50,50,32] parameter(0)
      k = f64[2,2,32,4] parameter(1)
      ROOT c = f64[2,148,147,4] convolution(x, k),
        window={size=2x2 pad=1_0x0_0 lhs_dilate=3x3}, dim_labels=b01f_01io->b01f""",
    "beyond what products reach": """
      x = s32[3,20,20,44] parameter(0)
      k = s32[5,4,44,1] parameter(1)
      ROOT c = s32[3,84,80,1] convolution(x, k),
        window={size=5x4 pad=29_20x19_25 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f""",
    "other orders": """
      x = s64[32,24,2,28] parameter(0)
      k = s64[3,32,4,4] parameter(1)
      ROOT c = s64[49,3,2,57] convolution(x, k),
        window={size=4x4 pad=2_3x2_3 lhs_dilate=2x2}, dim_labels=f0b1_oi01->0fb1""",
}


def program(name: str) -> str:
    return f"HloModule m\nENTRY main {{{CONVOLUTIONS[name]}\n}}"


def arguments_of(text: str, seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters]


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_products_are_spread(name: str) -> None:
    text = program(name)
    arguments = arguments_of(text, len(name))
    compiled = xlapy.compile(text)
    assert "spread_" in compiled.llvm_ir()
    wanted = xlapy.evaluate(text, *arguments)
    if wanted.dtype.kind == "i":
        np.testing.assert_array_equal(compiled(*arguments), wanted)
    else:
        tolerance = 2e-5 if wanted.dtype == np.float32 else 1e-13
        scale = float(np.abs(wanted).max())
        np.testing.assert_allclose(compiled(*arguments), wanted, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", ["the gradient of a stride", "features first"])
def test_special_numbers_meet_what_they_met(name: str) -> None:
    text = program(name)
    x, k = arguments_of(text, 1)
    x.flat[[7, 40_000]] = np.inf, np.nan
    k.flat[[0, 900, -1]] = np.inf, -np.inf, np.nan
    wanted, got = xlapy.evaluate(text, x, k), xlapy.compile(text)(x, k)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(wanted))
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(wanted))


def test_results_do_not_depend_on_threads() -> None:
    text = program("the gradient of a stride")
    arguments = arguments_of(text, 2)
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(*arguments) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


CHANGES = {
    "features enough for lanes": {"7,7,64,3]": "7,7,64,16]", "56,56,3]": "56,56,16]"},
    "few inputs": {"64": "8"},
    "few places": {"7,7,64,3]": "2,2,64,3]", "size=7x7": "size=2x2", "56,56,3]": "61,61,3]"},
    "little to multiply": {"28,28,64]": "8,8,64]", "56,56,3]": "16,16,3]"},
    "lines too long for a cache": {"28,28,64]": "2,2000,64]", "56,56,3]": "4,4000,3]"},
    "no holes": {"lhs_dilate=2x2": "lhs_dilate=1x1", "56,56,3]": "29,29,3]"},
    "a window with holes": {"lhs_dilate=2x2": "lhs_dilate=2x2 rhs_dilate=2x1", "56,56,3]": "50,56,3]"},
    "a window that jumps": {"lhs_dilate=2x2": "lhs_dilate=2x2 stride=2x1", "56,56,3]": "28,56,3]"},
    "groups": {"7,7,64,3]": "7,7,32,4]", "56,56,3]": "56,56,4]", "dim_labels": "feature_group_count=2, dim_labels"},
    "complex numbers": {"f32": "c64"},
    "narrow numbers": {"f32": "bf16"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_convolutions_are_not_spread(name: str) -> None:
    text = program("the gradient of a stride")
    for old, new in CHANGES[name].items():
        assert old in text
        text = text.replace(old, new)
    assert spread_product(parse(text).entry.root) is None
