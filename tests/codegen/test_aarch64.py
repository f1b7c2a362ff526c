"""Code for AArch64 computes what it should: it runs under emulation, where an emulator and a cross compiler are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from tests.codegen.libraries.test_gemm import NAMES, RESULTS, SIZES_TO_TEST, Expected, layouts, random_array
from tests.support.aarch64 import TARGET, EmulatedProgram, Machine, needs_emulation
from tests.support.accuracy import VECTOR_LANES, apply, check, exact_values, filled_up, sample, write_loop
from tests.support.accuracy_cases import CASES
from tests.support.irlab import HAS_FMA
from tests.support.native import record
from tests.support.target_programs import PROGRAMS, Program, wholes
from tests.support.values import assert_same
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.ir import IRType, Module
from xlapy.codegen.jit import emit_object
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.libraries.gemm import product_function
from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.math import MATH
from xlapy.compiled import Compiled
from xlapy.compiler import compile_module
from xlapy.options import CompileOptions
from xlapy_runtime.calling import Status

pytestmark = needs_emulation

NUM_THREADS = 3
COUNT = {"f32": 400, "f64": 200}
"""Numbers of each stratum."""

PRECISE_COUNT = 15
"""The same where the exact values take many digits."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("aarch64"), NUM_THREADS)
    yield machine
    machine.close()


def compiled(build: object, *arguments: np.ndarray) -> Compiled:
    return compile_module(record(build, *arguments), CompileOptions(), TARGET)  # type: ignore[arg-type]


# -- functions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_vector_math(machine: Machine, kind: str) -> None:
    """Within the bounds of every machine; and what fused multiply-adds round alike has the same bits everywhere."""
    lanes = VECTOR_LANES[kind]
    module = Module(has_fma=True)
    for name, case in CASES.items():
        write_loop(module, name, MATH[name], case.arity, IRType(kind, lanes))
    code = machine.load([emit_object(module.text(), TARGET)])
    for name, case in CASES.items():
        wider = case.wider(kind)
        inputs = sample(case, kind, COUNT[kind] if wider else PRECISE_COUNT)
        with machine.memory() as memory:
            padded = [filled_up(array, lanes) for array in inputs]
            places = [memory.place(array) for array in (*padded, padded[0])]
            machine.call(code.address(name), *places, padded[0].size)
            got = memory.fetch(places[-1], padded[0])[: inputs[0].size]
        with np.errstate(all="ignore"):
            exact = (
                wider(*(array.astype(np.float64 if kind == "f32" else np.longdouble) for array in inputs))
                if wider
                else exact_values(case.exact, *inputs)
            )
        check(case, kind, inputs, exact, got)
        if HAS_FMA:
            assert_same(got, apply(name, *inputs), name)


# -- matrix products -----------------------------------------------------------------------------------------------


def multiply(
    machine: Machine, name: str, arrays: tuple[np.ndarray, ...], *, num_threads: int = 1, accumulate: bool = False
) -> np.ndarray:
    """c (+)= a @ b, by the library; operands are one element off their alignment."""
    a, _, c = arrays
    sizes = [1, *c.shape, a.shape[1]]
    for array in arrays:
        sizes += [0, *(stride // array.itemsize for stride in array.strides)]
    library, function = product_function(name, dict(zip(SIZES, sizes, strict=False)))
    code = machine.library(LIBRARIES[library])
    with machine.memory() as memory:
        places = [memory.place(array, offset=array.itemsize) for array in arrays]
        table = memory.table([*sizes, int(accumulate), 0])
        machine.call(code.address(function), machine.parallel(num_threads), *places, table)
        return memory.fetch(places[2], c)


def check_products(machine: Machine, name: str, m: int, n: int, k: int, combinations: int) -> None:
    """Some combinations of layouts of both operands, each with another one of the result."""
    a, b = random_array(name, (m, k), 1), random_array(name, (k, n), 2)
    before = random_array(name, (m, n), 3, RESULTS[name])
    expected = Expected(name, a, b)
    chosen = [*itertools.product(layouts(m, k).values(), layouts(k, n).values())][::2][:combinations]
    for (a_layout, b_layout), c_layout in zip(chosen, itertools.cycle(layouts(m, n).values()), strict=False):
        expected.check(multiply(machine, name, (a_layout(a), b_layout(b), c_layout(before))))
    expected.plus(before).check(multiply(machine, name, (a, b, before), accumulate=True))


QUICK_SIZES = [(3, 5, 7), (13, 33, 9), (1, 70, 65), (70, 1, 65), (37, 131, 59), (12, 32, 0)]


@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "f16", "s8", "c64"])
def test_matrix_products(machine: Machine, name: str) -> None:
    for m, n, k in QUICK_SIZES:
        check_products(machine, name, m, n, k, combinations=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_matrix_products_of_every_size(machine: Machine, name: str) -> None:
    for m, n, k in SIZES_TO_TEST:
        check_products(machine, name, m, n, k, combinations=5)


# -- programs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.title)
def test_program(machine: Machine, program: Program) -> None:
    emulated = EmulatedProgram(machine, compile_module(program.module(), CompileOptions(), TARGET))
    program.check(emulated(*program.arguments))


def test_threads_share_the_work_and_change_nothing(machine: Machine) -> None:
    x = wholes(600, 700)
    program = compiled(lambda x: [ops.Reduce(x, 0, ops.Add, (1,)), ops.Exp(x), ops.Transpose(x)], x)
    alone, shared = (EmulatedProgram(machine, program, num_threads)(x) for num_threads in (1, NUM_THREADS))
    for one, other in zip(alone, shared, strict=True):
        assert_same(other, one)
    a, b = random_array("f32", (130, 270), 4), random_array("f32", (270, 90), 5)
    products = [multiply(machine, "f32", (a, b, np.zeros((130, 90), np.float32)), num_threads=n) for n in (1, 2, 3)]
    assert products[0].tobytes() == products[1].tobytes() == products[2].tobytes()


def test_a_loop_without_end_can_be_stopped(machine: Machine) -> None:
    """By the flag at once, and by a look at Python's signals, which the clock brings about."""

    def forever(x: XlaOp) -> XlaOp:
        return ops.While(lambda n: ops.Ge(n, 0), lambda n: ops.And(n + 1, 7), x)

    x = np.int32(1)
    endless = EmulatedProgram(machine, compiled(forever, x))
    assert endless.status(x, cancelled=1) == Status.CANCELLED
    assert endless.status(x, poll=machine.refusing) == Status.CANCELLED
