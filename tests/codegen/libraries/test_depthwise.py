"""Convolutions of each channel by itself, by a library, against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.text import parse


def depthwise(
    source: str,
    kernel: str,
    result: str,
    window: str,
    *,
    labels: str = "b01f_01io->b01f",
    element_type: str = "f32",
    groups: int | None = None,
) -> str:
    channels = groups or int(result.rpartition(",")[2])
    return f"""HloModule m
      ENTRY main {{
        x = {element_type}[{source}] parameter(0)
        k = {element_type}[{kernel}] parameter(1)
        ROOT c = {element_type}[{result}] convolution(x, k), window={{{window}}}, dim_labels={labels},
          feature_group_count={channels}
      }}"""


def check(text: str, *, by_library: bool = True) -> None:
    shapes = [parameter.shape for parameter in parse(text).entry.parameters]
    arrays = [np.random.default_rng(n).normal(size=s.dims).astype(s.type.dtype) for n, s in enumerate(shapes)]
    compiled = xlapy.compile(text)
    assert ("@depthwise_f" in compiled.llvm_ir()) == by_library
    tolerance = 1e-5 if shapes[0].type.bits == 32 else 1e-13
    np.testing.assert_allclose(compiled(*arrays), xlapy.evaluate(text, *arrays), rtol=tolerance, atol=tolerance * 10)


WINDOWS = {
    "three by three": ("2,12,14,64", "3,3,1,64", "2,12,14,64", "size=3x3 pad=1_1x1_1"),
    "channels that fill no two vectors": ("1,20,20,49", "3,3,1,49", "1,20,20,49", "size=3x3 pad=1_1x1_1"),
    "one vector of channels": ("2,30,31,20", "3,3,1,20", "2,28,29,20", "size=3x3"),
    "by twos": ("3,21,41,49", "5,5,1,49", "3,11,21,49", "size=5x5 stride=2x2 pad=2_2x2_2"),
    "wide": ("1,9,40,64", "1,7,1,64", "1,9,17,64", "size=1x7 stride=1x2 pad=0_0x0_0"),
    "narrow": ("3,70,7,33", "4,7,1,33", "3,67,7,33", "size=4x7 pad=0_0x3_3"),
    "backwards": ("2,12,14,64", "3,5,1,64", "2,12,14,64", "size=3x5 pad=1_1x2_2 rhs_reversal=1x1"),
    "rows apart": ("2,20,14,64", "3,3,1,64", "2,16,14,64", "size=3x3 pad=0_0x1_1 rhs_dilate=2x1"),
    "rows skipped": ("2,25,14,64", "1,3,1,64", "2,13,14,64", "size=1x3 stride=2x1 pad=0_0x1_1"),
    "far apart": ("2,28,33,64", "3,3,1,64", "2,7,17,64", "size=3x3 stride=4x2 pad=0_0x1_1"),
    "one row of results": ("40,3,14,64", "3,3,1,64", "40,1,14,64", "size=3x3 pad=0_0x1_1"),
    "seven positions": ("8,7,7,64", "3,3,1,64", "8,7,7,64", "size=3x3 pad=1_1x1_1"),
    "cut and far outside": ("2,12,14,64", "3,3,1,64", "2,15,20,64", "size=3x3 pad=4_1x-1_9"),
}


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(name: str, element_type: str) -> None:
    check(depthwise(*WINDOWS[name], element_type=element_type))


def test_lines() -> None:
    check(depthwise("5,60,49", "3,1,49", "5,60,49", "size=3 pad=1_1", labels="b0f_0io->b0f"))


def test_places_in_other_orders() -> None:
    check(depthwise("12,2,14,64", "3,5,1,64", "2,14,12,64", "size=5x3 pad=2_2x1_1", labels="1b0f_10io->b01f"))


OTHERS = {
    "several filters": depthwise("2,12,14,64", "3,3,1,128", "2,12,14,128", "size=3x3 pad=1_1x1_1", groups=64),
    "several inputs": depthwise("2,12,14,64", "3,3,2,32", "2,12,14,32", "size=3x3 pad=1_1x1_1"),
    "a window of two": depthwise("2,12,14,64", "2,2,1,64", "2,11,13,64", "size=2x2"),
    "places apart": depthwise("2,12,18,64", "3,3,1,64", "2,12,14,64", "size=3x3 pad=1_1x0_0 rhs_dilate=1x2"),
    "holes": depthwise("2,12,14,64", "3,3,1,64", "2,12,25,64", "size=3x3 pad=1_1x0_0 lhs_dilate=1x2"),
    "few channels": depthwise("8,30,30,3", "3,3,1,3", "8,30,30,3", "size=3x3 pad=1_1x1_1"),
    "few positions": depthwise("50,12,3,64", "3,3,1,64", "50,12,3,64", "size=3x3 pad=1_1x1_1"),
    "channels first": depthwise(
        "2,64,12,14", "64,1,3,3", "2,64,12,14", "size=3x3 pad=1_1x1_1", labels="bf01_oi01->bf01", groups=64
    ),
    "whole numbers": depthwise("2,12,14,64", "3,3,1,64", "2,12,14,64", "size=3x3 pad=1_1x1_1", element_type="s32"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_have_kernels_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


def test_what_is_outside_is_not_multiplied() -> None:
    text = depthwise(*WINDOWS["three by three"])
    x = np.ones((2, 12, 14, 64), np.float32)
    k = np.ones((3, 3, 1, 64), np.float32)
    k[0, :, :, 5], k[:, 2, :, 7] = np.inf, np.nan
    np.testing.assert_array_equal(xlapy.compile(text)(x, k), xlapy.evaluate(text, x, k))


def test_arrays_that_no_cache_holds() -> None:
    text = depthwise("24,96,96,64", "3,3,1,64", "24,48,48,64", "size=3x3 stride=2x2 pad=1_0x1_0")
    x, k = np.ones((24, 96, 96, 64), np.float32), np.ones((3, 3, 1, 64), np.float32)
    inside = np.array([2, *[3] * 47])
    expected = np.broadcast_to(np.outer(inside, inside).reshape(1, 48, 48, 1), (24, 48, 48, 64))
    np.testing.assert_array_equal(xlapy.compile(text)(x, k), expected)


def test_results_do_not_depend_on_threads() -> None:
    text = depthwise("8,65,66,96", "3,3,1,96", "8,65,66,96", "size=3x3 pad=1_1x1_1")
    x = np.random.default_rng(0).normal(size=(8, 65, 66, 96)).astype(np.float32)
    k = np.random.default_rng(1).normal(size=(3, 3, 1, 96)).astype(np.float32)
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(x, k) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
