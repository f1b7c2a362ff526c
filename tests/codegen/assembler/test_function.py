"""Functions that are assembled without LLVM do what LLVM's do."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.native import record
from xlapy import ops
from xlapy.codegen.assembler import assembled
from xlapy.codegen.clock import clock
from xlapy.codegen.float_environment import settings, settings_of_thread, use_settings
from xlapy.codegen.ir import F32, F64, I32, I64, PTR, IRType, KernelBuilder, Module
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import Target, host_target, reference_target
from xlapy_runtime.hand_written import is_linux_on_x86
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.llvm_linking import link as link_by_llvm

X86 = reference_target("avx2")
WITH_AVX2 = pytest.mark.skipif(
    not (is_linux_on_x86() and "+avx2" in host_target().features), reason="the code is for Linux on x86-64 with AVX2"
)
WIDTHS = pytest.mark.parametrize(
    "target", [pytest.param(host_target(), id="any registers"), pytest.param(X86, id="registers of 32 bytes")]
)
ON_LINUX = pytest.mark.skipif(not is_linux_on_x86(), reason="the code is for Linux on x86-64")
NUMBERS = [
    0,
    1,
    -1,
    127,
    -128,
    128,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    -(1 << 31),
    -(1 << 31) - 1,
    1 << 62,
]


def linked(module: Module, *names: str, target: Target | None = None) -> list[LinkedCode]:
    """The code that is assembled, and LLVM's."""
    code = assembled(module.text(), target or host_target())
    assert code is not None
    return [link([made], {}, names) for made in (code, emit_object(module.text(), host_target(), codegen_level=0))]


def call_something(k: KernelBuilder) -> None:
    """Functions that call others have room for any number of values."""
    k.module.declare("llabs", I64, [I64])
    k.call("llabs", [k.const(I64, 5)], I64)


def calls(codes: list[LinkedCode], name: str, result: Any, *types: Any) -> list[Any]:
    return [ctypes.CFUNCTYPE(result, *types)(code.address(name)) for code in codes]


@ON_LINUX
@pytest.mark.parametrize("values", [1, 5, 40])
def test_values_are_kept_in_registers_and_in_the_frame(values: int) -> None:
    """As many as there are, over calls, at distances near and far."""
    module = Module()
    with KernelBuilder(module, "mix", [("a", I64), ("b", I64)], I64) as k:
        a, b = k.parameters["a"], k.parameters["b"]
        k.ret(k.sub(k.mul(a, 3), b))
    with KernelBuilder(module, "all", [("x", PTR), ("y", PTR)], I64) as k:
        x, y = k.parameters["x"], k.parameters["y"]
        loaded = [k.load(k.gep(x, number, 8), I64) for number in range(values)]
        far = k.load(k.gep(x, 100, 8), I64)
        total = far
        for value in loaded:
            total = k.call_value("mix", [total, value], I64)
            k.store(k.gep(y, k.and_(value, 3), 8), total)
        k.ret(k.add(total, loaded[0]))
    x = np.random.default_rng(0).integers(-(1 << 62), 1 << 62, 128)
    results = []
    codes = linked(module, "all")
    for call in calls(codes, "all", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p):
        y = np.zeros(4, np.int64)
        results.append([call(x.ctypes.data, y.ctypes.data), *y.tolist()])
    assert results[0] == results[1]


@ON_LINUX
@pytest.mark.parametrize("count", [1, 6, 7, 12])
def test_arguments_are_in_registers_and_on_the_stack(count: int) -> None:
    module = Module()
    types = [I64] * count
    with KernelBuilder(module, "entry", [("f", PTR), ("x", PTR)], I64) as k:
        module.declare("llabs", I64, [I64])
        x = k.parameters["x"]
        given = [k.load(k.gep(x, number, 8), I64) for number in range(count)]
        room = k.alloca(I64, 2)
        k.store(room, k.call_value(k.parameters["f"], given, I64))
        k.ret(k.call_value("llabs", [k.load(room, I64)], I64))

    @ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(types))
    def weighted(*arguments: int) -> int:
        return -sum(number * argument for number, argument in enumerate(arguments, 1))

    x = np.arange(5, 5 + count)
    codes = linked(module, "entry")
    found = [
        call(ctypes.cast(weighted, ctypes.c_void_p), x.ctypes.data)
        for call in calls(codes, "entry", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    ]
    assert found == [int(x @ np.arange(1, count + 1))] * 2


@ON_LINUX
@pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("signed", [True, False])
def test_branches_compare_numbers_of_any_size(predicate: str, signed: bool) -> None:
    module = Module()
    for number, constant in enumerate(NUMBERS):
        with KernelBuilder(module, f"against.{number}", [("x", I64)], I32) as k:
            with k.if_(k.compare(predicate, k.parameters["x"], constant, signed=signed)):
                k.ret(k.const(I32, -7))
            k.ret(k.const(I32, 9))
    codes = linked(module, *(f"against.{number}" for number in range(len(NUMBERS))))
    for number in range(len(NUMBERS)):
        mine, theirs = calls(codes, f"against.{number}", ctypes.c_int32, ctypes.c_int64)
        assert [mine(x) for x in NUMBERS] == [theirs(x) for x in NUMBERS]


@ON_LINUX
def test_narrow_numbers_and_arithmetic() -> None:
    module = Module()
    with KernelBuilder(module, "narrow", [("x", PTR)], I32) as k:
        x = k.parameters["x"]
        status = k.load(x, I32)
        with k.if_(k.compare("lt", status, -3)):
            k.store(k.gep(x, 4), k.const(I32, -5))
            k.ret(status)
        a, b = (k.load(k.gep(x, place, 8), I64) for place in (1, 2))
        for place, value in enumerate([k.add(a, b), k.sub(a, b), k.mul(a, b), k.and_(a, b), k.or_(a, b), k.xor(a, b)]):
            k.store(k.gep(x, place + 3, 8), value)
        k.ret(k.load(k.gep(x, 4), I32))
    codes = linked(module, "narrow")
    for status in (-4, -3, 5):
        results = []
        for call in calls(codes, "narrow", ctypes.c_int32, ctypes.c_void_p):
            x = np.array([status & 0xFFFF_FFFF, 12345678901, -987654321, *[0] * 6])
            results.append([call(x.ctypes.data), *x.tolist()])
        assert results[0] == results[1]


@ON_LINUX
@pytest.mark.parametrize("between_calls", [True, False])
def test_quotients_of_unsigned_numbers(between_calls: bool) -> None:
    """By numbers and by others, where all registers have something in them, too."""
    module = Module()
    divisors = [1, 2, 3, 8, 10, 4096, (1 << 31) + 5, 1 << 40]
    with KernelBuilder(module, "divide", [("x", PTR), ("y", PTR), ("third", PTR), ("fourth", PTR)], None) as k:
        x, y, third, fourth = (k.parameters[name] for name in ("x", "y", "third", "fourth"))
        if between_calls:
            call_something(k)
        value = k.load(x, I64)
        for place, divisor in enumerate(divisors):
            k.store(k.gep(y, place, 8), k.udiv(value, divisor))
        k.store(third, k.udiv(value, k.load(k.gep(x, 8), I64)))
        k.store(fourth, k.udiv(k.load(k.gep(x, 8), I64), value))
    codes = linked(module, "divide")
    for number in (7, 4096, 123_456_789_012_345, (1 << 63) - 1, -1):
        for call in calls(codes, "divide", None, *[ctypes.c_void_p] * 4):
            x, y = np.array([number, 1234567], np.int64), np.zeros(len(divisors) + 2, np.int64)
            call(x.ctypes.data, *(y[start:].ctypes.data for start in (0, len(divisors), len(divisors) + 1)))
            unsigned = number % (1 << 64)
            expected = [*(unsigned // divisor for divisor in divisors), unsigned // 1234567, 1234567 // unsigned]
            assert [found % (1 << 64) for found in y.tolist()] == expected


@ON_LINUX
@pytest.mark.parametrize("between_calls", [True, False])
def test_places_in_the_frame_are_aligned(between_calls: bool) -> None:
    module = Module()
    with KernelBuilder(module, "places", [("to", PTR)], I64) as k:
        if between_calls:
            call_something(k)
        rooms = [k.alloca(I64, count, align=align) for count, align in ((3, 64), (1, 8), (2, 32), (1, 64))]
        for number, room in enumerate(rooms):
            k.store(room, k.const(I64, number))
            k.store(k.gep(k.parameters["to"], number, 8), room)
        for offset in (8, 16):
            k.store(k.gep(rooms[0], offset), k.const(I64, 10 * offset))
        k.store(k.gep(rooms[2], 8), k.const(I64, 20))
        total = k.load(k.gep(rooms[0], 16), I64)
        for room in rooms:
            total = k.add(k.mul(total, 7), k.load(room, I64))
        k.ret(total)
    codes, results = linked(module, "places"), []
    for call in calls(codes, "places", ctypes.c_int64, ctypes.c_void_p):
        to = np.zeros(4, np.int64)
        results.append(call(to.ctypes.data))
        assert not (to % [64, 8, 32, 64]).any() and len({*to.tolist()}) == 4
    assert results[0] == results[1]


@ON_LINUX
def test_tables_and_functions_have_addresses() -> None:
    module = Module()
    module.declare("llabs", I64, [I64])
    with KernelBuilder(module, "own", [("x", I64)], I64) as k:
        k.ret(k.add(k.parameters["x"], 1))
    with KernelBuilder(module, "places", [("to", PTR)], None) as k:
        to = k.parameters["to"]
        values = [k.table(I64, NUMBERS), k.table(I64, [4, 5]), k.function_pointer("own"), k.function_pointer("llabs")]
        for number, value in enumerate(values):
            k.store(k.gep(to, number, 8), value)
    code, _ = codes = linked(module, "places", "own")
    to = np.zeros(4, np.int64)
    calls(codes, "places", None, ctypes.c_void_p)[0](to.ctypes.data)
    first, second, own, outer = to.tolist()
    assert (ctypes.c_int64 * len(NUMBERS)).from_address(first)[:] == NUMBERS and first % 64 == 0
    assert (ctypes.c_int64 * 2).from_address(second)[:] == [4, 5]
    assert own == code.address("own")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(outer)(-3) == 3


@ON_LINUX
def test_the_object_file_is_one_for_any_linker() -> None:
    module = Module()
    module.declare("llabs", I64, [I64])
    with KernelBuilder(module, "sum", [("x", I64)], I64) as k:
        second = k.load(k.gep(k.table(I64, [5, 7]), 8), I64)
        k.ret(k.add(k.call_value("llabs", [k.parameters["x"]], I64), second))
    code = assembled(module.text(), host_target())
    assert code is not None
    offsets, unload = link_by_llvm([code], {}, ["sum"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(offsets["sum"])(-3) == 10
    unload()


@ON_LINUX
def test_loops_and_choices() -> None:
    """In each other; with values that go around them, and past them."""
    module = Module()
    with KernelBuilder(module, "nest", [("n", I64), ("x", PTR)], I64) as k:
        n, x = k.parameters["n"], k.parameters["x"]
        call_something(k)
        with k.loop(0, n, carry=[k.const(I64, 1), n]) as outer:
            a, b = outer.values
            with k.loop(outer.index, n, 2, carry=[a]) as inner:
                k.store(k.gep(x, k.and_(inner.index, 7), 8), inner.values[0])
                inner.next = [k.sub(k.mul(inner.values[0], 3), inner.index)]
            is_less = k.compare("lt", inner.results[0], b)
            outer.next = k.if_else(is_less, lambda: [b, inner.results[0]], lambda: [k.add(a, 1), k.smin(b, a)])
        k.ret(k.xor(outer.results[0], k.shl(outer.results[1], 1)))
    results = []
    codes = linked(module, "nest")
    for call in calls(codes, "nest", ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p):
        x = np.zeros(8, np.int64)
        results.append([[call(n, x.ctypes.data), *x.tolist()] for n in (-1, 0, 1, 2, 9)])
    assert results[0] == results[1]


@ON_LINUX
@pytest.mark.parametrize(("values", "calls_others"), [(2, False), (2, True), (3, True), (3, False), (9, True)])
def test_values_change_places(values: int, calls_others: bool) -> None:
    """All at once, in registers and in the frame, and such that are a known distance from others."""
    module = Module()
    with KernelBuilder(module, "turn", [("n", I64), ("x", PTR)], PTR) as k:
        places = [k.gep(k.parameters["x"], 8 * number) for number in range(values)]
        if calls_others:
            call_something(k)
        with k.loop(0, k.parameters["n"], carry=places) as loop:
            first, *others = loop.values
            k.store(others[-1], loop.index)
            loop.next = [*others[:-1], k.gep(first, 8), others[-1]]
        k.ret(loop.results[0])
    results = []
    codes = linked(module, "turn")
    for call in calls(codes, "turn", ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p):
        x = np.zeros(64, np.int64)
        found = [call(n, x.ctypes.data) - x.ctypes.data for n in (0, 1, 7, 20)]
        results.append([found, x.tolist()])
    assert results[0] == results[1]


@ON_LINUX
def test_what_a_loop_had_before_its_last_step_is_there_behind_it() -> None:
    text = """define i64 @last(i64 %n) nounwind {
entry:
  br label %outer
outer:
  %a = phi i64 [ 0, %entry ], [ %i, %latch ]
  %k = phi i64 [ 0, %entry ], [ %k2, %latch ]
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %j, %inner ]
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %inner, label %latch
latch:
  %k2 = add i64 %k, 1
  %d = icmp slt i64 %k2, 3
  br i1 %d, label %outer, label %done
done:
  ret i64 %a
}
"""
    code = assembled(text, host_target())
    assert code is not None
    made = link([code], {}, ["last"])
    last = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(made.address("last"))
    assert [last(n) for n in (1, 2, 9)] == [0, 1, 8]


@ON_LINUX
def test_a_loop_ends_when_it_is_told_to() -> None:
    module = Module()
    with KernelBuilder(module, "halved", [("x", I64)], I64) as k:
        steps, _ = k.while_loop(
            lambda values: k.compare("ne", values[1], 0),
            lambda values: [k.add(values[0], 1), k.lshr(values[1], 1)],
            [k.const(I64, 0), k.parameters["x"]],
        )
        k.ret(steps)
    codes = linked(module, "halved")
    mine, theirs = calls(codes, "halved", ctypes.c_int64, ctypes.c_int64)
    assert [mine(x) for x in NUMBERS] == [theirs(x) for x in NUMBERS] == [(x % (1 << 64)).bit_length() for x in NUMBERS]


@ON_LINUX
def test_operations_on_numbers() -> None:
    module = Module()
    with KernelBuilder(module, "all", [("a", I64), ("b", I64), ("to", PTR)], None) as k:
        a, b = k.parameters["a"], k.parameters["b"]
        call_something(k)
        narrow, other = k.trunc(a, I32), k.trunc(b, I32)
        values = [k.smax(a, b), k.smin(a, b), k.umax(a, b), k.umin(a, b)]
        values += [k.shl(a, 5), k.lshr(a, 63), k.ashr(a, 7)]
        values += [k.zext(narrow, I64), k.sext(k.add(narrow, other), I64), k.zext(k.smax(narrow, other), I64)]
        values += [k.select(k.compare("lt", narrow, other), a, b), k.select(k.compare("eq", a, b), b, k.const(I64, 5))]
        values += k.switch(narrow, {0: lambda: [b], -1: lambda: [a]}, lambda: [k.const(I64, 9)])
        for number, value in enumerate(values):
            k.store(k.gep(k.parameters["to"], number, 8), value)
    codes = linked(module, "all")
    for a, b in product(NUMBERS, NUMBERS):
        results = []
        for call in calls(codes, "all", None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p):
            to = np.zeros(16, np.int64)
            call(a, b, to.ctypes.data)
            results.append(to.tolist())
        assert results[0] == results[1]


@ON_LINUX
@pytest.mark.parametrize("size", [1, 4, 8, 100])
def test_memory_is_copied(size: int) -> None:
    module = Module()
    with KernelBuilder(module, "copy", [("to", PTR), ("x", PTR)], None) as k:
        k.memcpy(k.gep(k.parameters["to"], 3), k.gep(k.parameters["x"], 5), size)
    x = np.arange(128, dtype=np.uint8)
    codes = linked(module, "copy")
    for call in calls(codes, "copy", None, ctypes.c_void_p, ctypes.c_void_p):
        to = np.zeros(128, np.uint8)
        call(to.ctypes.data, x.ctypes.data)
        np.testing.assert_array_equal(to[3 : 3 + size], x[5 : 5 + size])
        assert not to[3 + size :].any() and not to[:3].any()


@WITH_AVX2
@WIDTHS
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("type", [F32, F64])
def test_floats_alone_and_side_by_side(type: IRType, lanes: int, target: Target) -> None:
    """In loops, with numbers, and with an element that is repeated; registers are used again."""
    if lanes * type.bytes > 2 * target.vector_bytes:
        pytest.skip("there are registers for three such")
    module = Module()
    vector = type.with_lanes(lanes) if lanes > 1 else type
    with KernelBuilder(module, "all", [("n", I64), ("x", PTR), ("y", PTR), ("to", PTR)], None) as k:
        x, y, to = (k.parameters[name] for name in ("x", "y", "to"))
        first = k.splat(k.load(y, type), lanes)
        with k.loop(0, k.parameters["n"], lanes) as loop:
            a, b = (k.load(k.gep(array, loop.index, type.bytes), vector) for array in (x, y))
            value = k.add(k.mul(a, k.const(vector, 3.1)), k.div(k.sub(first, b), a))
            for number in range(9):
                value = k.sub(k.const(vector, number + 0.5), value)
            k.store(k.gep(to, loop.index, type.bytes), k.neg(value))
    codes = linked(module, "all", target=target)
    dtype = np.float32 if type is F32 else np.float64
    x, y = np.random.default_rng(0).normal(size=(2, 4 * lanes)).astype(dtype)
    results = []
    for call in calls(codes, "all", None, ctypes.c_int64, *[ctypes.c_void_p] * 3):
        to = np.zeros_like(x)
        call(len(x), x.ctypes.data, y.ctypes.data, to.ctypes.data)
        results.append(to)
    np.testing.assert_array_equal(*results)
    assert results[0].all()


@WITH_AVX2
@WIDTHS
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("type", [F32, F64])
def test_extremes_of_floats(type: IRType, lanes: int, target: Target) -> None:
    """NaNs go through, and zeros are in order."""
    if lanes * type.bytes > 2 * target.vector_bytes:
        pytest.skip("there are registers for three such")
    module = Module()
    vector = type.with_lanes(lanes) if lanes > 1 else type
    with KernelBuilder(module, "all", [("x", PTR), ("y", PTR), ("to", PTR)], None) as k:
        x, y, to = (k.parameters[name] for name in ("x", "y", "to"))
        with k.loop(0, 64, lanes) as loop:
            a, b = (k.load(k.gep(array, loop.index, type.bytes), vector) for array in (x, y))
            zero, number = k.const(vector, 0), k.const(vector, -1.5)
            operands = [(a, b), (a, b), (a, zero), (zero, b), (a, number), (number, b)]
            for place, (one, other) in enumerate(operands):
                value = (k.minimum if place % 2 else k.maximum)(one, other)
                k.store(k.gep(to, k.add(loop.index, 64 * place), type.bytes), value)
    codes = linked(module, "all", target=target)
    dtype = np.float32 if type is F32 else np.float64
    some = np.array([0.0, -0.0, 1.5, -1.5, np.nan, -np.nan, np.inf, -np.inf], dtype)
    x, y = np.repeat(some, 8), np.tile(some, 8)
    results = []
    for call in calls(codes, "all", None, *[ctypes.c_void_p] * 3):
        to = np.zeros(6 * 64, dtype)
        call(x.ctypes.data, y.ctypes.data, to.ctypes.data)
        results.append(to)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(*[np.signbit(found[~np.isnan(found)]) for found in results])
    np.testing.assert_array_equal(results[0][:64], np.maximum(x, y))


@WITH_AVX2
@WIDTHS
def test_numbers_have_no_registers_where_vectors_need_them(target: Target) -> None:
    lanes = 3 * target.lanes(32)
    module, vector = Module(), F32.with_lanes(1 << lanes.bit_length())
    with KernelBuilder(module, "all", [("x", PTR), ("to", PTR)], None) as k:
        x, to = k.parameters["x"], k.parameters["to"]
        a, b = k.load(x, vector), k.load(k.gep(x, vector.lanes, F32.bytes), vector)
        k.store(to, k.add(k.mul(k.add(a, b), k.const(vector, 1.5)), b))
        k.store(k.gep(to, vector.lanes, F32.bytes), k.sub(k.mul(a, k.const(vector, 2.5)), b))
    x = np.random.default_rng(0).normal(size=2 * vector.lanes).astype(np.float32)
    results, codes = [], linked(module, "all", target=target)
    for call in calls(codes, "all", None, *[ctypes.c_void_p] * 2):
        to = np.zeros_like(x)
        call(x.ctypes.data, to.ctypes.data)
        results.append(to)
    np.testing.assert_array_equal(*results)
    assert results[0].all()


@ON_LINUX
@pytest.mark.parametrize("calls_others", [False, True])
@pytest.mark.parametrize("count", [7, 8, 11])
def test_parameters_are_in_registers_and_on_the_stack(count: int, calls_others: bool) -> None:
    module = Module()
    names = [f"p{number}" for number in range(count)]
    with KernelBuilder(module, "all", [(name, I64) for name in names], I64) as k:
        if calls_others:
            call_something(k)
        total = k.const(I64, 0)
        for number, name in enumerate(names, 1):
            total = k.add(total, k.mul(k.parameters[name], number))
        k.ret(total)
    given = [number**2 - 7 for number in range(count)]
    codes = linked(module, "all")
    found = [call(*given) for call in calls(codes, "all", ctypes.c_int64, *[ctypes.c_int64] * count)]
    assert found == [sum(number * value for number, value in enumerate(given, 1))] * 2


@WITH_AVX2
def test_floats_between_calls() -> None:
    module = Module()
    module.declare("llabs", I64, [I64])
    with KernelBuilder(module, "all", [("x", PTR), ("n", I64)], I64) as k:
        x, n = k.parameters["x"], k.parameters["n"]
        for number in range(20):
            place = k.gep(x, 32 * (number % 4))
            k.store(place, k.mul(k.load(place, F64.with_lanes(4)), k.const(F64.with_lanes(4), 1.5)))
            n = k.call_value("llabs", [k.sub(n, number)], I64)
            k.store(k.gep(x, 8), k.add(k.load(k.gep(x, 8), F64), 2.5))
        k.ret(n)
    codes = linked(module, "all")
    results = []
    for call in calls(codes, "all", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64):
        x = np.arange(16.0)
        results.append([call(x.ctypes.data, 5), *x.tolist()])
    assert results[0] == results[1]


@ON_LINUX
def test_the_clock_runs() -> None:
    module = Module()
    with KernelBuilder(module, "now", [], I64) as k:
        call_something(k)
        k.ret(clock(k))
    codes = linked(module, "now")
    mine, theirs = calls(codes, "now", ctypes.c_int64)
    assert theirs() <= mine() <= theirs()


@ON_LINUX
@pytest.mark.parametrize("count", [1, 12])
def test_settings_of_floats_are_stored_and_loaded(count: int) -> None:
    """From places anywhere in the frame."""
    module, target = Module(), host_target()
    with KernelBuilder(module, "change", [("wanted", I64)], I64) as k:
        call_something(k)
        before = [settings_of_thread(k, target) for _ in range(count)]
        use_settings(k, target, k.trunc(k.parameters["wanted"], I32))
        after = settings_of_thread(k, target)
        use_settings(k, target, before[-1])
        k.ret(k.or_(k.shl(k.zext(after, I64), 32), k.zext(before[0], I64)))
    codes = linked(module, "change")
    for change in calls(codes, "change", ctypes.c_uint64, ctypes.c_int64):
        for flushes in (False, True):
            wanted = settings(target, flushes=flushes)
            assert change(wanted) == wanted << 32 | settings(target)


@ON_LINUX
def test_programs_of_calls_need_no_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only their libraries do, once."""
    x = np.random.default_rng(0).normal(size=(300, 700)).astype(np.float32)

    def build(x: Any) -> Any:
        return ops.Dot(x, ops.Transpose(x, (1, 0)))

    module = record(build, x)
    wanted = xlapy.compile(module)(x)
    monkeypatch.setattr("xlapy.compiler.emit_object", None)
    executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=1, verify=True))
    np.testing.assert_array_equal(executable(x), wanted)


@ON_LINUX
def test_a_place_that_is_reached_from_another_one_has_no_register_to_give_away() -> None:
    text = """define i64 @sum(ptr %p) {
entry:
  %a = getelementptr i8, ptr %p, i64 8
  %b = getelementptr i8, ptr %a, i64 -8
  %x = load i64, ptr %b, align 8
  %y = load i64, ptr %p, align 8
  %z = load i64, ptr %a, align 8
  %s = add i64 %x, %y
  %t = add i64 %s, %z
  ret i64 %t
}
"""
    code = assembled(text, host_target())
    assert code is not None
    numbers = np.array([5, 70], np.int64)
    linked_code = link([code], {}, ["sum"])
    assert calls([linked_code], "sum", ctypes.c_int64, ctypes.c_void_p)[0](numbers.ctypes.data) == 80
