"""Loops that run inside of the program: no call of Python between their rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from examples.tinyframe.backend.recorder import Handle, Recorder
from xlapy import ops

Body = Callable[[Recorder, Handle, Sequence[Handle]], Sequence[Handle]]
"""Records one round: with its own recorder, the number of the round (int32) and the state, it gives the new state."""


def repeat(rounds: int, body: Body, state: Sequence[Handle]) -> list[Handle]:
    """The state after `rounds` rounds. The body sees nothing of the program around it but the state."""
    builder = state[0].builder

    def unfinished(values: list[Handle]) -> Handle:
        return values[0] < np.int32(rounds)

    def one_round(values: list[Handle]) -> list[Handle]:
        number, *current = values
        following = body(Recorder(number.builder), number, current)
        return [number + np.int32(1), *following]

    last = ops.While(unfinished, one_round, [ops.Constant(builder, np.int32(0)), *state])
    return [last[position + 1] for position in range(len(state))]


def row(x: Handle, number: Handle) -> Handle:
    """Element `number` along the first dimension."""
    dims = x.shape.dims
    starts = [number, *_zeros(number, len(dims) - 1)]
    return ops.Reshape(ops.DynamicSlice(x, starts, (1, *dims[1:])), dims[1:])


def with_row(x: Handle, number: Handle, value: Handle) -> Handle:
    """`x` with `value` as element `number` along the first dimension; a loop changes its state in place."""
    starts = [number, *_zeros(number, x.shape.rank - 1)]
    return ops.DynamicUpdateSlice(x, ops.Reshape(value, (1, *value.shape.dims)), starts)


def _zeros(number: Handle, count: int) -> list[Handle]:
    zero = ops.Constant(number.builder, np.int32(0))
    return [zero] * count
