"""Donated arguments of JAX functions: numpy arrays become results, jax arrays are deleted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 - behind the check that jax is there
from jax import export  # noqa: E402

import xlapy.jax  # noqa: E402

VECTOR = np.array([1.5, -2, 3.25], np.float32)
COUNTS = np.array([3, 1, 2], np.float32)


def test_a_donated_numpy_array_becomes_the_result() -> None:
    add = xlapy.jax.jit(lambda tree, y: {"moved": tree["x"] + y, "norm": tree["x"].sum()}, donate_argnums=(0,))
    given, counts = VECTOR.copy(), COUNTS.copy()
    result = add({"x": given}, counts)
    assert result["moved"] is given
    np.testing.assert_array_equal(given, VECTOR + counts)
    np.testing.assert_allclose(result["norm"], VECTOR.sum())
    np.testing.assert_array_equal(add({"x": counts}, counts)["moved"], COUNTS * 2)
    np.testing.assert_array_equal(counts, COUNTS)


def test_a_donated_jax_array_is_deleted() -> None:
    def step(x: Any, y: Any) -> Any:
        return x + y, (x * y).sum()  # whose common part keeps xlapy from writing over x

    for donate in ({"donate_argnums": 0}, {"donate_argnames": "x"}):
        function, theirs = xlapy.jax.jit(step, **donate, results="jax"), jax.jit(step, **donate)
        given, same = jnp.asarray(VECTOR) * 1, jnp.asarray(VECTOR) * 1
        alias = np.asarray(given)
        result, expected = function(given, COUNTS), theirs(same, COUNTS)
        np.testing.assert_allclose(result[0], expected[0])
        assert given.is_deleted() and same.is_deleted()
        np.testing.assert_array_equal(alias, VECTOR)


def test_a_jax_result_shares_no_memory_with_a_numpy_argument() -> None:
    """Who calls again with the same numpy array would change a jax array, which cannot change."""

    def double(x: Any) -> Any:
        return x * 2

    exported = export.export(jax.jit(double, donate_argnums=0))(VECTOR)
    for function in (
        xlapy.jax.jit(double, donate_argnums=0, results="jax"),
        xlapy.jax.compile_exported(exported, results="jax"),
    ):
        given = VECTOR.copy()
        first, second = function(given), function(given)
        np.testing.assert_array_equal(given, VECTOR)
        np.testing.assert_array_equal(first, VECTOR * 2)
        np.testing.assert_array_equal(second, VECTOR * 2)


def test_an_exported_function_donates_as_it_did_before() -> None:
    exported = export.export(jax.jit(lambda x, y: (y.sum(), x + y), donate_argnums=0))(VECTOR, COUNTS)
    given = VECTOR.copy()
    total, moved = xlapy.jax.compile_exported(exported)(given, COUNTS)
    assert moved is given and total == 6


def test_what_cannot_be_used_is_not_deleted() -> None:
    given = jnp.arange(6.0)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        result = xlapy.jax.jit(lambda x: x.reshape(2, 3).sum(0), donate_argnums=0)(given)
    np.testing.assert_array_equal(result, [3, 5, 7])
    assert not given.is_deleted()


PLACES, HEADS, FEATURES, LAYERS, BATCH = 32, 2, 4, 2, 2


def decode(caches: Any, weights: Any, x: Any, place: Any) -> Any:
    """One token through layers of attention, whose keys and values stay in caches."""
    kept = []
    for (keys, values), weight in zip(caches, weights, strict=True):
        query, key, value = ((x @ part).reshape(BATCH, 1, HEADS, FEATURES) for part in weight)
        keys = jax.lax.dynamic_update_slice(keys, key, (0, place, 0, 0))
        values = values.at[:, place].set(value[:, 0])
        scores = jnp.einsum("bhd,bthd->bht", query[:, 0], keys)
        seen = jax.nn.softmax(jnp.where(jnp.arange(PLACES) <= place, scores, -jnp.inf))
        x = x + jnp.einsum("bht,bthd->bhd", seen, values).reshape(x.shape)
        kept.append((keys, values))
    return x, kept


def decode_in_a_loop(caches: Any, weights: Any, x: Any, place: Any) -> Any:
    """All layers in one scan, which carries one cache."""

    def layer(carried: Any, number: Any) -> Any:
        x, cache = carried
        key = (x @ weights[0][0]).reshape(1, BATCH, 1, HEADS, FEATURES)
        cache = jax.lax.dynamic_update_slice(cache, key, (number, 0, place, 0, 0))
        return (x + cache[number].sum(1).reshape(x.shape), cache), None

    return jax.lax.scan(layer, (x, caches), jnp.arange(LAYERS))[0]


def test_caches_are_updated_in_place() -> None:
    generator = np.random.default_rng(0)
    width = HEADS * FEATURES
    weights = generator.standard_normal((LAYERS, 3, width, width)).astype(np.float32) / 4
    weights = [tuple(layer) for layer in weights]
    x = generator.standard_normal((BATCH, width)).astype(np.float32)
    dims = (BATCH, PLACES, HEADS, FEATURES)
    for function, cache in (
        (decode, [(np.zeros(dims, np.float32), np.zeros(dims, np.float32)) for _ in range(LAYERS)]),
        (decode_in_a_loop, np.zeros((LAYERS, *dims), np.float32)),
    ):
        step = xlapy.jax.jit(function, donate_argnums=0, options=xlapy.CompileOptions(verify=True))
        theirs = jax.jit(function)
        expected = jax.tree.map(jnp.asarray, jax.tree.map(np.copy, cache))
        caches = cache
        for place in range(3):
            result, caches = step(caches, weights, x, np.int32(place))
            wanted, expected = theirs(expected, weights, x, np.int32(place))
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
            jax.tree.map(lambda ours, other: np.testing.assert_allclose(ours, other, atol=1e-5), caches, expected)
        for held, first in zip(jax.tree.leaves(caches), jax.tree.leaves(cache), strict=True):
            assert held is first
