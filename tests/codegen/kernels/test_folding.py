"""Folds along lanes and across them. Extrema of floats along lanes: NaN wins, and zeros have signs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import xlapy
from tests.support.native import assert_same_bits, check_text
from xlapy.codegen.target import REFERENCE_MACHINES, host_target, reference_target
from xlapy.compiler import compile_module

SIZES = (1, 7, 16, 33, 100, 257, 1000)


def program(kind: str, op: str, size: int, init: str) -> str:
    return f"""HloModule m
      fold {{ a = {kind}[] parameter(0)
        b = {kind}[] parameter(1)
        ROOT r = {kind}[] {op}(a, b) }}
      ENTRY e {{ x = {kind}[40,{size}] parameter(0)
        i = {kind}[] constant({init})
        ROOT r = {kind}[40] reduce(x, i), dimensions={{1}}, to_apply=fold }}"""


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "f16", "f8e5m2"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_extrema_of_rows(kind: str, op: str) -> None:
    """Rows of one sign and zeros, of special numbers, and of NaN at each place."""
    sign = -1 if op == "maximum" else 1
    init = "-inf" if op == "maximum" else "inf"
    dtype = xlapy.Shape.array(kind, ()).type.dtype
    for size in SIZES:
        random = np.random.default_rng(size)
        x = (sign * np.abs(random.normal(size=(40, size)))).astype(dtype)
        x[1:9, random.integers(size)] = 0.0
        x[5:16, random.integers(size)] = -0.0
        x[9:12, :] = 0.0
        x[12:14, :] = -0.0
        x[14, random.integers(size)] = np.inf
        x[15, random.integers(size)] = -np.inf
        for row in range(16, 40):
            x[row, random.integers(size)] = np.nan
        text = program(kind, op, size, init)
        assert_same_bits(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.parametrize("init", ["nan", "0", "-0", "inf", "-inf", "1.5"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_what_a_fold_begins_with_takes_part(op: str, init: str) -> None:
    x = np.where(np.arange(4000).reshape(40, 100) % 3, 0.0, -0.0).astype(np.float32)
    text = program("f32", op, 100, init)
    assert_same_bits(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.parametrize("columns", [1, 20, 32, 64, 96, 100, 127, 128, 160])
def test_short_rows_of_groups_are_folded_whole(columns: int) -> None:
    x = np.random.default_rng(columns).integers(-99, 99, (9, 50, columns)).astype(np.float32)

    def program(x: Any) -> Any:
        return x.sum(1), x.max(1), x.argmin(1), (2 * x + 1).sum(1)

    found = xlapy.compile(jax.jit(program).lower(x).as_text())(x)
    for one, other in zip(found, (x.sum(1), x.max(1), x.argmin(1), (2 * x + 1).sum(1)), strict=True):
        assert (one == other).all()


@pytest.mark.parametrize("kind", ["s8", "u8", "s16", "u32", "s64", "u4", "s4"])
def test_sums_of_integers(kind: str) -> None:
    """They wrap, be they sums of all lanes at once."""
    for size in SIZES:
        text = program(kind, "add", size, "3")
        dtype = xlapy.hlo.parse(text).entry.parameters[0].shape.type.dtype
        x = np.random.default_rng(size).integers(-99, 99, (40, size)).astype(np.int8).view(np.uint8).astype(dtype)
        np.testing.assert_array_equal(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.skipif(not host_target().is_x86, reason="the instruction is x86's")
@pytest.mark.parametrize("wide", ["s32", "u64"])
def test_bytes_are_summed_by_one_instruction(wide: str) -> None:
    text = f"""HloModule m
      fold {{ a = {wide}[] parameter(0)
        b = {wide}[] parameter(1)
        ROOT r = {wide}[] add(a, b) }}
      ENTRY e {{ x = u8[500,8] parameter(0)
        w = {wide}[500,8] convert(x)
        i = {wide}[] constant(0)
        ROOT r = {wide}[500] reduce(w, i), dimensions={{1}}, to_apply=fold }}"""
    x = np.random.default_rng(0).integers(0, 256, (500, 8)).astype(np.uint8)
    compiled = xlapy.compile(text)
    np.testing.assert_array_equal(compiled(x), xlapy.evaluate(text, x))
    assert "psadbw" in compiled.assembly()


FOLDED = {"f32": "add maximum minimum", "s32": "add multiply maximum", "u8": "minimum or", "pred": "and", "f64": "add"}


@pytest.mark.parametrize(("kind", "op"), [(kind, op) for kind, ops in FOLDED.items() for op in ops.split()])
def test_what_vectors_leave_over_of_rows_is_folded_once(kind: str, op: str) -> None:
    """For rows of any length, of numbers whose sums are exact, and with a NaN or -0 anywhere in one."""
    identities = {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf", "and": "true", "or": "0"}
    integers = {"maximum": "-2147483648", "minimum": "255"}
    init = identities[op] if kind[0] == "f" else integers.get(op, identities[op])
    random = np.random.default_rng(5)
    for size in [*range(2, 40), 47, 63, 65, 100, 127, 129]:
        module = program(kind, op, size, init)
        rows = random.integers(0, 9, (40, size)).astype(
            {"f32": np.float32, "s32": np.int32, "u8": np.uint8, "pred": np.bool_, "f64": np.float64}[kind]
        )
        if kind == "f32" and op != "add":
            rows[np.arange(0, 40, 2), random.integers(0, size, 20)] = np.nan
            rows[1::4] = np.where(rows[1::4] == 0, np.float32(-0.0), -np.float32(0.0))
        assert_same_bits(xlapy.compile(module)(rows), xlapy.evaluate(module, rows))


def test_rows_that_vectors_do_not_divide_are_read_by_vectors() -> None:
    """Even those that functions are taken of, one element of which takes as long as a vector."""
    ir = xlapy.compile("""HloModule m
      add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      ENTRY e { x = f32[50,30] parameter(0) y = f32[50,30] exponential(x) i = f32[] constant(0)
        ROOT r = f32[50] reduce(y, i), dimensions={1}, to_apply=add }""").llvm_ir()
    assert "load float" not in ir


PRODUCTS_WITH_MASKS = """
add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
ENTRY main {
  x = s32[8] parameter(0)
  zero = s32[] constant(0)
  zeros = s32[8] broadcast(zero), dimensions={}
  is_set = pred[8] compare(x, zeros), direction=NE
  flags = s32[8] convert(is_set)
  seven = s32[] constant(7)
  sevens = s32[8] broadcast(seven), dimensions={}
  low = s32[8] and(x, sevens)
  products = s32[8] multiply(flags, low)
  ROOT sum = s32[] reduce(products, zero), dimensions={0}, to_apply=add
}"""


def test_sum_of_eight_products_with_masks() -> None:
    """LLVM aborted."""
    check_text(PRODUCTS_WITH_MASKS)
    module = xlapy.hlo.parse(PRODUCTS_WITH_MASKS)
    for name in REFERENCE_MACHINES:
        compile_module(module, xlapy.CompileOptions(), reference_target(name))
