"""Order: sort, and CHLO's top_k."""

from __future__ import annotations

from xlapy.hlo.element_types import PRED, U8
from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.convert.base import Body, attribute, converts
from xlapy.stablehlo.tree import Operation


@converts("stablehlo.sort")
def sort(body: Body, operation: Operation) -> Instruction:
    """A negative dimension counts from the last."""
    operands = body.operands(operation)
    dimension = attribute(operation, "dimension", int, -1)
    if dimension < 0 and operands:
        dimension += operands[0].shape.rank
    return body.add(
        "sort",
        *operands,
        called=body.called,
        dimension=dimension,
        is_stable=attribute(operation, "is_stable", bool, False),
    )


@converts("chlo.top_k")
def top_k(body: Body, operation: Operation) -> Instruction:
    """Truth values are ordered as numbers."""
    operands, k = body.operands(operation), attribute(operation, "k", int)
    if not operands or operands[0].shape.type is not PRED:
        return body.add("topk", *operands, k=k, largest=True)
    numbers = body.add("convert", operands[0], shape=operands[0].shape.with_type(U8))
    found = body.add("topk", numbers, k=k, largest=True)
    values, places = (body.add("get-tuple-element", found, index=index) for index in range(2))
    return body.tuple([body.add("convert", values, shape=values.shape.with_type(PRED)), places])
