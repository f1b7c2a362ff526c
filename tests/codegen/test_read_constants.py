"""Vectors that repeat a float, which operations read from memory where that saves instructions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.irlab import HAS_FMA, Compiled
from xlapy.codegen.ir import PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.math import MATH
from xlapy.codegen.target import reference_target

VECTOR = IRType("f32", 16)


def module_of(*, bytes: int = 64, hoists_constants: bool = False, vector: IRType = VECTOR) -> Module:
    """x * 3 + 1.5, less 0.25, in a loop over 64 elements; more than 7 become 7, and zero is zero."""
    module = Module(has_fma=HAS_FMA, read_constant_bytes=bytes)
    with (
        KernelBuilder(module, "f", [("x", PTR)], None, hoists_constants=hoists_constants) as k,
        k.loop(0, 64, vector.lanes) as loop,
    ):
        place = k.gep(k.parameters["x"], loop.index, vector.bytes)
        value = k.sub(k.muladd(k.load(place, vector), 3.0, 1.5), 0.25)
        k.store(place, k.select(k.compare("gt", value, 7.0), k.const(vector, 7.0), k.add(value, 0.0)))
    return module


def loads(module: Module) -> list[str]:
    return re.findall(r"load (<[^>]*>), ptr @table", module.text())


def test_what_sums_and_products_read() -> None:
    """A factor, what is added and what is subtracted; comparisons, selections and zeros stay as they are."""
    assert loads(module_of()) == ["<16 x float>"] * 3


def test_wide_vectors_are_repeated() -> None:
    """A read for each of four registers would be no better than one instruction for all."""
    assert not loads(module_of(vector=IRType("f32", 32)))
    assert not loads(module_of(bytes=0))
    assert not loads(module_of(vector=IRType("f32", 1)))


def test_functions_that_llvm_leaves_as_they_are_repeat_them() -> None:
    """No operation of theirs would read them."""
    assert not loads(module_of(hoists_constants=True))


@pytest.mark.parametrize("bytes", [0, 64])
def test_values(bytes: int) -> None:
    x = np.arange(-32, 32, dtype=np.float32)
    expected = np.minimum(x * 3 + np.float32(1.25), 7)
    Compiled(module_of(bytes=bytes).text()).call("f", x)
    np.testing.assert_array_equal(x, expected)


def test_constants_of_what_does_not_change_stay_in_front_of_a_loop() -> None:
    """With them goes what is made from them."""
    module = Module(read_constant_bytes=64)
    with KernelBuilder(module, "f", [("x", PTR), ("y", PTR)], None) as k:
        weight = k.load(k.parameters["y"], VECTOR)
        with k.loop(0, 64, 16) as loop:
            place = k.gep(k.parameters["x"], loop.index, 4)
            k.store(place, k.mul(k.load(place, VECTOR), k.mul(weight, 3.0)))
    before, _, inside = module.text().partition("loop")
    assert "ptr @table" in before and before.count("fmul") == 1 and inside.count("fmul") == 1


@pytest.mark.parametrize("name", ["atan", "erf", "erfc", "exp", "log1p", "tanh"])
def test_functions_take_fewer_instructions(name: str) -> None:
    """Each coefficient of a polynomial is part of the operation that needs it, in both registers of a vector."""

    target = reference_target("avx2")

    def instructions(bytes: int) -> int:
        module = Module.of(target)
        module.read_constant_bytes = bytes
        with KernelBuilder(module, "f", [("x", PTR)], None) as k, k.loop(0, 64, 16) as loop:
            place = k.gep(k.parameters["x"], loop.index, 4)
            value: Value = MATH[name](k, k.load(place, VECTOR))
            k.store(place, value)
        lines = emit_assembly(module.text(), target).splitlines()
        return sum(line.startswith("\t") and not line.startswith("\t.") for line in lines)

    assert instructions(target.read_constant_bytes) < instructions(0)


def test_targets_that_repeat_what_they_read() -> None:
    """And those for which LLVM reads whole vectors anyway."""
    assert reference_target("avx2").read_constant_bytes == 64
    assert not any(reference_target(name).read_constant_bytes for name in ("sse2", "avx512", "neon"))
