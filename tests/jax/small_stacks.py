"""Runs programs in threads whose stacks are as small as those of some systems: `python -m tests.jax.small_stacks`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xlapy

STACK_BYTES = 128 * 1024  # as threads have with musl

PROGRAMS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "product": (lambda a: a @ a, (33, 33)),
    "large product": (lambda a: a @ a, (512, 512)),
    "transposed product": (lambda a: a.T @ a, (512, 512)),
    "convolution": (
        lambda a: jax.lax.conv(a.reshape(1, 64, 32, 32), jnp.ones((64, 64, 3, 3)), (1, 1), "SAME"),
        (64, 1024),
    ),
    "columns": (lambda a: a.sum(0), (4096, 4096)),
    "variances": (lambda a: a.var(0), (4096, 512)),
    "softmax": (lambda a: jax.nn.softmax(a, 0), (1024, 512)),
    "sort": (lambda a: jnp.sort(a.ravel()), (300, 1000)),
    "transform": (jnp.fft.fft, (4, 1 << 14)),
    "cholesky": (lambda a: jnp.linalg.cholesky(a @ a.T + 1000 * jnp.eye(128)), (128, 128)),
}


def main() -> None:
    compiled = []
    for function, dims in PROGRAMS.values():
        x = np.random.default_rng(1).random(dims, np.float32)
        compiled.append((xlapy.compile(jax.jit(function).lower(x).as_text()), x))
    threading.stack_size(STACK_BYTES)
    for name, (executable, x) in zip(PROGRAMS, compiled, strict=True):
        results: list[Any] = []

        def run(executable: xlapy.Executable = executable, x: Any = x, results: list[Any] = results) -> None:
            results.append(executable(x))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        np.testing.assert_array_equal(results[0], executable(x))
        print(name)


if __name__ == "__main__":
    main()
