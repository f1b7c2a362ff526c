"""The syntax of operations beyond those that are converted: both forms of JAX's programs give one tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xlapy import stablehlo
from xlapy.hlo.literal import Literal
from xlapy.stablehlo.reading import parse_tree
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import UnsupportedError, XlaError

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
lax = pytest.importorskip("jax.lax")

X = np.ones((4, 8), np.float32)
IMAGE = np.ones((1, 8, 8, 3), np.float32)


def indexed(x):
    return (
        jnp.sort(x), lax.sort((x, x), num_keys=2), jnp.argsort(x), x[np.array([1, 2])], x.at[1].add(2.0),
        x.at[:, jnp.array([1, 3])].set(0.0), jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1), jnp.cumsum(x, 0),
        lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME"), lax.top_k(x, 3), jnp.median(x),
    )  # fmt: skip


def convolved(x):
    kernel = jnp.ones((3, 3, 3, 5))
    numbers = ("NHWC", "HWIO", "NHWC")

    def loss(image, kernel):
        return lax.conv_general_dilated(image, kernel, (2, 1), ((1, 2), (0, 1)), (1, 2), (2, 1), numbers).sum()

    return jax.grad(loss, argnums=(0, 1))(x, kernel), lax.conv(
        x.transpose(0, 3, 1, 2), jnp.ones((2, 3, 2, 2)), (1, 1), "SAME"
    )


def linear_algebra(x):
    square = x @ x.T
    return (
        jnp.fft.fft(x), jnp.fft.rfft2(x), jnp.fft.irfft(jnp.fft.rfft(x)), lax.linalg.cholesky(square),
        lax.linalg.triangular_solve(square, x, left_side=True, lower=True), jnp.linalg.qr(x)[1], jnp.linalg.svd(x)[1],
    )  # fmt: skip


def special(x):
    key = jax.random.key(0)
    return (
        jax.random.normal(key, (3,)), lax.rng_uniform(0.0, 1.0, (2,)),
        lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,)),
        lax.lgamma(x), lax.digamma(x), lax.erf_inv(x), lax.erfc(x), lax.bessel_i1e(x), lax.igamma(x, x), lax.zeta(x, x),
        lax.polygamma(x, x), lax.nextafter(x, x), lax.optimization_barrier((x, x)), jnp.convolve(x[0], x[1]),
        lax.dot(x, x.T, precision=lax.DotAlgorithmPreset.F32_F32_F32), jax.checkpoint(jnp.sin)(x),
        jax.pure_callback(np.sin, x, x),
    )  # fmt: skip


PROGRAMS = [(indexed, X), (convolved, IMAGE), (linear_algebra, X), (special, X)]


def outline(operation: Operation) -> list[Any]:
    """An operation as plain data: name, attributes, operand and result types, and the same of its regions."""
    regions = [
        ([value.type for value in region.arguments], [outline(inner) for inner in region.operations])
        for region in operation.regions
    ]
    attributes = {name: plain(value) for name, value in operation.attributes.items() if name not in SPELT_OUT}
    return [operation.name, attributes, [v.type for v in operation.operands], operation.result_types, regions]


SPELT_OUT = frozenset(
    {
        "api_version",
        "arg_attrs",
        "called_computations",
        "has_side_effect",
        "is_stable",
        "mesh",
        "precision_config",
        "res_attrs",
        "sym_visibility",
    }
)
"""Attributes that one form writes and the other leaves out."""


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner != ()}
    if isinstance(value, Literal) and value.array.ndim == 1:
        return tuple(value.array.tolist())
    if isinstance(value, Literal) and value.array.dtype == np.int64:
        return tuple(tuple(row) for row in value.array.tolist()) if value.array.ndim == 2 else value
    return value


@pytest.mark.parametrize(("function", "argument"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_forms_agree(function, argument) -> None:
    lowered = jax.jit(function).lower(argument)
    _, pretty = parse_tree(lowered.as_text())
    _, generic = parse_tree(lowered.compiler_ir().operation.get_asm(print_generic_op_form=True))
    assert outline(pretty) == outline(generic)
    parse_tree(lowered.as_text(debug_info=True))


@pytest.mark.parametrize(("function", "argument"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_operations_without_conversion_are_named(function, argument) -> None:
    try:
        stablehlo.parse(jax.jit(function).lower(argument).as_text())
    except XlaError as error:
        assert isinstance(error, UnsupportedError)
        assert "line " in str(error)


LINES = [
    "%r = stablehlo.broadcast %x, sizes = [2] : (tensor<4xf32>) -> tensor<2x4xf32>",
    "%r = stablehlo.einsum %x, %x, config = \"a,b->ab\" : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>",
    "%r = stablehlo.unary_einsum %x, config = \"a->\" : (tensor<4xf32>) -> tensor<f32>",
    "%r = stablehlo.torch_index_select %x, %i, dim = 0, batch_dims = 0 :"
    " (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>",
    "%r = stablehlo.cholesky %m, lower = true : tensor<2x2xf32>",
    "%r = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>",
    "%r = stablehlo.rng %s, %s, %i, distribution = UNIFORM :"
    " (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x4xf32>",
    "%r = stablehlo.dynamic_iota %i, dim = 0 : (tensor<2xi64>) -> tensor<?x?xf32>",
    "%r = stablehlo.dynamic_broadcast_in_dim %x, %i, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x4xf32>",
    "%r = stablehlo.dynamic_reshape %x, %i : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
    "%r:2 = stablehlo.rng_bit_generator %u, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)",
    "%r:2 = chlo.top_k(%x, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)",
    "%r = chlo.broadcast_add %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>",
    "%r = chlo.broadcast_compare %x, %s {comparison_direction = #chlo<comparison_direction LT>} :"
    " (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>",
    "%r = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4xf32>",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[2].partition("(")[0])
def test_pretty_forms(line: str) -> None:
    _, top = parse_tree(
        "func.func @main(%x: tensor<4xf32>, %m: tensor<2x2xf32>, %s: tensor<f32>, %i: tensor<2xi64>,\n"
        f"  %u: tensor<2xui64>) {{\n  {line}\n  return\n}}"
    )
    (function,) = top.regions[0].operations
    operation = function.regions[0].operations[0]
    assert operation.name == line.split()[2].partition("(")[0]
    assert operation.operands and operation.results
