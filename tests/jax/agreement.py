"""A function through the bridge, held against `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

import xlapy.jax
from xlapy import CompileOptions

TOLERANCE = {1: 2e-2, 2: 2e-2, 4: 2e-5, 8: 1e-12}
"""Relative, by the bytes of a real number. XLA contracts across operations; xlapy does not."""


@contextmanager
def x64_mode() -> Iterator[None]:
    """JAX with 64-bit types; its own context managers for it have moved between versions."""
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


def assert_agree(
    function: Callable[..., Any],
    *arguments: Any,
    tolerance: float | None = None,
    options: CompileOptions | None = None,
    compiled: Callable[..., Any] | None = None,
) -> Any:
    """Runs the function by xlapy twice, compiling and warm, and by XLA: the same nesting, types and shapes, and numbers
    within the tolerance. Returns what xlapy gave. `compiled` is the function for xlapy, for who asks it for more."""
    compiled = compiled or xlapy.jax.jit(function, options=options)
    first, warm = compiled(*arguments), compiled(*arguments)
    expected = jax.jit(function)(*arguments)
    assert jax.tree_util.tree_structure(first) == jax.tree_util.tree_structure(expected)
    paths = jax.tree_util.tree_leaves_with_path(expected)
    for (path, want), got, again in zip(paths, *map(jax.tree_util.tree_leaves, (first, warm)), strict=True):
        name = jax.tree_util.keystr(path)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        np.testing.assert_array_equal(got, again, err_msg=name)
        _assert_close(got, np.asarray(want), tolerance, name)
    return first


def _assert_close(got: np.ndarray, want: np.ndarray, tolerance: float | None, name: str) -> None:
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    is_complex = got.dtype.kind == "c"
    relative = tolerance or TOLERANCE[got.dtype.itemsize // (2 if is_complex else 1)]
    wide = np.complex128 if is_complex else np.float64
    scale = np.max(np.abs(want.astype(wide)), initial=0, where=np.isfinite(want.astype(wide)))
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol=relative, atol=relative * scale, equal_nan=True, err_msg=name
    )
