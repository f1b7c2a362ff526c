"""Attention in the ways in which it is written, block by block of its queries, against XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.jax.agreement import assert_agree


def heads_first(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    earlier = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf), -1), v)


def heads_last(q: Any, k: Any, v: Any) -> Any:
    """Matrices whose rows lie apart, in the result as well."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.125
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def masked(q: Any, k: Any, v: Any) -> Any:
    """By a mask that differs from sentence to sentence and is the same for all heads."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    is_hidden = (k[:, 0, :, 0] > 1)[:, None, None, :]
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(is_hidden, -1e30, scores), -1), v)


def one_head(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T, -1) @ v


def turned(q: Any, k: Any, v: Any) -> Any:
    return v.T @ jax.nn.softmax(q @ k.T, -1).T


def normalized(q: Any, k: Any, v: Any) -> Any:
    """By more than one array that is the same for all rows."""
    scores = q @ k.mT
    centred = scores - scores.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    gain, bias = k[0, :, 0], v[0, :, 0]
    return (centred * scale * gain + bias) @ v


CASES: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (heads_first, (2, 3, 515, 16)),
    (causal, (1, 2, 600, 24)),
    (heads_last, (2, 400, 4, 16)),
    (masked, (2, 2, 512, 8)),
    (one_head, (1030, 32)),
    (turned, (601, 32)),
    (normalized, (4, 597, 16)),
    (normalized, (2, 598, 16)),
]


@pytest.mark.parametrize(("attention", "dims"), CASES)
def test_attention(attention: Callable[..., Any], dims: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(dims, np.float32) for _ in range(3)]
    program = xlapy.compile(jax.jit(attention).lower(*arguments).as_text())
    assert "calls=blocks." in program.hlo_text()
    assert_agree(attention, *arguments)


def test_narrow_floats() -> None:
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal((2, 2, 512, 16)).astype(ml_dtypes.bfloat16) for _ in range(3)]
    assert_agree(heads_first, *arguments)


def test_gradients_keep_the_weights() -> None:
    """What the way back needs exists as a whole."""
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal((1, 2, 520, 16), np.float32) for _ in range(3)]
    assert_agree(jax.grad(lambda *a: (causal(*a) ** 2).sum(), (0, 1, 2)), *arguments, tolerance=1e-4)
