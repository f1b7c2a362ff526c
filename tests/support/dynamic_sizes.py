"""Programs over arrays of bounded size, run with garbage in the padding.

A program takes bounded arrays. Here it is put behind set-dimension-size, so that what its arrays lack to their bounds
is what the caller put there: NaN, infinities, extreme integers. Nothing of it may be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import xlapy
from tests.support.hlo_cases import assert_same
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.random_values import random_array
from xlapy.hlo.shape import Shape
from xlapy.hlo.verifier import verify

TOLERANCE = 1e-4


def all_in_one(programs: Sequence[HloModule]) -> HloModule:
    """A module that runs the programs on static arrays, each followed by the sizes of its bounded dimensions."""
    entry = Computation("entry")
    results = [entry.insert(program.entry, list(_arguments(entry, program))) for program in programs]
    entry.set_root(entry.add("tuple", results))
    module = HloModule("programs", entry)
    verify(module)
    return module


def _arguments(entry: Computation, program: HloModule) -> Iterator[Instruction]:
    for parameter in program.entry.parameters:
        array = _parameter(entry, parameter.shape.static())
        for dim in _bounded(parameter.shape):
            size = _parameter(entry, Shape.scalar("int32"))
            array = entry.add("set-dimension-size", [array, size], dimension=dim)
        yield array


def _parameter(entry: Computation, shape: Shape) -> Instruction:
    return entry.add("parameter", shape=shape, number=len(entry.parameters))


def _bounded(shape: Shape) -> list[int]:
    return [dim for dim in range(shape.rank) if shape.is_dynamic_dim(dim)]


def choices(program: HloModule, seed: int) -> Iterator[list[tuple[int, ...]]]:
    """Sizes for the parameters of a program: none, one, all, and two random choices."""
    generator = np.random.default_rng(seed)
    shapes = [parameter.shape for parameter in program.entry.parameters]
    for least, most in ((0, 0), (1, 1), (None, None), (0, None), (1, None)):
        yield [_sizes(shape, least, most, generator) for shape in shapes]


def _sizes(shape: Shape, least: int | None, most: int | None, generator: np.random.Generator) -> tuple[int, ...]:
    sizes = list(shape.dims)
    for dim in _bounded(shape):
        bound = sizes[dim]
        low = bound if least is None else min(least, bound)
        high = bound if most is None else min(most, bound)
        sizes[dim] = int(generator.integers(low, high + 1))
    return tuple(sizes)


def garbage(shape: Shape, generator: np.random.Generator) -> Any:
    """What lies in the padding of an array."""
    kind, dtype = shape.type, shape.type.dtype
    if kind.kind == "pred":
        return generator.integers(0, 2, shape.dims).astype(np.bool_)
    if kind.is_integer:
        limits = ml_dtypes.iinfo(dtype)
        worst: list[Any] = [limits.min, limits.max]
    elif kind.is_complex:
        worst = [complex(np.nan, np.inf), complex(-np.inf, np.nan)]
    else:
        worst = [np.nan, np.inf, -np.inf, float(ml_dtypes.finfo(dtype).max)]
    return np.asarray(np.asarray(worst, dtype)[generator.integers(0, len(worst), shape.dims)])


def check(programs: Mapping[str, HloModule], *, tolerance: float = TOLERANCE, seed: int = 0) -> None:
    """Compiles all programs together, and compares each with the evaluator, which sees no padding at all."""
    executable = xlapy.compile(all_in_one(list(programs.values())))
    generator = np.random.default_rng(seed)
    for chosen in zip(*(choices(program, seed) for program in programs.values()), strict=True):
        exact = [_values(program, sizes, generator) for program, sizes in zip(programs.values(), chosen, strict=True)]
        arguments = [
            argument
            for program, values in zip(programs.values(), exact, strict=True)
            for argument in _padded(program, values, generator)
        ]
        results = executable(*arguments)
        for name, program, values, sizes, result in zip(
            programs, programs.values(), exact, chosen, results, strict=True
        ):
            try:
                assert_same(result, evaluate(program, *values), tolerance)
            except AssertionError as error:
                raise AssertionError(f"{name} of sizes {sizes}: {error}\n{values}\ngives {result}") from None


def _values(program: HloModule, sizes: Sequence[Sequence[int]], generator: np.random.Generator) -> list[Any]:
    return [
        random_array(parameter.shape.type, dims, generator)
        for parameter, dims in zip(program.entry.parameters, sizes, strict=True)
    ]


def _padded(program: HloModule, values: Sequence[Any], generator: np.random.Generator) -> Iterator[Any]:
    for parameter, value in zip(program.entry.parameters, values, strict=True):
        shape = parameter.shape
        array = garbage(shape, generator)
        array[tuple(slice(size) for size in value.shape)] = value
        yield array if shape.rank else value
        for dim in _bounded(shape):
            yield np.int32(value.shape[dim])
