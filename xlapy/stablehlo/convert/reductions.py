"""Folding dimensions: reduce and map."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import Body, converts, integers
from xlapy.stablehlo.tree import Operation


@converts("stablehlo.reduce")
def reduce(body: Body, operation: Operation) -> Instruction:
    (computation,) = body.called
    operands = promoted(body, body.operands(operation), computation)
    dimensions = integers(operation, "dimensions")
    return body.add("reduce", *operands, called=[computation], dimensions=dimensions)


def promoted(body: Body, operands: Sequence[Instruction], computation: Computation) -> list[Instruction]:
    """The inputs and their initial values in the element types that the computation folds, which may be wider.

    Where they do not agree among themselves they are left as they are, for the rule of the op to refuse."""
    parameters = computation.signature.parameters
    types = [operand.shape.element_type for operand in operands]
    count = len(operands) // 2
    if len(parameters) != len(operands) or types[:count] != types[count:]:
        return list(operands)
    return [promoted_operand(body, operand, parameter) for operand, parameter in zip(operands, parameters, strict=True)]


def promoted_operand(body: Body, operand: Instruction, parameter: Shape) -> Instruction:
    """The operand in the element type of the parameter, if that is a wider one of the same kind."""
    shape = operand.shape
    if not (shape.is_array and parameter.is_array) or shape.type is parameter.type:
        return operand
    if shape.type.kind != parameter.type.kind or shape.type.bits > parameter.type.bits:
        return operand
    return body.add("convert", operand, shape=shape.with_type(parameter.type))


@converts("stablehlo.map")
def map_(body: Body, operation: Operation) -> Instruction:
    dimensions = integers(operation, "dimensions")
    return body.add("map", *body.operands(operation), called=body.called, dimensions=dimensions)
