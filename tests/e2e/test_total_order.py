"""Every pair of narrow floats, in total order: native code and the evaluator agree, NaN and -0 included."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.hlo.element_types import ALL, ElementType, element_type_named

NARROW = [kind for kind in ALL if kind.is_float and kind.bits == 8]


@pytest.mark.parametrize("kind", NARROW, ids=str)
def test_pairs(kind: ElementType) -> None:
    values = np.arange(256, dtype=np.uint8).view(kind.dtype)
    x, y = np.repeat(values, 256), np.tile(values, 256)
    text = f"""HloModule m
      less {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)
        ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }}
      ENTRY e {{ x = {kind}[65536] parameter(0)  y = {kind}[65536] parameter(1)  v = {kind}[256] parameter(2)
        l = pred[65536] compare(x, y), direction=LT, type=TOTALORDER
        g = pred[65536] compare(x, y), direction=GE, type=TOTALORDER
        e = pred[65536] compare(x, y), direction=EQ, type=TOTALORDER
        s = {kind}[256] sort(v), dimensions={{0}}, to_apply=less
        ROOT t = (pred[65536], pred[65536], pred[65536], {kind}[256]) tuple(l, g, e, s) }}"""
    assert_same(xlapy.compile(text)(x, y, values), xlapy.evaluate(text, x, y, values))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_all_halves_beside_some(kind: str) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(element_type_named(kind).dtype)
    others = values[[0, 1, 0x3C00, 0x7C00, 0x7C01, 0x7D00, 0x7E00, 0x7F80, 0x7F81, 0x7FFF, 0x8000, 0xFC01, 0xFE00]]
    text = f"""HloModule m
      ENTRY e {{ x = {kind}[65536] parameter(0)  y = {kind}[] parameter(1)
        b = {kind}[65536] broadcast(y), dimensions={{}}
        ROOT l = pred[65536] compare(x, b), direction=LT, type=TOTALORDER }}"""
    program = xlapy.compile(text)
    for other in others:
        assert_same(program(values, other), xlapy.evaluate(text, values, other))
