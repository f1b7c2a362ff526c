"""Select-and-scatter by blocks of rows, and over padded arrays: the same bits as the reference evaluator's."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.native import on_threads
from tests.support.random_windows import (
    random_array,
)
from xlapy import ops
from xlapy.builder import XlaBuilder
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse

SELECTIONS = {
    "blocks of overlapping rows": ((2, 70, 9, 16), (1, 3, 3, 1), (1, 2, 2, 1), (0, 0), (0, 1)),
    "each row in several windows": ((1, 90, 7, 8), (1, 5, 2, 1), (1, 1, 1, 1), (3, 2), (0, 0)),
    "tiles": ((1, 80, 6, 16), (1, 2, 2, 1), (1, 2, 2, 1), (0, 0), (0, 0)),
    "tiles over the edges": ((3, 65, 5, 8), (1, 2, 2, 1), (1, 2, 2, 1), (1, 0), (0, 1)),
    "gaps": ((1, 75, 7, 16), (1, 2, 1, 1), (1, 3, 2, 1), (0, 0), (1, 1)),
    "windows beside the array": ((1, 40, 6, 8), (1, 2, 2, 1), (1, 1, 1, 1), (9, 9), (5, 1)),
    "cut edges": ((1, 60, 8, 8), (1, 2, 2, 1), (1, 2, 2, 1), (-5, -4), (-1, 0)),
    "no lanes": ((2, 3, 40, 12), (1, 1, 3, 3), (1, 1, 2, 2), (0, 0), (0, 0)),
    "free dimensions inside": ((40, 5, 3, 8), (2, 3, 1, 1), (2, 2, 1, 1), (1, 1), (0, 1)),
}
"""The array, sizes and strides of the window, and the padding of its dimensions 1 and 2 (0 and 1 for the last case)."""


@pytest.mark.parametrize("case", SELECTIONS)
@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
def test_selections_by_blocks_of_rows(case: str, kind: str) -> None:
    """The same bits as the reference, with one thread and with three: each element is updated in the same order."""
    dims, sizes, strides, *paddings = SELECTIONS[case]
    axes = (0, 1) if case == "free dimensions inside" else (1, 2)
    padding = [(0, 0)] * 4
    for axis, each in zip(axes, paddings, strict=True):
        padding[axis] = each
    counts = [
        (size + low + high - window) // stride + 1
        for size, window, stride, (low, high) in zip(dims, sizes, strides, padding, strict=True)
    ]
    generator = np.random.default_rng(len(case))
    few = generator.integers(-2, 3, dims)  # many are equal
    operand = np.where(generator.random(dims) < 0.02, np.nan, few).astype(Shape.scalar(kind).type.dtype)
    source = random_array(generator, Shape.array(kind, counts))
    builder = XlaBuilder("selection")
    parameters = [builder.parameter(number, Shape.of(value)) for number, value in enumerate((operand, source))]
    computation = builder.build(
        ops.SelectAndScatter(parameters[0], ops.Ge, sizes, strides, padding, parameters[1], 0.25, ops.Add)
    )
    wanted = xlapy.evaluate(computation, operand, source)
    executable = xlapy.compile(computation)
    for threads in (1, 3):
        got = on_threads(executable, threads)(operand, source)
        np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def padded_selection(kind: str, dims: tuple[int, ...], lows: tuple[int, ...], cuts: tuple[int, ...]) -> HloModule:
    """A selection over an array with `lows` elements of padding in front of each dimension and one behind the first
    two, of whose result `cuts` elements are dropped in front of each dimension, and one behind the first two."""
    highs = (1, 1, *(0 for _ in dims[2:]))
    padded = [low + size + high for low, size, high in zip(lows, dims, highs, strict=True)]
    windows, strides = (3, 2, *(1 for _ in dims[2:])), (2, 2, *(1 for _ in dims[2:]))
    counts = [(size - window) // stride + 1 for size, window, stride in zip(padded, windows, strides, strict=True)]
    kept = [(cut, size - high) for cut, size, high in zip(cuts, padded, highs, strict=True)]
    listed = [",".join(map(str, sizes)) for sizes in (dims, counts, padded, [end - begin for begin, end in kept])]
    x, source, whole, result = (f"{kind}[{sizes}]" for sizes in listed)
    return parse(f"""HloModule m
      ge {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }}
      add {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)  ROOT s = {kind}[] add(a, b) }}
      ENTRY main {{
        x = {x} parameter(0)
        source = {source} parameter(1)
        beside = {kind}[] constant(0.5)
        p = {whole} pad(x, beside), padding={"x".join(f"{low}_{high}" for low, high in zip(lows, highs, strict=True))}
        init = {kind}[] constant(2)
        s = {whole} select-and-scatter(p, source, init), select=ge, scatter=add,
          window={{size={"x".join(map(str, windows))} stride={"x".join(map(str, strides))}}}
        ROOT r = {result} slice(s), slice={{{", ".join(f"[{begin}:{end}]" for begin, end in kept)}}}
      }}""")


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
@pytest.mark.parametrize(
    ("dims", "lows", "cuts"),
    [
        ((70, 6, 16), (0, 0, 0), (0, 0, 0)),
        ((70, 6, 16), (2, 1, 0), (2, 1, 0)),
        ((41, 5, 8), (1, 3, 0), (5, 0, 0)),
        ((41, 5, 3), (1, 2, 0), (0, 3, 0)),
        ((40, 6, 7), (0, 1, 1), (3, 1, 2)),
        ((37, 9), (1, 1), (1, 1)),
    ],
)
def test_selections_with_what_lies_beside_the_array(
    dims: tuple[int, ...], lows: tuple[int, ...], cuts: tuple[int, ...], kind: str
) -> None:
    """Padding may be selected, and then nothing of that is in the result; in one kernel, with the same bits."""
    module = padded_selection(kind, dims, lows, cuts)
    generator = np.random.default_rng(sum(dims))
    few = np.where(generator.random(dims) < 0.02, np.nan, generator.integers(-2, 3, dims))
    operand = few.astype(Shape.scalar(kind).type.dtype)
    source = random_array(generator, module.entry.parameters[1].shape)
    wanted = xlapy.evaluate(module, operand, source)
    executable = xlapy.compile(module)
    assert "s.fusion" in executable.hlo_text()
    for threads in (1, 3):
        found = on_threads(executable, threads)(operand, source)
        np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))
