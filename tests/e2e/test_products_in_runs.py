"""Dots whose rows, columns or depth have no single stride are calls of the library all the same."""

from __future__ import annotations

import functools
import itertools
import math
import random

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.hlo.graph import Instruction
from xlapy.hlo.matrix_products import library_product
from xlapy.hlo.text import parse

QUERIES_OF_GROUPS = """ENTRY e {
  k = f32[2,40,2,16] parameter(0)
  q = f32[2,36,2,4,16] parameter(1)
  ROOT d = f32[2,2,40,36,4] dot(k, q), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3},
    rhs_contracting_dims={4}
}"""
BLOCKS_OF_KEYS = """ENTRY e {
  q = f32[3,40,16] parameter(0)
  k = f32[2,3,24,16] parameter(1)
  ROOT d = f32[3,40,2,24] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2},
    rhs_contracting_dims={3}
}"""
DEPTH_BACKWARDS = """ENTRY e {
  x = f32[20,12,8] parameter(0)
  y = f32[24,12,8] parameter(1)
  ROOT d = f32[20,24] dot(x, y), lhs_contracting_dims={2,1}, rhs_contracting_dims={2,1}
}"""
WITH_BIAS = """ENTRY e {
  x = f32[16,3,40,8] parameter(0)
  y = f32[8,3,24] parameter(1)
  v = f32[24] parameter(2)
  d = f32[3,16,40,24] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={3},
    rhs_contracting_dims={0}
  b = f32[3,16,40,24] broadcast(v), dimensions={3}
  ROOT s = f32[3,16,40,24] add(d, b)
}"""
COLUMNS_APART_WITH_BIAS = """ENTRY e {
  k = f32[3,24,16] parameter(0)
  q = f32[32,3,4,16] parameter(1)
  v = f32[4] parameter(2)
  d = f32[3,24,32,4] dot(k, q), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2},
    rhs_contracting_dims={3}
  b = f32[3,24,32,4] broadcast(v), dimensions={3}
  ROOT s = f32[3,24,32,4] add(d, b)
}"""

IN_LINES_OF_THEIR_OWN = """ENTRY e {
  x = f32[96,48,16] parameter(0)
  w = f32[48,24] parameter(1)
  ROOT d = f32[96,16,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
IN_SHORT_LINES = IN_LINES_OF_THEIR_OWN.replace("16", "8").replace("48", "8").replace("24", "8")
IN_VERY_SHORT_LINES = IN_LINES_OF_THEIR_OWN.replace("16", "4")


def dot_of(text: str) -> Instruction:
    return next(instruction for instruction in parse(text).entry if instruction.opcode == "dot")


def whole_numbers(text: str, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = [parameter.shape for parameter in parse(text).entry.parameters]
    return [generator.integers(-3, 4, shape.dims).astype(shape.type.dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("text", "batches", "rows", "columns", "calls"),
    [
        (QUERIES_OF_GROUPS, 2, 40, 36, (2, 4)),
        (BLOCKS_OF_KEYS, 3, 40, 24, (2,)),
        (DEPTH_BACKWARDS, 1, 20, 24, ()),
        (WITH_BIAS, 3, 40, 24, (16,)),
        (COLUMNS_APART_WITH_BIAS, 3, 24, 32, (4,)),
        (IN_LINES_OF_THEIR_OWN, 96, 16, 24, ()),
        (IN_SHORT_LINES, 96, 8, 8, ()),
        (IN_VERY_SHORT_LINES, 4, 96, 24, ()),
    ],
    ids=["groups", "blocks", "depth", "bias", "columns apart", "lines", "short lines", "very short lines"],
)
def test_the_longest_run_is_a_matrix(text: str, batches: int, rows: int, columns: int, calls: tuple[int, ...]) -> None:
    """Where there is no batch, what would be the most calls is one."""
    product = library_product(dot_of(text))
    assert product is not None
    assert tuple(product.sizes[name] for name in ("batches", "m", "n")) == (batches, rows, columns)
    assert tuple(repetition.count for repetition in product.repetitions) == calls
    inputs = whole_numbers(text)
    assert_same(xlapy.compile(text)(*inputs), xlapy.evaluate(text, *inputs))


@pytest.mark.parametrize("keys", [8, 40])
def test_short_runs_are_left_to_loops(keys: int) -> None:
    text = QUERIES_OF_GROUPS.replace("2,40,2,16", f"2,{keys},2,16").replace("2,2,40,", f"2,2,{keys},")
    assert (library_product(dot_of(text)) is None) == (keys == 8)


def random_dot(seed: int) -> str:
    """A dot of dimensions in any order, with any numbers of them."""
    choose = random.Random(seed)
    counts = {
        "b": choose.randint(0, 2),
        "r": choose.randint(1, 3),
        "c": choose.randint(1, 3),
        "k": choose.randint(1, 2),
    }
    sizes = {(kind, n): choose.choice([1, 3, 16, 24]) for kind, count in counts.items() for n in range(count)}
    left = [name for name in sizes if name[0] != "c"]
    right = [name for name in sizes if name[0] != "r"]
    choose.shuffle(left)
    choose.shuffle(right)
    result = [name for name in sizes if name[0] == "b"]
    result += [name for name in left if name[0] == "r"] + [name for name in right if name[0] == "c"]
    batch = [name for name in sizes if name[0] == "b"]
    depth = [name for name in sizes if name[0] == "k"]
    choose.shuffle(depth)
    type_name = choose.choice(["f32", "s32", "f64", "bf16", "c64"])
    dims = {
        key: ",".join(str(sizes[name]) for name in names)
        for key, names in zip("xyd", (left, right, result), strict=True)
    }
    numbers = ", ".join(
        f"{side}_{what}_dims={{{','.join(str(names.index(name)) for name in of)}}}"
        for side, names in (("lhs", left), ("rhs", right))
        for what, of in (("batch", batch), ("contracting", depth))
    )
    return f"""ENTRY e {{
      x = {type_name}[{dims["x"]}] parameter(0)
      y = {type_name}[{dims["y"]}] parameter(1)
      ROOT d = {type_name}[{dims["d"]}] dot(x, y), {numbers}
    }}"""


def is_in_runs(text: str) -> bool:
    dot = dot_of(text)
    product = library_product(dot)
    batch = dot.shape.dims[: len(dot.attributes["dimension_numbers"].lhs_batch)]
    return product is not None and product.sizes["m"] * product.sizes["n"] * math.prod(batch) < dot.shape.size


def is_quick(text: str) -> bool:
    """Whether the evaluator has the result in no time."""
    return dot_of(text).shape.size < 1 << 23


@functools.cache
def seeds_in_runs() -> list[int]:
    """Of twenty such products."""
    seeds = (seed for seed in itertools.count() if is_quick(text := random_dot(seed)) and is_in_runs(text))
    return list(itertools.islice(seeds, 20))


@pytest.mark.parametrize("number", range(20))
def test_dots_of_any_dimensions(number: int) -> None:
    seed = seeds_in_runs()[number]
    text = random_dot(seed)
    inputs = whole_numbers(text, seed)
    assert_same(xlapy.compile(text)(*inputs), xlapy.evaluate(text, *inputs), f"seed {seed}")
