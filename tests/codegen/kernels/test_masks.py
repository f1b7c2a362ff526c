"""Masks that are combined have no more lanes than a vector, where they have no registers of their own."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.target import reference_target
from xlapy.compiler import lower
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions
from xlapy.passes.pipeline import Watch
from xlapy.support.timing import Timings

LARGEST = """HloModule largest
  later { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
    more = pred[] compare(a, b), direction=GT
    same = pred[] compare(a, b), direction=EQ
    first = pred[] compare(i, j), direction=LT
    both = pred[] and(same, first)
    kept = pred[] or(more, both)
    v = f32[] select(more, a, b)  n = s32[] select(kept, i, j)
    ROOT t = (f32[], s32[]) tuple(v, n) }
  ENTRY e { x = f32[300,400] parameter(0)  i = s32[300,400] iota(), iota_dimension=0
    low = f32[] constant(-inf)  zero = s32[] constant(0)
    ROOT r = (f32[400], s32[400]) reduce(x, i, low, zero), dimensions={0}, to_apply=later }
"""
SELECTED = """HloModule selected
  ENTRY e { x = f32[300,400] parameter(0)
    zero = f32[] constant(0)  z = f32[300,400] broadcast(zero), dimensions={}
    half = f32[] constant(0.5)  h = f32[300,400] broadcast(half), dimensions={}
    low = pred[300,400] compare(x, z), direction=GT
    high = pred[300,400] compare(x, h), direction=LT
    both = pred[300,400] and(low, high)
    y = f32[300,400] multiply(x, x)
    ROOT s = f32[300,400] select(both, y, x) }
"""
PROGRAMS = [LARGEST, SELECTED]
SPARSE = """HloModule sparse
  larger { a = TYPE[] parameter(0)  b = TYPE[] parameter(1)  ROOT m = TYPE[] maximum(a, b) }
  ENTRY e { x = TYPE[3,57] parameter(0)  low = TYPE[] constant(-100)
    ROOT r = TYPE[3,COUNT] reduce-window(x, low), window={size=1x3 stride=1xSTEP pad=0_0x2_3}, to_apply=larger }
"""
"""Every so many elements, some of which are beyond the ends of a row."""


@pytest.mark.parametrize("text", PROGRAMS, ids=["largest", "selected"])
def test_no_masks_are_packed_without_registers_for_them(text: str) -> None:
    target = reference_target("avx2")
    lowered = lower(parse(text), CompileOptions(), target, Watch(), Timings())
    (kernels,) = lowered.emitted.kernels
    assert "vpack" not in emit_assembly(kernels, target)


@pytest.mark.parametrize("text", PROGRAMS, ids=["largest", "selected"])
def test_the_results_are_right(text: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (300, 400)).astype(np.float32) / 8
    x[:, 5] = x[0, 5]
    found, expected = xlapy.compile(text)(x), xlapy.evaluate(text, x)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    assert all(np.array_equal(a, b) for a, b in pairs)


def _sparse(kind: str, step: int) -> str:
    return SPARSE.replace("TYPE", kind).replace("STEP", str(step)).replace("COUNT", str((57 + 5 - 3) // step + 1))


@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["f32", "f64", "s32", "s64", "s16", "bf16"])
def test_lanes_that_are_picked_may_be_missing(kind: str, step: int) -> None:
    text = _sparse(kind, step)
    x = np.random.default_rng(step).integers(-99, 99, (3, 57)).astype(parse(text).entry.parameters[0].shape.type.dtype)
    np.testing.assert_array_equal(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.parametrize(
    ("target", "step", "is_gathered"),
    [("avx2", 2, False), ("avx2", 3, False), ("avx512", 2, False), ("avx512", 3, True), ("sse2", 2, True)]
    + [("neon", 2, True)],
)
def test_lanes_are_picked_out_of_few_vectors(target: str, step: int, is_gathered: bool) -> None:
    """Where masks have registers, three vectors take as long as a gather; others gather one by one anyway."""
    lowered = lower(parse(_sparse("f32", step)), CompileOptions(), reference_target(target), Watch(), Timings())
    assert ("masked.gather" in "".join(lowered.emitted.kernels)) is is_gathered


NARROW = """HloModule narrow
  ENTRY e { x = u8[300,400] parameter(0)  y = u8[300,400] parameter(1)
    less = pred[300,400] compare(x, y), direction=LT
    same = pred[300,400] compare(x, y), direction=EQ
    either = pred[300,400] or(less, same)
    sum = u8[300,400] add(x, y)
    ROOT s = u8[300,400] select(either, sum, x) }
"""
RING = """HloModule ring
  ENTRY e { x = u8[300,400] parameter(0)
    last = u8[300,1] slice(x), slice={[0:300], [399:400]}  others = u8[300,399] slice(x), slice={[0:300], [0:399]}
    before = u8[300,400] concatenate(last, others), dimensions={1}
    ROOT s = u8[300,400] minimum(x, before) }
"""


def _avx2_kernels(text: str) -> str:
    lowered = lower(parse(text), CompileOptions(), reference_target("avx2"), Watch(), Timings())
    (kernels,) = lowered.emitted.kernels
    return str(kernels)


def test_narrow_elements_fill_a_vector() -> None:
    assert "icmp ult <32 x i8>" in _avx2_kernels(NARROW)


def test_ends_of_narrow_rows_are_taken_one_by_one_without_masks() -> None:
    assert "masked.load" not in _avx2_kernels(RING)


@pytest.mark.parametrize("text", [NARROW, RING], ids=["narrow", "ring"])
def test_narrow_results_are_right(text: str) -> None:
    arrays = [np.random.default_rng(number).integers(0, 256, (300, 400)).astype(np.uint8) for number in range(2)]
    arrays = arrays[: len(parse(text).entry.parameters)]
    np.testing.assert_array_equal(xlapy.compile(text)(*arrays), xlapy.evaluate(text, *arrays))
