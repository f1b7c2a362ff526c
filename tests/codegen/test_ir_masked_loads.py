"""Masked loads of the IR builder, whose other lanes are chosen already."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.irlab import Compiled
from xlapy.codegen.ir import F32, I32, PTR, KernelBuilder, Module

LANES = 16
VECTOR = F32.with_lanes(LANES)


@pytest.mark.parametrize("otherwise", [0.0, -0.0, 1.0])
@pytest.mark.parametrize("fallback", [0.0, 1.0])
@pytest.mark.parametrize("hoistable", [False, True])
def test_lanes_that_are_not_loaded_need_not_be_chosen_again(fallback: float, otherwise: float, hoistable: bool) -> None:
    """Unless they are to be something else: zeros have signs."""
    module = Module(has_masks=True)
    with KernelBuilder(module, "f", [("x", PTR), ("y", PTR), ("z", PTR)], None) as k:
        mask = k.compare("gt", k.load(k.parameters["z"], I32.with_lanes(LANES)), 0)
        loaded = k.masked_load(k.parameters["x"], VECTOR, mask, fallback, hoistable=hoistable)
        chosen = k.select(mask, loaded, otherwise)
        is_same = fallback == otherwise and not np.signbit(otherwise)
        assert (chosen is loaded) == is_same
        k.store(k.parameters["y"], chosen)
    x, y = np.arange(1, LANES + 1, dtype=np.float32), np.zeros(LANES, np.float32)
    z = np.arange(LANES, dtype=np.int32) % 3
    Compiled(module.text()).call("f", x, y, z)
    expected = np.where(z > 0, x, np.float32(otherwise))
    assert y.tobytes() == expected.tobytes()


def test_other_masks_choose_for_themselves() -> None:
    module = Module(has_masks=True)
    with KernelBuilder(module, "f", [("x", PTR), ("y", PTR), ("z", PTR)], None) as k:
        numbers = k.load(k.parameters["z"], I32.with_lanes(LANES))
        loaded = k.masked_load(k.parameters["x"], VECTOR, k.compare("gt", numbers, 0), 0.0)
        k.store(k.parameters["y"], k.select(k.compare("gt", numbers, 1), loaded, 0.0))
    x, y = np.arange(1, LANES + 1, dtype=np.float32), np.zeros(LANES, np.float32)
    z = np.arange(LANES, dtype=np.int32) % 3
    Compiled(module.text()).call("f", x, y, z)
    assert y.tolist() == np.where(z > 1, x, 0).tolist()
