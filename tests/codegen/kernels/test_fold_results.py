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


WINDOWS = (
    "size=1x2x2x1 stride=1x2x2x1",
    "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0",
    "size=1x2x3x1 pad=0_0x1_0x2_1x0_0 lhs_dilate=1x2x3x1",
    "size=2x1x3x2 rhs_dilate=1x1x2x1 pad=1_0x0_0x2_2x1_0",
    "size=1x1x1x3 stride=1x1x1x2 pad=0_0x0_0x0_0x0_2",
)


@pytest.mark.parametrize("kind", ["f32", "bf16", "s32"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_what_windows_fold_and_what_is_made_from_it(kind: str, window: str, op: str) -> None:
    """A shifted image that is cut off at 0; the fold is scaled by the number of its channel."""
    for features in (3, 20):
        text = f"""HloModule m
          fold {{ a = {kind}[] parameter(0)
            b = {kind}[] parameter(1)
            ROOT s = {kind}[] {op}(a, b) }}
          ENTRY e {{ x = {kind}[2,8,7,{features}] parameter(0)
            y = {kind}[{features}] parameter(1)
            z = {kind}[] constant(0)
            i = {kind}[] constant(-3)
            zeros = {kind}[2,8,7,{features}] broadcast(z), dimensions={{}}
            shift = {kind}[2,8,7,{features}] broadcast(y), dimensions={{3}}
            moved = {kind}[2,8,7,{features}] add(x, shift)
            cut = {kind}[2,8,7,{features}] maximum(moved, zeros)
            r = RESULT reduce-window(cut, i), window={{{window}}}, to_apply=fold
            n = RESULT iota(), iota_dimension=3
            m = RESULT multiply(r, n)
            ROOT t = RESULT subtract(m, r) }}"""
        text = text.replace("RESULT", result_of_window(kind, features, window))
        executable = xlapy.compile(text)
        assert "kind=kInput" in executable.hlo_text()
        random = np.random.default_rng(features)
        dtype = xlapy.Shape.array(kind, ()).type.dtype
        x, y = (random.integers(-9, 9, size).astype(dtype) for size in ((2, 8, 7, features), (features,)))
        assert_same_bits(executable(x, y), xlapy.evaluate(text, x, y))


def result_of_window(kind: str, features: int, window: str) -> str:
    """The shape that a fold over images has."""
    builder = xlapy.XlaBuilder("shape")
    image = builder.parameter(0, xlapy.Shape.array(kind, (2, 8, 7, features)))
    parts = dict(part.split("=") for part in window.split())
    numbers = {name: [int(n) for n in text.split("x")] for name, text in parts.items() if name != "pad"}
    padding = [tuple(map(int, pair.split("_"))) for pair in parts.get("pad", "x".join(["0_0"] * 4)).split("x")]
    ones = [1] * 4
    folded = xlapy.ops.ReduceWindowWithGeneralPadding(
        image,
        builder.constant(np.zeros((), image.shape.type.dtype)),
        xlapy.ops.Add,
        numbers["size"],
        numbers.get("stride", ones),
        numbers.get("lhs_dilate", ones),
        numbers.get("rhs_dilate", ones),
        padding,
    )
    return folded.shape.to_text(layouts=False)
