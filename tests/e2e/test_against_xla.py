"""Programs of JAX through StableHLO: xlapy gives what XLA gives.

Each group of functions is jitted as one program, since compiling with XLA is what takes the time here. XLA contracts
multiplications with additions and flushes subnormals; the tolerance allows for the first, the inputs avoid the second.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy

RELATIVE, ABSOLUTE = 3e-5, 5e-6
TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-3, "float64": 1e-12}
"""Relative tolerance by type, where it is not that of f32."""

Program = tuple[Any, ...]
"""A function and its arguments."""

random = np.random.default_rng(0)


def f(*dims: int) -> np.ndarray[Any, Any]:
    return random.standard_normal(dims).astype(np.float32)


def i(*dims: int) -> np.ndarray[Any, Any]:
    return random.integers(-5, 5, dims).astype(np.int32)


def c(*dims: int) -> np.ndarray[Any, Any]:
    return (f(*dims) + 1j * f(*dims)).astype(np.complex64)


def check(programs: dict[str, Program]) -> None:
    """Runs all programs as one, by XLA and by xlapy, and compares the results of each."""
    names = list(programs)
    counts = [len(arguments) for _, *arguments in programs.values()]
    functions = [function for function, *_ in programs.values()]

    def together(*arguments: Any) -> dict[str, Any]:
        results, start = {}, 0
        for name, function, count in zip(names, functions, counts, strict=True):
            results[name] = function(*arguments[start : start + count])
            start += count
        return results

    arguments = [argument for _, *given in programs.values() for argument in given]
    jitted = jax.jit(together, keep_unused=True)
    got = xlapy.compile(jitted.lower(*arguments).as_text())(*arguments)
    expected, structure = jax.tree_util.tree_flatten(jitted(*arguments))
    got = jax.tree_util.tree_unflatten(structure, got if isinstance(got, tuple) else (got,))
    expected = jax.tree_util.tree_unflatten(structure, expected)
    for name in names:
        values = zip(jax.tree_util.tree_leaves(got[name]), jax.tree_util.tree_leaves(expected[name]), strict=True)
        for ours, theirs in values:
            assert_close(np.asarray(ours), np.asarray(theirs), name)


def assert_close(ours: Any, theirs: Any, name: str) -> None:
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    if ours.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        return
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    relative = TOLERANCE.get(str(ours.dtype), RELATIVE)
    np.testing.assert_allclose(
        ours.astype(wide),
        theirs.astype(wide),
        rtol=relative,
        atol=max(ABSOLUTE * (relative > 1e-6), relative),
        err_msg=name,
    )


def test_element_by_element() -> None:
    divisor = lambda y: jnp.where(y == 0, 1, y)  # noqa: E731 - one word in a table
    check(
        {
            "add": (lambda x, y: x + y, f(4), f(4)),
            "where": (lambda x: jnp.where(x > 0, x, -x * 2), f(100)),
            "integers": (lambda x, y: (x // divisor(y), x % divisor(y), x & y, x | y, x ^ y), i(100), i(100)),
            "shifts": (lambda x: (x << 2, x >> 1, lax.shift_right_logical(x, 3)), i(100)),
            "clip": (lambda x: jnp.clip(x, -0.5, 0.5), f(100)),
            "conversions": (
                lambda x: (x.astype(jnp.int32), x.astype(jnp.bool_), x.astype(jnp.float16), x.astype(jnp.bfloat16)),
                f(100),
            ),
            "functions": (
                lambda x: (jnp.exp(x), jnp.tanh(x), jnp.sin(x), jnp.cos(x), lax.erf(x), lax.logistic(x)),
                f(1000),
            ),
            "of positive": (lambda x: (jnp.log(x), jnp.sqrt(x), lax.rsqrt(x), jnp.log1p(x)), np.abs(f(1000))),
            "power": (lambda x, y: (x**2, x**0.5, x**y, jnp.expm1(x)), np.abs(f(300)), f(300)),
            "integer power": (lambda x: (x**2, x**3), i(300)),
            "rounding": (lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x)), f(300) * 5),
            "bits": (lambda x: (lax.population_count(x), lax.clz(x)), i(50)),
            "scalar": (lambda x: x * x + 1, np.float32(3)),
            "complex": (lambda x, y: (x * y, x / y, jnp.abs(x), x.real, jnp.conj(y), jnp.exp(x)), c(50), c(50)),
            "bf16": (lambda x: x.astype(jnp.bfloat16) * x.astype(jnp.bfloat16) + 1, f(100)),
            "tangent": (lambda x: (jnp.tan(x), jnp.arctan2(x, x + 1), jnp.sinh(x), jnp.cosh(x)), f(100)),
            "inverse": (lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.arctanh(x)), np.tanh(f(100))),
        }
    )


def test_data_movement() -> None:
    check(
        {
            "transpose": (lambda x: x.transpose(2, 0, 1) + 1, f(5, 6, 7)),
            "reverse": (lambda x: x[::-1, ::-1] * 2, f(7, 40)),
            "slice": (lambda x: x[1:5:2, 3:20] * 2, f(7, 40)),
            "pad": (lambda x: jnp.pad(x, ((1, 2), (3, 4))) * 2, f(7, 40)),
            "interior pad": (lambda x: lax.pad(x, np.float32(7), ((1, 2, 1), (-1, 4, 2))) * 2, f(7, 40)),
            "concatenate": (lambda x, y: jnp.concatenate([x, y, x], 1) + 1, f(7, 4), f(7, 30)),
            "concatenate rows": (lambda x, y: jnp.concatenate([x, y, x], 0) + 1, f(3, 40), f(7, 40)),
            "roll": (lambda x: jnp.roll(x, 3, 1), f(7, 40)),
            "iota": (lambda x: x + jnp.arange(40.0)[None, :] * lax.broadcasted_iota(jnp.float32, (3, 40), 0), f(3, 40)),
            "broadcast": (lambda x, y: x[:, None] * y[None, :] + x[:, None], f(30), f(17)),
            "outer": (lambda x, y: x[:, None, :, None] * y[None, :, None, :], f(3, 4), f(5, 6)),
            "reshape": (lambda x: (x.reshape(6, 20) + 1).T.reshape(8, 15) * 2, f(5, 24)),
            "dynamic slice": (lambda x, k: lax.dynamic_slice(x, (k, k + 1), (2, 3)), f(7, 9), np.int32(2)),
            "update": (lambda x, u, k: lax.dynamic_update_slice(x, u, (k, k + 1)), f(7, 9), f(2, 3), np.int32(2)),
            "update past the end": (
                lambda x, u, k: lax.dynamic_update_slice(x * 2, u + 1, (k, k + 1)) + 1,
                f(7, 9),
                f(2, 3),
                np.int32(20),
            ),
            "empty": (lambda x: (x.sum(), x + 1, jnp.concatenate([x, jnp.ones(3)])), f(0)),
            "empty rows": (lambda x: (x.sum(1), x.sum(0)), f(3, 0)),
            "stack": (lambda x, y: jnp.stack([x, y], 1).reshape(-1), f(9), f(9)),
            "tile": (lambda x: jnp.tile(x, (2, 3)), f(3, 4)),
            "meshgrid": (jnp.meshgrid, f(3), f(4)),
        }
    )


def test_folds() -> None:
    check(
        {
            "rows": (lambda x: x.sum(1), f(100, 37)),
            "columns": (lambda x: x.sum(0), f(100, 37)),
            "everything": (lambda x: x.sum(), f(100, 37)),
            "outer and inner": (lambda x: x.sum((0, 2)), f(5, 6, 7)),
            "middle": (lambda x: x.sum(1), f(5, 6, 7)),
            "max": (lambda x: (x.max(1), x.min(0)), f(9, 130)),
            "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), f(9, 130)),
            "product": (lambda x: jnp.prod(x, 1), f(9, 5)),
            "all and any": (lambda x: (jnp.all(x > -3, 1), jnp.any(x > 2, 0)), f(9, 13)),
            "integers": (lambda x: (x.sum(1), x.max(0), x.prod(0)), i(9, 13)),
            "variance": (lambda x: (jnp.var(x), jnp.std(x)), f(1000)),
            "bf16": (lambda x: x.astype(jnp.bfloat16).sum(1), f(10, 100)),
            "complex": (lambda x: x.sum(0), c(10, 5)),
            "norm": (lambda x: jnp.linalg.norm(x, axis=1), f(10, 50)),
            "logsumexp": (lambda x: jax.scipy.special.logsumexp(x, axis=1), f(12, 30)),
        }
    )


WEIGHTS = f(64, 32)


def test_products() -> None:
    check(
        {
            "matrix": (lambda x: x @ WEIGHTS, f(10, 64)),
            "transposed": (lambda x, y: x.T @ y.T, f(64, 10), f(20, 64)),
            "vector": (lambda x: WEIGHTS @ x, f(32)),
            "inner": (jnp.vdot, f(333), f(333)),
            "batch": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), f(3, 5, 6), f(3, 6, 7)),
            "einsum": (lambda x, y: jnp.einsum("ijk,jkl->il", x, y), f(3, 5, 6), f(5, 6, 7)),
            "heads": (lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y), f(2, 5, 3, 8), f(2, 6, 3, 8)),
            "integers": (lambda x, y: x @ y, i(3, 5), i(5, 4)),
            "complex": (lambda x, y: x @ y, c(3, 5), c(5, 4)),
            "large": (lambda x, y: x @ y, f(150, 170), f(170, 130)),
            "bf16": (lambda x, y: x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16), f(8, 16), f(16, 8)),
            "mixed": (
                lambda x, y: lax.dot(
                    x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), preferred_element_type=jnp.float32
                ),
                f(8, 16),
                f(16, 8),
            ),
            "triangle": (lambda x: jnp.tril(x) @ x, f(20, 20)),
        }
    )


def test_control_flow() -> None:
    step = lambda j, a: a * 1.1 + j.astype(jnp.float32)  # noqa: E731
    check(
        {
            "while": (
                lambda n: lax.while_loop(
                    lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (np.int32(0), np.float32(1))
                ),
                np.int32(10),
            ),
            "for": (lambda x: lax.fori_loop(0, 10, step, x), f(50)),
            "swap": (lambda x, y: lax.fori_loop(0, 5, lambda j, s: (s[1], s[0]), (x, y)), f(50), f(50)),
            "swap and add": (lambda x, y: lax.fori_loop(0, 5, lambda j, s: (s[1], s[0] + 1), (x, y)), f(50), f(50)),
            "fibonacci": (lambda x, y: lax.fori_loop(0, 5, lambda j, s: (s[1], s[0] + s[1]), (x, y)), f(5), f(5)),
            "scan": (lambda x: lax.scan(lambda a, b: (a + b, a * b), jnp.zeros(4), x), f(10, 4)),
            "scan of scalars": (lambda x: lax.scan(lambda a, b: (a * 0.9 + b, a), np.float32(0), x), f(100)),
            "reverse scan": (lambda x: lax.scan(lambda a, b: (a + b, a), np.float32(0), x, reverse=True), f(20)),
            "if true": (lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x - 1, x), np.bool_(True), f(7)),
            "if false": (lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x, x), np.bool_(False), f(7)),
            **{
                f"switch {k}": (
                    lambda k, x: lax.switch(k, [lambda x: x, lambda x: x * 2, lambda x: -x], x),
                    np.int32(k),
                    f(7),
                )
                for k in (-1, 0, 1, 2, 9)
            },
            "nested": (
                lambda x: lax.fori_loop(0, 3, lambda j, a: lax.fori_loop(0, j, lambda k, b: b + k, a) * 2, x),
                f(6),
            ),
            "newton": (
                lambda x: lax.while_loop(
                    lambda s: jnp.max(jnp.abs(s * s - x)) > 1e-3, lambda s: 0.5 * (s + x / s), jnp.ones_like(x)
                ),
                np.abs(f(6)) + 1,
            ),
        }
    )


def loss(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    out = jnp.tanh(x @ w1 + b1) @ w2 + b2
    log_probability = out - jax.scipy.special.logsumexp(out, axis=1, keepdims=True)
    return -jnp.mean(jnp.sum(log_probability * y, axis=1))


def attention(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1]))
    return jnp.einsum("bqk,bkd->bqd", weights, v)


def rnn(w: Any, u: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> tuple[Any, Any]:
        h = jnp.tanh(h @ w + x @ u)
        return h, h.sum()

    return lax.scan(cell, jnp.zeros((4, 8)), xs)


def test_networks() -> None:
    normalized = lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)  # noqa: E731
    labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, 20)]
    check(
        {
            "softmax": (jax.nn.softmax, f(33, 57)),
            "layer norm": (normalized, f(16, 100)),
            "gelu": (lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.softplus(x), jax.nn.relu(x)), f(20, 30)),
            "perceptron": (
                jax.value_and_grad(loss, argnums=(0, 1, 2, 3)),
                *(f(64, 32), f(32), f(32, 10), f(10), f(20, 64), labels),
            ),
            "attention": (attention, f(2, 7, 8), f(2, 9, 8), f(2, 9, 8)),
            "gradient of attention": (
                jax.grad(lambda q, k, v: attention(q, k, v).sum()),
                *(f(2, 7, 8), f(2, 9, 8), f(2, 9, 8)),
            ),
            "recurrent": (rnn, f(8, 8) * 0.3, f(5, 8), f(6, 4, 5)),
            "gradient of recurrent": (
                jax.grad(lambda w, u, x: rnn(w, u, x)[0].sum()),
                *(f(8, 8) * 0.3, f(5, 8), f(6, 4, 5)),
            ),
            "vmap": (jax.vmap(lambda x, w: jnp.tanh(w @ x), in_axes=(0, None)), f(6, 5), f(4, 5)),
            "jvp": (lambda x, t: jax.jvp(lambda x: jnp.sin(x) * jnp.exp(x), (x,), (t,)), f(9), f(9)),
        }
    )


def test_double_precision() -> None:
    with jax.enable_x64(True):
        d = lambda *dims: random.standard_normal(dims)  # noqa: E731
        check(
            {
                "functions": (lambda x: (jnp.exp(x), jnp.tanh(x), jnp.sin(x), jnp.log(jnp.abs(x))), d(300)),
                "product": (lambda x, y: x @ y, d(20, 30), d(30, 10)),
                "rows": (lambda x: (x.sum(1), x.mean(), x.max(0)), d(20, 30)),
                "long": (lambda x: (x * 3, x // 7, x % 7, x.sum()), random.integers(-(2**60), 2**60, 50)),
            }
        )


LAYOUTS = """HloModule layouts, entry_computation_layout={{(f32[4,6]{{{0}}})->f32[6,4]{{{1}}}}}
ENTRY main {{
  p = f32[4,6]{{{0}}} parameter(0)
  ROOT t = f32[6,4]{{{1}}} transpose(p), dimensions={{1,0}}
}}"""


@pytest.mark.parametrize("layouts", [("1,0", "1,0"), ("0,1", "1,0"), ("1,0", "0,1"), ("0,1", "0,1")], ids=" to ".join)
def test_entry_layouts(layouts: tuple[str, str]) -> None:
    """What a module says of its entry's layouts stays between it and its text: numpy arrays are logical."""
    value = f(4, 6)
    np.testing.assert_array_equal(xlapy.compile(LAYOUTS.format(*layouts))(value), value.T)
