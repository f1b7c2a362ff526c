"""Gathers of the IR builder, where an instruction loads from several places and where none does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.irlab import Compiled
from xlapy.codegen.ir import F32, F64, I8, I32, I64, PTR, IRType, KernelBuilder, Module


@pytest.mark.parametrize("has_gather", [False, True])
@pytest.mark.parametrize("index", [I32, I64], ids=["i32", "i64"])
@pytest.mark.parametrize("element", [I8, F32, F64], ids=["i8", "f32", "f64"])
def test_gathers_one_by_one(element: IRType, index: IRType, has_gather: bool) -> None:
    """Where no instruction gathers, from places that are not known: each lane from the pointer on."""
    places = np.random.default_rng(0).integers(0, 100, 24).astype(f"i{index.bytes}")
    for lanes in (1, 2, 3, 8, 24):
        module = Module(has_gather=has_gather)
        with KernelBuilder(module, "f", [("x", PTR), ("y", PTR), ("z", PTR)], None) as k:
            at = k.load(k.parameters["z"], index.with_lanes(lanes))
            k.store(k.parameters["y"], k.gather(k.parameters["x"], at, element))
        text, kind = module.text(), f"{'f' if element.is_float else 'i'}{element.bytes}"
        is_one = has_gather and element is not I8
        assert ("masked.gather" in text) == (is_one and lanes > 1)
        x, y = np.arange(100).astype(kind), np.zeros(24, kind)
        Compiled(text).call("f", x, y, places)
        assert y[:lanes].tolist() == places[:lanes].tolist()
        assert not y[lanes:].any()
