"""Every pair of narrow floats, in total order: native code and the evaluator agree, NaN and -0 included."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.hlo.element_types import ALL, ElementType

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
