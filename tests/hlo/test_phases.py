"""Windows over arrays with holes, by phases."""

from __future__ import annotations

import itertools

import pytest

from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.phases import has_phases_in_library, phases
from xlapy.hlo.text import parse

Met = set[tuple[int, int, int]]


def met(part: WindowDimension, size: int, count: int) -> Met:
    """Positions, places, and the elements under them."""
    found = set()
    for position, place in itertools.product(range(count), range(part.size)):
        dilated = position * part.stride + place * part.window_dilation - part.padding_low
        element, rest = divmod(dilated, part.base_dilation)
        if not rest and 0 <= element < size:
            found.add((position, place, element))
    return found


@pytest.mark.parametrize("low", [-2, 0, 1, 5])
@pytest.mark.parametrize("dilation", [1, 2, 3, 6])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("holes", [1, 2, 3, 4])
def test_phases_see_what_the_window_sees(holes: int, stride: int, dilation: int, low: int) -> None:
    size, count = 5, 9
    part = WindowDimension(4, stride, low, 0, holes, dilation)
    found: Met = set()
    positions = []
    for phase in phases(part, size, count):
        assert phase.part.base_dilation == 1
        assert not phase.part.size or phase.part.positions(size) == phase.count
        positions += range(phase.first, phase.first + phase.step * phase.count, phase.step)
        found |= {
            (phase.first + phase.step * position, phase.first_place + phase.place_step * place, element)
            for position, place, element in met(phase.part, size, phase.count)
        }
    assert sorted(positions) == list(range(count))
    assert found == met(part, size, count)


def is_in_library(x: str, k: str, c: str, window: str, labels: str = "b01f_01io->b01f", type: str = "f32") -> bool:
    text = f"""ENTRY e {{ x = {type}[{x}] parameter(0) k = {type}[{k}] parameter(1)
      ROOT c = {type}[{c}] convolution(x, k), window={{{window}}}, dim_labels={labels} }}"""
    return has_phases_in_library(parse(text).entry.root)


BY_TWOS = "size=3x3 pad=2_1x2_1 lhs_dilate=2x2"


def test_what_the_library_makes() -> None:
    assert is_in_library("2,8,8,8", "3,3,8,16", "2,16,16,16", BY_TWOS)
    assert is_in_library("2,8,8,8", "3,3,8,16", "2,16,16,16", BY_TWOS, type="f64")
    assert is_in_library("8,14,14,64", "3,3,64,64", "8,28,28,64", BY_TWOS)
    assert is_in_library("1,4,4,512", "3,3,512,256", "1,8,8,256", BY_TWOS) is False  # much to multiply by large kernels
    assert is_in_library("1,2,2,64", "3,3,64,128", "1,4,4,128", BY_TWOS)  # little of it


def test_what_it_does_not_make() -> None:
    assert not is_in_library("2,8,8,8", "3,3,8,16", "2,8,8,16", "size=3x3 pad=1_1x1_1")
    assert not is_in_library("2,8,8,8", "3,3,8,1", "2,16,16,1", BY_TWOS)
    assert not is_in_library("2,8,8,8", "3,3,8,16", "2,16,16,16", BY_TWOS, type="s32")
    assert not is_in_library("2,8,8,8", "3,3,8,16", "2,16,16,16", BY_TWOS, type="bf16")
    assert not is_in_library("2,8,8,8", "3,3,16,8", "2,16,16,16", BY_TWOS, "b01f_01oi->b01f")
    assert not is_in_library("2,8,8,8", "3,3,8,16", "2,16,16,16", BY_TWOS, "b01f_01io->bf01")
    assert not is_in_library("2,2,2,8", "3,25,8,16", "2,4,41,16", "size=3x25 pad=2_1x30_31 lhs_dilate=2x3")
    assert not is_in_library("2,8,8,8", "3,3,8,16", "2,43,43,16", "size=3x3 pad=1_1x1_1 lhs_dilate=6x6")
