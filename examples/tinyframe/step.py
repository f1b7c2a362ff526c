"""Functions of tensors as native programs: recorded once per signature, compiled once, called with numpy arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from examples.tinyframe.autodiff import gradient
from examples.tinyframe.backend.recorder import Program, Recorder
from examples.tinyframe.layers.base import Training
from examples.tinyframe.optimizers import Optimizer
from examples.tinyframe.tensor import Tensor
from examples.tinyframe.tree import Structure, Tree, flatten

_SCALARS = {float: np.float32, int: np.int32}
"""What Python's numbers are: layers compute in f32, which f64 does not mix with."""

Signature: TypeAlias = tuple[Structure, tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]]


class Compiled:
    """A function of trees of tensors, callable with trees of arrays. Calls from several threads are safe.

    The first `in_place` arguments are given up by a call: the function returns as many trees of their structures first,
    and those take over their memory where they can."""

    def __init__(self, function: Callable[..., Tree], name: str, in_place: int = 0) -> None:
        self._function = function
        self._name = name
        self._in_place = in_place
        self._programs: dict[Signature, tuple[Program, Structure]] = {}
        self._lock = threading.Lock()

    @property
    def programs(self) -> list[Program]:
        """What was compiled so far, one program per signature."""
        return [program for program, _ in self._programs.values()]

    def __call__(self, *arguments: Tree) -> Tree:
        leaves, structure = flatten(arguments)
        arrays = [np.asarray(leaf, _SCALARS.get(type(leaf))) for leaf in leaves]
        signature = (structure, tuple((array.shape, array.dtype) for array in arrays))
        program, results = self._programs.get(signature) or self._compile(signature)
        return results.rebuild(program(arrays))

    def __repr__(self) -> str:
        return f"<Compiled {self._name}, for {len(self._programs)} signatures so far>"

    def _compile(self, signature: Signature) -> tuple[Program, Structure]:
        with self._lock:
            if signature not in self._programs:
                self._programs[signature] = self._record(signature)
            return self._programs[signature]

    def _record(self, signature: Signature) -> tuple[Program, Structure]:
        structure, leaves = signature
        recorder = Recorder.of_program(self._name)
        tensors = [Tensor(recorder, recorder.parameter(dims, dtype)) for dims, dtype in leaves]
        outcome, results = flatten(self._function(*structure.rebuild(tensors)))
        given_up = structure.children[: self._in_place]
        if results.children[: self._in_place] != given_up:
            raise ValueError(f"{self._name} returns other structures first than those of its first arguments")
        return recorder.compile([tensor.handle for tensor in outcome], sum(tree.leaves for tree in given_up)), results


def compiled(function: Callable[..., Tree], in_place: int = 0) -> Compiled:
    """`function`, compiled anew for each combination of structure, shapes and types that it is called with."""
    name = getattr(function, "__name__", type(function).__name__)
    return Compiled(function, name.strip("<>"), in_place)


def compiled_step(loss: Callable[..., Tensor], optimizer: Optimizer) -> Compiled:
    """A training step as one program: loss, its gradient, and the optimizer's update.

    `loss(parameters, training, *batch)` is a scalar. The step maps (parameters, state, rate, *batch) to
    (parameters, state, loss); parameters and state change in place, so that callers go on with what it returns.
    """

    def training_step(parameters: Tree, state: Tree, rate: Tensor, *batch: Tensor) -> tuple[Tree, Tree, Tensor]:
        training = Training()
        value = loss(parameters, training, *batch)
        moved, state = optimizer.update(parameters, gradient(value, parameters), state, rate)
        return training.finish(parameters, moved), state, value

    return compiled(training_step, in_place=2)
