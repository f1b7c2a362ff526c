"""The breadth of JAX: a sample of its functions in every run, all of them in the slow ones (`tests.jax.breadth`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.jax.agreement import x64_mode
from tests.jax.breadth.cases import Case, rows
from tests.jax.breadth.running import Outcome, run, units_apart
from tests.jax.breadth.values import DTYPES
from xlapy.hlo.limitations import JAX_DIFFERENCES

EVERY = 8
"""Of as many rows, one is in the sample."""

SAMPLED = (
    *(("f32", mode) for mode in ("plain", "gradient", "edges", "batched")),
    *((name, "plain") for name in ("i32", "bf16", "c64", "f64", "u8")),
)
"""Types and modes that take turns in it: each is a program of its own, which XLA takes its time to compile."""


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with x64_mode():
        yield


def sample() -> list[Case]:
    chosen = []
    for index, row in enumerate(rows()[::EVERY]):
        cases = {(case.type, case.mode): case for case in row.cases}
        turn = index % len(SAMPLED)
        kinds = [kind for kind in (*SAMPLED[turn:], *SAMPLED[:turn]) if kind in cases]
        chosen.append(cases[kinds[0]] if kinds else next(row.cases))
    return chosen


def unexpected(outcomes: list[Outcome]) -> str:
    return "\n".join(
        f"{o.case}: {o.kind} ({o.units:.3g} of what is allowed) {o.text}" for o in outcomes if not o.is_good
    )


def test_a_sample_agrees() -> None:
    cases = sample()
    outcomes = list(run(cases))
    assert len(outcomes) == len(cases) > 80
    assert not unexpected(outcomes), unexpected(outcomes)
    assert sum(outcome.kind == "refused" for outcome in outcomes) < len(cases) // 10


@pytest.mark.slow
@pytest.mark.parametrize("name", DTYPES)
def test_everything_agrees(name: str) -> None:
    outcomes = list(run([case for row in rows() for case in row.cases if case.type == name]))
    assert not unexpected(outcomes), unexpected(outcomes)


@pytest.mark.slow
def test_known_differences_are_met() -> None:
    """A row of the table that no case needs any more is to go."""
    cases = [case for row in rows() for case in row.cases]
    for difference in JAX_DIFFERENCES:
        met = [case for case in cases if difference.covers(case.row.expression, case.type, case.mode)]
        assert any(outcome.kind in ("differs", "fails") for outcome in run(met)), difference


def test_what_differs_is_seen() -> None:
    one = np.array([1, np.nan, -2], np.float32)
    assert units_apart(one, one) == 0
    assert 0.4 < units_apart(one, np.nextafter(one, 9, dtype=np.float32)) <= 1
    assert units_apart(one, np.array([1, 2, -2], np.float32)) == np.inf
    assert units_apart(one, np.array([1, np.inf, -2], np.float32)) == np.inf
    assert units_apart(np.array([1, 2]), np.array([1, 3])) == np.inf
    assert units_apart(np.array([np.nan + 1j]), np.array([1 + np.inf * 1j])) == 0
