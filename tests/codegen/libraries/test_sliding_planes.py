"""Folds of windows with nothing behind rows and positions by a library, against the evaluator."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import xlapy
from tests.codegen.libraries.test_sliding import argument, pooling
from tests.support.native import on_threads
from tests.support.values import assert_array_equal
from xlapy.codegen.libraries.sliding_planes import KINDS, WINDOWS, emit_planes
from xlapy.codegen.target import REFERENCE_MACHINES, reference_target
from xlapy.hlo import element_types as et


def check(text: str, *, by_library: bool = True) -> None:
    x = argument(text)
    x.flat[[5, 100, 200, 300]] = np.nan, np.inf, -np.inf, -0.0
    compiled = xlapy.compile(text)
    assert ("slide_planes" in compiled.llvm_ir()) == by_library
    tolerance = 1e-5 if x.dtype == np.float32 else 1e-13
    first, *others = (on_threads(compiled, threads)(x) for threads in (1, 2, 3, 8))
    np.testing.assert_allclose(first, xlapy.evaluate(text, x), rtol=tolerance, atol=tolerance * 100)
    for other in others:
        assert_array_equal(other, first)


def window(width: int, stride: int, pads: str = "") -> str:
    return f"size=1x1x{width}x{width} stride=1x1x{stride}x{stride}{pads and f' pad=0_0x0_0x{pads}'}"


LINES = {"side by side": (12, 20, 0, 0), "something left over": (13, 17, 1, 0), "padded": (15, 35, 0, 1)}
"""Rows and positions, or one more; elements behind these; and how many are padded, or twice as many, at both ends."""


@pytest.mark.parametrize(("width", "stride"), WINDOWS)
@pytest.mark.parametrize(("operation", "element_type"), [("add", "f32"), ("maximum", "f32"), ("minimum", "f64")])
@pytest.mark.parametrize("name", LINES)
def test_every_window(operation: str, element_type: str, width: int, stride: int, name: str) -> None:
    *least, rest, padding = LINES[name]
    sizes = [count * stride + width - stride + rest for count in least]
    counts = [(size + 3 * padding - width) // stride + 1 for size in sizes]
    source, result = (",".join(map(str, (3, 5, *each))) for each in (sizes, counts))
    pads = f"{padding}_{2 * padding}x{2 * padding}_{padding}"
    text = pooling(operation, (source, result), window(width, stride, pads), element_type=element_type)
    check(text, by_library=(operation, (width, stride)) in KINDS)


SHAPES = ("3,5,60,63", "3,5,20,21")


@pytest.mark.parametrize("init", ["3", "-2.5"])
def test_extrema_begin_with_a_number(init: str) -> None:
    check(pooling("maximum", SHAPES, window(3, 3), init=init))


@pytest.mark.parametrize(("operation", "number"), [("divide", "4"), ("divide", "3"), ("multiply", "0.3")])
def test_means(operation: str, number: str) -> None:
    behind = f"n = scalar constant({number})\n b = RESULT broadcast(n), dimensions={{}}\n"
    check(pooling("add", SHAPES, window(3, 3), behind=f"{behind} ROOT q = RESULT {operation}(w, b)"))


def test_a_sum_of_negative_zeros_is_a_positive_one() -> None:
    text = pooling("add", SHAPES, window(3, 3))
    x = np.full((3, 5, 60, 63), -0.0, np.float32)
    assert not np.signbit(xlapy.compile(text)(x)).any()


def test_lines() -> None:
    check(pooling("add", ("40,210", "40,70"), "size=1x3 stride=1x3"))
    check(pooling("maximum", ("20000", "10000"), "size=2 stride=2"))


OTHERS = {
    "few results": pooling("add", ("3,5,12,12", "3,5,4,4"), window(3, 3)),
    "sums of four": pooling("add", ("3,5,40,40", "3,5,20,20"), window(2, 2)),
    "another distance": pooling("add", ("3,5,40,40", "3,5,13,13"), window(2, 3)),
    "neighbours": pooling("maximum", ("3,5,40,40", "3,5,39,39"), window(2, 1)),
    "mostly at the ends of rows": pooling("maximum", ("60,5,8,8", "60,5,8,8"), window(3, 2, "4_5x4_5")),
    "rows of few": pooling("maximum", ("60,50,4,4", "60,50,2,2"), window(2, 2)),
    "places apart": pooling("maximum", ("3,5,41,41", "3,5,20,20"), window(2, 2) + " rhs_dilate=1x1x2x2"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_windows_have_kernels_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


@pytest.mark.parametrize("machine", REFERENCE_MACHINES)
def test_every_machine_has_vectors_of_all_widths(machine: str) -> None:
    """Parts of vectors have several lanes, or are no function that is called."""
    for type, (width, stride) in product((et.F32, et.F64), WINDOWS):
        text = emit_planes("maximum", type, width, stride, reference_target(machine)).text()
        assert text.count("define void @slide_planes") == 3
