"""Slices at known places, which kernels read where they lie."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy

LOOPS_STAY = frozenset({"unroll-loops"})
ROWS, DEPTH, WIDTH = 30, 24, 40
MATRIX = np.random.default_rng(1).standard_normal((ROWS, DEPTH), np.float32)


def arrays() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = (4, ROWS, WIDTH), (WIDTH, DEPTH)
    return [generator.standard_normal(shape, np.float32) / np.float32(4) for shape in shapes]


def of_products(x: Any, w: Any) -> Any:
    """Rows of a matrix, a matrix of several, and two of these, one of them turned round."""
    return x[0, 3:20] @ w, x[2] @ w, x[1] @ x[3].T


def of_siblings(x: Any, w: Any) -> Any:
    hidden = jnp.tanh(x[0] @ w) @ w.T
    return jnp.tanh((hidden + x[2]) @ w) + x[1] @ w


def of_convolutions(x: Any, w: Any) -> Any:
    return lax.conv(x[1:3, :, None, :], x[3, :8, :ROWS, None, None], (1, 1), "SAME")


def of_libraries(x: Any, w: Any) -> Any:
    """One library after the other."""
    folded = jnp.sum(x[1:3], axis=2), jnp.max(x[2, 5:9], axis=0)
    return jnp.sort(x[1:3], axis=-1), jnp.fft.fft(x[3]), jnp.cumsum(x[2], axis=1), lax.top_k(x[3, 4:8], 3), folded


def of_kernels(x: Any, w: Any) -> Any:
    """A transpose, rows that are picked, and rows that are joined, of one part that all of them read."""
    part = x[1:3]
    return part.T, part[:, jnp.array([3, 1, 29])], jnp.concatenate([part[0, 3:9], part[1, :4]]), part @ w


def of_values(x: Any, w: Any) -> Any:
    """Parts of what is made, some of it a result too."""
    made = jnp.einsum("brw,wd->brd", x, w)
    other = jnp.einsum("brw,wd->brd", -x, w)
    return made, made[1] @ w.T, jnp.sort(other[1:3], axis=-1)


def of_parts(x: Any, w: Any) -> Any:
    """Parts of what is a part already, and of that under another shape."""
    part = lax.optimization_barrier(x[1:3])
    flat = part.reshape(2 * ROWS, WIDTH)
    return flat[4:50] @ w, part[1] @ w, jnp.sort(flat[7:9], axis=-1)


def of_bytes(x: Any, w: Any) -> Any:
    whole = (x * 50).astype(jnp.int8)
    narrow = lax.optimization_barrier((whole, x.astype(jnp.bfloat16), x > 0))
    return jnp.sort(narrow[0][1:3], axis=-1), narrow[1][2] @ w.astype(jnp.bfloat16), jnp.cumsum(narrow[2][1], axis=0)


def in_a_loop(x: Any, w: Any) -> Any:
    """Of what all steps read, and of what a step has made."""

    def step(i: Any, state: Any) -> Any:
        made = jnp.tanh(state @ w)
        return jnp.sin(i * x[1, :, :DEPTH] + made) @ w.T + jnp.sort(made[3:19], axis=-1).sum() + x[2]

    return lax.fori_loop(0, 3, step, x[0])


def of_a_branch(x: Any, w: Any) -> Any:
    return lax.cond(x[0, 0, 0] > 0, lambda: x[1] @ w, lambda: x[2, :, ::-1] @ w)


def of_constants(x: Any, w: Any) -> Any:
    table = lax.optimization_barrier(jnp.asarray(MATRIX))
    return table[3:9] @ w.T, jnp.sort(table[20:], axis=-1)


def of_what_is_changed(x: Any, w: Any) -> Any:
    """Who reads a part may come behind the change, which then is of a copy: of the part, not of the whole."""
    changed = lax.dynamic_update_index_in_dim(x, 2 * x[1], 2, 0)
    return changed, x[3] @ w + (changed[0] @ w)


def of_changing_state(x: Any, w: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        product = (state[1] @ w) @ w.T
        return lax.dynamic_update_index_in_dim(jnp.cos(state), product, i, 0)

    return lax.fori_loop(0, 4, step, x)


def of_what_is_much_larger(x: Any, w: Any) -> Any:
    """A part that is not worth to keep the rest for."""
    made = jnp.sort(x.reshape(40, -1), axis=-1)
    return jnp.sort(made[3, :100]), jnp.cumsum(made, axis=0)


def of_a_result(x: Any, w: Any) -> Any:
    """What the caller gets is an array of its own."""
    return jnp.cumsum(x[2:], axis=0)[1]


def in_pieces(x: Any, w: Any) -> Any:
    """Columns, and every other row, lie in many pieces."""
    return x[1, :, 3:9] @ w[3:9], jnp.sort(x[:, ::2], axis=-1)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize(
    ("function", "copied"),
    [
        (of_products, 0),
        (of_siblings, 0),
        (of_convolutions, 1),  # the kernel's columns lie in pieces
        (of_libraries, 0),
        (of_kernels, 0),
        (of_values, 0),
        (of_bytes, 0),
        (of_constants, 0),
        (in_a_loop, 1),  # the state is made of a part
        (of_a_branch, 1),  # the condition is an element
        (of_parts, 3),  # a barrier keeps the array
        (of_what_is_changed, 1),
        (of_changing_state, 1),
        (of_what_is_much_larger, 1),
        (of_a_result, 1),
        (in_pieces, 2),
    ],
)
def test_results_are_those_of_copies(function: Any, copied: int, num_threads: int) -> None:
    text = jax.jit(function, keep_unused=True).lower(*arrays()).as_text()
    options = xlapy.CompileOptions(num_threads=num_threads, verify=True, disabled_passes=LOOPS_STAY)
    program = xlapy.compile(text, options)
    assert "slice" in program.hlo_text()
    kernels = program.profile(*arrays()).kernels
    assert sum(kernel.name.startswith("slice") for kernel in kernels) == copied
    expected = jax.tree.leaves(xlapy.evaluate(text, *arrays()))
    for got, wanted in zip(jax.tree.leaves(program(*arrays())), expected, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(
            np.asarray(got, np.complex64), np.asarray(wanted, np.complex64), rtol=1e-4, atol=1e-5
        )
