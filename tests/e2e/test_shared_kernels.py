"""Fusions that read parts of arrays and are alike but for where these begin: they are one kernel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy

STEPS, ROWS, WIDTH = 5, 6, 32


def arrays() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = (STEPS, ROWS, WIDTH), (WIDTH // 4, WIDTH)
    return [generator.standard_normal(shape, np.float32) for shape in shapes]


def written_out(x: Any, w: Any) -> Any:
    """A recurrent network, of which each step has what it reads."""
    state = made = jnp.zeros((ROWS, WIDTH // 4))
    for step in range(STEPS):
        kept, taken, shown, new = jnp.split(x[step] + state @ w, 4, axis=-1)
        made = jax.nn.sigmoid(kept) * made + jax.nn.sigmoid(taken) * jnp.tanh(new)
        state = jax.nn.sigmoid(shown) * jnp.tanh(made)
    return state


def softmaxes(x: Any, w: Any) -> Any:
    return [jax.nn.softmax(x[step]) for step in range(STEPS)]


def folds(x: Any, w: Any) -> Any:
    return [jnp.tanh(x[step]).sum() for step in range(STEPS)]


def neighbours(x: Any, w: Any) -> Any:
    """Parts that overlap."""
    flat = x.reshape(-1)
    return [jnp.sin(flat[k + 1 : k + 99] * flat[k : k + 98]) for k in range(STEPS)]


def parts_of_what_is_made(x: Any, w: Any) -> Any:
    """Whose memory is free behind the last one that reads it."""
    made = jnp.cumsum(x, axis=0)[:3]
    return [jnp.exp(-jnp.cumsum(made[step] * 2, axis=0)) for step in range(3)], [
        jnp.tanh(made[step]) for step in (1, 2)
    ]


def of_changing_state(x: Any, w: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        made = [jnp.tanh(state[step]).sum() for step in range(STEPS)]
        return lax.dynamic_update_index_in_dim(state, jnp.full((ROWS, WIDTH), sum(made)), i, 0)

    return lax.fori_loop(0, STEPS, step, x)


def of_bytes(x: Any, w: Any) -> Any:
    whole = lax.optimization_barrier((x * 50).astype(jnp.int8))
    return [(whole[step] * 3).sum(axis=1) for step in range(STEPS)]


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize(
    "function", [written_out, softmaxes, folds, neighbours, parts_of_what_is_made, of_changing_state, of_bytes]
)
def test_results_are_those_of_whole_arrays(function: Any, num_threads: int) -> None:
    text = jax.jit(function, keep_unused=True).lower(*arrays()).as_text()
    options = {"num_threads": num_threads, "verify": True}
    program = xlapy.compile(text, xlapy.CompileOptions(**options))
    apart = xlapy.compile(text, xlapy.CompileOptions(**options, disabled_passes=frozenset({"share-kernels"})))
    assert program.compile_stats().kernels <= apart.compile_stats().kernels
    results = [jax.tree.leaves(each(*arrays())) for each in (program, apart)]
    expected = jax.tree.leaves(xlapy.evaluate(text, *arrays()))
    for shared, own, wanted in zip(*results, expected, strict=True):
        np.testing.assert_array_equal(shared, own)
        np.testing.assert_allclose(shared, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("function", "kernels"), [(softmaxes, 1), (folds, 1), (neighbours, 1), (written_out, 3)])
def test_steps_that_are_written_out_share_their_kernels(function: Any, kernels: int) -> None:
    program = xlapy.compile(jax.jit(function, keep_unused=True).lower(*arrays()).as_text())
    assert program.compile_stats().kernels == kernels
