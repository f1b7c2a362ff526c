"""Folding dimensions: reduce and map."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.graph import Computation, Instruction
from xlapy.stablehlo.convert.base import Body, converts, integers
from xlapy.stablehlo.tree import Operation


@converts("stablehlo.reduce")
def reduce(body: Body, operation: Operation) -> Instruction:
    (computation,) = body.called
    operands = promoted(body, body.operands(operation), computation)
    dimensions = integers(operation, "dimensions")
    return body.add("reduce", *operands, called=[computation], dimensions=dimensions)


def promoted(body: Body, operands: Sequence[Instruction], computation: Computation) -> list[Instruction]:
    """The operands in the element types that the computation folds: it may be wider than they are."""
    parameters = computation.signature.parameters
    if len(parameters) != len(operands):
        return list(operands)
    return [
        operand
        if operand.shape.element_type is parameter.element_type or not operand.shape.is_array or not parameter.is_array
        else body.add("convert", operand, shape=operand.shape.with_type(parameter.type))
        for operand, parameter in zip(operands, parameters, strict=True)
    ]


@converts("stablehlo.map")
def map_(body: Body, operation: Operation) -> Instruction:
    dimensions = integers(operation, "dimensions")
    return body.add("map", *body.operands(operation), called=body.called, dimensions=dimensions)
