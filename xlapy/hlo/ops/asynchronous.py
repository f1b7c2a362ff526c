"""Asynchronous wrappers: a computation that may run beside its caller, begun by one op and awaited by another.

Collectives have pairs of their own, which derive from their rows (`all-gather-start`, `all-gather-done`).
"""

from __future__ import annotations

from xlapy.hlo.ops.spec import Regions, ResultShape, Trait, Variadic, op
from xlapy.hlo.ops.structure import check_arguments
from xlapy.hlo.shape import Shape, Signature
from xlapy.support.errors import ShapeError


@op("async-start", traits={Trait.CONTROL}, hlo_text={"computation": "calls"})
def async_start(operands: Variadic, *, computation: Signature, result: ResultShape) -> Shape:
    """Begins to run a computation. The result is ((operands), result, contexts), for async-done.

    parameters: the arguments have the shapes of the parameters.
    started: the result is a tuple of the operands as a tuple, the computation's result, and any number of contexts,
    which nobody reads.
    """
    check_arguments("parameters", operands, computation)
    known = Shape.tuple([Shape.tuple([*operands]), computation.result])
    if not result.is_tuple or len(result.parts) < 2 or not known.matches(Shape.tuple(result.parts[:2])):
        raise ShapeError("started", f"{result} does not begin with {known}")
    return Shape.tuple([*known.parts, *result.parts[2:]])


@op("async-update", traits={Trait.CONTROL}, hlo_text={"wrapped": "calls"})
def async_update(started: Shape, *, wrapped: Regions) -> Shape:
    """Passes on what async-start has begun.

    started: the operand is the result of async-start, or of another update.
    """
    _check_started(started)
    return started


@op("async-done", traits={Trait.CONTROL}, hlo_text={"wrapped": "calls"})
def async_done(started: Shape, *, wrapped: Regions) -> Shape:
    """Waits for what async-start has begun, and returns its result.

    started: the operand is the result of async-start, or of an update.
    """
    _check_started(started)
    return started.parts[1]


def _check_started(started: Shape) -> None:
    if not started.is_tuple or len(started.parts) < 2 or not started.parts[0].is_tuple:
        raise ShapeError("started", f"{started} is not what async-start returns: ((operands), result, contexts)")
