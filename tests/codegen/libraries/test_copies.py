"""Copies of arrays: parameters into results, of any size, to and from anywhere in memory."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.codegen.libraries.copies import BLOCK_BYTES
from xlapy.codegen.target import host_target

STREAMED = max(host_target().l3_bytes // 2, 16 << 20)
SIZES = {
    "by one thread": (BLOCK_BYTES, False),
    "whole blocks": (8 * BLOCK_BYTES, True),
    "a block and a byte": (4 * BLOCK_BYTES + 1, True),
    "less than a block more": (6 * BLOCK_BYTES - 1, True),
    "past the caches": (STREAMED, True),
    "past the caches, and a part of a line": (STREAMED + 100, True),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str, threads: int) -> None:
    size, is_shared = SIZES[name]
    text = f"HloModule m\nENTRY main {{ ROOT p = u8[{size}] parameter(0) }}"
    compiled = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))
    assert ("copy_blocks" in compiled.llvm_ir()) == is_shared
    memory = np.random.default_rng(size).integers(0, 256, size + 3).astype(np.uint8)
    for first in (0, 3):
        array = memory[first : first + size]
        np.testing.assert_array_equal(compiled(array), array)


def test_updates_of_a_parameter_change_a_copy() -> None:
    text = """HloModule m
      ENTRY main {
        cache = f32[1000,128] parameter(0)
        rows = f32[4,128] parameter(1)
        at = s32[] parameter(2)
        zero = s32[] constant(0)
        ROOT u = f32[1000,128] dynamic-update-slice(cache, rows, at, zero)
      }"""
    generator = np.random.default_rng(2)
    cache, rows = (generator.standard_normal(dims, np.float32) for dims in ((1000, 128), (4, 128)))
    before, compiled = cache.copy(), xlapy.compile(text)
    assert "copy_blocks" in compiled.llvm_ir()
    for at in (-5, 0, 501, 2000):
        updated = compiled(cache, rows, np.int32(at))
        np.testing.assert_array_equal(updated, xlapy.evaluate(text, cache, rows, np.int32(at)))
    np.testing.assert_array_equal(cache, before)


def test_what_a_loop_begins_with_is_copied() -> None:
    text = """HloModule m
      condition { s = (s32[], f32[100000]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(3)
        ROOT c = pred[] compare(i, n), direction=LT }
      body { s = (s32[], f32[100000]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        x = f32[100000] get-tuple-element(s), index=1
        one = s32[] constant(1)
        j = s32[] add(i, one)
        y = f32[100000] negate(x)
        ROOT t = (s32[], f32[100000]) tuple(j, y) }
      ENTRY main { p = f32[100000] parameter(0)
        z = s32[] constant(0)
        t = (s32[], f32[100000]) tuple(z, p)
        w = (s32[], f32[100000]) while(t), condition=condition, body=body
        ROOT r = f32[100000] get-tuple-element(w), index=1 }"""
    array = np.arange(100000, dtype=np.float32)
    np.testing.assert_array_equal(xlapy.compile(text)(array), -array)
