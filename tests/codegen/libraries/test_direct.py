"""Convolutions with output features in lanes, by a library, against the evaluator."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

import xlapy
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.libraries.direct import call_of_direct
from xlapy.codegen.target import host_target, reference_target
from xlapy.hlo.text import parse


def convolution(
    source: str, kernel: str, result: str, window: str, *, labels: str, element_type: str = "f32", groups: int = 1
) -> str:
    return f"""HloModule m
      ENTRY main {{
        x = {element_type}[{source}] parameter(0)
        k = {element_type}[{kernel}] parameter(1)
        ROOT c = {element_type}[{result}] convolution(x, k), window={{{window}}}, dim_labels={labels},
          feature_group_count={groups}
      }}"""


def check(text: str, *, by_library: bool = True) -> str:
    """Compares, and returns the name of the function that was called."""
    shapes = [parameter.shape for parameter in parse(text).entry.parameters]
    arrays = [np.random.default_rng(n).normal(size=s.dims).astype(s.type.dtype) for n, s in enumerate(shapes)]
    compiled = xlapy.compile(text)
    called = re.findall(r"@\"?(direct_[\w.]+)", compiled.llvm_ir())
    assert bool(called) == by_library
    tolerance = 1e-5 if shapes[0].type.bits == 32 else 1e-13
    np.testing.assert_allclose(compiled(*arrays), xlapy.evaluate(text, *arrays), rtol=tolerance, atol=tolerance * 10)
    return called[0] if called else ""


LINES, PLANES, SPACES = "b0f_0io->b0f", "b01f_01io->b01f", "b012f_012io->b012f"
WINDOWS = {
    "a line": ("2,37,5", "3,5,16", "2,37,16", "size=3 pad=1_1", LINES),
    "a line, places apart": ("2,37,5", "3,5,19", "2,37,19", "size=3 pad=4_4 rhs_dilate=4", LINES),
    "a line, by fours": ("2,37,5", "7,5,8", "2,10,8", "size=7 stride=4 pad=3_3", LINES),
    "same": ("2,9,11,4", "3,3,4,16", "2,9,11,16", "size=3x3 pad=1_1x1_1", PLANES),
    "features that fill no two vectors": ("2,9,11,4", "3,3,4,21", "2,7,9,21", "size=3x3", PLANES),
    "six features": ("3,12,13,1", "5,5,1,6", "3,8,9,6", "size=5x5", PLANES),
    "three features": ("2,9,11,4", "3,3,4,3", "2,9,11,3", "size=3x3 pad=1_1x1_1", PLANES),
    "places apart both ways": ("2,14,15,4", "3,3,4,16", "2,14,15,16", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", PLANES),
    "by twos": ("2,15,14,4", "3,3,4,16", "2,8,7,16", "size=3x3 stride=2x2 pad=1_1x0_1", PLANES),
    "backwards": ("2,9,11,4", "3,2,4,16", "2,9,11,16", "size=3x2 pad=1_1x1_0 rhs_reversal=1x1", PLANES),
    "cut and far outside": ("2,9,11,4", "3,3,4,16", "2,12,17,16", "size=3x3 pad=4_1x-1_9", PLANES),
    "one row of results": ("9,3,4,4", "3,3,4,16", "9,1,2,16", "size=3x3", PLANES),
    "short rows": ("2,12,2,4", "3,2,4,16", "2,12,2,16", "size=3x2 pad=1_1x1_0", PLANES),
    "long windows, two of a line": ("5,40,8", "40,8,32", "5,2,32", "size=40 pad=1_0", LINES),
    "space": ("2,5,6,7,3", "3,3,3,3,8", "2,5,6,7,8", "size=3x3x3 pad=1_1x1_1x1_1", SPACES),
    "space, by twos": ("1,7,8,9,3", "3,3,3,3,9", "1,4,4,5,9", "size=3x3x3 stride=2x2x2 pad=1_1x1_0x1_1", SPACES),
}  # fmt: skip


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(name: str, element_type: str) -> None:
    *shapes, labels = WINDOWS[name]
    check(convolution(*shapes, labels=labels, element_type=element_type))


TWOS = "lhs_dilate=2x2"
HOLES = {
    "a line, by twos": ("2,19,5", "4,5,16", "2,38,16", "size=4 pad=2_2 lhs_dilate=2", LINES),
    "a line, by eights": ("1,21,5", "16,5,16", "1,168,16", "size=16 pad=11_11 lhs_dilate=8", LINES),
    "a line, an empty phase": ("2,19,5", "2,5,16", "2,56,16", "size=2 pad=1_1 lhs_dilate=3", LINES),
    "a line, holes and a step": ("2,19,5", "5,5,16", "2,20,16", "size=5 stride=3 pad=4_5 lhs_dilate=3", LINES),
    "a line, other steps": ("2,19,5", "5,5,16", "2,27,16", "size=5 stride=4 pad=2_1 lhs_dilate=6", LINES),
    "a line, places apart": ("2,19,5", "3,5,16", "2,36,16", "size=3 pad=1_2 lhs_dilate=2 rhs_dilate=2", LINES),
    "a line, no holes": ("2,19,5", "3,5,16", "2,57,16", "size=3 pad=3_5 lhs_dilate=3 rhs_dilate=3", LINES),
    "planes": ("2,8,9,4", "3,3,4,16", "2,16,18,16", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2", PLANES),
    "planes, one way": ("2,8,9,4", "3,3,4,16", "2,16,9,16", "size=3x3 pad=2_1x1_1 lhs_dilate=2x1", PLANES),
    "planes, backwards": ("2,8,9,4", "4,3,4,16", "2,16,18,16", f"size=4x3 pad=2_2x2_1 {TWOS} rhs_reversal=1x1", PLANES),
    "planes, six features": ("2,8,9,4", "4,4,4,6", "2,16,18,6", "size=4x4 pad=2_2x2_2 lhs_dilate=2x2", PLANES),
    "planes, cut": ("3,8,9,4", "4,4,4,16", "3,11,20,16", "size=4x4 pad=0_-1x-2_8 lhs_dilate=2x2", PLANES),
    "side by side": ("2,8,9,4", "2,2,4,16", "2,16,18,16", "size=2x2 pad=1_1x1_1 lhs_dilate=2x2", PLANES),
    "few": ("2,4,5,4", "3,3,4,16", "2,2,3,16", "size=3x3 pad=-3_-3x-4_-4 lhs_dilate=3x3", PLANES),
    "space": ("1,4,5,3,4", "3,3,3,4,8", "1,8,10,6,8", "size=3x3x3 pad=2_1x2_1x2_1 lhs_dilate=2x2x2", SPACES),
}  # fmt: skip


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("name", HOLES)
def test_holes(name: str, element_type: str) -> None:
    *shapes, labels = HOLES[name]
    text = convolution(*shapes, labels=labels, element_type=element_type)
    check(text)
    calls = re.findall(r"call void @\"?(direct_[\w.]+|\S*convolution\S*)", xlapy.compile(text).llvm_ir())
    assert len(calls) == 1


def test_holes_in_groups() -> None:
    window = "size=3x3 pad=2_1x2_1 lhs_dilate=2x2"
    check(convolution("2,6,7,8", "3,3,2,32", "2,12,14,32", window, labels=PLANES, groups=4))
    assert check(convolution("2,6,7,16", "3,3,2,8", "2,12,14,8", window, labels=PLANES, groups=8)).endswith(".groups")


@pytest.mark.parametrize("features", [8, 6, 4, 3, 2])
def test_groups(features: int) -> None:
    """However few features they have, lanes lie in one of them, and what these see is read once for all."""
    kernel, result = f"3,3,2,{4 * features}", f"2,9,11,{4 * features}"
    text = convolution("2,9,11,8", kernel, result, "size=3x3 pad=1_1x1_1", labels=PLANES, groups=4)
    assert not check(text).endswith(".groups")


@pytest.mark.parametrize(
    ("features", "groups", "element_type", "window", "result"),
    [
        (4, 8, "f32", "size=3x3 pad=1_1x1_1", "9,11"),
        (4, 4, "f32", "size=3x3 pad=1_1x1_1", "9,11"),
        (2, 40, "f32", "size=3x3 pad=1_1x1_1", "9,11"),
        (4, 12, "f32", "size=3x3 stride=2x2 pad=1_1x1_1", "5,6"),
        (4, 12, "f32", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2", "18,22"),
        (4, 6, "f32", "size=3x3 pad=4_0x-1_9 rhs_dilate=2x1 rhs_reversal=1x0", "9,17"),
        (2, 7, "f64", "size=3x3 pad=1_1x1_1", "9,11"),
    ],
)
def test_lanes_pick_what_they_see_from_neighbours(
    features: int, groups: int, element_type: str, window: str, result: str
) -> None:
    """Of a vector that has the input features of some groups; the last vectors overlap others."""
    channels = features * groups
    text = convolution(
        f"2,9,11,{channels}",
        f"3,3,{features},{channels}",
        f"2,{result},{channels}",
        window,
        labels=PLANES,
        groups=groups,
        element_type=element_type,
    )
    assert check(text).endswith(".neighbours") == host_target().has_permute


@pytest.mark.parametrize("groups", [16, 8, 12])
def test_lanes_across_groups_of_one_feature(groups: int) -> None:
    kernel, result = f"3,3,2,{groups}", f"2,9,11,{groups}"
    text = convolution(f"2,9,11,{2 * groups}", kernel, result, "size=3x3 pad=1_1x1_1", labels=PLANES, groups=groups)
    assert check(text).endswith(".groups")


@pytest.mark.parametrize("features", [2, 3, 5, 6, 7])
def test_few_features_are_one_vector(features: int) -> None:
    """More than half of its lanes are used; the others meet nothing that counts."""
    text = convolution("2,9,13,4", f"3,3,4,{features}", f"2,9,13,{features}", "size=3x3 pad=1_1x1_1", labels=PLANES)
    name = check(text)
    assert name.startswith(f"direct_f32_2_{features}x1_") or features > host_target().lanes(32)
    x, k = np.ones((2, 9, 13, 4), np.float32), np.ones((3, 3, 4, features), np.float32)
    k[0, :, :, 1] = np.inf
    np.testing.assert_array_equal(xlapy.compile(text)(x, k), xlapy.evaluate(text, x, k))


def test_one_loop_goes_over_the_features_of_neighbouring_places() -> None:
    *shapes, labels = WINDOWS["same"]
    assert check(convolution(*shapes, labels=labels)).endswith(".lines")
    *shapes, labels = WINDOWS["backwards"]
    assert not check(convolution(*shapes, labels=labels)).endswith(".lines")


def test_whole_numbers_have_a_kernel_of_their_own() -> None:
    shapes = "2,9,11,4", "3,3,4,16", "2,9,11,16", "size=3x3 pad=1_1x1_1"
    check(convolution(*shapes, labels=PLANES, element_type="s32"), by_library=False)


@pytest.mark.parametrize(("machine", "is_called"), [("sse2", False), ("avx2", False), ("avx512", True), ("neon", True)])
def test_long_windows_at_few_positions(machine: str, is_called: bool) -> None:
    """With 16 registers, tiles of a line's few positions have more vectors of features than the library's. With 32 they
    go along the images, and take as long in the library as in a kernel."""
    text = convolution("5,14,14,8", "14,14,8,32", "5,3,3,32", "size=14x14 pad=1_1x1_1", labels=PLANES)
    assert (call_of_direct(parse(text).entry.root, reference_target(machine)) is not None) is is_called
    check(text, by_library=host_target().vector_registers == 32)


@pytest.mark.parametrize(("windows", "column"), [(WINDOWS["same"], 2), (HOLES["planes"], 1)], ids=["edges", "holes"])
def test_infinities_do_not_meet_what_is_no_element(windows: Sequence[str], column: int) -> None:
    """What lies outside of the array, or between its elements, is not multiplied."""
    source, *shapes, labels = windows
    text = convolution(source, *shapes, labels=labels)
    x, k = np.ones([int(size) for size in source.split(",")], np.float32), np.ones((3, 3, 4, 16), np.float32)
    k[0, :, :, 5], k[:, column, :, 7] = np.inf, np.nan
    np.testing.assert_array_equal(xlapy.compile(text)(x, k), xlapy.evaluate(text, x, k))


@pytest.mark.parametrize(
    "shapes",
    [
        ("4,40,41,8", "3,3,8,24", "4,40,41,24", "size=3x3 pad=1_1x1_1"),
        ("3,20,21,8", "4,4,8,24", "3,40,42,24", "size=4x4 pad=2_2x2_2 lhs_dilate=2x2"),
    ],
    ids=["inside and ends", "phases"],
)
def test_results_do_not_depend_on_threads(shapes: Sequence[str]) -> None:
    """However the units of all parts are split among them."""
    text = convolution(*shapes, labels=PLANES)
    x, k = (
        np.random.default_rng(0).normal(size=[*map(int, dims.split(","))]).astype(np.float32) for dims in shapes[:2]
    )
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(x, k) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_libraries_are_found_by_name() -> None:
    library = LIBRARIES["direct_f32_2_8x2_6.lines"]
    assert library.exports == ("direct_f32_2_8x2_6.lines",)
    with pytest.raises(KeyError):
        LIBRARIES["direct_s8_2_8x2_6"]
