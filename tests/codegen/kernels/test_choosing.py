"""The largest element of rows and its place, found by vectors: the first of equals, or the last, and NaN wins."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.choices import region
from tests.support.native import assert_same_bits, on_threads
from xlapy.hlo.element_types import ALL

SIZES = (31, 32, 33, 64, 100, 257, 1000)
FLOATS = ("f32", "f64", "bf16", "f16", "f8e5m2", "f8e4m3fn")
INTEGERS = ("s8", "u8", "s16", "u32", "s32", "s64", "u64", "s4", "pred")

ARGMAX = """keeps = pred[] or({beats}, nan)
  tie = pred[] and(eq, before)
  first = pred[] or(keeps, tie)
  v = {key}[] select(keeps, a, b)
  p = {place}[] select(first, i, j)"""
STRICT = """keeps = pred[] or({beats}, nan)
  v = {key}[] select(keeps, a, b)
  p = {place}[] select(keeps, i, j)"""
TYPES = {element_type.name: element_type for element_type in ALL}
REGIONS = {"first": ARGMAX, "last": STRICT}


def chooser(name: str, rule: str, beats: str, key: str, place: str) -> str:
    body = f"""{rule.format(beats=beats, key=key, place=place)}
        ROOT t = ({key}[], {place}[]) tuple(v, p)"""
    return region(name, body, key, place)


def program(key: str, size: int, init: str, rule: str, place: str = "s32", places: str = "") -> str:
    """The largest elements of 40 rows."""
    return f"""HloModule m
      {chooser("region", rule, "gt", key, place)}
      ENTRY main {{
        x = {key}[40,{size}] parameter(0)
        y = {place}[40,{size}] {places or "iota(), iota_dimension=1"}
        c = {key}[] constant({init})
        d = {place}[] constant(0)
        ROOT r = ({key}[40], {place}[40]) reduce(x, y, c, d), dimensions={{1}}, to_apply=region
      }}"""


def both_ends(key: str, rule: str, inits: Sequence[str], sizes: Sequence[int] = SIZES) -> str:
    """The largest and the smallest elements of rows of several sizes, together with their places."""
    lines, results = ["d = s32[] constant(0)"], []
    for number, size in enumerate(sizes):
        lines.append(f"x{size} = {key}[40,{size}] parameter({number})")
        lines.append(f"y{size} = s32[40,{size}] iota(), iota_dimension=1")
    for beats, init in zip(("gt", "lt"), inits, strict=True):
        lines.append(f"{beats} = {key}[] constant({init})")
        for size in sizes:
            shape = f"({key}[40], s32[40])"
            reduced = f"reduce(x{size}, y{size}, {beats}, d), dimensions={{1}}, to_apply={beats}_region"
            lines.append(f"{beats}{size} = {shape} {reduced}")
            results.append(f"{beats}{size}")
    shapes = ", ".join([shape] * len(results))
    return f"""HloModule m
      {chooser("gt_region", rule, "gt", key, "s32")}
      {chooser("lt_region", rule, "lt", key, "s32")}
      ENTRY main {{
        {
        '''
        '''.join(lines)
    }
        ROOT t = ({shapes}) tuple({", ".join(results)})
      }}"""


def check(text: str, *arguments: Any) -> xlapy.Executable:
    executable = xlapy.compile(text)
    assert_same_bits(executable(*arguments), xlapy.evaluate(text, *arguments))
    return executable


def special(size: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Rows of few different numbers, of zeros, of infinities, and with NaNs of several kinds."""
    random = np.random.default_rng(size)
    x = random.integers(-3, 4, size=(40, size)).astype(np.float32)
    x[4:8] = random.choice(np.array([0.0, -0.0], np.float32), size=(4, size))
    x[8:12] = -np.abs(x[8:12])
    x[12:16] = np.abs(x[12:16])
    x[16], x[17] = -np.inf, np.inf
    x[18, random.integers(size)] = np.inf
    for row in range(20, 38):
        x[row, random.integers(size, size=row - 19)] = np.nan
        x[row, random.integers(size)] = -np.nan
    x[38] = np.nan
    return x.astype(dtype)


@pytest.mark.parametrize("key", FLOATS)
@pytest.mark.parametrize("rule", REGIONS)
def test_floats(key: str, rule: str) -> None:
    inits = ("-448", "448") if key == "f8e4m3fn" else ("-inf", "inf")
    arguments = [special(size, TYPES[key].dtype) for size in SIZES]
    check(both_ends(key, REGIONS[rule], inits), *arguments)


@pytest.mark.parametrize("key", INTEGERS)
@pytest.mark.parametrize("rule", REGIONS)
def test_integers(key: str, rule: str) -> None:
    low, high = (0, 1) if key == "pred" else TYPES[key].integer_range
    inits = ("false", "true") if key == "pred" else (str(low), str(high))
    arguments = []
    for size in SIZES:
        random = np.random.default_rng(size)
        x = random.integers(low, high, size=(40, size), endpoint=True, dtype=np.int64 if low else np.uint64)
        x[10:20] = random.integers(0, 2, size=(10, size))
        x[20], x[21] = low, high
        arguments.append(x.astype(TYPES[key].dtype))
    check(both_ends(key, REGIONS[rule], inits), *arguments)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("key", ["f32", "bf16", "s32"])
@pytest.mark.parametrize("rule", REGIONS)
def test_one_result_alone(key: str, rule: str, index: int) -> None:
    """Only that one is stored, and of equals nothing is remembered that does not show in it."""
    text, arguments, expected = with_long_rows(key, rule)
    head, _, root = text.rpartition("ROOT t = ")
    names = root.partition(") tuple(")[2].partition(")")[0].split(", ")
    type = key if index == 0 else "s32"
    elements = [f"e{n} = {type}[40] get-tuple-element({name}), index={index}" for n, name in enumerate(names)]
    shapes = ", ".join([f"{type}[40]"] * len(names))
    numbers = ", ".join(f"e{n}" for n in range(len(names)))
    text = head + "\n".join([*elements, f"ROOT t = ({shapes}) tuple({numbers})"]) + "\n}"
    assert_same_bits(xlapy.compile(text)(*arguments), tuple(results[index] for results in expected))


@functools.cache
def with_long_rows(key: str, rule: str) -> tuple[str, list[Any], tuple[Any, ...]]:
    """A program, arguments for it, and both results of each of its folds, as the evaluator finds them in some time."""
    sizes = (33, 257, 5000)
    text = both_ends(key, REGIONS[rule], ("-9", "9"), sizes)
    arrays = [special(size, np.float32) for size in sizes]
    arguments = [(np.nan_to_num(x).clip(-9, 9) if key == "s32" else x).astype(TYPES[key].dtype) for x in arrays]
    return text, arguments, xlapy.evaluate(text, *arguments)


@pytest.mark.parametrize("rule", REGIONS)
def test_what_a_fold_begins_with_takes_part(rule: str) -> None:
    for inits in (("nan", "-0"), ("0", "2"), ("-0", "nan"), ("2", "-inf"), ("inf", "0")):
        check(both_ends("f32", REGIONS[rule], inits, [100]), special(100, np.float32))


def test_anything_may_come_with_the_keys() -> None:
    other = np.random.default_rng(0).normal(size=(40, 77)).astype(np.float64)
    text = program("f32", 77, "-inf", STRICT, place="f64", places="parameter(1)")
    executable = check(text, special(77, np.float32), other)
    assert "x i32>" in executable.llvm_ir(), "the places of the lanes"


def test_places_that_do_not_ascend_are_compared_one_by_one() -> None:
    other = np.random.default_rng(0).integers(0, 9, size=(40, 77)).astype(np.int32)
    check(program("f32", 77, "-inf", ARGMAX, places="parameter(1)"), special(77, np.float32), other)


@pytest.mark.parametrize("place", ["u8", "s16", "s64", "u32"])
def test_types_of_places(place: str) -> None:
    check(program("f32", 200, "-inf", ARGMAX, place=place), special(200, np.float32))


def test_places_that_are_too_large_for_their_type_wrap() -> None:
    check(program("f32", 300, "-inf", ARGMAX, place="u8"), special(300, np.float32))


def test_all_elements_and_computed_ones() -> None:
    text = program("f32", 1, "-inf", ARGMAX)
    text = text.replace("x = f32[40,1] parameter(0)", "q = f32[40,123] parameter(0)\n n = f32[40,123] negate(q)")
    text = text.replace(
        "y = s32[40,1] iota(), iota_dimension=1", "x = f32[4920] reshape(n)\n y = s32[4920] iota(), iota_dimension=0"
    )
    text = text.replace(
        "(f32[40], s32[40]) reduce(x, y, c, d), dimensions={1}", "(f32[], s32[]) reduce(x, y, c, d), dimensions={0}"
    )
    random = np.random.default_rng(0).normal(size=(40, 123)).astype(np.float32)
    check(text, random)
    random[17, 3] = random[30, 4] = np.nan
    check(text, random)


def test_jax_agrees() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    floats = special(100, np.float32)
    integers = np.random.default_rng(0).integers(-5, 5, size=(3, 100, 64)).astype(np.int32)

    def largest(x: Any, y: Any, z: Any) -> Any:
        results = []
        for array in (x, y, z, y > 0):
            for function in (jnp.argmax, jnp.argmin):
                results += [function(array, axis) for axis in (None, *range(array.ndim))]
        return [*results, jnp.nanargmax(x, 1), jnp.argmax(x * 2 + 1, 1), jnp.argmax(x.T, 0)]

    arguments = (floats, integers, special(64, ml_dtypes.bfloat16))
    text = jax.jit(largest).lower(*arguments).as_text()
    for got, wanted in zip(xlapy.compile(text)(*arguments), jax.jit(largest)(*arguments), strict=True):
        np.testing.assert_array_equal(got, np.asarray(wanted))


@pytest.mark.parametrize("dims", ["[0,100]", "[3,0]"])
def test_nothing_to_choose_from(dims: str) -> None:
    rows = dims[1:-1].split(",", maxsplit=1)[0]
    text = program("f32", 100, "-inf", ARGMAX).replace("[40,100]", dims).replace("[40]", f"[{rows}]")
    check(text, np.zeros([int(size) for size in dims[1:-1].split(",")], np.float32))


def test_whole_arrays_are_shared_out() -> None:
    """The first of equals is found in whichever part it is, and a NaN in any of them, on any number of threads."""
    generator = np.random.default_rng(5)
    size, parts = 1 << 18, 1 << 11
    usual = generator.integers(-9, 9, size).astype(np.float32)
    late, early = usual.copy(), usual.copy()
    late[[size - 1, size - parts, 77 * parts + 5]] = 10
    early[[parts - 1, parts, 3 * parts]] = 10
    with_nans = late.copy()
    with_nans[[5 * parts + 1, 9 * parts]] = np.nan
    arrays = [usual, late, early, with_nans, np.zeros_like(usual), np.full_like(usual, -np.inf)]
    text = f"""HloModule m
      {chooser("region", ARGMAX, "gt", "f32", "s32")}
      ENTRY main {{
        x = f32[{size}] parameter(0)
        y = s32[{size}] iota(), iota_dimension=0
        rows = f32[4,{size // 4}] reshape(x)
        places = s32[4,{size // 4}] iota(), iota_dimension=1
        columns = f32[{size // 4},4] reshape(x)
        below = s32[{size // 4},4] iota(), iota_dimension=0
        c = f32[] constant(-inf)
        d = s32[] constant(0)
        r = (f32[], s32[]) reduce(x, y, c, d), dimensions={{0}}, to_apply=region
        s = (f32[4], s32[4]) reduce(rows, places, c, d), dimensions={{1}}, to_apply=region
        t = (f32[4], s32[4]) reduce(columns, below, c, d), dimensions={{0}}, to_apply=region
        i = s32[] get-tuple-element(r), index=1
        j = s32[4] get-tuple-element(s), index=1
        k = s32[4] get-tuple-element(t), index=1
        ROOT all = (s32[], s32[4], (f32[4], s32[4]), s32[4]) tuple(i, j, t, k)
      }}"""
    executable = xlapy.compile(text)
    assert "s32[128,2048]" in executable.hlo_text(), "parts are folded by themselves"
    for array in arrays:
        rows, columns = array.reshape(4, -1), array.reshape(-1, 4)
        below = columns.argmax(0).astype(np.int32)
        expected = (
            np.int32(array.argmax()),
            rows.argmax(1).astype(np.int32),
            (columns[below, range(4)], below),
            below,
        )
        for threads in (1, 3):
            assert_same_bits(on_threads(executable, threads)(array), expected)
