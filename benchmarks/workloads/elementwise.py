"""Fused chains of element-wise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from benchmarks import equivalents
from benchmarks.workload import Maker, Workload
from benchmarks.workloads.inputs import VECTOR_SIZES, integers, normal, uniform


def black_scholes(spot: Any, strike: Any, years: Any) -> Any:
    """The price of a European call option."""
    rate, volatility = 0.03, 0.25
    spread = volatility * jnp.sqrt(years)
    first = (jnp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    second = first - spread

    def distribution(x: Any) -> Any:
        return 0.5 * (1 + jax.lax.erf(x * 0.7071067811865476))

    return spot * distribution(first) - strike * jnp.exp(-rate * years) * distribution(second)


def mixed_bits(x: Any) -> Any:
    """A hash of 32-bit integers."""
    x = x ^ jax.lax.shift_right_logical(x, 16)
    x = x * 0x45D9F3B
    x = x ^ jax.lax.shift_right_logical(x, 15)
    x = x * 0x119DE1F3
    return x ^ jax.lax.shift_right_logical(x, 16)


def clipped(x: Any, y: Any) -> Any:
    return jnp.where(x > y, jnp.minimum(x, 1.0), jnp.maximum(y, -1.0) * 0.5)


def _chain(name: str, function: Callable[..., Any], inputs: Maker, **options: Any) -> Workload:
    return Workload("elementwise", name, function, inputs, VECTOR_SIZES, **options)


WORKLOADS = [
    _chain("add_one", lambda x: x + 1, normal()),  # at memory size, the way to fresh pages is most of the time
    _chain("add", lambda x, y: x + y, normal(2), equivalent=equivalents.add),
    _chain(
        "multiply_add_chain",
        lambda x, y, z: jnp.sqrt(jnp.abs(x * y + z)) - x * z,
        normal(3),
        equivalent=equivalents.multiply_add_chain,
        tolerance=16,  # the root magnifies what contraction changes near 0
    ),
    _chain("exp", jnp.exp, normal(), equivalent=equivalents.exp),
    _chain("log", jnp.log, uniform(0.001, 100), equivalent=equivalents.log),
    _chain("tanh", jnp.tanh, normal(), equivalent=equivalents.tanh),
    _chain("sin", jnp.sin, uniform(-100, 100), equivalent=equivalents.sin),
    _chain("power", jnp.power, uniform(0.1, 4, 2), equivalent=equivalents.power),
    _chain("erf", jax.lax.erf, normal()),
    _chain("gelu_tanh", jax.nn.gelu, normal(), equivalent=equivalents.gelu_tanh),
    _chain("gelu_erf", lambda x: jax.nn.gelu(x, approximate=False), normal()),
    _chain("black_scholes", black_scholes, uniform(0.5, 2, 3)),
    _chain("clipped", clipped, normal(2)),
    _chain("exp_f64", jnp.exp, normal(dtype=np.float64), equivalent=equivalents.exp),
    _chain("tanh_f64", jnp.tanh, normal(dtype=np.float64), equivalent=equivalents.tanh),
    _chain("polynomial_f64", lambda x, y: ((x * y + 1.5) * y - x) * x + y, normal(2, np.float64)),
    _chain("silu_bf16", jax.nn.silu, normal(dtype=ml_dtypes.bfloat16)),
    _chain("add_bf16", lambda x, y: x + y, normal(2, ml_dtypes.bfloat16)),
    _chain("mixed_bits_s32", mixed_bits, integers(-(2**31), 2**31)),
    _chain("average_u8", lambda x, y: (x & y) + ((x ^ y) >> 1), integers(0, 256, 2, np.uint8)),
]
