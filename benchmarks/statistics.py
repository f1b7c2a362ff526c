"""Medians of paired ratios, how sure they are, and means over many workloads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A median, and the bounds between which the true one lies with the stated confidence."""

    median: float
    low: float
    high: float


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def lower_decile(values: Sequence[float]) -> float:
    """The value that a tenth of all do not exceed: of times, what a busy machine spoils least but for the best."""
    return sorted(values)[len(values) // 10]


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The median with its interval by the sign test, which assumes nothing about the distribution.

    The bounds are order statistics: the k-th value from either end, k as large as the confidence allows. Fewer than six
    values cannot give 95 %, and their bounds are the extremes."""
    ordered = sorted(values)
    rank = _sign_test_rank(len(ordered), confidence)
    return Interval(median(ordered), ordered[rank], ordered[len(ordered) - 1 - rank])


def _sign_test_rank(count: int, confidence: float) -> int:
    """How many values to cut off each end: the largest k with P(Binomial(count, 1/2) < k) <= (1 - confidence) / 2."""
    tail = 0.0
    for rank in range(count // 2 + 1):
        tail += math.comb(count, rank) / 2.0**count
        if tail > (1 - confidence) / 2:
            return max(0, rank - 1)
    return max(0, count // 2 - 1)


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """How many times as long the other engine takes, from times that were measured in turns."""
    return median_interval([other / own for own, other in zip(ours, theirs, strict=True)])


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan
