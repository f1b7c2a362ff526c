"""From every element type to every other one: by value, by bits, and rounded in place.

Native code and the evaluator have to agree in every bit, on every code of a narrow type and on the edges of a wide one;
both have to agree with numpy, ml_dtypes or plain arithmetic wherever these say what the result is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from tests.e2e.test_against_evaluator import awkward, module_of, run
from tests.support.values import assert_same, integer_limits, same_elements
from xlapy.hlo.element_types import (
    ALL,
    BF16,
    C64,
    C128,
    F4E2M1FN,
    F6E2M3FN,
    F32,
    F64,
    FLOAT,
    PRED,
    S2,
    S4,
    S8,
    S16,
    U2,
    U4,
    U8,
    U32,
    U64,
    ElementType,
    real_part_type,
)
from xlapy.hlo.evaluate.numerics import from_bits, to_bits
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape

Array = np.ndarray[Any, Any]
RANDOM = 2000


def numbers(element_type: ElementType) -> Array:
    """Every code up to 16 bits; of wider types, edges, small numbers, what is next to powers of two, random bits."""
    if element_type.bits <= 16:
        return from_bits(np.arange(1 << element_type.bits, dtype=np.uint64), element_type)
    if element_type.is_complex:
        part = numbers(real_part_type(element_type))
        whole = np.empty(part.size, element_type.dtype)
        whole.real, whole.imag = part, part[::-1]
        return whole
    random = np.random.default_rng(6).integers(0, 1 << 64, RANDOM, np.uint64) >> np.uint64(64 - element_type.bits)
    powers = np.uint64(1) << np.arange(element_type.bits, dtype=np.uint64)
    beside = np.concatenate([powers - np.uint64(1), powers, powers + np.uint64(1)])
    parts = [awkward(element_type, RANDOM), from_bits(random, element_type)]
    if element_type.is_float:
        with np.errstate(all="ignore"):
            parts += [beside.astype(element_type.dtype), -beside.astype(element_type.dtype)]
    else:
        parts += [from_bits(beside, element_type), from_bits(~beside, element_type)]
    return np.concatenate(parts)


# -- by value --------------------------------------------------------------------------------------------------------


def by_definition(values: Array, source: ElementType, target: ElementType) -> tuple[Array, Array]:
    """What conversion gives, and for which of the values numpy, ml_dtypes or arithmetic on whole numbers say so."""
    everywhere = np.ones(values.shape, bool)
    if target.is_complex:
        part = real_part_type(target)
        parts = (values.real, values.imag) if source.is_complex else (values, np.zeros(values.shape, part.dtype))
        converted = [by_definition(np.ascontiguousarray(p), real_part_type(source), part)[0] for p in parts[:1]]
        imaginary = parts[1].astype(part.dtype)
        whole = np.empty(values.shape, target.dtype)
        whole.real, whole.imag = converted[0], imaginary
        return whole, everywhere
    if target.kind == "pred":
        return (values.astype(np.float64) if source.is_narrow_float else values) != 0, everywhere
    if source.is_complex:
        return by_definition(np.ascontiguousarray(values.real), real_part_type(source), target)
    if target.is_integer:
        return (_truncated if source.is_float else _wrapped)(values, target), everywhere
    single = values.astype(np.float32)
    if target.is_narrow_float:
        # Both round once, but only from f32; a NaN has no sign, and is a positive zero where there is none.
        exact = np.array(
            [single_value == value for single_value, value in zip(single.tolist(), _plain(values), strict=True)]
        )
        single = np.where(np.isnan(single), np.float32(np.nan), single)
        return single.astype(target.dtype), exact | np.isnan(single)
    return (single if source.is_narrow_float else values).astype(target.dtype), everywhere


def _plain(values: Array) -> list[Any]:
    """As Python numbers, which compare exactly."""
    wide = values.dtype.itemsize >= 4
    return list((values if wide else values.astype(np.float32)).tolist())


def _truncated(values: Array, target: ElementType) -> Array:
    """Toward zero, to the nearest limit where it is beyond, and NaN to zero: in Python's unbounded integers."""
    low, high = integer_limits(target)
    limited = [
        0 if value != value else high if value > high else low if value < low else int(value)
        for value in values.astype(np.float64).tolist()
    ]
    return np.array(limited, np.int64 if target.is_signed else np.uint64).astype(target.dtype)


def _wrapped(values: Array, target: ElementType) -> Array:
    """The lowest bits."""
    wide = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64).view(np.uint64)
    return from_bits(wide & np.uint64((1 << target.bits) - 1), target)


@pytest.mark.parametrize("source", ALL, ids=str)
def test_conversion_between_all_pairs(source: ElementType) -> None:
    values = numbers(source)

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        return [c.add("convert", p, shape=p[0].shape.with_type(target)) for target in ALL]

    for target, (_, got, expected) in zip(ALL, run(module_of([Shape.of(values)], build), values), strict=True):
        place = f"{source} to {target}"
        assert_same(got, expected, place)
        if target is not source:
            with np.errstate(all="ignore"):
                defined, where = by_definition(values, source, target)
            wrong = where & ~same_elements(got, defined)
            assert not wrong.any(), f"{place}: {values[wrong][:4]} gives {got[wrong][:4]}, not {defined[wrong][:4]}"


# -- by bits ---------------------------------------------------------------------------------------------------------


def shapes_of_parts(
    source: ElementType, target: ElementType, dims: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Dimensions between which bitcast-convert leads: several narrow elements, in a dimension of their own, are one
    element of an array of `dims`."""
    parts = max(source.bits, target.bits) // min(source.bits, target.bits)
    if parts == 1:
        return dims, dims
    return (dims, (*dims, parts)) if source.bits > target.bits else ((*dims, parts), dims)


PAIRS = [
    (source, target)
    for source in ALL
    for target in ALL
    if source.is_complex == target.is_complex
    if source.bits % target.bits == 0 or target.bits % source.bits == 0
]
STORED_APART = [
    (source, target) for source, target in PAIRS if source.bits != target.bits and min(source.bits, target.bits) < 8
]


@pytest.mark.parametrize("source", ALL, ids=str)
def test_the_bits_of_all_pairs(source: ElementType) -> None:
    targets = [target for origin, target in PAIRS if origin is source]
    random = np.random.default_rng(3)
    shapes = [shapes_of_parts(source, target, (60,)) for target in targets]
    values = [from_random_bits(random, source, dims) for dims, _ in shapes]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        there = [
            c.add("bitcast-convert", [x], shape=Shape.array(target, dims))
            for x, target, (_, dims) in zip(p, targets, shapes, strict=True)
        ]
        return [*there, *(c.add("bitcast-convert", [y], shape=x.shape) for x, y in zip(p, there, strict=True))]

    results = run(module_of([Shape.of(x) for x in values], build), *values)
    for target, x, (_, there, expected), (_, back, _) in zip(
        targets, values, results[: len(targets)], results[len(targets) :], strict=True
    ):
        assert_same(there, expected, f"{source} to {target}")
        assert_bits(back, x)
        if min(source.bits, target.bits) >= 8:
            assert_bits(there, x.view(target.dtype).reshape(there.shape))


def from_random_bits(random: np.random.Generator, element_type: ElementType, dims: tuple[int, ...]) -> Array:
    if element_type.is_complex:
        return random.integers(0, 256, (*dims, element_type.bytes), np.uint8).view(element_type.dtype)[..., 0]
    return from_bits(random.integers(0, 1 << 64, dims, np.uint64) >> np.uint64(64 - element_type.bits), element_type)


def assert_bits(got: Array, expected: Array) -> None:
    """Those of NaN too."""
    assert got.dtype == expected.dtype
    if got.dtype.kind == "c":
        assert got.tobytes() == expected.tobytes()
    else:
        np.testing.assert_array_equal(to_bits(got), to_bits(expected))


SHAPES = ((), (1,), (0,), (2, 0, 3), (2, 3, 5))


@pytest.mark.parametrize("source", sorted({source for source, _ in STORED_APART}, key=str), ids=str)
def test_bits_that_do_not_lie_side_by_side(source: ElementType) -> None:
    """Of scalars, empty arrays and arrays of several dimensions, whose wide elements have these shapes."""
    random = np.random.default_rng(4)
    cases = [(target, dims) for origin, target in STORED_APART if origin is source for dims in SHAPES]
    shapes = [shapes_of_parts(source, target, dims) for target, dims in cases]
    values = [np.asarray(from_random_bits(random, source, dims)) for dims, _ in shapes]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        return [
            c.add("bitcast-convert", [x], shape=Shape.array(target, dims))
            for x, (target, _), (_, dims) in zip(p, cases, shapes, strict=True)
        ]

    for place, got, expected in run(module_of([Shape.of(x) for x in values], build), *values):
        if got.ndim:
            assert_bits(got, expected)
        else:  # in a register, where a NaN of a narrow float is any NaN
            assert_same(got, expected, place)


@pytest.mark.parametrize(("source", "target"), [(U8, S4), (S4, U8), (U2, U32), (F32, U2), (U2, F6E2M3FN)], ids=str)
def test_bits_of_arrays_of_many_sizes(source: ElementType, target: ElementType) -> None:
    """What does not fill a vector, and what several threads share."""
    random = np.random.default_rng(5)
    shapes = [shapes_of_parts(source, target, (size,)) for size in (2, 7, 31, 32, 33, 63, 65, 129, 200_003)]
    values = [from_random_bits(random, source, dims) for dims, _ in shapes]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        return [
            c.add("bitcast-convert", [x], shape=Shape.array(target, dims))
            for x, (_, dims) in zip(p, shapes, strict=True)
        ]

    for _, got, expected in run(module_of([Shape.of(x) for x in values], build), *values):
        assert_bits(got, expected)


SOME = (S2, U4, F4E2M1FN, U8, S16, F32, U64)


@pytest.mark.parametrize("types", [SOME, pytest.param(ALL, marks=pytest.mark.slow)], ids=["some", "all"])
def test_bits_of_narrow_elements_are_those_of_xla(types: tuple[ElementType, ...]) -> None:
    """Of the pairs that XLA takes: not those of pred and of 6 bits."""
    jax = pytest.importorskip("jax")
    taken = [element_type for element_type in types if element_type.bits not in (1, 6)]
    pairs = [(source, target) for source, target in STORED_APART if source in taken and target in taken]
    random = np.random.default_rng(7)
    shapes = [shapes_of_parts(source, target, (2, 5)) for source, target in pairs]
    values = [from_random_bits(random, source, dims) for (source, _), (dims, _) in zip(pairs, shapes, strict=True)]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        return [
            c.add("bitcast-convert", [x], shape=Shape.array(target, dims))
            for x, (_, target), (_, dims) in zip(p, pairs, shapes, strict=True)
        ]

    def program(*arrays: Any) -> list[Any]:
        return [
            jax.lax.bitcast_convert_type(array, target.dtype) for array, (_, target) in zip(arrays, pairs, strict=True)
        ]

    with jax.enable_x64(True):
        theirs = jax.jit(program)(*values)
    ours = xlapy.compile(module_of([Shape.of(x) for x in values], build))(*values)
    for got, expected in zip(ours, theirs, strict=True):
        assert_bits(got, np.asarray(expected))


# -- rounded in place ------------------------------------------------------------------------------------------------

EXPONENTS = {8: (1, 2, 3, 4, 5, 6, 7, 8, 9, 11), 11: (1, 2, 5, 8, 10, 11)}
MANTISSAS = {8: (0, 1, 2, 3, 7, 10, 22, 23, 30), 11: (0, 1, 7, 10, 23, 50, 51, 52)}


def precision_reduced(values: Array, exponent_bits: int, mantissa_bits: int, exponent_width: int) -> Array:
    """By its definition: rounded to nearest even at the mantissa, infinite above the exponents and zero below."""
    fraction, exponent = np.frexp(values)
    rounded = np.ldexp(np.rint(np.ldexp(fraction, mantissa_bits + 1)), exponent - mantissa_bits - 1)
    if exponent_bits >= exponent_width:
        return np.where(np.isfinite(values), rounded, values)
    bias = (1 << (exponent_bits - 1)) - 1
    magnitude = np.abs(rounded)
    limited = np.where(magnitude >= 2.0 ** (bias + 1), np.inf, np.where(magnitude < 2.0 ** (1 - bias), 0.0, magnitude))
    return np.where(np.isnan(values), values, np.copysign(limited, values))


@pytest.mark.parametrize("element_type", sorted(FLOAT, key=str), ids=str)
def test_reduced_precision(element_type: ElementType) -> None:
    """Of each float type to many formats. Where the definition leaves room, only the evaluator is compared with: which
    bits a subnormal number loses, and which neighbour is the even one if there is no mantissa to tell."""
    computed = F64 if element_type is F64 else F32
    width = 11 if computed is F64 else 8
    values = numbers(element_type)[:: 16 if element_type.bits == 16 else 1]
    formats = [(e, m) for e in EXPONENTS[width] for m in MANTISSAS[width]]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        return [c.add("reduce-precision", p, exponent_bits=e, mantissa_bits=m) for e, m in formats]

    wide = values.astype(computed.dtype)
    normal = ~(np.abs(wide) < np.finfo(computed.dtype).tiny) | (wide == 0)
    for form, (_, got, expected) in zip(formats, run(module_of([Shape.of(values)], build), values), strict=True):
        assert_same(got, expected, f"{element_type} to {form}")
        if form[1] == 0:
            continue
        with np.errstate(all="ignore"):
            defined = precision_reduced(wide.astype(np.longdouble), *form, width).astype(computed.dtype)
            defined = np.where(np.isnan(defined), computed.dtype.type(np.nan), defined).astype(element_type.dtype)
        wrong = normal & ~same_elements(got, defined)
        assert not wrong.any(), f"{form}: {values[wrong][:4]} gives {got[wrong][:4]}, not {defined[wrong][:4]}"


# -- of products -------------------------------------------------------------------------------------------------------

PRODUCTS = """ENTRY e {{
  x = {source}[3,4] parameter(0)  y = {source}[4,9] parameter(1)
  dot = {target}[3,9] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  input = {source}[1,3,4] reshape(x)  kernel = {source}[6,3,2] reshape(y)
  convolution = {target}[1,6,3] convolution(input, kernel), window={{size=2}}, dim_labels=bf0_oi0->bf0
  ROOT t = ({target}[3,9], {target}[1,6,3]) tuple(dot, convolution)
}}"""


@pytest.mark.parametrize("target", [PRED, S4, S8, U32, BF16, F32, F64, C64, C128], ids=str)
@pytest.mark.parametrize("source", [PRED, S4, S8, U32, BF16, F32, F64, C64, C128], ids=str)
def test_products_of_any_result_type(source: ElementType, target: ElementType) -> None:
    """Of small whole numbers, whose sums are exact in every type, and some of which are 0."""
    text = PRODUCTS.format(source=source, target=target)
    if source.is_complex and not target.is_complex:
        with pytest.raises(xlapy.ShapeError, match=r"dot.complex-result"):
            xlapy.compile(text)
        return
    random = np.random.default_rng(8)
    low, high = {PRED: (0, 2), U32: (0, 3)}.get(source, (-2, 3))
    x, y = (random.integers(low, high, dims).astype(source.dtype) for dims in ((3, 4), (4, 9)))
    assert_same(xlapy.compile(text)(x, y), xlapy.evaluate(text, x, y))
