"""Programs that JAX lowers: read in every form, evaluated, written, and read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.stablehlo.structure import structure
from xlapy import stablehlo
from xlapy.hlo.evaluate import evaluate

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
lax = pytest.importorskip("jax.lax")
mlir = pytest.importorskip("jax._src.interpreters.mlir")
ir = pytest.importorskip("jaxlib.mlir.ir")

RANDOM = np.random.default_rng(7)
MATRIX = RANDOM.normal(size=(4, 8)).astype(np.float32)
VECTOR = RANDOM.normal(size=8).astype(np.float32)
UNIT = RANDOM.uniform(-0.9, 0.9, size=(3, 5)).astype(np.float32)
INTEGERS = RANDOM.integers(-50, 50, size=(3, 4)).astype(np.int32)


def elementwise(x, y):
    return (
        x + y, x - y, x * y, x / y, -x, jnp.abs(x), jnp.exp(x), jnp.log1p(jnp.abs(x)), jnp.expm1(x), jnp.tanh(x),
        jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sqrt(jnp.abs(x)), lax.rsqrt(jnp.abs(x)), jnp.cbrt(x), jnp.sign(x),
        jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x), jnp.maximum(x, y), jnp.minimum(x, y), x % y, x**2,
        jnp.arctan2(x, y), lax.logistic(x), jnp.isfinite(x), jnp.isinf(x), jnp.isnan(x), lax.erf(x),
        jnp.where(x > y, x, 0.5), jnp.clip(x, -0.5, y), lax.clamp(-1.0, x, 1.0), lax.reduce_precision(x, 5, 10),
        jnp.square(x), jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x),
        jnp.arctanh(x), jnp.arccosh(1 + jnp.abs(x)), x == y, x != y, x < y, x <= y, x >= y,
    )  # fmt: skip


def integers(x):
    y = jnp.abs(x) % 7 + 1
    u = x.astype(jnp.uint32)
    return (
        x // y, x % y, x & y, x | y, x ^ y, ~x, x << y, x >> y, lax.shift_right_logical(x, y), u + 1, u >> 3,
        lax.population_count(x), lax.clz(x), x.astype(jnp.int8), x.astype(jnp.float32) / 3, (x > 0).astype(jnp.int32),
        jnp.max(x, axis=1), jnp.sum(x), jnp.any(x > 0), jnp.all(x > 0, axis=0), jnp.argmin(x, axis=1), abs(x),
    )  # fmt: skip


def data_movement(x, v):
    return (
        x.T, x.reshape(2, 16), x[1:3, ::2], x[::-1], jnp.concatenate([x, x + 1], axis=1), jnp.stack([x, x]),
        jnp.broadcast_to(v, (3, 4, 8)), jnp.pad(x, ((1, 2), (0, 3))), lax.pad(v, 0.0, [(-1, 2, 1)]), x + v,
        jnp.arange(8) + v, lax.broadcasted_iota(jnp.int32, (2, 3), 1), jnp.transpose(x.reshape(2, 2, 8), (1, 2, 0)),
        lax.dynamic_slice(x, (jnp.argmax(v) - 3, 2), (2, 3)), lax.dynamic_update_slice(x, x[:2, :2], (3, 7)),
        lax.bitcast_convert_type(x, jnp.int32), lax.rev(x, (1,)), jnp.tile(v, 2), jnp.flip(x), jnp.eye(3), x[:0],
    )  # fmt: skip


def folding(x, v):
    def both(a, b):
        return a[0] + b[0], jnp.maximum(a[1], b[1])

    return (
        x.sum(), x.sum(axis=0), x.max(axis=1), jnp.prod(v), jnp.mean(x, axis=1), jnp.argmax(x, axis=0), x @ x.T, x @ v,
        jnp.einsum("ij,ik->jk", x, x), jnp.einsum("bij,bjk->bik", x.reshape(2, 2, 8), x.reshape(2, 8, 2)),
        jax.nn.softmax(x), jnp.var(x), lax.reduce((x, x), (0.0, -jnp.inf), both, (1,)),
        lax.dot(x, x.T, precision="highest"), lax.dot(x.astype(jnp.bfloat16), v.astype(jnp.bfloat16),
        preferred_element_type=jnp.float32),
    )  # fmt: skip


def control_flow(x, v):
    scale = v.sum()
    row = lax.fori_loop(0, 3, lambda i, c: c * v[i] + i + scale, x)
    grown = lax.while_loop(lambda c: c[1] < 10.0 + scale, lambda c: (c[0] + 1, c[1] * 2 + 1), (0, 1.0))
    one_or_other = lax.cond(scale > 0, lambda: row @ x.T, lambda: x @ row.T)
    choice = [lax.switch(i, [lambda a: a, lambda a: a + scale, lambda a: -a], v) for i in (-1, 1, 7)]
    carried, stacked = lax.scan(lambda c, r: (c + r, c * r), v, x)
    nested = lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(0, i + 1, lambda j, d: d + i * j + scale, c), scale)
    return row, grown, one_or_other, choice, carried, stacked, nested, jax.jit(jnp.sin)(x)


def complex_numbers(x):
    z = x + 1j * x[::-1]
    return z * z, jnp.real(z), jnp.imag(z), jnp.abs(z), jnp.exp(z), jnp.conj(z), z / (1 + z), z.astype(jnp.complex64)


def spectra(x, v):
    return (
        jnp.fft.fft(v), jnp.fft.ifft(x), jnp.fft.rfft(x), jnp.fft.irfft(x + 0j), jnp.fft.irfft(v, n=9), jnp.fft.fft2(x),
        jnp.fft.rfft2(x), jnp.fft.irfft2(x + 0j), jnp.fft.fftn(x.reshape(2, 2, 8)), jnp.fft.ifftshift(v),
        jnp.fft.fft(x, axis=0),
    )  # fmt: skip


def constants():
    return (
        jnp.asarray(np.arange(300, dtype=np.float32) / 7), jnp.asarray([[1, -2], [3, 4]], jnp.int8),
        jnp.asarray([True, False, True]), jnp.asarray([1.5, np.inf, -np.inf, np.nan, -0.0], jnp.bfloat16),
        jnp.asarray([1 + 2j, -0.5j]), jnp.asarray([2**31, 5], jnp.uint32), jnp.asarray([1.5, -3.0], jnp.float8_e4m3fn),
        jnp.asarray([-8, 7], jnp.int4), jnp.zeros((0, 3)), jnp.full((2, 2), np.float16(1e-7)),
        jnp.asarray(np.arange(200) % 3 == 0),
    )  # fmt: skip


def layer_gradient(x, v):
    def loss(w, b):
        hidden = jnp.tanh(x @ w + b)
        return jnp.mean((jax.nn.log_softmax(hidden) - x[:, :3]) ** 2)

    return jax.value_and_grad(loss, argnums=(0, 1))(x.T[:, :3], v[:3])


PROGRAMS = [
    (elementwise, (UNIT, UNIT[::-1] + 0.01)),
    (integers, (INTEGERS,)),
    (data_movement, (MATRIX, VECTOR)),
    (folding, (MATRIX, VECTOR)),
    (control_flow, (MATRIX, VECTOR)),
    (complex_numbers, (UNIT,)),
    (spectra, (MATRIX, VECTOR)),
    (constants, ()),
    (layer_gradient, (MATRIX, VECTOR)),
]


@pytest.fixture(params=PROGRAMS, ids=lambda program: program[0].__name__)
def program(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    function, arguments = request.param
    return function, arguments, jax.jit(function).lower(*arguments)


def test_evaluates_as_jax_does(program):
    function, arguments, lowered = program
    results = evaluate(stablehlo.parse(lowered.as_text()), *arguments)
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(results) == len(expected)
    for number, (result, value) in enumerate(zip(results, expected, strict=True)):
        assert result.dtype == value.dtype
        wide = np.complex128 if np.iscomplexobj(result) else np.float64
        result, value = np.asarray(result).astype(wide), np.asarray(value).astype(wide)
        np.testing.assert_allclose(result, value, rtol=5e-5, atol=2e-6, err_msg=f"result {number}")


def test_generic_and_pretty_form_are_one_program(program):
    _, _, lowered = program
    generic = lowered.compiler_ir().operation.get_asm(print_generic_op_form=True)
    assert structure(stablehlo.parse(generic)) == structure(stablehlo.parse(lowered.as_text()))


@pytest.mark.parametrize("pretty", [False, True])
def test_what_is_written_reads_as_the_same(program, pretty):
    _, _, lowered = program
    module = stablehlo.parse(lowered.as_text(debug_info=True))
    text = stablehlo.to_text(module, pretty=pretty)
    again = stablehlo.parse(text)
    assert structure(again) == structure(module)
    assert stablehlo.to_text(again, pretty=pretty) == text


@pytest.mark.parametrize("pretty", [False, True])
def test_mlir_accepts_what_is_written(program, pretty):
    _, _, lowered = program
    text = stablehlo.to_text(stablehlo.parse(lowered.as_text(debug_info=True)), pretty=pretty)
    with mlir.make_ir_context():
        assert ir.Module.parse(text).operation.verify()


def test_locations_become_metadata():
    def double(x):
        return x * 2

    module = stablehlo.parse(jax.jit(double).lower(VECTOR).as_text(debug_info=True))
    (product,) = (i for i in module.entry.post_order() if i.opcode == "multiply")
    assert product.metadata.source_file.endswith("test_jax_programs.py")
    assert product.metadata.source_line == double.__code__.co_firstlineno + 1
    assert "mul" in product.metadata.op_name


def test_one_result_is_an_array_and_several_are_a_tuple():
    assert stablehlo.parse(jax.jit(jnp.sin).lower(VECTOR).as_text()).signature.result.is_array
    both = stablehlo.parse(jax.jit(lambda x: (x, x + 1)).lower(VECTOR).as_text())
    assert len(both.signature.result.parts) == 2
