"""Reduces with what is made from each result, in one kernel: along lanes, across them, and one by one."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import xlapy
from tests.support.native import assert_same_bits

SHAPES = ((3, 5), (7, 64), (200, 33), (4, 9, 40), (2, 3, 4, 5), (300, 257), (9, 1, 17))


def listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def program(kind: str, dims: tuple[int, ...], folded: tuple[int, ...]) -> str:
    """Sums, scaled and compared; another shape and another type are stored as well."""
    kept = tuple(size for dim, size in enumerate(dims) if dim not in folded)
    sums, flat, wide = (f"{kind}[{listed(kept)}]", f"{kind}[{math.prod(kept)}]", f"f32[{listed(kept)}]")
    return f"""HloModule m
      sum {{ a = {kind}[] parameter(0)
        b = {kind}[] parameter(1)
        ROOT s = {kind}[] add(a, b) }}
      ENTRY e {{ x = {kind}[{listed(dims)}] parameter(0)
        y = {sums} parameter(1)
        z = {kind}[] constant(0)
        r = {sums} reduce(x, z), dimensions={{{listed(folded)}}}, to_apply=sum
        p = pred[{listed(kept)}] compare(r, y), direction=GT
        m = {sums} multiply(r, y)
        s = {sums} select(p, m, y)
        f = {flat} reshape(m)
        w = {wide} convert(s)
        ROOT t = ({sums}, {flat}, {wide}, {sums}) tuple(s, f, w, r) }}"""


@pytest.mark.parametrize("kind", ["f32", "bf16", "f64", "s32"])
def test_what_is_made_from_sums(kind: str) -> None:
    dtype = xlapy.Shape.array(kind, ()).type.dtype
    random = np.random.default_rng(3)
    for dims in SHAPES:
        for count in range(1, len(dims)):
            for folded in combinations(range(len(dims)), count):
                text = program(kind, dims, folded)
                kept = tuple(size for dim, size in enumerate(dims) if dim not in folded)
                x, y = (random.integers(-9, 9, size).astype(dtype) for size in (dims, kept))
                for got, want in zip(xlapy.compile(text)(x, y), xlapy.evaluate(text, x, y), strict=True):
                    assert_same_bits(got, want)


def test_each_result_of_several_sums() -> None:
    """Mean and variance of columns: two sums in one sweep, and no kernel but that."""
    text = """HloModule m
      sum { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT s = f32[] add(a, b) }
      ENTRY e { x = f32[64,100] parameter(0)
        z = f32[] constant(0)
        q = f32[64,100] multiply(x, x)
        r = f32[100] reduce(x, z), dimensions={0}, to_apply=sum
        s = f32[100] reduce(q, z), dimensions={0}, to_apply=sum
        c = f32[] constant(0.015625)
        n = f32[100] broadcast(c), dimensions={}
        mean = f32[100] multiply(r, n)
        square = f32[100] multiply(mean, mean)
        other = f32[100] multiply(s, n)
        variance = f32[100] subtract(other, square)
        ROOT t = (f32[100], f32[100]) tuple(mean, variance) }"""
    executable = xlapy.compile(text)
    assert executable.compile_stats().kernels == 1
    x = np.random.default_rng(1).integers(-9, 9, (64, 100)).astype(np.float32)
    for got, want in zip(executable(x), xlapy.evaluate(text, x), strict=True):
        assert_same_bits(got, want)


def test_what_is_read_beside_a_fold_is_not_overwritten() -> None:
    """The last block of results lies over the one before, and is made of the same again."""
    text = """HloModule m
      sum { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT s = f32[] add(a, b) }
      ENTRY e { x = f32[40,70] parameter(0)
        y = f32[70] parameter(1)
        z = f32[] constant(0)
        k = f32[70,70] broadcast(y), dimensions={0}
        d = f32[70] dot(k, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        r = f32[70] reduce(x, z), dimensions={0}, to_apply=sum
        ROOT t = f32[70] add(r, d) }"""
    random = np.random.default_rng(2)
    x, y = (random.integers(-9, 9, size).astype(np.float32) for size in ((40, 70), (70,)))
    assert_same_bits(xlapy.compile(text)(x, y), xlapy.evaluate(text, x, y))
