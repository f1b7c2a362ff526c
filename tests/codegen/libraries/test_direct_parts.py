"""The parts of direct convolutions."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from xlapy.codegen.kernels.convolution import BATCH, SPATIAL, axes_of_convolution, plan_convolution
from xlapy.codegen.libraries.direct_parts import Line, Part, parts_of, phases_of
from xlapy.codegen.target import reference_target
from xlapy.hlo.text import parse


def parts(x: str, k: str, c: str, window: str, groups: int = 1) -> tuple[int, list[Part]]:
    text = f"""ENTRY e {{ x = f32[{x}] parameter(0) k = f32[{k}] parameter(1)
      ROOT c = f32[{c}] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f,
        feature_group_count={groups} }}"""
    convolution = parse(text).entry.root
    phases = list(phases_of(axes_of_convolution(convolution)))
    plan = plan_convolution(convolution, reference_target("avx2"), [line.axis for line in phases[0]])
    return parts_of(plan, phases)


def positions(line: Line) -> range:
    return range(line.first, line.first + line.step * line.axis.count, line.step)


def is_inside(line: Line, number: int) -> bool:
    part = line.axis.part
    start = number * part.stride - part.padding_low
    return start >= 0 and start + (part.size - 1) * part.window_dilation < line.axis.size


SHAPES = {
    "one place": ("2,9,11,4", "1,1,4,16", "2,9,11,16", "size=1x1"),
    "same": ("2,16,16,4", "3,3,4,16", "2,16,16,16", "size=3x3 pad=1_1x1_1"),
    "same, few images of few lines": ("2,5,16,4", "3,3,4,16", "2,5,16,16", "size=3x3 pad=1_1x1_1"),
    "same, many images of few lines": ("9,5,16,4", "3,3,4,16", "9,5,16,16", "size=3x3 pad=1_1x1_1"),
    "a wide window": ("9,16,16,4", "7,7,4,16", "9,16,16,16", "size=7x7 pad=3_3x3_3"),
    "uneven": ("9,16,17,4", "4,4,4,16", "9,8,8,16", "size=4x4 stride=2x2 pad=2_0x1_1"),
    "holes": ("9,16,17,4", "4,3,4,16", "9,32,34,16", "size=4x3 pad=2_2x2_1 lhs_dilate=2x2"),
    "few positions": ("2,3,3,4", "3,3,4,16", "2,3,3,16", "size=3x3 pad=1_1x1_1"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_each_result_is_of_one_part(name: str) -> None:
    _, found = parts(*SHAPES[name])
    results = Counter(
        result for part in found for result in itertools.product(*(positions(line) for line in part.lines))
    )
    dims = [int(size) for size in SHAPES[name][2].split(",")]
    assert results == Counter(itertools.product(range(dims[1]), range(dims[2])))


@pytest.mark.parametrize("name", SHAPES)
def test_windows_of_tiles_are_inside(name: str) -> None:
    tile, found = parts(*SHAPES[name])
    for part in found:
        first, last = part.edges
        assert part.covered == 0 or part.covered >= tile
        if part.loop is not None and part.loop >= SPATIAL:
            line = part.lines[part.loop - SPATIAL]
            assert all(is_inside(line, number) for number in range(first, line.axis.count - last))


def test_ends_of_lines_are_tiles_along_others() -> None:
    tile, found = parts(*SHAPES["same"])
    assert tile == 5  # 14 of the 16 positions
    assert [part.loop for part in found] == [SPATIAL + 1, SPATIAL]
    assert [line.axis.count for line in found[1].lines] == [16, 2]  # both ends, one step of 15 positions apart
    assert positions(found[1].lines[1]) == range(0, 30, 15)


def test_ends_of_ends_are_tiles_along_images() -> None:
    _, found = parts(*SHAPES["a wide window"])
    assert {part.loop for part in found} == {SPATIAL + 1, BATCH}
    assert all(sum(part.edges) == 0 for part in found)


def test_few_results_stay_together() -> None:
    _, found = parts(*SHAPES["few positions"])
    assert len(found) == 1


def test_ends_stay_beside_tiles_where_elements_are_gathered() -> None:
    _, found = parts("2,16,16,16", "3,3,2,8", "2,16,16,8", "size=3x3 pad=1_1x1_1", groups=8)
    assert len(found) == 1
    assert found[0].edges == (1, 1)
