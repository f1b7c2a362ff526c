"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from benchmarks import equivalents
from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import MATRIX_SIZES, constant_weights, normal

SQUARES = {str(size): (size, size, size) for size in (64, 128, 256, 512, 1024, 2048)}
SOME_SQUARES = {str(size): SQUARES[str(size)] for size in (64, 256, 1024)}
SKINNY = {
    "8x4096x1024": (8, 4096, 1024),
    "32x1000x2048": (32, 1000, 2048),
    "4096x8x1024": (4096, 8, 1024),
    "128x3072x768": (128, 3072, 768),
    "64x64x16384": (64, 64, 16384),
}  # rows and columns of the result, length of the sums
FEW_ROWS = {"16x256x256": (16, 256, 256), "4x4096x4096": (4, 4096, 4096), "16x4096x4096": (16, 4096, 4096)}
"""As where a network answers a few questions at once."""

MATRIX_VECTOR = {"small": (64, 64), "cache": (512, 512), "memory": (4096, 4096)}
EIGHT_VECTORS = {"8x4096x4096": (8, 4096, 4096)}
EXPERTS = {"2x8x1024x1024": (2, 8, 1024, 1024)}
BATCHED = {
    "4096x3x3x3": (4096, 3, 3, 3),
    "4096x8x8x8": (4096, 8, 8, 8),
    "64x16x16x16": (64, 16, 16, 16),
    "64x64x64x64": (64, 64, 64, 64),
    "8x256x256x64": (8, 256, 256, 64),
}
BIASED = {"64": (64, 64, 64), "256": (256, 256, 256), "128x3072x768": (128, 3072, 768), "1024": (1024, 1024, 1024)}


POINTS = {"4096x64x3": (4096, 64, 3), "4096x256x3": (4096, 256, 3), "16384x128x4": (16384, 128, 4)}
"""Points, features and coordinates."""


def operands(dtype: Any, *, transposed: bool = False, bias: bool = False) -> Maker:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        *batch, rows, columns, depth = size
        shapes = [(*batch, rows, depth), (*batch, columns, depth) if transposed else (*batch, depth, columns)]
        shapes += [(columns,)] if bias else []
        if np.issubdtype(dtype, np.integer):
            return [generator.integers(-100, 100, shape).astype(dtype) for shape in shapes]
        return [generator.standard_normal(shape, np.float32).astype(dtype) for shape in shapes]

    return make


def matrix_and_vector(dtype: Any = np.float32) -> Maker:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        rows, columns = size
        return [generator.standard_normal(shape, np.float32).astype(dtype) for shape in ((rows, columns), (columns,))]

    return make


def scaled_bytes(*, transposed: bool = False) -> Maker:
    """A vector, or a few, weights in bytes, and a scale for each of their columns."""

    def make(generator: np.random.Generator, size: Any) -> Arrays:
        vectors, rows, columns = (1, *size)[-3:]
        weights = generator.integers(-127, 128, (columns, rows) if transposed else (rows, columns)).astype(np.int8)
        few, scales = (generator.standard_normal(shape, np.float32) for shape in ((vectors, rows), (columns,)))
        return [few, weights, scales]

    return make


def experts(generator: np.random.Generator, size: Any) -> Arrays:
    """A vector, weights of all experts, and the numbers of those that are asked."""
    asked, count, rows, columns = size
    x, weights = (generator.standard_normal(shape, np.float32) for shape in ((rows,), (count, rows, columns)))
    return [x, weights, generator.integers(0, count, asked).astype(np.int32)]


def operations(size: Any) -> float:
    return 2.0 * float(np.prod(size))


def integer_product(a: Any, b: Any) -> Any:
    return jax.lax.dot(a, b, preferred_element_type=jnp.int32)


def _product(name: str, function: Any, inputs: Maker, sizes: Mapping[str, Any], **options: Any) -> Workload:
    return Workload("dot", name, function, inputs, sizes, operations=operations, **options)


def kernel_of_slopes(a: Any, b: Any) -> Any:
    """Products of all slopes of each sample with those of each other one, the slopes of weights being transposed."""
    return jnp.einsum("nij,mij->nm", jnp.swapaxes(a, 1, 2), jnp.swapaxes(b, 1, 2))


SLOPES = {"16x16x16x8": (16, 16, 16, 8), "64x64x64x32": (64, 64, 64, 32)}
"""Samples on both sides, rows and columns of the weights."""


def slopes(generator: np.random.Generator, size: Any) -> Arrays:
    return [generator.standard_normal((samples, *size[2:]), np.float32) for samples in size[:2]]


CONSTANT_WEIGHTS = {"64": (64, 64, 64), "16x1024x1024": (16, 1024, 1024), "32x1000x2048": (32, 1000, 2048)}
_COLUMNS = {depth: columns for _, columns, depth in CONSTANT_WEIGHTS.values()}


def _constant_weights(name: str, dtype: Any, *, transposed: bool = False) -> Workload:
    """Inference: the right side belongs to the program."""

    def function(a: Any) -> Any:
        depth = a.shape[1]
        if transposed:
            return a @ constant_weights((_COLUMNS[depth], depth), dtype).T
        return a @ constant_weights((depth, _COLUMNS[depth]), dtype)

    def make(generator: np.random.Generator, size: Any) -> Arrays:
        rows, _, depth = size
        return [generator.standard_normal((rows, depth), np.float32).astype(dtype)]

    return _product(f"constant_weights_{name}", function, make, CONSTANT_WEIGHTS)


WORKLOADS = [
    _constant_weights("f32", np.float32),
    _constant_weights("transposed_f32", np.float32, transposed=True),
    _constant_weights("bf16", ml_dtypes.bfloat16),
    _product("f32", jnp.matmul, operands(np.float32), SQUARES, equivalent=equivalents.matrix_product),
    _product("f64", jnp.matmul, operands(np.float64), SQUARES, equivalent=equivalents.matrix_product),
    _product("bf16", jnp.matmul, operands(ml_dtypes.bfloat16), SQUARES),
    _product("s8_s32", integer_product, operands(np.int8), SQUARES),
    _product("skinny_f32", jnp.matmul, operands(np.float32), SKINNY, equivalent=equivalents.matrix_product),
    _product("few_rows_f32", jnp.matmul, operands(np.float32), FEW_ROWS, equivalent=equivalents.matrix_product),
    _product(
        "few_rows_transposed_f32",
        lambda a, b: a @ b.T,
        operands(np.float32, transposed=True),
        FEW_ROWS,
        equivalent=equivalents.matrix_product_transposed,
    ),
    _product("few_rows_bf16", jnp.matmul, operands(ml_dtypes.bfloat16), FEW_ROWS),
    _product(
        "few_rows_transposed_bf16",
        lambda a, b: a @ b.T,
        operands(ml_dtypes.bfloat16, transposed=True),
        FEW_ROWS,
    ),
    _product("points", lambda x, w, b: jax.nn.relu(x @ w + b), operands(np.float32, bias=True), POINTS),
    _product(
        "transposed_f32",
        lambda a, b: a @ b.T,
        operands(np.float32, transposed=True),
        SOME_SQUARES,
        equivalent=equivalents.matrix_product_transposed,
    ),
    _product("left_transposed_f32", lambda a, b: a.T @ b, operands(np.float32), SOME_SQUARES),
    _product("both_transposed_f32", lambda a, b: a.T @ b.T, operands(np.float32), SOME_SQUARES),
    _product("transposed_f64", lambda a, b: a @ b.T, operands(np.float64, transposed=True), SOME_SQUARES),
    _product(
        "matrix_vector_f32", jnp.matmul, matrix_and_vector(), MATRIX_VECTOR, equivalent=equivalents.matrix_product
    ),
    _product(
        "matrix_vector_f64",
        jnp.matmul,
        matrix_and_vector(np.float64),
        MATRIX_VECTOR,
        equivalent=equivalents.matrix_product,
    ),
    _product("matrix_vector_bf16", jnp.matmul, matrix_and_vector(ml_dtypes.bfloat16), MATRIX_VECTOR),
    _product(
        "vector_matrix_f32",
        lambda a, x: x @ a,
        matrix_and_vector(),
        MATRIX_VECTOR,
        equivalent=equivalents.vector_matrix,
    ),
    _product("vector_bytes_f32", lambda x, w, s: (x @ w.astype(jnp.float32)) * s, scaled_bytes(), MATRIX_VECTOR),
    _product(
        "vector_bytes_transposed_f32",
        lambda x, w, s: (x @ w.astype(jnp.float32).T) * s,
        scaled_bytes(transposed=True),
        MATRIX_VECTOR,
    ),
    _product(
        "eight_vectors_bytes_f32",
        lambda x, w, s: (x @ w.astype(jnp.float32)) * s,
        scaled_bytes(),
        EIGHT_VECTORS,
    ),
    _product(
        "eight_vectors_bytes_transposed_f32",
        lambda x, w, s: (x @ w.astype(jnp.float32).T) * s,
        scaled_bytes(transposed=True),
        EIGHT_VECTORS,
    ),
    Workload("dot", "vector_experts_f32", lambda x, w, i: jnp.einsum("d,edf->ef", x, w[i]), experts, EXPERTS),
    _product("batched_f32", jnp.matmul, operands(np.float32), BATCHED, equivalent=equivalents.matrix_product),
    Workload(
        "dot",
        "vectors_of_batches_f32",
        lambda a, b: jnp.einsum("bi,bi->b", a, b),
        normal(2),
        MATRIX_SIZES,
    ),
    _product("kernel_of_slopes_f32", kernel_of_slopes, slopes, SLOPES),
    _product("bias_relu_f32", lambda a, b, c: jax.nn.relu(a @ b + c), operands(np.float32, bias=True), BIASED),
    _product("bias_gelu_f32", lambda a, b, c: jax.nn.gelu(a @ b + c), operands(np.float32, bias=True), BIASED),
    _product(
        "bias_tanh_f64",
        lambda a, b, c: jnp.tanh(a @ b + c),
        operands(np.float64, bias=True),
        BIASED,
        tolerance=8,  # the sums are up to a hundred, and their roundings in proportion, but the results at most one
    ),
    _product(
        "bias_silu_bf16",
        lambda a, b, c: jax.nn.silu(a @ b + c),
        operands(ml_dtypes.bfloat16, bias=True),
        BIASED,
        tolerance=4,
    ),
]
