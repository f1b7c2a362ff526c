"""Constants that only products read are packed when the program is compiled, and change nothing but that."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xlapy
import xlapy_runtime
from tests.codegen.kernels.test_convolution_products import PRODUCTS, TARGETS, arguments_of, program
from tests.support.close_results import check_same
from xlapy.codegen.packed_constants import packed_side
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.buffer_plan import BufferPlan, Home, Location
from xlapy.hlo.graph import HloModule
from xlapy.hlo.literal import Literal
from xlapy.hlo.matrix_products import MatrixProduct
from xlapy.hlo.text import parse

Array = np.ndarray[Any, Any]


def normal(*dims: int, dtype: Any = np.float32) -> Array:
    values = np.random.default_rng(dims).standard_normal(dims) * 4
    return values.astype(dtype)


def compiled(function: Callable[..., Any], *arguments: Array, num_threads: int = 2) -> Executable:
    options = xlapy.CompileOptions(num_threads=num_threads, verify=True)
    return xlapy.compile(jax.jit(function).lower(*arguments).as_text(), options)


def sizes_of_constants(executable: Executable) -> list[tuple[Any, int]]:
    """Those that take room: element type and bytes."""
    constants = executable._compiled.program.constants
    return [(constant.dtype, constant.nbytes) for constant in constants if constant.nbytes > 256]


def is_packed(executable: Executable) -> bool:
    """Nothing is left but packed constants."""
    return {dtype for dtype, _ in sizes_of_constants(executable)} == {np.dtype(np.uint8)}


def check(function: Callable[[Array, Array], Any], x: Array, weights: Array) -> Executable:
    """The same results whether the second argument is a constant."""
    constant = compiled(lambda x: function(x, weights), x)
    check_same(constant(x), compiled(function, x, weights)(x, weights))
    return constant


DOTS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "rows": (jnp.dot, (33, 70), (70, 45)),
    "columns": (lambda x, w: jnp.dot(x, w.T), (33, 70), (45, 70)),
    "left side by columns": (lambda x, w: jnp.dot(x.T, w), (70, 133), (70, 45)),
    "batch": (jnp.matmul, (6, 20, 30), (6, 30, 40)),
    "the same for a batch": (jnp.matmul, (6, 20, 30), (30, 40)),
    "heads in the middle": (lambda x, w: jnp.einsum("sbhd,bhde->bhse", x, w), (20, 3, 5, 24), (3, 5, 24, 33)),
    "strips": (lambda x, w: jnp.einsum("md,hdn->mhn", x, w), (40, 24), (5, 24, 33)),
    "pieces along K": (jnp.dot, (20, 2500), (2500, 40)),
    "bias and maximum": (lambda x, w: jnp.maximum(jnp.dot(x, w) + 1, 0), (60, 300), (300, 200)),
    "reshaped": (lambda x, w: jnp.dot(x, w.reshape(60, 45)), (33, 60), (4, 15, 45)),
}


@pytest.mark.parametrize("name", DOTS)
def test_dots(name: str) -> None:
    function, left, right = DOTS[name]
    assert is_packed(check(function, normal(*left), normal(*right)))


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.int32, np.complex64]
)
def test_types(dtype: Any) -> None:
    """Also of as many steps as make an odd number of bytes."""
    wide = {"preferred_element_type": jnp.int32} if dtype is np.int8 else {}
    weights = normal(71, 45, dtype=dtype)
    assert is_packed(check(lambda x, w: jnp.dot(x, w, **wide), normal(33, 71, dtype=dtype), weights))


@pytest.mark.parametrize("name", ["rows", "columns", "batch", "pieces along K", "bias and maximum"])
def test_dots_do_not_depend_on_threads(name: str) -> None:
    function, left, right = DOTS[name]
    x, weights = normal(*left), normal(*right)
    executables = [compiled(lambda x: function(x, weights), x, num_threads=count) for count in (1, 2, 3, 8)]
    assert len({executable(x).tobytes() for executable in executables}) == 1


def test_products_of_donated_arrays() -> None:
    x, weights = normal(70, 70), normal(70, 70)
    text = jax.jit(lambda x: jnp.dot(x, weights) + x, donate_argnums=0).lower(x).as_text()
    executable = xlapy.compile(text)
    assert is_packed(executable)
    check_same(executable(x.copy()), compiled(lambda x, w: jnp.dot(x, w) + x, x, weights)(x, weights))


def test_few_rows_are_multiplied_by_what_lies_as_it_is() -> None:
    executable = check(jnp.dot, normal(4, 70), normal(70, 45))
    assert sizes_of_constants(executable) == [(np.float32, 70 * 45 * 4)]


def test_who_else_reads_a_constant_has_it_as_it_is() -> None:
    executable = check(lambda x, w: jnp.sin(jnp.dot(x, w)) + jnp.cos(w), normal(70, 70), normal(70, 70))
    assert sorted(dtype.name for dtype, _ in sizes_of_constants(executable)) == ["float32", "uint8"]


def test_an_epilogue_that_reads_the_constant_finds_it() -> None:
    executable = check(lambda x, w: jnp.maximum(jnp.dot(x, w), w), normal(90, 90), normal(90, 90))
    assert sorted(dtype.name for dtype, _ in sizes_of_constants(executable)) == ["float32", "uint8"]


def test_products_of_the_same_constant_share_it() -> None:
    executable = check(lambda x, w: jnp.dot(jnp.sin(jnp.dot(x, w)), w), normal(33, 70), normal(70, 70))
    assert [dtype for dtype, _ in sizes_of_constants(executable)] == [np.uint8]


def test_loops_read_packed_constants() -> None:
    def function(x: Any, w: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(jnp.dot(y, w)), x)

    assert is_packed(check(function, normal(33, 70), normal(70, 70) / 30))


def with_constant(text: str, value: Array) -> HloModule:
    """The program with `value` instead of its second parameter."""
    module = parse(text)
    entry = module.entry
    parameter = entry.parameters[1]
    entry.replace(parameter, entry.add("constant", literal=Literal(value)))
    entry.remove([parameter])
    return module


TWO_MATRICES = """HloModule m
ENTRY main {
  x = f32[33,70] parameter(0)
  w = f32[45,70] parameter(1)
  ROOT d = f32[33,45] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}"""


def check_constant_parameter(text: str, arguments: list[Array], target: str | None = None) -> Executable:
    """The same bits whether the second argument is a constant, for any number of threads."""
    options = xlapy.CompileOptions(num_threads=2)
    machine = TARGETS[target] if target else None
    executable = Executable(compile_module(with_constant(text, arguments[1]), options, machine), options)
    wanted = Executable(compile_module(parse(text), options, machine), options)(*arguments)
    assert is_packed(executable)
    assert executable(arguments[0]).tobytes() == wanted.tobytes()
    return executable


CONVOLUTIONS = [name for name in PRODUCTS if not name.startswith("gradient of a kernel")]


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    check_constant_parameter(program(name), arguments_of(program(name), 5))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "name", ["features last", "groups", "bf16", "short lines, many features", "few input features, stride"]
)
def test_convolutions_by_vectors_of_any_length(name: str, target: str) -> None:
    check_constant_parameter(program(name), arguments_of(program(name), 6), target)


@pytest.mark.parametrize(
    "name", ["features last", "groups", "short lines, many features", "more features than positions"]
)
def test_convolutions_do_not_depend_on_threads(name: str) -> None:
    image, kernel = arguments_of(program(name), 7)
    results = set()
    for count in (1, 2, 3, 8):
        options = xlapy.CompileOptions(num_threads=count)
        results.add(Executable(compile_module(with_constant(program(name), kernel), options), options)(image).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("name", ["features last", "bf16"])
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_kernels_with_special_numbers_do_not_meet_what_lies_outside(special: float, name: str) -> None:
    text = program(name)
    image, kernel = arguments_of(text, 8)
    kernel[(0,) * kernel.ndim] = special
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executable = xlapy.compile(with_constant(text, kernel))
    check_same(executable(image), xlapy.evaluate(text, image, kernel))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float32])
def test_special_numbers_are_packed_like_others(dtype: Any) -> None:
    weights = normal(70, 45, dtype=dtype)
    weights[3, :3] = [np.nan, np.inf, -np.inf]
    x = normal(33, 70, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executable = compiled(lambda x: jnp.dot(x, weights), x)
    assert is_packed(executable)
    check_same(executable(x), compiled(jnp.dot, x, weights)(x, weights))


def test_special_numbers_of_the_array_stay_where_they_are() -> None:
    text = program("features last")
    image, kernel = arguments_of(text, 9)
    image[0, 3, 4, 5] = np.inf
    check_same(xlapy.compile(with_constant(text, kernel))(image), xlapy.evaluate(text, image, kernel))


def test_saved_programs_keep_packed_constants(tmp_path: Path) -> None:
    x, weights = normal(33, 70), normal(70, 45)
    executable = compiled(lambda x: jnp.dot(x, weights), x)
    executable.save(tmp_path / "product.xlapy")
    loaded = xlapy_runtime.load(tmp_path / "product.xlapy")
    assert loaded(x).tobytes() == executable(x).tobytes()


@pytest.mark.parametrize("is_turned", [False, True])
def test_what_is_packed_is_the_right_side_in_the_end(is_turned: bool) -> None:
    """Of a product that is stored by columns it is the left one, if that is the constant."""
    entry = with_constant(TWO_MATRICES, normal(45, 70)).entry
    x, constant = entry.parameters[0], entry.root.operands[1]
    sides = (constant, x) if is_turned else (x, constant)
    plan = BufferPlan({x: (Location(Home.ARENA, 0),), constant: (Location(Home.CONSTANT, 0),)}, (constant,), 0, 0)
    by_rows = {"m": 33, "n": 45, "c_row": 45, "c_column": 1, "a_row": 70, "a_step": 1, "b_step": 1, "b_column": 70}
    by_columns = {**by_rows, "m": 45, "n": 33, "c_row": 1, "c_column": 45}
    sizes = {"batches": 1, "k": 70, "a_batch": 0, "b_batch": 0, "c_batch": 0, **(by_columns if is_turned else by_rows)}
    packed = packed_side(plan, host_target(), MatrixProduct("f32", sizes), sides)
    assert packed is not None
    assert packed.side == (0 if is_turned else 1)
    assert packed_side(plan, host_target(), MatrixProduct("f32", sizes), sides[::-1]) is None
    changed = {name for name, value in packed.call.sizes.items() if sizes.get(name) != value}
    assert changed == ({"a_row", "a_step", "b_strip"} if is_turned else {"b_column", "b_step", "b_strip"})


def test_memory_is_that_of_the_packed_constant() -> None:
    weights = normal(2000, 1000)
    executable = compiled(lambda x: jnp.dot(x, weights), normal(33, 2000))
    ((_, size),) = sizes_of_constants(executable)
    assert weights.nbytes <= size <= 1.05 * weights.nbytes
