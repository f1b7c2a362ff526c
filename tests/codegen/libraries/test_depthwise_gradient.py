"""Gradients of the kernels of depthwise convolutions, by a library, against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.text import parse


def gradient(
    source: str,
    slopes: str,
    kernel: str,
    window: str,
    *,
    labels: str = "f01b_i01o->01bf",
    element_type: str = "f32",
    groups: int | None = None,
) -> str:
    channels = groups or int(kernel.rpartition(",")[2])
    return f"""HloModule m
      ENTRY main {{
        x = {element_type}[{source}] parameter(0)
        s = {element_type}[{slopes}] parameter(1)
        ROOT c = {element_type}[{kernel}] convolution(x, s), window={{{window}}}, dim_labels={labels},
          batch_group_count={channels}
      }}"""


def arrays_for(text: str) -> list[np.ndarray]:
    shapes = [parameter.shape for parameter in parse(text).entry.parameters]
    return [np.random.default_rng(n).normal(size=s.dims).astype(s.type.dtype) for n, s in enumerate(shapes)]


def check(text: str, *, by_library: bool = True) -> None:
    arrays = arrays_for(text)
    compiled = xlapy.compile(text)
    assert ("@depthwise_gradient_" in compiled.llvm_ir()) == by_library
    tolerance = 1e-4 if arrays[0].itemsize == 4 else 1e-12
    np.testing.assert_allclose(compiled(*arrays), xlapy.evaluate(text, *arrays), rtol=tolerance, atol=tolerance * 10)


KERNELS = {
    "three by three": ("3,16,14,64", "3,16,14,64", "3,3,1,64", "size=16x14 pad=1_1x1_1"),
    "channels that fill no vectors": ("2,20,21,49", "2,20,21,49", "3,3,1,49", "size=20x21 pad=1_1x1_1"),
    "one vector of channels": ("2,30,31,20", "2,28,29,20", "3,3,1,20", "size=28x29"),
    "many lines": ("5,61,17,33", "5,61,17,33", "3,3,1,33", "size=61x17 pad=1_1x1_1"),
    "by twos": ("3,41,41,49", "3,21,21,49", "5,5,1,49", "size=21x21 rhs_dilate=2x2 pad=2_2x2_2"),
    "wide": ("1,33,40,64", "1,33,17,64", "1,7,1,64", "size=33x17 rhs_dilate=1x2 pad=0_0x0_-1"),
    "narrow": ("3,70,7,33", "3,67,7,33", "4,7,1,33", "size=67x7 pad=0_0x3_3"),
    "rows apart": ("2,30,14,64", "2,26,14,64", "3,3,1,64", "size=26x14 stride=2x1 pad=0_0x1_1"),
    "few positions": ("40,12,4,64", "40,12,4,64", "3,3,1,64", "size=12x4 pad=1_1x1_1"),
    "cut and far outside": ("2,25,24,64", "2,28,28,64", "3,3,1,64", "size=28x28 pad=4_1x-1_7"),
}


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("name", KERNELS)
def test_gradients(name: str, element_type: str) -> None:
    check(gradient(*KERNELS[name], element_type=element_type))


def test_lines() -> None:
    check(gradient("13,60,49", "13,60,49", "3,1,49", "size=60 pad=1_1", labels="f0b_i0o->0bf"))


def test_places_in_other_orders() -> None:
    check(gradient("26,4,14,64", "4,14,26,64", "3,5,1,64", "size=26x14 pad=2_2x1_1", labels="0f1b_i10o->10bf"))


OTHERS = {
    "several filters": gradient("3,16,14,64", "3,16,14,128", "3,3,1,128", "size=16x14 pad=1_1x1_1", groups=64),
    "a kernel of two": gradient("3,16,14,64", "3,15,13,64", "2,2,1,64", "size=15x13"),
    "places apart": gradient("3,16,18,64", "3,16,14,64", "3,3,1,64", "size=16x14 stride=1x2 pad=1_1x0_0"),
    "few channels": gradient("8,30,30,3", "8,30,30,3", "3,3,1,3", "size=30x30 pad=1_1x1_1"),
    "one small image": gradient("1,14,14,64", "1,14,14,64", "3,3,1,64", "size=14x14 pad=1_1x1_1"),
    "whole numbers": gradient("3,16,14,64", "3,16,14,64", "3,3,1,64", "size=16x14 pad=1_1x1_1", element_type="s32"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_gradients_have_kernels_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


def test_what_is_outside_is_not_multiplied() -> None:
    text = gradient("2,20,21,64", "2,20,21,64", "3,3,1,64", "size=20x21 pad=1_1x1_1")
    x, s = np.ones((2, 20, 21, 64), np.float32), np.ones((2, 20, 21, 64), np.float32)
    s[0, 0, 3, 5], s[1, :, 20, 7] = np.inf, np.nan
    np.testing.assert_array_equal(xlapy.compile(text)(x, s), xlapy.evaluate(text, x, s))


def test_arrays_that_no_cache_holds() -> None:
    text = gradient("32,128,128,64", "32,64,64,64", "3,3,1,64", "size=64x64 rhs_dilate=2x2 pad=1_0x1_0")
    x, s = np.ones((32, 128, 128, 64), np.float32), np.ones((32, 64, 64, 64), np.float32)
    inside = np.array([63, 64, 64])
    expected = np.broadcast_to((32 * np.outer(inside, inside)).reshape(3, 3, 1, 1), (3, 3, 1, 64))
    np.testing.assert_array_equal(xlapy.compile(text)(x, s), expected)


def test_results_do_not_depend_on_threads() -> None:
    text = gradient("8,65,66,96", "8,65,66,96", "3,3,1,96", "size=65x66 pad=1_1x1_1")
    arrays = arrays_for(text)
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(*arrays) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
