"""Copies of arrays: parameters into results, of any size, to and from anywhere in memory; and joins of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_array_equal
from xlapy.codegen.libraries.copies import BLOCK_BYTES, LEAST_STRETCH_BYTES
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
        assert_array_equal(compiled(array), array)


LEAST = LEAST_STRETCH_BYTES
JOINED = {
    "small": (LEAST, LEAST + 1),
    "many": (LEAST, 0, 5000, BLOCK_BYTES, LEAST, 3 * BLOCK_BYTES - 7, 4 * BLOCK_BYTES + 63),
    "many that are short": tuple(number % 9 for number in range(40)),
    "past the caches": (STREAMED // 2 + 1, 0, LEAST, STREAMED // 2 - 100, 2 * BLOCK_BYTES),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", JOINED)
def test_arrays_are_joined(name: str, threads: int) -> None:
    sizes = JOINED[name]
    operands = "".join(f"p{n} = u8[1,{size}] parameter({n})\n" for n, size in enumerate(sizes))
    names = ", ".join(f"p{n}" for n in range(len(sizes)))
    text = f"ENTRY main {{ {operands} ROOT r = u8[1,{sum(sizes)}] concatenate({names}), dimensions={{1}} }}"
    compiled = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))
    assert ("copy_blocks_past_caches" in compiled.llvm_ir()) == (name == "past the caches")
    assert "kernel.0" not in compiled.llvm_ir()
    memory = np.random.default_rng(1).integers(0, 256, (1, max(sizes) + 3)).astype(np.uint8)
    for first in (0, 3):
        arrays = [memory[:, first : first + size] for size in sizes]
        assert_array_equal(compiled(*arrays), np.concatenate(arrays, 1))


@pytest.mark.parametrize(("sizes", "dimension"), [((LEAST, LEAST - 1), 1), ((LEAST, LEAST), 2)])
def test_small_stretches_and_rows_of_them_are_compiled(sizes: tuple[int, int], dimension: int) -> None:
    dims = [[1, 1, 1], [1, 1, 1]]
    for own, size in zip(dims, sizes, strict=True):
        own[dimension] = size
        own[1] *= 1 if dimension == 1 else 2
    arrays = [np.random.default_rng(2).integers(0, 256, own).astype(np.uint8) for own in dims]
    wanted = np.concatenate(arrays, dimension)
    operands = "".join(f"p{n} = u8[{','.join(map(str, own))}] parameter({n})\n" for n, own in enumerate(dims))
    result = ",".join(map(str, wanted.shape))
    text = f"ENTRY main {{ {operands} ROOT r = u8[{result}] concatenate(p0, p1), dimensions={{{dimension}}} }}"
    compiled = xlapy.compile(text)
    assert "copy_blocks" not in compiled.llvm_ir()
    assert_array_equal(compiled(*arrays), wanted)


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
        assert_array_equal(updated, xlapy.evaluate(text, cache, rows, np.int32(at)))
    assert_array_equal(cache, before)


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
    assert_array_equal(xlapy.compile(text)(array), -array)
