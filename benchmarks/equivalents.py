"""Workloads in the spelling that numpy, numba and PyTorch share.

Each maker takes the array module and returns the function, so that numba can compile it and no module is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def add(_: Any) -> Function:
    return lambda x, y: x + y


def multiply_add_chain(xp: Any) -> Function:
    return lambda x, y, z: xp.sqrt(xp.abs(x * y + z)) - x * z


def exp(xp: Any) -> Function:
    def function(x: Any) -> Any:
        return xp.exp(x)

    return function


def log(xp: Any) -> Function:
    def function(x: Any) -> Any:
        return xp.log(x)

    return function


def tanh(xp: Any) -> Function:
    def function(x: Any) -> Any:
        return xp.tanh(x)

    return function


def sin(xp: Any) -> Function:
    def function(x: Any) -> Any:
        return xp.sin(x)

    return function


def power(_: Any) -> Function:
    return lambda x, y: x**y


def tan(xp: Any) -> Function:
    def function(x: Any) -> Any:
        return xp.tan(x)

    return function


def gelu_tanh(xp: Any) -> Function:
    return lambda x: 0.5 * x * (1 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def sum_all(_: Any) -> Function:
    return lambda x: x.sum()


def sum_rows(_: Any) -> Function:
    return lambda x: x.sum(1)


def sum_columns(_: Any) -> Function:
    return lambda x: x.sum(0)


def max_rows(_: Any) -> Function:
    return lambda x: x.max(1)


def max_columns(_: Any) -> Function:
    return lambda x: x.max(0)


def argmax_all(_: Any) -> Function:
    return lambda x: x.argmax()


def cumulative_sum(_: Any) -> Function:
    return lambda x: x.cumsum(0)


def vector_matrix(_: Any) -> Function:
    return lambda a, x: x @ a


def matrix_product(_: Any) -> Function:
    return lambda a, b: a @ b


def matrix_product_transposed(_: Any) -> Function:
    return lambda a, b: a @ b.T


def solve_of_matrices(xp: Any) -> Function:
    return lambda a, b: xp.linalg.solve(a, b[..., None])[..., 0]


def inverse_of_matrices(xp: Any) -> Function:
    def function(a: Any) -> Any:
        return xp.linalg.inv(a)

    return function


def determinant_of_matrices(xp: Any) -> Function:
    def function(a: Any) -> Any:
        return xp.linalg.det(a)

    return function


def orthogonal_factor_of_matrices(xp: Any) -> Function:
    def function(a: Any) -> Any:
        return xp.linalg.qr(a)[0]

    return function


def exponential_of_matrices(xp: Any) -> Function:
    def function(a: Any) -> Any:
        values, vectors = xp.linalg.eigh(a)
        return (vectors * xp.exp(-values)[:, None]) @ xp.swapaxes(vectors, 1, 2)

    return function


def pseudoinverse_of_matrices(xp: Any) -> Function:
    def function(a: Any) -> Any:
        return xp.linalg.pinv(a)

    return function
