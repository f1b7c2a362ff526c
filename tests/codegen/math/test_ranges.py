"""Functions that are less work where the graph tells of the range of their arguments."""

from __future__ import annotations

import ctypes
import platform

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.accuracy import apply, errors
from tests.support.emitted import emitted_kernels
from tests.support.irlab import HAS_FMA
from tests.support.native import together
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.math import BF16_MATH, MATH
from xlapy.codegen.math.exponential import LEAST_OF_HIGH
from xlapy.codegen.target import REFERENCE_MACHINES, host_target, reference_target
from xlapy.compiler import lower
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions
from xlapy.passes.algebra.functions import LEAST_EXPONENT
from xlapy.passes.pipeline import Watch
from xlapy.support.timing import Timings

SIZE = 4096
DTYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
UNITS = {"bf16": 2.0**-7, "f16": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52}
"""Distances of 1 and the next number."""


def text_of(argument: str, type: str) -> str:
    """log1p of what `argument` makes of `x`, whose size is one for which functions are written out."""
    lines = ["x = T[] parameter(0)", argument, "ROOT l = T[] log-plus-one(z)"]
    return "HloModule m\nENTRY e {\n" + "\n".join(lines).replace("T[]", f"{type}[{SIZE}]") + "\n}"


OF_FRACTIONS = {
    "e^-|x|": "a = T[] abs(x)\nn = T[] negate(a)\nz = T[] exponential(n)",
    "logistic": "z = T[] logistic(x)",
}
OF_OTHERS = {
    "e^x": "z = T[] exponential(x)",
    "e^-x": "n = T[] negate(x)\nz = T[] exponential(n)",
    "e^|x|": "a = T[] abs(x)\nz = T[] exponential(a)",
    "x": "z = T[] copy(x)",
}


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
def test_logarithms_of_sums_with_fractions(has_fma: bool) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.random(1 << 20), 10.0 ** random.uniform(-45, 0, 1 << 17), [0.0, 1.0]]).astype(np.float32)
    got = apply(MATH["log1p_of_fraction"], x, has_fma=has_fma)
    assert errors(got, np.log1p(x.astype(np.float64))).max() <= 2
    assert np.isnan(apply(MATH["log1p_of_fraction"], np.full(8, np.nan, np.float32), has_fma=has_fma)).all()


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
def test_what_is_known_of_an_argument_changes_no_bit(has_fma: bool) -> None:
    first, last = np.float32([2.0**-20, 1]).view(np.uint32)
    x = np.arange(first, last + 1, 31, np.uint32).view(np.float32)
    x = np.concatenate([x, np.float32([0, 1, 1e-45, 1e-38])])
    known, unknown = (apply(MATH[name], x, has_fma=has_fma) for name in ("log1p_of_fraction", "log1p"))
    np.testing.assert_array_equal(known.view(np.uint32), unknown.view(np.uint32))


@pytest.mark.parametrize("argument", OF_FRACTIONS)
def test_a_kernel_of_its_own_gives_the_same_bits(argument: str) -> None:
    """As a kernel that has the argument too, and so knows its range."""
    x = np.linspace(-20, 20, SIZE).astype(np.float32)
    whole = text_of(OF_FRACTIONS[argument], "f32")
    first = whole.replace("ROOT l", "l").replace(" z = ", " ROOT z = ").replace("\nz = ", "\nROOT z = ")
    fractions = xlapy.compile(first)(x)
    second = text_of("z = T[] copy(x)", "f32")
    np.testing.assert_array_equal(xlapy.compile(whole)(x), xlapy.compile(second)(fractions))


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("argument", [*OF_FRACTIONS, *OF_OTHERS])
def test_logarithms_of_what_functions_give(argument: str, type: str) -> None:
    text = text_of((OF_FRACTIONS | OF_OTHERS)[argument], type)
    x = np.linspace(-30, 30, SIZE).astype(DTYPES[type])
    x[:6] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-5]
    unit = UNITS[type]
    got, expected = (np.asarray(result, np.float64) for result in (xlapy.compile(text)(x), xlapy.evaluate(text, x)))
    np.testing.assert_allclose(got, expected, rtol=4 * unit, atol=1e-30)


@pytest.mark.parametrize("argument", [*OF_FRACTIONS, *OF_OTHERS])
def test_nothing_is_divided_where_the_sum_is_at_most_two(argument: str) -> None:
    code = xlapy.compile(text_of((OF_FRACTIONS | OF_OTHERS)[argument], "f32")).llvm_ir()
    divisions = code.count(" fdiv ") - (argument == "logistic" and not host_target().has_scalef)
    is_apart = bool(divisions) or "getmant" in code  # the exponent is taken out, and the significand looked up
    assert is_apart == (argument not in OF_FRACTIONS)


@pytest.mark.parametrize("argument", OF_FRACTIONS)
def test_a_kernel_of_its_own_takes_any_argument(argument: str) -> None:
    """It serves all instructions of its shape, whatever their operands are."""
    first = OF_FRACTIONS[argument].replace("z =", "w =") + "\nf = T[] log-plus-one(w)\nz = T[] add(f, x)"
    text = text_of(first, "f32")
    x = np.linspace(0, 1000, SIZE).astype(np.float32)
    executable = xlapy.compile(text, xlapy.CompileOptions(disabled_passes=frozenset({"fusion"})))
    np.testing.assert_allclose(executable(x), xlapy.evaluate(text, x), rtol=4 * UNITS["f32"])


LOW = {"f32": (-110.0, 43.0), "f64": (-760.0, 43.0)}


def low_arguments(type: str) -> np.ndarray:
    """Numbers up to 43, of which the lowest have results that are subnormal or vanish."""
    random, dtype = np.random.default_rng(1), DTYPES[type]
    small = -(10.0 ** random.uniform(np.log10(np.finfo(dtype).tiny), 3, 1 << 17))
    special = [0.0, -0.0, -np.inf, np.nan, np.finfo(dtype).min, np.finfo(dtype).smallest_subnormal]
    return np.concatenate([random.uniform(*LOW[type], 1 << 19), small, special]).astype(dtype)


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
@pytest.mark.parametrize("type", LOW)
def test_exponentials_of_low_numbers_have_the_same_bits(type: str, has_fma: bool) -> None:
    x = low_arguments(type)
    known, unknown = (apply(MATH[name], x, has_fma=has_fma) for name in ("exp_of_low", "exp"))
    np.testing.assert_array_equal(known, unknown)


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
def test_brief_exponentials_of_low_numbers_have_the_same_bits(has_fma: bool) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(DTYPES["bf16"]).astype(np.float32)
    x = x[~(x > LOW["f32"][1])]
    known, unknown = (apply(BF16_MATH[name], x, has_fma=has_fma) for name in ("exp_of_low", "exp"))
    np.testing.assert_array_equal(known, unknown)


HIGH = {"f32": (-60.0, 91.0), "f64": (-60.0, 712.0)}


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
@pytest.mark.parametrize("type", HIGH)
def test_exponentials_of_high_numbers_have_the_same_bits(type: str, has_fma: bool) -> None:
    random = np.random.default_rng(1)
    special = [HIGH[type][0], 0.0, -0.0, np.inf, np.nan, np.finfo(DTYPES[type]).max]
    x = np.concatenate([random.uniform(*HIGH[type], 1 << 19), special]).astype(DTYPES[type])
    known, unknown = (apply(MATH[name], x, has_fma=has_fma) for name in ("exp_of_high", "exp"))
    np.testing.assert_array_equal(known, unknown)


UPPER_LIMIT = "0x4056400000000000"
"""Above 89, exponentials overflow."""

HALF = "h = T[] constant(-0.5)\nw = T[S] broadcast(h), dimensions={}"
TOP = "i = T[] constant(-inf)\nm = T[64] reduce({}, i), dimensions={{{}}}, to_apply={}\n"
LESS = "b = T[S] broadcast(m), dimensions={{{}}}\nz = T[S] subtract(x, b)"
LOW_ARGUMENTS = {
    "-|x|": "a = T[S] abs(x)\nz = T[S] negate(a)",
    "-x^2 / 2": f"{HALF}\na = T[S] multiply(x, x)\nz = T[S] multiply(w, a)",
    "x^2 / -0.5": f"{HALF}\na = T[S] multiply(x, x)\nz = T[S] divide(a, w)",
    "-(x^2 + 1 / (1 + e^-x))": "a = T[S] multiply(x, x)\nb = T[S] logistic(x)\nc = T[S] add(a, b)\nz = T[S] negate(c)",
    "-sqrt(x) - |x|": "a = T[S] sqrt(x)\nb = T[S] negate(a)\nc = T[S] abs(x)\nz = T[S] subtract(b, c)",
    "min(x, -1/2)": f"{HALF}\nz = T[S] minimum(x, w)",
    "-max(x, x^2)": "a = T[S] multiply(x, x)\nb = T[S] maximum(x, a)\nz = T[S] negate(b)",
    "x less its row's largest": TOP.format("x", 1, "maximum") + LESS.format(0),
    "x less its column's largest": TOP.format("x", 0, "maximum") + LESS.format(1),
}
IN_SEVERAL_KERNELS = {"x less its column's largest"}
ANY_ARGUMENTS = {
    "x^2": "z = T[S] multiply(x, x)",
    "-x": "z = T[S] negate(x)",
    "-x^3": "a = T[S] multiply(x, x)\nb = T[S] multiply(a, x)\nz = T[S] negate(b)",
    "|x| - x^2": "a = T[S] abs(x)\nb = T[S] multiply(x, x)\nz = T[S] subtract(a, b)",
    "x^2 / -|x|": "a = T[S] multiply(x, x)\nb = T[S] abs(x)\nc = T[S] negate(b)\nz = T[S] divide(a, c)",
    "min(x, 1/2)": f"{HALF}\nn = T[S] negate(w)\nz = T[S] minimum(x, n)",
    "x less another row's largest": TOP.format("x", 1, "maximum") + LESS.format(1),
    "x less its row's least": TOP.format("x", 1, "minimum").replace("-inf", "inf") + LESS.format(0),
    "x less the largest -x": "n = T[S] negate(x)\n" + TOP.format("n", 1, "maximum") + LESS.format(0),
}


def exponential_text(argument: str, type: str) -> str:
    """What `argument` makes of a matrix, exponentials of it, and sums of rows, or of columns if the argument has folded
    those, which make a chain of all."""
    folded = 0 if "dimensions={0}, to_apply" in argument else 1
    folds = ("maximum", "minimum", "add")
    lines = ["HloModule m"]
    for op in folds:
        lines += [f"{op} {{", "a = T[] parameter(0)", "b = T[] parameter(1)", f"ROOT r = T[] {op}(a, b)", "}"]
    lines += ["ENTRY f {", "x = T[S] parameter(0)", argument, "e = T[S] exponential(z)", "o = T[] constant(0)"]
    lines += [f"s = T[64] reduce(e, o), dimensions={{{folded}}}, to_apply=add"]
    lines += [f"q = T[S] broadcast(s), dimensions={{{1 - folded}}}"]
    lines += ["ROOT r = (T[S], T[S], T[S]) tuple(z, e, q)", "}"]
    return "\n".join(lines).replace("T[S]", f"{type}[64,64]").replace("T[", f"{type}[")


@pytest.mark.parametrize("argument", [*LOW_ARGUMENTS, *ANY_ARGUMENTS])
def test_exponentials_of_what_may_be_low(argument: str) -> None:
    """They overflow where it is not, and vanish, or are subnormal, where it is."""
    random = np.random.default_rng(2)
    x = random.normal(size=(64, 64)) * 10.0 ** random.uniform(-3, 3, (64, 64))
    x[0, :7] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-5, 60000.0]
    module = together([exponential_text((LOW_ARGUMENTS | ANY_ARGUMENTS)[argument], type) for type in DTYPES])
    with np.errstate(all="ignore"):
        results = xlapy.compile(module)(*(x.astype(dtype) for dtype in DTYPES.values()))
    for (type, dtype), (low, found, _) in zip(DTYPES.items(), results, strict=True):
        with np.errstate(all="ignore"):
            expected = np.exp(low.astype(np.float64)).astype(dtype).astype(np.float64)
        least = float(ml_dtypes.finfo(dtype).smallest_subnormal)
        np.testing.assert_allclose(found.astype(np.float64), expected, 2 * UNITS[type], least, err_msg=type)


@pytest.mark.parametrize("argument", [*sorted({*LOW_ARGUMENTS} - IN_SEVERAL_KERNELS), *ANY_ARGUMENTS])
def test_exponentials_of_what_is_low_are_short(argument: str) -> None:
    """They have no upper limit."""
    code = xlapy.compile(exponential_text((LOW_ARGUMENTS | ANY_ARGUMENTS)[argument], "f32")).llvm_ir()
    assert (UPPER_LIMIT not in code) == (argument in LOW_ARGUMENTS)


LOWER_LIMITS = ("0xC06601E680000000", "0xC05A56EF80000000")
"""From where on f32 are scaled by zeros: -254 ln 2, and -152 ln 2 where nothing is above zero."""


def is_limited(code: str) -> bool:
    return any(limit in code for limit in LOWER_LIMITS)


def bounded_text(bound: str, type: str = "f32") -> str:
    lines = [f"x = {type}[4096] parameter(0)", f"c = {type}[] constant({bound})"]
    lines += [f"b = {type}[4096] broadcast(c), dimensions={{}}", f"m = {type}[4096] maximum(x, b)"]
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"ROOT r = {type}[4096] exponential(m)", "}"])


@pytest.mark.parametrize("machine", REFERENCE_MACHINES)
@pytest.mark.parametrize(("bound", "is_short"), [("-60", True), ("-1.5", True), ("-60.5", False), ("-inf", False)])
def test_exponentials_of_what_is_not_far_below_are_short(bound: str, is_short: bool, machine: str) -> None:
    """They have no lower limit. Others have none where an instruction multiplies by any power of two."""
    target = reference_target(machine)
    assert is_limited(emitted_kernels(bounded_text(bound), target)) == (not is_short and not target.has_scalef)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_exponentials_of_what_is_not_far_below(type: str) -> None:
    least, most = HIGH[type]
    x = np.linspace(3 * least, most, 4096).astype(DTYPES[type])
    x[:4] = [-np.inf, np.inf, np.nan, least]
    with np.errstate(over="ignore"):
        expected = np.exp(np.maximum(x, DTYPES[type].type(least)))
    np.testing.assert_allclose(xlapy.compile(bounded_text(str(least), type))(x), expected, rtol=2 * UNITS[type])


@pytest.mark.parametrize("function", ["exponential", "logistic"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_powers_that_vanish_are_not_computed_where_lanes_can_be_left_out(function: str, type: str) -> None:
    """An Intel core takes a hundred cycles more for each vector with one. An exponential has looked for them before."""
    target = reference_target("avx512")
    text = f"HloModule m\nENTRY e {{ x = {type}[4096] parameter(0)  ROOT r = {type}[4096] {function}(x) }}"
    lowered = lower(parse(text), CompileOptions(), target, Watch(), Timings())
    assembly = "\n".join(emit_assembly(kernel, target) for kernel in lowered.emitted.kernels)
    scaling = [line for line in assembly.splitlines() if "vscalef" in line]
    masked = [line for line in scaling if "{%k" in line and "{z}" in line]
    assert masked and (masked == scaling or function == "exponential")


MASKED = {
    "exponential": "ROOT r = f32[4096] exponential(x)",
    "logistic": "ROOT r = f32[4096] logistic(x)",
    "of a low argument": "a = f32[4096] abs(x)  n = f32[4096] negate(a)  ROOT r = f32[4096] exponential(n)",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="asks x86 for what it has noticed")
@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("name", MASKED)
def test_powers_of_what_is_masked_vanish_without_being_subnormal_on_the_way(name: str, type: str) -> None:
    """A Zen 3 takes 1.7 times as long for all of it."""
    libm, underflow, all_of_them = ctypes.CDLL("libm.so.6"), 0x10, 0x3D
    text = f"HloModule m\nENTRY e {{ x = f32[4096] parameter(0)  {MASKED[name]} }}".replace("f32", type)
    exe = xlapy.compile(text, xlapy.CompileOptions(num_threads=1))
    for masked in (-np.inf, -1e9, -2000.0):
        with np.errstate(over="ignore"):
            x = np.where(np.arange(4096) % 3 == 0, masked, -1.5).astype(DTYPES[type])
        libm.feclearexcept(all_of_them)
        result = np.asarray(exe(x))
        noticed = libm.fetestexcept(underflow)
        assert not np.asarray(result[::3], np.float64).any()
        assert not noticed


def test_what_laws_keep_from_being_low_is_high_to_the_functions() -> None:
    """So that a logistic function of any argument has the short exponential."""
    assert LEAST_EXPONENT >= LEAST_OF_HIGH


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_what_is_nothing_beside_one_is_not_subnormal(type: str) -> None:
    lines = [f"x = {type}[4096] parameter(0)", f"c = {type}[] constant(1)"]
    lines += [f"b = {type}[4096] broadcast(c), dimensions={{}}", f"t = {type}[4096] tanh(x)"]
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, f"ROOT r = {type}[4096] add(b, t)", "}"])
    exe = xlapy.compile(text)
    assert not is_limited(exe.llvm_ir())
    assert "tanh" not in exe.hlo_text()
    x = np.linspace(-500, 500, 4096).astype(DTYPES[type])
    x[:4] = [-np.inf, np.inf, np.nan, 1000]
    with np.errstate(over="ignore"):
        expected = 2 / (1 + np.exp(-2 * x.astype(np.longdouble)))
    got = np.asarray(exe(x), np.longdouble)
    tiny = float(np.finfo(DTYPES[type]).tiny)
    np.testing.assert_allclose(got, expected, rtol=3 * UNITS[type], atol=tiny)


SCALES = [0.5, 2.0, -0.25, 1.0, 2.0**-32, 2.0**-33, 2.0**-130, 2.0**100, 0.75]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sum_with", [None, 1.0, -3.0, 2.0**-64, 2.0**-66, 2.0**-126])
def test_products_of_bf16_and_powers_of_two(sum_with: float | None, scale: float) -> None:
    """For each number, and as the evaluator has it to the last bit, also where results are subnormal."""
    size = 1 << 16
    lines = [f"x = bf16[{size}] parameter(0)", f"s = bf16[] constant({scale!r})"]
    lines += [f"t = bf16[{size}] broadcast(s), dimensions={{}}"]
    if sum_with is not None:
        lines += [f"c = bf16[] constant({sum_with!r})", f"d = bf16[{size}] broadcast(c), dimensions={{}}"]
        lines += [f"a = bf16[{size}] subtract(x, d)"]
    lines += [f"ROOT r = bf16[{size}] multiply({'x' if sum_with is None else 'a'}, t)"]
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"
    x = np.arange(size, dtype=np.uint16).view(DTYPES["bf16"])
    with np.errstate(all="ignore"):
        got, expected = np.asarray(xlapy.compile(text)(x)), np.asarray(xlapy.evaluate(text, x))
    number = ~np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), ~number)
    np.testing.assert_array_equal(got.view(np.uint16)[number], expected.view(np.uint16)[number])


def test_products_with_powers_of_two_are_not_rounded_where_that_is_known() -> None:
    """Of two roundings of a sum and its half, one is left."""
    text = """HloModule m
      ENTRY e {
        x = bf16[4096] parameter(0)
        one = bf16[] constant(1)
        ones = bf16[4096] broadcast(one), dimensions={}
        half = bf16[] constant(0.5)
        halves = bf16[4096] broadcast(half), dimensions={}
        s = bf16[4096] add(x, ones)
        ROOT r = bf16[4096] multiply(s, halves)
      }"""
    without = text.replace("ROOT r = bf16[4096] multiply(s, halves)", "ROOT r = bf16[4096] negate(s)")
    additions = [xlapy.compile(program).llvm_ir().count(" add <") for program in (text, without)]
    assert additions[0] == additions[1]
