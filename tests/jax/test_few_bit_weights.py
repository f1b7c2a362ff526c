"""A vector times weights that are stored in few bits, in the ways in which they are written, against XLA."""

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

RNG = np.random.default_rng(0)
ROWS, COLUMNS, GROUP = 160, 260, 32
VECTOR = RNG.standard_normal((1, ROWS)).astype(np.float32)
BYTES = RNG.integers(-127, 128, (ROWS, COLUMNS)).astype(np.int8)
SCALES = RNG.random(COLUMNS).astype(np.float32)
SCALES_OF_GROUPS = RNG.random((ROWS // GROUP, COLUMNS)).astype(np.float32)


def nibbles(pairs: Any) -> Any:
    both = jnp.stack([pairs & 15, pairs >> 4], 1)
    return both.reshape(-1, pairs.shape[1]).astype(jnp.float32) - 8


def widened(weights: Any) -> Any:
    return weights.astype(jnp.float32)


def cached_attention(query: Any, keys: Any, values: Any) -> Any:
    scores = jnp.einsum("hd,thd->ht", query, widened(keys)) / 64
    return jnp.einsum("ht,thd->hd", jax.nn.softmax(scores), widened(values))


def layers(x: Any, first: Any, second: Any) -> Any:
    def step(x: Any, weights: Any) -> Any:
        one, two = weights
        return x + jax.nn.silu(x @ widened(one)) @ widened(two) / 4096, None

    return jax.lax.scan(step, x, (first, second))[0]


def stacks(*shapes: tuple[int, ...], dtype: Any = np.int8) -> list[np.ndarray]:
    return [RNG.integers(-20, 20, shape).astype(dtype) for shape in shapes]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "bytes": (lambda x, q, s: (x @ widened(q)) * s, (VECTOR, BYTES, SCALES)),
    "rows of bytes": (lambda x, q: widened(q) @ x[0], (RNG.random((1, COLUMNS)).astype(np.float32), BYTES)),
    "three vectors": (lambda x, q: x @ widened(q), (RNG.random((3, ROWS)).astype(np.float32), BYTES)),
    "four rows of bytes": (lambda x, q: widened(q) @ x, (RNG.random((COLUMNS, 4)).astype(np.float32), BYTES)),
    "eight vectors": (lambda x, q: x @ widened(q), (RNG.random((8, ROWS)).astype(np.float32), BYTES)),
    "six rows of bytes": (lambda x, q: widened(q) @ x, (RNG.random((COLUMNS, 6)).astype(np.float32), BYTES)),
    "experts": (
        lambda x, q, i: jnp.einsum("d,edf->ef", x, widened(q[i])),
        (VECTOR[0], *stacks((4, ROWS, COLUMNS)), np.array([3, 0], np.int32)),
    ),
    "scaled before": (lambda x, q, s: x @ (widened(q) * s), (VECTOR, BYTES, SCALES)),
    "by groups": (lambda x, q, s: x @ (widened(q) * jnp.repeat(s, GROUP, 0)), (VECTOR, BYTES, SCALES_OF_GROUPS)),
    "nibbles": (lambda x, q: x @ nibbles(q), (VECTOR, BYTES[: ROWS // 2].view(np.uint8))),
    "int4": (lambda x, q: x @ widened(q), (VECTOR, (BYTES % 16 - 8).astype(ml_dtypes.int4))),
    "bfloat16": (lambda x, w: x @ widened(w), (VECTOR, BYTES.astype(ml_dtypes.bfloat16))),
    "float8": (lambda x, w: x @ widened(w), (VECTOR, BYTES.astype(ml_dtypes.float8_e4m3fn))),
    "cached keys": (cached_attention, (VECTOR.reshape(5, 32), *stacks((40, 5, 32), (40, 5, 32)))),
    "keys of bfloat16": (
        cached_attention,
        (VECTOR.reshape(5, 32), *stacks((40, 5, 32), (40, 5, 32), dtype=ml_dtypes.bfloat16)),
    ),
    "layers in a loop": (layers, (VECTOR[:, :64], *stacks((3, 64, 1100), (3, 1100, 64)))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_agree(name: str) -> None:
    function, inputs = PROGRAMS[name]
    assert_agree(function, *inputs, tolerance=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_matrix_is_never_stored(name: str) -> None:
    function, inputs = PROGRAMS[name]
    executable = xlapy.compile(jax.jit(function).lower(*inputs).as_text())
    assert " dot(" not in executable.hlo_text()
    matrix_bytes = 4 * max(array.size for array in inputs[1:]) // (3 if name == "layers in a loop" else 1)
    assert executable.memory_analysis()["temporary_bytes"] < matrix_bytes
