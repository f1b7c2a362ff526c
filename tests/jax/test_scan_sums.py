"""Scans whose gradients add up products of their steps, against XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.jax.agreement import assert_agree

BATCH, INPUTS, WIDTH = 16, 32, 128


def recurrent(x: Any, u: Any, w: Any, *, reverse: bool) -> Any:
    def step(state: Any, now: Any) -> tuple[Any, Any]:
        state = jnp.tanh(now @ u + state @ w)
        return state, state

    return lax.scan(step, jnp.zeros((BATCH, WIDTH)), x, reverse=reverse)[1]


def gated(x: Any, u: Any, w: Any) -> Any:
    """Each step uses a weight twice."""

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        gate = jax.nn.sigmoid(now @ u + state @ w)
        state = gate * jnp.tanh((gate * state) @ w)
        return state, state

    return lax.scan(step, jnp.ones((BATCH, WIDTH)), x)[1]


def slopes(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda *arguments: (function(*arguments) ** 2).sum(), (0, 1, 2))


def scaled(steps: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = (steps, BATCH, INPUTS), (INPUTS, WIDTH), (WIDTH, WIDTH)
    x, *weights = (generator.standard_normal(shape, np.float32) for shape in shapes)
    return [x, *(weight * np.float32(0.1) for weight in weights)]


def forwards(*arguments: Any) -> Any:
    return recurrent(*arguments, reverse=False)


def backwards(*arguments: Any) -> Any:
    return recurrent(*arguments, reverse=True)


@pytest.mark.parametrize("steps", [7, 41, 90])
@pytest.mark.parametrize("function", [forwards, backwards, gated])
def test_gradients_are_those_of_single_steps(function: Callable[..., Any], steps: int) -> None:
    """All steps at once where they are few or cannot be shared out, else blocks of 15."""
    assert_agree(slopes(function), *scaled(steps), tolerance=1e-4)


def test_what_is_kept_is_that_of_a_block() -> None:
    arguments = scaled(90)
    text = jax.jit(slopes(forwards)).lower(*arguments).as_text()
    summed = xlapy.compile(text, xlapy.CompileOptions(num_threads=1, verify=True))
    step_by_step = xlapy.compile(text, xlapy.CompileOptions(disabled_passes={"sum-behind-scans"}))
    more = summed.memory_analysis()["temporary_bytes"] - step_by_step.memory_analysis()["temporary_bytes"]
    assert more < 90 * BATCH * WIDTH * 4 / 2
    for got, expected in zip(summed(*arguments), step_by_step(*arguments), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_threads", [2, 3, 8])
def test_bits_are_the_same_for_any_number_of_threads(num_threads: int) -> None:
    arguments = scaled(90)
    text = jax.jit(slopes(forwards)).lower(*arguments).as_text()
    one, many = (xlapy.compile(text, xlapy.CompileOptions(num_threads=number)) for number in (1, num_threads))
    for got, expected in zip(many(*arguments), one(*arguments), strict=True):
        np.testing.assert_array_equal(got, expected)
