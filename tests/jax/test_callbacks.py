"""Python functions that JAX programs call: `pure_callback`, `io_callback`, `debug.callback`, `debug.print`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import xlapy.jax
from tests.jax.agreement import assert_agree

VECTOR = np.array([3, -1, 2], np.float32)
SCALAR = jax.ShapeDtypeStruct((), np.float32)


class Log:
    """Remembers what it was called with."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def __call__(self, *values: Any) -> np.float32:
        self.entries.append(tuple(np.asarray(value).tolist() for value in values))
        return np.float32(sum(np.sum(value) for value in values))


def test_pure_callbacks() -> None:
    def function(x: Any) -> Any:
        ordered, positions = jax.pure_callback(
            lambda v: (np.sort(v), np.argsort(v).astype(np.int32)), (x, jax.ShapeDtypeStruct((3,), np.int32)), x
        )
        each = jax.vmap(lambda v: jax.pure_callback(lambda w: w * 2, v, v, vmap_method="sequential"))(x)
        together = jax.vmap(lambda v: jax.pure_callback(lambda w: w + 1, v, v, vmap_method="expand_dims"))(x)
        matrix = jax.pure_callback(lambda v: np.outer(v, v), jax.ShapeDtypeStruct((3, 3), np.float32), x)
        return ordered, positions, each, together, matrix @ x

    assert_agree(function, VECTOR)


def test_what_a_callback_gets_is_its_own() -> None:
    kept = []

    def keep(v: Any) -> Any:
        kept.append(v)
        return v

    function = xlapy.jax.jit(lambda x: jax.pure_callback(keep, x, x * 2) + 1)
    function(VECTOR)
    function(VECTOR * 10)
    assert [np.asarray(v).tolist() for v in kept] == [(VECTOR * 2).tolist(), (VECTOR * 20).tolist()]


def test_ordered_effects_happen_in_order() -> None:
    """In the program, in loops and in branches; and the results of calls in order are results."""
    logs = Log(), Log()

    def function(log: Log, x: Any) -> Any:
        def note(*values: Any) -> Any:
            return io_callback(log, SCALAR, *values, ordered=True)

        def step(total: Any, element: Any) -> Any:
            seen = note(element, total)
            return total + seen, seen

        total, seen = lax.scan(step, note(x), x)
        total = lax.while_loop(lambda t: t < 100, lambda t: t + note(t) + 50, total)
        branch = lax.cond(total > 0, lambda t: note(t, t), lambda t: t, total)
        note()
        return branch, seen

    ours = xlapy.jax.jit(lambda x: function(logs[0], x))(VECTOR)
    theirs = jax.jit(lambda x: function(logs[1], x))(VECTOR)
    jax.effects_barrier()
    assert logs[0].entries == logs[1].entries and len(logs[0].entries) > 6
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_unordered_effects_happen_as_often() -> None:
    log = Log()

    def function(x: Any) -> Any:
        jax.debug.callback(log, x)
        lax.fori_loop(0, 3, lambda i, _: jax.debug.callback(log, i), None)
        return io_callback(log, SCALAR, x[0])

    assert xlapy.jax.jit(function)(VECTOR) == VECTOR[0]
    assert sorted(log.entries, key=str) == [(0,), (1,), (2,), (3.0,), (VECTOR.tolist(),)]


def test_prints(capfd: pytest.CaptureFixture[str]) -> None:
    @xlapy.jax.jit
    def function(x: Any) -> Any:
        jax.debug.print("first {}", x, ordered=True)
        jax.debug.print("then {total:.1f}", total=x.sum(), ordered=True)

    assert function(VECTOR) is None
    assert capfd.readouterr().out == "first [ 3. -1.  2.]\nthen 4.0\n"

    assert xlapy.jax.jit(lambda x: jax.debug.print("{}", x[0]))(VECTOR) is None
    assert capfd.readouterr().out == "3.0\n"


@pytest.mark.parametrize("ordered", [True, False])
def test_exceptions_arrive_in_the_caller(ordered: bool) -> None:
    class Mine(Exception):
        pass

    is_broken = True

    def fail(v: Any) -> Any:
        if is_broken:
            raise Mine("not today")
        return v

    function = xlapy.jax.jit(lambda x: io_callback(fail, x, x, ordered=ordered))
    with pytest.raises(Mine, match="not today"):
        function(VECTOR)
    is_broken = False
    np.testing.assert_array_equal(function(VECTOR), VECTOR)


def test_wrong_results_of_a_callback_are_errors() -> None:
    function = xlapy.jax.jit(lambda x: jax.pure_callback(lambda v: v[:2], x, x))
    with pytest.raises(RuntimeError, match=r"[Ss]hape"):
        function(VECTOR)


def test_programs_that_are_alike_but_for_their_functions() -> None:
    function = xlapy.jax.jit(lambda x, f: jax.pure_callback(f, x, x), static_argnums=1)
    for _ in range(2):
        assert function(VECTOR, np.sort).tolist() == [-1, 2, 3]
        assert function(VECTOR, np.negative).tolist() == [-3, 1, -2]


def test_gradients_around_callbacks() -> None:
    @jax.custom_jvp
    def double(x: Any) -> Any:
        return jax.pure_callback(lambda v: v * 2, x, x)

    double.defjvp(lambda primals, tangents: (double(*primals), tangents[0] * 2))
    assert_agree(jax.value_and_grad(lambda x: jnp.sum(double(x) ** 2)), VECTOR)


def test_the_executable_takes_tokens_first() -> None:
    function = xlapy.jax.jit(lambda x: io_callback(np.negative, x, x, ordered=True))
    token, negated = function.executable(VECTOR)(None, VECTOR)
    assert token is None
    np.testing.assert_array_equal(negated, -VECTOR)
