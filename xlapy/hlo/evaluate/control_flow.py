"""Call, while, conditional, fusion, asynchronous wrappers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import FusionKind, OutputOperandAlias
from xlapy.hlo.evaluate.base import Steps, Value, evaluator, run
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.graph import Computation
from xlapy.hlo.shape import Shape


@evaluator("call")
def call(operands: Sequence[Value], *, computation: Computation, is_composite: bool) -> Steps:
    return (yield from run(computation, *operands))


@evaluator("async-start")
def async_start(operands: Sequence[Value], *, computation: Computation, result: Shape) -> Steps:
    """Runs to the end; contexts are zeros."""
    value = yield from run(computation, *operands)
    contexts = (np.zeros((), part.type.dtype) for part in result.parts[2:])
    return tuple(operands), value, *contexts


@evaluator("async-update")
def async_update(started: Value, *, wrapped: Sequence[Computation]) -> Value:
    return started


@evaluator("async-done")
def async_done(started: Value, *, wrapped: Sequence[Computation]) -> Value:
    return started[1]


@evaluator("fusion")
def fusion(
    operands: Sequence[Value],
    *,
    computation: Computation,
    kind: FusionKind,
    output_to_operand_aliasing: tuple[OutputOperandAlias, ...],
) -> Steps:
    return (yield from run(computation, *operands))


@evaluator("while")
def while_(init: Value, *, condition: Computation, body: Computation) -> Steps:
    state = init
    while (yield from run(condition, state)):
        state = yield from run(body, state)
    return state


@evaluator("conditional")
def conditional(selector: Array, operands: Sequence[Value], *, branches: Sequence[Computation]) -> Steps:
    """A selector out of range takes the last branch."""
    if selector.dtype == np.bool_:
        chosen = 0 if selector else 1
    else:
        chosen = int(selector) if 0 <= selector < len(branches) else len(branches) - 1
    return (yield from run(branches[chosen], operands[chosen]))
