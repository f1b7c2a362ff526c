"""Kernels of different instructions that turn out to be the same code are compiled once."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from tests.support.native import record
from tests.support.values import assert_same
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.ir import F32, I64, PTR, KernelBuilder, Module

LENGTHS = (70_016, 80_000, 90_016)


def kernels_of(executable: xlapy.Executable) -> list[str]:
    return re.findall(r"(?m)^define void @(kernel\.[\w.]+)", executable.llvm_ir())


@pytest.mark.parametrize("threads", [1, 2])
def test_updates_of_arrays_of_different_sizes_are_one_kernel(threads: int) -> None:
    arrays = [np.random.default_rng(0).normal(size=length).astype(np.float32) for length in LENGTHS]

    def build(*operands: XlaOp) -> list[XlaOp]:
        return [ops.Tanh(x) * x for x in operands]

    module = record(build, *arrays)
    program = xlapy.compile(module, xlapy.CompileOptions(num_threads=threads))
    assert len([name for name in kernels_of(program) if not name.endswith(".range")]) == 1
    assert program.compile_stats().kernels == 1
    for result, array in zip(program(*arrays), arrays, strict=True):
        assert_same(result, xlapy.compile(record(build, array))(array)[0])


def test_kernels_of_other_code_stay_apart() -> None:
    arrays = [np.ones(length, np.float32) for length in LENGTHS]

    def build(*operands: XlaOp) -> list[XlaOp]:
        return [ops.Tanh(x) * float(number + 2) for number, x in enumerate(operands)]

    program = xlapy.compile(record(build, *arrays))
    assert len([name for name in kernels_of(program) if not name.endswith(".range")]) == len(LENGTHS)
    for number, result in enumerate(program(*arrays)):
        np.testing.assert_allclose(result, np.tanh(1) * (number + 2), rtol=1e-6)


def test_only_functions_that_say_so_are_shared() -> None:
    """What is the same but for its name and the numbers of its alias scopes."""
    module = Module()

    def write(name: str, number: float, *, is_shared: bool = True) -> str:
        parameters = [("x", PTR), ("n", I64)]
        with KernelBuilder(module, name, parameters, None, is_shared=is_shared) as k:
            k.store(k.parameters["x"], k.const(F32, number), alias="x")
        return k.name

    assert write("f", 1.0) == "f"
    assert write("g", 2.0) == "g"
    assert write("h", 1.0) == "f"
    assert write("i", 1.0, is_shared=False) == "i"
    text = module.text()
    assert [module.defines(name) for name in "fghi"] == [True, True, False, True]
    assert "!{}" not in text.splitlines()[-1] and text.count("distinct !{") == 2 * 3


def test_layers_with_the_same_behind_their_products_have_one_function_for_that() -> None:
    """Whatever the products sum up."""
    rng = np.random.default_rng(0)
    shapes = [(64, 300), (300, 256), (256,), (256, 256), (256,)]
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    def build(x: XlaOp, *weights: XlaOp) -> XlaOp:
        for weight, bias in zip(weights[::2], weights[1::2], strict=True):
            x = ops.Max(ops.Dot(x, weight) + ops.Broadcast(bias, (64,)), 0.0)
        return x

    program = xlapy.compile(record(build, *arrays))
    assert kernels_of(program) == ["kernel.0.epilogue"]
    assert program.compile_stats().kernels == 1
    expected = arrays[0].astype(np.float64)
    for weight, bias in zip(arrays[1::2], arrays[2::2], strict=True):
        expected = np.maximum(expected @ weight + bias, 0)
    np.testing.assert_allclose(program(*arrays), expected, rtol=1e-4, atol=1e-3)
