"""Matrix products take what is behind them along: same bits as without, whatever the threads, and XLA's numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xlapy
from tests.support.native import on_threads, together
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.shape import Shape
from xlapy.passes import joint_runs
from xlapy.passes.fusion.epilogues import ProductEpilogues
from xlapy.passes.user import after

THREADS = (1, 2, 3, 8)


def compiled(program: Any, *, fused: bool = True) -> xlapy.Executable:
    """The program, with products of any size fused, or none; each runs by itself."""
    disabled = {joint_runs.NAME} if fused else {joint_runs.NAME, "product-epilogues"}
    passes = (after("fusion", ProductEpilogues(least_bytes=0)),) if fused else ()
    return xlapy.compile(program, xlapy.CompileOptions(disabled_passes=disabled, passes=passes, verify=True))


def leaves_of(value: Any) -> list[np.ndarray]:
    return [leaf for part in value for leaf in leaves_of(part)] if isinstance(value, tuple) else [np.asarray(value)]


def fusions(executable: xlapy.Executable) -> int:
    return executable.hlo_text().count("kind=kCustom")


def same_bits(program: Any, arguments: Sequence[Any], fused: int | None) -> list[np.ndarray]:
    """The results, which must not depend on whether there are `fused` epilogues, nor on the number of threads."""
    apart = compiled(program, fused=False)
    assert fusions(apart) == 0
    expected = leaves_of(apart(*arguments))
    fusing = compiled(program)
    assert fused is None or fusions(fusing) == fused
    for num_threads in THREADS:
        for number, (one, other) in enumerate(
            zip(leaves_of(on_threads(fusing, num_threads)(*arguments)), expected, strict=True)
        ):
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes(), f"result {number}, {num_threads} threads"
    return expected


def normal(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *dims]).standard_normal(dims, np.float32)


# -- against XLA -------------------------------------------------------------------------------------------------------


def dense(activation: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, w, b: activation(x @ w + b)


def masked_scores(q: Any, k: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.125
    return jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)


def convolution(labels: tuple[str, str, str], groups: int = 1, stride: int = 1) -> Callable[..., Any]:
    def function(x: Any, w: Any, b: Any) -> Any:
        strides = (stride,) * (x.ndim - 2)
        y = jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=labels, feature_group_count=groups)
        return jax.nn.relu(y + jnp.expand_dims(b, [d for d in range(y.ndim) if labels[2][d] != "C"]))

    return function


LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    # function, shapes of its arguments, epilogues
    "relu": (dense(jax.nn.relu), [(33, 40), (40, 50), (50,)], 1),
    "gelu, packed": (dense(jax.nn.gelu), [(260, 270), (270, 300), (300,)], 1),
    "tanh, several panels along K": (dense(jnp.tanh), [(130, 1100), (1100, 70), (70,)], 1),
    "sigmoid, strips copied": (dense(jax.nn.sigmoid), [(150, 600), (600, 531), (531,)], 1),
    "rows a power of two apart": (dense(jax.nn.relu), [(64, 32), (32, 1024), (1024,)], 1),
    "one row": (dense(jax.nn.silu), [(1, 65), (65, 3000), (3000,)], 1),
    "one column": (dense(jnp.tanh), [(3000, 65), (65, 1), (1,)], 1),
    "few rows": (dense(jnp.tanh), [(3, 130), (130, 600), (600,)], 1),
    "few columns": (dense(jnp.tanh), [(600, 130), (130, 5), (5,)], 1),
    "a vector": (lambda a, x, b: jnp.tanh(a @ x + b), [(300, 65), (65,), (300,)], 1),
    "a vector, right": (lambda a, x, b: jnp.tanh(x @ a + b), [(65, 300), (65,), (300,)], 1),
    "transposed": (lambda x, w, b: jnp.exp(x.T @ w.T * b), [(40, 70), (90, 40), (90,)], 1),
    "along rows": (lambda x, w, s: (x @ w) * s[:, None] - 1, [(70, 40), (40, 90), (70,)], 1),
    "a scalar": (lambda x, w, s: (x @ w) / s, [(70, 40), (40, 90), ()], 1),
    "squares": (lambda x, w: (x @ w) ** 2, [(70, 40), (40, 90)], 1),
    "two results": (lambda x, w, b: ((z := x @ w + b) > 0, jax.nn.relu(z)), [(70, 40), (40, 90), (90,)], 1),
    "small matrices of a batch": (lambda x, w, b: jnp.exp(-(x @ w) * b), [(9, 10, 16), (9, 16, 12), (9, 1, 12)], 1),
    "matrices of a batch": (lambda x, w, b: jnp.tanh(x @ w + b), [(5, 33, 50), (5, 50, 40), (5, 1, 40)], 1),
    "masked scores, batches apart": (masked_scores, [(2, 40, 3, 16), (2, 40, 3, 16)], 1),
    "several dimensions": (lambda x, w, b: jnp.tensordot(x, w, 1) * b, [(5, 6, 64), (64, 3, 20), (3, 20)], 1),
    "cut another way": (lambda x, w, b: (x @ w).reshape(12, 50) + b, [(30, 40), (40, 20), (50,)], 1),
    "cut in parts": (lambda x, w, b: (x @ w).reshape(30, 4, 5) + b[:, None], [(30, 40), (40, 20), (4,)], 1),
    "as large as the product": (lambda x, w, r: x @ w + r, [(70, 40), (40, 90), (70, 90)], 0),
    "used twice": (lambda x, w: ((z := x @ w) + 1, z.sum()), [(70, 40), (40, 90)], 0),
    "softmax": (lambda x, w: jax.nn.softmax(x @ w), [(70, 40), (40, 90)], 0),
    "two products": (lambda x, w, b: jnp.tanh(x @ w + x @ (w * b)), [(70, 40), (40, 90), (90,)], 0),
    "moved elements": (lambda x, w: jnp.exp((x @ w)[::-1]), [(70, 40), (40, 90)], 0),
    "features last": (convolution(LAST), [(2, 14, 13, 32), (3, 3, 32, 48), (48,)], 1),
    "features last, strided": (convolution(LAST, stride=2), [(2, 30, 26, 16), (3, 3, 16, 48), (48,)], 1),
    "features first": (convolution(FIRST), [(2, 32, 14, 13), (48, 32, 3, 3), (48,)], 0),
    "groups": (convolution(LAST, groups=3), [(2, 14, 13, 96), (3, 3, 32, 96), (96,)], 1),
    "one pixel": (convolution(LAST), [(2, 14, 13, 32), (1, 1, 32, 48), (48,)], 1),
    "one dimension": (convolution(("NWC", "WIO", "NWC")), [(3, 200, 64), (5, 64, 64), (64,)], 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, shapes, fused = PROGRAMS[name]
    arguments = [normal(*dims, seed=number) for number, dims in enumerate(shapes)]
    lowered = jax.jit(function).lower(*arguments)
    got = same_bits(lowered.as_text(), arguments, fused)
    for one, other in zip(got, jax.tree.leaves(lowered.compile()(*arguments)), strict=True):
        if one.dtype == bool:
            assert (one == np.asarray(other)).mean() > 0.99  # a sum next to zero may fall on either side
        else:
            np.testing.assert_allclose(one, np.asarray(other), rtol=2e-4, atol=2e-4)


# -- element types -----------------------------------------------------------------------------------------------------

TYPES = {
    "f32": ("f32", "f32"),
    "f64": ("f64", "f64"),
    "bf16": ("bf16", "bf16"),
    "f16": ("f16", "f16"),
    "f8e5m2": ("f8e5m2", "f8e5m2"),
    "bf16 to f32": ("bf16", "f32"),
    "f8e4m3fn to f32": ("f8e4m3fn", "f32"),
    "s32": ("s32", "s32"),
    "s64": ("s64", "s64"),
    "s8 to s32": ("s8", "s32"),
    "u8 to s32": ("u8", "s32"),
    "c64": ("c64", "c64"),
    "c128": ("c128", "c128"),
}


SIZES = [(33, 50, 40), (3, 300, 64), (300, 2, 64), (1, 700, 64), (100, 270, 1100)]
"""Rows and columns of results, and the number of products in each sum."""


def biased(operand: str, result: str, rows: int, columns: int, depth: int) -> str:
    return f"""HloModule m
      ENTRY main {{
        x = {operand}[{rows},{depth}] parameter(0)
        w = {operand}[{depth},{columns}] parameter(1)
        b = {result}[{columns}] parameter(2)
        d = {result}[{rows},{columns}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        c = {result}[{rows},{columns}] broadcast(b), dimensions={{1}}
        s = {result}[{rows},{columns}] add(d, c)
        ROOT r = {result}[{rows},{columns}] multiply(s, c)
      }}"""


@pytest.mark.parametrize("name", TYPES)
def test_element_types(name: str) -> None:
    operand, result = TYPES[name]
    module = together([biased(operand, result, *sizes) for sizes in SIZES])
    generator = np.random.default_rng(1)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    arguments = [generator.integers(-3, 4, shape.dims).astype(shape.type.dtype) for shape in shapes]
    wide = np.complex128 if result.startswith("c") else np.float64
    results = same_bits(module, arguments, len(SIZES)), xlapy.evaluate(module, *arguments)
    for sizes, got, wanted in zip(SIZES, *results, strict=True):  # sums of small whole numbers are exact
        np.testing.assert_array_equal(got.astype(wide), wanted.astype(wide), str(sizes))


def test_results_of_another_type_of_the_same_width() -> None:
    def function(x: Any, w: Any) -> Any:
        return jax.lax.bitcast_convert_type(x @ w, jnp.int32) & 0xFF, (x @ w * 3).astype(jnp.int32)

    arguments = [normal(70, 40), normal(40, 90)]
    text = jax.jit(lambda x, w: (x @ w * 3).astype(jnp.int32)).lower(*arguments).as_text()
    same_bits(text, arguments, 1)
    text = jax.jit(lambda x, w: x @ w > 0.5).lower(*arguments).as_text()
    same_bits(text, arguments, 0)  # nowhere to compute the product
    same_bits(jax.jit(function).lower(*arguments).as_text(), arguments, None)


# -- loops, donated memory ---------------------------------------------------------------------------------------------


def test_what_is_updated_in_place_stays_a_kernel_of_its_own() -> None:
    """A product cannot be computed where something lies that is still needed."""

    def steps(w: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, 5, lambda _, w: w * 0.5 - 0.1 * (x @ w), w)

    w, x = normal(300), normal(300, 300)
    text = jax.jit(steps).lower(w, x).as_text()
    executable = compiled(text)
    assert fusions(executable) == 0
    found, wanted = executable(w, x), jax.jit(steps)(w, x)
    w, x = w.astype(np.float64), x.astype(np.float64)
    for _ in range(5):
        terms = abs(w) * 0.5 + 0.1 * (abs(x) @ abs(w))
        w = w * 0.5 - 0.1 * (x @ w)
    # Terms of both signs: each sum is rounded some tens of times, by at most half of the last place of what its terms
    # amount to, up and down (found: 0.8 of the last place). What that does to the next step grows as the terms do.
    for result in (found, wanted):
        np.testing.assert_array_less(abs(result - w) / terms, 2 * np.finfo(np.float32).eps)


def test_a_loop_whose_state_is_made_anew() -> None:
    def steps(state: Any, w: Any, b: Any) -> Any:
        return jax.lax.fori_loop(0, 5, lambda _, state: jnp.tanh(state @ w + b), state)

    arguments = [normal(30, 64), normal(64, 64) / 8, normal(64)]
    lowered = jax.jit(steps).lower(*arguments)
    (got,) = same_bits(lowered.as_text(), arguments, 1)
    np.testing.assert_allclose(got, lowered.compile()(*arguments), rtol=1e-4, atol=1e-5)


# -- random programs ---------------------------------------------------------------------------------------------------


class RandomProgram:
    """A product of random sizes and layouts with random element-wise ops behind it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.builder = XlaBuilder("random")
        self.arguments: list[np.ndarray] = []
        value = self.product()
        for _ in range(self.random.randint(1, 6)):
            value = self.random.choice([self.unary, self.binary, self.binary, self.reshaped, self.chosen])(value)
        results = [value, ops.Neg(value)] if self.random.random() < 0.3 else [value]
        self.computation = self.builder.build(ops.Tuple(self.builder, results))

    def parameter(self, dims: tuple[int, ...]) -> XlaOp:
        self.arguments.append(normal(*dims, seed=len(self.arguments)))
        return self.builder.parameter(len(self.arguments) - 1, Shape.of(self.arguments[-1]))

    def sizes(self, count: int) -> tuple[int, ...]:
        return tuple(self.random.choice([1, 2, 3, 5, 8, 16, 17, 33, 40]) for _ in range(count))

    def product(self) -> XlaOp:
        batch = self.sizes(self.random.choice([0, 0, 1]))
        rows, columns = self.sizes(self.random.choice([1, 1, 2])), self.sizes(self.random.choice([1, 1, 2]))
        depth = self.random.choice([8, 40, 65, 600])
        count = len(batch)
        flips = self.random.random() < 0.5, self.random.random() < 0.5
        lhs = (*batch, depth, *rows) if flips[0] else (*batch, *rows, depth)
        rhs = (*batch, depth, *columns) if flips[1] else (*batch, *columns, depth)
        numbers = DotDimensionNumbers(
            (count if flips[0] else len(lhs) - 1,),
            (count if flips[1] else len(rhs) - 1,),
            tuple(range(count)),
            tuple(range(count)),
        )
        return ops.DotGeneral(self.parameter(lhs), self.parameter(rhs), numbers)

    def unary(self, value: XlaOp) -> XlaOp:
        return self.random.choice([ops.Tanh, ops.Neg, ops.Abs, ops.Logistic, ops.Sign])(value)

    def binary(self, value: XlaOp) -> XlaOp:
        return self.random.choice([ops.Add, ops.Mul, ops.Max, ops.Sub])(value, self.operand(value))

    def operand(self, value: XlaOp) -> XlaOp:
        """Something of some of the dimensions, everywhere the same along the others."""
        dims = value.shape.dims
        kept = [dim for dim in range(len(dims)) if self.random.random() < 0.4]
        if math.prod(dims[dim] for dim in kept) == math.prod(dims):
            kept = []
        return ops.BroadcastInDim(self.parameter(tuple(dims[dim] for dim in kept)), dims, kept)

    def chosen(self, value: XlaOp) -> XlaOp:
        return ops.Select(ops.Gt(value, self.operand(value)), value, self.operand(value))

    def reshaped(self, value: XlaOp) -> XlaOp:
        size = math.prod(value.shape.dims)
        divisors = [number for number in range(1, size + 1) if size % number == 0]
        first = self.random.choice(divisors)
        return ops.Reshape(value, [first, size // first])


def check_random(seed: int) -> int:
    """Runs one program; how many epilogues it has."""
    program = RandomProgram(seed)
    got = same_bits(program.computation, program.arguments, None)
    wanted = xlapy.evaluate(program.computation, *program.arguments)
    for one, other in zip(got, leaves_of(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    return fusions(compiled(program.computation))


def test_random_programs() -> None:
    assert sum(check_random(seed) for seed in range(15)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 400, 20))
def test_many_random_programs(start: int) -> None:
    assert sum(check_random(seed) for seed in range(start, start + 20)) >= 5


def test_rows_of_a_product_that_are_those_of_the_results() -> None:
    """Then there is no loop over the latter ones that a block has parts of."""

    def program(*dims: int) -> str:
        shape = ",".join(map(str, dims))
        return f"""HloModule m
          ENTRY main {{
            x = f32[64,48] parameter(0)
            y = f32[48,32] parameter(1)
            bias = f32[{shape}] parameter(2)
            d = f32[64,32] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
            r = f32[64,{shape}] reshape(d)
            b = f32[64,{shape}] broadcast(bias), dimensions={{{",".join(str(dim + 1) for dim in range(len(dims)))}}}
            ROOT z = f32[64,{shape}] add(r, b)
          }}"""

    def loops(text: str) -> int:
        generator = np.random.default_rng(1)
        shapes = [parameter.shape for parameter in xlapy.hlo.parse(text).entry.parameters]
        inputs = [generator.normal(size=shape.dims).astype(np.float32) for shape in shapes]
        executable = compiled(text)
        assert fusions(executable) == 1
        np.testing.assert_array_equal(executable(*inputs), compiled(text, fused=False)(*inputs))
        return executable.llvm_ir().count("\nloop")

    assert loops(program(32)) == loops(program(2, 16)) - 1
