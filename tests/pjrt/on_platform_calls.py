"""What programs do besides computing, and what becomes of errors."""

from __future__ import annotations

import ctypes
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import io_callback

import xlapy.pjrt

xlapy.pjrt.register()


def test_pure_functions_of_python() -> None:
    function = jax.jit(lambda x: jax.pure_callback(np.sin, x, x * 2) + 1)
    np.testing.assert_allclose(function(np.float32([1, 2])), np.sin([2, 4]) + 1, rtol=1e-6)
    batched = jax.vmap(lambda x: jax.pure_callback(np.sin, x, x, vmap_method="sequential"))
    np.testing.assert_allclose(batched(jnp.arange(3.0)), np.sin(np.arange(3)), rtol=1e-6)


def test_two_programs_call_functions_of_their_own() -> None:
    first = jax.jit(lambda x: jax.pure_callback(lambda v: v + 1, x, x))
    second = jax.jit(lambda x: jax.pure_callback(lambda v: v * 10, x, x) + jax.pure_callback(np.negative, x, x))
    assert [float(first(2.0)), float(second(2.0)), float(first(3.0))] == [3, 18, 4]


def test_ordered_effects_keep_their_order() -> None:
    seen: list[float] = []

    @jax.jit
    def note(x: Any) -> Any:
        for step in range(3):
            io_callback(lambda value: seen.append(float(value)), None, x + step, ordered=True)
        return x

    note(1.0)
    note(10.0)
    jax.effects_barrier()
    assert seen == [1, 2, 3, 10, 11, 12]


def test_functions_of_python_in_loops() -> None:
    seen: list[int] = []

    def body(step: Any, total: Any) -> Any:
        jax.debug.callback(lambda value: seen.append(int(value)), step, ordered=True)
        return total + step

    assert jax.jit(lambda: jax.lax.fori_loop(0, 5, body, 0))() == 10
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3, 4]


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    jax.jit(lambda x: jax.debug.print("x is {}", x))(3)
    jax.effects_barrier()
    assert capsys.readouterr().out == "x is 3\n"


def test_a_function_of_python_may_use_jax() -> None:
    inner = jax.jit(lambda x: x * 2)
    outer = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(inner(v)), x, x) + 1)
    assert outer(3.0) == 7


def test_what_a_function_of_python_raises() -> None:
    def fail(_: Any) -> Any:
        raise ValueError("not today")

    failing = jax.jit(lambda x: jax.pure_callback(fail, x, x))
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?s)in fail.*ValueError: not today"):
            failing(1.0)
    assert jax.jit(lambda x: x + 1)(1.0) == 2


def test_programs_that_cannot_be_compiled() -> None:
    missing = jax.jit(lambda x: jax.ffi.ffi_call("nobody_has_this", x)(x))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"UNIMPLEMENTED.*'nobody_has_this'"):
        missing(1.0)


def test_nans_are_found() -> None:
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.log(-1.0)


def test_programs_are_exported_and_called() -> None:
    exported = export.export(jax.jit(lambda x: jnp.sin(x) @ x))(jax.ShapeDtypeStruct((5,), np.float32))
    again = export.deserialize(exported.serialize())
    x = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(again.call(x), np.sin(x) @ x, rtol=1e-6)
    (rows,) = export.symbolic_shape("rows")
    exported = export.export(jax.jit(lambda x: x.sum(0)))(jax.ShapeDtypeStruct((rows, 2), np.float32))
    assert exported.call(np.ones((7, 2), np.float32)).tolist() == [7, 7]


def test_targets_that_are_registered_with_jax() -> None:
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    def double(result: int, operands: int) -> None:
        operand = ctypes.c_void_p.from_address(operands).value or 0
        for place in range(0, 16, 4):
            ctypes.c_float.from_address(result + place).value = 2 * ctypes.c_float.from_address(operand + place).value

    jax.ffi.register_ffi_target("double", jax.ffi.pycapsule(double), platform="cpu", api_version=0)
    result = jax.ShapeDtypeStruct((4,), np.float32)
    doubled = jax.jit(lambda x: jax.ffi.ffi_call("double", result, custom_call_api_version=1)(x) + 1)
    assert doubled(jnp.arange(4.0)).tolist() == [1, 3, 5, 7]
