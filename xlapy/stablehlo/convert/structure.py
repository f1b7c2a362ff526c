"""Constants, tuples, tokens, barriers."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.convert.base import Body, attribute, constant_literal, converts
from xlapy.stablehlo.tree import CONSTANTS, Operation


@converts(*sorted(CONSTANTS))
def constant(body: Body, operation: Operation) -> Instruction:
    return body.add("constant", literal=constant_literal(operation))


@converts("stablehlo.tuple")
def tuple_(body: Body, operation: Operation) -> Instruction:
    return body.tuple(body.operands(operation))


@converts("stablehlo.get_tuple_element")
def get_tuple_element(body: Body, operation: Operation) -> Instruction:
    return body.add("get-tuple-element", *body.operands(operation), index=attribute(operation, "index", int))


@converts("stablehlo.after_all", "stablehlo.create_token")
def after_all(body: Body, operation: Operation) -> Instruction:
    return body.add("after-all", *body.operands(operation))


@converts("stablehlo.optimization_barrier")
def optimization_barrier(body: Body, operation: Operation) -> Instruction:
    return body.add("opt-barrier", body.pack(body.operands(operation)))


@converts("sdy.sharding_constraint")
def sharding_constraint(body: Body, operation: Operation) -> Instruction:
    """Says only where the operand lives."""
    (operand,) = body.operands(operation)
    return operand
