"""Whole programs of JAX: transformations, control flow, random numbers, narrow and wide types; XLA is the measure."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from tests.jax.agreement import assert_agree, x64_mode

RANDOM = np.random.default_rng(11)
X = RANDOM.normal(size=(6, 5)).astype(np.float32)
W = (RANDOM.normal(size=(5, 4)) / 2).astype(np.float32)
V = RANDOM.normal(size=5).astype(np.float32)
LABELS = np.array([0, 3, 1, 2, 2, 0], np.int32)


def loss(weights: Any, x: Any, labels: Any) -> Any:
    hidden = jax.nn.relu(x @ weights["w"] + weights["b"])
    log_probabilities = jax.nn.log_softmax(jax.nn.gelu(hidden) @ weights["out"])
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 4) * log_probabilities, axis=-1))


WEIGHTS = {"w": W, "b": np.linspace(-1, 1, 4, dtype=np.float32), "out": np.eye(4, dtype=np.float32)}


def test_a_training_step() -> None:
    def step(weights: Any, x: Any, labels: Any, rate: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(weights, x, labels)
        return value, jax.tree.map(lambda w, g: w - rate * g, weights, gradient)

    assert_agree(step, WEIGHTS, X, LABELS, 0.1)


def test_transformations() -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        scalar = lambda row: jnp.sum(jnp.tanh(row @ w) ** 2)  # noqa: E731
        return {
            "vmap": jax.vmap(scalar)(x),
            "vmapped gradient": jax.vmap(jax.grad(scalar))(x),
            "jacobian": jax.jacrev(lambda row: jnp.sin(row @ w))(v),
            "forward": jax.jacfwd(lambda row: jnp.exp(row) / (1 + row**2))(v),
            "hessian": jax.hessian(scalar)(v),
            "jvp": jax.jvp(scalar, (v,), (v,)),
            "linear": jax.linear_transpose(lambda row: row @ w, v)(v @ w),
            "checkpointed": jax.grad(jax.checkpoint(scalar))(v),
            "nested": jax.jit(jax.vmap(jax.jit(scalar)))(x),
        }

    assert_agree(function, X, W, V)


def test_loops() -> None:
    def function(x: Any, v: Any, count: Any) -> Any:
        def cell(carry: Any, row: Any) -> Any:
            new = jnp.tanh(0.5 * carry + row)
            return new, (new.sum(), carry)

        def newton(state: Any) -> Any:
            guess, steps = state
            return guess - (guess**3 - 5) / (3 * guess**2), steps + 1

        return {
            "scan": lax.scan(cell, v, x),
            "reverse scan": lax.scan(cell, v, x, reverse=True, unroll=2),
            "scan gradient": jax.grad(lambda start: lax.scan(cell, start, x)[0].sum())(v),
            "while": lax.while_loop(lambda s: jnp.abs(s[0] ** 3 - 5) > 1e-4, newton, (2.0, 0)),
            "fori": lax.fori_loop(0, count, lambda i, total: total + i * v, jnp.zeros_like(v)),
            "map": lax.map(lambda row: row.max() - row.min(), x),
            "threshold": lax.while_loop(lambda u: (u**2).sum() > 1e-2 * jnp.linalg.norm(x), lambda u: u * 0.9, v),
            "norm": lax.fori_loop(0, count, lambda i, u: u * jnp.tanh(jnp.linalg.norm(x)) + i, v),
            "twins": lax.fori_loop(0, count, lambda i, s: (s[0] + 1, s[1] * x[s[0]].sum(), s[2] + 1), (0, v, 0)),
            "associative": lax.associative_scan(jnp.add, x),
        }

    assert_agree(function, X, V, 7)


def test_branches() -> None:
    def function(x: Any, index: Any) -> Any:
        chosen = lax.switch(index, [jnp.sin, lambda y: y * 2, lambda y: -y], x)
        either = lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, x)
        slope = jax.grad(lambda y: lax.cond(y.sum() > 0, jnp.sum, lambda z: (z**2).sum(), y))(x)
        return chosen, either, slope, jax.vmap(lambda y: lax.cond(y > 0, jnp.exp, jnp.abs, y))(x[0])

    for index in (0, 2, 9):
        assert_agree(function, X, np.int32(index))


def test_branches_that_have_much_in_common() -> None:
    def function(x: Any, w: Any, index: Any) -> Any:
        hidden = jnp.tanh(x @ w)

        def branch(last: Any) -> Any:
            return lambda: (last(jax.nn.softmax(x @ w)) * 2 + hidden, jnp.tanh(x @ w).sum(), w, jnp.float32(3))

        def loss(v: Any) -> Any:
            step = lambda total, row: lax.cond(row.sum() > 0, lambda: total + row @ v, lambda: total - row @ v)  # noqa: E731
            return lax.fori_loop(0, 5, lambda i, total: step(total, x[i]), jnp.zeros(4)).sum()

        def carried(state: Any, row: Any) -> Any:
            first, second, count = state
            last = lax.switch(count % 3, [branch(jnp.sin), branch(jnp.cos), branch(jnp.abs)])[0].sum()
            return (first * 0.5 + last, second * 0.5 + last, count + 1), row

        return {
            "switch": lax.switch(index, [branch(jnp.sin), branch(jnp.cos), branch(jnp.abs)]),
            "used in part": lax.cond(index > 0, branch(jnp.exp), branch(jnp.square))[1],
            "loop": loss(w),
            "scan": lax.scan(carried, (1.0, 1.0, 0), x),
            "gradient": jax.grad(lambda v: lax.cond(index > 0, lambda: jnp.sin(x @ v), lambda: x @ v).sum())(w),
        }

    for index in (0, 1, 5):
        assert_agree(function, X, W, index)


def test_random_numbers() -> None:
    def function(seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 6)
        return {
            "bits": jax.random.bits(keys[0], (7,)),
            "uniform": jax.random.uniform(keys[1], (3, 5)),
            "normal": jax.random.normal(keys[2], (9,)),
            "integers": jax.random.randint(keys[3], (8,), -5, 11),
            "bernoulli": jax.random.bernoulli(keys[4], 0.3, (20,)),
            "categorical": jax.random.categorical(keys[5], jnp.zeros((4, 3))),
            "folded": jax.random.key_data(jax.random.fold_in(keys[0], 3)),
            "legacy": jax.random.PRNGKey(seed),
        }

    assert_agree(function, 42)


def test_narrow_floats() -> None:
    def function(x: Any, w: Any) -> Any:
        return x @ w, jax.nn.softmax(x), jnp.sum(x, 0), x.astype(jnp.float32) * 2, jnp.exp(x) / (x * x + 1)

    for dtype in (ml_dtypes.bfloat16, np.float16):
        assert_agree(function, X.astype(dtype), W.astype(dtype))


def test_wide_types() -> None:
    def function(x: Any, n: Any, z: Any) -> Any:
        return jnp.sin(x) @ x.T, jax.grad(lambda y: jnp.sum(jnp.exp(y)))(x), n * 2**40, jnp.cumsum(n), z * z + 1, x + 1

    with x64_mode():
        assert_agree(function, X.astype(np.float64), np.arange(4), np.array([1 + 2j, -3j]))


def test_numpy_functions() -> None:
    def function(x: Any, v: Any) -> Any:
        return (
            jnp.where(x > 0, x, -1), jnp.einsum("ij,j->i", x, v), jnp.linalg.norm(x, axis=1), jnp.mean(x),
            jnp.var(x, 0), jnp.argmax(x, axis=1), jnp.concatenate([x, x]), jnp.pad(x, 1),
            jnp.roll(v, 2), jnp.outer(v, v),
            jnp.clip(x, -1, 1), jnp.floor_divide(x, 0.3), jnp.mod(x, 0.7), jnp.logaddexp(x, 1), jnp.isnan(x).any(),
            jnp.tril(x), jnp.linspace(0, 1, 5) * v, jnp.stack([v, v]).T, jnp.repeat(v, 2), jnp.tensordot(x, x, 2),
        )  # fmt: skip

    assert_agree(function, X, V)


def test_indexing_and_ordering() -> None:
    def function(x: Any, indices: Any) -> Any:
        return (
            x[indices], jnp.take_along_axis(x, jnp.argsort(x, 1), 1), x.at[indices, 0].add(1.0), x.at[::2].set(0),
            lax.top_k(x, 3), jnp.median(x), jnp.unique(indices, size=4), jnp.searchsorted(jnp.sort(x[0]), x[1]),
            jax.ops.segment_sum(x, indices, 5), jax.grad(lambda y: jnp.sum(y[indices] ** 2))(x), jnp.cumsum(x, 0),
        )  # fmt: skip

    assert_agree(function, X, LABELS)


def test_a_small_convolutional_network() -> None:
    def network(kernel: Any, images: Any) -> Any:
        seen = lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        pooled = lax.reduce_window(jax.nn.relu(seen), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.sum(pooled**2)

    images = RANDOM.normal(size=(2, 6, 6, 3)).astype(np.float32)
    kernel = RANDOM.normal(size=(3, 3, 3, 4)).astype(np.float32)
    assert_agree(jax.value_and_grad(network, argnums=(0, 1)), kernel, images)


def test_special_functions_and_transforms() -> None:
    def function(x: Any, v: Any) -> Any:
        positive = jnp.abs(x) + 0.5
        return (
            lax.lgamma(positive), lax.digamma(positive), lax.erfc(x), lax.erf_inv(jnp.tanh(x)), lax.bessel_i1e(x),
            jax.scipy.special.gammainc(2.0, positive), jnp.fft.fft(x), jnp.fft.irfft(v + 1j * v),
        )  # fmt: skip

    assert_agree(function, X, V)
