"""Medians, intervals and means."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.statistics import geometric_mean, median, median_interval, paired_ratio


def test_the_median_of_an_even_number_of_values_lies_between_the_middle_two() -> None:
    assert median([4, 1, 3, 2]) == 2.5
    assert median([9, 1, 5]) == 5


def test_the_bounds_of_thirty_values_are_the_tenth_from_either_end() -> None:
    interval = median_interval(list(range(1, 31)))
    assert (interval.low, interval.median, interval.high) == (10, 15.5, 21)


def test_few_values_give_their_extremes() -> None:
    interval = median_interval([3.0, 1.0, 2.0])
    assert (interval.low, interval.high) == (1.0, 3.0)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    generator = random.Random(7)
    held = 0
    for _ in range(2000):
        interval = median_interval([generator.lognormvariate(0, 1) for _ in range(30)])
        held += interval.low <= 1.0 <= interval.high
    assert held / 2000 >= 0.94


def test_a_ratio_pairs_what_was_measured_together() -> None:
    ratio = paired_ratio([1.0, 10.0, 2.0], [2.0, 20.0, 4.0])
    assert (ratio.low, ratio.median, ratio.high) == (2.0, 2.0, 2.0)


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert math.isnan(geometric_mean([]))
