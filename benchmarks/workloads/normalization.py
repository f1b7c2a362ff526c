"""Chains of reductions and element-wise operations over the same rows or columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import IMAGE_SIZES, MATRIX_SIZES, normal

VECTOR = {"4096": (4096,)}


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(1, keepdims=True)
    variance = ((x - mean) ** 2).mean(1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def rms_norm(x: Any, scale: Any, _: Any) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(1, keepdims=True) + 1e-6) * scale


def layer_norm_of_vector(x: Any, scale: Any, shift: Any) -> Any:
    """Of a single token, as in decoding."""
    mean = x.mean()
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean() + 1e-5) * scale + shift


def batch_norm_statistics(x: Any) -> Any:
    return x.mean(0), x.var(0)


def batch_norm_training(x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = x.mean(0), x.var(0)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift, mean, variance


def batch_norm_inference(x: Any, scale: Any, shift: Any) -> Any:
    """With statistics from training: here, numbers that follow from the other inputs."""
    mean, variance = 0.5 * shift, 1 + scale * scale
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def batch_norm_of_images(x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of a loss over the results of `function`, with respect to all its inputs."""
    return jax.grad(lambda *inputs: jnp.sin(function(*inputs)).sum(), argnums=(0, 1, 2))


def with_scale_and_shift(generator: np.random.Generator, shape: Any) -> Arrays:
    return [generator.standard_normal(size, np.float32) for size in (shape, shape[-1:], shape[-1:])]


def _chain(
    name: str, function: Callable[..., Any], inputs: Maker | None = None, sizes: Any = MATRIX_SIZES, **options: Any
) -> Workload:
    return Workload("normalization", name, function, inputs or normal(), sizes, **options)


WORKLOADS = [
    _chain("softmax", lambda x: jax.nn.softmax(x, 1)),
    _chain("softmax_columns", lambda x: jax.nn.softmax(x, 0)),
    _chain("softmax_bf16", lambda x: jax.nn.softmax(x, 1), normal(dtype=ml_dtypes.bfloat16), tolerance=4),
    _chain("log_softmax", lambda x: jax.nn.log_softmax(x, 1)),
    _chain("log_sum_exp", lambda x: jax.nn.logsumexp(x, 1)),
    _chain("log_sum_exp_columns", lambda x: jax.nn.logsumexp(x, 0)),
    _chain("log_sum_exp_all", jax.nn.logsumexp),
    _chain("layer_norm", layer_norm, with_scale_and_shift),
    _chain("layer_norm_gradient", gradient(layer_norm), with_scale_and_shift, tolerance=8),
    _chain("layer_norm_of_vector", layer_norm_of_vector, with_scale_and_shift, VECTOR),
    _chain("rms_norm", rms_norm, with_scale_and_shift),
    _chain("batch_norm_statistics", batch_norm_statistics),
    _chain("batch_norm_training", batch_norm_training, with_scale_and_shift),
    _chain("batch_norm_inference", batch_norm_inference, with_scale_and_shift),
    _chain("batch_norm_of_images", batch_norm_of_images, with_scale_and_shift, IMAGE_SIZES, tolerance=4),
    _chain("cross_entropy", lambda x, y: -(jax.nn.log_softmax(x, 1) * jax.nn.softmax(y, 1)).sum(1).mean(), normal(2)),
]
