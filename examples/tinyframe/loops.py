"""Recurrence: a loop in the program, with its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from examples.tinyframe.autodiff import gradient
from examples.tinyframe.backend import loops as recorded
from examples.tinyframe.backend.recorder import Handle, Recorder
from examples.tinyframe.tensor import Tensor, differentiable_once

Step = Callable[..., Tensor]
"""One round: the state before, an element of the sequence, and the weights give the state after it."""


def scan(step: Step, initial: Tensor, sequence: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """The states after each element of `sequence` (its first dimension is time), one behind the other.

    `step` is recorded once for the loop, and once more for its gradient. It sees only what it is given: tensors that it
    needs besides state and element are `weights`. A state of several parts is one tensor of these parts, joined."""
    recorder = initial.recorder
    rounds = sequence.dims[0]
    room = initial.filled(0, (rounds, *initial.dims))

    def one_round(inner: Recorder, number: Handle, values: Sequence[Handle]) -> Sequence[Handle]:
        states, state, elements, *held = values
        after = step(Tensor(inner, state), Tensor(inner, recorded.row(elements, number)), *_tensors(inner, held))
        return [recorded.with_row(states, number, after.handle), after.handle, elements, *held]

    inputs = (initial, sequence, *weights)
    states, *_ = recorded.repeat(rounds, one_round, [room.handle, *(tensor.handle for tensor in inputs)])
    result = Tensor(recorder, states, inputs, lambda g: _scan_gradient(step, result, inputs, g))
    return result


def _scan_gradient(step: Step, states: Tensor, inputs: Sequence[Tensor], g: Tensor) -> tuple[Tensor, ...]:
    """The loop once more, from the last element to the first. Each round computes its step anew from the state before
    it, and takes the gradient of the state after it, its own and what later rounds want of it, back through the
    step."""
    _, sequence, *weights = inputs
    rounds = sequence.dims[0]

    def one_round(inner: Recorder, number: Handle, values: Sequence[Handle]) -> Sequence[Handle]:
        arrived, to_elements, *rest = values
        to_weights, (wanted, states, first, elements, *held) = rest[: len(weights)], rest[len(weights) :]
        time = Tensor(inner, number) * -1 + (rounds - 1)
        state = _before(inner, time, states, first)
        element = Tensor(inner, recorded.row(elements, time.handle))
        tensors = _tensors(inner, held)
        slope = Tensor(inner, arrived) + Tensor(inner, recorded.row(wanted, time.handle))
        after = step(state, element, *tensors)
        to_state, to_element, *to_held = gradient((after * slope).sum(), [state, element, *tensors])
        totals = [Tensor(inner, total) + more for total, more in zip(to_weights, to_held, strict=True)]
        return [
            to_state.handle,
            recorded.with_row(to_elements, time.handle, to_element.handle),
            *(total.handle for total in totals),
            *(wanted, states, first, elements, *held),
        ]

    zeros = [tensor.filled(0).handle for tensor in inputs]
    held = [tensor.handle for tensor in (g, states, *inputs)]
    slopes = recorded.repeat(rounds, one_round, [*zeros, *held])[: len(inputs)]
    return tuple(differentiable_once(Tensor(g.recorder, slope), (states, *inputs, g), "scan") for slope in slopes)


def _before(inner: Recorder, time: Tensor, states: Handle, first: Handle) -> Tensor:
    """The state before the element at `time`: the first, or the one after the element before."""
    is_first = time.equals(0)
    earlier = Tensor(inner, recorded.row(states, (time - 1).handle))
    initial = Tensor(inner, first)
    return Tensor(inner, inner.select(is_first.broadcast_to(initial.dims).handle, initial.handle, earlier.handle))


def _tensors(inner: Recorder, handles: Sequence[Handle]) -> list[Tensor]:
    return [Tensor(inner, handle) for handle in handles]
