"""Element types: which integers are values of each."""

from __future__ import annotations

import numpy as np
import pytest

from xlapy.hlo.element_types import (
    ALL,
    BF16,
    C64,
    F8E4M3FN,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    INTEGER,
    PRED,
    S2,
    S8,
    U4,
    U64,
    ElementType,
)


def test_the_range_of_integers_is_that_of_their_bits() -> None:
    assert [kind.integer_range for kind in (PRED, S2, U4)] == [(0, 1), (-2, 1), (0, 15)]
    for kind in INTEGER:
        if kind.bits >= 8:
            limits = np.iinfo(kind.dtype)
            assert kind.integer_range == (limits.min, limits.max)


def test_what_is_no_integer_has_no_range() -> None:
    with pytest.raises(TypeError, match="f32 is not a type of integers"):
        _ = F32.integer_range


@pytest.mark.parametrize(("kind", "bits"), [(F16, 11), (BF16, 8), (F32, 24), (F64, 53)], ids=str)
def test_floats_hold_integers_up_to_their_precision(kind: ElementType, bits: int) -> None:
    most = 1 << bits
    assert kind.holds(-most, most) and not kind.holds(0, most + 1)
    assert float(kind.dtype.type(most)) == most
    assert kind.holds(most + 2, most + 2) and not kind.holds(most + 1, most + 1)


def test_ranges_that_reach_beyond_a_type() -> None:
    assert S8.holds(-128, 127) and not S8.holds(0, 128) and not S8.holds(-129, 0)
    assert U64.holds(0, 2**64 - 1) and not U64.holds(-1, 0)
    assert PRED.holds(0, 1) and not PRED.holds(0, 2)
    assert not F16.holds(100_000, 100_000)
    assert not C64.holds(0, 0)


def test_one_type_has_no_zero() -> None:
    real = [kind for kind in ALL if not kind.is_complex]
    assert [kind for kind in real if not kind.holds(0, 0)] == [F8E8M0FNU]
    assert F8E4M3FN.holds(3, 3) and not F8E8M0FNU.holds(3, 3) and F8E8M0FNU.holds(4, 4)
