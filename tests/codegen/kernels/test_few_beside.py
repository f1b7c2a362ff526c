"""Folds whose results have few elements in their last dimension, as points in space do: lanes lie across the one before
it, and each of the few has vectors of its own."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import flatten, together
from xlapy.codegen.kernels.reduce import MOST_BESIDE

FOLDS = {
    "forces": """w = T[J,P] parameter(1)  a = T[J,P,C] broadcast(w), dimensions={0,1}
        m = T[J,P,C] multiply(x, a)  ROOT r = T[P,C] reduce(m, z), dimensions={0}, to_apply=fold""",
    "distances": """w = T[P,C] parameter(1)  a = T[J,P,C] broadcast(w), dimensions={1,2}
        d = T[J,P,C] subtract(a, x)  m = T[J,P,C] multiply(d, d)
        r = T[P,C] reduce(m, z), dimensions={0}, to_apply=fold  ROOT s = T[P,C] add(r, w)""",
    "of several groups": """w = T[J,P] parameter(1)  y = T[2,J,P,C] broadcast(x), dimensions={1,2,3}
        a = T[2,J,P,C] broadcast(w), dimensions={1,2}  m = T[2,J,P,C] multiply(y, a)
        ROOT r = T[2,P,C] reduce(m, z), dimensions={1}, to_apply=fold""",
    "with one between": """w = T[J,P] parameter(1)  y = T[J,P,1,C] reshape(x)
        a = T[J,P,1,C] broadcast(w), dimensions={0,1}
        m = T[J,P,1,C] multiply(y, a)  ROOT r = T[P,1,C] reduce(m, z), dimensions={0}, to_apply=fold""",
    "of two dimensions": """w = T[J,P] parameter(1)  y = T[J,4,P,C] broadcast(x), dimensions={0,2,3}
        a = T[J,4,P,C] broadcast(w), dimensions={0,2}  m = T[J,4,P,C] add(y, a)
        ROOT r = T[P,C] reduce(m, z), dimensions={0,1}, to_apply=fold""",
}
OPERATIONS = ("add", "maximum")
TYPES: tuple[tuple[str, Any], ...] = (
    *(("f32", np.float32), ("f64", np.float64)),
    *(("bf16", ml_dtypes.bfloat16), ("s32", np.int32)),
)


COUNT = 20


def program(name: str, operation: str, type: str, places: int, few: int) -> str:
    text = f"""HloModule m
      fold {{ a = T[] parameter(0)  b = T[] parameter(1)  ROOT c = T[] {operation}(a, b) }}
      ENTRY e {{ x = T[J,P,C] parameter(0)  z = T[] constant(0)  {FOLDS[name]} }}"""
    for letter, size in (("J", COUNT), ("P", places), ("C", few)):
        text = text.replace(f"[{letter},", f"[{size},").replace(f",{letter},", f",{size},")
        text = text.replace(f",{letter}]", f",{size}]")
    return text.replace("T[", f"{type}[")


@pytest.mark.parametrize("few", [2, 3, MOST_BESIDE, MOST_BESIDE + 1])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_beside_one_another(name: str, few: int) -> None:
    """Of integers, which all orders fold alike; for all numbers of lanes, and with a vector that overlaps the last."""
    programs, arguments = {}, []
    for places, (operation, (type, dtype)) in product([7, 16, 17, 40], zip(2 * OPERATIONS, TYPES, strict=True)):
        programs[f"{operation} of {type}, {places} places"] = program(name, operation, type, places, few)
        generator = np.random.default_rng(places)
        arguments.append(generator.integers(-4, 5, (COUNT, places, few)).astype(dtype))
        sizes = (places, few) if name == "distances" else (COUNT, places)
        arguments.append(generator.integers(-4, 5, sizes).astype(dtype))
    module = together([*programs.values()])
    results = xlapy.compile(module)(*arguments), xlapy.evaluate(module, *arguments)
    for case, found, expected in zip(programs, *results, strict=True):
        np.testing.assert_array_equal(found, expected, case)


def test_the_largest_and_its_place_beside_one_another() -> None:
    text = """HloModule m
      largest { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
        g = pred[] compare(a, b), direction=GE  v = f32[] select(g, a, b)  p = s32[] select(g, i, j)
        ROOT t = (f32[], s32[]) tuple(v, p) }
      ENTRY e { x = f32[20,33,3] parameter(0)  w = f32[20,33] parameter(1)
        a = f32[20,33,3] broadcast(w), dimensions={0,1}  m = f32[20,33,3] multiply(x, a)
        i = s32[20,33,3] iota(), iota_dimension=0  z = f32[] constant(-inf)  n = s32[] constant(0)
        ROOT r = (f32[33,3], s32[33,3]) reduce(m, i, z, n), dimensions={0}, to_apply=largest }"""
    generator = np.random.default_rng(0)
    x, w = (generator.normal(size=size).astype(np.float32) for size in ((20, 33, 3), (20, 33)))
    for found, expected in zip(flatten(xlapy.compile(text)(x, w)), flatten(xlapy.evaluate(text, x, w)), strict=True):
        np.testing.assert_array_equal(found, expected)
