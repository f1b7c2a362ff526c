"""Slices and updates that the entry copies by itself, and results of loops that need not be filled before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy

SLICES = {
    "rows": "dynamic-slice(x, i, zero, zero), dynamic_slice_sizes={2,5,6}",
    "part of one row": "dynamic-slice(x, i, i, zero), dynamic_slice_sizes={1,3,6}",
    "elements": "dynamic-slice(x, i, zero, i), dynamic_slice_sizes={1,1,4}",
    "all": "dynamic-slice(x, i, i, i), dynamic_slice_sizes={7,5,6}",
    "apart": "dynamic-slice(x, i, zero, zero), dynamic_slice_sizes={2,3,6}",
}


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("kind", ["s32", "u8", "s64", "u64"])
def test_slices(name: str, kind: str) -> None:
    text = f"""HloModule m
ENTRY main {{
  x = f32[7,5,6] parameter(0)
  i = {kind}[] parameter(1)
  zero = {kind}[] constant(0)
  ROOT s = {SLICES[name].split("), dynamic_slice_sizes=")[0]}), dynamic_slice_sizes={SLICES[name].split("sizes=")[1]}
}}""".replace("ROOT s = ", f"ROOT s = f32[{SLICES[name].split('sizes={')[1][:-1]}] ")
    program = xlapy.compile(text)
    assert ("dynamic_slice(" in program.llvm_ir()) == (name == "apart")
    x = np.arange(210, dtype=np.float32).reshape(7, 5, 6)
    for start in (0, 1, 3, 6, 200) + ((-3,) if kind[0] == "s" else ()):
        index = np.array(start).astype(f"{'' if kind[0] == 's' else 'u'}int{kind[1:]}")
        np.testing.assert_array_equal(program(x, index), xlapy.evaluate(text, x, index))


def test_updates() -> None:
    text = """HloModule m
ENTRY main {
  x = f32[7,5] parameter(0)
  u = f32[2,5] parameter(1)
  v = f32[1,3] parameter(2)
  i = s32[] parameter(3)
  zero = s32[] constant(0)
  a = f32[7,5] dynamic-update-slice(x, u, i, zero)
  b = f32[7,5] dynamic-update-slice(a, v, i, i)
  ROOT r = (f32[7,5], f32[7,5]) tuple(a, b)
}"""
    program = xlapy.compile(text)
    assert "dynamic_update_slice(" not in program.llvm_ir()
    arrays = [np.random.default_rng(0).random(dims, np.float32) for dims in ((7, 5), (2, 5), (1, 3))]
    for start in (-2, 0, 4, 5, 6, 99):
        for got, wanted in zip(
            program(*arrays, np.int32(start)), xlapy.evaluate(text, *arrays, np.int32(start)), strict=True
        ):
            np.testing.assert_array_equal(got, wanted)


LOOP = """HloModule m
condition {
  s = (s32[], f32[3000], f32[12,3000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(LIMIT)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[3000], f32[12,3000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[3000] get-tuple-element(s), index=1
  y = f32[12,3000] get-tuple-element(s), index=2
  one = s32[] constant(STEP)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  e = f32[3000] cosine(x)
  row = f32[1,3000] reshape(e)
  more = f32[1,3000] slice(y), slice={[0:1], [0:3000]}
  new = f32[12,3000] dynamic-update-slice(y, PART, i, zero)
  ROOT t = (s32[], f32[3000], f32[12,3000]) tuple(next, e, new)
}
ENTRY main {
  x = f32[3000] parameter(0)
  first = s32[] constant(FIRST)
  seven = f32[] constant(7)
  filled = f32[12,3000] broadcast(seven), dimensions={}
  t = (s32[], f32[3000], f32[12,3000]) tuple(first, x, filled)
  w = (s32[], f32[3000], f32[12,3000]) while(t), condition=condition, body=body
  ROOT y = f32[12,3000] get-tuple-element(w), index=2
}"""


@pytest.mark.parametrize(
    ("first", "limit", "step", "part", "is_needed"),
    [
        (0, 12, 1, "row", False),
        (0, 11, 1, "row", True),
        (1, 12, 1, "row", True),
        (0, 12, 2, "row", True),
        (0, 12, 1, "more", True),
        (0, 0, 1, "row", True),
    ],
)
def test_what_a_loop_writes_over_is_not_filled(first: int, limit: int, step: int, part: str, is_needed: bool) -> None:
    text = LOOP
    for word, value in (("FIRST", first), ("LIMIT", limit), ("STEP", step), ("PART", part)):
        text = text.replace(word, str(value))
    program = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"unroll-loops"}))
    if limit:
        assert ("broadcast" in program.llvm_ir()) == is_needed
    x = np.random.default_rng(0).random(3000, np.float32)
    for _ in range(3):  # in memory that had other values before
        np.testing.assert_allclose(program(x), xlapy.evaluate(text, x), rtol=1e-6)


@pytest.mark.parametrize("last", [11, 10, 12])
def test_a_loop_that_writes_backwards(last: int) -> None:
    """Rows `last`, `last` - 1, ...: all but one of them, if that is not the last one of the array, or behind it."""
    text = LOOP.replace("add(i, one)", "add(i, one)\n  end = s32[] constant(LAST)\n  row.i = s32[] subtract(end, i)")
    text = text.replace("(y, PART, i, zero)", "(y, row, row.i, zero)").replace("LAST", str(last))
    for word, value in (("FIRST", 0), ("LIMIT", 12), ("STEP", 1)):
        text = text.replace(word, str(value))
    program = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"unroll-loops"}))
    assert ("broadcast" in program.llvm_ir()) == (last != 11)
    x = np.random.default_rng(0).random(3000, np.float32)
    for _ in range(3):
        np.testing.assert_allclose(program(x), xlapy.evaluate(text, x), rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [60, 64])
def test_results_of_scans_in_blocks_are_not_filled(steps: int, reverse: bool) -> None:
    """The last block is shorter where 60 steps are cut into blocks of 16."""
    import jax
    import jax.numpy as jnp

    def function(first: Any, x: Any, w: Any) -> Any:
        def step(state: Any, now: Any) -> Any:
            state = jnp.cos(state + now @ w)
            return state, (state, state * 2, state.sum())

        return jax.lax.scan(step, first, x, reverse=reverse)

    generator = np.random.default_rng(0)
    first, x, w = (generator.random(shape, np.float32) for shape in ((16, 200), (steps, 16, 40), (40, 200)))
    arguments = [first, x, w / 16]  # cosines of large numbers differ by what their sums are rounded to
    text = jax.jit(function).lower(*arguments).as_text()
    program = xlapy.compile(text)
    assert program.hlo_text().count(" while(") == 2
    assert "broadcast" not in program.llvm_ir()
    expected = jax.tree.leaves(xlapy.evaluate(text, *arguments))
    for _ in range(3):
        for got, wanted in zip(jax.tree.leaves(program(*arguments)), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_pieces_that_overlap_write_all() -> None:
    """The last one begins early enough to be as large as the others."""
    import jax
    import jax.numpy as jnp

    def function(x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            part = jax.lax.dynamic_slice_in_dim(x, 5 * i, 5)
            return jax.lax.dynamic_update_slice_in_dim(y, jnp.sin(part), 5 * i, 0)

        return jax.lax.fori_loop(0, 3, step, jnp.full_like(x, jnp.nan))

    x = np.random.default_rng(0).random((13, 700), np.float32)
    program = xlapy.compile(jax.jit(function).lower(x).as_text())
    np.testing.assert_allclose(program(x), np.sin(x), rtol=1e-6)
