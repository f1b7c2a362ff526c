"""The lesser and the greater of two floats, as the IR builder writes them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.support.irlab import Compiled
from xlapy.codegen.ir import F32, F64, PTR, IRType, KernelBuilder, Module


@pytest.mark.parametrize("hoists_constants", [False, True])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
@pytest.mark.parametrize("type", [F32, F64], ids=["f32", "f64"])
def test_extremes_beside_what_is_known_or_not(type: IRType, name: str, hoists_constants: bool) -> None:
    """A NaN if either is one, and -0 is less than +0: also between a vector and a number, on either side of it."""
    numbers = [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan, -math.nan]
    pairs = np.array([*itertools.product(numbers, numbers)], f"f{type.bytes}").T.copy()
    for known, lanes in itertools.product([None, *numbers], (1, 3, 16, 64)):
        module = Module()
        with KernelBuilder(module, "f", [("x", PTR), ("y", PTR)], None, hoists_constants=hoists_constants) as k:
            x, y = (k.load(k.gep(k.parameters["x"], 64 * row, type.bytes), type.with_lanes(lanes)) for row in (0, 1))
            ways = [(x, y), (y, x)] if known is None else [(x, known), (known, x)]
            for row, way in enumerate(ways):
                k.store(k.gep(k.parameters["y"], 64 * row, type.bytes), getattr(k, name)(*way))
        found = np.full((2, 64), 7.0, pairs.dtype)
        compiled = Compiled(module.text())
        compiled.call("f", pairs, found)
        if known and not math.isnan(known) and lanes == 16:
            assert "blend" not in compiled.assembly
        one, other = pairs if known is None else (pairs[0], np.full_like(pairs[0], known))
        extreme = np.minimum(one, other) if name == "minimum" else np.maximum(one, other)
        is_negative = (np.logical_or if name == "minimum" else np.logical_and)(np.signbit(one), np.signbit(other))
        expected = np.where(extreme == 0, np.copysign(0, np.where(is_negative, -1, 1)), extreme)[:lanes]
        for row in found:
            np.testing.assert_array_equal(row[:lanes], expected)
            ordered = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(row[:lanes])[ordered], np.signbit(expected)[ordered])
            assert (row[lanes:] == 7).all()
