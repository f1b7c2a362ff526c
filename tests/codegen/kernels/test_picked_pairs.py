"""Every second element: whoever reads the others too picks them from the same vectors."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy


def sums_of_pairs(element_type: str, columns: int, first: int) -> str:
    """Of windows over two neighbours, each of them beside the next, behind the `first` columns."""
    results = (columns - first) // 2
    return f"""HloModule m
      sum {{
        a = {element_type}[] parameter(0)
        b = {element_type}[] parameter(1)
        ROOT s = {element_type}[] add(a, b)
      }}
      ENTRY main {{
        x = {element_type}[7,{columns}] parameter(0)
        zero = {element_type}[] constant(0)
        y = {element_type}[7,{2 * results}] slice(x), slice={{[0:7], [{first}:{first + 2 * results}]}}
        ROOT w = {element_type}[7,{results}] reduce-window(y, zero), window={{size=1x2 stride=1x2}}, to_apply=sum
      }}"""


@pytest.mark.parametrize("element_type", ["f32", "f64", "s32", "u16"])
@pytest.mark.parametrize(("columns", "first"), [(64, 0), (64, 1), (64, 2), (65, 0), (65, 1), (130, 3), (40, 0)])
def test_sums_of_pairs(element_type: str, columns: int, first: int) -> None:
    text = sums_of_pairs(element_type, columns, first)
    shape = xlapy.hlo.parse(text).entry.parameters[0].shape
    x = np.random.default_rng(1).integers(0, 100, shape.dims).astype(shape.type.dtype)
    np.testing.assert_array_equal(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.parametrize(("columns", "first", "loads"), [(64, 0, 2), (64, 2, 2), (64, 1, 4), (65, 0, 4)])
def test_pairs_are_loaded_once(columns: int, first: int, loads: int) -> None:
    """Where rows consist of pairs, and windows see whole ones: else what lies beside an element may be outside."""
    code = xlapy.compile(sums_of_pairs("f32", columns, first)).llvm_ir()
    assert sum(" = load <" in line for line in code.splitlines()) == loads
