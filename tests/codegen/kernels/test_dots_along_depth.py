"""Products of matrices and vectors, and others with few columns: lanes run along what is summed up, where elements of
both sides are neighbours, or along the rows."""

from __future__ import annotations

import functools
from itertools import product

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import flatten
from tests.support.targets import lesser_targets
from xlapy.codegen.kernels.dot import LEAST_DEPTH, DotPlan, plan_dot
from xlapy.codegen.target import REFERENCE_MACHINES, host_target, reference_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions

LESSER = lesser_targets()
TARGETS = {"host": host_target(), **LESSER}
TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "s32": np.int32, "c64": np.complex64}
DEPTHS = [1, 3, 4, 7, 16, 33, 131]
LENGTH = 4096


def program(type: str, rows: int | None, columns: int | None) -> str:
    """A product for each depth, with each of the sides as it is and transposed; a side without rows, or columns, is a
    vector. Operands are parts of one vector, which begin anywhere."""
    lines, results = [], []
    for number, (depth, left, right) in enumerate(product(DEPTHS, (0, 1), (0, 1))):
        if (rows is None and left) or (columns is None and right):
            continue
        a = (depth,) if rows is None else ((depth, rows), (rows, depth))[left]
        b = (depth,) if columns is None else ((depth, columns), (columns, depth))[right]
        for name, dims in (("a", a), ("b", b)):
            size, shape = int(np.prod(dims)), ",".join(map(str, dims))
            lines.append(f"  s{name}{number} = {type}[{size}] slice(x), slice={{[{number}:{number + size}]}}")
            lines.append(f"  {name}{number} = {type}[{shape}] reshape(s{name}{number})")
        dims = ",".join(str(size) for size in (rows, columns) if size is not None)
        lines.append(
            f"  d{number} = {type}[{dims}] dot(a{number}, b{number}), lhs_contracting_dims={{{left}}}, "
            f"rhs_contracting_dims={{{right}}}"
        )
        results.append((f"d{number}", f"{type}[{dims}]"))
    names, shapes = (", ".join(column) for column in zip(*results, strict=True))
    return "\n".join(
        ["HloModule products", "ENTRY main {", f"  x = {type}[{LENGTH}] parameter(0)", *lines]
        + [f"  ROOT all = ({shapes}) tuple({names})", "}"]
    )


@functools.cache
def wholes(type: str) -> np.ndarray:
    """Numbers whose sums of products are exact in any order."""
    return np.random.default_rng(2).integers(-2, 3, LENGTH).astype(TYPES[type])


@pytest.mark.parametrize(("name", "type"), [*(("host", type) for type in TYPES), *((name, "f32") for name in LESSER)])
@pytest.mark.parametrize(("rows", "columns"), [(9, None), (None, 6), (3, None), (2, 3), (5, 1), (1, 13)])
def test_products(name: str, type: str, rows: int | None, columns: int | None) -> None:
    text, x = program(type, rows, columns), wholes(type)
    options = CompileOptions()
    executable = Executable(compile_module(parse(text), options, TARGETS[name]), options)
    for own, expected in zip(flatten(executable(x)), xlapy.evaluate(text, x), strict=True):
        np.testing.assert_array_equal(own, expected)


def test_a_vector_of_complex_numbers_by_another_one() -> None:
    text = """ENTRY main { x = c64[131] parameter(0)
      ROOT d = c64[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"""
    x = wholes("c64")[:131] * np.complex64(1 - 2j)
    np.testing.assert_array_equal(xlapy.compile(text)(x), xlapy.evaluate(text, x))


def test_of_several_dimensions_that_are_summed_up() -> None:
    text = """ENTRY main { x = f32[3,4,19] parameter(0)
      y = f32[5,2,4,19] parameter(1)
      z = f32[19,4] parameter(2)
      d = f32[3,5,2] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={2,3}
      e = f32[3,5,2] dot(x, y), lhs_contracting_dims={2,1}, rhs_contracting_dims={3,2}
      f = f32[3] dot(x, z), lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}
      ROOT r = (f32[3,5,2], f32[3,5,2], f32[3]) tuple(d, e, f) }"""
    inputs = [wholes("f32")[: np.prod(dims)].reshape(dims) for dims in ((3, 4, 19), (5, 2, 4, 19), (19, 4))]
    for own, expected in zip(xlapy.compile(text)(*inputs), xlapy.evaluate(text, *inputs), strict=True):
        np.testing.assert_array_equal(own, expected)


def test_lanes_that_are_none_of_the_last_vector_spread_no_nan() -> None:
    """The last vector overlaps the one before it, whose infinities it has read already."""
    text = """ENTRY main { x = f32[6,21] parameter(0)
      y = f32[21] parameter(1)
      ROOT d = f32[6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    x, y = np.ones((6, 21), np.float32), np.ones(21, np.float32)
    x[2, 10] = y[7] = np.inf
    np.testing.assert_array_equal(xlapy.compile(text)(x, y), xlapy.evaluate(text, x, y))


@pytest.mark.parametrize("name", REFERENCE_MACHINES)
def test_which_way_lanes_run(name: str) -> None:
    def plan(left: str, right: str, result: str, contracted: tuple[int, int], type: str = "f32") -> DotPlan:
        text = f"""ENTRY main {{ x = {type}[{left}] parameter(0)
          y = {type}[{right}] parameter(1)
          ROOT d = {type}[{result}] dot(x, y), lhs_contracting_dims={{{contracted[0]}}},
            rhs_contracting_dims={{{contracted[1]}}} }}"""
        return plan_dot(parse(text).entry.root, reference_target(name))

    assert plan("9,40", "40", "9", (1, 0)).deep == 0
    assert plan("40", "9,40", "9", (0, 1)).deep == 0
    assert plan("9,40", "40", "9", (1, 0), "pred").deep is None
    assert plan(f"9,{LEAST_DEPTH - 1}", f"{LEAST_DEPTH - 1}", "9", (1, 0)).deep is None
    assert plan("2,40", "3,40", "2,3", (1, 1)).deep == 0
    assert plan("8,8", "8,8", "8,8", (1, 1)).deep is None  # four rows share what lanes gather
    turned = plan("40,9", "40", "9", (0, 0))
    assert (turned.deep, turned.exchanged, turned.columns) == (None, True, 9)
