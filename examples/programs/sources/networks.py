"""Networks without attention: a perceptron, a convolutional one, a recurrent one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

RATE = 0.1
MOMENTUM = 0.9
NORMALIZATION_EPSILON = 1e-5


def perceptron(weights: Any, images: Any) -> Any:
    *hidden, last = weights
    for layer in hidden:
        images = jax.nn.relu(images @ layer["weight"] + layer["bias"])
    return {"logits": images @ last["weight"] + last["bias"]}


def cross_entropy(logits: Any, labels: Any) -> Any:
    likelihood = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(likelihood, labels[..., None], -1).mean()


def perceptron_training(weights: Any, velocity: Any, images: Any, labels: Any) -> Any:
    """One step of gradient descent with momentum."""
    loss, slopes = jax.value_and_grad(lambda w: cross_entropy(perceptron(w, images)["logits"], labels))(weights)
    velocity = jax.tree.map(lambda v, slope: MOMENTUM * v + slope, velocity, slopes)
    weights = jax.tree.map(lambda w, v: w - RATE * v, weights, velocity)
    return {"loss": loss, "weights": weights, "velocity": velocity}


def convolutional(weights: Any, images: Any) -> Any:
    """Two convolutions, each with pooling behind it; the second is normalized over the batch."""
    seen = _pooled(jax.nn.relu(_convolved(images, weights["first"])))
    seen = _normalized(_convolved(seen, weights["second"])) * weights["stretch"] + weights["shift"]
    seen = _pooled(jax.nn.gelu(seen))
    return seen.reshape(len(seen), -1) @ weights["dense"]


def convolutional_training(weights: Any, images: Any, labels: Any) -> Any:
    loss, slopes = jax.value_and_grad(lambda w: cross_entropy(convolutional(w, images), labels))(weights)
    return {"loss": loss, "weights": jax.tree.map(lambda w, slope: w - RATE * slope, weights, slopes)}


def _convolved(images: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _pooled(images: Any) -> Any:
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _normalized(images: Any) -> Any:
    mean, variance = images.mean((0, 1, 2)), images.var((0, 1, 2))
    return (images - mean) * lax.rsqrt(variance + NORMALIZATION_EPSILON)


def lstm(weights: Any, sequence: Any) -> Any:
    """The output after each element of a batch of sequences, and the last state."""
    batch, size = sequence.shape[1], weights["state"].shape[0]
    nothing = jnp.zeros((batch, size), sequence.dtype)

    def cell(carry: Any, element: Any) -> Any:
        output, memory = carry
        gates = element @ weights["input"] + output @ weights["state"] + weights["bias"]
        keep, write, show, candidate = jnp.split(gates, 4, -1)
        memory = jax.nn.sigmoid(keep) * memory + jax.nn.sigmoid(write) * jnp.tanh(candidate)
        output = jax.nn.sigmoid(show) * jnp.tanh(memory)
        return (output, memory), output

    (_, memory), outputs = lax.scan(cell, (nothing, nothing), sequence)
    return {"outputs": outputs, "memory": memory}
