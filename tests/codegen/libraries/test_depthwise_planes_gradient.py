"""Gradients of the kernels of depthwise convolutions, channels first, by a library, against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.codegen.libraries.test_depthwise_gradient import arrays_for, gradient

LABELS = "fb01_io01->fb01"


def planes(
    source: str, slopes: str, kernel: str, window: str, *, labels: str = LABELS, element_type: str = "f32"
) -> str:
    groups = int(source.split(",")[labels.index("b")])
    return gradient(source, slopes, kernel, window, labels=labels, element_type=element_type, groups=groups)


def check(text: str, *, by_library: bool = True) -> None:
    arrays = arrays_for(text)
    compiled = xlapy.compile(text)
    assert ("@depthwise_planes_gradient_" in compiled.llvm_ir()) == by_library
    tolerance = 1e-4 if arrays[0].itemsize == 4 else 1e-12
    np.testing.assert_allclose(compiled(*arrays), xlapy.evaluate(text, *arrays), rtol=tolerance, atol=tolerance * 10)


KERNELS = {
    "three by three": ("3,17,16,28", "3,17,16,28", "17,1,3,3", "size=16x28 pad=1_1x1_1"),
    "whole vectors": ("2,16,28,34", "2,16,28,32", "16,1,3,3", "size=28x32 pad=1_1x0_0"),
    "rows behind tiles": ("2,16,13,37", "2,16,13,37", "16,1,3,3", "size=13x37 pad=1_1x1_1"),
    "five by five": ("2,16,20,21", "2,16,20,21", "16,1,5,5", "size=20x21 pad=2_2x2_2"),
    "seven by seven, every other row": (
        "3,19,41,18",
        "3,19,21,18",
        "19,1,7,7",
        "size=21x18 rhs_dilate=2x1 pad=3_3x3_3",
    ),
    "rows that fill no vector": ("3,16,14,14", "3,16,14,14", "16,1,3,3", "size=14x14 pad=1_1x1_1"),
    "cut and far outside": ("2,16,25,24", "2,16,28,28", "16,1,3,3", "size=28x28 pad=4_1x-1_7"),
}


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("name", KERNELS)
def test_gradients(name: str, element_type: str) -> None:
    check(planes(*KERNELS[name], element_type=element_type))


def test_places_in_other_orders() -> None:
    check(planes("18,16,2,27", "16,2,18,27", "3,18,3,1", "size=16x27 pad=1_1x1_1", labels="b0f1_0io1->0f1b"))


OTHERS = {
    "every other position": planes("2,16,28,55", "2,16,28,28", "16,1,3,3", "size=28x28 rhs_dilate=1x2 pad=1_1x1_1"),
    "places apart": planes("2,16,28,30", "2,16,28,28", "16,1,3,3", "size=28x28 stride=1x2 pad=1_1x1_1"),
    "an oblong kernel": planes("2,16,28,28", "2,16,28,28", "16,1,3,5", "size=28x28 pad=1_1x2_2"),
    "short rows": planes("2,16,28,11", "2,16,28,11", "16,1,3,3", "size=28x11 pad=1_1x1_1"),
    "whole numbers": planes("2,16,28,28", "2,16,28,28", "16,1,3,3", "size=28x28 pad=1_1x1_1", element_type="s32"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_gradients_have_kernels_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


def test_what_is_outside_is_not_multiplied() -> None:
    text = planes("2,16,20,21", "2,16,20,21", "16,1,3,3", "size=20x21 pad=1_1x1_1")
    x, s = np.ones((2, 16, 20, 21), np.float32), np.ones((2, 16, 20, 21), np.float32)
    s[0, 5, 0, 3], s[1, 7, :, 20] = np.inf, np.nan
    np.testing.assert_array_equal(xlapy.compile(text)(x, s), xlapy.evaluate(text, x, s))


def test_results_do_not_depend_on_threads() -> None:
    text = planes("4,32,65,66", "4,32,65,66", "32,1,3,3", "size=65x66 pad=1_1x1_1")
    arrays = arrays_for(text)
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(*arrays) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
