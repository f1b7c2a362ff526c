"""Quotients and remainders of vectors of integers, which are divided as floats."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy import ops


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64])
def test_quotients_and_remainders(dtype: type) -> None:
    """Towards zero, next to every edge; what is divided by zero gives all ones, and leaves itself."""
    x, y = (side.ravel() for side in np.meshgrid(numbers(dtype), numbers(dtype)))
    quotients, remainders = divided(x, y)
    wide_x, wide_y = x.astype(object), y.astype(object)
    for got_quotient, got_remainder, a, b in zip(quotients, remainders, wide_x, wide_y, strict=True):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1
        remainder = a - quotient * b if b else a
        assert got_quotient == np.array(quotient).astype(dtype), (a, b)
        assert got_remainder == np.array(remainder).astype(dtype), (a, b)


def test_both_share_one_division() -> None:
    x = np.arange(1, 1000, dtype=np.int32)
    code = executable(x, x).llvm_ir()
    assert code.count(" fptosi <") == 1 and "sdiv" not in code and "srem" not in code


def numbers(dtype: type) -> np.ndarray:
    """The edges of the type and of floats, their neighbours, and some at random."""
    limits = np.iinfo(dtype)
    edges = [
        0,
        1,
        2,
        3,
        7,
        10,
        limits.min,
        limits.max,
        limits.max // 2,
        *(1 << bit for bit in range(4, limits.bits - 1, 3)),
    ]
    near = {edge + step for edge in edges for step in (-1, 0, 1)} | {-edge for edge in edges}
    usual = [number for number in sorted(near) if limits.min <= number <= limits.max]
    random = np.random.default_rng(0).integers(limits.min, limits.max, 20, dtype, endpoint=True)
    return np.concatenate([np.array(usual, dtype), random])


def executable(x: np.ndarray, y: np.ndarray) -> xlapy.Executable:
    b = xlapy.XlaBuilder("division")
    a, d = (ops.Parameter(b, i, xlapy.Shape.array(side.dtype, side.shape)) for i, side in enumerate((x, y)))
    return xlapy.compile(b.build(ops.Tuple(b, [ops.Div(a, d), ops.Rem(a, d)])))


def divided(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    quotients, remainders = executable(x, y)(x, y)
    return quotients, remainders
