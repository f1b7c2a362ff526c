"""Programs about which XLA and StableHLO differ, or that leave an order open: StableHLO's own interpreter decides.

`docs/limitations.md` lists where XLA does otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax._src.interpreters.mlir as mlir
import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as dialect

import xlapy

Array = np.ndarray[Any, Any]


def interpreted(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results of the reference interpreter."""
    with mlir.make_ir_context():
        attributes = [ir.DenseElementsAttr.get(array, shape=array.shape) for array in arguments]
        results = dialect.eval_module(ir.Module.parse(text), attributes)
        return [np.array(ir.DenseElementsAttr(result)) for result in results]


def check(text: str, *arguments: Array) -> None:
    expected = interpreted(text, arguments)
    for run in (xlapy.evaluate, lambda program, *given: xlapy.compile(program)(*given)):
        results = run(text, *arguments)
        listed = results if isinstance(results, tuple) else (results,)
        assert [np.asarray(array).tolist() for array in listed] == [array.tolist() for array in expected]


# -- reduces of two arrays ---------------------------------------------------------------------------------------------

FOLDS = {
    "last of the largest": ("compare GE, %u, %p", "select %c, %u, %p", "select %c, %v, %q"),
    "first of the largest": ("compare GE, %p, %u", "select %c, %p, %u", "select %c, %q, %v"),
    "crossed": ("compare LT, %p, %u", "add %p, %v", "subtract %q, %u"),
}  # fmt: skip


def fold(name: str, sizes: tuple[int, int], dimensions: tuple[int, ...], starts: tuple[int, int]) -> str:
    """A program that reduces a pair of arrays with one of FOLDS."""
    compared, first, second = FOLDS[name]
    kept = "x".join([*(str(size) for dim, size in enumerate(sizes) if dim not in dimensions), "i32"])
    whole = "x".join([*map(str, sizes), "i32"])
    scalars = "tensor<i1>, tensor<i32>" if "select" in first else "tensor<i32>"
    listed = ": " * bool(dimensions) + ", ".join(map(str, dimensions))
    return f"""func.func @main(%x: tensor<{whole}>, %y: tensor<{whole}>) -> (tensor<{kept}>, tensor<{kept}>) {{
  %a = stablehlo.constant dense<{starts[0]}> : tensor<i32>
  %b = stablehlo.constant dense<{starts[1]}> : tensor<i32>
  %r:2 = "stablehlo.reduce"(%x, %y, %a, %b) ({{
  ^body(%p: tensor<i32>, %q: tensor<i32>, %u: tensor<i32>, %v: tensor<i32>):
    %c = stablehlo.{compared} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %s = stablehlo.{first} : {scalars}
    %t = stablehlo.{second} : {scalars}
    stablehlo.return %s, %t : tensor<i32>, tensor<i32>
  }}) {{dimensions = array<i64{listed}>}} : (tensor<{whole}>, tensor<{whole}>, tensor<i32>, tensor<i32>)
    -> (tensor<{kept}>, tensor<{kept}>)
  return %r#0, %r#1 : tensor<{kept}>, tensor<{kept}>
}}"""


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("dimensions", [(0,), (1,), (0, 1), ()], ids=str)
@pytest.mark.parametrize("sizes", [(2, 3), (1, 1), (3, 1), (17, 9)], ids=str)
def test_reduces_of_pairs_fold_in_order_from_the_initial_values(
    name: str, dimensions: tuple[int, ...], sizes: tuple[int, int]
) -> None:
    """A dimension of size 1 is folded like any other: the initial values, which are no identities, take part."""
    generator = np.random.default_rng(sum(sizes))
    keys = generator.integers(-3, 4, sizes, np.int32)
    values = generator.integers(-99, 100, sizes, np.int32)
    check(fold(name, sizes, dimensions, (-1, 77)), keys, values)


# -- scatters ----------------------------------------------------------------------------------------------------------


def scatter(types: tuple[str, str, str], numbers: str, operation: str = "subtract") -> str:
    whole, indices, updates = (f"tensor<{type}>" for type in types)
    return f"""func.func @main(%x: {whole}, %i: {indices}, %u: {updates}) -> {whole} {{
  %r = "stablehlo.scatter"(%x, %i, %u) ({{
  ^body(%p: tensor<i32>, %q: tensor<i32>):
    %s = stablehlo.{operation} %p, %q : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}} : ({whole}, {indices}, {updates}) -> {whole}
  return %r : {whole}
}}"""


ONE = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
WINDOW = "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"
SCATTERS = {
    "a scalar, at no index": (("i32", "0xi32", "i32"), "index_vector_dim = 0", 5, [], 3),
    "a scalar, three times": (("i32", "3x0xi32", "3xi32"), "index_vector_dim = 1", 5, [[], [], []], [1, 2, 3]),
    "by a scalar index": (("4xi32", "i32", "i32"), ONE, [0, 1, 2, 3], 2, 7),
    "by a scalar index outside": (("4xi32", "i32", "i32"), ONE, [0, 1, 2, 3], 4, 7),
    "a window across the end": (("4xi32", "i32", "2xi32"), WINDOW, [0, 1, 2, 3], 3, [7, 8]),
    "a window across the beginning": (("4xi32", "i32", "2xi32"), WINDOW, [0, 1, 2, 3], -1, [7, 8]),
    "a window of a vector of indices": (
        ("4xi32", "1xi32", "2xi32"), f"{WINDOW}, index_vector_dim = 0", [0, 1, 2, 3], [3], [7, 8],
    ),
    "all of it": (
        ("3xi32", "0xi32", "3xi32"), "update_window_dims = [0], index_vector_dim = 0", [1, 2, 3], [], [4, 5, 6],
    ),
    "one place three times": (
        ("4xi32", "3xi32", "3xi32"), f"{ONE}, index_vector_dim = 1", [0, 1, 2, 3], [1, 1, 1], [2, 3, 4],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_write_what_lies_inside(name: str) -> None:
    types, numbers, *arguments = SCATTERS[name]
    check(scatter(types, numbers), *(np.array(argument, np.int32) for argument in arguments))
