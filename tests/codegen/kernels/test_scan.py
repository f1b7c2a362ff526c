"""Cumulative scans of large arrays: in strips, and past the caches."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.codegen.kernels import scan
from xlapy.hlo.text import parse

SHAPES = [((300, 1024), 0), ((300, 1000), 0), ((40, 70, 160), 1), ((300, 1024), 1), ((300, 1000), 1)]


def numbers(dims: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers, whose sums are exact."""
    return np.random.default_rng(3).integers(-100, 100, dims).astype(dtype)


def compiled(x: np.ndarray, axis: int, *, reverse: bool, threads: int = 2) -> xlapy.Executable:
    text = jax.jit(lambda x: jax.lax.cumsum(x, axis, reverse=reverse)).lower(x).as_text()
    return xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))


@pytest.mark.parametrize(("dims", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reversed"])
@pytest.mark.parametrize("streamed", [False, True], ids=["cached", "streamed"])
def test_sums_are_right_wherever_they_are_stored(
    dims: tuple[int, ...], axis: int, dtype: str, *, reverse: bool, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if streamed:
        monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
        monkeypatch.setattr(scan, "is_streamed", lambda *_: True)
    x = numbers(dims, dtype)
    executable = compiled(x, axis, reverse=reverse)
    assert ("!nontemporal" in executable.llvm_ir()) == streamed
    seen = np.flip(x, axis) if reverse else x
    wanted = np.cumsum(seen, axis, dtype=dtype)
    for _ in range(3):  # numpy puts results at other places each time
        kept = executable(x)
        assert_same(executable(x), np.flip(wanted, axis) if reverse else wanted)
        assert_same(kept, np.flip(wanted, axis) if reverse else wanted)


def test_a_strip_of_windows_that_do_not_continue_one_another() -> None:
    """The initial value counts in each place of the padding."""
    x = numbers((40, 1000), "float32")
    text = """
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[40,1000] parameter(0)
  one = f32[] parameter(1)
  ROOT r = f32[40,1000] reduce-window(x, one), window={size=40x1 pad=39_0x0_0}, to_apply=sum
}
"""
    executable = xlapy.compile(parse(text))
    padding = np.arange(39, -1, -1, dtype=np.float32)[:, None]
    assert_same(executable(x, np.float32(1)), np.cumsum(x, 0) + padding + 1)
    assert_same(executable(x, np.float32(0)), np.cumsum(x, 0))


def test_the_bits_do_not_depend_on_the_threads() -> None:
    x = np.random.default_rng(5).normal(size=(700, 1500)).astype(np.float32)
    first, *others = [compiled(x, 0, reverse=False, threads=threads)(x) for threads in (1, 2, 3, 8)]
    for other in others:
        assert_same(other, first)
