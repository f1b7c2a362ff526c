"""Gather, scatter, sort and top_k as JAX writes them: read, evaluated, written again, and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.native import flatten
from xlapy import stablehlo
from xlapy_runtime.errors import ParseError, ShapeError, UnsupportedError

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
lax = pytest.importorskip("jax.lax")

RANDOM = np.random.default_rng(11)
MATRIX = RANDOM.normal(size=(9, 7)).astype(np.float32)
INDICES = np.array([3, -1, 0, 8, 3, 12], np.int32)
NUMBERS = RANDOM.integers(-6, 6, size=(9, 7)).astype(np.int32)
CUBE = RANDOM.normal(size=(3, 4, 5)).astype(np.float32)


def indexing(x, i, c):
    j = jnp.abs(i) % 7
    return (
        x[i], x[:, j], x[i, j], x[i % 9, 2:5], x.at[i].get(mode="clip"), x.at[i].get(mode="fill", fill_value=7.0),
        jnp.take(x, i, axis=0), jnp.take(x, j, axis=1, mode="wrap"), jnp.take_along_axis(x, jnp.argsort(x, axis=0), 0),
        c[:, j % 4][..., None], c[j % 3, :, j % 5], jax.vmap(lambda row, k: row[k])(x, jnp.arange(9) % 7),
        x[jnp.array([[0, 1], [2, 3]])], x[jnp.newaxis, i], c[..., j[:3] % 5, :1],
        jax.vmap(lambda a, k: lax.dynamic_slice(a, (k,), (3,)))(x, jnp.arange(9)),
    )  # fmt: skip


def updates(x, i, c):
    j = jnp.abs(i) % 7
    rows = x[:6] * 2
    return (
        x.at[i].set(rows), x.at[i].add(rows), x.at[i].multiply(2.0), x.at[i].min(0.0), x.at[i].max(rows),
        x.at[:, j].add(1.0), x.at[i, j].add(3.0), x.at[2:5, 1:].set(0.0), x.at[i].apply(jnp.abs),
        c.at[:, j % 4, 0].add(1.0), c.at[j % 3, :, j % 5].set(5.0), jnp.zeros(9).at[i].add(1.0, mode="drop"),
        jax.vmap(lambda row, k: row.at[k].add(1.0))(x, jnp.arange(9) % 7), jnp.zeros(5, jnp.int8).at[j % 5].add(1),
        jnp.bincount(j, length=7), jax.ops.segment_sum(rows, j, 7), jax.ops.segment_max(rows, j, 7),
        jnp.zeros(9, bool).at[i].set(True), jnp.histogram(x, bins=4)[0],
        jax.vmap(lambda a, u, k: lax.dynamic_update_slice(a, u, (k,)))(x, rows[:, :2].repeat(2, 0)[:9], jnp.arange(9)),
    )  # fmt: skip


def gradients(x, i, c):
    j = jnp.abs(i) % 7

    def loss(table):
        hidden = table[i] * x[:6] + table[:, j].sum() + jnp.sort(table, axis=1)[:, -1].sum()
        return (hidden**2).sum() + lax.top_k(table, 2)[0].sum() + jnp.take_along_axis(table, NUMBERS % 7, 1).sum()

    return jax.grad(loss)(x), jax.grad(lambda c: (c[:, j % 4] ** 2).sum())(c), jax.grad(lambda c: c.max())(c)


def order(x, n):
    return (
        jnp.sort(x), jnp.sort(x, axis=0), jnp.sort(x, descending=True), jnp.argsort(x), jnp.argsort(n, axis=0),
        jnp.argsort(n, descending=True), lax.sort((n, x), num_keys=1), lax.sort((n, x), num_keys=2, dimension=0),
        lax.sort((x, n, x > 0)), jnp.sort(n.astype(jnp.uint8)), jnp.sort(x.astype(jnp.bfloat16)), jnp.sort(x > 0),
        lax.top_k(x, 3), lax.top_k(n, 7), jnp.median(x, axis=1), jnp.percentile(x, 30.0),
        jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.lexsort((n[0], n[1])), jnp.sort_complex(x[0] + 1j * x[1]),
        jnp.digitize(x, jnp.linspace(-1, 1, 5)),
    )  # fmt: skip


def counting(x, n):
    return (
        jnp.unique(n, size=14, fill_value=99), jnp.nonzero(n > 2, size=20, fill_value=-1), jnp.argwhere(x > 1, size=9),
        jnp.unique(n[0], size=7, return_inverse=True, return_counts=True), jnp.cumsum(n, axis=1)[n % 7, 0],
        jnp.intersect1d(n[0], n[1], size=7, fill_value=0), jnp.where(x > 0, size=5)[0], jnp.repeat(x, 3, axis=0),
    )  # fmt: skip


def scalars(x, n):
    one, other = x[0, 0], n[1, 1]
    return (
        lax.dynamic_slice(one, (), ()), lax.dynamic_update_slice(one, one * 2, ()), lax.rev(other, ()),
        lax.pad(one, jnp.float32(0), ()), lax.transpose(other, ()), one.at[()].set(3), other.at[...].add(1),
    )  # fmt: skip


PROGRAMS = [
    (indexing, (MATRIX, INDICES, CUBE)),
    (updates, (MATRIX, INDICES, CUBE)),
    (gradients, (MATRIX, INDICES, CUBE)),
    (order, (MATRIX, NUMBERS)),
    (counting, (MATRIX, NUMBERS)),
    (scalars, (MATRIX, NUMBERS)),
]


def assert_close(found: Any, expected: Any) -> None:
    leaves = flatten(found)
    assert len(leaves) == len(expected)
    for number, (one, other) in enumerate(zip(leaves, expected, strict=True)):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(
            one.astype(np.complex128), np.asarray(other).astype(np.complex128), 1e-5, 1e-5, err_msg=f"result {number}"
        )


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_jax_programs(function, arguments):
    compiled = jax.jit(function)
    lowered = compiled.lower(*arguments)
    expected = jax.tree.leaves(compiled(*arguments))
    module = stablehlo.parse(lowered.as_text())
    assert_close(xlapy.evaluate(module, *arguments), expected)
    written = stablehlo.parse(stablehlo.to_text(module))
    assert stablehlo.to_text(written) == stablehlo.to_text(module)
    assert_close(xlapy.compile(written, xlapy.CompileOptions(verify=True))(*arguments), expected)


def test_dynamic_slices_of_scalars_are_written_as_mlir_reads_them() -> None:
    lowered = jax.jit(lambda x: lax.dynamic_slice(x, (), ())).lower(np.float32(1))
    written = stablehlo.to_text(stablehlo.parse(lowered.as_text()), pretty=True)
    operation = ", , sizes = [] : (tensor<f32>) -> tensor<f32>"
    assert operation in lowered.as_text() and operation in written


def main(operation: str, arguments: str, result: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{\n  %r = {operation}\n  return %r : {result}\n}}\n"


GATHER = main(
    '"stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = '
    "[0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> "
    ": (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>",
    "%x: tensor<4x3xf32>, %i: tensor<2xi32>",
    "tensor<2x3xf32>",
)


def test_flags_may_be_absent() -> None:
    gather = stablehlo.parse(GATHER).entry.root
    assert gather.opcode == "gather" and gather.attributes["indices_are_sorted"] is False


BROKEN_GATHERS = [
    (GATHER.replace("1, 3>", "1, 4>"), "gather.C12"),
    (GATHER.replace("1, 3>", "2, 3>"), "gather.C8"),
    (GATHER.replace("1, 3>", "1>"), "gather.C11"),
    (GATHER.replace("[1], coll", "[2], coll"), "gather.C5"),
    (GATHER.replace("start_index_map = [0]", "start_index_map = [2]"), "gather.C10"),
    (GATHER.replace("start_index_map = [0]", "start_index_map = [0, 1]"), "gather.C3"),
    (GATHER.replace("tensor<2x3xf32>", "tensor<2x4xf32>"), "gather.C13"),
]


@pytest.mark.parametrize(("text", "label"), BROKEN_GATHERS)
def test_labels_of_gather(text: str, label: str) -> None:
    with pytest.raises(ShapeError) as caught:
        stablehlo.parse(text)
    assert caught.value.rule == label


def test_dimension_numbers_are_needed() -> None:
    with pytest.raises(ParseError, match="dimension_numbers"):
        stablehlo.parse(GATHER.replace("dimension_numbers =", "other ="))


DYNAMIC_GATHER = """func.func @main(%x: tensor<4x3xf32>, %i: tensor<2xi32>, %t: tensor<2xi64>) -> tensor<2x3xf32> {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
    : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
"""


def test_dynamic_gather_with_constant_sizes() -> None:
    assert stablehlo.parse(DYNAMIC_GATHER).entry.root.attributes["slice_sizes"] == (1, 3)
    with pytest.raises(UnsupportedError, match="depends on the values of arguments"):
        xlapy.compile(DYNAMIC_GATHER.replace("%i, %s)", "%i, %t)"))
