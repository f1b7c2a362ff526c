"""Batches of convolutions in pieces give what the whole gives, bit by bit, for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xlapy
from tests.support.native import on_threads

LABELS = ("NHWC", "HWIO", "NHWC")


def normal(*dims: int) -> Any:
    return np.random.default_rng(len(dims)).standard_normal(dims).astype(np.float32)


def convolved(x: Any, kernel: Any) -> Any:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LABELS)


def pooled(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def two_layers(x: Any, first: Any, bias: Any, second: Any) -> Any:
    x = pooled(jax.nn.relu(convolved(x, first) + bias))
    return pooled(jax.nn.relu(convolved(x, second))).reshape(x.shape[0], -1)


def with_a_shortcut(x: Any, first: Any, bias: Any, second: Any) -> Any:
    """The mean of what is added up, of images turned over before; nothing is left of a piece but a row."""
    made = convolved(jnp.tanh(x[:, ::-1]), first)
    return (made + convolved(made, jnp.concatenate([second, second], 3)[..., : made.shape[3]]) * bias).mean((1, 2))


def channels_first(x: Any, first: Any, bias: Any, second: Any) -> Any:
    x = jnp.transpose(x, (0, 3, 1, 2))
    made = jax.lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=("NCHW", "HWIO", "NCHW"))
    return jax.lax.reduce_window(made, 0.0, jax.lax.add, (1, 1, 4, 4), (1, 1, 4, 4), "VALID")


def of_some_images(x: Any, first: Any, bias: Any, second: Any) -> Any:
    """In a loop, with what only the loop knows."""
    return jax.lax.fori_loop(
        0, 2, lambda i, c: c + two_layers(x * i.astype(np.float32), first, bias, second), jnp.zeros((23, 384))
    )


PROGRAMS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (two_layers, with_a_shortcut, channels_first, of_some_images)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_the_whole_and_as_xla_with_any_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlapy.passes.batch_pieces.LEAST_BYTES", 1 << 18)
    monkeypatch.setattr("xlapy.passes.batch_pieces.PIECE_BYTES", 1 << 17)
    arguments = normal(23, 16, 16, 3), normal(3, 3, 3, 32), normal(32), normal(3, 3, 32, 24)
    lowered = jax.jit(PROGRAMS[name], keep_unused=True).lower(*arguments)
    wanted = lowered.compile()(*arguments)
    whole = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(disabled_passes={"batch-in-pieces"}))
    expected = whole(*arguments)
    np.testing.assert_allclose(expected, wanted, rtol=1e-4, atol=1e-3)
    assert "piece" not in whole.hlo_text()
    program = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(verify=True))
    assert "has_more_pieces" in program.hlo_text()
    for threads in (1, 2, 3, 8):
        assert np.asarray(on_threads(program, threads)(*arguments)).tobytes() == np.asarray(expected).tobytes()


def test_room_for_pieces_only() -> None:
    """23 images: the last piece begins with images that the one before has seen."""
    arguments = normal(23, 96, 96, 3), normal(3, 3, 3, 32), normal(32), normal(3, 3, 32, 24)
    lowered = jax.jit(two_layers).lower(*arguments)
    program = xlapy.compile(lowered.as_text())
    whole = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(disabled_passes={"batch-in-pieces"}))
    assert np.asarray(program(*arguments)).tobytes() == np.asarray(whole(*arguments)).tobytes()
    assert 3 * program.compile_stats().arena_bytes < whole.compile_stats().arena_bytes
