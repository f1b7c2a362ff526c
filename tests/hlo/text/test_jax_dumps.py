"""Programs that XLA itself prints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.xla_flags import usual_fusions
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse, structural_equal, to_text
from xlapy.hlo.verifier import verify


def step(x, y):
    z = jax.lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c) @ y + i, x)
    z = jnp.where(z > 0, z, jnp.exp(z))
    w = jax.lax.cond(z[0, 0] > 0, lambda a: a * 2, lambda a: a - 1, z)
    w = jax.nn.softmax(w.astype(jnp.bfloat16), axis=-1).astype(jnp.float32)
    chosen = jax.lax.switch(jnp.int32(y[0, 0]), [jnp.sin, jnp.cos, jnp.exp], x)
    joined = jnp.concatenate([w, w]).T[::2]
    return w, joined, chosen, jnp.pad(x, ((1, 2), (0, 1))), jnp.argmax(x, axis=1), jnp.flip(x, 0), jnp.arange(5)


@pytest.fixture(scope="module")
def dumps() -> tuple[str, str, str, tuple, list]:
    generator = np.random.default_rng(0)
    arguments = tuple(generator.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
    lowered = jax.jit(step).lower(*arguments)
    before = lowered.compiler_ir("hlo")
    compiled = lowered.compile(usual_fusions())
    return before.as_hlo_text(), before.as_hlo_module().to_string(), compiled.as_text(), arguments, compiled(*arguments)


def test_short_and_long_form_are_the_same_module(dumps) -> None:
    short, long = parse(dumps[0]), parse(dumps[1])
    assert structural_equal(short, long)
    assert any(instruction.metadata.source_line for instruction in long.instructions())


@pytest.mark.parametrize("which", [0, 1, 2], ids=["short", "long", "optimized"])
def test_dumps_parse_verify_round_trip_and_give_the_same_numbers(dumps, which: int) -> None:
    module = parse(dumps[which])
    verify(module)
    assert structural_equal(parse(to_text(module)), module)
    for ours, theirs in zip(evaluate(module, *dumps[3]), dumps[4], strict=True):
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=2e-2, atol=1e-5)
