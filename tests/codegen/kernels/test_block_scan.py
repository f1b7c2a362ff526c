"""Scans of one long row in blocks: the same bits on any number of threads, whoever finds what lies before a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.native import on_threads
from tests.support.targets import lesser_targets
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions

TARGETS = {"host": host_target(), **lesser_targets()}
THREADS = (1, 2, 3, 8)
OFF = CompileOptions(num_threads=2)
INITS = {"add": "0", "maximum": "-inf", "minimum": "inf", "multiply": "1", "and": "-1", "xor": "0"}


def scan(
    operation: str, type: str, count: int, init: str = "", operand: str = "x", *, is_reversed: bool = False
) -> str:
    padding = f"0_{count - 1}" if is_reversed else f"{count - 1}_0"
    return f"""
    region {{ a = {type}[] parameter(0)  b = {type}[] parameter(1)  ROOT r = {type}[] {operation}(a, b) }}
    ENTRY main {{
      x = {type}[{count}] parameter(0)
      {"" if type == "pred" else f"y = {type}[{count}] negate(x)"}
      init = {type}[] constant({init or INITS[operation]})
      ROOT r = {type}[{count}] reduce-window({operand}, init), window={{size={count} pad={padding}}}, to_apply=region
    }}"""


def compiled(text: str, patch: pytest.MonkeyPatch, target: str = "host") -> Executable:
    """In blocks of few vectors."""
    with patch.context() as small:
        small.setenv("XLAPY_CACHE_DIR", "off")
        small.setattr("xlapy.codegen.kernels.block_scan.BLOCK_BYTES", 8 * 1024)
        return Executable(compile_module(parse(text), OFF, TARGETS[target]), OFF)


def is_in_blocks(executable: Executable) -> bool:
    return "monotonic" in executable.llvm_ir()


def results(executable: Executable, array: np.ndarray[Any, Any], times: int = 5) -> np.ndarray[Any, Any]:
    """The same bits on any number of threads, time after time."""
    with np.errstate(all="ignore"):
        runs = [np.array(on_threads(executable, count)(array)) for count in THREADS for _ in range(times)]
    assert len({run.tobytes() for run in runs}) == 1
    return runs[0]


def numbers(type: str, count: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(0)
    if type.startswith("f"):
        return (random.standard_normal(count) + 0.5).astype(f"f{int(type[1:]) // 8}")
    return random.integers(-(1 << 30), 1 << 30, count).astype(f"i{int(type[1:]) // 8}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_sums_of_floats(type: str, is_reversed: bool, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements are left over beside vectors, and fewer vectors are in the last block."""
    executable = compiled(scan("add", type, 50_003, is_reversed=is_reversed), monkeypatch, target)
    assert is_in_blocks(executable)
    array = numbers(type, 50_003)
    order = slice(None, None, -1) if is_reversed else slice(None)
    exact = np.cumsum(array[order].astype(np.longdouble))[order]
    np.testing.assert_allclose(results(executable, array), exact, rtol=1e-6 if type == "f32" else 1e-14)


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(
    ("operation", "type"),
    [("add", "s32"), ("multiply", "s64"), ("xor", "s32"), ("and", "s32"), ("maximum", "s32")]
    + [(extremum, type) for extremum in ("maximum", "minimum") for type in ("f32", "f64")],
)
def test_what_is_the_same_in_any_order(
    operation: str, type: str, is_reversed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 40_001
    init = "-2147483648" if (operation, type) == ("maximum", "s32") else ""
    executable = compiled(scan(operation, type, count, init, is_reversed=is_reversed), monkeypatch)
    assert is_in_blocks(executable)
    array = numbers(type, count)
    order = slice(None, None, -1) if is_reversed else slice(None)
    ufunc = {"and": np.bitwise_and, "xor": np.bitwise_xor}.get(operation) or getattr(np, operation)
    expected = ufunc.accumulate(array[order], dtype=array.dtype)[order]
    np.testing.assert_array_equal(results(executable, array), expected)


@pytest.mark.parametrize("operation", ["add", "maximum"])
def test_what_is_not_finite_stays_so(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = compiled(scan(operation, "f32", 40_000), monkeypatch)
    for found in ([np.inf], [-np.inf], [np.nan], [np.inf, -np.inf], [3e38, 3e38], [-0.0]):
        for place in (0, 2047, 2048, 20_001, 39_990):
            array = numbers("f32", 40_000)
            array[place : place + len(found)] = found
            with np.errstate(all="ignore"):
                expected = getattr(np, operation).accumulate(array)
            np.testing.assert_allclose(results(executable, array, 1), expected, rtol=1e-4, atol=1e-3)


def test_an_initial_value_that_changes_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all windows are folded by themselves, as many times as it lies in each."""
    executable = compiled(scan("add", "s32", 33_000, init="3"), monkeypatch)
    assert is_in_blocks(executable)
    array = numbers("s32", 33_000)
    expected = np.cumsum(array, dtype=np.int32) + 3 * np.arange(33_000, 0, -1, dtype=np.int32)
    np.testing.assert_array_equal(results(executable, array, 1), expected)


@pytest.mark.parametrize(
    ("operation", "count", "operand", "why"),
    [
        ("multiply", 40_000, "x", "products in another order might overflow"),
        ("add", 8_000, "x", "there are few blocks"),
        ("add", 40_000, "y", "what is made of elements might be made in two ways"),
    ],
)
def test_other_scans_stay_whole(
    operation: str, count: int, operand: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = compiled(scan(operation, "f32", count, operand=operand), monkeypatch)
    assert not is_in_blocks(executable), why
    array = (1 + np.random.default_rng(0).standard_normal(count) / 1e4).astype(np.float32)
    expected = getattr(np, operation).accumulate((array if operand == "x" else -array).astype(np.float64))
    np.testing.assert_allclose(results(executable, array, 1), expected, rtol=1e-3)


def test_truth_values_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory is as small as what is known of them."""
    executable = compiled(scan("or", "pred", 1 << 18, "false"), monkeypatch)
    array = np.arange(1 << 18) > 200_000
    np.testing.assert_array_equal(results(executable, array, 1), np.logical_or.accumulate(array))


def test_results_in_the_place_of_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can read elements that are overwritten."""
    text = scan("add", "f32", 40_000, operand="z").replace(
        "init =", "z = f32[40000] sort(x), dimensions={0}, to_apply=lt init =", 1
    )
    text = "lt { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }" + text
    array = numbers("f32", 40_000)
    exact = np.cumsum(np.sort(array).astype(np.float64))
    np.testing.assert_allclose(results(compiled(text, monkeypatch), array), exact, rtol=1e-5, atol=1e-2)
