"""Special functions: the evaluator beside scipy, native code beside the evaluator, all front ends, jax's programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.special

import xlapy
from xlapy import ops

INF, NAN = np.inf, np.nan


def spread(*operands: Any) -> list[np.ndarray]:
    """Every combination of the numbers of all operands."""
    return [grid.reshape(-1) for grid in np.meshgrid(*map(np.asarray, operands))]


REAL = np.concatenate([np.linspace(-9.7, 9.7, 97), [0.5, 1.0, 2.0, 30.0, 1e3, 1e-5, -0.1, 150.0, 1e7]])
POSITIVE = [1e-3, 0.1, 0.5, 1.0, 1.7, 4.0, 9.5, 40.0, 200.0]


def polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return scipy.special.polygamma(n.astype(int), x)


def igamma_grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A difference of high order."""
    h = 1e-3 * a
    coefficients = (1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280)
    terms = [c * scipy.special.gammainc(a + (n - 4) * h, x) for n, c in enumerate(coefficients)]
    return sum(terms) / h


def random_gamma_grad(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    density = np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))
    return -igamma_grad_a(a, x) / density


Row = tuple[str, str, Callable[..., Any], list[np.ndarray], float, float]

ROWS: list[Row] = [
    # function, op, what it should be, operands, tolerance in f64 (relative, absolute)
    ("BesselI0e", "bessel-i0e", scipy.special.i0e, [REAL], 1e-13, 0),
    ("BesselI1e", "bessel-i1e", scipy.special.i1e, [REAL], 1e-13, 0),
    ("Digamma", "digamma", scipy.special.digamma, [REAL], 1e-11, 1e-13),
    ("Erfc", "erfc", scipy.special.erfc, [REAL[np.abs(REAL) < 26]], 1e-13, 0),
    ("ErfInv", "erf-inv", scipy.special.erfinv, [np.linspace(-0.99999, 0.99999, 101)], 1e-13, 0),
    ("Lgamma", "lgamma", scipy.special.gammaln, [REAL], 1e-12, 1e-13),
    ("Igamma", "igamma", scipy.special.gammainc, spread(POSITIVE, POSITIVE), 1e-10, 1e-14),
    ("Igammac", "igammac", scipy.special.gammaincc, spread(POSITIVE, POSITIVE), 1e-10, 1e-14),
    ("IgammaGradA", "igamma-grad-a", igamma_grad_a, spread(POSITIVE[1:8], POSITIVE[1:8]), 1e-6, 1e-9),
    ("RandomGammaGrad", "random-gamma-grad", random_gamma_grad, spread(POSITIVE[1:7], POSITIVE[1:6]), 1e-5, 1e-7),
    ("Polygamma", "polygamma", polygamma, spread([0.0, 1, 2, 3, 7], POSITIVE), 1e-11, 1e-13),
    ("Zeta", "zeta", scipy.special.zeta, spread([1.1, 1.5, 2.0, 3.0, 8.0, 30.0], POSITIVE), 1e-12, 0),
    (
        "RegularizedIncompleteBeta",
        "regularized-incomplete-beta",
        scipy.special.betainc,
        spread(POSITIVE, POSITIVE, [0.0, 1e-3, 0.2, 0.5, 0.7, 0.999, 1.0]),
        1e-10,
        1e-13,
    ),
]
NAMES = [row[0] for row in ROWS]


def recorded(name: str, arrays: list[np.ndarray]) -> xlapy.XlaComputation:
    builder = xlapy.XlaBuilder(name)
    parameters = [builder.parameter(number, xlapy.Shape.of(array)) for number, array in enumerate(arrays)]
    return builder.build(getattr(ops, name)(*parameters))


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_f64(row: Row) -> None:
    name, _, reference, operands, relative, absolute = row
    computation = recorded(name, operands)
    expected = reference(*operands)
    evaluated = xlapy.evaluate(computation, *operands)
    kept = np.isfinite(expected)
    np.testing.assert_allclose(evaluated[kept], expected[kept], rtol=relative, atol=absolute)
    native = xlapy.compile(computation)(*operands)
    np.testing.assert_allclose(native, evaluated, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_narrower_types(row: Row, dtype: Any) -> None:
    """Computed in f64 of the narrow operands, and rounded; native code may be off by a few units in the last place."""
    name, _, _, operands, _, _ = row
    narrow = [operand.astype(np.float32).astype(dtype) for operand in operands]
    computation = recorded(name, narrow)
    evaluated = xlapy.evaluate(computation, *narrow)
    native = xlapy.compile(computation)(*narrow)
    assert native.dtype == evaluated.dtype == dtype
    ulp = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(native.astype(float), evaluated.astype(float), rtol=4 * ulp, atol=1e-6 + ulp / 16)


SPECIAL_VALUES = [
    ("Lgamma", [-INF, -2.0, -0.0, 0.0, INF, NAN], [INF, INF, INF, INF, INF, NAN]),
    ("Digamma", [-1.0, -INF, -0.0, 0.0, INF, NAN], [NAN, NAN, NAN, NAN, INF, NAN]),
    ("ErfInv", [-1.0, 1.0, 1.5, 0.0, NAN], [-INF, INF, NAN, 0.0, NAN]),
    ("Erfc", [-INF, INF, 0.0, NAN], [2.0, 0.0, 1.0, NAN]),
    ("BesselI0e", [0.0, INF, NAN], [1.0, 0.0, NAN]),
    # n! is infinite from 171 on
    ("Polygamma", [[1e4, 0.5], [1e4, 2.0], [10001.0, 1.0], [1e4, -0.5], [INF, 0.5]], [-INF, NAN, INF, NAN, NAN]),
]


@pytest.mark.parametrize(("name", "operands", "results"), SPECIAL_VALUES, ids=[row[0] for row in SPECIAL_VALUES])
def test_special_values(name: str, operands: list[Any], results: list[float]) -> None:
    arrays = np.atleast_2d(np.transpose(operands))
    computation = recorded(name, [*arrays])
    np.testing.assert_array_equal(xlapy.evaluate(computation, *arrays), results)
    np.testing.assert_allclose(xlapy.compile(computation)(*arrays), results, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16], ids=str)
def test_next_after(dtype: Any) -> None:
    largest = float(ml_dtypes.finfo(dtype).max)
    numbers = np.array([0.0, -0.0, 1.0, -1.0, 1.5, 2.0, -largest, largest, INF, -INF, NAN, 1e-4, 3.0], np.float64)
    start, end = (grid.astype(dtype) for grid in spread(numbers, numbers))
    computation = recorded("NextAfter", [start, end])
    evaluated, native = xlapy.evaluate(computation, start, end), xlapy.compile(computation)(start, end)
    np.testing.assert_array_equal(native.astype(float), evaluated.astype(float))
    assert not np.any(np.signbit(native) != np.signbit(evaluated), where=~np.isnan(native.astype(float)))
    expected = np.asarray(jax.jit(jax.lax.nextafter)(start, end)) if dtype != np.float64 else np.nextafter(start, end)
    np.testing.assert_array_equal(evaluated.astype(float), expected.astype(float))


FEW = [
    *(ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    *(ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu),
    *(ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn),
]
"""Types of a byte or less."""


@pytest.mark.parametrize("dtype", FEW, ids=lambda dtype: dtype.__name__)
def test_next_after_from_every_number_to_every_number(dtype: Any) -> None:
    every = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8)
    start, end = (grid.view(dtype) for grid in spread(every, every))
    computation = recorded("NextAfter", [start, end])
    evaluated, native = (run(computation, start, end) for run in (xlapy.evaluate, run_native))
    is_number = ~np.isnan(evaluated.astype(float))
    np.testing.assert_array_equal(native.astype(float), evaluated.astype(float))
    np.testing.assert_array_equal(native.view(np.uint8)[is_number], evaluated.view(np.uint8)[is_number])
    if dtype is not ml_dtypes.float8_e8m0fnu:  # of which ml_dtypes knows no neighbours
        expected = np.where(start == end, end, np.nextafter(start, end)).astype(dtype)
        np.testing.assert_array_equal(evaluated.view(np.uint8)[is_number], expected.view(np.uint8)[is_number])
        np.testing.assert_array_equal(is_number, ~np.isnan(expected.astype(float)))
    else:
        np.testing.assert_array_equal(is_number, (start.view(np.uint8) != 255) & (end.view(np.uint8) != 255))
        step = np.sign(end.view(np.uint8).astype(int) - start.view(np.uint8))
        np.testing.assert_array_equal(evaluated.view(np.uint8)[is_number], (start.view(np.uint8) + step)[is_number])


def run_native(computation: Any, *arguments: np.ndarray) -> np.ndarray:
    return xlapy.compile(computation)(*arguments)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_text_forms(row: Row) -> None:
    name, opcode, _, operands, _, _ = row
    module = recorded(name, operands).module
    text = module.to_text()
    assert f" {opcode}(" in text
    assert xlapy.hlo.parse(text).to_text() == text
    written = xlapy.stablehlo.to_text(module)
    again = xlapy.stablehlo.parse(written)
    assert again.entry.root.opcode == opcode
    assert xlapy.stablehlo.to_text(again).split("\n", 1)[1] == written.split("\n", 1)[1]


def test_scalars_are_repeated() -> None:
    builder = xlapy.XlaBuilder("scalars")
    x = builder.parameter(0, xlapy.Shape.array(np.float32, (3,)))
    result = ops.RegularizedIncompleteBeta(2.0, 3.0, x) + ops.Igamma(x, 0.5) + ops.Zeta(2.0, x)
    values = np.array([0.25, 0.5, 0.75], np.float32)
    expected = scipy.special.betainc(2, 3, values) + scipy.special.gammainc(values, 0.5) + scipy.special.zeta(2, values)
    np.testing.assert_allclose(xlapy.compile(builder.build(result))(values), expected, rtol=1e-5)


OF_JAX: dict[str, Callable[..., Any]] = {
    "erf": jax.lax.erf,
    "erfc": jax.lax.erfc,
    "erf_inv": jax.lax.erf_inv,
    "lgamma": jax.lax.lgamma,
    "digamma": jax.lax.digamma,
    "bessel_i0e": jax.lax.bessel_i0e,
    "bessel_i1e": jax.lax.bessel_i1e,
    "zeta": lambda x: jax.lax.zeta(x + 1.5, x),
    "polygamma": lambda x: jax.lax.polygamma(jax.numpy.ones_like(x), x),
    "igamma": lambda x: jax.lax.igamma(x, x + 1),
    "square": jax.lax.square,
    "asin": lambda x: jax.lax.asin(x / 3),
    "tan": jax.lax.tan,
    "is_inf": lambda x: jax.numpy.isposinf(x) | jax.numpy.isinf(x) | jax.numpy.isneginf(x),
}


@pytest.mark.parametrize("name", OF_JAX)
def test_programs_of_jax(name: str) -> None:
    x = np.linspace(0.05, 0.95, 19, dtype=np.float32)
    lowered = jax.jit(OF_JAX[name]).lower(x)
    result = xlapy.compile(lowered.as_text())(x)
    np.testing.assert_allclose(result, np.asarray(OF_JAX[name](x)), rtol=2e-5)


def of_chlo(body: str, *arrays: np.ndarray, result: str) -> np.ndarray:
    kinds = {"float32": "f32", "int32": "i32", "bool": "i1"}

    def type_of(array: np.ndarray) -> str:
        return f"tensor<{''.join(f'{dim}x' for dim in array.shape)}{kinds[array.dtype.name]}>"

    types = [type_of(array) for array in arrays]
    parameters = ", ".join(f"%{name}: {type}" for name, type in zip("abc", types, strict=False))
    operation = f"{body} : ({', '.join(types)}) -> {result}"
    text = f"func.func @main({parameters}) -> {result} {{ %r = {operation} return %r : {result} }}"
    computed = xlapy.compile(text)(*arrays)
    np.testing.assert_array_equal(computed, xlapy.evaluate(xlapy.stablehlo.parse(text), *arrays))
    return computed


def test_chlo_broadcasts() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 1, 3), np.array([[1.0], [2.0]], np.float32)
    assert of_chlo('"chlo.broadcast_add"(%a, %b)', a, b, result="tensor<2x2x3xf32>").tolist() == (a + b).tolist()
    row = np.array([5.0, 7.0], np.float32)
    placed = of_chlo(
        '"chlo.broadcast_subtract"(%a, %b) {broadcast_dimensions = array<i64: 0>}', a, row, result="tensor<2x1x3xf32>"
    )
    assert placed.tolist() == (a - row[:, None, None]).tolist()
    compared = of_chlo(
        '"chlo.broadcast_compare"(%a, %b) {comparison_direction = #chlo<comparison_direction LT>}',
        a,
        b,
        result="tensor<2x2x3xi1>",
    )
    assert compared.tolist() == (a < b).tolist()
    chosen = of_chlo('"chlo.broadcast_select"(%a, %b, %c)', np.array([True]), a, b, result="tensor<2x2x3xf32>")
    assert chosen.tolist() == np.broadcast_to(a, (2, 2, 3)).tolist()
    filled = of_chlo('"chlo.constant_like"(%a) {value = 2.5 : f32}', a, result="tensor<2x1x3xf32>")
    assert filled.tolist() == np.full(a.shape, 2.5).tolist()
    with pytest.raises(xlapy.XlaError, match="do not broadcast"):
        of_chlo('"chlo.broadcast_add"(%a, %b)', a, np.zeros(2, np.float32), result="tensor<2x1x3xf32>")


def test_fusion_with_other_operations() -> None:
    builder = xlapy.XlaBuilder("fused")
    x = builder.parameter(0, xlapy.Shape.array(np.float32, (1000,)))
    computation = builder.build(ops.Exp(ops.Lgamma(x + 1.0)) * ops.Erfc(x))
    executable = xlapy.compile(computation)
    assert executable.compile_stats().kernels == 1
    values = np.linspace(0, 5, 1000, dtype=np.float32)
    expected = scipy.special.gamma(values.astype(float) + 1) * scipy.special.erfc(values.astype(float))
    np.testing.assert_allclose(executable(values), expected, rtol=1e-5)


def test_zeta_at_its_edges() -> None:
    s = np.array([2.0, 3.0, 2.0, 3.0, INF, INF, INF, 2.0, 3.0, 1.0, 0.5, 2.5])
    q = np.array([-INF, -INF, INF, -0.5, 0.5, 1.0, 2.0, -2.0, -2.0, 1.0, 1.0, -0.5])
    computation = recorded("Zeta", [s, q])
    expected = [INF, NAN, 0.0, scipy.special.zeta(3, 0.5) - 8, INF, 1.0, 0.0, INF, NAN, INF, NAN, NAN]
    np.testing.assert_allclose(xlapy.evaluate(computation, s, q), expected, rtol=1e-13)
    np.testing.assert_allclose(xlapy.compile(computation)(s, q), expected, rtol=1e-13)


def test_zeta_just_below_integers() -> None:
    """The term next to 0 is nearly all of it."""
    tiny = np.array([1e-10, 1e-20, 2.0**-40, 2.0**-30, 1e-310, 1e-17])
    s, whole = np.array([2.0, 3.0, 2.0, 3.0, 2.0, 2.0]), np.array([0.0, 0.0, 3.0, 1.0, 0.0, 0.0])
    with np.errstate(over="ignore"):
        expected = np.where(s % 2, -1, 1) * tiny**-s
    for dtype, rtol in ((np.float64, 1e-13), (np.float32, 1e-6)):
        chosen = slice(None) if dtype is np.float64 else [0, 5]
        operands = [part[chosen].astype(dtype) for part in (s, -whole - tiny)]
        computation = recorded("Zeta", operands)
        for found in (xlapy.evaluate(computation, *operands), xlapy.compile(computation)(*operands)):
            np.testing.assert_allclose(found, expected[chosen], rtol=rtol)


def test_digamma_next_to_poles_and_far_out() -> None:
    x = np.array([-1e-10, -1e-20, -1e-300, -1 - 2.0**-40, -2 + 2.0**-30, 2.0**53, 1e20, 1e29, 1e300])
    near = -1 / (x - np.round(x))[:5]
    expected = [*near[:3], near[3] + scipy.special.digamma(2), near[4] + scipy.special.digamma(3), *np.log(x[5:])]
    computation = recorded("Digamma", [x])
    for found in (xlapy.evaluate(computation, x), xlapy.compile(computation)(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    a, sample = np.array([1e-310, 1e-310]), np.array([33.0, 800.0])
    with np.errstate(all="ignore"):
        xlapy.evaluate(recorded("RandomGammaGrad", [a, sample]), a, sample)  # whose density is 0
