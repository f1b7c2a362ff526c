"""Scans that multiply their inputs block by block of their steps, against XLA."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.jax.agreement import assert_agree

STEPS, BATCH, WIDTH = 41, 16, 256


def forwards_and_back(x: Any, w: Any, v: Any, u: Any) -> Any:
    """Two scans in opposite directions, each of which multiplies its inputs by two matrices."""

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        state = jnp.tanh(now @ w + state @ u) * jnp.cos(now @ v)
        return state, state

    zero = jnp.zeros((BATCH, WIDTH))
    return lax.scan(step, zero, x), lax.scan(step, zero, x, reverse=True)


def slopes(*arguments: Any) -> Any:
    def loss(*arguments: Any) -> Any:
        return sum((leaf**2).sum() for leaf in jax.tree.leaves(forwards_and_back(*arguments)))

    return jax.grad(loss, (0, 1, 2, 3))(*arguments)


def scaled() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = (STEPS, BATCH, 32), (32, WIDTH), (32, WIDTH), (WIDTH, WIDTH)
    x, *weights = (generator.standard_normal(shape, np.float32) for shape in shapes)
    return [x, *(weight * np.float32(0.1) for weight in weights)]


def test_results_are_those_of_single_steps() -> None:
    assert_agree(forwards_and_back, *scaled())
    assert_agree(slopes, *scaled(), tolerance=1e-4)


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_memory_is_that_of_a_block(num_threads: int) -> None:
    arguments = scaled()
    text = jax.jit(forwards_and_back).lower(*arguments).as_text()
    in_blocks = xlapy.compile(text, xlapy.CompileOptions(num_threads=num_threads, verify=True))
    assert in_blocks.memory_analysis()["temporary_bytes"] < STEPS * BATCH * WIDTH * 4
    step_by_step = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"batch-scans"}))
    for got, expected in zip(
        jax.tree.leaves(in_blocks(*arguments)), jax.tree.leaves(step_by_step(*arguments)), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
