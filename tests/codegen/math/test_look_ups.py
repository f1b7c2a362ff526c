"""Exponentials and logarithms that take numbers of tables where lanes choose among others."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.accuracy import apply, errors, write_loop
from xlapy.codegen.ir import IRType, Module
from xlapy.codegen.math import MATH
from xlapy.codegen.target import reference_target

LANES = (1, 2, 4, 8, 12, 16, 24, 32, 64)
FLOATS = [(np.float32, np.uint32), (np.float64, np.uint64)]
WIDER = {"exp": np.exp, "log": np.log, "log1p": np.log1p, "logistic": lambda x: 1 / (1 + np.exp(-x))}
BOUND = {"exp": 1.2, "log": 1.2, "log1p": 1.6, "logistic": 1.7}


@pytest.mark.parametrize(("dtype", "bits"), FLOATS)
@pytest.mark.parametrize("name", sorted(WIDER))
def test_any_numbers_have_the_same_bits_in_vectors_of_any_length(name: str, dtype: type, bits: type) -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, np.iinfo(bits).max, 9600, dtype=bits, endpoint=True).view(dtype)
    x[::2] = random.uniform(0.5, 2, 4800)
    expected = apply(name, x, lanes=1)
    with np.errstate(all="ignore"):
        assert errors(expected, WIDER[name](x.astype(np.longdouble))).max() < BOUND[name]
    for lanes in LANES:
        np.testing.assert_array_equal(apply(name, x, lanes=lanes).view(bits), expected.view(bits))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_next_to_the_ends_of_pieces(dtype: type) -> None:
    """Of significands, and of exponents: with the neighbours of each."""
    ends = np.concatenate([np.arange(16, 25) / 16, np.arange(24, 33) / 32]).astype(dtype)
    near = np.concatenate([np.nextafter(ends, dtype(0)), ends, np.nextafter(ends, dtype(2))])
    info = np.finfo(dtype)
    powers = np.ldexp(dtype(1), np.arange(info.minexp + 1, info.maxexp - 1, 7)).astype(dtype)
    x = np.multiply.outer(near, powers).ravel()
    assert errors(apply("log", x), np.log(x.astype(np.longdouble))).max() < BOUND["log"]
    less_one = x[x > 2.0**-20] - 1
    assert errors(apply("log1p", less_one), np.log1p(less_one.astype(np.longdouble))).max() < BOUND["log1p"]
    np.testing.assert_array_equal(apply("log", np.ones(1, dtype)).view(f"u{x.itemsize}"), 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_of_special_numbers(dtype: type) -> None:
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -info.smallest_subnormal], dtype)
    for lanes in (1, 4, 16):
        np.testing.assert_array_equal(apply("log", x, lanes=lanes), np.array([-np.inf] * 2 + [np.inf] + [np.nan] * 4))
    limits = np.array([info.smallest_subnormal, 3 * info.smallest_subnormal, info.tiny / 2, info.tiny, info.max], dtype)
    assert errors(apply("log", limits), np.log(limits.astype(np.longdouble))).max() < 1


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float32, -105, -80), (np.float64, -747, -700)])
def test_subnormal_results(dtype: type, low: float, high: float) -> None:
    x = np.linspace(low, high, 40_001).astype(dtype)
    for name in ("exp", "logistic"):
        assert errors(apply(name, x), WIDER[name](x.astype(np.longdouble))).max() < BOUND[name]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_numbers_are_taken_apart_by_instructions_where_there_are_some(kind: str) -> None:
    for name, expected in (("avx512", True), ("avx2", False), ("sse2", False), ("neon", False)):
        module = Module.of(reference_target(name))
        write_loop(module, "f", MATH["log"], 1, IRType(kind, 16))
        assert ("getmant" in module.text()) == expected
        assert ("vpermi2var" in module.text() or "permvar" in module.text()) == expected


@pytest.mark.parametrize("name", ["avx512", "avx2", "sse2", "neon"])
def test_constants_of_three_registers_can_be_read(name: str) -> None:
    """Their sizes are no powers of two, as alignments are."""
    for kind in ("f32", "f64"):
        module = Module.of(reference_target(name))
        write_loop(module, "f", MATH["log"], 1, IRType(kind, 12))
        alignments = {int(text) for text in re.findall(r"align (\d+)", module.text())}
        assert alignments and all(number & -number == number for number in alignments)
