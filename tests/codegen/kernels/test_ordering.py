"""Sort and topk in native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import check_native, record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo.element_types import ALL, ElementType, element_type_of
from xlapy.hlo.random_values import random_array
from xlapy.hlo.sort_plan import MOST_KEYS, Payload, SortKey, first_of_several, plan_sort, recognise
from xlapy.hlo.text import parse

LENGTHS = (0, 1, 2, 7, 8, 9, 31, 64, 130)  # insertion, merging, counting
RANDOM = np.random.default_rng(5)
REAL = sorted((t for t in ALL if not t.is_complex), key=lambda t: t.name)


def ascending(a: XlaOp, b: XlaOp, *rest: XlaOp) -> XlaOp:
    return ops.Lt(a, b)


def descending(a: XlaOp, b: XlaOp, *rest: XlaOp) -> XlaOp:
    return ops.Gt(a, b)


def total(a: XlaOp, b: XlaOp, *rest: XlaOp) -> XlaOp:
    return ops.LtTotalOrder(a, b)


def canonical_key(x: XlaOp) -> XlaOp:
    dtype = x.shape.type.dtype
    zero, nan = (ops.Constant(x.builder, np.array(value).astype(dtype)) for value in (0.0, np.nan))
    return ops.Select(ops.Ne(x, x), nan, ops.Select(ops.Eq(x, zero), zero, x))


def canonical(a: XlaOp, b: XlaOp, *rest: XlaOp) -> XlaOp:
    """As JAX writes it: zeros are equal, NaNs are equal and last."""
    return ops.LtTotalOrder(canonical_key(a), canonical_key(b))


def lexicographic(a: XlaOp, b: XlaOp, c: XlaOp, d: XlaOp) -> XlaOp:
    return ops.Select(ops.Eq(a, b), ops.Gt(c, d), ops.Lt(a, b))


def by_distance(a: XlaOp, b: XlaOp, c: XlaOp, d: XlaOp) -> XlaOp:
    """Something that no key of one operand says."""
    return lexicographic(ops.Abs(a), ops.Abs(b), c, d)


def sorted_by(comparator: Callable[..., XlaOp] | None, dimension: int = -1) -> Callable[..., Any]:
    return lambda *operands: ops.Sort(operands[0].builder, list(operands), comparator, dimension, True)


def values(element_type: ElementType, *dims: int) -> np.ndarray[Any, Any]:
    """Numbers that repeat, with zeros of both signs, infinities and edges, but no NaN."""
    array = random_array(element_type, dims, RANDOM, special=True)
    if element_type.is_float:
        with np.errstate(over="ignore"):
            array = np.where(np.isnan(array.astype(np.float32)), np.array(1).astype(array.dtype), array)
    return array.astype(element_type.dtype)


@pytest.mark.parametrize("element_type", REAL, ids=str)
def test_every_element_type(element_type: ElementType) -> None:
    keys, other = values(element_type, 3, 130), values(element_type_of(np.int32), 3, 130)

    def program(keys: Any, other: Any) -> list[Any]:
        return [
            sorted_by(ascending)(keys),
            sorted_by(descending)(keys),
            sorted_by(ascending)(keys, other),
            sorted_by(descending, 0)(keys, other),
            sorted_by(None)(keys, other, keys),
        ]

    check_native(program, keys, other)


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length: int) -> None:
    """Around the borders between algorithms, in rows and in columns, with each kind of payload."""
    keys = values(element_type_of(np.float32), 5, length)
    numbers = RANDOM.integers(-4, 4, size=(5, length))
    wide, pairs = numbers.astype(np.float64), numbers + 1j * numbers

    def program(keys: Any, numbers: Any, wide: Any, pairs: Any) -> list[Any]:
        columns = [ops.Transpose(array, (1, 0)) for array in (keys, numbers)]
        return [
            sorted_by(ascending)(keys),
            sorted_by(ascending)(wide),
            sorted_by(ascending, 0)(columns[0]),
            sorted_by(descending)(keys, wide),
            sorted_by(ascending, 0)(columns[0], columns[1]),
            sorted_by(ascending)(numbers, keys),
            sorted_by(ascending)(numbers, pairs),
            sorted_by(ascending)(keys, numbers, wide, pairs),
            sorted_by(by_distance)(numbers, keys),
        ]

    check_native(program, keys, numbers, wide, pairs)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("length", [40, 140])
def test_special_floats(dtype: Any, length: int) -> None:
    """NaNs of both signs and many payloads, zeros of both signs: nothing is lost or changed."""
    bits = RANDOM.integers(0, 2**8, size=(2, length, np.dtype(dtype).itemsize), dtype=np.uint8)
    keys = bits.view(dtype)[..., 0]
    keys[:, ::3] = np.array(-0.0).astype(dtype)
    keys[:, ::4] = np.array(0.0).astype(dtype)
    keys[:, ::5] = np.array(np.nan).astype(dtype)
    keys[:, ::7] = -np.array(np.nan).astype(dtype)
    numbers = np.broadcast_to(np.arange(length, dtype=np.int32), (2, length)).copy()

    def program(keys: Any, numbers: Any) -> list[Any]:
        return [
            sorted_by(comparator)(keys, *further)
            for comparator in (total, canonical)
            for further in ((), (numbers,), (numbers, keys))
        ]

    check_native(program, keys, numbers)


@pytest.mark.parametrize("length", [1, 2, 8, 15, 16, 17, 33, 100, 520])
def test_short_rows_side_by_side(length: int) -> None:
    """More rows than lanes, of each width of record, in rows and in columns; NaNs and zeros of both signs."""
    count = 21
    keys = RANDOM.normal(size=(count, length)).astype(np.float32)
    keys[:, ::3] = 0.0
    keys[:, 1::4] = -0.0
    keys[::2, ::7] = np.nan
    keys[1::2, ::7] = -np.nan
    numbers = RANDOM.integers(-4, 4, size=(count, length)).astype(np.int32)

    def program(x: Any, n: Any, half: Any, double: Any) -> list[Any]:
        y, m = (ops.Transpose(array, (1, 0)) for array in (x, n))
        return [
            sorted_by(canonical)(x),
            sorted_by(total)(half),
            sorted_by(descending)(ops.ConvertElementType(n, np.uint8)),
            sorted_by(canonical)(x, n),
            sorted_by(canonical)(x, ops.ConvertElementType(n, np.complex128)),
            sorted_by(canonical, 0)(y),
            sorted_by(descending, 0)(m, y),
            sorted_by(total)(double),
        ]

    check_native(program, keys, numbers, keys.astype(np.float16), keys.astype(np.float64))


EQUAL: dict[Callable[..., XlaOp], Callable[..., XlaOp]] = {
    ascending: ops.Eq,
    descending: ops.Eq,
    total: ops.EqTotalOrder,
    canonical: lambda a, b: ops.EqTotalOrder(canonical_key(a), canonical_key(b)),
}


def in_turn(*comparators: Callable[..., XlaOp]) -> Callable[..., XlaOp]:
    """Compares the first operands; equal ones by the second, and so on."""

    def comparator(*sides: XlaOp) -> XlaOp:
        pairs = [sides[2 * n : 2 * n + 2] for n in range(len(comparators))]
        result = comparators[-1](*pairs[-1])
        for less, pair in list(zip(comparators, pairs, strict=True))[-2::-1]:
            result = ops.Or(less(*pair), ops.And(EQUAL[less](*pair), result))
        return result

    return comparator


@pytest.mark.parametrize("length", [9, 400])
def test_several_keys(length: int) -> None:
    """They are sorted one after the other, the last one first."""
    numbers = RANDOM.integers(-2, 3, size=(20, length)).astype(np.int32)
    halves = (RANDOM.integers(-2, 3, size=(20, length)) / 2).astype(np.float16)
    halves[:, ::5], halves[:, 1::7], halves[:, 2::7] = -0.0, np.nan, -np.nan
    places = np.broadcast_to(np.arange(length, dtype=np.uint16), numbers.shape).copy()

    def program(numbers: Any, halves: Any, places: Any) -> list[Any]:
        return [
            sorted_by(in_turn(ascending, canonical))(numbers, halves),
            sorted_by(in_turn(total, descending))(halves, numbers),
            sorted_by(in_turn(canonical, ascending))(halves, numbers, places),
            sorted_by(in_turn(descending, total, descending))(numbers, halves, places),
            sorted_by(in_turn(total, ascending), 0)(halves, numbers, places),
        ]

    check_native(program, numbers, halves, places)
    assert "@kernel" not in xlapy.compile(record(program, numbers, halves, places)).llvm_ir()


@pytest.mark.parametrize("count", [1, 2, 16, 17])
def test_many_keys_are_compared_at_once(count: int) -> None:
    region = sort_of(in_turn(*[ascending] * count), *[np.int32] * count).called[0]
    assert (first_of_several(region.root) is not None) == (2 <= count <= MOST_KEYS)
    columns = RANDOM.integers(0, 2, size=(count, 40)).astype(np.int32)
    check_native(sorted_by(in_turn(*[ascending] * count)), *columns)


def test_choices_that_many_ways_lead_to_are_looked_at_once() -> None:
    """Comparators whose steps name the one before it several times."""
    nested, decided = [], []
    for side in "ab":
        for step in range(40):
            before = f"{side}{step - 1}" if step else side
            nested.append(f"t{side}{step} = pred[] compare({before}, {before}), direction=NE")
            nested.append(f"{side}{step} = f32[] select(t{side}{step}, nan, {before})")
    for step in range(40):
        before = f"or{step - 1}" if step else "ge"
        decided.append(f"x{step} = pred[] and({before}, lt)")
        decided.append(f"y{step} = pred[] and({before}, ge)")
        decided.append(f"or{step} = pred[] or(x{step}, y{step})")
    start = "a = f32[] parameter(0) b = f32[] parameter(1) nan = f32[] constant(nan)"
    compares = "ge = pred[] compare(a, b), direction=GE lt = pred[] compare(a, b), direction=LT"
    for comparator in (
        f"{start} {' '.join(nested)} ROOT r = pred[] compare(a39, b39), direction=LT, type=TOTALORDER",
        f"{start} {compares} {' '.join(decided)}".replace("or39 =", "ROOT or39 ="),
    ):
        module = parse(f"""cmp {{ {comparator} }}
          ENTRY e {{ x = f32[9] parameter(0) ROOT s = f32[9] sort(x), dimensions={{0}}, to_apply=cmp }}""")
        region = module.entry.root.called[0]
        assert recognise(region) is None
        assert first_of_several(region.root) is None


def test_columns_that_are_neighbours() -> None:
    keys = values(element_type_of(np.float32), 3, 40, 32)
    numbers = np.broadcast_to(np.arange(40, dtype=np.int16)[:, None], keys.shape).copy()
    check_native(lambda x, n: [sorted_by(ascending, 1)(x), sorted_by(descending, 1)(x, n)], keys, numbers)


def test_short_topk_side_by_side() -> None:
    rows = values(element_type_of(np.float32), 40, 60)
    check_native(lambda x: [ops.TopK(x, 3), ops.TopK(x, 60), ops.TopK(x, 2, False)], rows)


@pytest.mark.parametrize("dims", [(4, 5, 6), (1, 300, 2), (2, 1, 3), (70, 3, 1)])
def test_any_dimension(dims: tuple[int, ...]) -> None:
    keys = values(element_type_of(np.int16), *dims)
    numbers = RANDOM.normal(size=dims).astype(np.float32)
    check_native(
        lambda x, y: [sorted_by(c, d)(*o) for d in range(3) for o in ((x,), (x, y)) for c in (ascending, by_distance)
                      if c is ascending or len(o) == 2],
        keys, numbers,
    )  # fmt: skip


def test_empty_and_scalar_rows() -> None:
    empty = np.zeros((0, 3), np.float32)
    check_native(lambda x: [sorted_by(None, 0)(x), sorted_by(None, 1)(x), ops.TopK(x, 2)], empty)


def test_an_odd_comparator_still_permutes() -> None:
    """What is no order at all (here: everything comes before everything) loses and repeats nothing."""
    keys = np.arange(100, dtype=np.float32)
    module = record(sorted_by(lambda a, b: ops.Le(a, b) | ops.Ge(a, b)), keys)
    assert sorted(xlapy.compile(module)(keys)) == list(keys)


@pytest.mark.parametrize(
    "element_type", [t for t in REAL if t.name in ("f32", "f16", "s8", "u32", "s64", "f64")], ids=str
)
def test_topk(element_type: ElementType) -> None:
    rows, long = values(element_type, 4, 50), values(element_type, 1, 1000)
    check_native(
        lambda x, y: [ops.TopK(x, 5), ops.TopK(x, 50), ops.TopK(y, 1), ops.TopK(y, 30, False), ops.TopK(x, 0)],
        rows, long,
    )  # fmt: skip


@pytest.mark.parametrize("element_type", [t for t in REAL if t.bits in (8, 16, 32)], ids=str)
def test_a_few_of_long_rows_are_selected(element_type: ElementType) -> None:
    check_native(
        lambda x: [ops.TopK(x, 1), ops.TopK(x, 10, False), ops.TopK(x, 140)],
        values(element_type, 2, 5003),
    )


def test_selection_from_rows_in_order_and_of_equals() -> None:
    rising = np.arange(4001, dtype=np.float32)
    for row in (rising, -rising, np.zeros_like(rising), np.floor(rising / 100), np.full_like(rising, np.nan)):
        check_native(lambda x: [ops.TopK(x, 3), ops.TopK(x, 100), ops.TopK(x, 30, False)], row)


@pytest.mark.parametrize("element_type", [t for t in REAL if t.bits <= 32 and t.kind != "pred"], ids=str)
@pytest.mark.parametrize("length", [72, 97, 400])
def test_a_few_of_short_rows_are_selected(element_type: ElementType, length: int) -> None:
    """What is not among the first is known from the least of each lane, however many lanes have it."""
    rows = values(element_type, 20, length)
    rows[0], rows[1], rows[2] = rows[0, 0], np.sort(rows[1]), np.sort(rows[2])[::-1]
    check_native(lambda x: [ops.TopK(x, 1), ops.TopK(x, 3, False), ops.TopK(x, 16), ops.TopK(x, 16, False)], rows)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_selection_of_special_floats(dtype: Any) -> None:
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], dtype)
    rows = special[np.random.default_rng(0).integers(0, len(special), (40, 100))]
    check_native(lambda x: [ops.TopK(x, 4), ops.TopK(x, 4, False), ops.TopK(x, 1)], rows)


def test_large_rows_use_scratch_memory_of_the_plan() -> None:
    keys = RANDOM.normal(size=(3, 50_000)).astype(np.float32)
    numbers = np.broadcast_to(np.arange(50_000, dtype=np.int32), keys.shape).copy()
    module = record(lambda x, n: [sorted_by(ascending)(x), sorted_by(ascending)(x + 1, n)], keys, numbers)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True, num_threads=2))
    ordered, (_, positions) = executable(keys, numbers)
    np.testing.assert_array_equal(ordered, np.sort(keys))
    np.testing.assert_array_equal(positions, np.argsort(keys + 1, kind="stable"))
    assert executable.memory_analysis()["temporary_bytes"] >= 3 * 2 * 50_000 * 8


def test_many_long_columns_share_scratch_memory() -> None:
    keys = RANDOM.normal(size=(2100, 120)).astype(np.float32)
    executable = xlapy.compile(record(sorted_by(ascending, 0), keys))
    np.testing.assert_array_equal(executable(keys), np.sort(keys, axis=0))
    assert executable.memory_analysis()["temporary_bytes"] <= 64 * 2 * 2100 * 4 + 64 * 64


@pytest.mark.parametrize("shape", [(9000, 130), (1031, 3, 257), (5, 2053, 101)])
def test_much_is_turned_before_it_is_sorted_across_memory(shape: tuple[int, ...]) -> None:
    dimension = int(np.argmax(shape))
    keys = np.round(RANDOM.normal(size=shape), 2).astype(np.float32)
    others = RANDOM.integers(0, 100, size=shape).astype(np.int16)
    executable = xlapy.compile(record(sorted_by(ascending, dimension), keys, others))
    order = np.argsort(keys, dimension, kind="stable")
    for got, array in zip(executable(keys, others), (keys, others), strict=True):
        np.testing.assert_array_equal(got, np.take_along_axis(array, order, dimension))
    assert "transpose" in executable.hlo_text()


def test_comparators_with_control_flow() -> None:
    def halved(x: XlaOp) -> XlaOp:
        return ops.While(lambda x: ops.Gt(x, 1.0), lambda x: x / 2, x)

    keys = RANDOM.integers(1, 50, 1000).astype(np.float32)
    executable = xlapy.compile(record(sorted_by(lambda a, b: ops.Lt(halved(a), halved(b))), keys))
    ranks = keys / 2 ** np.ceil(np.log2(keys))
    np.testing.assert_array_equal(executable(keys), keys[np.argsort(ranks, kind="stable")])


# -- plans -------------------------------------------------------------------------------------------------------------


def sort_of(comparator: Callable[..., XlaOp] | None, *dtypes: Any) -> Any:
    arguments = [np.zeros((2, 3), dtype) for dtype in dtypes]
    module = record(sorted_by(comparator), *arguments)
    return next(i for i in module.entry if i.opcode == "sort")


@pytest.mark.parametrize(
    ("comparator", "dtypes", "key"),
    [
        (ascending, [np.int32], SortKey(0)),
        (descending, [np.int32], SortKey(0, descending=True)),
        (ascending, [np.float32], SortKey(0, merges_zeros=True)),
        (total, [np.float32], SortKey(0)),
        (canonical, [np.float32], SortKey(0, merges_zeros=True, merges_nans=True)),
        (lambda a, b: b > a, [np.int32], SortKey(0)),
        (lambda a, b, c, d: c > d, [np.int32, np.float64], SortKey(1, descending=True, merges_zeros=True)),
        (ops.Le, [np.int32], None),
        (lambda a, b, c, d: a < d, [np.int32, np.int32], None),
        (lexicographic, [np.int32, np.int32], None),
        (lambda a, b: ops.Lt(ops.Abs(a), ops.Abs(b)), [np.int32], None),
        (ascending, [ml_dtypes.float8_e4m3fnuz], None),
    ],
)  # fmt: skip
def test_recognised_comparators(comparator: Callable[..., XlaOp], dtypes: list[Any], key: SortKey | None) -> None:
    assert recognise(sort_of(comparator, *dtypes).called[0]) == key


def test_records() -> None:
    def record_of(*dtypes: Any) -> tuple[Payload, int]:
        plan = plan_sort(sort_of(ascending, *dtypes))
        return plan.payload, plan.record_bytes

    assert record_of(np.int16) == (Payload.NOTHING, 2)
    assert record_of(np.float32, np.int32) == (Payload.ELEMENT, 8)
    assert record_of(np.float64, np.int32) == (Payload.ELEMENT, 16)
    assert record_of(np.int8, np.complex64) == (Payload.ELEMENT, 16)
    assert record_of(np.int8, np.complex128) == (Payload.POSITION, 8)
    assert record_of(np.float32, np.int32, np.int32) == (Payload.POSITION, 8)
