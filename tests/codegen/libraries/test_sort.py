"""The functions of the sort libraries: which one a sort calls, and that they stop when they should."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.native import record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.context import CONTEXT_CANCELLED, CONTEXT_WORDS
from xlapy.codegen.ir import I32
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.sort import SORT_LIBRARIES, library_call
from xlapy.codegen.libraries.sort_lanes import LanesKind, emit_lanes
from xlapy.codegen.libraries.sort_network import FEW, phases
from xlapy.codegen.libraries.sort_problem import NUMBERS
from xlapy.codegen.target import host_target, reference_target
from xlapy.hlo.element_types import ALL, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.sort_plan import Payload, has_key, plan_sort
from xlapy.native import library_symbols

KEYS = sorted((t for t in ALL if has_key(t)), key=lambda t: t.name)
WIDTHS = (np.int8, np.int16, np.int32, np.int64, np.complex128)


def instruction_of(build: Callable[..., Any], *arguments: np.ndarray[Any, Any]) -> Instruction:
    return next(i for i in record(build, *arguments).entry if i.opcode in ("sort", "topk"))


def call_of(instruction: Instruction) -> LibraryCall:
    plan = plan_sort(instruction)
    assert plan.key is not None
    return library_call(instruction, plan, plan.key)


def sort(*operands: XlaOp) -> Any:
    return ops.Sort(operands[0].builder, list(operands), lambda a, b, *rest: ops.Lt(a, b), 1, True)


def largest(x: XlaOp) -> Any:
    return ops.TopK(x, 3)


@pytest.mark.parametrize("element_type", KEYS, ids=str)
def test_every_call_names_a_library(element_type: ElementType) -> None:
    for shape in ((2, 9), (40, 9), (1, 5000)):
        keys = np.zeros(shape, element_type.dtype)
        others = [np.zeros(shape, width) for width in WIDTHS]
        sorts = [instruction_of(sort, keys, *more) for more in ((), *([other] for other in others), others)]
        selections = [] if element_type.kind == "pred" else [instruction_of(largest, keys)]
        for instruction in (*sorts, *selections):
            call = call_of(instruction)
            assert call.function in SORT_LIBRARIES[call.library].exports


def test_which_library_sorts() -> None:
    def name(build: Callable[..., Any], *arguments: np.ndarray[Any, Any]) -> str:
        return call_of(instruction_of(build, *arguments)).library

    one, many = np.zeros((1, 5000), np.float32), np.zeros((100, 50), np.float32)
    assert name(sort, one) == "sort_rows_32"
    assert name(sort, one, one.astype(np.int16)) == "sort_rows_32_with_16"
    assert name(sort, one.astype(np.float64), one, one) == "sort_rows_64_moving"
    assert name(sort, many.astype(np.int8)) == "sort_lanes_8"
    assert name(sort, many, many) == "sort_lanes_32_moving"
    assert name(largest, many) == "sort_lanes_32_position"
    assert name(largest, one.astype(np.float16)) == "sort_selection_16"
    assert name(largest, one.astype(np.float64)) == "sort_rows_64_position"


LONG = 1 << 19


@pytest.mark.parametrize(
    ("build", "results"),
    [
        (sort, [np.int32]),
        (lambda x: sort(x, ops.Sub(x, x)), [np.int32, np.int32]),
        (lambda x: sort(x, ops.Sub(x, x), ops.Sub(x, x)), [np.int32] * 3),
        (largest, [np.int32, np.int32]),
    ],
)  # fmt: skip
def test_a_call_that_was_stopped_ends(build: Callable[..., Any], results: list[Any]) -> None:
    """With the flag in the context set nothing reaches the results; without a context there is nothing to look at."""
    keys = np.arange(LONG, 0, -1, dtype=np.int32).reshape(1, LONG)
    instruction = instruction_of(build, keys)
    call, plan = call_of(instruction), plan_sort(instruction)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        library_symbols(call.library, host_target())[call.function]
    )
    flag = np.ones(1, np.int32)
    context = np.zeros(CONTEXT_WORDS, np.int64)
    context[CONTEXT_CANCELLED] = flag.ctypes.data
    numbers, scratch = np.array(call.numbers, np.int64), np.zeros(plan.units * plan.scratch_bytes + 64, np.uint8)
    operands = [keys, *(np.zeros_like(keys) for _ in instruction.operands[1:])]
    for stopped in (True, False):
        arrays = [np.full(LONG, -7, dtype) for dtype in results]
        pointers = [numbers, context, scratch, *operands, *arrays]
        table = np.array([array.ctypes.data for array in pointers], np.int64)
        table[1] *= stopped
        function(table.ctypes.data, 0, plan.units)
        assert all((array == -7).all() for array in arrays) is stopped
        if not stopped:
            assert (np.diff(arrays[0][: plan.kept]) != 0).all()


def test_results_do_not_depend_on_threads() -> None:
    generator = np.random.default_rng(3)
    rows = np.round(generator.normal(size=(5000, 90)), 1).astype(np.float32)
    tall = np.round(generator.normal(size=(2000, 300)), 1).astype(np.float32)
    numbers = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)

    def program(rows: Any, tall: Any, numbers: Any) -> list[Any]:
        columns = ops.Sort(tall.builder, [tall], ops.Gt, 0, True)
        return [sort(rows, numbers), sort(tall), columns, ops.TopK(tall, 7), ops.TopK(rows, 7)]

    module = record(program, rows, tall, numbers)
    results = [
        xlapy.compile(module, xlapy.CompileOptions(num_threads=threads))(rows, tall, numbers)
        for threads in (1, 2, 3, 8)
    ]
    first = [leaf.tobytes() for leaf in _leaves(results[0])]
    assert all([leaf.tobytes() for leaf in _leaves(result)] == first for result in results[1:])
    np.testing.assert_array_equal(results[0][0][1], numbers[:, :1] + np.argsort(rows, axis=1, kind="stable"))


def _leaves(result: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf for part in result for leaf in _leaves(part)] if isinstance(result, tuple | list) else [result]


def test_the_network_sorts() -> None:
    """Any zeros and ones, hence anything."""
    for pattern in range(1 << 10):
        values = [pattern >> bit & 1 for bit in range(10)]
        for phase in phases(len(values)):
            for i in phase.positions(len(values)):
                j = i + phase.distance
                values[i], values[j] = min(values[i], values[j]), max(values[i], values[j])
        assert values == sorted(values)
    assert sum(len(list(phase.positions(FEW))) for phase in phases(FEW)) == 63  # Batcher's count


def test_rows_whose_positions_need_more_than_32_bits() -> None:
    """Nothing of that size runs here: keys alone are merged, as counters of digits have 32 bits; others are refused."""
    length = (1 << 32) + 1
    x = f"ENTRY e {{ x = s8[{length}] parameter(0)"
    less = "less { a = s8[] parameter(0)  b = s8[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }"
    alone = xlapy.hlo.parse(f"{less} {x}  ROOT s = s8[{length}] sort(x), dimensions={{0}}, to_apply=less }}")
    assert call_of(alone.entry.root).numbers[NUMBERS.index("is_long")] == 0
    by_first = "less { a = s8[] parameter(0)  b = s8[] parameter(1)  c = f64[] parameter(2)  d = f64[] parameter(3)"
    pair = f"{by_first}  ROOT e = pred[] compare(a, b), direction=LT }} {x}  y = f64[{length}] parameter(1)"
    xlapy.compile(
        f"{pair}  ROOT s = (s8[{length}], f64[{length}]) sort(x, y), dimensions={{0}}, to_apply=less }}"
    )  # the other element stands in the record itself
    positions = "less { a = s8[] parameter(0)  b = s8[] parameter(1)  c = c128[] parameter(2)  d = c128[] parameter(3)"
    far = f"{positions}  ROOT e = pred[] compare(a, b), direction=LT }} {x}  y = c128[{length}] parameter(1)"
    with pytest.raises(xlapy.UnsupportedError, match=rf"sort of s8\[{length}\]: rows are of {length} elements"):
        xlapy.compile(f"{far}  ROOT s = (s8[{length}], c128[{length}]) sort(x, y), dimensions={{0}}, to_apply=less }}")


def test_positions_that_are_no_numbers_of_s32() -> None:
    """The results of topk wrapped around."""

    def topk(length: int) -> str:
        return f"ENTRY e {{ x = s8[{length}] parameter(0)  ROOT s = (s8[2], s32[2]) topk(x), k=2, largest=true }}"

    xlapy.compile(topk(1 << 31))
    length = (1 << 31) + 1
    with pytest.raises(xlapy.UnsupportedError, match=rf"topk of s8\[{length}\]: rows are of {length} elements"):
        xlapy.compile(topk(length))


def test_exchanges_store_whole_vectors() -> None:
    """Of what is loaded from and stored to the same place, LLVM would make masked stores, which are slow on AVX2."""
    target = reference_target("avx2")
    kind = LanesKind(I32, Payload.POSITION)
    assert "maskmov" not in emit_assembly(emit_lanes(kind, target).text(), target)
