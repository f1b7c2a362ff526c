"""Programs of JAX whose transposes disappear in layouts: the same numbers as XLA, and no copies but those expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.jax.agreement import assert_agree
from xlapy.hlo.leaves import moves_nothing


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(7)
    return [(generator.standard_normal(shape) * 0.3).astype(np.float32) for shape in shapes]


def copies(function: Callable[..., Any], *arguments: Any, without: str = "") -> list[str]:
    """The transposes in a compiled program that move elements, by the op of their operand. `without` is a pass."""
    text = jax.jit(function, keep_unused=True).lower(*arguments).as_text()
    options = xlapy.CompileOptions(disabled_passes=frozenset({without} - {""}))
    module = xlapy.hlo.parse(xlapy.compile(text, options).hlo_text())
    return [
        instruction.operands[0].opcode
        for computation in module.computations()
        for instruction in computation
        if instruction.opcode == "transpose" and not moves_nothing(instruction)
    ]


def gradient(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    return jax.grad(lambda *arguments: jnp.sum(function(*arguments) ** 2), argnums=tuple(range(count)))


# -- attention ---------------------------------------------------------------------------------------------------------

BATCH, LENGTH, HEADS, SIZE = 2, 48, 4, 32
WIDTH = HEADS * SIZE


def attention(x: Any, packed: Any, w: Any) -> Any:
    """Queries, keys and values from one product, heads in front, and back."""
    parts = (x @ packed).reshape(BATCH, LENGTH, 3, HEADS, SIZE).transpose(2, 0, 3, 1, 4)
    q, k, v = parts[0], jnp.tanh(parts[1]), parts[2]
    weights = jax.nn.softmax(q @ k.swapaxes(-1, -2), axis=-1)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ w


def test_attention_reads_and_writes_heads_where_they_lie() -> None:
    arguments = arrays((BATCH, LENGTH, WIDTH), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH))
    assert not copies(attention, *arguments)
    assert_agree(attention, *arguments)
    assert_agree(gradient(attention, 3), *arguments, tolerance=1e-4)


def einsums(x: Any, y: Any, z: Any) -> Any:
    """Products whose batches, rows and columns lie in all places."""
    a = jnp.einsum("abcd,ebcd->aecb", x, y)
    b = jnp.einsum("abcd,ed->eabc", x, z)
    c = jnp.einsum("abcd,ebcd->ceab", jnp.tanh(x.transpose(0, 2, 1, 3)), y.transpose(0, 2, 1, 3))
    d = jax.vmap(lambda s, t: s @ t.T, in_axes=(1, 1), out_axes=1)(x[0], y[0])
    e = jax.vmap(jnp.dot, in_axes=(2, 0), out_axes=1)(x[:, :, 0], x[0, :, 0].T)
    return a, b, jnp.exp(-(c**2)).transpose(2, 3, 0, 1), d, e, (z @ z.T).T + 1, jnp.sin(z @ z.T).T @ z


def test_einsums() -> None:
    assert_agree(einsums, *arrays((12, 16, 20, 24), (12, 16, 20, 24), (40, 24)), tolerance=1e-4)


# -- images with channels first ----------------------------------------------------------------------------------------

CHANNELS = 32


def convolve(x: Any, k: Any, stride: int = 1) -> Any:
    numbers = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(x, k, (stride, stride), "SAME", dimension_numbers=numbers)


def normalized(x: Any) -> Any:
    mean = x.mean((0, 2, 3), keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean((0, 2, 3), keepdims=True) + 1e-5)


def group_normalized(x: Any) -> Any:
    n, c, h, w = x.shape
    groups = x.reshape(n, 8, c // 8, h, w)
    mean = groups.mean((2, 3, 4), keepdims=True)
    spread = ((groups - mean) ** 2).mean((2, 3, 4), keepdims=True)
    return ((groups - mean) * lax.rsqrt(spread + 1e-5)).reshape(x.shape)


def network(x: Any, k: Any, l: Any, m: Any, w: Any, b: Any) -> Any:  # noqa: E741
    y = jax.nn.relu(normalized(convolve(x, k)) + b[None, :, None, None])
    z = convolve(y, l)
    y = lax.reduce_window(jax.nn.relu(x + z), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    y = jnp.concatenate([group_normalized(y), jnp.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))[:, :, 1:-1, 1:-1]], 1)
    y = jax.nn.gelu(convolve(y, m))
    return y.mean((2, 3)) @ w, y[:, ::-1, 1:3]


def test_images_with_channels_first() -> None:
    k, wide = (CHANNELS, CHANNELS, 3, 3), (64, 2 * CHANNELS, 3, 3)
    arguments = arrays((2, CHANNELS, 16, 16), k, k, wide, (64, 10), (CHANNELS,))
    assert "convolution" not in copies(network, *arguments)
    assert_agree(network, *arguments, tolerance=1e-4)
    assert_agree(gradient(lambda *a: network(*a)[0], 6), *arguments, tolerance=5e-4)


def pointwise(x: Any, k: Any, l: Any, m: Any) -> Any:  # noqa: E741
    y = jax.nn.relu(convolve(x, k))
    return x + convolve(jax.nn.relu(convolve(y, l)), m)


def test_narrow_waists() -> None:
    arguments = arrays((2, 64, 14, 14), (32, 64, 1, 1), (32, 32, 3, 3), (64, 32, 1, 1))
    assert_agree(pointwise, *arguments, tolerance=1e-4)
    assert_agree(gradient(pointwise, 4), *arguments, tolerance=5e-4)


# -- loops -------------------------------------------------------------------------------------------------------------


def recurrent(x: Any, w: Any, u: Any) -> Any:
    """A batch of sequences, each step of which is one of the loop: time is moved in front, and back."""

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        state = jnp.tanh(now @ w + state @ u)
        return state, state

    _, states = lax.scan(step, jnp.zeros((x.shape[0], u.shape[0])), x.swapaxes(0, 1))
    return states.swapaxes(0, 1)


def turning(x: Any, w: Any) -> Any:
    """Loops whose bodies read their state the other way round, one within the other."""

    def outer(_: int, s: Any) -> Any:
        inner = lax.fori_loop(0, 3, lambda i, t: jnp.tanh(t.T * 0.5 + i).T + 1, s)
        return jnp.cos((inner.T @ w) * 0.01).T

    return lax.fori_loop(0, 5, outer, x), lax.while_loop(lambda s: s[1] < 6, lambda s: ((w @ s[0]).T, s[1] + 1), (x, 0))


def test_loops() -> None:
    sequences = arrays((8, 20, 24), (24, 32), (32, 32))
    assert not copies(recurrent, *sequences, without="batch-scans")
    assert copies(recurrent, *sequences) == ["parameter"]  # for the product of all steps
    assert_agree(recurrent, *sequences)
    assert_agree(gradient(recurrent, 3), *sequences, tolerance=1e-4)
    assert_agree(turning, *[array * 0.3 for array in arrays((64, 64), (64, 64))], tolerance=1e-4)


# -- everything that follows -------------------------------------------------------------------------------------------


def followers(x: Any, y: Any, i: Any) -> Any:
    t = x.transpose(2, 0, 1)
    return (
        jnp.sort(t, axis=1).transpose(1, 2, 0),
        jnp.argsort(t, axis=2).transpose(1, 2, 0),
        jnp.cumsum(t, axis=0).transpose(1, 2, 0),
        jnp.argmax(t, axis=0),
        jax.nn.softmax(t, axis=1).transpose(1, 2, 0),
        lax.dynamic_update_slice(t, lax.dynamic_slice(t, (i, 0, i), (4, 12, 5)) * 2, (0, i, 1)).transpose(1, 2, 0),
        (jnp.flip(t, 1)[1:9:2] + jnp.arange(4.0)[:, None, None]).transpose(1, 2, 0),
        lax.reduce_window(t, 0.0, lax.add, (1, 3, 2), (1, 2, 1), "SAME").transpose(1, 2, 0),
        jnp.abs(jnp.fft.fft(x, axis=0)).sum(2),
        jnp.where(t > 0, t, y.T[:, :, None]).std(0),
        jnp.take(t, jnp.array([3, 1]), axis=2).transpose(1, 2, 0),
        lax.cond(i > 1, lambda a: jnp.exp(a).transpose(1, 0, 2), lambda a: a.transpose(1, 0, 2) * 3, t),
        (t - t.transpose(0, 2, 1)[:, ::-1]) if t.shape[1] == t.shape[2] else t.sum(),
    )


@pytest.mark.parametrize("element_type", [np.float32, np.float16])
def test_followers(element_type: Any) -> None:
    x, y = (np.round(array * 40).astype(element_type) for array in arrays((12, 12, 40), (12, 40)))
    assert_agree(followers, x, y, np.int32(2), tolerance=1e-4 if element_type == np.float32 else None)
