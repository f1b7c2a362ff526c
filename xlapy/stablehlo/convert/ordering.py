"""Order: sort, and CHLO's top_k."""

from __future__ import annotations

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
    return body.add("topk", *body.operands(operation), k=attribute(operation, "k", int), largest=True)
