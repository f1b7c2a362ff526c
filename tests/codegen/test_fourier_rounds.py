"""Rounds of stages: all of a transform, in parts that near buffers have room for."""

from __future__ import annotations

import itertools
import math

import pytest

from xlapy.codegen.fourier_rounds import MOST_NEAR_BUFFERS, rounds_of
from xlapy.codegen.fourier_tables import radices_of


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("width", [1, 16, 50])
@pytest.mark.parametrize("length", [64, 1000, 2048, 16384, 15625, 28561, 1 << 20])
def test_parts_fit_and_make_up_the_transform(length: int, width: int, lanes: int) -> None:
    near = 4608
    radices = tuple(radices_of(length, lanes) or ())
    rounds = rounds_of(radices, width, lanes, near)
    assert tuple(itertools.chain(*(each.radices for each in rounds))) == radices
    run = 1
    for each in rounds:
        assert each.run == run and each.run * each.radix * each.positions == length
        numbers = each.radix * each.run_part * each.positions_part
        assert numbers * each.parts == length
        buffers = min(len(each.radices) - 1, MOST_NEAR_BUFFERS)
        assert buffers * numbers * width <= near
        assert not buffers or each.run_part * width >= lanes
        run *= each.radix


def test_rounds_are_few() -> None:
    def radices(width: int, length: int, near: int = 4608) -> list[tuple[int, ...]]:
        stages = tuple(radices_of(length, 16) or ())
        return [each.radices for each in rounds_of(stages, width, 16, near)]

    assert radices(16, 2048) == [(8, 8), (8, 4)]
    assert radices(1, 16384) == [(8,), (8,), (8,), (8, 4)]
    assert radices(1, 16384, near=0) == [(8,), (8,), (8,), (8,), (4,)]
    assert radices(1, 1024, near=100) == [(8,), (8,), (4,), (4,)]


def test_stages_know_the_positions_of_their_parts() -> None:
    """Part p has those M apart from p on; what is near follows in order."""
    first, second = rounds_of((8, 8, 8, 4), 16, 16, 4608)[0].stages
    assert first.positions.reshape(32, 8)[3].tolist() == [3 + 32 * number for number in range(8)]
    assert second.positions.tolist() == list(range(32))
    assert math.prod((first.radix, second.radix)) == 64
