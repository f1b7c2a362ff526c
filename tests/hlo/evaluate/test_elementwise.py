"""Element-wise operations against numpy and against decided values, over all element types."""

from __future__ import annotations

import math
import warnings

import ml_dtypes
import numpy as np
import pytest

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import ANY, F8E8M0FNU, FLOAT, INTEGER, SIGNED, ElementType, element_type_named
from xlapy.hlo.evaluate import EVALUATORS, evaluate
from xlapy.hlo.graph import Computation, HloModule
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def apply(opcode: str, *arrays, result: Shape | None = None, **attributes) -> np.ndarray:
    computation = Computation("main")
    arrays = [np.asarray(array) for array in arrays]
    parameters = [
        computation.add("parameter", shape=Shape.of(array), number=number) for number, array in enumerate(arrays)
    ]
    computation.set_root(computation.add(opcode, parameters, shape=result, **attributes))
    return evaluate(HloModule("m", computation), *arrays)


def numbers(element_type: ElementType, count: int = 64) -> np.ndarray:
    generator = np.random.default_rng(3)
    if element_type.kind == "pred":
        return generator.integers(0, 2, count).astype(bool)
    if element_type.is_complex:
        parts = generator.normal(size=(2, count)) * 2
        return (parts[0] + 1j * parts[1]).astype(element_type.dtype)
    if element_type.is_float:
        return (generator.normal(size=count) * 2).astype(np.float32).astype(element_type.dtype)
    bits = generator.integers(0, 256, (count, element_type.bytes), dtype=np.uint8)
    if element_type.bits < 8:
        return (bits.reshape(-1) % (1 << element_type.bits)).astype(np.int64).astype(element_type.dtype)
    return bits.view(element_type.dtype).reshape(-1)


@pytest.mark.parametrize("name", [name for name, spec in OPS.items() if "types" in spec.options])
def test_every_row_gives_its_type_for_every_element_type_without_a_warning(name: str) -> None:
    spec = OPS[name]
    for element_type in sorted(spec.options["types"], key=str):
        operands = [numbers(element_type) for _ in spec.operands]
        if len(operands) == 2:
            operands[1] = operands[1][::-1]
        inferred = spec.infer([Shape.of(operand) for operand in operands], {})
        result = apply(name, *operands)
        assert Shape.of(result) == inferred
        if spec.reference is not None and element_type.bits >= 32:
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(result, spec.reference(*operands), err_msg=str(element_type))


def test_every_op_has_reference_semantics() -> None:
    assert EVALUATORS.missing() == []


@pytest.mark.parametrize("name", ["s8", "s16", "s32", "s64", "s4", "s2"])
def test_signed_division_and_remainder_are_those_of_truncation(name: str) -> None:
    element_type = element_type_named(name)
    low, high = -(1 << (element_type.bits - 1)), (1 << (element_type.bits - 1)) - 1
    values = sorted({low, low + 1, -1, 0, 1, high - 1, high} | ({-7, 3, 5} if element_type.bits > 4 else set()))
    lhs, rhs = (
        np.array(side).astype(element_type.dtype)
        for side in zip(*((a, b) for a in values for b in values), strict=True)
    )
    quotients, remainders = apply("divide", lhs, rhs), apply("remainder", lhs, rhs)
    for a, b, q, r in zip(lhs.tolist(), rhs.tolist(), quotients.tolist(), remainders.tolist(), strict=True):
        a, b, q, r = int(a), int(b), int(q), int(r)
        if b == 0:
            assert (q, r) == (-1, a)
        elif (a, b) == (low, -1):
            assert (q, r) == (low, 0)
        else:
            exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            assert (q, r) == (exact, a - exact * b)


def test_unsigned_division_by_zero_sets_all_bits() -> None:
    for name in ("u8", "u64", "u4"):
        dtype = element_type_named(name).dtype
        one, zero = np.array([1]).astype(dtype), np.array([0]).astype(dtype)
        assert int(apply("divide", one, zero)[0]) == (1 << element_type_named(name).bits) - 1
        assert int(apply("remainder", one, zero)[0]) == 1


@pytest.mark.parametrize("element_type", sorted(INTEGER, key=str), ids=str)
def test_shifts_past_the_width_and_counts_of_bits(element_type: ElementType) -> None:
    width = element_type.bits
    mask = (1 << width) - 1
    values = numbers(element_type, 40)
    amounts = numbers(element_type, 40)
    amounts[:20] = np.arange(20).astype(element_type.dtype)
    left, logical, arithmetic = (
        apply(name, values, amounts) for name in ("shift-left", "shift-right-logical", "shift-right-arithmetic")
    )
    for i in range(40):
        x, n = int(values[i]), int(amounts[i])
        signed = (x & mask) - ((x & mask) >> (width - 1) << width)
        beyond = not 0 <= n < width
        assert int(left[i]) & mask == (0 if beyond else (x << n) & mask)
        assert int(logical[i]) & mask == (0 if beyond else (x & mask) >> n)
        assert int(arithmetic[i]) & mask == (signed >> (width - 1 if beyond else n)) & mask
        assert int(apply("popcnt", values[i])) & mask == bin(x & mask).count("1") & mask
        assert int(apply("count-leading-zeros", values[i])) & mask == (width - (x & mask).bit_length()) & mask


def test_integer_power_wraps_and_negative_exponents_are_exact_or_zero() -> None:
    base = np.array([3, -3, 2, 1, -1, -1, 0, 5, 7], np.int8)
    exponent = np.array([4, 5, 10, -3, -3, -2, -1, -1, 0], np.int8)
    assert apply("power", base, exponent).tolist() == [81, 13, 0, 1, -1, 1, 0, 0, 1]
    assert apply("power", np.uint8([3]), np.uint8([200])).tolist() == [pow(3, 200, 256)]


@pytest.mark.parametrize("element_type", sorted((t for t in FLOAT if t.bits >= 16), key=str), ids=str)
def test_extrema_order_zeros_and_keep_nan(element_type: ElementType) -> None:
    values = [-math.inf, -1.0, -0.0, 0.0, 2.0, math.inf, math.nan]
    pairs = [(a, b) for a in values for b in values]
    lhs, rhs = (np.array(side).astype(element_type.dtype) for side in zip(*pairs, strict=True))
    for name, pick in (("maximum", max), ("minimum", min)):
        for (a, b), found in zip(pairs, apply(name, lhs, rhs).astype(np.float64), strict=True):
            if math.isnan(a) or math.isnan(b):
                assert math.isnan(found)
            else:
                expected = pick(a, b, key=lambda v: (v, math.copysign(1, v)))
                assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected))


@pytest.mark.parametrize("element_type", sorted(FLOAT, key=str), ids=str)
def test_total_order_is_the_order_of_the_bits(element_type: ElementType) -> None:
    if not element_type.bits <= 8:
        values = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan]).astype(element_type.dtype)
        keys = list(range(8))
        values[0] = np.copysign(np.nan, -1)
    else:
        bits = np.arange(1 << element_type.bits, dtype=np.uint8)
        values = bits.view(element_type.dtype)
        sign = 0 if element_type is F8E8M0FNU else 1 << (element_type.bits - 1)  # powers of two have no sign
        keys = [-1 - (int(b) ^ sign) if int(b) & sign else int(b) for b in bits]
        if element_type.name.endswith("fnuz"):
            keys[sign] = -1 - sign  # NaN, which has the bits of -0, as XLA has it
    found = apply("compare", values[1:], values[:-1], direction=ComparisonDirection.LT, type=ComparisonType.TOTALORDER)
    assert found.tolist() == [a < b for a, b in zip(keys[1:], keys[:-1], strict=True)]


def test_comparison_with_nan_holds_for_ne_only() -> None:
    x = np.array([np.nan, 1.0, -0.0], np.float32)
    y = np.array([np.nan, np.nan, 0.0], np.float32)
    found = {
        name: apply("compare", x, y, direction=ComparisonDirection(name)).tolist() for name in ("EQ", "NE", "LT", "GE")
    }
    assert found == {
        "EQ": [False, False, True],
        "NE": [True, True, False],
        "LT": [False] * 3,
        "GE": [False, False, True],
    }


def test_sign_rounding_and_logistic() -> None:
    x = np.array([np.nan, -2.5, -0.0, 0.0, 0.5, 1.5], np.float32)
    np.testing.assert_array_equal(apply("sign", x), np.array([np.nan, -1, -0.0, 0.0, 1, 1], np.float32))
    assert np.signbit(apply("sign", x)[2])
    np.testing.assert_array_equal(apply("round-nearest-afz", x), np.array([np.nan, -3, -0.0, 0, 1, 2], np.float32))
    np.testing.assert_array_equal(apply("round-nearest-even", x), np.array([np.nan, -2, -0.0, 0, 0, 2], np.float32))
    below_half = np.float32(0.49999997)
    assert apply("round-nearest-afz", below_half) == 0
    assert apply("logistic", np.float32([-1000, 0, 1000])).tolist() == [0, 0.5, 1]
    assert apply("logistic", np.float32([-95]))[0] == pytest.approx(np.exp(-95.0), rel=1e-4)  # where e^95 overflows
    assert apply("sign", np.complex64([3 + 4j, 0])).tolist() == [np.complex64(0.6 + 0.8j), 0]


def test_erf_against_the_c_library() -> None:
    x = np.concatenate([np.linspace(-6, 6, 301), [0.0, -0.0, np.inf, -np.inf, 1e-300]])
    np.testing.assert_allclose(apply("erf", x), [math.erf(v) for v in x], rtol=4e-15, atol=0)
    assert np.isnan(apply("erf", np.float32(np.nan)))


def test_narrow_floats_round_once() -> None:
    x, y = np.float32(1 + 2**-7), np.float32(2**-9)
    total = apply("add", np.asarray(x, ml_dtypes.bfloat16), np.asarray(y, ml_dtypes.bfloat16))
    assert total == ml_dtypes.bfloat16(np.float32(x + y))
    assert apply("exponential", np.asarray(1, ml_dtypes.bfloat16)) == ml_dtypes.bfloat16(np.float32(math.e))


# -- convert -------------------------------------------------------------------------------------------------------


def convert(array, name: str) -> np.ndarray:
    array = np.asarray(array)
    return apply("convert", array, result=Shape.array(element_type_named(name), array.shape))


def test_float_to_integer_truncates_and_saturates() -> None:
    x = np.array([1.9, -1.9, 1e30, -1e30, np.inf, -np.inf, np.nan, 255.5], np.float64)
    assert convert(x, "s8").tolist() == [1, -1, 127, -128, 127, -128, 0, 127]
    assert convert(x, "u8").tolist() == [1, 0, 255, 0, 255, 0, 0, 255]
    assert convert(x, "s64").tolist() == [1, -1, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 0, 255]
    assert convert(x, "u64").tolist() == [1, 0, 2**64 - 1, 0, 2**64 - 1, 0, 0, 255]
    assert convert(x, "s4").astype(int).tolist() == [1, -1, 7, -8, 7, -8, 0, 7]
    assert convert(x.astype(ml_dtypes.bfloat16), "s32")[2] == 2**31 - 1
    assert convert(x, "pred").tolist() == [True] * 8


def test_integers_wrap_and_predicates_count() -> None:
    assert convert(np.int32([300, -1]), "u8").tolist() == [44, 255]
    assert convert(np.int32([9, -9]), "s4").astype(int).tolist() == [-7, 7]
    assert convert(np.array([True, False]), "f32").tolist() == [1, 0]
    assert convert(np.uint64([2**64 - 1]), "s64").tolist() == [-1]
    assert convert(np.int8([-1, 0, 1]), "c128").tolist() == [-1, 0, 1]
    assert convert(np.complex64([1.5 + 2j]), "f32").tolist() == [1.5]
    assert convert(np.complex64([2.7 + 2j]), "s32").tolist() == [2]


def test_nothing_is_rounded_twice() -> None:
    between = 1 + 2**-8 + 2**-40  # above the tie of two bf16 numbers by less than f32 can see
    assert convert(np.float64(between), "bf16") == ml_dtypes.bfloat16(1 + 2**-7)
    assert convert(np.float64(-between), "bf16") == ml_dtypes.bfloat16(-1 - 2**-7)
    assert convert(np.float64(1 + 2**-8), "bf16") == ml_dtypes.bfloat16(1)
    assert convert(np.int64((1 << 62) + (1 << 54) + 1), "bf16") == ml_dtypes.bfloat16(2.0**62 + 2**55)
    assert convert(np.int64(-(1 << 63)), "bf16") == ml_dtypes.bfloat16(-(2.0**63))
    assert convert(np.float64(1e-46), "f16") == 0


@pytest.mark.parametrize("source", sorted(ANY, key=str), ids=str)
def test_every_type_converts_to_every_type(source: ElementType) -> None:
    values = numbers(source, 16)
    for target in ANY:
        found = convert(values, target.name)
        assert found.dtype == target.dtype
        if target.bits >= source.bits and target in SIGNED and source in SIGNED:
            assert found.astype(np.int64).tolist() == values.astype(np.int64).tolist()


def test_bits_are_read_as_other_types() -> None:
    x = np.uint64(0x0123456789ABCDEF)

    def cast(array, text: str) -> np.ndarray:
        module = parse(f"ENTRY e {{ p = {Shape.of(array)} parameter(0) ROOT r = {text} bitcast-convert(p) }}")
        return evaluate(module, array)

    assert cast(x.view(np.float64), "u16[4]").tolist() == [0xCDEF, 0x89AB, 0x4567, 0x0123]
    assert cast(np.uint16([0xCDEF, 0x89AB, 0x4567, 0x0123]), "u64[]") == x
    assert cast(np.uint8([0x21, 0xF3]), "u4[2,2]").astype(int).tolist() == [[1, 2], [3, 15]]
    assert cast(np.array([[1, 2], [3, 15]]).astype(ml_dtypes.uint4), "u8[2]").tolist() == [0x21, 0xF3]
    assert cast(np.array([-1, 7]).astype(ml_dtypes.int4), "u4[2]").astype(int).tolist() == [15, 7]
    assert cast(np.float32(1), "s32[]") == 0x3F800000


def test_bitcast_follows_the_layouts() -> None:
    text = "ENTRY e { p = f32[2,3]{0,1} parameter(0) ROOT b = f32[3,2]{1,0} bitcast(p) }"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(parse(text), x), x.T)


def test_reduce_precision() -> None:
    x = np.array([np.inf, np.nan, 5e-324, 0.0, 65519.0, 65520.0, -65520.0, -1e-30], np.float64)
    found = apply("reduce-precision", x, exponent_bits=5, mantissa_bits=10)
    np.testing.assert_array_equal(found, [np.inf, np.nan, 0, 0, 65504, np.inf, -np.inf, -0.0])
    assert np.signbit(found[-1])
    y = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    np.testing.assert_array_equal(
        apply("reduce-precision", y, exponent_bits=8, mantissa_bits=7), y.astype(ml_dtypes.bfloat16).astype(np.float32)
    )
    np.testing.assert_array_equal(apply("reduce-precision", y, exponent_bits=11, mantissa_bits=52), y)


def test_clamp_and_select_take_scalars() -> None:
    x = np.int32([-1, 5, 9])
    assert apply("clamp", np.int32(0), x, np.int32(6)).tolist() == [0, 5, 6]
    assert np.isnan(apply("clamp", np.float32(0), np.float32(np.nan), np.float32(1)))
    true = np.array(True)
    assert apply("select", true, x, -x).tolist() == [-1, 5, 9]
    assert apply("select", np.array([True, False, False]), x, -x).tolist() == [-1, -5, -9]


def test_clamp_of_a_signalling_nan_is_no_news() -> None:
    """numpy warns of it when it converts."""
    x = np.uint16([0x7F81, 0x3F80]).view(ml_dtypes.bfloat16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = apply("clamp", x, x, x)
    assert np.isnan(got[0]) and got[1] == 1


def test_traits_tell_the_truth() -> None:
    for name, spec in OPS.items():
        if Trait.COMMUTATIVE in spec.traits:
            x, y = numbers(element_type_named("u16")), numbers(element_type_named("u16"))[::-1]
            np.testing.assert_array_equal(apply(name, x, y), apply(name, y, x))
