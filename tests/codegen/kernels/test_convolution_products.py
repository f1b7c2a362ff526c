"""Convolutions as matrix products against the reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.close_results import check_same
from tests.support.random_windows import random_array
from tests.support.targets import lesser_targets
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.element_types import PRED
from xlapy.hlo.text import parse

PRODUCTS = {
    "short rows, features first": """
      x = f32[8,32,7,7] parameter(0)
      k = f32[24,32,3,3] parameter(1)
      ROOT c = f32[8,24,7,7] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01""",
    "features last": """
      x = f32[3,15,14,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "stride, uneven padding": """
      x = f32[3,31,27,24] parameter(0)
      k = f32[3,5,24,33] parameter(1)
      ROOT c = f32[3,16,10,33] convolution(x, k),
        window={size=3x5 stride=2x3 pad=0_2x4_1}, dim_labels=b01f_01io->b01f""",
    "negative padding": """
      x = f32[3,31,37,24] parameter(0)
      k = f32[3,2,24,33] parameter(1)
      ROOT c = f32[3,25,38,33] convolution(x, k),
        window={size=3x2 pad=-3_-1x-2_4}, dim_labels=b01f_01io->b01f""",
    "lines of two tiles": """
      x = f32[2,9,27,64] parameter(0)
      k = f32[3,3,64,72] parameter(1)
      ROOT c = f32[2,9,27,72] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "reversed, with holes": """
      x = f32[3,20,21,36] parameter(0)
      k = f32[3,2,36,24] parameter(1)
      ROOT c = f32[3,20,20,24] convolution(x, k),
        window={size=3x2 pad=2_2x1_1 rhs_dilate=2x3 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f""",
    "reversed, with holes, many features": """
      x = f32[2,20,21,68] parameter(0)
      k = f32[3,2,68,24] parameter(1)
      ROOT c = f32[2,20,20,24] convolution(x, k),
        window={size=3x2 pad=2_2x1_1 rhs_dilate=2x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f""",
    "reversed lines, far outside": """
      x = f32[2,12,11,64] parameter(0)
      k = f32[3,3,64,72] parameter(1)
      ROOT c = f32[2,16,14,72] convolution(x, k),
        window={size=3x3 stride=1x2 pad=3_3x9_9 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f""",
    "a kernel that several units share": """
      x = f32[4,12,13,64] parameter(0)
      k = f32[3,3,64,136] parameter(1)
      ROOT c = f32[4,12,13,136] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "a kernel with holes that several units share": """
      x = f32[3,16,19,64] parameter(0)
      k = f32[3,2,64,136] parameter(1)
      ROOT c = f32[3,16,19,136] convolution(x, k),
        window={size=3x2 pad=2_2x2_1 rhs_dilate=2x3 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f""",
    "few positions, a kernel of several panels": """
      x = f32[1,7,7,256] parameter(0)
      k = f32[3,3,256,520] parameter(1)
      ROOT c = f32[1,7,7,520] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "rows too long for one region": """
      x = f32[1,3,600,256] parameter(0)
      k = f32[2,2,256,24] parameter(1)
      ROOT c = f32[1,2,601,24] convolution(x, k),
        window={size=2x2 pad=0_0x1_1}, dim_labels=b01f_01io->b01f""",
    "stride beyond the window": """
      x = f32[4,26,29,64] parameter(0)
      k = f32[2,2,64,40] parameter(1)
      ROOT c = f32[4,9,8,40] convolution(x, k),
        window={size=2x2 stride=3x4 pad=1_0x0_1}, dim_labels=b01f_01io->b01f""",
    "groups": """
      x = f32[3,15,14,48] parameter(0)
      k = f32[3,3,16,96] parameter(1)
      ROOT c = f32[3,15,14,96] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3""",
    "one dimension": """
      x = f32[5,200,64] parameter(0)
      k = f32[7,64,40] parameter(1)
      ROOT c = f32[5,200,40] convolution(x, k),
        window={size=7 pad=3_3}, dim_labels=b0f_0io->b0f""",
    "three dimensions": """
      x = f32[2,7,9,8,16] parameter(0)
      k = f32[3,2,3,16,32] parameter(1)
      ROOT c = f32[2,7,9,8,32] convolution(x, k),
        window={size=3x2x3 pad=1_1x1_0x1_1}, dim_labels=b012f_012io->b012f""",
    "gradient of a kernel": """
      x = f32[8,20,21,50] parameter(0)
      k = f32[8,20,21,40] parameter(1)
      ROOT c = f32[3,5,50,40] convolution(x, k),
        window={size=20x21 pad=1_1x2_2}, dim_labels=f01b_i01o->01bf""",
    "gradient of a kernel, f64": """
      x = f64[8,20,21,30] parameter(0)
      k = f64[8,20,21,40] parameter(1)
      ROOT c = f64[3,5,30,40] convolution(x, k),
        window={size=20x21 pad=1_1x2_2}, dim_labels=f01b_i01o->01bf""",
    "gradient of a kernel, long lines": """
      x = f32[3,24,30,32] parameter(0)
      k = f32[3,24,30,40] parameter(1)
      ROOT c = f32[3,3,32,40] convolution(x, k),
        window={size=24x30 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf""",
    "gradient of a kernel, long lines, stride, with holes": """
      x = f32[3,52,55,50] parameter(0)
      k = f32[3,25,29,33] parameter(1)
      ROOT c = f32[3,2,50,33] convolution(x, k),
        window={size=25x29 stride=2x3 pad=2_-1x0_5 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf""",
    "gradient of a kernel, long lines far outside": """
      x = f64[5,20,40,16] parameter(0)
      k = f64[5,14,31,72] parameter(1)
      ROOT c = f64[7,4,16,72] convolution(x, k),
        window={size=14x31 pad=-3_3x-9_3}, dim_labels=f01b_i01o->01bf""",
    "gradient of a kernel, one dimension": """
      x = f32[9,300,29] parameter(0)
      k = f32[9,300,64] parameter(1)
      ROOT c = f32[5,29,64] convolution(x, k),
        window={size=300 pad=3_1}, dim_labels=f0b_i0o->0bf""",
    "gradient of a kernel, three dimensions": """
      x = s32[3,5,6,30,16] parameter(0)
      k = s32[3,5,6,30,32] parameter(1)
      ROOT c = s32[2,3,3,16,32] convolution(x, k),
        window={size=5x6x30 pad=1_0x1_1x1_1}, dim_labels=f012b_i012o->012bf""",
    "gradient of a kernel, reversed": """
      x = f32[3,24,30,32] parameter(0)
      k = f32[3,24,30,40] parameter(1)
      ROOT c = f32[3,3,32,40] convolution(x, k),
        window={size=24x30 pad=1_1x1_1 rhs_reversal=0x1}, dim_labels=f01b_i01o->01bf""",
    "dilated input": """
      x = f32[4,13,24,64] parameter(0)
      k = f32[3,3,64,48] parameter(1)
      ROOT c = f32[4,26,24,48] convolution(x, k),
        window={size=3x3 pad=1_2x1_1 lhs_dilate=2x1}, dim_labels=b01f_01io->b01f""",
    "batch inside": """
      x = f32[12,15,32,14] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[12,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=01fb_01io->01bf""",
    "mixed orders": """
      x = f32[13,5,14,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[5,14,13,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=0b1f_10io->b10f""",
    "f64": """
      x = f64[3,15,14,32] parameter(0)
      k = f64[3,3,32,40] parameter(1)
      ROOT c = f64[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "bf16": """
      x = bf16[3,15,14,32] parameter(0)
      k = bf16[3,3,32,40] parameter(1)
      ROOT c = bf16[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "f16, short rows": """
      x = f16[8,32,7,7] parameter(0)
      k = f16[24,32,3,3] parameter(1)
      ROOT c = f16[8,24,7,7] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01""",
    "s32": """
      x = s32[3,15,14,32] parameter(0)
      k = s32[3,3,32,40] parameter(1)
      ROOT c = s32[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "s64": """
      x = s64[3,15,14,32] parameter(0)
      k = s64[3,3,32,40] parameter(1)
      ROOT c = s64[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "few u8, and few features of the result": """
      x = u8[1,9,8,36] parameter(0)
      k = u8[3,3,36,7] parameter(1)
      ROOT c = s32[1,9,8,7] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "few s8, of few features": """
      x = s8[2,11,12,16] parameter(0)
      k = s8[3,3,16,21] parameter(1)
      ROOT c = s32[2,11,12,21] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "s8 with sums of 32 bits": """
      x = s8[3,15,14,32] parameter(0)
      k = s8[3,3,32,40] parameter(1)
      ROOT c = s32[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "few input features, stride": """
      x = f32[2,61,64,3] parameter(0)
      k = f32[7,7,3,40] parameter(1)
      ROOT c = f32[2,31,32,40] convolution(x, k),
        window={size=7x7 stride=2x2 pad=3_3x3_2}, dim_labels=b01f_01io->b01f""",
    "one input feature": """
      x = f32[9,28,27,1] parameter(0)
      k = f32[3,3,1,32] parameter(1)
      ROOT c = f32[9,28,27,32] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "few input features, reversed, with holes": """
      x = f32[9,30,31,2] parameter(0)
      k = f32[4,3,2,33] parameter(1)
      ROOT c = f32[9,25,29,33] convolution(x, k),
        window={size=4x3 pad=2_2x2_2 rhs_dilate=3x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f""",
    "few input features, reversed lines, far outside": """
      x = f32[2,12,51,5] parameter(0)
      k = f32[3,3,5,72] parameter(1)
      ROOT c = f32[2,16,34,72] convolution(x, k),
        window={size=3x3 stride=1x2 pad=3_3x9_9 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f""",
    "few input features in long lines": """
      x = f32[1,3,9000,3] parameter(0)
      k = f32[2,3,3,24] parameter(1)
      ROOT c = f32[1,2,9000,24] convolution(x, k),
        window={size=2x3 pad=0_0x1_1}, dim_labels=b01f_01io->b01f""",
    "few input features of groups": """
      x = f32[3,35,34,6] parameter(0)
      k = f32[3,3,2,96] parameter(1)
      ROOT c = f32[3,35,34,96] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3""",
    "few input features, one dimension": """
      x = f64[5,400,4] parameter(0)
      k = f64[9,4,240] parameter(1)
      ROOT c = f64[5,400,240] convolution(x, k),
        window={size=9 pad=4_4}, dim_labels=b0f_0io->b0f""",
    "few input features, three dimensions": """
      x = s32[2,9,12,13,3] parameter(0)
      k = s32[3,2,3,3,32] parameter(1)
      ROOT c = s32[2,9,12,13,32] convolution(x, k),
        window={size=3x2x3 pad=1_1x1_0x1_1}, dim_labels=b012f_012io->b012f""",
    "lines of a tile and more, many features": """
      x = f32[2,20,21,72] parameter(0)
      k = f32[3,3,72,100] parameter(1)
      ROOT c = f32[2,20,21,100] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "lines of a tile and more, many features apart": """
      x = f64[1,33,31,48] parameter(0)
      k = f64[3,2,48,40] parameter(1)
      ROOT c = f64[1,17,15,40] convolution(x, k),
        window={size=3x2 stride=2x2 pad=1_1x0_2 rhs_dilate=1x3}, dim_labels=b01f_01io->b01f""",
    "short lines, many features": """
      x = f32[3,13,14,72] parameter(0)
      k = f32[3,3,72,136] parameter(1)
      ROOT c = f32[3,14,13,136] convolution(x, k),
        window={size=3x3 pad=2_1x0_1}, dim_labels=b01f_01io->b01f""",
    "short lines, many features, one image": """
      x = f32[1,13,14,72] parameter(0)
      k = f32[3,3,72,136] parameter(1)
      ROOT c = f32[1,14,13,136] convolution(x, k),
        window={size=3x3 pad=2_1x0_1}, dim_labels=b01f_01io->b01f""",
    "short lines, many features, stride along them": """
      x = f64[2,11,19,144] parameter(0)
      k = f64[3,3,72,256] parameter(1)
      ROOT c = f64[2,15,10,256] convolution(x, k),
        window={size=3x3 stride=1x2 pad=3_5x2_1 rhs_dilate=2x1}, dim_labels=b01f_01io->b01f, feature_group_count=2""",
    "short lines, many features, several units": """
      x = f64[1,12,7,1024] parameter(0)
      k = f64[2,3,1024,132] parameter(1)
      ROOT c = f64[1,12,7,132] convolution(x, k),
        window={size=2x3 pad=0_1x1_1}, dim_labels=b01f_01io->b01f""",
    "more features than positions": """
      x = f32[1,7,7,96] parameter(0)
      k = f32[3,3,96,176] parameter(1)
      ROOT c = f32[1,7,7,176] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "more features than positions, groups": """
      x = f64[2,9,8,144] parameter(0)
      k = f64[3,2,72,208] parameter(1)
      ROOT c = f64[2,5,9,208] convolution(x, k),
        window={size=3x2 stride=2x1 pad=2_2x1_3 rhs_dilate=2x3 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f,
        feature_group_count=2""",
    "more features than positions, mixed orders": """
      x = s32[5,3,6,64] parameter(0)
      k = s32[3,3,64,130] parameter(1)
      ROOT c = s32[6,3,5,130] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=0b1f_10io->1b0f""",
    "more features than positions, large kernel": """
      x = f32[1,5,6,256] parameter(0)
      k = f32[3,3,256,1024] parameter(1)
      ROOT c = f32[1,5,6,1024] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
}

# Those of f32 by multiply-adds, should the machine have a matrix unit.
PRODUCTS |= {
    name: f"{text}, operand_precision={{highest,highest}}" for name, text in PRODUCTS.items() if "f32[" in text
}
COPYING = [name for name in PRODUCTS if "lines" in name and "many features" in name and "reversed" not in name]
GRADIENTS = [name for name in PRODUCTS if name.startswith("gradient of a kernel")]
TARGETS = lesser_targets()


def program(name: str) -> str:
    return f"HloModule m\nENTRY main {{{PRODUCTS[name]}\n}}"


def arguments_of(text: str, seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters]


@cache
def evaluated(name: str) -> tuple[list[Any], Any]:
    """Arguments and the result, which takes the evaluator longer than compilers take, and does not depend on them."""
    arguments = arguments_of(program(name), len(name))
    return arguments, xlapy.evaluate(program(name), *arguments)


@pytest.mark.parametrize("name", PRODUCTS)
def test_convolution_by_the_matrix_product_library(name: str) -> None:
    arguments, wanted = evaluated(name)
    compiled = xlapy.compile(program(name))
    assert "_windows" in compiled.llvm_ir()
    check_same(compiled(*arguments), wanted)


def on_targets_in_turns(names: Sequence[str]) -> list[Any]:
    """Each program for one of the targets, which come up equally often, and in slow tests for all."""
    pairs = product(enumerate(names), enumerate(TARGETS))
    return [
        pytest.param(name, target, marks=() if (number - turn) % len(TARGETS) == 0 else pytest.mark.slow)
        for (number, name), (turn, target) in pairs
    ]


@pytest.mark.parametrize(("name", "target"), on_targets_in_turns([*GRADIENTS, *COPYING]))
def test_convolutions_by_vectors_of_any_length(name: str, target: str) -> None:
    """Shorter ones than tiles are high, too."""
    arguments, wanted = evaluated(name)
    options = xlapy.CompileOptions()
    executable = Executable(compile_module(parse(program(name)), options, TARGETS[target]), options)
    check_same(executable(*arguments), wanted)


@pytest.mark.parametrize(
    "name", [*GRADIENTS, *COPYING, *(name for name in PRODUCTS if name.startswith("more features than positions"))]
)
def test_convolutions_do_not_depend_on_threads(name: str) -> None:
    text = program(name)
    arguments = arguments_of(text, 2)
    results = [
        xlapy.compile(text, xlapy.CompileOptions(num_threads=count))(*arguments).tobytes() for count in (1, 2, 3, 8)
    ]
    assert len(set(results)) == 1


def with_epilogue(text: str, behind: str) -> str:
    """The program with something behind its convolution; `T[]` and `P[]` are its shape, and the same of predicates."""
    root = parse(f"HloModule m\nENTRY main {{{text}\n}}").entry.root
    shape = root.shape.without_layout()
    words = {"P[]": str(shape.with_type(PRED)), "T[]": str(shape)}
    for word, meaning in words.items():
        behind = behind.replace(word, meaning)
    return f"HloModule m\nENTRY main {{{text.replace('ROOT c', 'c')}\n{behind}\n}}"


@pytest.mark.parametrize("name", PRODUCTS)
def test_convolutions_and_what_is_behind_them(name: str) -> None:
    text = with_epilogue(PRODUCTS[name], "a = T[] abs(c)  ROOT m = T[] maximum(a, c)")
    arguments = arguments_of(text, len(name))
    compiled = [xlapy.compile(each, xlapy.CompileOptions(num_threads=2)) for each in (program(name), text)]
    moves_elements = name in ("short rows, features first", "f16, short rows", "dilated input")
    is_small = name.startswith(("few u8", "few s8"))
    assert ("kind=kCustom" in compiled[1].hlo_text()) != (moves_elements or is_small)
    product, got = (np.asarray(executable(*arguments)) for executable in compiled)
    assert got.tobytes() == np.maximum(np.abs(product), product).tobytes()


@pytest.mark.parametrize(
    "name",
    [
        "features last",
        "one input feature",
        "gradient of a kernel",
        "gradient of a kernel, long lines",
        "groups",
        "lines of a tile and more, many features",
        "more features than positions",
        "short lines, many features",
        "short lines, many features, one image",
        "bf16",
    ],
)
def test_epilogues_do_not_hide_special_numbers(name: str) -> None:
    """What is summed again has its epilogue again, and whether it must be shows before the first one."""
    behind = "f = P[] is-finite(c)  z = T[] convert(f)  ROOT s = T[] select(f, c, z)"
    text = with_epilogue(PRODUCTS[name], behind)
    image, kernel = arguments_of(text, 3)
    kernel[(0,) * kernel.ndim] = np.inf
    compiled = xlapy.compile(text)
    assert "kind=kCustom" in compiled.hlo_text()
    check_same(compiled(image, kernel), xlapy.evaluate(text, image, kernel))


@pytest.mark.parametrize(
    "name",
    [
        "features last",
        "few input features, stride",
        "short rows, features first",
        "gradient of a kernel",
        "gradient of a kernel, long lines",
        "groups",
        "lines of a tile and more, many features",
        "short lines, many features",
        "short lines, many features, one image",
        "more features than positions, groups",
        "more features than positions, large kernel",
        "bf16",
    ],
)
def test_special_numbers_do_not_meet_what_lies_outside(name: str) -> None:
    text = program(name)
    image, kernel = arguments_of(text, 3)
    for special in (np.inf, np.nan):
        kernel[(0,) * kernel.ndim] = special
        got, wanted = xlapy.compile(text)(image, kernel), xlapy.evaluate(text, image, kernel)
        assert 0 < np.isfinite(wanted.astype(np.float32)).mean() < 1
        check_same(got, wanted)
