"""Quotients of bytes and constants, and of many numbers and one divisor: the bits of a division, without one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.irlab import HAS_FMA
from tests.support.targets import lesser_targets
from xlapy.codegen.math.quotient import BYTES, has_exact_quotients
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.text import parse

DIVISORS = [255.0, 127.5, -127.0, 3.0, 0.1, 0.229, 1e-3, 7e9, 1e-17, 2.0**59]


def text(divisor: float, type: str = "u8", result: str = "f32") -> str:
    return f"""ENTRY e {{ x = {type}[32,300] parameter(0)  f = {result}[32,300] convert(x)
        c = {result}[] constant({divisor!r})  b = {result}[32,300] broadcast(c), dimensions={{}}
        ROOT q = {result}[32,300] divide(f, b) }}"""


@pytest.mark.parametrize("type", ["u8", "s8"])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_have_the_bits_of_a_division(divisor: float, type: str) -> None:
    assert has_exact_quotients(float(np.float32(divisor)))
    dtype = np.uint8 if type == "u8" else np.int8
    x = np.arange(9600).astype(dtype).reshape(32, 300)
    compiled = xlapy.compile(text(divisor, type))
    expected = x.astype(np.float32) / np.float32(divisor)
    np.testing.assert_array_equal(np.asarray(compiled(x)).view(np.uint32), expected.view(np.uint32))
    assert (" fdiv <" in compiled.llvm_ir()) != HAS_FMA


@pytest.mark.parametrize("divisor", [1.9999998807907104, 16777215.0])
def test_quotients_that_would_come_out_wrong_are_divided(divisor: float) -> None:
    """Of these, all bits are ones."""
    assert not has_exact_quotients(divisor)
    x = np.arange(9600).astype(np.uint8).reshape(32, 300)
    compiled = xlapy.compile(text(divisor))
    np.testing.assert_array_equal(compiled(x), x.astype(np.float32) / np.float32(divisor))
    assert " fdiv <" in compiled.llvm_ir()


@pytest.mark.parametrize("divisor", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e-30, 1e30])
def test_extreme_divisors_divide(divisor: float) -> None:
    assert not has_exact_quotients(divisor)


def test_most_divisors_need_no_division() -> None:
    random = np.random.default_rng(0)
    divisors = [*map(float, range(1, 300)), *map(float, np.exp(8 * random.normal(size=300)).astype(np.float32))]
    assert np.mean([has_exact_quotients(divisor) for divisor in divisors]) > 0.98
    assert all(-128 <= byte <= 255 for byte in BYTES)


@pytest.mark.parametrize(("type", "result"), [("s16", "f32"), ("u8", "f64"), ("s32", "f32")])
def test_others_divide(type: str, result: str) -> None:
    assert " fdiv <" in xlapy.compile(text(255.0, type, result)).llvm_ir()


TARGETS = {"host": host_target(), **lesser_targets()}
SIZE = 9600
NUMBER_TYPES = [("f32", np.float32, np.uint32), ("f64", np.float64, np.uint64)]


def executable(text: str, target: str = "host") -> Executable:
    options = xlapy.CompileOptions()
    return Executable(compile_module(parse(text), options, TARGETS[target]), options)


def by_one_divisor(type: str) -> str:
    return f"""ENTRY e {{ x = {type}[{SIZE}] parameter(0)  c = {type}[] parameter(1)
        b = {type}[{SIZE}] broadcast(c), dimensions={{}}
        ROOT q = {type}[{SIZE}] divide(x, b) }}"""


def divisors(dtype: type) -> list[np.floating]:
    """Usual ones, those with the first and the last significands, at the limits of what is multiplied, and extremes."""
    info, random = np.finfo(dtype), np.random.default_rng(1)
    limit = 2.0**60 if dtype is np.float32 else 2.0**500
    last = 2 - info.eps * np.arange(1, 6)
    found = [3.0, -3.0, 0.7, 4.0, *last, *(1 + info.eps * np.arange(4)), *random.uniform(1, 2, 8)]
    found += [limit, np.nextafter(dtype(limit), dtype(np.inf)), 1 / limit, np.nextafter(dtype(1 / limit), dtype(0))]
    found += [
        last[0] * limit / 2,
        last[0] / limit,
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        info.tiny,
        info.smallest_subnormal,
    ]
    return [dtype(number) for number in [*found, info.max]]


def numerators(dtype: type, bits: type, divisor: np.floating) -> np.ndarray:
    """Of all magnitudes, and products of the divisor with numbers half way between others."""
    random, info = np.random.default_rng(2), np.finfo(dtype)
    any_bits = random.integers(0, np.iinfo(bits).max, SIZE // 3, dtype=bits, endpoint=True).view(dtype)
    middles = random.uniform(1, 2, SIZE // 3).astype(dtype).astype(np.longdouble) + info.eps / 2
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny, info.smallest_subnormal, -info.max, 1e-30, -1e-19]
    products = (middles * divisor).astype(dtype)
    rest = np.resize(np.array(edges, dtype), SIZE - any_bits.size - products.size)
    return np.concatenate([any_bits, products, rest])


def assert_same_bits(found: object, expected: np.ndarray, bits: type) -> None:
    got = np.asarray(found)
    is_same = (got.view(bits) == expected.view(bits)) | (np.isnan(got) & np.isnan(expected))
    assert is_same.all(), (got[~is_same][:4], expected[~is_same][:4])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("type", "dtype", "bits"), NUMBER_TYPES)
def test_one_divisor_of_many_numbers_gives_the_bits_of_a_division(
    type: str, dtype: type, bits: type, target: str
) -> None:
    compiled = executable(by_one_divisor(type), target)
    for divisor in divisors(dtype):
        with np.errstate(all="ignore"):
            x = numerators(dtype, bits, divisor)
            assert_same_bits(compiled(x, np.asarray(divisor)), x / divisor, bits)
    assert ("llvm.fma" in compiled.llvm_ir()) == TARGETS[target].divides_slowly


@pytest.mark.parametrize(("type", "dtype", "bits"), NUMBER_TYPES)
def test_signs_of_zeros_are_those_of_a_division(type: str, dtype: type, bits: type) -> None:
    """In vectors that need no division, too."""
    compiled = executable(by_one_divisor(type))
    for divisor in np.random.default_rng(4).uniform(-4, 4, 100).astype(dtype):
        x = np.where(np.arange(SIZE) % 2, dtype(-0.0), dtype(0.0))
        assert_same_bits(compiled(x, np.asarray(divisor)), x / divisor, bits)


@pytest.mark.parametrize(("type", "dtype", "bits"), NUMBER_TYPES)
def test_rows_have_divisors_of_their_own(type: str, dtype: type, bits: type) -> None:
    text = f"""ENTRY e {{ x = {type}[24,400] parameter(0)  c = {type}[24] parameter(1)
        b = {type}[24,400] broadcast(c), dimensions={{0}}
        ROOT q = {type}[24,400] divide(x, b) }}"""
    random = np.random.default_rng(3)
    x = random.normal(size=(24, 400)).astype(dtype)
    c = np.concatenate([random.normal(size=20), [0.0, np.inf, np.nan, 1e-38]]).astype(dtype)
    with np.errstate(all="ignore"):
        assert_same_bits(executable(text)(x, c), x / c[:, None], bits)


@pytest.mark.parametrize(("row", "is_multiplied"), [(64, False), (2048, True)])
def test_short_rows_are_divided(row: int, is_multiplied: bool) -> None:
    """It takes longer to make an inverse than to divide a few vectors."""
    text = f"""ENTRY e {{ x = f32[40,{row}] parameter(0)  c = f32[40] parameter(1)
        b = f32[40,{row}] broadcast(c), dimensions={{0}}
        ROOT q = f32[40,{row}] divide(x, b) }}"""
    assert ("fcmp uno" in executable(text).llvm_ir()) == (is_multiplied and host_target().divides_slowly)


def test_quotients_beside_functions_are_divided() -> None:
    """What is done beside takes as long."""
    text = f"""ENTRY e {{ x = f32[{SIZE}] parameter(0)  y = f32[{SIZE}] exponential(x)
        c = f32[] constant(3)  b = f32[{SIZE}] broadcast(c), dimensions={{}}
        ROOT q = f32[{SIZE}] divide(y, b) }}"""
    assert "fcmp uno" not in executable(text).llvm_ir()


def edges_and_neighbours(random: np.random.Generator) -> np.ndarray:
    """Numbers of f64 of all magnitudes, among them those at the limits of what is not divided."""
    limits = np.array([2.0**-900, 2.0**1000, 2.0**1022, np.finfo(np.float64).max, np.finfo(np.float64).tiny, 1.0, 2.0])
    near = np.concatenate([limits, np.nextafter(limits, 0), np.nextafter(limits, np.inf)])
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 3.0]
    any_bits = random.integers(0, np.iinfo(np.uint64).max, SIZE // 2, dtype=np.uint64, endpoint=True).view(np.float64)
    rest = random.choice(np.concatenate([near, -near, special]), SIZE - any_bits.size)
    return random.permutation(np.concatenate([any_bits, rest]))


def halfway(random: np.random.Generator) -> np.ndarray:
    """What is in the middle of two numbers between 1 and 2, in a type that has it."""
    return random.uniform(1, 2, SIZE).astype(np.longdouble) + np.longdouble(2.0) ** -53 * random.choice(
        [-1, 0, 1], SIZE
    )


@pytest.mark.parametrize("target", TARGETS)
def test_quotients_of_f64_have_the_bits_of_a_division(target: str) -> None:
    compiled = executable(
        f"ENTRY e {{ x = f64[{SIZE}] parameter(0)  y = f64[{SIZE}] parameter(1)  ROOT q = f64[{SIZE}] divide(x, y) }}",
        target,
    )
    random = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        for _ in range(20):
            x, y = edges_and_neighbours(random), edges_and_neighbours(random)
            assert_same_bits(compiled(x, y), x / y, np.uint64)
            y = np.ldexp(random.choice([random.uniform(1, 2), 2 - 2.0**-52], SIZE), random.integers(-500, 500, SIZE))
            x = (halfway(random) * y).astype(np.float64)
            assert_same_bits(compiled(x, y), x / y, np.uint64)
    assert ("rcp14" in compiled.llvm_ir()) == TARGETS[target].has_estimates


@pytest.mark.parametrize("target", TARGETS)
def test_roots_of_f64_have_the_bits_of_an_instruction(target: str) -> None:
    compiled = executable(f"ENTRY e {{ x = f64[{SIZE}] parameter(0)  ROOT q = f64[{SIZE}] sqrt(x) }}", target)
    random = np.random.default_rng(6)
    with np.errstate(all="ignore"):
        for _ in range(20):
            for x in (edges_and_neighbours(random), (halfway(random) ** 2).astype(np.float64), np.zeros(SIZE)):
                assert_same_bits(compiled(x), np.sqrt(x), np.uint64)
    assert ("rsqrt14" in compiled.llvm_ir()) == TARGETS[target].has_estimates


def test_inverses_of_f64_have_the_bits_of_a_division() -> None:
    compiled = executable(f"""ENTRY e {{ x = f64[{SIZE}] parameter(0)
        c = f64[] constant(1)  b = f64[{SIZE}] broadcast(c), dimensions={{}}  ROOT q = f64[{SIZE}] divide(b, x) }}""")
    random = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        for _ in range(20):
            x = edges_and_neighbours(random)
            assert_same_bits(compiled(x), 1 / x, np.uint64)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("type", "dtype", "bits"), NUMBER_TYPES)
def test_roots_beside_divisions_have_the_bits_of_an_instruction(
    type: str, dtype: type, bits: type, target: str
) -> None:
    """These are found while numbers are divided, also in f32."""
    compiled = executable(
        f"""ENTRY e {{ x = {type}[{SIZE}] parameter(0)  y = {type}[{SIZE}] parameter(1)
        r = {type}[{SIZE}] sqrt(y)  q = {type}[{SIZE}] divide(x, r)
        ROOT t = ({type}[{SIZE}], {type}[{SIZE}]) tuple(r, q) }}""",
        target,
    )
    random = np.random.default_rng(8)
    middles = random.uniform(1, 2, SIZE).astype(dtype).astype(np.longdouble) + np.finfo(dtype).eps / 2
    any_bits = random.integers(0, np.iinfo(bits).max, SIZE, dtype=bits, endpoint=True).view(dtype)
    with np.errstate(all="ignore"):
        for y in ((middles**2).astype(dtype), any_bits, np.abs(any_bits), numerators(dtype, bits, dtype(3))):
            roots, quotients = compiled(any_bits[::-1].copy(), y)
            assert_same_bits(roots, np.sqrt(y), bits)
            assert_same_bits(quotients, any_bits[::-1] / np.sqrt(y), bits)
    assert ("rsqrt14" in compiled.llvm_ir()) == TARGETS[target].has_estimates


ROWS = 16


def test_quotients_of_all_numbers_of_bf16_and_one_divisor() -> None:
    """For each row another one, of any size, special ones too; as they are rounded from what f64 has, exactly."""
    bf16 = np.dtype(ml_dtypes.bfloat16)
    codes = np.arange(1 << 16, dtype=np.uint16)
    x = np.broadcast_to(codes.view(bf16), (ROWS, codes.size)).copy()
    compiled = xlapy.compile(f"""ENTRY e {{ x = bf16[{ROWS},{codes.size}] parameter(0)  c = bf16[{ROWS}] parameter(1)
        b = bf16[{ROWS},{codes.size}] broadcast(c), dimensions={{0}}
        ROOT q = bf16[{ROWS},{codes.size}] divide(x, b) }}""")
    random = np.random.default_rng(0)
    for _ in range(2):
        divisors = random.choice([-1, 1], ROWS) * np.exp2(random.uniform(-70, 70, ROWS))
        divisors[:5] = [0, np.inf, np.nan, 1e-39, 3e38]
        c = divisors.astype(bf16)
        with np.errstate(all="ignore"):
            expected = (x.astype(np.float64) / c.astype(np.float64)[:, None]).astype(bf16)
        found = np.asarray(compiled(x, c))
        number = ~np.isnan(expected.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), ~number)
        np.testing.assert_array_equal(found.view(np.uint16)[number], expected.view(np.uint16)[number])
    is_repeated = "fcmp uno" in compiled.llvm_ir()
    assert is_repeated == host_target().divides_slowly
