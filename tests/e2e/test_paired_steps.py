"""Loops whose state would be copied take steps in pairs: any number of them, known or not, as XLA takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xlapy


def relaxed(x: Any) -> Any:
    """The mean of the neighbours on a ring of rows."""
    return 0.5 * (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0))


def for_some_steps(x: Any, steps: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[0] < steps, lambda s: (s[0] + 1, relaxed(s[1])), (0, x))


def until_it_rests(x: Any, tolerance: Any) -> Any:
    """What goes on depends on what was made, and there is a second array that never changes."""

    def step(state: Any) -> Any:
        number, now, kept, _ = state
        new = relaxed(now) + kept
        return number + 1, new, kept, jnp.abs(new - now).max()

    return jax.lax.while_loop(lambda s: s[3] > tolerance, step, (0, x, 0.001 * x[::-1], jnp.float32(jnp.inf)))


def wave(x: Any, steps: Any) -> Any:
    """Two arrays that change places."""
    step = lambda s: (s[0] + 1, s[2], relaxed(s[2]) - 0.5 * s[1])  # noqa: E731
    return jax.lax.while_loop(lambda s: s[0] < steps, step, (0, x, x * 0.5))


def known(steps: int) -> Callable[..., Any]:
    return lambda x, more: jax.lax.fori_loop(0, steps, lambda _, x: relaxed(x), x + more)


X = np.random.default_rng(0).standard_normal((33, 40)).astype(np.float32)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "some": (for_some_steps, [np.int32(number) for number in range(7)]),
    "until": (until_it_rests, [np.float32(bound) for bound in (10, 1, 0.5, 0.3, 0.2, 0.15, 0.1)]),
    "wave": (wave, [np.int32(number) for number in (0, 1, 2, 5, 8)]),
    "known to be odd": (known(7), [np.float32(0)]),
    "known to be even": (known(8), [np.float32(0)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_many_steps_as_xla(name: str) -> None:
    function, bounds = PROGRAMS[name]
    lowered = jax.jit(function).lower(X, bounds[0])
    program = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(verify=True))
    assert ("conditional(" in program.hlo_text()) is (name != "known to be even")
    reference = lowered.compile()
    for bound in bounds:
        for got, expected in zip(jax.tree.leaves(program(X, bound)), jax.tree.leaves(reference(X, bound)), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
