"""What the limits say about a program, and what a probe says about the machine."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pytest

from xlapy.codegen.ir import F32, F64, IRType
from xlapy.codegen.target import host_target
from xlapy.report.limits import (
    ALIGNMENT,
    FED_STEPS,
    FED_VECTORS,
    PIECES,
    STREAMS,
    Bound,
    Limits,
    Pair,
    Probe,
    _aligned,
    _Kernels,
    _movement,
    _Team,
    _Work,
)
from xlapy.report.limits import LIMITS as LIMIT_NAMES

LIMITS = Limits(
    cores=2,
    cache_bytes=1000,
    f32=Pair(50.0, 100.0),
    f64=Pair(25.0, 50.0),
    read=Pair(10.0, 20.0),
    copy=Pair(8.0, 16.0),
    triad=Pair(9.0, 18.0),
)


def shortest(operations: float, read: int, written: int, *, double: bool = False) -> float:
    bound = LIMITS.bound(operations, read, written, double=double)
    assert bound is not None
    return LIMITS.seconds(bound)


def test_limits_are_written_down_with_what_else_was_measured() -> None:
    for limits in (LIMITS, replace(LIMITS, fed_f32=Pair(45.0, 90.0))):
        assert Limits.from_dict(json.loads(json.dumps(limits.as_dict()))) == limits
    assert (limits.alone().fed_f32, limits.alone().fed_f64) == (Pair(45.0, 45.0), None)


def test_arithmetic_limits_what_fits_into_the_cache() -> None:
    assert shortest(200.0, 500, 400) == pytest.approx(2.0)
    assert shortest(200.0, 500, 400, double=True) == pytest.approx(4.0)


def test_bytes_limit_what_does_not_fit_by_the_bandwidth_that_is_like_it() -> None:
    assert shortest(0.0, 4000, 4) == pytest.approx(4004 / 20)
    assert shortest(0.0, 2000, 2000) == pytest.approx(4000 / 16)
    assert shortest(0.0, 4000, 2000) == pytest.approx(6000 / 18)


def test_the_stricter_limit_counts() -> None:
    assert shortest(1e6, 2000, 2000) == pytest.approx(1e4)


def test_nothing_limits_what_only_moves_a_few_bytes() -> None:
    assert LIMITS.bound(0.0, 500, 400, double=False) is None


def test_a_probe_takes_longer_for_more() -> None:
    with closing(Probe(1)) as probe:
        for limit in ("f32", "copy"):
            little, much = (probe.seconds(Bound(limit, amount), 0.01) for amount in (1e6, 1e8))
            assert 0 < little < much


def test_arrays_are_as_large_as_those_of_the_program() -> None:
    kernels = _Kernels(host_target())
    usual, large = kernels.arrays(0), kernels.arrays(kernels.array_bytes(Bound("copy", 1 << 40)))
    assert kernels.array_bytes(Bound("f32", 1e9)) == 0
    assert kernels.array_bytes(Bound("triad", 3e8)) == 2 * kernels.array_bytes(Bound("read", 5e7))
    assert usual.nbytes <= large.nbytes
    assert kernels.arrays(0) is usual


def test_a_core_that_is_held_up_holds_up_no_other() -> None:
    """By clocks of their own, of two cores one makes 10 runs in the time of 1 of the other: 11 runs in that time."""
    clocks = threading.local()

    def task(member: int) -> None:
        clocks.now = clock() + (0.1, 1.0)[member]

    def clock() -> float:
        return getattr(clocks, "now", 0.0)

    with closing(_Team(2, clock)) as team:
        assert team.runs_per_second(task, 5.0) == pytest.approx(11.0)
        assert _Work(team, task, 6.0).mean_rate(5.0) == pytest.approx(33.0)


def test_a_core_runs_once_at_least() -> None:
    ran = []
    with closing(_Team(3, lambda: float(len(ran)))) as team:
        team.runs_per_second(ran.append, 0.0)
    assert sorted(ran) == [0, 1, 2]


@pytest.mark.parametrize("limit", LIMIT_NAMES)
def test_a_probe_says_the_rate_of_the_fastest_way_to_a_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates are given: what they are on a machine under load, nobody knows."""
    computes = limit.endswith(("f32", "f64"))
    rates = {"multiply": 8.0, "plain": 2.0, "ahead": 4.0}

    def ways(probe: Probe, name: str, array_bytes: int = 0) -> list[GivenRate]:
        assert name == limit
        return [GivenRate(rates[way]) for way in (("multiply",) if computes else ("plain", "ahead"))]

    monkeypatch.setattr(Probe, "_works", ways)
    expected = 8.0 if computes else 4.0
    with closing(Probe(1)) as probe:
        assert probe.best(limit) == expected
        assert probe.seconds(Bound(limit, 100.0), 0.01) == pytest.approx(100.0 / expected)


@dataclass(frozen=True)
class GivenRate:
    rate: float

    def best_rate(self) -> float:
        return self.rate

    def mean_rate(self, at_least: float) -> float:
        assert at_least > 0
        return self.rate


def test_a_probe_counts_what_its_kernels_do() -> None:
    """A copy reads and writes as much, a triad reads two arrays; several cores share the same arrays out."""
    kernels = _Kernels(host_target())
    with closing(_Team(1, stopped_clock)) as one, closing(_Team(2, stopped_clock)) as two:
        arrays = kernels.arrays(0)
        read, copy, triad = (_movement(kernels[kernels.ways(limit)[0]], arrays, one, limit) for limit in STREAMS)
        assert (copy.amount, triad.amount) == (2 * read.amount, 3 * read.amount)
        assert _movement(kernels["read"], arrays, two, "read").amount == pytest.approx(read.amount, rel=0.01)


@pytest.mark.parametrize("type", [F32, F64], ids=str)
def test_fed_multiply_adds_are_those_of_a_product(type: IRType) -> None:
    """A tile of so many rows of a left side, stored by columns, times a panel; each round adds the same again."""
    kernels, dtype = _Kernels(host_target()), np.dtype(f"f{type.bytes}")
    rows, columns, rounds = kernels.fed_rows, FED_VECTORS * kernels.lanes[type], 3
    left, right = ((np.arange(FED_STEPS * size) % 7).reshape(FED_STEPS, size).astype(dtype) for size in (rows, columns))
    total = np.empty((rows, columns), dtype)
    kernels[f"fed_multiply_add.{type.kind}"](*(array.ctypes.data for array in (total, left, right)), rounds)
    assert (total == rounds * (left.T @ right)).all()


def test_factors_that_are_fed_lie_within_lines() -> None:
    for size in (1, 24, 4097):
        assert (_aligned(size, F64).ctypes.data % ALIGNMENT, len(_aligned(size, F64))) == (0, size)


@pytest.mark.parametrize("way", ["read_apart", "read_apart.ahead"])
def test_pieces_that_are_read_side_by_side_are_read_to_their_ends(way: str) -> None:
    """What is stored last are sums of the last piece, of every other vector."""
    pieces = np.repeat(np.arange(1, PIECES + 1, dtype=np.float32), 1024)
    total = np.zeros(2 * ALIGNMENT, np.float32)
    kernels = _Kernels(host_target())
    kernels[way](total.ctypes.data, pieces.ctypes.data, pieces.ctypes.data, pieces.nbytes)
    lanes = host_target().lanes(32)
    assert (total[:lanes] == PIECES * 1024 / (2 * lanes)).all() and not total[lanes:].any()


def stopped_clock() -> float:
    return 0.0
