"""Results too small to be normal: zeros, as they are for XLA, unless a function is told to keep them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import xlapy.jax

MASKED = np.linspace(-104, -80, 1000, dtype=np.float32)
KEPT = xlapy.CompileOptions(flush_subnormals=False)


def least(results: np.ndarray) -> float:
    """The smallest magnitude but zero."""
    return float(results[results != 0].min())


@pytest.mark.parametrize(
    "options", [None, xlapy.CompileOptions(), xlapy.CompileOptions(excess_precision=True)], ids=str
)
def test_they_are_zeros(options: xlapy.CompileOptions | None) -> None:
    function = xlapy.jax.jit(lambda x: jnp.exp(x) * 0.5, options=options)
    found = function(MASKED)
    assert least(found) >= np.finfo(np.float32).tiny
    np.testing.assert_allclose(found, jax.jit(lambda x: jnp.exp(x) * 0.5)(MASKED), rtol=1e-6)
    np.testing.assert_array_equal(function.lower(MASKED).compile(options)(MASKED), found)


def test_they_are_kept() -> None:
    found = xlapy.jax.jit(lambda x: jnp.exp(x) * 0.5, options=KEPT)(MASKED)
    assert least(found) < 1e-44
    np.testing.assert_allclose(found, np.exp(MASKED.astype(np.float64)) / 2, rtol=1e-6, atol=1.5e-45)  # least: 1.4e-45


@pytest.mark.parametrize("calls_back", [False, True])
def test_of_functions_that_call_back(calls_back: bool) -> None:
    def function(x: jax.Array) -> jax.Array:
        x = jax.pure_callback(lambda x: x, x, x) if calls_back else x
        return jnp.exp(x)

    assert least(xlapy.jax.jit(function)(MASKED)) >= np.finfo(np.float32).tiny
    assert least(xlapy.jax.jit(function, options=KEPT)(MASKED)) < 1e-44


def test_of_artifacts() -> None:
    """Those with open sizes, too, which are compiled later."""
    for size in export.symbolic_shape("size, 1000"):
        exported = export.export(jax.jit(jnp.exp))(jax.ShapeDtypeStruct((size,), np.float32))
        assert least(xlapy.jax.compile_exported(exported)(MASKED)) >= np.finfo(np.float32).tiny
        assert least(xlapy.jax.compile_exported(exported, options=KEPT)(MASKED)) < 1e-44


def test_programs_without_jax_keep_them() -> None:
    """The text says nothing of who wrote it."""
    executable = xlapy.compile(xlapy.jax.stablehlo(jnp.exp, MASKED))
    assert least(executable(MASKED)) < 1e-44


def test_nothing_else_is_an_answer() -> None:
    with pytest.raises(xlapy.ArgumentError, match="flush_subnormals is True, False or None, not 1"):
        xlapy.CompileOptions(flush_subnormals=1)  # type: ignore[arg-type]
