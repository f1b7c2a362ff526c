"""What programs compute, and in which element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import lax

import xlapy.pjrt

xlapy.pjrt.register()


def square(size: int) -> np.ndarray[Any, Any]:
    """A symmetric matrix that is positive definite."""
    factor = np.random.default_rng(size).normal(size=(size, size)).astype(np.float32)
    return factor @ factor.T + size * np.eye(size, dtype=np.float32)


def test_all_runs_on_xlapy() -> None:
    (device,) = jax.devices()
    assert device.device_kind == "xlapy"
    assert device.client.platform_version.startswith("PJRT C API\nxlapy")
    assert device.platform == jax.default_backend() == "cpu"
    assert jax.devices("cpu") == [device] == jax.local_devices()
    assert jax.jit(lambda x: x + 1)(1).devices() == {device}


def test_operations_run_one_by_one() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    assert (x @ x.T).tolist() == [[5, 14], [14, 50]]
    assert x[:, 1].tolist() == [1, 4]
    assert x.at[0, 0].set(7).sum() == 22
    assert jnp.where(x > 2, x, -x).tolist() == [[0, -1, -2], [3, 4, 5]]


def test_functions_are_transformed() -> None:
    x = np.linspace(-1, 1, 7, dtype=np.float32)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))(x)
    np.testing.assert_allclose(slope, 2 * np.tanh(x) * (1 - np.tanh(x) ** 2), rtol=1e-5, atol=1e-6)
    assert jax.vmap(jnp.dot)(jnp.ones((3, 4)), jnp.ones((3, 4))).tolist() == [4, 4, 4]
    _, tangent = jax.jvp(jnp.sin, (0.0,), (2.0,))
    assert tangent == 2
    assert jax.hessian(lambda x: x @ x)(jnp.ones(2)).tolist() == [[2, 0], [0, 2]]


def test_control_flow() -> None:
    carry, steps = lax.scan(lambda c, x: (c + x, c * x), 0.0, jnp.arange(5.0))
    assert carry == 10 and steps.tolist() == [0, 0, 2, 9, 24]
    assert lax.while_loop(lambda i: i < 10, lambda i: i + 3, 0) == 12
    assert lax.fori_loop(0, 5, lambda i, total: total + i, 0) == 10
    choose = jax.jit(lambda which, x: lax.switch(which, [jnp.negative, jnp.square, jnp.abs], x))
    assert [choose(which, -3.0) for which in range(3)] == [3, 9, 3]
    assert jax.jit(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(False, 0.0) == 1


def test_random_keys() -> None:
    key = jax.random.key(7)
    first, second = jax.random.split(key)
    with jax.enable_x64(False):
        drawn = jax.random.normal(first, (1000,))
    assert abs(float(drawn.mean())) < 0.1 and abs(float(drawn.std()) - 1) < 0.1
    assert jax.random.key_data(jax.random.key(7)).tolist() == [0, 7]
    assert (jax.random.bits(first, (4,)) == jax.random.bits(first, (4,))).all()
    assert (jax.random.bits(first, (4,)) != jax.random.bits(second, (4,))).any()
    assert sorted(jax.random.permutation(key, 10).tolist()) == list(range(10))


@pytest.mark.parametrize("size", [3, 70])
def test_linear_algebra(size: int) -> None:
    matrix = square(size)
    unit = np.eye(size)
    factor = jnp.linalg.cholesky(matrix)
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(jnp.linalg.solve(matrix, matrix), unit, atol=1e-3)
    values, vectors = jnp.linalg.eigh(matrix)
    np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, rtol=1e-3, atol=1e-2)
    left, singular, right = jnp.linalg.svd(matrix)
    np.testing.assert_allclose((left * singular) @ right, matrix, rtol=1e-3, atol=1e-2)
    orthogonal, triangle = jnp.linalg.qr(matrix)
    np.testing.assert_allclose(orthogonal @ triangle, matrix, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(np.sort(jnp.linalg.eigvals(matrix).real), values, rtol=1e-3, atol=1e-2)


def test_fourier_transforms_and_orders() -> None:
    x = np.random.default_rng(0).normal(size=32).astype(np.float32)
    np.testing.assert_allclose(jnp.fft.fft(x), np.fft.fft(x), atol=1e-4)
    np.testing.assert_allclose(jnp.fft.irfft(jnp.fft.rfft(x)), x, atol=1e-5)
    assert (jnp.sort(x) == np.sort(x)).all() and (jnp.argsort(x) == np.argsort(x)).all()
    values, places = lax.top_k(x, 3)
    assert (values == np.sort(x)[:-4:-1]).all() and (x[places] == values).all()
    assert jnp.cumsum(jnp.arange(5)).tolist() == [0, 1, 3, 6, 10]


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (jax.scipy.special.erf, scipy.special.erf),
        (lax.erfc, scipy.special.erfc),
        (lax.bessel_i1e, scipy.special.i1e),
        (jax.scipy.special.erfinv, scipy.special.erfinv),
        (jax.scipy.special.digamma, scipy.special.digamma),
        (jax.scipy.special.gammaln, scipy.special.gammaln),
        (jnp.arcsinh, np.arcsinh),
        (jnp.arctanh, np.arctanh),
        (jnp.cosh, np.cosh),
        (jnp.sinh, np.sinh),
        (jnp.tan, np.tan),
        (jnp.arcsin, np.arcsin),
        (jax.scipy.special.i0e, scipy.special.i0e),
    ],
    ids=lambda function: getattr(function, "__name__", ""),
)
def test_functions_that_come_as_composites(function: Callable[..., Any], reference: Callable[..., Any]) -> None:
    x = np.linspace(0.1, 0.9, 9, dtype=np.float32)
    np.testing.assert_allclose(function(x), reference(x), rtol=1e-5)


def test_functions_that_jaxlib_would_take_apart() -> None:
    """They stay whole, once with what they mean for each type."""
    x = np.linspace(0.1, 0.9, 8, dtype=np.float32)
    lowered = jax.jit(lambda x: (lax.erfc(x), lax.erfc(x + 1), lax.erfc(x[:3]), lax.polygamma(x * 0 + 1, x))).lower(x)
    text = lowered.as_text()
    assert text.count('composite "chlo.erfc"') == 3 and text.count("func private @chlo.erfc") == 2
    whole, *_, poly = lowered.compile()(x)
    np.testing.assert_allclose(whole, scipy.special.erfc(x), rtol=1e-5)
    np.testing.assert_allclose(poly, scipy.special.polygamma(1, x), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(lax.lgamma))(x), scipy.special.digamma(x), rtol=1e-4)
    (rows,) = jax.export.symbolic_shape("rows")
    exported = jax.export.export(jax.jit(lax.erfc))(jax.ShapeDtypeStruct((rows,), np.float32))
    np.testing.assert_allclose(exported.call(x), scipy.special.erfc(x), rtol=1e-5)


NARROW_TYPES = """\
bool int2 int4 int8 int16 int32 uint2 uint4 uint8 uint16 uint32 float16 bfloat16 float32 complex64
float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
float8_e8m0fnu
"""


@pytest.mark.parametrize("name", NARROW_TYPES.split())
def test_arrays_of_every_element_type(name: str) -> None:
    dtype = jnp.dtype(name)
    given = np.array([[1, 1, 0.5, 1], [1, 0.5, 1, 1]] if name == "float8_e8m0fnu" else [[0, 1, 1, 0], [1, 0, 1, 1]])
    given = given.astype(dtype)
    array = jnp.asarray(given)
    assert array.dtype == dtype and array.shape == (2, 4)
    for back in (np.asarray(array), jax.device_get(jax.jit(lambda x: x)(given)), np.array(array.T).T):
        assert back.dtype == dtype and (back == given).all()
    joined = jnp.concatenate([array, array])
    assert joined.dtype == dtype
    assert (np.asarray(joined) == np.concatenate([given, given])).all()
    wide = array.real.astype(jnp.float32) if name == "complex64" else array.astype(jnp.float32)
    assert (np.asarray(wide) == given.real.astype(np.float32)).all()


def test_wide_types() -> None:
    with jax.enable_x64(True):
        x = jnp.arange(3.0)
        assert x.dtype == np.float64
        assert (x * np.pi).tolist() == [0, np.pi, 2 * np.pi]
        assert jnp.array([1 << 40]).dtype == np.int64
        assert jnp.exp(1j * jnp.pi).dtype == np.complex128


def test_many_arguments_and_results() -> None:
    function = jax.jit(lambda *arrays: [array + number for number, array in enumerate(arrays)])
    results = function(*[jnp.full((3,), 10.0 * number) for number in range(20)])
    assert [result.tolist() for result in results] == [[11.0 * number] * 3 for number in range(20)]


def test_empty_things() -> None:
    assert jnp.zeros((0, 3)).sum(0).tolist() == [0, 0, 0]
    assert jax.jit(lambda: ())() == ()
    assert jax.jit(lambda x: None)(1.0) is None
    assert np.asarray(jnp.zeros((2, 0))).shape == (2, 0)


def test_arrays_with_holes_and_in_other_orders() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for given in (x.T, x[::-1], x[:, ::2], np.asfortranarray(x), np.broadcast_to(x[0], (5, 3, 4)), x[1, 2, 3]):
        assert (np.asarray(jax.device_put(given)) == given).all()
        assert (np.asarray(jax.jit(lambda y: y * 2)(given)) == given * 2).all()
    assert np.asarray(jnp.asarray(x).T).tolist() == x.T.tolist()


def test_sizes_too_large_are_refused() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="more than 2\\^48 elements"):
        jnp.zeros((1 << 30, 1 << 20))


def test_options_of_the_compiler() -> None:
    tiny = np.float32([1e-40, 1.0])
    for flushes in (False, True):
        options = {"xlapy_flush_subnormals": flushes, "xlapy_num_threads": 1, "xla_cpu_enable_fast_math": True}
        assert (np.asarray(jax.jit(lambda x: x * 0.5, compiler_options=options)(tiny))[0] == 0) is np.bool_(flushes)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"'xlapy_speed' is no option"):
        jax.jit(lambda x: x, compiler_options={"xlapy_speed": 11})(1.0)
