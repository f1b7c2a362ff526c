"""Modules cut into parts: compiled side by side and linked, they are what the whole module is; and modules that are
parts of others."""

from __future__ import annotations

import ctypes
import re
import threading
from dataclasses import replace

import numpy as np
import pytest

import xlapy
from xlapy.api import load
from xlapy.codegen.ir import F64, I64, PTR, KernelBuilder, Module
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.support.side_by_side import side_by_side
from xlapy_runtime.errors import InternalError
from xlapy_runtime.executable import ProgramExecutable
from xlapy_runtime.linking import link

FUNCTIONS = 12
STEPS = 200


def program() -> Module:
    """Functions that add up rows of their own, one that adds a row of a table by a function that only the module sees,
    and one that calls them all, half of them by the addresses in a table."""
    module = Module()
    for number in range(FUNCTIONS):
        with KernelBuilder(module, f"add.{number}", [("x", PTR)], F64) as k:
            total = k.const(F64, 0.0)
            for step in range(STEPS):
                total = k.add(total, k.load(k.gep(k.parameters["x"], number * STEPS + step, 8), F64))
            k.ret(total)
    with KernelBuilder(module, "own", [("x", PTR)], F64, "internal") as k:
        k.ret(k.load(k.parameters["x"], F64))
    with KernelBuilder(module, "add.own", [("x", PTR)], F64) as k:
        k.ret(k.add(k.call("own", [k.table(F64, [1000.0])], F64), k.call("own", [k.parameters["x"]], F64)))
    entries = ", ".join(f"ptr @add.{number}" for number in range(FUNCTIONS // 2))
    module.define("addresses", f"@addresses = internal constant [{FUNCTIONS // 2} x ptr] [{entries}]")
    with KernelBuilder(module, "add", [("x", PTR)], F64) as k:
        x = k.parameters["x"]
        with k.loop(0, FUNCTIONS // 2, carry=[k.call("add.own", [x], F64)]) as loop:
            function = k.load(k.gep(k.function_pointer("addresses"), loop.index, 8), PTR)
            loop.next = [k.add(loop.values[0], k.call(function, [x], F64))]
        total = loop.results[0]
        for number in range(FUNCTIONS // 2, FUNCTIONS):
            total = k.add(total, k.call(f"add.{number}", [x], F64))
        k.ret(total)
    return module


@pytest.mark.parametrize("most", [1, 3])
def test_data_of_a_module_is_read_by_its_parts_and_by_others(most: int) -> None:
    shared, other = Module(), Module()
    for number in range(3):
        with KernelBuilder(shared, f"get.{number}", [], F64) as k:
            k.ret(k.const(F64, float(number)))
    entries = ", ".join(f"ptr @get.{number}" for number in range(3))
    shared.define("getters", f"@getters = constant [3 x ptr] [{entries}]")
    other.declare_data("getters")
    for module, name in ((shared, "last"), (other, "first")):
        with KernelBuilder(module, name, [], F64) as k:
            place = k.gep(k.function_pointer("getters"), 2 if name == "last" else 0, 8)
            k.ret(k.call(k.load(place, PTR), [], F64))
    target = host_target()
    code = link([emit_object(part, target) for part in shared.parts(most, least=1)], {}, ["getters", "last"])
    others = link([emit_object(other.text(), target)], code.addresses(), ["first"])
    assert ctypes.CFUNCTYPE(ctypes.c_double)(code.address("last"))() == 2
    assert ctypes.CFUNCTYPE(ctypes.c_double)(others.address("first"))() == 0


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_parts_are_linked_to_the_whole(most: int) -> None:
    parts = program().parts(most)
    assert len(parts) == most if most <= 3 else 3 < len(parts) <= FUNCTIONS
    target = host_target()
    code = link([emit_object(part, target) for part in parts], {}, ["add"])
    numbers = (ctypes.c_double * (FUNCTIONS * STEPS))(*range(FUNCTIONS * STEPS))
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(code.address("add"))
    assert function(ctypes.addressof(numbers)) == 1000 + sum(range(FUNCTIONS * STEPS))


def test_each_function_is_in_one_part_and_what_is_own_in_the_same() -> None:
    parts = program().parts(3)
    names = [name for part in parts for name in re.findall(r"define [^@]*@([\w.]+)", part)]
    assert sorted(names) == sorted(["own", "add.own", "add", *(f"add.{number}" for number in range(FUNCTIONS))])
    (home,) = [part for part in parts if "define internal" in part]
    assert "@add.own" in home
    assert "@addresses = internal constant" in home
    assert max(map(len, parts)) < 1.5 * min(map(len, parts))


def test_a_small_module_is_one_part() -> None:
    module = Module()
    with KernelBuilder(module, "f", [("n", I64)], None):
        pass
    assert module.parts(8) == [module.text()]


def sums(*steps: int) -> Module:
    """A function for each number, which adds up so many elements."""
    module = Module()
    for number, count in enumerate(steps):
        with KernelBuilder(module, f"add.{number}", [("x", PTR)], F64) as k:
            total = k.const(F64, 0.0)
            for step in range(count):
                total = k.add(total, k.load(k.gep(k.parameters["x"], step, 8), F64))
            k.ret(total)
    return module


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ((400,), 1),
        ((400, 10), 1),  # not worth a module
        ((400, 150), 2),
        ((400, 80, 80), 2),
        ((800, 80, 80, 80, 80), 2),  # more would wait for the largest
        ((200, 200, 200, 200), 4),
    ],
)
def test_there_are_as_many_parts_as_shorten_the_work(steps: tuple[int, ...], count: int) -> None:
    parts = sums(*steps).parts(8)
    assert len(parts) == count
    assert sum(part.count("define") for part in parts) == len(steps)


def many_small_kernels(count: int) -> str:
    """No two of them are the same code."""
    lines = [
        f"p{n} = f32[{n + 5}] parameter({n})  a{n} = f32[{n + 5}] tanh(p{n})  c{n} = f32[] constant({n + 2})  "
        f"b{n} = f32[{n + 5}] broadcast(c{n}), dimensions={{}}  t{n} = f32[{n + 5}] multiply(a{n}, b{n})"
        for n in range(count)
    ]
    shapes, names = (", ".join(text.format(n, n + 5) for n in range(count)) for text in ("f32[{1}]", "t{0}"))
    return f"HloModule m ENTRY e {{ {'  '.join(lines)}  ROOT r = ({shapes}) tuple({names}) }}"


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_small_kernels_are_compiled_side_by_side(cores: int) -> None:
    """However many parts the entry and its kernels are in, the program is the same."""
    text = many_small_kernels(64)
    target = replace(host_target(), cores=cores)
    compiled = compile_module(load(text), xlapy.CompileOptions(), target)
    assert len(compiled.program.llvm_modules) == cores
    executable = xlapy.compile(text)
    inputs = [np.linspace(-2, 2, n + 5, dtype=np.float32) for n in range(64)]
    own = ProgramExecutable(compiled.program, compiled.link())
    for x, one, other in zip(inputs, own(*inputs), executable(*inputs), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
        np.testing.assert_allclose(one, np.tanh(x) * (len(x) - 3), rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_keep_the_order_of_their_jobs(threads: int) -> None:
    assert side_by_side([lambda number=number: number**2 for number in range(20)], threads) == [
        number**2 for number in range(20)
    ]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_error_is_raised(threads: int) -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="second"):
        side_by_side([lambda: None, lambda: fail("second"), lambda: fail("third")], threads)


def test_the_caller_does_a_part_of_the_jobs() -> None:
    """As many threads as asked for, of which it is one; what ends a job there ends the call."""
    both = threading.Barrier(2, timeout=60)

    def meet() -> int:
        both.wait()
        return threading.get_ident()

    assert threading.get_ident() in side_by_side([meet, meet], 2)

    def leave() -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        side_by_side([lambda: None, leave], 2)


def test_a_module_adopts_functions_of_another_one() -> None:
    one, other = Module(), Module()
    one.declare("g", None, [])
    with KernelBuilder(other, "f", [], None) as k:
        other.declare("g", None, [])
        other.declare("h", None, [])
        k.call("g", [])
        k.call("h", [])
    one.adopt(other)
    assert one.defines("f")
    assert one.text() == other.text()
    with pytest.raises(InternalError, match="defined twice"):
        one.adopt(other)


def test_a_module_with_tables_is_not_adopted() -> None:
    other = Module()
    with KernelBuilder(other, "f", [], PTR) as k:
        k.ret(k.table(I64, [1, 2]))
    with pytest.raises(InternalError, match="tables"):
        Module().adopt(other)
