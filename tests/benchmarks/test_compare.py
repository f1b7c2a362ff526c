"""When two engines count as agreeing."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from benchmarks.compare import compare


def test_roundings_are_tolerated_and_errors_are_not() -> None:
    values = np.linspace(-1, 1, 100, dtype=np.float32)
    assert compare([values], [values * np.float32(1 + 1e-6)]).holds()
    assert not compare([values], [values + np.float32(1e-3)]).holds()


def test_integers_agree_exactly_or_not_at_all() -> None:
    values = np.arange(10, dtype=np.int32)
    assert compare([values], [values]).holds()
    assert not compare([values], [values + np.int32(1)]).holds()


def test_a_share_of_the_results_may_differ_where_that_is_declared() -> None:
    values = np.arange(100, dtype=np.int32)
    changed = values.copy()
    changed[0] = -1
    agreement = compare([values], [changed])
    assert agreement.beyond == 0.01
    assert agreement.holds(may_differ=0.02)
    assert not agreement.holds(may_differ=0.005)


def test_infinities_and_nans_must_be_the_same() -> None:
    special = np.array([np.inf, -np.inf, np.nan, 1.0], ml_dtypes.bfloat16)
    assert compare([special], [special.copy()]).holds()
    assert not compare([special], [np.array([np.inf, np.inf, np.nan, 1.0], ml_dtypes.bfloat16)]).holds()


def test_other_shapes_types_and_numbers_of_results_are_named() -> None:
    values = np.zeros(3, np.float32)
    assert "float64" in compare([values], [values.astype(np.float64)]).problem
    assert "[4]" in compare([values], [np.zeros(4, np.float32)]).problem
    assert "2 results" in compare([values, values], [values]).problem


def test_complex_numbers_have_the_tolerance_of_their_parts() -> None:
    values = np.array([1 + 1j, -2j, 3], np.complex64)
    assert compare([values], [values * (1 + 1e-6)]).holds()
    assert not compare([values], [values * (1 + 1e-4)]).holds()
    assert not compare([values], [values * np.nan]).holds()
