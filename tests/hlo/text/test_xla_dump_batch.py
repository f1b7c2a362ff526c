"""XLA's dumps of many programs, before and after its own passes: each runs, and gives XLA's numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.stablehlo import test_jax_programs as programs
from tests.support.xla_flags import usual_fusions
from xlapy.hlo.text import parse, structural_equal, to_text
from xlapy.hlo.verifier import verify
from xlapy.support.errors import ExecutionError, ParseError


def layers(x, v):
    w = jnp.outer(v, v)
    for _ in range(3):
        x = jax.nn.gelu(x @ w[: x.shape[1], : x.shape[1]])
    return jax.nn.logsumexp(x, 1), jax.nn.one_hot(jnp.argmax(x, 1), 5), lax.sort((x, x), num_keys=1)


def images(x, v):
    image = jnp.arange(2 * 8 * 8 * 3, dtype=jnp.float32).reshape(2, 8, 8, 3) * v[0] / 100
    kernel = jnp.ones((3, 3, 3, 4))
    largest = lambda i: lax.reduce_window(i, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()  # noqa: E731
    return (
        lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        lax.reduce_window(image, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        jax.grad(largest)(image),
    )


def random_numbers(x, v):
    key = jax.random.key(0)
    return jax.random.normal(key, (33,)), jax.random.bits(key, (7,)) % 1000, jax.random.permutation(key, v)


def large_products(x, v):
    a = jnp.ones((300, 300))
    return (a * v[0]) @ (a + v[1]), jnp.einsum("bij,bjk->bik", jnp.ones((4, 64, 64)) * v[0], jnp.ones((4, 64, 64)))


def scatters(x, v):
    i = (v * 0).astype(jnp.int32)
    return (
        x.at[i].add(v[0]), jnp.zeros(10).at[jnp.arange(5) * 2].max(v[:5]), jax.ops.segment_sum(v, i, 4),
        jnp.unique(jnp.round(v), size=4), jnp.histogram(v, 4)[0], jnp.argsort(v), jnp.searchsorted(jnp.sort(v), v[:3]),
    )  # fmt: skip


BOTH = (programs.MATRIX, programs.VECTOR)
BATCH = [
    *((function, arguments) for function, arguments in programs.PROGRAMS if function is not programs.constants),
    *((function, BOTH) for function in (layers, images, random_numbers, large_products, scatters)),
]


@cache
def by_xla(number: int) -> tuple[Any, Any, list[Any]]:
    """A program of the batch as XLA gets it, as XLA compiles it, and its results: both dumps have these."""
    function, arguments = BATCH[number]
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    compiled = lowered.compile(usual_fusions())
    return lowered, compiled, jax.tree.leaves(compiled(*arguments))


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("number", range(len(BATCH)), ids=[function.__name__ for function, _ in BATCH])
def test_dumps_run(number: int, optimized: bool) -> None:
    lowered, compiled, expected = by_xla(number)
    text = compiled.as_text() if optimized else lowered.as_text(dialect="hlo")
    module = parse(text)
    verify(module)
    assert structural_equal(parse(to_text(module)), module)
    arguments = [np.asarray(argument) for argument in BATCH[number][1]]
    results = jax.tree.leaves(xlapy.compile(text)(*arguments))
    for number, (result, value) in enumerate(zip(results, expected, strict=True)):
        wide = np.complex128 if np.iscomplexobj(result) else np.float64
        result, value = np.asarray(result).astype(wide), np.asarray(value).astype(wide)
        np.testing.assert_allclose(result, value, rtol=2e-4, atol=2e-5, err_msg=f"result {number}")


def test_a_library_that_we_do_not_have_is_named() -> None:
    matrix = np.eye(4, dtype=np.float32)
    text = jax.jit(jnp.linalg.cholesky).lower(matrix).as_text(dialect="hlo")
    np.testing.assert_array_equal(xlapy.compile(text)(matrix), matrix)
    with pytest.raises(ExecutionError, match="other_spotrf"):
        xlapy.compile(text.replace("lapack_spotrf", "other_spotrf"))(matrix)


def test_values_that_were_left_out_are_named() -> None:
    text = jax.jit(programs.constants).lower().compile(usual_fusions()).as_text()
    with pytest.raises(ParseError, match="elided"):
        parse(text)


def test_a_scalar_bitcast_in_a_comparator_stays_a_scalar() -> None:
    text = """HloModule m
    order {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      x = s32[] bitcast(a)
      y = s32[] bitcast(b)
      ROOT c = pred[] compare(x, y), direction=LT
    }
    ENTRY e {
      p = f32[5] parameter(0)
      ROOT s = f32[5] sort(p), dimensions={0}, to_apply=order
    }"""
    values = np.array([3, 1, 2, 0.5, 7], np.float32)
    np.testing.assert_array_equal(xlapy.compile(text)(values), np.sort(values))
    again = xlapy.stablehlo.to_text(parse(text))
    np.testing.assert_array_equal(xlapy.compile(again)(values), np.sort(values))
