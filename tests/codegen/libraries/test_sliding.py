"""Folds of windows by a library, against the evaluator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_array_equal
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.libraries.sliding_plan import sliding_fold
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse

IDENTITIES = {"add": "0", "maximum": "-inf", "minimum": "inf", "multiply": "1"}


def pooling(
    operation: str, shapes: tuple[str, str], window: str, *, init: str = "", element_type: str = "f32", behind: str = ""
) -> str:
    """A fold of windows; `behind` uses it as `w`, and `RESULT` as its shape."""
    source, result = (f"{element_type}[{dims}]" for dims in shapes)
    scalar, root = f"{element_type}[]", "" if behind else "ROOT "
    return f"""HloModule m
      fold {{
        a = {scalar} parameter(0)
        b = {scalar} parameter(1)
        ROOT r = {scalar} {operation}(a, b)
      }}
      ENTRY main {{
        x = {source} parameter(0)
        i = {scalar} constant({init or IDENTITIES[operation]})
        {root}w = {result} reduce-window(x, i), window={{{window}}}, to_apply=fold
        {behind.replace("RESULT", result).replace("scalar", scalar)}
      }}"""


def argument(text: str) -> Any:
    shape = parse(text).entry.parameters[0].shape
    return (np.random.default_rng(shape.size).normal(size=shape.dims) * 9).astype(shape.type.dtype)


def check(text: str, *others: Any, by_library: bool = True) -> None:
    x = argument(text)
    compiled = xlapy.compile(text)
    assert ("slide_" in compiled.llvm_ir()) == by_library
    got, wanted = compiled(x, *others), xlapy.evaluate(text, x, *others)
    if wanted.dtype.kind not in "f":
        assert_array_equal(got, wanted)  # integers, and maxima of narrow numbers, are exact
        return
    tolerance = 1e-5 if wanted.dtype == np.float32 else 1e-13
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * 100)


WINDOWS = {
    "two by two": (("2,20,20,64", "2,10,10,64"), "size=1x2x2x1 stride=1x2x2x1"),
    "padded, channels that fill no two vectors": (
        ("2,21,41,49", "2,11,21,49"),
        "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0",
    ),
    "dilated": (("2,30,40,33", "2,30,34,33"), "size=1x3x4x1 pad=0_0x2_4x0_0x0_0 rhs_dilate=1x3x2x1"),
    "lines": (("3,70,200", "3,70,200"), "size=1x5x1 pad=0_0x2_2x0_0"),
    "shorter than a tile": (("9,5,3,130", "9,5,3,130"), "size=1x3x3x1 pad=0_0x1_1x1_1x0_0"),
    "cut and far outside": (("2,9,70,48", "2,15,75,48"), "size=1x2x3x1 pad=0_0x3_4x-1_8x0_0"),
    "between other dimensions": (("2,3,20,14,4,20", "2,3,18,7,4,20"), "size=1x1x3x2x1x1 stride=1x1x1x2x1x1"),
    "without a window that is always inside": (("64,6,4,64", "64,6,4,64"), "size=1x9x9x1 pad=0_0x4_4x4_4x0_0"),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("operation", ["add", "maximum", "minimum"])
def test_folds(operation: str, name: str) -> None:
    shapes, window = WINDOWS[name]
    check(pooling(operation, shapes, window, element_type="f64" if operation == "minimum" else "f32"))


SPECIAL = {
    "NaNs": (-np.nan, np.nan),
    "infinities of both signs": (np.inf, -np.inf),
    "zeros of both signs": (0.0, -0.0),
    "nothing but the least": (-np.inf, -np.inf),
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize(("operation", "element_type"), [("maximum", "f32"), ("minimum", "f64")])
def test_extrema_of_special_numbers(operation: str, element_type: str, width: int, name: str) -> None:
    """Some everywhere, and everywhere in a part of the array, so that windows see nothing else."""
    count = 40 - width + 1
    shapes = "1,40,40,16", f"1,{count},{count},16"
    text = pooling(operation, shapes, f"size=1x{width}x{width}x1", element_type=element_type)
    x, rng = argument(text), np.random.default_rng(width)
    chosen = rng.random(x.shape) < 0.1
    chosen[:, :20, :20] = True
    x[chosen] = rng.choice(np.array(SPECIAL[name]), int(chosen.sum()))
    got, wanted = xlapy.compile(text)(x), xlapy.evaluate(text, x)
    assert_array_equal(got, wanted)
    assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(wanted[~np.isnan(wanted)]))


def divided(operation: str, number: str) -> str:
    behind = f"n = scalar constant({number})\n b = RESULT broadcast(n), dimensions={{}}\n"
    return pooling("add", *WINDOWS["two by two"], behind=f"{behind} ROOT q = RESULT {operation}(w, b)")


DIVISIONS = {
    "divided": ("divide", "9"),
    "by less than nothing": ("divide", "-3"),
    "by a power of two": ("divide", "-8"),
    "by one that is too large": ("divide", "1.2676506e30"),
    "halves": ("multiply", "0.25"),
    "times what is no power of two": ("multiply", "0.3"),
    "times little": ("multiply", "1e-30"),
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_means(name: str) -> None:
    check(divided(*DIVISIONS[name]))


OTHER_DIVISIONS = {
    "by nothing": ("divide", "0"),
    "by everything": ("divide", "inf"),
    "by no number": ("divide", "nan"),
    "times nothing": ("multiply", "0"),
    "less a number": ("subtract", "2"),
}


@pytest.mark.parametrize("name", OTHER_DIVISIONS)
@pytest.mark.filterwarnings("ignore:divide by zero|invalid value:RuntimeWarning")
def test_other_means_have_kernels_of_their_own(name: str) -> None:
    check(divided(*OTHER_DIVISIONS[name]), by_library=False)


def test_what_is_divided_by_an_array_has_a_kernel_of_its_own() -> None:
    shapes, window = WINDOWS["two by two"]
    text = pooling("add", shapes, window, behind="y = RESULT parameter(1)\n ROOT q = RESULT divide(w, y)")
    divisors = np.full([int(size) for size in shapes[1].split(",")], 4, np.float32)
    check(text, divisors, by_library=False)


@pytest.mark.filterwarnings("error")
def test_complex_factors_are_none_of_means() -> None:
    root = parse("""ENTRY main {
      x = c64[64] parameter(0)
      n = c64[] constant((0, 1))
      b = c64[64] broadcast(n), dimensions={}
      ROOT p = c64[64] multiply(x, b)
    }""").entry.root
    assert sliding_fold(root, lambda source: source.opcode == "parameter") is None


MADE = {
    "rectified": "z = BROADCAST(0)  w = ELEMENT maximum(x, z)",
    "shifted": "b = CHANNEL  w = ELEMENT add(x, b)",
    "scaled and shifted": "a = CHANNEL  m = ELEMENT multiply(a, x)  b = CHANNEL  w = ELEMENT add(b, m)",
    "a rectified sum": "b = CHANNEL  s = ELEMENT add(b, x)  z = BROADCAST(0)  w = ELEMENT maximum(z, s)",
    "a rectified line": """a = CHANNEL  m = ELEMENT multiply(x, a)  b = CHANNEL  s = ELEMENT add(m, b)
        z = BROADCAST(0)  w = ELEMENT maximum(s, z)""",
}


def made(how: str, operation: str, shapes: tuple[str, str], window: str, *, init: str = "", zero: str = "0") -> str:
    """A fold of what is made from elements: `how` ends with `w`, of `x` and numbers of channels, as in `MADE`."""
    dims, (source, result) = len(shapes[0].split(",")) - 1, (f"f64[{shape}]" for shape in shapes)
    channels = shapes[0].rpartition(",")[2]
    lines: list[str] = []
    for number, line in enumerate(how.replace("ELEMENT", source).replace("  ", "\n").splitlines()):
        name, _, value = line.strip().partition(" = ")
        if value == "CHANNEL":
            lines += [f"p{number} = f64[{channels}] parameter({1 + sum('parameter' in line for line in lines)})"]
            lines += [f"{name} = {source} broadcast(p{number}), dimensions={{{dims}}}"]
        elif value.startswith("BROADCAST"):
            lines += [f"c{number} = f64[] constant({zero})", f"{name} = {source} broadcast(c{number}), dimensions={{}}"]
        else:
            lines += [f"{name} = {value}"] if name else []
    return f"""HloModule m
      fold {{
        a = f64[] parameter(0)
        b = f64[] parameter(1)
        ROOT r = f64[] {operation}(a, b)
      }}
      ENTRY main {{
        x = {source} parameter(0)
        {chr(10).join(lines)}
        i = f64[] constant({init or IDENTITIES[operation]})
        ROOT r = {result} reduce-window(w, i), window={{{window}}}, to_apply=fold
      }}"""


def check_made(text: str, *, by_library: bool = True) -> None:
    shapes = [parameter.shape for parameter in parse(text).entry.parameters]
    arrays = [np.random.default_rng(number).normal(size=shape.dims) for number, shape in enumerate(shapes)]
    arrays[0].flat[[5, 700, 8_000, 9_000]] = np.nan, np.inf, -np.inf, -0.0
    compiled = xlapy.compile(text)
    assert ("slide_" in compiled.llvm_ir()) == by_library
    np.testing.assert_allclose(compiled(*arrays), xlapy.evaluate(text, *arrays), rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("operation", ["add", "maximum"])
def test_folds_of_what_is_made_from_elements(operation: str, name: str) -> None:
    for window in ("two by two", "padded, channels that fill no two vectors"):
        check_made(made(MADE[name], operation, *WINDOWS[window]))


@pytest.mark.parametrize("operation", ["maximum", "minimum"])
@pytest.mark.parametrize("init", ["3", "-2.5", "-0"])
def test_extrema_of_windows_and_of_a_number(operation: str, init: str) -> None:
    check(pooling(operation, *WINDOWS["dilated"], init=init))
    check_made(made(MADE["shifted"], operation, *WINDOWS["cut and far outside"], init=init))
    check_made(made(MADE["a rectified sum"], "maximum", *WINDOWS["two by two"], init=init))


KERNELS_OF_THEIR_OWN = {
    "rectified, and nothing where nothing is": made(
        MADE["rectified"], "maximum", ("2,20,20,64", "2,14,10,64"), "size=1x2x2x1 stride=1x2x2x1 pad=0_0x4_4x0_0x0_0"
    ),
    "a bound with a sign": made(MADE["rectified"], "maximum", *WINDOWS["two by two"], zero="-0"),
    "another bound": made(MADE["a rectified sum"], "add", *WINDOWS["two by two"], zero="1"),
    "the least of what is rectified": made(MADE["rectified"], "minimum", *WINDOWS["two by two"]),
    "a function": made("w = ELEMENT tanh(x)", "maximum", *WINDOWS["two by two"]),
}


@pytest.mark.parametrize("name", KERNELS_OF_THEIR_OWN)
def test_other_elements_have_kernels_of_their_own(name: str) -> None:
    check_made(KERNELS_OF_THEIR_OWN[name], by_library=False)


@pytest.mark.parametrize("channels", [64, 72])
def test_results_that_no_cache_holds(channels: int) -> None:
    """Past the caches, if they fill whole vectors."""
    side = 2 * math.isqrt(max(host_target().l3_bytes // 2, STREAMED_BYTES) // (8 * channels)) + 2
    source, result = f"1,{side},{side},{channels}", f"1,{side // 2},{side // 2},{channels}"
    text = made(MADE["a rectified sum"], "maximum", (source, result), WINDOWS["two by two"][1])
    compiled = xlapy.compile(text)
    assert "slide_" in compiled.llvm_ir()
    x, shift = argument(text), np.linspace(-9, 9, channels)
    wanted = np.maximum(x.reshape(side // 2, 2, side // 2, 2, channels).max((1, 3)) + shift, 0)
    assert_array_equal(compiled(x, shift)[0], wanted)


def test_rows_are_fetched_where_windows_share_them_and_no_cache_holds_them() -> None:
    """One image, so that what is fetched last lies behind the array."""
    side = math.isqrt(host_target().l3_bytes // (4 * 16)) + 3
    count = (side - 3) // 2 + 1
    text = pooling("maximum", (f"1,{side},{side},16", f"1,{count},{count},16"), "size=1x3x3x1 stride=1x2x2x1")
    compiled, x = xlapy.compile(text), argument(text)
    assert "slide_" in compiled.llvm_ir()
    places = [x[:, row : row + 2 * count - 1 : 2, place : place + 2 * count - 1 : 2] for row, place in np.ndindex(3, 3)]
    assert_array_equal(compiled(x), np.maximum.reduce(places))


def test_numbers_of_rows_are_none_of_channels() -> None:
    text = made(MADE["shifted"], "maximum", ("2,20,64,64", "2,10,32,64"), WINDOWS["two by two"][1])
    assert "dimensions={3}" in text
    check_made(text.replace("dimensions={3}", "dimensions={2}"), by_library=False)


OTHERS = {
    "another operation": pooling("multiply", *WINDOWS["lines"]),
    "an initial value that counts": pooling("add", *WINDOWS["lines"], init="1"),
    "a zero with a sign": pooling("add", *WINDOWS["lines"], init="-0"),
    "windows along vectors": pooling("add", ("40,70,200", "40,70,198"), "size=1x1x3"),
    "dimensions apart": pooling("add", ("3,4,70,200", "2,4,68,200"), "size=2x1x3x1"),
    "few channels": pooling("add", ("8,40,40,3", "8,20,20,3"), "size=1x2x2x1 stride=1x2x2x1"),
    "sums from the first element on": pooling("add", ("40,70,200", "40,70,200"), "size=1x70x1 pad=0_0x69_0x0_0"),
    "largest elements from the last one on": pooling("maximum", ("70,1600", "70,1600"), "size=70x1 pad=0_69x0_0"),
    "holes": pooling("add", ("3,70,200", "3,137,200"), "size=1x3x1 lhs_dilate=1x2x1"),
    "three dimensions": pooling("add", ("4,9,9,9,40", "4,8,8,8,40"), "size=1x2x2x2x1"),
    "few results in a row": pooling("add", ("2,14,14,16", "2,13,13,16"), "size=1x2x2x1"),
    "few results": pooling("add", ("1,3,10,64", "1,1,5,64"), "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_0x1_0x0_0"),
    "integers": pooling("add", *WINDOWS["two by two"], element_type="s32"),
    "narrow numbers": pooling("maximum", *WINDOWS["two by two"], element_type="bf16"),
}


def test_rows_of_much_work_are_worth_a_call() -> None:
    check(pooling("add", ("2,6,6,64", "2,5,5,64"), "size=1x2x2x1"))


def test_made_elements_are_worth_a_call_sooner() -> None:
    shapes, window = ("8,14,14,16", "8,7,7,16"), "size=1x2x2x1 stride=1x2x2x1"
    check_made(made(MADE["a rectified sum"], "maximum", shapes, window))
    check(pooling("add", shapes, window), by_library=False)
    check_made(made(MADE["rectified"], "maximum", shapes, window), by_library=host_target().has_range)


def test_extrema_that_take_two_instructions_are_worth_a_call_sooner() -> None:
    check(pooling("minimum", ("1,8,8,32", "1,4,4,32"), WINDOWS["two by two"][1]), by_library=host_target().has_range)
    check(pooling("maximum", ("1,6,6,32", "1,3,3,32"), WINDOWS["two by two"][1]), by_library=False)


@pytest.mark.parametrize("name", OTHERS)
def test_other_windows_have_kernels_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


def test_special_numbers() -> None:
    for operation in ("add", "maximum"):
        text = pooling(operation, *WINDOWS["padded, channels that fill no two vectors"])
        x = argument(text)
        x.flat[[5, 700, 30_000]] = np.nan, np.inf, -np.inf
        np.testing.assert_allclose(xlapy.compile(text)(x), xlapy.evaluate(text, x), rtol=1e-5, atol=1e-4)


def test_results_do_not_depend_on_threads() -> None:
    text = pooling("add", ("8,65,66,96", "8,65,66,96"), "size=1x3x3x1 pad=0_0x1_1x1_1x0_0")
    x = argument(text)
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(x) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        assert_array_equal(result, results[0])
