"""Narrow floats against ml_dtypes: every code widened, and f32 values around every rounding boundary narrowed."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.codegen.ir import I8, I16, PTR, KernelBuilder, Module
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.narrow_floats import NARROW_FLOATS
from xlapy.codegen.target import Target, reference_target
from xlapy.hlo.element_types import F32, element_type_named
from xlapy_runtime.records import replaced


def converter(source: str, target: str, size: int) -> xlapy.Executable:
    b = xlapy.XlaBuilder(f"{source}_to_{target}")
    x = ops.Parameter(b, 0, xlapy.Shape.array(element_type_named(source), (size,)))
    return xlapy.compile(b.build(ops.ConvertElementType(x, element_type_named(target))))


def all_codes(name: str) -> np.ndarray:
    element_type = element_type_named(name)
    if element_type.bytes == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(element_type.dtype)
    return np.arange(1 << element_type.bits, dtype=np.uint8).view(element_type.dtype)


def same(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Equal bit for bit, any NaN being as good as another."""
    a, b = left.astype(np.float32), right.astype(np.float32)
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


@pytest.mark.parametrize("name", sorted(NARROW_FLOATS))
def test_every_code_widens_to_its_value(name: str) -> None:
    codes = all_codes(name)
    with np.errstate(all="ignore"):
        expected = codes.astype(np.float32)
    got = converter(name, "f32", codes.size)(codes)
    assert got.dtype == F32.dtype
    assert same(got, expected).all(), codes.view(np.uint8)[: codes.size][~same(got, expected)][:8]


@pytest.mark.parametrize("name", sorted(NARROW_FLOATS))
def test_f32_rounds_to_nearest_even(name: str) -> None:
    values = interesting_floats(name)
    with np.errstate(all="ignore"):
        unsigned = np.where(np.isnan(values), np.float32(np.nan), values)  # the sign of a NaN means nothing
        expected = unsigned.astype(element_type_named(name).dtype)
    got = converter("f32", name, values.size)(values)
    wrong = ~same(got, expected)
    assert not wrong.any(), list(zip(values[wrong][:8], got[wrong][:8], expected[wrong][:8], strict=True))


@pytest.mark.parametrize("name", ["bf16", "f16", "f8e4m3fn", "f8e5m2"])
def test_f64_rounds_once(name: str) -> None:
    """A value just beyond the middle of two neighbours, by less than f32 can see."""
    with np.errstate(invalid="ignore"):
        codes = all_codes(name).astype(np.float64)
    finite = np.unique(codes[np.isfinite(codes)])
    middles = (finite[:-1] + finite[1:]) / 2
    values = np.concatenate([np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf), middles])
    expected = np.concatenate([finite[1:], finite[:-1]])
    got = converter("f64", name, values.size)(values).astype(np.float64)
    assert (got[: expected.size] == expected).all()


def interesting_floats(name: str) -> np.ndarray:
    """Every value of the type, the middles between neighbours and what lies just beside, and random bits."""
    with np.errstate(invalid="ignore"):
        codes = all_codes(name).astype(np.float32)
    finite = np.unique(codes[np.isfinite(codes)]).astype(np.float64)
    middles = ((finite[:-1] + finite[1:]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(-np.inf))]
    random = np.random.default_rng(0).integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45], np.float32)
    limit = np.float32(np.abs(finite).max())
    with np.errstate(over="ignore"):
        edges = limit * np.array([1, 1.03, 1.05, 1.07, 1.5, -1.5, -1.05], np.float32)
    return np.concatenate([codes, middles, *beside, random, special, edges])


@pytest.mark.parametrize("name", ["bf16", "f16", "f8e5m2"])
@pytest.mark.parametrize("operation", ["Add", "Sub", "Mul", "Div", "Max", "Rem", "Pow", "Atan2"])
def test_operations_on_all_codes_keep_nans(name: str, operation: str) -> None:
    """NaNs of all kinds stay NaNs, next to one another and next to numbers; what is no NaN is rounded once."""
    codes = all_codes(name)
    for other in (codes[::-1].copy(), np.full(codes.size, 3.0, codes.dtype)):
        got = computed(operation, codes, other)
        with np.errstate(all="ignore"):
            expected = computed(operation, codes.astype(np.float32), other.astype(np.float32)).astype(codes.dtype)
        assert same(got, expected).all(), codes[~same(got, expected)][:8]


@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_exact_operations_behind_one_that_rounds(name: str) -> None:
    """Signs change, and values are chosen, without being rounded once more; a converted NaN stays one."""
    codes, element_type = all_codes(name), element_type_named(name)
    b = xlapy.XlaBuilder("exact")
    wide = ops.Parameter(b, 0, xlapy.Shape.array(F32, (codes.size,)))
    x = ops.ConvertElementType(wide, element_type)
    largest = ops.Max(ops.Neg(ops.Abs(x)), ops.Neg(ops.Mul(x, x)))
    values = np.arange(codes.size, dtype=np.uint32) << 16 | 0xFFFF
    values = values.view(np.float32)
    with np.errstate(all="ignore"):
        rounded = np.where(np.isnan(values), np.float32(np.nan), values).astype(codes.dtype)
        squares = (rounded.astype(np.float32) ** 2).astype(codes.dtype)
        expected = np.maximum(-np.abs(rounded), -squares)
    got = xlapy.compile(b.build(largest))(values)
    assert same(got, expected).all(), values.view(np.uint32)[~same(got, expected)][:8]


def computed(operation: str, *arrays: np.ndarray) -> np.ndarray:
    b = xlapy.XlaBuilder(operation)
    operands = [ops.Parameter(b, i, xlapy.Shape.array(array.dtype, array.shape)) for i, array in enumerate(arrays)]
    return np.asarray(xlapy.compile(b.build(getattr(ops, operation)(*operands)))(*arrays))


def test_processors_convert_bytes_that_are_the_upper_ones_of_halves() -> None:
    """Those that know halves."""
    form = NARROW_FLOATS["f8e5m2"]
    for name, converts in (("avx512", True), ("avx2", True), ("sse2", False)):
        target = reference_target(name)
        module = Module.of(target)
        with KernelBuilder(module, "doubled", [("p", PTR)], None, attributes=target.function_attributes) as k:
            value = form.widen(k, k.load(k.parameters["p"], I8.with_lanes(32)))
            k.store(k.parameters["p"], form.narrow(k, k.add(value, value)))
        text = emit_assembly(module.text(), target)
        assert ("vcvtph2ps" in text and "vcvtps2ph" in text) == converts
        assert "call" not in text


def bf16_copy(target: Target, lanes: int) -> str:
    """Assembly of a function that widens so many lanes, adds one and packs them again."""
    module, bf16 = Module.of(target), NARROW_FLOATS["bf16"]
    assert bf16.encode is not None
    with KernelBuilder(module, "copy", [("p", PTR)], None, attributes=target.function_attributes) as k:
        pointer = k.parameters["p"]
        wide = k.add(bf16.widen(k, k.load(pointer, I16.with_lanes(lanes))), 1.0)
        k.store(pointer, bf16.encode(k, wide))
    return emit_assembly(module.text(), target)


@pytest.mark.parametrize("lanes", [32, 64, 128])
def test_halves_are_packed_from_two_registers_at_a_time(lanes: int) -> None:
    """A permutation makes a register of them, and a conversion widens half of one, however many there are."""
    text = bf16_copy(reference_target("avx512"), lanes)
    assert text.count("\tvpermt2w\t") + text.count("\tvpermi2w\t") == lanes // 32
    assert text.count("\tvpmovzxwd\t") == lanes // 16
    assert "vpmovdw" not in text


def test_lanes_that_do_not_fill_registers_are_packed() -> None:
    assert "vpmovzxwd" in bf16_copy(reference_target("avx512"), 24)
    assert "vpermt2w" not in bf16_copy(reference_target("avx2"), 64)


@pytest.mark.parametrize("name", sorted({*NARROW_FLOATS} - {"f8e8m0fnu"}))
def test_0_is_added_to_what_is_rounded(name: str) -> None:
    """Where the product is -0, the sum is 0; all else is the product. (By 2^-1, for subnormal numbers are halved.)"""
    codes, element_type = all_codes(name), element_type_named(name)
    b = xlapy.XlaBuilder("with zero")
    x, y = (ops.Parameter(b, i, xlapy.Shape.array(element_type, (codes.size,))) for i in range(2))
    product = ops.Mul(x, y)
    executable = xlapy.compile(b.build(ops.Tuple(b, [product, ops.Add(product, ops.Constant(b, codes.dtype.type(0)))])))
    halves = np.full(codes.size, 0.5, codes.dtype)
    found, total = executable(codes, halves)
    with np.errstate(all="ignore"):
        expected = (codes.astype(np.float32) * np.float32(0.5)).astype(codes.dtype)
        assert same(found, expected).all()
        assert same(total, expected.astype(np.float32) + np.float32(0)).all()


def bf16_product_in_a_loop(target: Target) -> Module:
    """A function that squares numbers twice, rounds each time, and stores what comes out."""
    module, bf16 = Module.of(target), NARROW_FLOATS["bf16"]
    assert bf16.round_result is not None and bf16.encode is not None
    builder = KernelBuilder(module, "f", [("p", PTR)], None, attributes=target.function_attributes)
    with builder as k, k.loop(0, 1 << 10, 64) as loop:
        place = k.gep(k.parameters["p"], loop.index, 2)
        value = bf16.widen(k, k.load(place, I16.with_lanes(64)))
        for _ in range(2):
            value = bf16.round_result(k, k.mul(value, value))
        k.store(place, bf16.encode(k, value))
    return module


def test_constants_of_rounding_are_unknown_in_a_loop_where_registers_hold_them() -> None:
    """There is one of each, and LLVM has nothing to look for."""
    before, _, inside = bf16_product_in_a_loop(reference_target("avx512")).text().partition("loop")
    assert before.count("freeze <64 x i32>") == 4
    assert not any(f"splat (i32 {number})" in inside for number in (0x8000, 0x7FFF, -1 << 17, -1 << 16))
    assert "freeze" not in bf16_product_in_a_loop(reference_target("avx2")).text()


def test_bits_are_added_as_products_of_halves_where_there_is_an_instruction_for_that() -> None:
    """A mask, a sum and, but for what is packed, another mask for each register that is rounded."""
    target = reference_target("avx512")
    target = replaced(target, features=f"{target.features},+avx512vnni")
    lines = emit_assembly(bf16_product_in_a_loop(target).text(), target).splitlines()
    assert sum("\tvpdpwssd" in line for line in lines) == 4 * 2
    logic = [line for line in lines if line.startswith(("\tvpand", "\tvpor", "\tvpternlog"))]
    assert len(logic) == 4 * (2 + 1)


def test_what_is_packed_is_not_masked_before() -> None:
    """Of two products, the first one is. Each register takes two instructions for that one, and one for the other."""
    target = reference_target("avx512")
    lines = emit_assembly(bf16_product_in_a_loop(target).text(), target).splitlines()
    logic = [line for line in lines if line.startswith(("\tvpand", "\tvpor", "\tvpternlog"))]
    assert len(logic) == 4 * (2 + 1)
