"""What the backward half of a training step reads of its forward half, in arrays per layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy

jax = pytest.importorskip("jax")
jnp = jax.numpy

ROWS, FEATURES, HEADS = 64, 64, 2


def _normalized(x: Any, scale: Any, shift: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered**2).mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _attention(x: Any, p: dict[str, Any]) -> Any:
    queries, keys, values = ((x @ p[name]).reshape(ROWS, HEADS, -1).transpose(1, 0, 2) for name in "qkv")
    scores = queries @ keys.transpose(0, 2, 1) / 8
    masked = jnp.where(jnp.tril(jnp.ones((ROWS, ROWS), bool)), scores, -1e9)
    return (jax.nn.softmax(masked) @ values).transpose(1, 0, 2).reshape(ROWS, FEATURES)


def _layer(x: Any, p: dict[str, Any]) -> Any:
    x = x + _attention(_normalized(x, *p["first"]), p) @ p["o"]
    return x + jax.nn.gelu(_normalized(x, *p["second"]) @ p["up"]) @ p["down"]


def _parameters(layers: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (rng.standard_normal((rows, columns)) / 8).astype(np.float32)

    one, zero = np.ones(FEATURES, np.float32), np.zeros(FEATURES, np.float32)
    square = dict.fromkeys("qkvo", (FEATURES, FEATURES))
    shapes = {**square, "up": (FEATURES, 4 * FEATURES), "down": (4 * FEATURES, FEATURES)}
    norms = {"first": (one, zero), "second": (one, zero)}
    return [norms | {name: matrix(*shape) for name, shape in shapes.items()} for _ in range(layers)]


def _step(parameters: list[dict[str, Any]], x: Any) -> Any:
    def loss(parameters: list[dict[str, Any]]) -> Any:
        y = x
        for p in parameters:
            y = _layer(y, p)
        return (y * jnp.cos(y)).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def test_a_layer_keeps_for_its_gradient_what_the_gradient_needs() -> None:
    """Arrays of ROWS by FEATURES: what enters both normalizations and what leaves them, queries, keys, values and what
    attention makes of them, three arrays of four times as many features around gelu, and the exponentials and
    probabilities of two heads."""
    bytes_of = {}
    for layers in (2, 6):
        parameters, x = _parameters(layers), np.ones((ROWS, FEATURES), np.float32)
        executable = xlapy.compile(jax.jit(_step).lower(parameters, x).as_text())
        bytes_of[layers] = executable.memory_analysis()["temporary_bytes"]
    per_layer = (bytes_of[6] - bytes_of[2]) / 4 / (4 * ROWS * FEATURES)
    assert per_layer < 2 + 2 + 3 + 1 + 3 * 4 + 2 * HEADS + 1
