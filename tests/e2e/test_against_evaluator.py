"""Native code against the evaluator, op by op, for every element type that the op table allows.

The element-wise ops come from the table itself: one module per element type holds all of them, on every pair of awkward
numbers (limits, zeros of both signs, infinities, NaN, shifts beyond the width ...) and on random ones. Ops that are
correctly rounded or exact must agree in every bit; the others within the tolerance that `INEXACT` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_close, assert_same, edges, random_array
from xlapy.hlo.attributes import ComparisonDirection, ComparisonType, DotDimensionNumbers
from xlapy.hlo.element_types import (
    ALL,
    ANY,
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    PRED,
    S8,
    S32,
    S64,
    U8,
    U32,
    ElementType,
)
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, OpSpec
from xlapy.hlo.shape import Shape

Array = np.ndarray[Any, Any]

EXACT = frozenset(
    """abs ceil copy count-leading-zeros floor imag is-finite negate not popcnt real round-nearest-afz
    round-nearest-even sign sqrt add and complex divide maximum minimum multiply or remainder shift-left
    shift-right-arithmetic shift-right-logical subtract xor""".split()  # noqa: SIM905 - a list of words
)
"""Ops with one right result. Those of complex numbers are exact by parts only."""

EXACT_FOR_COMPLEX = frozenset({"add", "subtract", "negate", "real", "imag", "maximum", "minimum", "complex", "copy"})
INEXACT_ULP = 8
"""Units of the last place of f32 or f64 by which native code (2) and numpy (up to 6) may differ together."""
ERF_ULP = 32  # the evaluator sums sixty terms
RANDOM = 500


def module_of(
    parameters: Sequence[Shape], build: Callable[[Computation, list[Instruction]], Sequence[Instruction]]
) -> HloModule:
    """A module whose root is a tuple of what `build` makes of its parameters."""
    computation = Computation("main")
    given = [computation.add("parameter", number=n, shape=shape) for n, shape in enumerate(parameters)]
    computation.set_root(computation.add("tuple", build(computation, given)))
    return HloModule("rows", computation)


def run(module: HloModule, *arguments: Array) -> list[tuple[str, Any, Any]]:
    """For each element of the root: what it is, its native value, its value by the evaluator."""
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(module, *arguments)
    got = xlapy.compile(module)(*arguments)
    return [
        (f"{operand.opcode} of {operand.operands[0].shape if operand.operands else ()}", value, wanted)
        for operand, value, wanted in zip(module.entry.root.operands, got, expected, strict=True)
    ]


def element_wise(element_type: ElementType, arity: int) -> list[OpSpec]:
    """The rows of the table that take `arity` operands of the type."""
    return [
        spec
        for spec in OPS.values()
        if "types" in spec.options and element_type in spec.options["types"] and len(spec.operands) == arity
    ]


def is_exact(opcode: str, element_type: ElementType) -> bool:
    if element_type.is_complex:
        return opcode in EXACT_FOR_COMPLEX
    return opcode in EXACT or (opcode == "power" and element_type.is_integer)


def awkward(element_type: ElementType, count: int = RANDOM) -> Array:
    return np.concatenate([edges(element_type), random_array(np.random.default_rng(0), element_type, (count,))])


def awkward_pairs(element_type: ElementType) -> tuple[Array, Array]:
    """Every awkward number with every other one, and random pairs."""
    some = edges(element_type)
    if some.size > 64:
        some = some[:: some.size // 40]
    random = np.random.default_rng(1)
    pairs = [random_array(random, element_type, (RANDOM,)) for _ in range(2)]
    return np.concatenate([np.repeat(some, some.size), pairs[0]]), np.concatenate([np.tile(some, some.size), pairs[1]])


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_exact_functions_of_one_operand(element_type: ElementType) -> None:
    opcodes = [spec.name for spec in element_wise(element_type, 1) if is_exact(spec.name, element_type)]
    values = awkward(element_type)
    module = module_of([Shape.of(values)], lambda c, p: [c.add(opcode, p) for opcode in opcodes] or p)
    for place, got, expected in run(module, values):
        assert_same(got, expected, place)


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_exact_functions_of_two_operands(element_type: ElementType) -> None:
    opcodes = [spec.name for spec in element_wise(element_type, 2) if is_exact(spec.name, element_type)]
    pairs = awkward_pairs(element_type)
    module = module_of([Shape.of(values) for values in pairs], lambda c, p: [c.add(opcode, p) for opcode in opcodes])
    for place, got, expected in run(module, *pairs):
        assert_same(got, expected, place)


def elementary_functions(element_type: ElementType, arity: int) -> list[str]:
    """What is rounded, with a bound in ulp; the special functions have bounds, and tests, of their own."""
    specs = element_wise(element_type, arity)
    return [spec.name for spec in specs if not is_exact(spec.name, element_type) and spec.family != "special"]


@pytest.mark.parametrize("element_type", [t for t in ALL if t.is_float and t.bits >= 16], ids=str)
def test_functions_of_one_operand(element_type: ElementType) -> None:
    opcodes = elementary_functions(element_type, 1)
    values = awkward(element_type)
    module = module_of([Shape.of(values)], lambda c, p: [c.add(opcode, p) for opcode in opcodes])
    for place, got, expected in run(module, values):
        assert_close(got, expected, ERF_ULP if place.startswith("erf") else INEXACT_ULP, place)


@pytest.mark.parametrize("element_type", [F16, BF16, F32, F64], ids=str)
def test_functions_of_two_operands(element_type: ElementType) -> None:
    opcodes = elementary_functions(element_type, 2)
    pairs = awkward_pairs(element_type)
    module = module_of([Shape.of(values) for values in pairs], lambda c, p: [c.add(opcode, p) for opcode in opcodes])
    for place, got, expected in run(module, *pairs):
        assert_close(got, expected, INEXACT_ULP, place)


@pytest.mark.parametrize("element_type", [t for t in ALL if t.is_float and t.bits < 16], ids=str)
def test_functions_of_narrow_floats(element_type: ElementType) -> None:
    """Of f8, f6, f4: computed in f32 and rounded once, so a few functions stand for all."""
    values = awkward(element_type)
    opcodes = ("exponential", "tanh", "log", "rsqrt")
    module = module_of([Shape.of(values)], lambda c, p: [c.add(opcode, p) for opcode in opcodes])
    for place, got, expected in run(module, values):
        assert_close(got, expected, 1, place)


COMPLEX_ERROR = 2e-5
"""Relative to the size of the number: both sides round more than once, in numpy's case with cancellation."""


@pytest.mark.parametrize("element_type", [C64, C128], ids=str)
def test_functions_of_complex_numbers(element_type: ElementType) -> None:
    """Of moderate numbers. Where a function is undefined or infinite, libraries disagree."""
    random = np.random.default_rng(2)
    operands = [(random.normal(size=200) + 1j * random.normal(size=200)).astype(element_type.dtype) for _ in range(2)]
    chosen = [(s.name, arity) for arity in (1, 2) for s in element_wise(element_type, arity)]
    opcodes = [row for row in chosen if not is_exact(row[0], element_type)]
    module = module_of(
        [Shape.of(o) for o in operands], lambda c, p: [c.add(name, p[:arity]) for name, arity in opcodes]
    )
    for place, got, expected in run(module, *operands):
        error = np.abs(got - expected) / np.maximum(np.abs(expected), 1e-2)
        assert error.max() < COMPLEX_ERROR, f"{place}: {error.max()} at {operands[0][error.argmax()]}"


# -- comparison and choice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_comparison_and_choice(element_type: ElementType) -> None:
    directions = list(ComparisonDirection)
    if element_type.is_complex:
        directions = [ComparisonDirection.EQ, ComparisonDirection.NE]
    pairs = awkward_pairs(element_type)
    which = np.arange(pairs[0].size) % 3 == 0

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        x, y, pred = p
        rows = [c.add("compare", (x, y), direction=direction) for direction in directions]
        if element_type.is_float:
            kind = ComparisonType.TOTALORDER
            one = c.add("constant", literal=Literal(np.ones(pairs[0].shape), p[0].shape))
            numbers = [c.add("select", (c.add("compare", (v, v), direction=directions[0]), v, one)) for v in (x, y)]
            rows += [c.add("compare", numbers, direction=direction, type=kind) for direction in directions]
        rows.append(c.add("select", (pred, x, y)))
        if not element_type.is_complex:
            rows.append(c.add("clamp", (x, y, x)))
            bound = c.add("constant", literal=Literal(pairs[0][1], Shape.scalar(element_type)))
            rows.append(c.add("clamp", (bound, y, x)))
        return rows

    for place, got, expected in run(module_of([Shape.of(a) for a in (*pairs, which)], build), *pairs, which):
        assert_same(got, expected, place)


# -- data movement, for every type and rank --------------------------------------------------------------------------

MOVEMENT = """\
HloModule movement
ENTRY main {{
  a = {t}[3,4,5] parameter(0)
  s = {t}[] parameter(1)
  v = {t}[5] parameter(2)
  e = {t}[3,0,5] parameter(3)
  w = {t}[2,3,2,3,2] parameter(4)
  i = s32[] parameter(5)
  j = s64[] parameter(6)
  b0 = {t}[2,3] broadcast(s), dimensions={{}}
  b1 = {t}[4,5,2] broadcast(v), dimensions={{1}}
  b2 = {t}[3,2,4,5] broadcast(a), dimensions={{0,2,3}}
  b3 = {t}[5,4,3] broadcast(a), dimensions={{2,1,0}}
  r1 = {t}[60] reshape(a)
  r2 = {t}[4,15] reshape(a)
  r3 = {t}[1] reshape(s)
  r4 = {t}[0,7] reshape(e)
  t1 = {t}[5,3,4] transpose(a), dimensions={{2,0,1}}
  t2 = {t}[2,3,2,2,3] transpose(w), dimensions={{4,1,0,2,3}}
  v1 = {t}[3,4,5] reverse(a), dimensions={{0,2}}
  v2 = {t}[5] reverse(v), dimensions={{0}}
  s1 = {t}[2,2,3] slice(a), slice={{[1:3], [0:4:2], [0:5:2]}}
  s2 = {t}[0,4,5] slice(a), slice={{[2:2], [0:4], [0:5]}}
  s3 = {t}[1,3,2,1,2] slice(w), slice={{[1:2], [0:3], [0:2], [2:3], [0:2]}}
  p1 = {t}[5,4,12] pad(a, s), padding=1_1x0_0x2_1_1
  p2 = {t}[3,3,3] pad(a, s), padding=0_0x-1_0x-1_-1
  p3 = {t}[3,2,5] pad(e, s), padding=0_0x1_1x0_0
  p4 = {t}[13] pad(v, s), padding=0_0_2
  c1 = {t}[3,4,10] concatenate(a, v1), dimensions={{2}}
  c2 = {t}[3,8,5] concatenate(a, e, v1), dimensions={{1}}
  c3 = {t}[10] concatenate(v, v), dimensions={{0}}
  d1 = {t}[2,2,2] dynamic-slice(a, i, i, i), dynamic_slice_sizes={{2,2,2}}
  d2 = {t}[3] dynamic-slice(v, j), dynamic_slice_sizes={{3}}
  u1 = {t}[3,4,5] dynamic-update-slice(a, d1, i, i, i)
  u2 = {t}[5] dynamic-update-slice(v, d2, j)
  ROOT all = tuple(b0, b1, b2, b3, r1, r2, r3, r4,
    t1, t2, v1, v2, s1, s2, s3, p1, p2, p3, p4, c1, c2, c3, d1, d2, u1, u2)
}}
"""


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_data_movement(element_type: ElementType) -> None:
    module = xlapy.hlo.parse(MOVEMENT.format(t=element_type))
    random = np.random.default_rng(4)
    arrays = [random_array(random, p.shape.type, p.shape.dims) for p in module.entry.parameters[:5]]
    exe = xlapy.compile(module)
    for starts in [(0, 0), (1, 1), (-3, -(1 << 40)), (2, 1 << 62), (2**31 - 1, 4)]:
        indices = np.int32(starts[0]), np.int64(starts[1])
        assert_same(exe(*arrays, *indices), xlapy.evaluate(module, *arrays, *indices), f"starts {starts}")


# -- folds and products ----------------------------------------------------------------------------------------------

REDUCIBLE = [t for t in ALL if t.bits >= 8 or not t.is_float]
DIMENSIONS = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (2, 0), (0, 1, 2)]


def folding(opcode: str, element_type: ElementType) -> Computation:
    computation = Computation(opcode)
    operands = [computation.add("parameter", number=n, shape=Shape.scalar(element_type)) for n in range(2)]
    computation.set_root(computation.add(opcode, operands))
    return computation


def whole_numbers(element_type: ElementType, dims: tuple[int, ...], seed: int = 5) -> Array:
    """Small whole numbers, whose sums and products no order of evaluation changes."""
    numbers = np.random.default_rng(seed).integers(0 if element_type.kind in ("pred", "unsigned") else -2, 3, dims)
    return numbers.astype(element_type.dtype)


@pytest.mark.parametrize("element_type", REDUCIBLE, ids=str)
def test_reduce(element_type: ElementType) -> None:
    values = [whole_numbers(element_type, dims) for dims in ((6, 7, 9), (3, 0, 4))]
    kinds = ["add"] if element_type.is_complex else ["add", "maximum", "minimum"]
    if not element_type.is_float and not element_type.is_complex:
        kinds += ["multiply", "and", "or", "xor"]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        init = c.add("constant", literal=Literal(1, Shape.scalar(element_type)))
        return [
            c.add("reduce", (operand, init), called=[folding(kind, element_type)], dimensions=dimensions)
            for kind in kinds
            for operand in p
            for dimensions in DIMENSIONS
        ]

    for place, got, expected in run(module_of([Shape.of(v) for v in values], build), *values):
        assert_same(got, expected, f"{place} -> {list(expected.shape)}")


@pytest.mark.parametrize("element_type", [BF16, F32, F64, S8, S32, C64], ids=str)
@pytest.mark.parametrize("dims", [(5, 40), (6, 1100), (3, 2051), (3, 4099), (2, 5, 4200)], ids=str)
def test_reduce_to_columns(element_type: ElementType, dims: tuple[int, ...]) -> None:
    """Blocks of neighbouring results of every width, the last of which overlaps the one before."""
    values = whole_numbers(element_type, dims)

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        init = c.add("constant", literal=Literal(1, Shape.scalar(element_type)))
        adding = folding("add", element_type)
        return [c.add("reduce", (p[0], init), called=[adding], dimensions=(len(dims) - 2,))]

    for place, got, expected in run(module_of([Shape.of(values)], build), values):
        assert_same(got, expected, place)


PRODUCTS = [  # dims of both sides, then batch and contracting dimensions of both
    ((5,), (5,), (), (), (0,), (0,)),
    ((4, 5), (5,), (), (), (1,), (0,)),
    ((5,), (5, 3), (), (), (0,), (0,)),
    ((4, 5), (5, 3), (), (), (1,), (0,)),
    ((5, 4), (3, 5), (), (), (0,), (1,)),
    ((4, 17), (17, 33), (), (), (1,), (0,)),
    ((2, 4, 5), (2, 5, 3), (0,), (0,), (2,), (1,)),
    ((4, 2, 5), (5, 3, 2), (1,), (2,), (2,), (0,)),
    ((2, 3, 4, 5), (3, 2, 5, 4), (0, 1), (1, 0), (3, 2), (2, 3)),
    ((4,), (3,), (), (), (), ()),
    ((4, 0), (0, 3), (), (), (1,), (0,)),
    ((0, 4), (4, 3), (), (), (1,), (0,)),
    ((), (3,), (), (), (), ()),
]


@pytest.mark.parametrize("element_type", [S8, U8, S32, S64, U32, F16, BF16, F32, F64, C64, C128], ids=str)
def test_dot(element_type: ElementType) -> None:
    shapes = [Shape.array(element_type, dims) for product in PRODUCTS for dims in product[:2]]
    values = [whole_numbers(element_type, shape.dims, seed) for seed, shape in enumerate(shapes)]

    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        return [
            product_of(c, p[2 * number], p[2 * number + 1], element_type, *product[2:])
            for number, product in enumerate(PRODUCTS)
        ]

    for product, (_, got, expected) in zip(PRODUCTS, run(module_of(shapes, build), *values), strict=True):
        if element_type.is_complex:  # a zero's sign depends on the order of its terms, which numpy chooses by alignment
            got, expected = got + 0, expected + 0
        assert_same(got, expected, str(product))


def product_of(
    c: Computation, lhs: Instruction, rhs: Instruction, element_type: ElementType, *numbers: tuple[int, ...]
) -> Instruction:
    lhs_batch, rhs_batch, lhs_contracting, rhs_contracting = numbers
    chosen = DotDimensionNumbers(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
    dims = [lhs.shape.dims[d] for d in (*lhs_batch, *chosen.lhs_free(lhs.shape.rank))]
    dims += [rhs.shape.dims[d] for d in chosen.rhs_free(rhs.shape.rank)]
    return c.add("dot", (lhs, rhs), dimension_numbers=chosen, shape=Shape.array(element_type, dims))


@pytest.mark.parametrize("element_type", [t for t in ALL if t is not PRED], ids=str)
def test_iota(element_type: ElementType) -> None:
    def build(c: Computation, p: list[Instruction]) -> list[Instruction]:
        shapes = [((7,), 0), ((300,), 0), ((3, 40), 1), ((3, 40), 0), ((2, 3, 4, 5, 2), 2), ((0, 3), 1)]
        return [c.add("iota", dimension=d, shape=Shape.array(element_type, dims)) for dims, d in shapes]

    for place, got, expected in run(module_of([], build)):
        assert_same(got, expected, f"{place} {got.dtype}{got.shape}")


# -- layouts ---------------------------------------------------------------------------------------------------------


def test_layouts_change_nothing() -> None:
    """Layouts in the text are hints: the caller's arrays are row-major, and every result is the same."""
    plain = """HloModule m
ENTRY main {{
  a = f32[3,4,5]{0} parameter(0)
  b = f32[5,4,3]{1} transpose(a), dimensions={{2,1,0}}
  c = f32[5,4,3]{2} copy(b)
  d = f32[20,3]{3} reshape(c)
  ROOT e = f32[3,20]{4} transpose(d), dimensions={{1,0}}
}}"""
    value = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    expected = xlapy.evaluate(plain.format("", "", "", "", ""), value)
    for layouts in [
        ("{0,1,2}", "{2,1,0}", "{0,1,2}", "{0,1}", "{1,0}"),
        ("{1,0,2}", "{0,2,1}", "{1,2,0}", "{1,0}", "{0,1}"),
        ("{2,1,0}", "{0,1,2}", "{2,0,1}", "{0,1}", "{0,1}"),
    ]:
        assert_same(xlapy.compile(plain.format(*layouts))(value), expected, str(layouts))


def test_every_element_wise_op_is_compared() -> None:
    rows = {spec.name for spec in OPS.values() if "types" in spec.options}
    assert rows == {s.name for t in ANY for arity in (1, 2) for s in element_wise(t, arity)}
