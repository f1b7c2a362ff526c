"""Random convolutions and windows of all kinds, as calls of the builder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaComputation, XlaOp
from xlapy.hlo.attributes import ConvolutionDimensionNumbers
from xlapy.hlo.shape import Shape

CASES_PER_PROGRAM = 6
LARGEST = 20_000  # elements of an operand


@dataclass
class RandomProgram:
    """Several cases in one program: compiled once."""

    generator: np.random.Generator
    builder: XlaBuilder = field(default_factory=lambda: XlaBuilder("random"))
    arguments: list[Any] = field(default_factory=list)
    results: list[XlaOp] = field(default_factory=list)

    def parameter(self, dims: list[int], kind: str) -> XlaOp:
        shape = Shape.array(kind, dims)
        self.arguments.append(random_array(self.generator, shape))
        return self.builder.parameter(len(self.arguments) - 1, shape)

    def finished(self) -> XlaComputation:
        return self.builder.build(ops.Tuple(self.builder, self.results))

    def chosen(self, *values: Any) -> Any:
        return values[int(self.generator.integers(len(values)))]

    def many(self, count: int, *values: Any) -> list[Any]:
        return [self.chosen(*values) for _ in range(count)]


def random_array(generator: np.random.Generator, shape: Shape) -> Any:
    """Small integers, or normal numbers."""
    if shape.type.kind == "pred":
        return generator.integers(0, 2, shape.dims).astype(np.bool_)
    if shape.type.is_integer:
        return generator.integers(0 if not shape.type.is_signed else -5, 6, shape.dims).astype(shape.type.dtype)
    values = generator.normal(size=shape.dims)
    if shape.type.is_complex:
        values = values + 1j * generator.normal(size=shape.dims)
    return values.astype(shape.type.dtype)


def random_program(seed: int, add_case: Callable[[RandomProgram], None]) -> RandomProgram:
    program = RandomProgram(np.random.default_rng(seed))
    for _ in range(CASES_PER_PROGRAM):
        add_case(program)
    return program


def add_convolution(p: RandomProgram) -> None:
    """Any dimension numbers, strides, padding, dilations, reversal and groups."""
    spatial = p.chosen(0, 1, 1, 2, 2, 3)
    groups, grouping = p.chosen(2, 3, 8), p.chosen("none", "features", "batch")
    feature_groups = groups if grouping == "features" else 1
    batch_groups = groups if grouping == "batch" else 1
    features = p.chosen(1, 2, 3, 5)
    outputs = p.chosen(1, 2, 3, 16, 20) * feature_groups * batch_groups
    numbers = _random_numbers(p, spatial)
    kernel_sizes = p.many(spatial, 1, 2, 3)
    lhs, rhs = [0] * (spatial + 2), [0] * (spatial + 2)
    lhs[numbers.input_batch], lhs[numbers.input_feature] = p.chosen(1, 2, 3) * batch_groups, features * feature_groups
    rhs[numbers.kernel_input_feature], rhs[numbers.kernel_output_feature] = features, outputs
    for number in range(spatial):
        lhs[numbers.input_spatial[number]] = p.chosen(1, 2, 5, 9, 17)
        rhs[numbers.kernel_spatial[number]] = kernel_sizes[number]
    kind = p.chosen("f32", "f32", "f64", "bf16", "s32", "s8", "u16", "c64", "pred")
    p.results.append(
        ops.ConvGeneralDilated(
            p.parameter(lhs, kind),
            p.parameter(rhs, kind),
            p.many(spatial, 1, 1, 2, 3),
            random_padding(p, spatial),
            p.many(spatial, 1, 1, 2, 3),
            p.many(spatial, 1, 1, 2),
            numbers,
            feature_groups,
            batch_groups,
            window_reversal=p.many(spatial, False, True),
        )
    )


def _random_numbers(p: RandomProgram, spatial: int) -> ConvolutionDimensionNumbers:
    """Features last, features early, or any order."""
    last, early = (0, spatial + 1, *range(1, spatial + 1)), tuple(range(spatial + 2))

    def any_order() -> tuple[int, ...]:
        return tuple(int(dim) for dim in p.generator.permutation(spatial + 2))

    kernel_last = (spatial, spatial + 1, *range(spatial))
    kernel_early = (1, 0, *range(2, spatial + 2))
    lhs, rhs, out = p.chosen(
        (last, kernel_last, last), (early, kernel_early, early), (any_order(), any_order(), any_order())
    )
    return ConvolutionDimensionNumbers(lhs[0], lhs[1], lhs[2:], rhs[0], rhs[1], rhs[2:], out[0], out[1], out[2:])


def random_padding(p: RandomProgram, count: int) -> list[tuple[int, int]]:
    return p.many(count, (0, 0), (0, 0), (1, 1), (2, 0), (0, 2), (-1, 1), (1, -1))


def random_dims(p: RandomProgram, rank: int) -> list[int]:
    dims: list[int] = p.many(rank, 1, 2, 3, 8, 16, 21)
    while math.prod(dims) > LARGEST:
        dims[dims.index(max(dims))] = 1
    return dims


def add_window(p: RandomProgram) -> None:
    """Reduce-windows with dilations and padding, of one or two operands, and with initial values that count."""
    rank = p.chosen(0, 1, 2, 3, 4)
    dims = random_dims(p, rank)
    sizes, strides = p.many(rank, 1, 1, 2, 3), p.many(rank, 1, 1, 2, 3)
    padding, base, dilation = random_padding(p, rank), p.many(rank, 1, 1, 1, 2), p.many(rank, 1, 1, 1, 2)
    if p.chosen(True, False, False):
        values, numbers = p.parameter(dims, "f32"), p.parameter(dims, "s32")
        result = ops.ReduceWindow(
            [values, numbers], [np.float32(-np.inf), np.int32(99)], best_of, sizes, strides, padding, base, dilation
        )
        p.results += [result[0], result[1]]
        return
    kind = p.chosen("f32", "f64", "bf16", "s32", "s8", "u16")
    fold, init = p.chosen((ops.Add, 0), (ops.Max, 1), (ops.Min, 7), (ops.Add, 1), (ops.Mul, 1))
    p.results.append(ops.ReduceWindow(p.parameter(dims, kind), init, fold, sizes, strides, padding, base, dilation))


def best_of(value: XlaOp, number: XlaOp, other: XlaOp, other_number: XlaOp) -> list[XlaOp]:
    """The larger value with its number; of equal ones the smaller number."""
    keeps = ops.Or(ops.Gt(value, other), ops.And(ops.Eq(value, other), ops.Lt(number, other_number)))
    return [ops.Select(keeps, value, other), ops.Select(keeps, number, other_number)]


def add_selection(p: RandomProgram) -> None:
    """Select-and-scatters with overlapping and disjoint windows."""
    rank = p.chosen(1, 2, 3, 4)
    dims = random_dims(p, rank)
    sizes, strides, padding = p.many(rank, 1, 1, 2, 3), p.many(rank, 1, 1, 2, 3), random_padding(p, rank)
    positions = []
    for dim, size, stride, (low, high) in zip(dims, sizes, strides, padding, strict=True):
        padded = dim + low + high
        positions.append((padded - size) // stride + 1 if padded >= max(size, 1) else 0)
    kind = p.chosen("f32", "f32", "f64", "bf16", "s32", "s8")
    source = p.parameter(positions, kind)
    select, scatter = p.chosen(ops.Ge, ops.Gt, ops.Le), p.chosen(ops.Add, ops.Max, ops.Sub)
    operand = p.parameter(dims, kind)
    p.results.append(ops.SelectAndScatter(operand, select, sizes, strides, padding, source, 1, scatter))


def add_scan(p: RandomProgram) -> None:
    """Windows that reach from each element to an end of its dimension."""
    rank = p.chosen(1, 2, 3)
    dims = random_dims(p, rank)
    dim = int(p.generator.integers(rank))
    dims[dim] = p.chosen(8, 11, 40, 100)
    sizes, padding = [1] * rank, [(0, 0)] * rank
    sizes[dim] = dims[dim]
    padding[dim] = p.chosen((dims[dim] - 1, 0), (0, dims[dim] - 1))
    kind = p.chosen("f32", "f32", "f64", "bf16", "s32", "uint8", "c64")
    folds: list[tuple[Any, float]] = [(ops.Add, 0), (ops.Add, 1), (ops.Mul, 1)]
    if kind != "c64":
        folds += [(ops.Max, 0), (ops.Min, 7)]
    if kind == "f32":
        folds += [(log_add_exp, -np.inf), (log_add_exp, 0.5)]
    fold, init = p.chosen(*folds)
    p.results.append(ops.ReduceWindow(p.parameter(dims, kind), init, fold, sizes, [1] * rank, padding))


def log_add_exp(one: XlaOp, other: XlaOp) -> XlaOp:
    largest = ops.Max(one, other)
    return ops.Select(ops.Eq(largest, -np.inf), largest, largest + ops.Log1p(ops.Exp(-ops.Abs(one - other))))
