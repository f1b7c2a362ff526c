"""Of a module, the functions that are known are assembled, and the others are LLVM's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from xlapy.codegen.assembler import assembled
from xlapy.codegen.ir import F32, I64, PTR, KernelBuilder, Module
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target, reference_target
from xlapy_runtime.hand_written import is_linux_on_x86
from xlapy_runtime.linking import link

X86 = reference_target("avx2")


def add_function(module: Module, name: str, write: Callable[[KernelBuilder], object], parameters: int = 2) -> None:
    with KernelBuilder(module, name, [(f"p{number}", PTR) for number in range(parameters)], None) as k:
        write(k)


def written(write: Callable[[KernelBuilder], object], parameters: int = 2) -> str:
    module = Module()
    add_function(module, "f", write, parameters)
    return module.text()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(written(lambda k: k.store(k.parameters["p0"], k.const(F32, 1))), id="a float"),
        pytest.param(written(lambda k: k.alloca(I64, 1, align=64)), id="a frame that is aligned"),
        pytest.param(written(lambda k: k.alloca(I64, 1 << 20)), id="a large frame"),
        pytest.param(written(lambda k: None, parameters=7), id="parameters on the stack"),
        pytest.param(written(lambda k: k.fence()), id="another instruction"),
        pytest.param("@x = global i64 0\n", id="data"),
        pytest.param("define internal void @f(ptr %x) {\nentry:\n  ret void\n}\n", id="a function of its own"),
    ],
)
def test_other_code_is_llvms(text: str) -> None:
    assert assembled(text, X86) == (None, text)


@pytest.mark.parametrize("machine", ["neon"])
def test_other_machines_are_llvms(machine: str) -> None:
    text = written(lambda k: None)
    assert assembled(text, X86).code is not None
    assert assembled(text, reference_target(machine)) == (None, text)


@pytest.mark.skipif(not is_linux_on_x86(), reason="the code is for Linux on x86-64")
def test_functions_call_those_that_llvm_compiles_and_are_called_by_them() -> None:
    """Tables are where they are read, in both if both do."""
    module = Module()
    numbers = [3, 5, 7]
    with KernelBuilder(module, "first", [("x", I64)], I64) as k:
        k.ret(k.add(k.load(k.gep(k.table(I64, numbers), k.parameters["x"], 8), I64), 1))
    with KernelBuilder(module, "second", [("x", I64)], I64) as k:
        one = k.fptosi(k.sitofp(k.parameters["x"], F32), I64)
        k.ret(k.add(k.call_value("first", [one], I64), k.load(k.gep(k.table(I64, numbers), one, 8), I64)))
    with KernelBuilder(module, "third", [("x", I64)], I64) as k:
        k.ret(k.mul(k.call_value("second", [k.parameters["x"]], I64), 10))
    code, rest = assembled(module.text(), host_target())
    assert code is not None and rest is not None
    assert "declare i64 @first(i64)" in rest and "@third" not in rest
    linked = link([code, emit_object(rest, host_target(), codegen_level=0)], {}, ["third"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(linked.address("third"))(1) == 110


def test_a_function_that_calls_one_of_the_modules_own_is_llvms_with_it() -> None:
    own = "define internal void @own(ptr %x) {\nentry:\n  ret void\n}"
    text = f"{own}\ndefine void @f(ptr %x) {{\nentry:\n  call void @own(ptr %x)\n  ret void\n}}\n"
    assert assembled(text, X86) == (None, text)
