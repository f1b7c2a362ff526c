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


def great_circle(latitude: Any, longitude: Any, other_latitude: Any, other_longitude: Any) -> Any:
    """The distance of two points on the unit sphere, by the haversine formula."""
    down, across = jnp.sin((other_latitude - latitude) / 2), jnp.sin((other_longitude - longitude) / 2)
    squared = down * down + jnp.cos(latitude) * jnp.cos(other_latitude) * across * across
    return 2 * jnp.arctan2(jnp.sqrt(squared), jnp.sqrt(1 - squared))


def normalized(x: Any) -> Any:
    """What networks get of a picture's brightness."""
    return (x.astype(jnp.float32) / 255 - 0.449) / 0.226


def mixed_bits(x: Any) -> Any:
    """A hash of 32-bit integers."""
    x = x ^ jax.lax.shift_right_logical(x, 16)
    x = x * 0x45D9F3B
    x = x ^ jax.lax.shift_right_logical(x, 15)
    x = x * 0x119DE1F3
    return x ^ jax.lax.shift_right_logical(x, 16)


def quotient_and_remainder(x: Any, y: Any) -> Any:
    """Rounded towards zero, as the hardware's division does where there is one."""
    return jax.lax.div(x, y), jax.lax.rem(x, y)


def clipped(x: Any, y: Any) -> Any:
    return jnp.where(x > y, jnp.minimum(x, 1.0), jnp.maximum(y, -1.0) * 0.5)


def piecewise(x: Any) -> Any:
    """A function in three parts."""
    return jnp.piecewise(x, [x < -1, x > 1], [lambda x: -2 * x - 1, lambda x: 2 * x - 1, lambda x: x * x])


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
    _chain("tan", jnp.tan, uniform(-1.5, 1.5), equivalent=equivalents.tan, tolerance=4),  # steep at both ends
    _chain("great_circle", great_circle, uniform(-1.5, 1.5, 4)),
    _chain("power", jnp.power, uniform(0.1, 4, 2), equivalent=equivalents.power),
    _chain("softplus", jax.nn.softplus, normal()),
    _chain("erf", jax.lax.erf, normal()),
    _chain("piecewise", piecewise, normal()),
    _chain("gelu_tanh", jax.nn.gelu, normal(), equivalent=equivalents.gelu_tanh),
    _chain("gelu_erf", lambda x: jax.nn.gelu(x, approximate=False), normal()),
    _chain("black_scholes", black_scholes, uniform(0.5, 2, 3)),
    _chain("clipped", clipped, normal(2)),
    _chain("exp_f64", jnp.exp, normal(dtype=np.float64), equivalent=equivalents.exp),
    _chain("tanh_f64", jnp.tanh, normal(dtype=np.float64), equivalent=equivalents.tanh),
    _chain("log_f64", jnp.log, uniform(0.001, 100, dtype=np.float64), equivalent=equivalents.log),
    _chain("sin_f64", jnp.sin, uniform(-100, 100, dtype=np.float64), equivalent=equivalents.sin),
    _chain("power_f64", jnp.power, uniform(0.1, 4, 2, np.float64), equivalent=equivalents.power),
    _chain("erf_f64", jax.lax.erf, normal(dtype=np.float64)),
    _chain("great_circle_f64", great_circle, uniform(-1.5, 1.5, 4, np.float64)),
    _chain("polynomial_f64", lambda x, y: ((x * y + 1.5) * y - x) * x + y, normal(2, np.float64)),
    _chain("silu_bf16", jax.nn.silu, normal(dtype=ml_dtypes.bfloat16)),
    _chain("gelu_tanh_bf16", jax.nn.gelu, normal(dtype=ml_dtypes.bfloat16), tolerance=4),  # XLA rounds between steps
    _chain(
        "multiply_add_chain_bf16",
        lambda x, y, z: jnp.abs(x * y + z) - x * z,
        normal(3, ml_dtypes.bfloat16),
        tolerance=4,
    ),
    _chain("add_bf16", lambda x, y: x + y, normal(2, ml_dtypes.bfloat16)),
    _chain("mixed_bits_s32", mixed_bits, integers(-(2**31), 2**31)),
    _chain("quotient_and_remainder_s32", quotient_and_remainder, integers(1, 2**31, 2)),
    _chain("polynomial_s64", lambda x, y: ((x * y + 15) * y - x) * x + y, integers(-1000, 1000, 2, np.int64)),
    _chain("normalized_u8", normalized, integers(0, 256, dtype=np.uint8)),
    _chain("average_u8", lambda x, y: (x & y) + ((x ^ y) >> 1), integers(0, 256, 2, np.uint8)),
]
