"""Nanoseconds per element of the math functions: ours, libm's and XLA's, on one core and arrays that fit a cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.accuracy import compiled
from tests.support.accuracy_cases import Case
from tests.support.irlab import HAS_FMA, Compiled
from xlapy.codegen.ir import IRType, KernelBuilder, Value
from xlapy.codegen.math import MATH
from xlapy.codegen.target import host_target

ELEMENTS = 1 << 14
FEW = 32
REPEATS = 50
LARGEST = 10.0
"""Arguments lie within this distance of zero, where programs have them: libm takes much longer for huge angles."""

LIBM = {
    **{name: name for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh")},
    **{name: name for name in ("erf", "erfc", "exp", "exp2", "expm1", "lgamma", "log", "log1p", "log2", "sin")},
    **{name: name for name in ("sinh", "sqrt", "tan", "tanh")},
    "power": "pow",
    "remainder": "fmod",
}
_OTHER_NAMES_IN_JAX: dict[str, Any] = {"power": jax.lax.pow, "remainder": jax.lax.rem, "log2": jnp.log2}


def xla_function(name: str) -> Callable[..., Any]:
    """XLA's form of a function, of jax arrays. f64 needs jax_enable_x64."""
    return jax.jit(_OTHER_NAMES_IN_JAX[name] if name in _OTHER_NAMES_IN_JAX else getattr(jax.lax, name))


def moderate_arguments(case: Case, kind: str) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    lowest, highest = max(case.low, -LARGEST), min(case.high, LARGEST)
    if case.name == "power":
        lowest = 0.0
    bounds = [(lowest, highest), (-LARGEST, LARGEST)][: case.arity]
    return [random.uniform(*bound, ELEMENTS).astype(_dtype(kind)) for bound in bounds]


def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype(np.float32 if kind == "f32" else np.float64)


def our_time(case: Case, kind: str) -> float:
    """In a loop of two vectors of the machine's width at a time, which is what kernels of fewer elements make."""
    lanes = 2 * host_target().lanes(_dtype(kind).itemsize * 8)
    return _time_of_loop(compiled(MATH[case.name], case.arity, kind, lanes, HAS_FMA), case, kind)


def libm_time(case: Case, kind: str) -> float | None:
    """In a loop that calls the C library once for each element; None where C has no such function."""
    if case.name not in LIBM:
        return None
    symbol = LIBM[case.name] + ("f" if kind == "f32" else "")

    def call(k: KernelBuilder, *arguments: Value) -> Value:
        result = k.call(symbol, list(arguments), IRType(kind))
        assert result is not None
        return result

    return _time_of_loop(compiled(call, case.arity, kind, 1, HAS_FMA), case, kind)


def xla_time(case: Case, kind: str) -> float:
    """Of a jitted function."""
    function = xla_function(case.name)

    def prepare(arguments: list[np.ndarray]) -> Callable[[], object]:
        on_device = [jax.device_put(array) for array in arguments]
        return lambda: function(*on_device).block_until_ready()

    return _time_per_element(prepare, case, kind)


def _time_of_loop(loop: Compiled, case: Case, kind: str) -> float:
    def prepare(arguments: list[np.ndarray]) -> Callable[[], object]:
        result = np.empty_like(arguments[0])
        return lambda: loop.call("f", *arguments, result, result.size)

    return _time_per_element(prepare, case, kind)


def _time_per_element(prepare: Callable[[list[np.ndarray]], Callable[[], object]], case: Case, kind: str) -> float:
    """The time of a call less that of a call for a few elements, which is the way from Python and back."""
    arguments = moderate_arguments(case, kind)
    many, few = (_shortest(prepare([array[:count] for array in arguments])) for count in (ELEMENTS, FEW))
    return max(0.0, many - few) / (ELEMENTS - FEW)


def _shortest(run: Callable[[], object]) -> float:
    """Nanoseconds of the quickest of a few runs: what the machine can do while nobody else wants it."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - start)
    return best
