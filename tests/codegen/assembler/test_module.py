"""A module is assembled if all of it is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from xlapy.codegen.assembler import assembled
from xlapy.codegen.ir import F32, I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.math.outlined import math_function
from xlapy.codegen.target import reference_target

X86 = reference_target("avx2")


def written(write: Callable[[KernelBuilder], object], parameters: int = 2) -> str:
    module = Module()
    with KernelBuilder(module, "f", [(f"p{number}", PTR) for number in range(parameters)], None) as k:
        write(k)
    return module.text()


def loaded(k: KernelBuilder, lanes: int = 1) -> Value:
    return k.load(k.parameters["p0"], F32.with_lanes(lanes) if lanes > 1 else F32)


def keep(k: KernelBuilder, value: Value) -> None:
    k.store(k.parameters["p1"], value)


def many(k: KernelBuilder) -> None:
    """More vectors than registers."""
    values = [k.load(k.gep(k.parameters["p0"], 64 * number), F32.with_lanes(16)) for number in range(9)]
    for value in values:
        keep(k, value)


def sums(k: KernelBuilder) -> None:
    """More numbers than registers."""
    values = [k.load(k.gep(k.parameters["p0"], 8 * number), I64) for number in range(16)]
    for value in values:
        keep(k, value)


def call_between(k: KernelBuilder) -> None:
    k.module.declare("g", None, [])
    value = loaded(k)
    k.call("g", [])
    keep(k, value)


def math_of(lanes: int, *, keeps: bool = False) -> str:
    """A function of the numbers in memory, with which these are added up if it `keeps` them."""

    def write(k: KernelBuilder) -> None:
        k.module.libraries, k.module.outlined = set(), {}
        x = loaded(k, lanes)
        made = math_function(k, "tanh", [x])
        keep(k, k.add(made, x) if keeps else made)

    module = Module()
    with KernelBuilder(module, "f", [("p0", PTR), ("p1", PTR)], None, is_quick=True) as k:
        write(k)
    return module.text()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(math_of(8, keeps=True), id="a vector over a call of a function"),
        pytest.param(math_of(16), id="a function of vectors in two registers"),
        pytest.param(written(lambda k: k.alloca(I64, 1 << 20)), id="a large frame"),
        pytest.param(written(lambda k: k.fence()), id="another instruction"),
        pytest.param(written(lambda k: keep(k, k.fabs(loaded(k)))), id="another function"),
        pytest.param(written(lambda k: keep(k, k.shuffle(loaded(k, 8), None, range(8)[::-1]))), id="another order"),
        pytest.param(written(lambda k: keep(k, k.shuffle(loaded(k, 8), None, [0] * 4))), id="another length"),
        pytest.param(
            written(lambda k: keep(k, k.load(k.parameters["p0"], I32.with_lanes(8)))), id="vectors of numbers"
        ),
        pytest.param(written(lambda k: keep(k, loaded(k, 2))), id="a vector that fills no register"),
        pytest.param(written(lambda k: keep(k, k.sdiv(k.load(k.parameters["p0"], I64), 10))), id="a signed division"),
        pytest.param(written(many), id="many vectors"),
        pytest.param(written(lambda k: keep(k, k.smax(k.load(k.parameters["p0"], I64), 10))), id="a choice"),
        pytest.param(written(sums), id="many values without a call"),
        pytest.param(written(call_between), id="a float over a call"),
        pytest.param("@x = global i64 0\n", id="data"),
        pytest.param("define internal void @f(ptr %x) {\nentry:\n  ret void\n}\n", id="a function of its own"),
    ],
)
def test_other_code_is_llvms(text: str) -> None:
    assert assembled(text, X86) is None


@pytest.mark.parametrize("machine", ["neon"])
def test_other_machines_are_llvms(machine: str) -> None:
    text = written(lambda k: None)
    assert assembled(text, X86) is not None
    assert assembled(text, reference_target(machine)) is None


def test_floats_are_llvms_where_there_is_no_avx2() -> None:
    text = written(lambda k: keep(k, loaded(k, 4)))
    assert assembled(text, X86) is not None
    assert assembled(text, reference_target("sse2")) is None


def test_functions_that_are_remembered_are_in_each_module_what_they_are() -> None:
    one, other = written(lambda k: keep(k, loaded(k, 8))), written(lambda k: keep(k, loaded(k, 4)))
    behind = other.replace("@f(", "@g(")
    first, both = assembled(one, X86), assembled(behind + one, X86)
    assert first is not None and both is not None
    assert assembled(one, X86) == first
    assert assembled(behind + one, X86) == both
    assert assembled(one, reference_target("avx512")) is not None
    assert assembled(one, reference_target("sse2")) is None


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_functions_of_vectors_are_called(lanes: int) -> None:
    assert assembled(math_of(lanes), X86) is not None
    assert assembled(math_of(16), reference_target("avx512")) is not None


def test_what_nobody_reads_takes_no_register() -> None:
    def write(k: KernelBuilder, *, unread: bool) -> None:
        for number in range(20 * unread):
            k.mul(k.load(k.parameters["p0"], I64), number + 2)
        keep(k, loaded(k, 8))

    assert assembled(written(lambda k: write(k, unread=False)), X86) is not None
    assert assembled(written(lambda k: write(k, unread=True)), X86) is not None
