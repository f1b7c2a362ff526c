"""Folds in two steps give what XLA gives, and the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xlapy
from tests.support.machine import LIMITS
from tests.support.native import on_threads
from tests.support.values import assert_same


def normal(*dims: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(dims).astype(dtype)


def repeated_means(x: Any, start: Any) -> Any:
    """In a loop: the parts of one trip are those of the next one's memory."""
    return jax.lax.fori_loop(0, 3, lambda _, c: c + (x * c).mean(), start)


LARGE = (1200, 256)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "sum": (jnp.sum, [normal(*LARGE)]),
    "max": (jnp.max, [normal(*LARGE)]),
    "sum_of_squares": (lambda x: (x * x).sum(), [normal(*LARGE)]),
    "several": (lambda x: (x.sum(), x.max(), (x * x).mean()), [normal(*LARGE)]),
    "log_sum_exp": (jax.scipy.special.logsumexp, [normal(*LARGE)]),
    "few_columns": (lambda x: x.reshape(-1, 8).mean(0) * 2 + 1, [normal(*LARGE)]),
    "few_rows": (lambda x: jnp.sqrt(x.reshape(10, -1).var(1)), [normal(*LARGE)]),
    "integers": (lambda x: x.sum(), [(normal(*LARGE) * 100).astype(np.int32)]),
    "narrow": (lambda x: x.astype(np.float32).sum(), [normal(*LARGE, dtype=np.float16)]),
    "complex": (lambda x: (x * (1 + 1j)).sum(), [normal(*LARGE)]),
    "mean_of_rows": (lambda x: jax.nn.log_softmax(x, 1)[:, 0:1].sum(1).mean(), [normal(64, 100)]),
    "cross_entropy": (lambda x, y: -(jax.nn.log_softmax(x, 1) * y).sum(1).mean(), [normal(64, 100), normal(64, 100)]),
    "of_columns": (lambda x: ((x - x.mean(0)) ** 2).sum(0).max(), [normal(20, 40)]),
    "a_whole_array": (lambda x: jax.nn.softmax(x, 1).max(), [normal(30, 40)]),
    "in_a_loop": (repeated_means, [normal(*LARGE), np.float32(1)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_xla_and_the_same_bits_with_any_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlapy.passes.split_reduction.LEAST_BYTES", 1 << 18)
    function, arguments = PROGRAMS[name]
    lowered = jax.jit(function).lower(*arguments)
    wanted = jax.tree.leaves(lowered.compile()(*arguments))
    first = None
    program = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(verify=True))
    for threads in (1, 2, 3, 8):
        results = jax.tree.leaves(on_threads(program, threads)(*arguments))
        for got, expected in zip(results, wanted, strict=True):
            scale = max(1.0, float(np.abs(arguments[0]).astype(np.float64).sum() * 1e-6))
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5 * scale)
        first = first or results
        for got, same in zip(results, first, strict=True):
            assert_same(got, same)


OF_LIBRARIES = ("sum", "integers", "sum_of_squares")


@pytest.mark.parametrize("name", ["sum", "sum_of_squares", "few_columns", "integers", "cross_entropy"])
def test_two_steps_are_one_kernel_without_an_array_between_them(name: str) -> None:
    function, arguments = PROGRAMS[name]
    program = xlapy.compile(jax.jit(function).lower(*arguments).as_text())
    assert program.compile_stats().fusions == 1
    assert program.compile_stats().kernels == (name not in OF_LIBRARIES)


def test_the_report_says_what_the_second_step_is() -> None:
    function, arguments = PROGRAMS["cross_entropy"]
    program = xlapy.compile(jax.jit(function).lower(*arguments).as_text())
    assert "what is folded of 64 results is its second step: 256 bytes need no array" in program.explain(LIMITS)
