"""Convolutions by loop nests: which loops are one, or outside, or share a tile, with the same sums."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from tests.support.close_results import check_same
from tests.support.guarded_memory import read_only
from tests.support.random_windows import random_array
from xlapy.codegen.kernels.convolution import (
    MOST_VECTORS,
    SPATIAL,
    TILE_WITH_EDGES,
    plan_convolution,
)
from xlapy.codegen.target import host_target, reference_target
from xlapy.hlo.text import parse
from xlapy_runtime.records import replaced


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
    check(text)


FIRST = "dim_labels=bf01_oi01->bf01"
ACROSS_EDGES = {
    # name: a program whose rows of positions are lanes, and whether most of these are at an edge
    "groups": (convolution("2,8,9,28", "24,4,3,3", "2,24,9,28", f"{SAME}, {FIRST}, feature_group_count=2"), True),
    "one channel, far outside": (
        convolution("2,1,9,28", "9,1,3,5", "2,9,9,36", f"window={{size=3x5 pad=1_1x6_6}}, {FIRST}"),
        True,
    ),
    "by twos, holes in the window": (
        convolution(
            "2,3,9,57", "8,3,3,3", "2,8,5,29", f"window={{size=3x3 stride=2x2 pad=1_1x2_2 rhs_dilate=1x2}}, {FIRST}"
        ),
        True,
    ),
    "backwards": (
        convolution("2,3,9,28", "8,3,3,3", "2,8,9,28", f"window={{size=3x3 pad=1_1x1_1 rhs_reversal=0x1}}, {FIRST}"),
        True,
    ),
    "long rows": (convolution("1,2,3,300", "8,2,3,3", "1,8,3,300", f"{SAME}, {FIRST}"), False),
}


@pytest.mark.parametrize("name", ACROSS_EDGES)
def test_rows_of_positions_across_edges(name: str) -> None:
    """Where masks take registers, tiles of rows that are mostly edges have one vector of each result; in all types."""
    text, is_edge = ACROSS_EDGES[name]
    convolution = parse(text).entry.root
    for target, takes_registers in ((reference_target("avx2"), True), (reference_target("avx512"), False)):
        plan = plan_convolution(convolution, target)
        assert plan.lane_loop == SPATIAL + 1
        assert plan.masks_factors == takes_registers
        if takes_registers:
            assert (plan.vectors == 1 and plan.tile <= TILE_WITH_EDGES) == is_edge
    for type in ("f64", "s32", "s8", "bf16", "c64"):
        of_type = text.replace("f32", type)
        generator = np.random.default_rng(1)
        arrays = [random_array(generator, parameter.shape) for parameter in parse(of_type).entry.parameters]
        check_same(xlapy.compile(of_type)(*arrays), xlapy.evaluate(of_type, *arrays))
    check(text)


def check(text: str) -> None:
    module = parse(text)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    arrays = [np.random.default_rng(n).normal(size=shape.dims).astype(np.float32) for n, shape in enumerate(shapes)]
    arrays[0].flat[7], arrays[1].flat[3] = np.inf, np.nan  # which must not meet what lies outside
    got, wanted = xlapy.compile(text)(*arrays), xlapy.evaluate(text, *arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


GRADIENT = "dim_labels=f01b_i01o->01bf"
PER_CHANNEL = f"{GRADIENT}, batch_group_count=32"
FEW_POSITIONS = {
    # name: a program, and the positions of the batch in a tile
    "colors": (convolution("4,17,19,3", "4,17,19,32", "3,3,3,32", f"window={{size=17x19 pad=1_1x1_1}}, {GRADIENT}"), 3),
    "one color": (
        convolution("4,17,19,1", "4,17,19,8", "3,3,1,8", f"window={{size=17x19 pad=1_1x1_1}}, {GRADIENT}"),
        1,
    ),
    "many colors": (
        convolution("4,17,19,9", "4,17,19,16", "3,3,9,16", f"window={{size=17x19 pad=1_1x1_1}}, {GRADIENT}"),
        1,
    ),
    "strides": (
        convolution(
            "2,17,20,3", "2,9,10,16", "3,3,3,16", f"window={{size=9x10 pad=1_1x0_1 rhs_dilate=2x2}}, {GRADIENT}"
        ),
        3,
    ),
    "each channel": (
        convolution("3,12,15,32", "3,12,15,32", "3,4,1,32", f"window={{size=12x15 pad=1_1x2_1}}, {PER_CHANNEL}"),
        1,
    ),
    "each channel, far outside": (
        convolution("3,4,6,32", "3,24,40,32", "2,20,1,32", f"window={{size=24x40 pad=20_1x31_22}}, {PER_CHANNEL}"),
        1,
    ),
    "no place for all positions": (
        convolution("3,4,5,32", "3,9,20,32", "2,10,1,32", f"window={{size=9x20 pad=3_3x12_12}}, {PER_CHANNEL}"),
        1,
    ),
    "backwards": (
        convolution(
            "3,12,15,3", "3,12,15,32", "3,3,3,32", f"window={{size=12x15 pad=1_1x1_1 rhs_reversal=0x1}}, {GRADIENT}"
        ),
        3,
    ),
    "a line": (
        convolution("3,40,2", "3,40,16", "5,2,16", "window={size=40 pad=2_2}, dim_labels=f0b_i0o->0bf"),
        2,
    ),
}


@pytest.mark.parametrize("name", FEW_POSITIONS)
def test_gradients_of_kernels(name: str) -> None:
    text, sheets = FEW_POSITIONS[name]
    plan = plan_convolution(parse(text).entry.root, host_target())
    assert plan.has_features_outside
    assert plan.edges == (0, 0)
    assert plan.tile > 1
    assert plan.sheets == sheets
    check(text)


def test_registers_for_the_sums_of_all_colors() -> None:
    window = f"window={{size=17x19 pad=1_1x2_2}}, {GRADIENT}"
    root = parse(convolution("4,17,19,4", "4,17,19,16", "3,5,4,16", window)).entry.root
    for target, sheets in (("avx512", 4), ("neon", 4), ("avx2", 1), ("sse2", 1)):
        assert plan_convolution(root, reference_target(target)).sheets == sheets


IN_GROUPS = convolution(
    "3,12,15,32", "3,12,15,32", "3,3,16,32", f"window={{size=12x15 pad=1_1x1_1}}, {GRADIENT}, batch_group_count=2"
)


@pytest.mark.parametrize("name", ["colors", "strides", "backwards", "each channel", "groups", "a line"])
def test_tiles_take_turns_at_lines_that_no_cache_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = IN_GROUPS if name == "groups" else FEW_POSITIONS[name][0]
    small = replaced(host_target(), l2_bytes=1 << 12)
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: small)
    plan = plan_convolution(parse(text).entry.root, small)
    assert bool(plan.lines_at_once) == (name != "a line")
    assert not plan_convolution(parse(text).entry.root, host_target()).lines_at_once
    check(text)


def test_tiles_that_overlap_take_no_turns() -> None:
    """What two of them sum up would be added twice."""
    window = f"window={{size=17x19 pad=1_1x1_1}}, {GRADIENT}"
    small = replaced(reference_target("avx512"), l2_bytes=1 << 12)
    for features, takes_turns in ((16, True), (32, True), (24, False), (40, False)):
        text = convolution("4,17,19,3", f"4,17,19,{features}", f"3,3,3,{features}", window)
        assert bool(plan_convolution(parse(text).entry.root, small).lines_at_once) == takes_turns


def test_gradients_of_many_filters_of_one_channel() -> None:
    """As many vectors as hide the latency of products, and fit the registers; the last ones overlap the others."""
    channels = f"{GRADIENT}, batch_group_count=536"
    text = convolution("2,7,9,536", "2,7,9,536", "3,3,1,536", f"window={{size=7x9 pad=1_1x1_1}}, {channels}")
    for target, vectors in (("avx512", MOST_VECTORS), ("avx2", MOST_VECTORS - 1)):
        assert plan_convolution(parse(text).entry.root, reference_target(target)).vectors == vectors
    check(text)


def test_gradients_of_groups_with_features_for_one_vector() -> None:
    lanes = host_target().lanes(32)
    window = f"window={{size=12x15 pad=1_1x1_1}}, {GRADIENT}, batch_group_count=2"
    text = convolution("3,12,15,24", f"3,12,15,{2 * lanes}", f"3,3,12,{2 * lanes}", window)
    plan = plan_convolution(parse(text).entry.root, host_target())
    assert (plan.vectors, plan.tile) == (1, 12)
    check(text)


@pytest.mark.parametrize("l2_bytes", [None, 1 << 12])
def test_gradients_of_kernels_do_not_depend_on_threads(l2_bytes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = FEW_POSITIONS["colors"]
    text = text.replace("4,17,19", "64,17,19")
    if l2_bytes is not None:
        target = replaced(host_target(), l2_bytes=l2_bytes)
        monkeypatch.setattr("xlapy.program_cache.host_target", lambda: target)
    arrays = [
        np.random.default_rng(n).normal(size=parameter.shape.dims).astype(np.float32)
        for n, parameter in enumerate(parse(text).entry.parameters)
    ]
    first, *others = (
        xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(*arrays) for threads in (1, 2, 3, 8)
    )
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("stride", [(1 << 31) - 1, 1 << 31, 1 << 32])
@pytest.mark.parametrize("groups", [1, 4])
def test_windows_far_outside_are_not_taken_for_others(stride: int, groups: int) -> None:
    """Their places take more than 32 bits; those of 2^32 apart were all taken for the first one, and read."""
    padding = 1 << 34
    count = (2 + padding) // stride + 1
    text = f"""ENTRY e {{
      x = f32[2,8,5,3] parameter(0)
      k = f32[8,{8 // groups},1,1] parameter(1)
      ROOT c = f32[2,8,5,{count}] convolution(x, k), feature_group_count={groups},
        window={{size=1x1 stride=1x{stride} pad=0_0x0_{padding}}}, dim_labels=bf01_oi01->bf01 }}"""
    generator = np.random.default_rng(0)
    x, kernel = (generator.integers(-4, 5, dims).astype(np.float32) for dims in ((2, 8, 5, 3), (8, 8 // groups, 1, 1)))
    parts = zip(np.split(x[..., 0], groups, axis=1), np.split(kernel[..., 0, 0], groups), strict=True)
    expected = np.zeros((2, 8, 5, count), np.float32)
    expected[..., 0] = np.concatenate([np.einsum("bfy,of->boy", part, factor) for part, factor in parts], axis=1)
    np.testing.assert_array_equal(xlapy.compile(text)(x, kernel), expected)


def test_a_window_dilated_far_outside() -> None:
    dilation = 1 << 32
    text = f"""ENTRY e {{
      x = f32[2,8,5,9] parameter(0)
      k = f32[8,2,1,2] parameter(1)
      ROOT c = f32[2,8,5,9] convolution(x, k), feature_group_count=4,
        window={{size=1x2 pad=0_0x0_{dilation} rhs_dilate=1x{dilation}}}, dim_labels=bf01_oi01->bf01 }}"""
    generator = np.random.default_rng(1)
    x, kernel = (generator.integers(-4, 5, dims).astype(np.float32) for dims in ((2, 8, 5, 9), (8, 2, 1, 2)))
    parts = zip(np.split(x, 4, axis=1), np.split(kernel[..., 0, 0], 4), strict=True)
    expected = np.concatenate([np.einsum("bfyx,of->boyx", part, factor) for part, factor in parts], axis=1)
    np.testing.assert_array_equal(xlapy.compile(text)(x, kernel), expected)


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 3), (2, 2), (3, 1), (5, 0)])
@pytest.mark.parametrize(("dilation", "size"), [(2, 2), (2, 4), (3, 3), (3, 6), (4, 4)])
def test_few_features_of_dilated_arrays(dilation: int, size: int, low: int, high: int, is_reversed: bool) -> None:
    """The places between elements are features of a smaller convolution, until these fill a vector."""
    rows, columns = (5 - 1) * 2 + 1 + 2 + 2 - 4 + 1, (4 - 1) * dilation + 1 + low + high - size + 1
    window = f"size=4x{size} pad=2_2x{low}_{high} lhs_dilate=2x{dilation}"
    window += " rhs_reversal=0x1" * is_reversed
    text = f"""ENTRY e {{ x = f32[2,5,4,8] parameter(0) k = f32[4,{size},8,2] parameter(1)
        ROOT c = f32[2,{rows},{columns},2] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f }}"""
    random = np.random.default_rng(size)
    x = random.integers(-9, 9, (2, 5, 4, 8)).astype(np.float32)
    k = random.integers(-9, 9, (4, size, 8, 2)).astype(np.float32)
    compiled = xlapy.compile(text)
    assert f"x{dilation}" not in "".join(re.findall("lhs_dilate=[0-9x]+", compiled.hlo_text()))
    np.testing.assert_array_equal(compiled(x, k), xlapy.evaluate(text, x, k))
    x[0, 2, 1] = np.inf
    np.testing.assert_array_equal(np.isfinite(compiled(x, k)), np.isfinite(_meeting(text, x, k)))


def _meeting(text: str, x: np.ndarray, k: np.ndarray) -> np.ndarray:
    """What is infinite where an element that is meets a place of the kernel, and finite elsewhere."""
    met = xlapy.evaluate(text, np.isinf(x).astype(np.float32), np.ones_like(k))
    return np.where(met > 0, np.inf, 0)


def test_nothing_behind_images_side_by_side_is_read() -> None:
    """Images of a group lie one element apart, and each picks its own out of the same vectors."""
    text = """HloModule m
      ENTRY main { x = f64[1,12,29,32] parameter(0)
        k = f64[1,6,29,16] parameter(1)
        ROOT c = f64[3,7,2,16] convolution(x, k), window={size=6x29 pad=1_0x3_3 rhs_dilate=2x1},
          dim_labels=f01b_i01o->01bf, batch_group_count=16 }"""
    generator = np.random.default_rng(2)
    arrays = [generator.integers(-4, 5, dims).astype(np.float64) for dims in ((1, 12, 29, 32), (1, 6, 29, 16))]
    compiled, wanted = xlapy.compile(text), xlapy.evaluate(text, *arrays)
    for at_end in (True, False):
        np.testing.assert_array_equal(compiled(*(read_only(array, at_end=at_end) for array in arrays)), wanted)
