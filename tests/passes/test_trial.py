"""The harness that users test their passes with: it must see every difference that a pass makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

from xlapy.hlo.graph import HloModule
from xlapy.passes.base import Pass
from xlapy.passes.dce import Dce
from xlapy.passes.trial import assert_same, check_case, load_cases

NARROW = (ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn)
FLOATS = (np.float64, np.float32, *NARROW)
NAN = float("nan")


@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_of_zero_differ_and_nans_do_not(dtype: Any) -> None:
    with pytest.raises(AssertionError, match="1 of 2 differ"):
        assert_same(np.array([1, -0.0], dtype), np.array([1, 0.0], dtype))
    assert_same(np.array([NAN, -0.0], dtype), np.array([-NAN, -0.0], dtype))
    with pytest.raises(AssertionError, match="1 of 1 differ"):
        assert_same(np.array([NAN], dtype), np.array([1], dtype))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (complex(1, -0.0), complex(1, 0.0)),
        (complex(-0.0, 1), complex(0.0, 1)),
        (complex(NAN, 1), complex(NAN, 2)),
        (complex(NAN, 1), complex(1, NAN)),
    ],
)
def test_complex_numbers_differ_in_either_part(one: complex, other: complex) -> None:
    for dtype in (np.complex64, np.complex128):
        assert_same(np.array(one, dtype), np.array(one, dtype))
        with pytest.raises(AssertionError, match="1 of 1 differ"):
            assert_same(np.array(one, dtype), np.array(other, dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, np.complex64])
def test_a_tolerance_is_one_for_every_float(dtype: Any) -> None:
    one, other = np.array([1.0, 4.0], dtype), np.array([1.25, 4.0], dtype)
    assert_same(one, other, 0.3)
    with pytest.raises(AssertionError, match="1"):
        assert_same(one, other, 0.1)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, ml_dtypes.int4])
def test_integers_have_no_tolerance(dtype: Any) -> None:
    with pytest.raises(AssertionError, match="1 of 2 differ"):
        assert_same(np.array([0, 1], dtype), np.array([1, 1], dtype), 10.0)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (np.ones(2), (np.ones(2),), "instead of a tuple of 1"),
        ((np.ones(2),), (np.ones(2), np.ones(2)), "a tuple of 1 instead of 2"),
        (np.ones(2), None, "instead of a token"),
        (np.ones(2, np.float32), np.ones(2), "elements of float32 instead of float64"),
        (np.ones(2), np.ones((2, 1)), r"an array of \(2,\) instead of \(2, 1\)"),
    ],
)
def test_a_different_structure_is_named(actual: Any, expected: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_same(actual, expected)


CASE = """// ==== a title
ENTRY main {
  x = f32[2] parameter(0)
  dead = f32[2] negate(x)
  ROOT y = f32[2] abs(x)
}
// ---- stays
"""


@dataclass
class Liar(Pass):
    """Claims to have changed what it left."""

    name: ClassVar[str] = "liar"

    def run(self, module: HloModule) -> bool:
        return True


@pytest.mark.parametrize(
    ("step", "message"), [(Dce, "it was to stay, and becomes:\n(.|\n)*abs"), (Liar, "liar lied about")], ids=str
)
def test_a_case_that_fails_says_why(tmp_path: Path, step: Callable[[], Pass], message: str) -> None:
    path = tmp_path / "dce.hlo"
    path.write_text(CASE)
    (case,) = load_cases(path)
    with pytest.raises(AssertionError, match=message):
        check_case(case, step())
