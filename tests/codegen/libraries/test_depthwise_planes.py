"""Convolutions of each channel by itself, channels first, by a library, against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.codegen.libraries.test_depthwise import depthwise

LABELS = "bf01_oi01->bf01"


def planes(
    source: str, kernel: str, result: str, window: str, *, labels: str = LABELS, element_type: str = "f32"
) -> str:
    groups = int(kernel.split(",")[labels.partition("_")[2].index("o")])
    return depthwise(source, kernel, result, window, labels=labels, element_type=element_type, groups=groups)


def check(text: str, element_type: str = "f32", *, by_library: bool = True) -> None:
    compiled = xlapy.compile(text)
    arrays = arrays_for(text, element_type)
    assert ("@depthwise_planes_" in compiled.llvm_ir()) == by_library
    tolerance = 1e-12 if element_type == "f64" else 1e-5
    np.testing.assert_allclose(compiled(*arrays), xlapy.evaluate(text, *arrays), rtol=tolerance, atol=tolerance * 10)


def arrays_for(text: str, element_type: str) -> list[np.ndarray]:
    shapes = [line.split("[")[1].split("]")[0] for line in text.splitlines() if "parameter" in line]
    type = {"f32": np.float32, "f64": np.float64, "s32": np.int32}[element_type]
    sizes = [tuple(map(int, shape.split(","))) for shape in shapes]
    return [np.random.default_rng(n).normal(size=size).astype(type) for n, size in enumerate(sizes)]


WINDOWS = {
    "three by three": ("2,9,28,28", "9,1,3,3", "2,9,28,28", "size=3x3 pad=1_1x1_1"),
    "tiles that overlap": ("3,7,17,37", "7,1,3,3", "3,7,17,37", "size=3x3 pad=1_1x1_1"),
    "all inside": ("3,7,19,35", "7,1,3,3", "3,7,17,33", "size=3x3"),
    "high": ("2,8,30,33", "8,1,7,2", "2,8,28,34", "size=7x2 pad=2_2x1_1"),
    "five by five": ("4,8,16,20", "8,1,5,5", "4,8,16,20", "size=5x5 pad=2_2x2_2"),
    "every other row": ("3,8,41,20", "8,1,5,3", "3,8,21,20", "size=5x3 stride=2x1 pad=2_2x1_1"),
    "backwards": ("2,9,28,28", "9,1,3,5", "2,9,28,28", "size=3x5 pad=1_1x2_2 rhs_reversal=1x1"),
    "rows that fill no vector": ("5,9,15,14", "9,1,3,3", "5,9,15,14", "size=3x3 pad=1_1x1_1"),
    "few channels": ("1,3,70,70", "3,1,3,3", "1,3,70,70", "size=3x3 pad=1_1x1_1"),
    "one small image, five by five": ("1,1,60,60", "1,1,5,5", "1,1,56,56", "size=5x5"),
    "cut and far outside": ("2,9,28,28", "9,1,3,3", "2,9,31,53", "size=3x3 pad=4_1x-1_28"),
}


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(name: str, element_type: str) -> None:
    check(planes(*WINDOWS[name], element_type=element_type), element_type)


def test_places_in_other_orders() -> None:
    check(planes("9,28,2,27", "3,9,3,1", "28,9,2,27", "size=3x3 pad=1_1x1_1", labels="f0b1_0o1i->0fb1"))


def test_an_image_of_one_feature_is_a_plane() -> None:
    check(planes("1,60,64,1", "5,5,1,1", "1,60,60,1", "size=5x5 pad=2_2x0_0", labels="b01f_01io->b01f"))


OTHERS = {
    "every other position": planes("2,9,28,55", "9,1,3,3", "2,9,28,28", "size=3x3 stride=1x2 pad=1_1x1_1"),
    "places apart": planes("2,9,28,28", "9,1,3,3", "2,9,28,26", "size=3x3 pad=1_1x1_1 rhs_dilate=1x2"),
    "rows apart": planes("2,9,28,28", "9,1,3,3", "2,9,26,28", "size=3x3 pad=1_1x1_1 rhs_dilate=2x1"),
    "a window of two rows": planes("2,9,28,28", "9,1,2,2", "2,9,27,27", "size=2x2"),
    "few channels, to share out": planes("1,3,270,270", "3,1,3,3", "1,3,270,270", "size=3x3 pad=1_1x1_1"),
    "one small image": planes("1,1,60,60", "1,1,3,3", "1,1,60,60", "size=3x3 pad=1_1x1_1"),
    "small images": planes("16,60,3,3", "60,1,3,3", "16,60,3,3", "size=3x3 pad=1_1x1_1"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_have_kernels_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


def test_whole_numbers_have_a_kernel_of_their_own() -> None:
    check(planes(*WINDOWS["three by three"], element_type="s32"), "s32", by_library=False)


def test_what_is_outside_is_not_multiplied() -> None:
    text = planes(*WINDOWS["three by three"])
    x, k = np.ones((2, 9, 28, 28), np.float32), np.ones((9, 1, 3, 3), np.float32)
    k[5, :, 0], k[7, :, :, 2] = np.inf, np.nan
    np.testing.assert_array_equal(xlapy.compile(text)(x, k), xlapy.evaluate(text, x, k))


def test_results_do_not_depend_on_threads() -> None:
    text = planes("4,33,65,66", "33,1,3,3", "4,33,65,66", "size=3x3 pad=1_1x1_1")
    arrays = arrays_for(text, "f32")
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(*arrays) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
