"""Columns in memory that several sweeps fold: wide strips, the same bits as narrow ones, or one sweep of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.passes.test_folds_in_parts import REGIONS
from tests.support.native import on_threads
from tests.support.targets import lesser_targets
from xlapy.codegen.target import Target, host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions

TARGETS = {"host": host_target(), **lesser_targets()}

SUM, MAXIMUM = ("add", "-0"), ("max", "-inf")
MEAN = "sizes = f32[G,C] broadcast(n), dimensions={}  c = f32[G,C] divide(t, sizes)"
FINITE = """
  f = pred[G,C] is-finite(t)
  zero = f32[] constant(0)
  zeros = f32[G,C] broadcast(zero), dimensions={}
  c = f32[G,C] select(f, t, zeros)
"""
ITSELF = "c = f32[G,C] copy(t)"
SQUARE, DISTANCE = "multiply(d, d)", "abs(d)"
EXPONENTIAL, TANGENT = "exponential(d)", "tanh(d)"


def folds(first: tuple[str, str], center: str, elements: str, dims: tuple[int, int, int], start: str = "0") -> str:
    """Of [G,N,C]: by an operation, and the sum of what is made of elements and a center for each fold."""
    operation, init = first
    text = f"""{REGIONS} ENTRY main {{
      x = f32[G,N,C] parameter(0)
      init = f32[] constant({init})
      start = f32[] constant({start})
      n = f32[] constant({dims[1]})
      t = f32[G,C] reduce(x, init), dimensions={{1}}, to_apply={operation}
      {center}
      b = f32[G,N,C] broadcast(c), dimensions={{0,2}}
      d = f32[G,N,C] subtract(x, b)
      e = f32[G,N,C] {elements}
      s = f32[G,C] reduce(e, start), dimensions={{1}}, to_apply=add
      ROOT r = (f32[G,C], f32[G,C]) tuple(t, s)
    }}"""
    groups, length, columns = dims
    return text.replace("[G,N,C]", f"[{groups},{length},{columns}]").replace("[G,C]", f"[{groups},{columns}]")


def compiled(text: str, target: Target, monkeypatch: pytest.MonkeyPatch, *, far: bool) -> Executable:
    options = CompileOptions(num_threads=2)
    with monkeypatch.context() as patch:
        patch.setenv("XLAPY_CACHE_DIR", "off")
        patch.setattr("xlapy.codegen.kernels.wide_columns.is_in_memory", lambda *_: far)
        return Executable(compile_module(parse(text), options, target), options)


def both(text: str, target: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Executable, Executable]:
    """By narrow strips, and by wide ones."""
    narrow, wide = (compiled(text, TARGETS[target], monkeypatch, far=far) for far in (False, True))
    return narrow, wide


def numbers(*dims: int, type: Any = np.float32) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(0).standard_normal(dims) + 5).astype(type)


def with_others(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """With what is not finite among the elements of some columns, in one block of rows, in several, and in all."""
    inf, nan = np.inf, np.nan
    for column, found in enumerate([[nan], [inf], [-inf], [-0.0], [inf, -inf], [inf, nan], [-inf, nan], [3e38, 3e38]]):
        array[0, 3 : 3 + len(found), column] = found
        array[0, :40, 16 + column] = np.resize(found, 40)
        array[0, :, 32 + column] = np.resize(found, array.shape[1])
        array[0, -1, 48 + column] = found[-1]
    array[0, :, 60], array[0, :, 61] = 0.0, -0.0
    array[0, 30:, 62], array[0, :30, 63] = -1e5, -1e5
    return array


def results(executable: Callable[..., Any], array: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    with np.errstate(all="ignore"):
        return [np.asarray(result) for result in executable(array)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dims", [(4, 64, 1024), (3, 61, 512), (2, 64, 4096)])
def test_wide_strips_fold_in_the_order_of_narrow_ones(
    dims: tuple[int, int, int], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are no multiple of those folded together, whole rows, pieces of them, and what is not finite."""
    narrow, wide = both(folds(SUM, MEAN, DISTANCE, dims), target, monkeypatch)
    assert wide.llvm_ir() != narrow.llvm_ir()
    array = with_others(numbers(*dims))
    for one, other in zip(results(wide, array), results(narrow, array), strict=True):
        assert one.tobytes() == other.tobytes()


def test_sums_of_other_functions_stay_in_narrow_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow, wide = both(folds(SUM, MEAN, TANGENT, (4, 64, 1024)), "host", monkeypatch)
    assert wide.llvm_ir() == narrow.llvm_ir()


MERGED = {
    "moments": (SUM, MEAN, SQUARE),
    "squares around a sum": (SUM, ITSELF, SQUARE),
    "moments from other numbers on": (("add", "7"), MEAN, SQUARE),
    "exponentials": (MAXIMUM, FINITE, EXPONENTIAL),
    "exponentials below any maximum": (MAXIMUM, ITSELF, EXPONENTIAL),
    "exponentials below more": (("max", "6.5"), ITSELF, EXPONENTIAL),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("dims", [(4, 64, 1024), (3, 61, 512)])
@pytest.mark.parametrize("name", MERGED)
def test_two_sweeps_are_merged(
    name: str, dims: tuple[int, int, int], type: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are left over, or none are; sums begin with some number, and the center is not that of the elements."""
    text = folds(*MERGED[name], dims, start="3").replace("f32", type)
    narrow, wide = both(text, target, monkeypatch)
    assert wide.llvm_ir() != narrow.llvm_ir()
    array = numbers(*dims, type=np.float32 if type == "f32" else np.float64)
    exact = evaluate(parse(text.replace("f32", "f64")), array.astype(np.float64))
    for found, wanted in zip(results(wide, array), exact, strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5 if type == "f32" else 1e-13)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MERGED)
def test_what_is_not_finite_stays_so_where_sweeps_are_merged(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow, wide = both(folds(*MERGED[name], (2, 61, 512)), target, monkeypatch)
    array = with_others(numbers(2, 61, 512))
    for found, wanted in zip(results(wide, array), results(narrow, array), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("name", MERGED)
def test_merged_sweeps_have_the_same_bits_on_any_number_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, wide = both(folds(*MERGED[name], (8, 61, 8192)), "host", monkeypatch)
    array = numbers(8, 61, 8192)
    found = [b"".join(map(np.ndarray.tobytes, results(on_threads(wide, count), array))) for count in (1, 2, 3, 8)]
    assert len(set(found)) == 1
