"""Positions as elements: the numbers of a dimension, of any type, wherever they are read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import xlapy
from tests.support.native import check_native, record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I32, PTR, KernelBuilder, Module
from xlapy.hlo.element_types import BF16, C64, F32, F64, S8, S32, S64, U4, U16, ElementType

NUMBERS = (U4, S8, U16, S32, S64, BF16, F32, F64, C64)  # of every width
ROWS, COLUMNS = 5, 300  # more than bytes can tell apart


def numbers(like: XlaOp, type: ElementType, dimension: int, *dims: int) -> XlaOp:
    return ops.Iota(like.builder, xlapy.Shape.array(type, dims), dimension)


def test_of_any_width_from_any_side() -> None:
    """Each is added to a parameter, so that it is not a constant."""
    arguments: list[Any] = [np.ones((ROWS, COLUMNS), type.dtype) for type in NUMBERS]

    def program(*parameters: XlaOp) -> list[XlaOp]:
        results = []
        for type, parameter in zip(NUMBERS, parameters, strict=True):
            backwards = ops.Rev(numbers(parameter, type, 1, ROWS, 2 * COLUMNS), (1,))
            results.append(parameter + ops.Slice(backwards, (0, 1), (ROWS, 2 * COLUMNS), (1, 2)))
        first = parameters[NUMBERS.index(F32)]
        results.append(first + ops.Reshape(numbers(first, F32, 0, ROWS * COLUMNS), (ROWS, COLUMNS)))
        few = numbers(first, F32, 1, ROWS, COLUMNS // 3)
        results.append(first + ops.Pad(few, np.float32(7), [(0, 0, 0), (1, 1, 2)]))
        return results

    check_native(program, *arguments)


def test_vectors_of_positions_have_no_more_bits_than_the_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(64, 1000)).astype(np.float32)

    def program(x: XlaOp) -> list[XlaOp]:
        rows, columns = (numbers(x, S32, dimension, 64, 1000) for dimension in (0, 1))
        floats = numbers(x, F32, 1, 64, 1000)
        return [ops.Select(ops.Ge(rows, columns), x, x + x), x * floats]

    assert " x i64>" not in xlapy.compile(record(program, x)).llvm_ir()
    check_native(program, x)


def test_lanes_are_divided_among_groups_in_32_bits() -> None:
    """Elements that neighbours in a row share, as in normalization by groups."""
    random = np.random.default_rng(1)
    sizes = [(8, 4), (6, 5), (20, 3), (2, 7)]
    arguments = [random.normal(size=(3, 90, groups * size)).astype(np.float32) for groups, size in sizes]
    factors = [random.normal(size=(3, groups)).astype(np.float32) for groups, _ in sizes]

    def program(*parameters: XlaOp) -> list[XlaOp]:
        results = []
        for (groups, size), x, factor in zip(sizes, parameters[:4], parameters[4:], strict=True):
            dims = (3, 90, groups, size)
            shared = ops.Reshape(x, dims) * ops.BroadcastInDim(factor, dims, (0, 2))
            first = ops.Slice(x, (0, 0, 0), (1, 1, groups * size), (1, 1, 1))
            own = ops.BroadcastInDim(ops.Reshape(first, (groups * size,)), x.shape.dims, (2,))
            results.append(ops.Reshape(shared, x.shape.dims) + own)
        return results

    module = record(program, *arguments, *factors)
    assert not re.search("(?:udiv|mul) <[0-9]+ x i64>", xlapy.compile(module).llvm_ir())
    check_native(program, *arguments, *factors)


def test_lanes_reach_no_farther_than_they_go() -> None:
    """What all of them together may reach is loaded whole in places, so that nothing behind it may be counted."""
    with KernelBuilder(Module(), "f", [("p", PTR)], None) as k:
        ix = Indexing(k, 8)
        scattered = ix.at(k.load(k.parameters["p"], I32.with_lanes(8)), 30)
        assert ix.scale(scattered, 2).reach == 59
        assert ix.sum(ix.scale(scattered, 30), scattered).reach == 29 * 30 + 30
        whole, rest = ix.divide(scattered, 4, 30)
        assert (whole.reach, rest.reach) == (8, 4)
