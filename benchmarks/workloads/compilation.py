"""Programs that are long rather than slow: what matters is how their compilation time grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import normal

WIDTH = {"small": 256}
MATRIX = {"small": (16, 16)}


def chain(length: int) -> Callable[[Any, Any], Any]:
    """A straight chain of cheap operations, all of which fuse."""

    def function(x: Any, y: Any) -> Any:
        for number in range(length // 2):
            x = (x * y) if number % 2 else (x + y)
            x = jnp.maximum(x, -y) if number % 3 else jnp.minimum(x, 1.0)
        return x

    return function


def distinct_kernels(count: int) -> Callable[[Any], Any]:
    """Reductions with different element-wise neighbours, so that no two kernels are equal."""
    functions = (jnp.exp, jnp.tanh, jnp.sin, jax.lax.rsqrt, jnp.log, jnp.cos, jax.lax.erf, jnp.arctan)

    def function(x: Any) -> Any:
        for number in range(count):
            weight = 1.0 + number / count
            x = functions[number % len(functions)](jnp.abs(x) * weight + 1) + x.sum(1, keepdims=True) * 1e-3
        return x

    return function


def layers(count: int) -> Callable[[Any, Any], Any]:
    """Equal layers one after the other: compiled once if kernels are shared."""

    def function(x: Any, weight: Any) -> Any:
        for _ in range(count):
            x = jnp.tanh(x @ weight) + x
        return x

    return function


def gradient_of_layers(count: int) -> Callable[[Any, Any], Any]:
    forward = layers(count)
    return jax.grad(lambda x, weight: (forward(x, weight) ** 2).mean(), argnums=(0, 1))


WORKLOADS = [
    Workload("compilation", "chain_of_1000", chain(1000), normal(2), WIDTH, may_differ=1.0),
    Workload("compilation", "distinct_kernels_40", distinct_kernels(40), normal(), MATRIX, tolerance=64),
    Workload("compilation", "equal_layers_24", layers(24), normal(2), MATRIX, may_differ=1.0),
    Workload("compilation", "gradient_of_layers_12", gradient_of_layers(12), normal(2), MATRIX, may_differ=1.0),
]
