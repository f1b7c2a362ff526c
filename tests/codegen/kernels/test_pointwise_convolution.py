"""Convolutions with a window of one element, features anywhere: a product of matrices for each image."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.graph import HloModule
from xlapy.hlo.matrix_products import library_product
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse

SIZES = {"b": 3, "f": 20, "0": 5, "1": 7, "i": 20, "o": 33}


def pointwise(labels: str, kind: str = "f32", window: str = "size=1x1") -> HloModule:
    """With a bias for each feature of the result, and what is negative cut off."""
    image, kernel, result = labels.replace("->", "_").split("_")
    sizes = [
        [SIZES[letter] for letter in image],
        [{**SIZES, "0": 1, "1": 1}[letter] for letter in kernel],
        [{**SIZES, "f": SIZES["o"]}[letter] for letter in result],
    ]
    x, w, r = (f"{kind}[{','.join(map(str, dims))}]" for dims in sizes)
    return parse(f"""HloModule m
      ENTRY main {{
        x = {x} parameter(0)
        w = {w} parameter(1)
        bias = {kind}[33] parameter(2)
        c = {r} convolution(x, w), window={{{window}}}, dim_labels={labels}
        b = {r} broadcast(bias), dimensions={{{result.index("f")}}}
        s = {r} add(c, b)
        zero = {kind}[] constant(0)
        zeros = {r} broadcast(zero), dimensions={{}}
        ROOT m = {r} maximum(s, zeros)
      }}""")


@pytest.mark.parametrize("labels", ["bf01_oi01->bf01", "bf01_io01->bf01", "b01f_io01->bf01", "fb01_01oi->fb01"])
@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "s32"])
def test_it_is_a_product_of_the_library(labels: str, kind: str) -> None:
    module = pointwise(labels, kind)
    (convolution,) = (instruction for instruction in module.entry if instruction.opcode == "convolution")
    product = library_product(convolution)
    assert product is not None
    assert product.exchanged
    generator = np.random.default_rng(5)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    arrays = [generator.integers(-4, 5, shape.dims).astype(Shape.scalar(kind).type.dtype) for shape in shapes]
    wanted = xlapy.evaluate(module, *arrays)
    for threads in (1, 2, 3, 8):
        got = xlapy.compile(module, xlapy.CompileOptions(num_threads=threads))(*arrays)
        np.testing.assert_array_equal(got, wanted)  # sums of small integers are exact


def test_what_stands_behind_it_is_computed_with_it() -> None:
    text = xlapy.compile(pointwise("bf01_oi01->bf01").to_text().replace("5,7]", "50,70]")).hlo_text()
    assert "kind=kCustom" in text


@pytest.mark.parametrize(
    ("labels", "window"),
    [("bf01_oi01->bf10", "size=1x1"), ("b0f1_oi01->bf01", "size=1x1")],
    ids=["turned", "places apart"],
)
def test_others_are_loops(labels: str, window: str) -> None:
    module = pointwise(labels, window=window)
    (convolution,) = (instruction for instruction in module.entry if instruction.opcode == "convolution")
    assert library_product(convolution) is None
