"""The functions of the chain libraries: which chains call them, and that they do what kernels of programs do."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.targets import lesser_targets
from tests.support.values import assert_same
from xlapy import ops
from xlapy.api import load
from xlapy.codegen.kernels.columns import plan_columns
from xlapy.codegen.kernels.rows import plan_rows
from xlapy.codegen.libraries.chain import CHAIN_LIBRARIES, library_name
from xlapy.codegen.libraries.chain_bodies import BODIES, COLUMN_BODIES, FOLDED_BODIES, WIDE_BODIES, is_softmax
from xlapy.codegen.libraries.chain_body import has_functions, read_body
from xlapy.codegen.libraries.chain_columns import COLUMNS, widths_of
from xlapy.codegen.libraries.chain_problem import chain_of
from xlapy.codegen.libraries.chain_rows import LEAST_LENGTH, ROWS, WHOLE
from xlapy.codegen.target import REFERENCE_MACHINES, Target, host_target, reference_target
from xlapy.compiler import compile_module
from xlapy.hlo import element_types as et
from xlapy.hlo.kernel_plan import LEAST_LONG_ROWS, MOST_LONG_ROW_BYTES, MOST_ON_STACK, RowSpace
from xlapy.passes.fusion.rows import LARGE_ARRAY_BYTES

Program = Callable[..., Any]
TARGETS = {"host": host_target(), **lesser_targets()}
UNEVEN = (601, 1003)  # rows, columns
EVEN = (600, 1024)


def layer_norm(x: Any, scale: Any, shift: Any, axis: int = -1) -> Any:
    mean = x.mean(axis, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis, keepdims=True)
    return scale * ((x - mean) * jax.lax.rsqrt(variance + 1e-5)) + shift


def layer_norm_by_root(x: Any, scale: Any, shift: Any, axis: int = -1) -> Any:
    return (x - x.mean(axis, keepdims=True)) / jnp.sqrt(x.var(axis, keepdims=True) + 1e-5) * scale + shift


def layer_norm_of_moments(x: Any, scale: Any, shift: Any, axis: int = -1) -> Any:
    mean, square = x.mean(axis, keepdims=True), (x * x).mean(axis, keepdims=True)
    variance = jnp.maximum(0, square - mean * mean)
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-6) * scale) + shift


def standard(x: Any, _scale: Any, _shift: Any, axis: int = -1) -> Any:
    return (x - x.mean(axis, keepdims=True)) * jax.lax.rsqrt(x.var(axis, keepdims=True) + 1e-5)


def rms(x: Any, _scale: Any, _shift: Any, axis: int = -1) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(axis, keepdims=True) + 1e-6)


def rms_norm_by_root(x: Any, scale: Any, _shift: Any, axis: int = -1) -> Any:
    return x / jnp.sqrt((x**2).mean(axis, keepdims=True) + 1e-6) * scale


def wide_layer_norm(x: Any, scale: Any, shift: Any, axis: int = -1) -> Any:
    wide = x.astype(np.float32)
    mean, variance = wide.mean(axis, keepdims=True), wide.var(axis, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift).astype(x.dtype)


def wide_rms_norm(x: Any, scale: Any, shift: Any, axis: int = -1) -> Any:
    return rms(x.astype(np.float32), scale, shift, axis).astype(x.dtype) * scale


def other(x: Any) -> Any:
    """Another array, in memory that no result takes."""
    return jax.lax.optimization_barrier(x)


def triangle(x: Any) -> Any:
    rows, places = (jax.lax.broadcasted_iota(np.int32, x.shape[-2:], dim) for dim in (0, 1))
    return rows >= places


def mask(x: Any) -> Any:
    """Which elements of an array count, as an array."""
    return jax.lax.optimization_barrier(jnp.flip(x, 1) > 0.3)


PROGRAMS: dict[str, Program] = {
    "softmax": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(x, axis),
    "softmax_of_products": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(x * 0.125, axis),
    "softmax_of_quotients": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(x / 3, axis),
    "softmax_of_sums": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(x + other(x), axis),
    "softmax_of_chosen": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(jnp.where(mask(x), x, -1e9), axis),
    "softmax_of_chosen_products": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(
        jnp.where(mask(x), x * 0.125, -jnp.inf), axis
    ),
    "weights_in_triangle": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(jnp.where(triangle(x), x, -1e9), axis),
    "weights_in_triangle_of_products": lambda x, _scale, _shift, axis=-1: jax.nn.softmax(
        jnp.where(triangle(x), x * 0.125, -jnp.inf), axis
    ),
    "log_softmax": lambda x, _scale, _shift, axis=-1: jax.nn.log_softmax(x, axis),
    "log_sum_exp": lambda x, _scale, _shift, axis=-1: jax.nn.logsumexp(x, axis),
    "layer_norm": layer_norm,
    "layer_norm_of_sums": lambda x, scale, shift, axis=-1: layer_norm(x + other(x), scale, shift, axis),
    "rms_norm_of_sums": lambda x, scale, _shift, axis=-1: rms(x + other(x), scale, _shift, axis) * scale,
    "unit": lambda x, _scale, _shift, axis=-1: x / jnp.linalg.norm(x, axis=axis, keepdims=True),
    "layer_norm_by_root": layer_norm_by_root,
    "layer_norm_of_moments": layer_norm_of_moments,
    "standard": standard,
    "standard_of_moments": lambda x, _scale, _shift, axis=-1: jax.nn.standardize(x, axis=axis, epsilon=1e-5),
    "rms": rms,
    "rms_norm": lambda x, scale, shift, axis=-1: rms(x, scale, shift, axis) * scale,
    "rms_norm_by_root": rms_norm_by_root,
}
WIDE_PROGRAMS: dict[str, Program] = {
    "wide_softmax": PROGRAMS["softmax"],
    "wide_softmax_of_products": PROGRAMS["softmax_of_products"],
    "wide_log_softmax": PROGRAMS["log_softmax"],
    "wide_layer_norm": wide_layer_norm,
    "wide_rms_norm": wide_rms_norm,
}
CASES = [(name, type) for name in BODIES for type in (np.float32, np.float64)]
CASES += [(name, type) for name in WIDE_BODIES for type in (ml_dtypes.bfloat16, np.float16)]


def arguments(shape: tuple[int, ...], dtype: Any) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(4)
    return [random.normal(size=dims).astype(dtype) for dims in (shape, shape[-1:], shape[-1:])]


def text_of(program: Program, values: list[np.ndarray[Any, Any]]) -> str:
    return jax.jit(program, keep_unused=True).lower(*values).as_text()


def libraries_of(executable: xlapy.Executable) -> list[str]:
    return [name for name in executable._compiled.program.libraries if name.startswith("chain_")]


def leave_libraries_out(patch: pytest.MonkeyPatch) -> None:
    """Chains are compiled with their programs, however usual they are."""
    for limit in ("LEAST_BYTES", "LEAST_WHOLE_BYTES"):
        patch.setattr(f"xlapy.codegen.libraries.chain.{limit}", 1 << 60)


def without_libraries(text: str, patch: pytest.MonkeyPatch, options: xlapy.CompileOptions) -> xlapy.Executable:
    leave_libraries_out(patch)
    patch.setenv("XLAPY_CACHE_DIR", "off")
    executable = xlapy.compile(text, options)
    assert not libraries_of(executable)
    return executable


def check_all(programs: dict[str, Program], way: str, x: Any, scale: Any, shift: Any, patch: Any) -> None:
    """All programs, each of an array of its own: by libraries, by kernels, and by XLA."""
    axis = -1 if way == ROWS else 0
    if way == COLUMNS:
        scale, shift = scale[:, None], shift[:, None]

    def all_of_them(scale: Any, shift: Any, *xs: Any) -> Any:
        return [program(x, scale, shift, axis) for program, x in zip(programs.values(), xs, strict=True)]

    values = [scale, shift, *(np.roll(x, number) for number in range(len(programs)))]
    with jax.enable_x64(True):
        text, wanted = text_of(all_of_them, values), jax.jit(all_of_them)(*values)
    options, type = xlapy.CompileOptions(verify=True), et.element_type_of(x.dtype)
    from_library = xlapy.compile(text, options)
    assert libraries_of(from_library) == sorted(library_name(way, name, type) for name in programs)
    from_kernels = without_libraries(text, patch, options)
    limits = {2: 2e-2, 4: 2e-5, 8: 1e-12}[x.dtype.itemsize]
    for found, own, jax_found in zip(from_library(*values), from_kernels(*values), wanted, strict=True):
        assert_same(found, own)
        np.testing.assert_allclose(
            found.astype(np.float64), np.asarray(jax_found).astype(np.float64), rtol=limits, atol=limits
        )


EVERY_CHAIN = [(np.float32, 1), (ml_dtypes.bfloat16, 1), (np.float64, 3), (np.float16, 2)]
EVERY_CHAIN += [pytest.param(dtype, 1, marks=pytest.mark.slow) for dtype in (np.float64, np.float16)]
"""By element type, of how many chains one is compiled: code for f64 is that for f32, and for f16 that for bf16, but
for the types. Slow tests compile all."""


def one_of(every: int, programs: dict[str, Program]) -> dict[str, Program]:
    return {name: programs[name] for name in [*programs][::every]}


@pytest.mark.parametrize(("dtype", "every"), EVERY_CHAIN)
@pytest.mark.parametrize("shape", [UNEVEN, pytest.param(EVEN, marks=pytest.mark.slow)], ids=["uneven", "even"])
def test_rows_of_a_library_are_those_of_a_kernel(
    dtype: Any, every: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_wide = np.dtype(dtype).itemsize > 2
    x, scale, shift = arguments((shape[0] * (1 if is_wide else 2), shape[1]), dtype)
    check_all(one_of(every, PROGRAMS if is_wide else WIDE_PROGRAMS), ROWS, x, scale, shift, monkeypatch)


WITH_FUNCTIONS = [body for body, text in (BODIES | WIDE_BODIES).items() if has_functions(read_body(text))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.float16])
def test_whole_rows_in_the_caches(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    is_wide = np.dtype(dtype).itemsize > 2
    programs = {name: p for name, p in (PROGRAMS if is_wide else WIDE_PROGRAMS).items() if name in WITH_FUNCTIONS}
    check_all(programs, ROWS, *arguments((1 + (1 << 16) // WHOLE, WHOLE), dtype), monkeypatch)


def test_whole_rows_may_take_the_place_of_the_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any) -> Any:
        barrier = jax.lax.optimization_barrier
        return jnp.cumsum(barrier(jax.nn.softmax(barrier(jnp.cumsum(x, 0)), -1)), 0)

    x, *_ = arguments((300, 2 * WHOLE), np.float32)
    text = jax.jit(program).lower(x).as_text()
    from_library = xlapy.compile(text)
    assert ".whole" in from_library.llvm_ir()
    assert_same(from_library(x), without_libraries(text, monkeypatch, xlapy.CompileOptions())(x))


@pytest.mark.parametrize("body", WITH_FUNCTIONS)
def test_whole_rows_are_whole_steps_of_plans(body: str) -> None:
    """Whatever the machine."""
    space = RowSpace((1 << 20, MOST_ON_STACK), (1,))
    for type, name in product((et.F32, et.F64) if body in BODIES else (et.BF16, et.F16), REFERENCE_MACHINES):
        chain = chain_of(read_body((BODIES | WIDE_BODIES)[body]), type, space)
        plan = plan_rows(chain, 0, reference_target(name), in_place=True)
        steps = [plan.lanes, *(reduce.lanes * reduce.vectors for reduce in plan.reduces)]
        assert all(WHOLE % step == 0 for step in steps)


@pytest.mark.parametrize(("dtype", "every"), EVERY_CHAIN)
def test_columns_of_a_library_are_those_of_a_kernel(dtype: Any, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlapy.passes.fusion.rows.LARGE_ARRAY_BYTES", 1 << 20)
    is_wide = np.dtype(dtype).itemsize > 2
    x, scale, shift = arguments((512, 1031), dtype)
    programs = PROGRAMS if is_wide else WIDE_PROGRAMS
    softmaxes = {name: program for name, program in programs.items() if is_softmax(name)}
    check_all(one_of(every, softmaxes), COLUMNS, x.T.copy(), scale, shift, monkeypatch)


@pytest.mark.parametrize("target", TARGETS)
def test_columns_of_arrays_that_no_cache_holds(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their results go past the caches. Longer columns are folded by themselves."""
    x = np.random.default_rng(6).normal(size=(8, 256, 4096)).astype(np.float32)
    text = jax.jit(lambda x: jax.nn.softmax(x, 1)).lower(x).as_text()
    from_library = compiled_for(TARGETS[target], text)
    assert libraries_of(from_library) == ["chain_columns_softmax_f32"]
    leave_libraries_out(monkeypatch)
    from_kernel = compiled_for(TARGETS[target], text)
    assert not libraries_of(from_kernel)
    assert_same(from_library(x), from_kernel(x))


def compiled_for(target: Target, text: str) -> xlapy.Executable:
    options = xlapy.CompileOptions()
    return xlapy.Executable(compile_module(load(text), options, target), options)


@pytest.mark.parametrize("body", [body for body in (*BODIES, *WIDE_BODIES) if is_softmax(body)])
def test_libraries_have_the_strips_of_plans(body: str) -> None:
    """Of any width that plans for large arrays have, whatever the machine, and none that is wider."""
    values = read_body((BODIES | WIDE_BODIES)[body])
    spaces = [RowSpace((3, 1 << bits, 1 << 14), (1,)) for bits in range(6, 12)]
    types = (et.F32, et.F64) if body in BODIES else (et.BF16, et.F16)
    plans = [
        plan_columns(chain_of(values, type, space), LARGE_ARRAY_BYTES, reference_target(name))
        for type, space, name in product(types, spaces, REFERENCE_MACHINES)
    ]
    found, widths = {plan.vectors for plan in plans}, widths_of(body)
    assert found <= {*widths} and max(found) == max(widths)


@pytest.mark.parametrize("columns", [32, 64, 256, 512])
def test_strips_of_any_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlapy.passes.fusion.rows.LARGE_ARRAY_BYTES", 1 << 20)
    x = np.random.default_rng(columns).normal(size=((1 << 21) // columns // 300, 300, columns)).astype(np.float32)
    text = jax.jit(lambda x: jax.nn.log_softmax(x, 1)).lower(x).as_text()
    from_library = xlapy.compile(text)
    found = from_library(x)
    assert_same(found, without_libraries(text, monkeypatch, xlapy.CompileOptions())(x))
    np.testing.assert_allclose(found, np.asarray(jax.nn.log_softmax(x, 1)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 8, 64, 64), (3, 40, 6, 32), (2, 70, 5, 100), (5, 16, 256), (2, 3, 4, 7, 128)])
def test_columns_of_several_matrices(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose rows are several dimensions, of which strips end with the last one."""
    x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
    text = jax.jit(lambda x: jax.nn.softmax(x, 1)).lower(x).as_text()
    from_library = xlapy.compile(text)
    assert libraries_of(from_library) == ([] if shape[-1] == 100 else ["chain_columns_softmax_f32"])
    assert "kind=kOutput" in from_library.hlo_text()
    found = from_library(x)
    np.testing.assert_allclose(found, np.asarray(jax.nn.softmax(x, 1)), rtol=1e-5, atol=1e-6)
    assert_same(xlapy.compile(text, xlapy.CompileOptions(num_threads=3))(x), found)
    assert_same(found, without_libraries(text, monkeypatch, xlapy.CompileOptions())(x))


def test_libraries_have_what_programs_write() -> None:
    others = FOLDED_BODIES | COLUMN_BODIES  # see `test_chain_moments`
    names = {name for name in CHAIN_LIBRARIES if name.split("_", 2)[2].rpartition("_")[0] not in others}
    assert names == {
        library_name(way, name, et.element_type_of(np.dtype(type)))
        for name, type in CASES
        for way in (ROWS, COLUMNS)[: 1 + is_softmax(name)]
    }
    assert {*PROGRAMS, "cross_entropy"} == set(BODIES)
    assert set(WIDE_PROGRAMS) == set(WIDE_BODIES)


@pytest.mark.parametrize("shape", [UNEVEN, (600, 1003), EVEN], ids=["uneven", "pairs", "even"])
def test_a_result_may_take_the_place_of_the_operand(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are then not computed twice: a library that takes them in pairs wants an even number."""

    def program(x: Any, scale: Any, shift: Any) -> Any:
        barrier = jax.lax.optimization_barrier
        return layer_norm(barrier(jax.nn.softmax(barrier(jnp.cumsum(x, 0)), -1)), scale, shift)

    values = arguments(shape, np.float32)
    text = text_of(program, values)
    from_library = xlapy.compile(text)
    pairs = [] if shape == UNEVEN else ["chain_rows_layer_norm_f32"]
    assert libraries_of(from_library) == [*pairs, "chain_rows_softmax_f32"]
    assert ".in_place" in from_library.llvm_ir()
    found = from_library(*values)
    assert_same(found, without_libraries(text, monkeypatch, xlapy.CompileOptions())(*values))


def test_rows_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of them make a block."""
    random = np.random.default_rng(9)
    lengths = [LEAST_LENGTH, LEAST_LENGTH + 1, 100, 341, 700, 1025, MOST_ON_STACK]
    values = [
        random.normal(size=dims).astype(np.float32) for n in lengths for dims in ((300_000 // n + 200, n), (n,), (n,))
    ]

    def program(*operands: Any) -> Any:
        return [layer_norm(*operands[start : start + 3]) for start in range(0, len(operands), 3)]

    text = text_of(program, values)
    from_library = xlapy.compile(text)
    assert libraries_of(from_library) == ["chain_rows_layer_norm_f32"]
    assert "kernel.0" not in from_library.llvm_ir()
    found = from_library(*values)
    for one, other in zip(found, without_libraries(text, monkeypatch, xlapy.CompileOptions())(*values), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("length", [MOST_ON_STACK + 1, 4 * WHOLE * WHOLE, 33_333])
def test_long_rows_are_kept_in_memory_of_tasks(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By any number of threads, and where they take the place of an operand."""
    monkeypatch.setattr("xlapy.codegen.libraries.chain._most_scratch_bytes", lambda *_: math.inf)  # on any machine
    values = arguments((67, length), np.float32)

    def program(x: Any, scale: Any, shift: Any) -> Any:
        added = jax.lax.optimization_barrier(x + scale)
        return jax.nn.softmax(x, -1), jax.nn.softmax(added, -1), layer_norm(x, scale, shift)

    text = text_of(program, values)
    programs = [xlapy.compile(text, xlapy.CompileOptions(num_threads=n)) for n in (1, 2, 3, 8)]
    assert libraries_of(programs[0]) == ["chain_rows_layer_norm_f32", "chain_rows_softmax_f32"]
    wanted = without_libraries(text, monkeypatch, xlapy.CompileOptions())(*values)
    for found in (one(*values) for one in programs):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize("length", [1024, 1040, 1003])
@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_may_go_past_the_caches(name: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of lengths that do not fit are stored as usual, and results that lie elsewhere."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    values = arguments((301, length), np.float32)
    text = text_of(PROGRAMS[name], values)
    wanted = xlapy.compile(text)(*values)
    for module in ("kernels.rows", "libraries.chain"):
        monkeypatch.setattr(f"xlapy.codegen.{module}.is_streamed", lambda *_: True)
    from_library = xlapy.compile(text)
    assert libraries_of(from_library)
    assert_same(from_library(*values), wanted)
    from_kernel = without_libraries(text, monkeypatch, xlapy.CompileOptions())
    assert "!nontemporal" in from_kernel.llvm_ir()
    for _ in range(4):  # numpy puts results at other places each time
        kept = from_kernel(*values)
        assert_same(from_kernel(*values), wanted)
        assert_same(kept, wanted)


def test_rows_and_their_elements_may_have_several_dimensions() -> None:
    def program(x: Any, _scale: Any, _shift: Any) -> Any:
        return jax.nn.softmax(x, (2, 3)), jax.nn.softmax(x, 3)

    values = arguments((7, 50, 12, 150), np.float32)
    executable = xlapy.compile(text_of(program, values))
    assert libraries_of(executable) == ["chain_rows_softmax_f32"]
    for found, wanted in zip(executable(*values), jax.jit(program)(*values), strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=2e-5, atol=1e-7)


def test_the_bits_do_not_depend_on_the_threads() -> None:
    values = arguments((1101, 1003), np.float32)
    text = text_of(lambda *operands: [layer_norm(*operands), PROGRAMS["softmax"](*operands)], values)
    programs = [xlapy.compile(text, xlapy.CompileOptions(num_threads=n)) for n in (1, 2, 3, 8)]
    assert len(libraries_of(programs[0])) == 2
    first, *others = [program(*values) for program in programs]
    for other in others:
        for one, same in zip(first, other, strict=True):
            assert_same(one, same)


def test_constants_are_numbers_of_a_call() -> None:
    x = np.random.default_rng(0).normal(size=UNEVEN).astype(np.float32)

    def program(x: Any) -> Any:
        return [jax.nn.softmax(x * factor, -1) for factor in (0.5, -0.25, 3.0)]

    executable = xlapy.compile(jax.jit(program).lower(x).as_text())
    assert libraries_of(executable) == ["chain_rows_softmax_of_products_f32"]
    for found, wanted in zip(executable(x), program(x), strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_may_be_in_memory(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the caller, those that the program computes, and constants."""
    x = np.random.default_rng(0).normal(size=UNEVEN).astype(dtype)

    def program(x: Any, t: Any) -> Any:
        scale = jnp.full(x.shape[1], 2, x.dtype)
        return [jax.nn.softmax(x * t), jax.nn.softmax(x / t), jax.nn.softmax(x * jnp.exp(t)), rms(x + t, scale, scale)]

    def rms(x: Any, scale: Any, _: Any) -> Any:
        x = jax.lax.optimization_barrier(x)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + scale[0] * 0.5)

    values = [x, np.asarray(0.625, dtype)]
    with jax.enable_x64(True):
        text, wanted = text_of(program, values), jax.jit(program)(*values)
    executable = xlapy.compile(text, xlapy.CompileOptions(verify=True))
    assert len(libraries_of(executable)) == 3
    own = without_libraries(text, monkeypatch, xlapy.CompileOptions())(*values)
    for found, kernel_found, jax_found in zip(executable(*values), own, wanted, strict=True):
        assert_same(found, kernel_found)
        np.testing.assert_allclose(found, np.asarray(jax_found), rtol=2e-5, atol=1e-7)


def test_special_values_are_as_in_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    values = arguments(UNEVEN, np.float32)
    x = values[0]
    x[3, 7], x[4, 9], x[5, 11], x[6] = np.nan, np.inf, -np.inf, -np.inf
    x[7], x[8, 10] = 0, -0.0
    text = text_of(lambda *operands: [layer_norm(*operands), PROGRAMS["softmax"](*operands)], values)
    found = xlapy.compile(text)(*values)
    for one, other in zip(found, without_libraries(text, monkeypatch, xlapy.CompileOptions())(*values), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("dims", [(6, 300, 300), (2, 3, 300, 412), (2, 2, 500, 300), (900, 600)])
def test_each_matrix_has_a_triangle(dims: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).normal(size=dims).astype(np.float32)

    def by_numbers(x: Any) -> Any:
        rows, places = (jax.lax.broadcasted_iota(np.int32, x.shape, x.ndim - n) for n in (2, 1))
        return jax.nn.softmax(jnp.where(places <= rows, x, -1e9), -1)

    def by_array(x: Any) -> Any:
        return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(x.shape[-2:], bool)), x, -1e9), -1)

    for program in (by_numbers, by_array):
        text, wanted = jax.jit(program).lower(x).as_text(), np.asarray(jax.jit(program)(x))
        executable = xlapy.compile(text, xlapy.CompileOptions(verify=True))
        assert libraries_of(executable) == ["chain_rows_weights_in_triangle_f32"]
        found = executable(x)
        with monkeypatch.context() as patch:
            assert_same(found, without_libraries(text, patch, xlapy.CompileOptions())(x))
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-7)


def test_other_triangles_are_compiled() -> None:
    x = np.random.default_rng(2).normal(size=(4, 300, 300)).astype(np.float32)
    stays(lambda x: jax.nn.softmax(jnp.where(jnp.triu(jnp.ones(x.shape[-2:], bool)), x, -1e9), -1), x)
    stays(lambda x: jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(x.shape[-2:], bool), -1), x, -1e9), -1), x)
    stays(lambda x: jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(x.shape[:2], bool))[:, :, None], x, -1e9), -1), x)


def test_blocks_of_rows_between_products_call_libraries() -> None:
    """A softmax in attention, in the memory of the first product."""

    def attention(q: Any, key: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ key.swapaxes(-1, -2) * 0.125, -1) @ v

    random = np.random.default_rng(1)
    values = [random.normal(size=(2, 8, 200, 64)).astype(np.float32) for _ in range(3)]
    executable = xlapy.compile(jax.jit(attention).lower(*values).as_text())
    assert "blocks" in executable.hlo_text()
    assert libraries_of(executable) == ["chain_rows_softmax_of_products_f32"]
    np.testing.assert_allclose(executable(*values), np.asarray(jax.jit(attention)(*values)), rtol=2e-4, atol=1e-5)


def stays(program: Any, *values: np.ndarray[Any, Any]) -> None:
    text = jax.jit(program).lower(*values).as_text()
    executable = xlapy.compile(text, xlapy.CompileOptions(verify=True))
    assert not libraries_of(executable)


def test_other_chains_are_compiled() -> None:
    x, scale, shift = arguments(UNEVEN, np.float32)
    stays(lambda x: jax.nn.softmax(x, -1), x[:50])  # it is small
    stays(lambda x: jax.nn.softmax(x, -1), x[:31, :512])  # whole rows, but still smaller
    stays(lambda x: x / jnp.sqrt((x * x).sum(-1, keepdims=True)), x[:400, :512])  # it takes little work
    stays(lambda x: jnp.exp(x - x.min(-1, keepdims=True)), x)  # another fold
    stays(lambda x, s: layer_norm(x, s, s[::-1]), x, scale)  # a reverse
    stays(
        lambda x: jax.nn.softmax(x, -1), np.ones((20, MOST_ON_STACK * 4), np.float32)[: LEAST_LONG_ROWS - 1]
    )  # few long rows
    stays(lambda x: jax.nn.softmax(x, -1), np.ones((20, MOST_LONG_ROW_BYTES // 4 + 1), np.float32))  # longer ones
    rows = np.random.default_rng(2).normal(size=(UNEVEN[0],)).astype(np.float32)
    stays(lambda x, r: jax.nn.softmax(x * r[:, None], -1), x, rows)  # a number for each row
    stays(lambda x: (jax.nn.softmax(x, -1), x.max(-1)), x)  # two results
    stays(lambda x: jax.nn.softmax(x, -1), np.ones((9000, LEAST_LENGTH - 1), np.float32))  # short rows
    del shift


def test_what_is_repeated_for_rows_is_told_from_what_is_one_for_each() -> None:
    """In a square both have the same dimensions."""
    x, scale, shift = arguments((800, 800), np.float32)

    def by_rows(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale[:, None] + shift

    text = text_of(by_rows, [x, scale, shift])
    executable = xlapy.compile(text)
    assert not libraries_of(executable)
    wanted = np.asarray(jax.jit(by_rows)(x, scale, shift))
    np.testing.assert_allclose(executable(x, scale, shift), wanted, rtol=1e-4, atol=1e-5)


def test_the_order_of_operands_that_commute_does_not_count() -> None:
    one = read_body("x = whole \n s = along \n y = multiply x s \n z = add y # \n w = subtract z x")
    other = read_body("s = along \n x = whole \n y = multiply s x \n z = add # y \n w = subtract z x")
    swapped = read_body("x = whole \n s = along \n y = multiply x s \n z = add y # \n w = subtract x z")
    assert one == other
    assert one != swapped


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [UNEVEN, EVEN], ids=["uneven", "even"])
def test_the_first_step_of_a_fold_may_be_a_chain(
    dtype: Any, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number for each row, and what is folded of these."""

    def cross_entropy(x: Any, y: Any) -> Any:
        return (jax.nn.log_softmax(x, -1) * jax.nn.softmax(y, -1)).sum(-1)

    def losses(x: Any, y: Any, z: Any, w: Any) -> Any:
        return -cross_entropy(x, y).mean(), cross_entropy(z, w)

    random = np.random.default_rng(5)
    values = [random.normal(size=shape).astype(dtype) for _ in range(4)]
    with jax.enable_x64(True):
        text, wanted = text_of(losses, values), jax.jit(losses)(*values)
    from_library = xlapy.compile(text, xlapy.CompileOptions(verify=True, num_threads=2))
    assert libraries_of(from_library) == [library_name(ROWS, "cross_entropy", et.element_type_of(np.dtype(dtype)))]
    assert from_library.hlo_text().count("kind=kOutput") == 2
    from_kernels = without_libraries(text, monkeypatch, xlapy.CompileOptions())
    for found, own, jax_found in zip(from_library(*values), from_kernels(*values), wanted, strict=True):
        assert_same(found, own)
        np.testing.assert_allclose(found, np.asarray(jax_found), rtol=2e-5)


def test_a_program_of_the_builder_calls_a_library() -> None:
    builder = xlapy.XlaBuilder("softmax")
    x = ops.Parameter(builder, 0, xlapy.Shape.array(np.float32, EVEN), "x")
    e = ops.Exp(x - x.reduce(-np.inf, ops.Max, (1,)).broadcast_in_dim(EVEN, (0,)))
    module = builder.build(e / e.reduce(0, ops.Add, (1,)).broadcast_in_dim(EVEN, (0,)))
    executable = xlapy.compile(module)
    assert libraries_of(executable) == ["chain_rows_softmax_f32"]
    value = np.random.default_rng(3).normal(size=EVEN).astype(np.float32)
    np.testing.assert_allclose(executable(value), xlapy.evaluate(module, value), rtol=2e-5)
