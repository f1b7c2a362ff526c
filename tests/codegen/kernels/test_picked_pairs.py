"""Every second or third element: whoever reads the others too picks them from the same vectors."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.codegen.target import host_target


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


def grey(element_type: str, width: int) -> str:
    """Pixels of three colours, each of which has a weight, as numbers that hold their sum."""
    colours = "".join(
        f"""s{n} = {element_type}[9,{width},1] slice(x), slice={{[0:9], [0:{width}], [{n}:{n + 1}]}}
        r{n} = {element_type}[9,{width}] reshape(s{n})
        c{n} = u16[9,{width}] convert(r{n})
        k{n} = u16[] constant({weight})
        w{n} = u16[9,{width}] broadcast(k{n}), dimensions={{}}
        p{n} = u16[9,{width}] multiply(c{n}, w{n})
        """
        for n, weight in enumerate((77, 150, 29))
    )
    return f"""HloModule m
      ENTRY main {{
        x = {element_type}[9,{width},3] parameter(0)
        {colours} a = u16[9,{width}] add(p0, p1)
        b = u16[9,{width}] add(a, p2)
        eight = u16[] constant(8)
        e = u16[9,{width}] broadcast(eight), dimensions={{}}
        ROOT s = u16[9,{width}] shift-right-logical(b, e)
      }}"""


@pytest.mark.parametrize("element_type", ["u8", "u16"])
@pytest.mark.parametrize("width", [16, 40, 64, 67])
def test_colours(element_type: str, width: int) -> None:
    text = grey(element_type, width)
    x = np.random.default_rng(1).integers(0, 256, (9, width, 3)).astype("u1" if element_type == "u8" else "u2")
    np.testing.assert_array_equal(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.skipif(not host_target().has_short_permute, reason="lanes are eight")
def test_colours_are_loaded_once() -> None:
    code = xlapy.compile(grey("u8", 64)).llvm_ir()
    assert code.count(" = load <8 x i8>") == 3


def columns_of(element_type: str, rows: int, columns: int) -> str:
    """Something that is made of the columns of short rows: their sum, each times its number."""
    parts, total = "", "zeros"
    for n in range(columns):
        parts += f"""s{n} = {element_type}[{rows},1] slice(x), slice={{[0:{rows}], [{n}:{n + 1}]}}
        r{n} = {element_type}[{rows}] reshape(s{n})
        k{n} = {element_type}[] constant({n + 1})
        b{n} = {element_type}[{rows}] broadcast(k{n}), dimensions={{}}
        p{n} = {element_type}[{rows}] multiply(r{n}, b{n})
        a{n} = {element_type}[{rows}] add({total}, p{n})
        """
        total = f"a{n}"
    return f"""HloModule m
      ENTRY main {{
        x = {element_type}[{rows},{columns}] parameter(0)
        zero = {element_type}[] constant(0)
        zeros = {element_type}[{rows}] broadcast(zero), dimensions={{}}
        {parts} ROOT r = {element_type}[{rows}] negate({total})
      }}"""


@pytest.mark.parametrize("element_type", ["f32", "f64", "s32", "bf16", "u8"])
@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("rows", [7, 40, 2000, 2003])
def test_columns_of_short_rows(element_type: str, rows: int, columns: int) -> None:
    text = columns_of(element_type, rows, columns)
    shape = xlapy.hlo.parse(text).entry.parameters[0].shape
    x = np.random.default_rng(1).integers(0, 9, shape.dims).astype(shape.type.dtype)
    np.testing.assert_array_equal(xlapy.compile(text)(x), xlapy.evaluate(text, x))


@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("element_type", ["f32", "f64"])
def test_short_rows_are_loaded_once(element_type: str, columns: int) -> None:
    """However many registers a step takes."""
    target = host_target()
    if not (columns == 2 or target.has_permute or (columns == 3 and target.has_short_permute)):
        pytest.skip("what is picked for a column is of no use for others")
    code = xlapy.compile(columns_of(element_type, 4000, columns)).llvm_ir()
    assert sum(" = load <" in line and "@table" not in line for line in code.splitlines()) == columns
