"""The process that one checkout of xlapy lives in: a script of its own, so that no other checkout is imported.

It reads pickled commands from its input, and writes an answer to each: `benchmarks.checkouts` has the other end.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import xlapy

_SHORTEST_BATCH_SECONDS = 0.001
_LIBRARIES = frozenset({"hosts", "library"})


class _Checkout:
    """The commands, each a method."""

    def __init__(self) -> None:
        self._text = ""
        self._inputs: list[np.ndarray] = []
        self._call: Callable[..., Any] = tuple
        self._batch = 1

    def open(self, text: str, inputs: list[np.ndarray], warm_up_seconds: float) -> None:
        """Compiles a program, runs it for a while, and finds how many calls to make between looks at the clock."""
        self._text, self._inputs, self._batch = text, [array.view(array.dtype.type) for array in inputs], 1
        self._call = xlapy.compile(text)
        deadline = time.perf_counter() + warm_up_seconds
        while True:
            began = time.perf_counter()
            self._repeat()
            ended = time.perf_counter()
            if ended - began < _SHORTEST_BATCH_SECONDS:
                self._batch *= 2
            elif ended > deadline:
                return

    def sample(self, seconds: float) -> float:
        """Seconds per call, over calls that take at least `seconds` together."""
        calls, began = 0, time.perf_counter()
        while True:
            self._repeat()
            calls += self._batch
            elapsed = time.perf_counter() - began
            if elapsed >= seconds:
                return elapsed / calls

    def compile(self, _: float) -> float:
        """Seconds to compile the program again, with the libraries cached, but nothing of programs. Folders stay."""
        for entry in Path(os.environ["XLAPY_CACHE_DIR"]).glob("*/*"):
            if entry.parent.name not in _LIBRARIES:
                entry.unlink(missing_ok=True)
        gc.collect()
        began = time.perf_counter()
        xlapy.compile(self._text)
        return time.perf_counter() - began

    def _repeat(self) -> None:
        call, inputs = self._call, self._inputs
        for _ in repeat(None, self._batch):
            call(*inputs)


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    checkout = _Checkout()
    while True:
        try:
            command, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (True, getattr(checkout, command)(*arguments))
        except Exception as error:  # noqa: BLE001 (whatever a checkout raises is what is to be seen)
            answer = (False, f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
