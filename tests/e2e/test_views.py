"""Slices that products read where they lie."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy

STEPS, ROWS, DEPTH, WIDTH = 20, 24, 36, 80
STEP_BY_STEP = frozenset({"batch-scans", "sum-behind-scans", "unroll-loops"})


def arrays() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = (STEPS, ROWS, WIDTH), (DEPTH, ROWS), (WIDTH, 16)
    return [generator.standard_normal(shape, np.float32) / np.float32(8) for shape in shapes]


def of_both_sides(x: Any, w: Any, v: Any) -> Any:
    """Each part is the right side of two products, turned round in one of them, and the left side of a third."""

    def step(i: Any, state: Any) -> Any:
        wide, narrow = state
        part = lax.dynamic_index_in_dim(x, STEPS - 1 - i, keepdims=False)
        return jnp.tanh((wide @ part) @ part.T), narrow + part @ v

    return lax.fori_loop(0, STEPS, step, (w, jnp.zeros((ROWS, 16), jnp.float32)))


def beyond_the_ends(x: Any, w: Any, v: Any) -> Any:
    """Five parts at a time, the last of which would begin too late."""

    def step(i: Any, state: Any) -> Any:
        part = lax.dynamic_slice_in_dim(x, 7 * i - 2, 5)
        return state + jnp.einsum("tij,jk->ik", part, v)

    return lax.fori_loop(0, 4, step, jnp.zeros((ROWS, 16), jnp.float32))


def of_vectors(x: Any, w: Any, v: Any) -> Any:
    """Products that are kernels of the program, one of which reads a vector as it lies in a matrix."""

    def step(i: Any, state: Any) -> Any:
        row, part = lax.dynamic_index_in_dim(w, i, keepdims=False), lax.dynamic_index_in_dim(x, i, keepdims=False)
        return jnp.tanh(row @ v[:ROWS, :1]) + part.T @ (part @ state) / 8

    return lax.fori_loop(0, STEPS, step, jnp.ones(WIDTH, jnp.float32))


def with_another_reader(x: Any, w: Any, v: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        part = lax.dynamic_index_in_dim(x, i, keepdims=False)
        return jnp.tanh((state @ part) @ part.T) + jnp.cumsum(part, axis=1)[:1, :ROWS]

    return lax.fori_loop(0, STEPS, step, w)


def of_what_changes(x: Any, w: Any, v: Any) -> Any:
    """What is multiplied is written over before it is."""

    def step(i: Any, x: Any) -> Any:
        part = lax.dynamic_index_in_dim(x, i, keepdims=False)
        changed = lax.dynamic_update_index_in_dim(x, jnp.cos(part), i, 0)
        return lax.dynamic_update_index_in_dim(changed, jnp.tile(part @ v, (1, 5)), (i + 3) % STEPS, 0)

    return lax.fori_loop(0, STEPS, step, x)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize(
    ("function", "has_copies"),
    [
        (of_both_sides, False),
        (beyond_the_ends, False),
        (of_vectors, False),
        (with_another_reader, True),
        (of_what_changes, True),
    ],
)
def test_results_are_those_of_copies(function: Any, has_copies: bool, num_threads: int) -> None:
    text = jax.jit(function, keep_unused=True).lower(*arrays()).as_text()
    options = xlapy.CompileOptions(num_threads=num_threads, verify=True, disabled_passes=STEP_BY_STEP)
    program = xlapy.compile(text, options)
    assert "dynamic-slice" in program.hlo_text()
    copied = any(kernel.opcode == "dynamic-slice" for kernel in program.profile(*arrays()).kernels)
    assert copied == has_copies
    expected = jax.tree.leaves(xlapy.evaluate(text, *arrays()))
    for got, wanted in zip(jax.tree.leaves(program(*arrays())), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
