"""Functions that small kernels call: the same bits as where they are written out, on every instruction set."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.support.targets import lesser_targets
from xlapy.codegen.ir_types import F32
from xlapy.codegen.kernels.functions import ROOMY_REGISTERS
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.math.outlined import LONG, OutlinedFunction, outlined_code
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.element_types import element_type_named
from xlapy.hlo.text import parse

TARGETS = {"host": host_target(), **lesser_targets()}
FUNCTIONS = (
    *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "erf", "erfc", "cbrt"),
    *("rsqrt", "sine", "cosine", "tan", "acos", "acosh", "asin", "asinh", "atan", "atanh", "sinh", "cosh"),
)
OF_TWO = ("atan2", "power")
SPECIAL = ("lgamma", "digamma", "bessel-i1e", "erf-inv")
LARGE = 40_000  # elements, which are too many for a quick kernel
NAMES = [*FUNCTIONS, *OF_TWO, *SPECIAL]


def text_of(name: str, type: str, size: int) -> str:
    second = "x, y" if name in OF_TWO else "x"
    return f"""HloModule m
      ENTRY e {{
        x = {type}[{size}] parameter(0)
        y = {type}[{size}] parameter(1)
        f = {type}[{size}] {name}({second})
        ROOT s = {type}[{size}] add(f, y)
      }}"""


def executable(text: str, target: str = "host") -> Executable:
    options = xlapy.CompileOptions()
    return Executable(compile_module(parse(text), options, TARGETS[target]), options)


@functools.cache
def with_copies(text: str, target: str = "host") -> Executable:
    """The program with a copy of each function where it is used, unless its kernel is a quick one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xlapy.codegen.math.outlined._LONG_FUNCTIONS", frozenset())
        return executable(text, target)


def numbers(type: str, size: int) -> list[np.ndarray]:
    """Of all sizes, with zeros, infinities and what is no number."""
    generator, dtype = np.random.default_rng(size), element_type_named(type).dtype
    with np.errstate(all="ignore"):
        values = [generator.standard_normal(size) * 10.0 ** generator.integers(-4, 9, size) for _ in range(2)]
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
        for number, array in enumerate(values):
            array[: len(special)] = np.roll(special, number)[:size]
        return [array.astype(dtype) for array in values]


def bits(array: np.ndarray) -> np.ndarray:
    """Of the numbers; those of what is none may differ."""
    return np.where(np.isnan(array.astype(np.float64)), -1, array.view(f"u{array.itemsize}").astype(np.int64))


@pytest.mark.parametrize("type", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_called_and_what_is_written_out_is_the_same(name: str, type: str) -> None:
    small, large = 77, with_copies(text_of(name, type, LARGE))
    called = executable(text_of(name, type, small))
    is_short = name == "rsqrt" and not host_target().has_estimates
    assert ("@math." in called.llvm_ir()) != is_short and "@math." not in large.llvm_ir()
    arguments = numbers(type, small)
    longer = [np.resize(argument, LARGE) for argument in arguments]
    np.testing.assert_array_equal(bits(called(*arguments)), bits(large(*longer)[:small]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("type", ["f32", "f64", "bf16"])
def test_any_number_of_lanes(type: str, size: int, target: str) -> None:
    for name in ("tanh", "sine", "power"):
        text, arguments = text_of(name, type, size), numbers(type, size)
        whole = [np.resize(argument, LARGE) for argument in arguments]
        expected = with_copies(text_of(name, type, LARGE), target)(*whole)[:size]
        np.testing.assert_array_equal(bits(executable(text, target)(*arguments)), bits(expected))


def text_of_distance(type: str, size: int) -> str:
    """The distance on a sphere: a few long functions of each element."""
    return f"""HloModule m
      ENTRY e {{
        x = {type}[{size}] parameter(0)
        y = {type}[{size}] parameter(1)
        s = {type}[{size}] sine(x)
        c = {type}[{size}] cosine(y)
        p = {type}[{size}] multiply(s, c)
        l = {type}[{size}] log(y)
        a = {type}[{size}] atan2(p, c)
        ROOT r = {type}[{size}] add(a, l)
      }}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("size", [1024, 3077, LARGE])
def test_larger_kernels_call_long_functions(size: int, type: str, target: str) -> None:
    """Where they have registers for four vectors a step; and that gives the same bits."""
    text, arguments = text_of_distance(type, size), numbers(type, size)
    calling, copies = executable(text, target), with_copies(text, target)
    if TARGETS[target].vector_registers >= ROOMY_REGISTERS or size == LARGE:
        assert "@math." in calling.llvm_ir()
        assert "@math." not in copies.llvm_ir()
    np.testing.assert_array_equal(bits(calling(*arguments)), bits(copies(*arguments)))


@pytest.mark.parametrize("name", ["sine", "power", "tanh", "log", "exponential"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_larger_kernels_call_a_single_function_if_it_is_long(type: str, name: str) -> None:
    text, arguments = text_of(name, type, LARGE), numbers(type, LARGE)
    calling = executable(text)
    has_room = host_target().vector_registers >= ROOMY_REGISTERS
    long = {("sine", "f32"), ("tanh", "f64")} | (set() if host_target().has_permute else {("log", "f64")})
    long |= {("power", "f32"), ("power", "f64")} if has_room else {("tanh", "f32"), ("log", "f32")}
    assert ("@math." in calling.llvm_ir()) == ((name, type) in long)
    np.testing.assert_array_equal(bits(calling(*arguments)), bits(with_copies(text)(*arguments)))


def text_of_many(name: str, type: str, *, behind_each_other: bool) -> str:
    """Twenty functions, of which each is of the one before, or which are added up."""
    lines, before = [], "x"
    for n in range(20):
        lines += [f"m{n} = {type}[{LARGE}] multiply({before}, y)"]
        lines += [f"f{n} = {type}[{LARGE}] {name}(m{n})"]
        before = f"f{n}"
        if not behind_each_other:
            lines += [f"s{n} = {type}[{LARGE}] add({f's{n - 1}' if n else 'y'}, f{n})"]
            lines += [f"x{n} = {type}[{LARGE}] add(x, {f'x{n - 1}' if n else 'y'})"]
            before = f"x{n}"
    last = before if behind_each_other else "s19"
    return f"""HloModule m
      ENTRY e {{
        x = {type}[{LARGE}] parameter(0)
        y = {type}[{LARGE}] parameter(1)
        {" ".join(lines)}
        ROOT r = {type}[{LARGE}] add({last}, y)
      }}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sine", "log", "tanh"])
@pytest.mark.parametrize("behind_each_other", [False, True])
def test_chains_of_many_functions_call_them(name: str, type: str, target: str, behind_each_other: bool) -> None:
    """Where each waits for the one before, calls take no longer; and that gives the same bits."""
    text, arguments = text_of_many(name, type, behind_each_other=behind_each_other), numbers(type, LARGE)
    calling, copies = executable(text, target), with_copies(text, target)
    assert (f"@math.{LONG[name]}" in calling.llvm_ir()) == behind_each_other
    np.testing.assert_array_equal(bits(calling(*arguments)), bits(copies(*arguments)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize(("name", "called"), [("sine", True), ("power", True), ("tanh", True), ("log", False)])
def test_single_numbers_call_what_is_compiled_in_full(
    name: str, called: bool, type: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of loops, where LLVM does not work on what is around; and that gives the same bits."""
    second = ", y" if name in OF_TWO else ""
    text = f"""HloModule m
      ENTRY e {{
        x = {type}[] parameter(0)
        y = {type}[] parameter(1)
        f = {type}[] {name}(x{second})
        g = {type}[] {name}(f{second})
        ROOT s = {type}[] add(g, y)
      }}"""
    calling = executable(text, target)
    monkeypatch.setattr("xlapy.codegen.math.outlined._CALLED_SCALARS", frozenset())
    copies = executable(text, target)
    assert ("@math." in calling.llvm_ir()) == called
    assert "@math." not in copies.llvm_ir()
    for x, y in zip(*numbers(type, 50), strict=True):
        np.testing.assert_array_equal(bits(calling(x, y)), bits(copies(x, y)))


def test_single_numbers_in_loops_call_nothing() -> None:
    def loop(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 1000, lambda _, x: jnp.sin(x) + 1, x)

    compiled = xlapy.compile(jax.jit(loop).lower(np.float32(1)).as_text())
    assert "@math." not in compiled.llvm_ir()


def text_behind_fold(rows: int) -> str:
    """A logarithm of the sum of each column, and an exponential besides."""
    return f"""HloModule m
      add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
      ENTRY e {{
        x = f32[{rows},700] parameter(0)
        y = f32[700] parameter(1)
        z = f32[] constant(0)
        p = f32[{rows},700] multiply(x, x)
        s = f32[700] reduce(p, z), dimensions={{0}}, to_apply=add
        l = f32[700] log(s)
        e = f32[700] exponential(y)
        ROOT r = f32[700] add(l, e)
      }}"""


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_behind_long_columns_is_called(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs once where the fold has had many steps; and that gives the same bits."""
    text, random = text_behind_fold(300), np.random.default_rng(3)
    arguments = [random.normal(size=dims).astype(np.float32) for dims in ((300, 700), 700)]
    calling = executable(text, target)
    assert {"log", "exp"} <= set(re.findall(r"@math\.(\w+)", calling.llvm_ir()))
    monkeypatch.setattr("xlapy.codegen.kernels.reduce.LONG_COLUMN", 1 << 60)
    copies = executable(text, target)
    assert "@math." not in copies.llvm_ir()
    np.testing.assert_array_equal(bits(calling(*arguments)), bits(copies(*arguments)))


def test_kernels_of_short_functions_call_none() -> None:
    text = text_of("exponential", "f32", LARGE).replace("add(f, y)", "log-plus-one(f)")
    assert "@math." not in executable(text).llvm_ir()


def test_results_past_the_caches_are_of_copies_of_short_functions() -> None:
    size = max(STREAMED_BYTES, host_target().l3_bytes) // 4
    assert "@math." not in executable(text_of("sine", "f32", size)).llvm_ir()


def test_several_in_one_kernel_and_one_for_equal_operands() -> None:
    text = """HloModule m
      ENTRY e {
        x = f32[50] parameter(0)
        t = f32[50] tanh(x)
        l = f32[50] logistic(t)
        p = f32[50] multiply(t, l)
        u = f32[50] tanh(l)
        ROOT s = f32[50] subtract(p, u)
      }"""
    compiled = xlapy.compile(text)
    assert compiled.llvm_ir().count(" call <") == 3
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    np.testing.assert_allclose(compiled(x), xlapy.evaluate(text, x), rtol=1e-6, atol=1e-6)


def test_short_functions_are_written_out() -> None:
    text = """HloModule m
      ENTRY e {
        x = f32[50] parameter(0)
        r = f32[50] rsqrt(x)
        q = f32[50] sqrt(x)
        ROOT s = f32[50] add(r, q)
      }"""
    code = xlapy.compile(text).llvm_ir()
    assert "@math.sqrt" not in code
    assert ("@math.rsqrt" in code) == host_target().has_estimates


def test_object_code_is_kept_and_found(tmp_path: Path) -> None:
    """With the libraries that it calls in turn."""
    directory = tmp_path / "cache"
    function = OutlinedFunction("sin", F32.with_lanes(4), 1)
    made = outlined_code(function, host_target(), ObjectCache(directory))
    second = ObjectCache(directory)
    found = outlined_code(function, host_target(), second)
    assert second.info().hits == 1
    assert list(map(bytes, found.objects)) == list(map(bytes, made.objects))
    assert list(found.needs) == list(made.needs) == ["angles"]
