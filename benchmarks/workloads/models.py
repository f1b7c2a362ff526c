"""Whole models, forward and one step of training, on flat lists of arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Workload
from benchmarks.workloads.inputs import scaled

PERCEPTRON = {"small": (8, 64, 64, 10), "cache": (64, 784, 256, 10), "memory": (256, 2048, 2048, 1000)}
"""Batch, and the widths of input, hidden layers and output."""

TRANSFORMER = {"small": (1, 16, 64, 4), "cache": (2, 64, 256, 8), "memory": (4, 256, 512, 8)}
"""Batch, sequence, width, heads."""

LEARNING_RATE = 0.01


def perceptron(x: Any, *weights: Any) -> Any:
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        x = jax.nn.relu(x @ weight + bias)
    return x @ weights[-2] + weights[-1]


def perceptron_training_step(x: Any, labels: Any, *weights: Any) -> Any:
    def loss(weights: Any) -> Any:
        likelihood = jax.nn.log_softmax(perceptron(x, *weights))
        chosen = labels[:, None] == jnp.arange(likelihood.shape[1], dtype=jnp.int32)
        return -jnp.where(chosen, likelihood, 0).sum(1).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return value, [weight - LEARNING_RATE * slope for weight, slope in zip(weights, gradients, strict=True)]


def perceptron_inputs(training: bool) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        batch, *_ = size
        widths = [size[1], size[2], size[2], size[3]]
        arrays = [generator.standard_normal((batch, widths[0]), np.float32)]
        arrays += [generator.integers(0, widths[-1], batch).astype(np.int32)] if training else []
        for incoming, outgoing in pairwise(widths):
            arrays += [scaled(generator, (incoming, outgoing)), np.zeros(outgoing, np.float32)]
        return arrays

    return make


def perceptron_operations(passes: int) -> Callable[[Any], float]:
    def count(size: Any) -> float:
        batch, incoming, hidden, outgoing = size
        return float(2 * passes * batch * (incoming * hidden + hidden * hidden + hidden * outgoing))

    return count


def normalized(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def attention(query: Any, key: Any, value: Any) -> Any:
    """Scaled dot products over (batch, heads, sequence, depth)."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), value)


def attention_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    batch, sequence, width, heads = size
    return [generator.standard_normal((batch, heads, sequence, width // heads), np.float32) for _ in range(3)]


def transformer_block(heads: int, x: Any, *weights: Any) -> Any:
    """Attention and a feed-forward layer, both with a residual and normalization first."""
    to_query, to_key, to_value, to_output, to_hidden, from_hidden = weights
    batch, sequence, width = x.shape

    def split(y: Any) -> Any:
        return y.reshape(batch, sequence, heads, width // heads).transpose(0, 2, 1, 3)

    y = normalized(x)
    attended = attention(split(y @ to_query), split(y @ to_key), split(y @ to_value))
    x = x + attended.transpose(0, 2, 1, 3).reshape(batch, sequence, width) @ to_output
    return x + jax.nn.gelu(normalized(x) @ to_hidden) @ from_hidden


def transformer(x: Any, *weights: Any) -> Any:
    return transformer_block(_heads_of(x), x, *weights)


def transformer_training_step(x: Any, target: Any, *weights: Any) -> Any:
    def loss(weights: Any) -> Any:
        return ((transformer_block(_heads_of(x), x, *weights) - target) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return value, [weight - LEARNING_RATE * slope for weight, slope in zip(weights, gradients, strict=True)]


def _heads_of(x: Any) -> int:
    """The number of heads that goes with a width."""
    return next(heads for _, _, width, heads in TRANSFORMER.values() if width == x.shape[-1])


def transformer_inputs(training: bool) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        batch, sequence, width, _ = size
        activations = [generator.standard_normal((batch, sequence, width), np.float32) for _ in range(1 + training)]
        shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
        return activations + [scaled(generator, shape) for shape in shapes]

    return make


def transformer_operations(passes: int) -> Callable[[Any], float]:
    def count(size: Any) -> float:
        batch, sequence, width, _ = size
        return float(2 * passes * batch * sequence * width * (12 * width + 2 * sequence))

    return count


def attention_operations(size: Any) -> float:
    batch, sequence, width, _ = size
    return float(4 * batch * sequence * sequence * width)


def _model(name: str, function: Any, inputs: Any, sizes: Any, operations: Any, **options: Any) -> Workload:
    return Workload(
        "models", name, function, inputs, sizes, operations=operations, moves_memory=False, tolerance=8, **options
    )


WORKLOADS = [
    _model("perceptron", perceptron, perceptron_inputs(False), PERCEPTRON, perceptron_operations(1)),
    _model(
        "perceptron_training",
        perceptron_training_step,
        perceptron_inputs(True),
        PERCEPTRON,
        perceptron_operations(3),
    ),
    _model("attention", attention, attention_inputs, TRANSFORMER, attention_operations),
    _model("transformer", transformer, transformer_inputs(False), TRANSFORMER, transformer_operations(1)),
    _model(
        "transformer_training",
        transformer_training_step,
        transformer_inputs(True),
        TRANSFORMER,
        transformer_operations(3),
    ),
]
