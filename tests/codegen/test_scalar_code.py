"""Functions of scalars that share a vector: the same bits as alone, in whatever order they come."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import xlapy
from tests.support.native import assert_same_bits
from xlapy.codegen.target import reference_target
from xlapy.compiler import compile_module
from xlapy.hlo.text import parse

FUNCTIONS = ("sine", "cosine", "exponential", "tanh", "log-plus-one", "logistic")


def run(text: str, *arguments: np.ndarray) -> tuple[xlapy.Executable, list[np.ndarray]]:
    executable = xlapy.compile(text)
    results = executable(*arguments)
    return executable, list(results) if isinstance(results, tuple) else [results]


def alone(function: str, kind: str, value: np.ndarray) -> np.ndarray:
    text = f"HloModule one\nENTRY e {{ x = {kind}[] parameter(0)\n ROOT y = {kind}[] {function}(x) }}"
    return run(text, value)[1][0]


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("count", [2, 3, 5, 8, 19])
def test_equal_functions_share_a_vector(kind: str, count: int) -> None:
    """Each comes after what it needs, which comes after the first of them."""
    dtype = xlapy.Shape.array(kind, ()).type.dtype
    lines = [f"x = {kind}[] parameter(0)", f"step = {kind}[] parameter(1)"]
    for number in range(count):
        previous = f"a{number - 1}" if number else "x"
        lines += [f"a{number} = {kind}[] add({previous}, step)", f"s{number} = {kind}[] sine(a{number})"]
    types, names = ", ".join([f"{kind}[]"] * count), ", ".join(f"s{number}" for number in range(count))
    lines.append(f"ROOT t = ({types}) tuple({names})")
    x, step = np.asarray(0.25, dtype), np.asarray(1.5, dtype)
    executable, results = run("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}", x, step)
    at = x
    for result in results:
        at = np.asarray(at + step, dtype)
        assert_same_bits(result, alone("sine", kind, at))
    assert "insertelement" in executable.llvm_ir()


@pytest.mark.parametrize(("name", "widest"), [("sse2", 4), ("avx2", 8), ("avx512", 8)])
def test_vectors_are_no_longer_than_pays(name: str, widest: int) -> None:
    """Nowhere are there lanes for all 16, and in nothing that is called rarely either."""
    lines = [f"a{n} = f32[] constant({n})\n b{n} = f32[] add(x, a{n})\n s{n} = f32[] sine(b{n})" for n in range(16)]
    types, names = ", ".join(["f32[]"] * 16), ", ".join(f"s{n}" for n in range(16))
    body = "\n".join(["x = f32[] parameter(0)", *lines, f"ROOT t = ({types}) tuple({names})"])
    compiled = compile_module(
        parse(f"HloModule m\nENTRY e {{\n{body}\n}}"), xlapy.CompileOptions(), reference_target(name)
    )
    code = [line for module in compiled.program.llvm_modules for line in module.splitlines() if "alloca" not in line]
    assert max(int(lanes) for lanes in re.findall(r"<(\d+) x float>", "\n".join(code))) == widest


def test_large_angles_and_special_numbers_share_one_too() -> None:
    values = np.array([1e30, np.nan, -0.0, np.inf, 3e7, -1e-40, 0.5], np.float32)
    lines = [f"x{n} = f32[] parameter({n})\n s{n} = f32[] sine(x{n})" for n in range(len(values))]
    types, names = ", ".join(["f32[]"] * len(values)), ", ".join(f"s{n}" for n in range(len(values)))
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\nROOT t = ({types}) tuple({names})\n}}"
    for value, result in zip(values, run(text, *values)[1], strict=True):
        assert_same_bits(result, alone("sine", "f32", np.asarray(value)))


def test_nothing_is_shared_with_what_follows_a_loop() -> None:
    """What needs the result of a loop cannot be computed in front of it."""
    text = """HloModule m
      c { p = (s32[], f32[]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        n = s32[] constant(5)
        ROOT r = pred[] compare(i, n), direction=LT }
      b { p = (s32[], f32[]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        x = f32[] get-tuple-element(p), index=1
        one = s32[] constant(1)
        j = s32[] add(i, one)
        s = f32[] sine(x)
        y = f32[] add(x, s)
        t = f32[] sine(y)
        ROOT r = (s32[], f32[]) tuple(j, t) }
      ENTRY e { x = f32[] parameter(0)
        zero = s32[] constant(0)
        s = f32[] sine(x)
        start = (s32[], f32[]) tuple(zero, s)
        w = (s32[], f32[]) while(start), condition=c, body=b
        y = f32[] get-tuple-element(w), index=1
        u = f32[] sine(y)
        ROOT r = (f32[], f32[]) tuple(s, u) }"""
    x = np.asarray(0.7, np.float32)
    for got, wanted in zip(run(text, x)[1], xlapy.evaluate(text, x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_scalars_agree_with_an_array_of_one(seed: int) -> None:
    """The same program on arrays of one element, which kernels compute one by one, gives the same bits."""
    choice = random.Random(seed)
    body = []
    names = ["x0", "x1", "x2"]
    for number in range(60):
        name = f"v{number}"
        if choice.random() < 0.45:
            body.append((name, choice.choice(FUNCTIONS), [choice.choice(names)]))
        else:
            opcode = choice.choice(("add", "subtract", "multiply", "maximum"))
            body.append((name, opcode, [choice.choice(names), choice.choice(names)]))
        names.append(name)
    shown = choice.sample(names[3:], 6)

    def text(shape: str) -> str:
        lines = [f"x{n} = {shape} parameter({n})" for n in range(3)]
        lines += [f"{name} = {shape} {opcode}({', '.join(operands)})" for name, opcode, operands in body]
        lines.append(f"ROOT t = ({', '.join([shape] * len(shown))}) tuple({', '.join(shown)})")
        return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"

    values = np.random.default_rng(seed).normal(size=3).astype(np.float32)
    scalars = run(text("f32[]"), *values)[1]
    arrays = run(text("f32[1]"), *(value.reshape(1) for value in values))[1]
    for one, other in zip(scalars, arrays, strict=True):
        assert_same_bits(one, other.reshape(()))
