"""The operations of CHLO that broadcast their operands, as numpy does, or as `broadcast_dimensions` says."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Dims
from xlapy.stablehlo.convert.base import Body, Converter, converts, enumerator, integers
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError, ShapeError

BINARY = (
    *("add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "next-after", "or", "polygamma"),
    *("power", "remainder", "shift-left", "shift-right-arithmetic", "shift-right-logical", "subtract", "xor", "zeta"),
)


def _broadcast_op(opcode: str) -> Converter:
    def convert(body: Body, operation: Operation) -> Instruction:
        return body.add(opcode, *_broadcast_operands(body, operation))

    return convert


for _opcode in BINARY:
    converts(f"chlo.broadcast_{OPS[_opcode].python_name}")(_broadcast_op(_opcode))


@converts("chlo.broadcast_compare")
def broadcast_compare(body: Body, operation: Operation) -> Instruction:
    directions = {direction.value: direction for direction in ComparisonDirection}
    kinds = {kind.value: kind for kind in ComparisonType}
    kind = operation.attributes.get("compare_type", "NOTYPE")
    return body.add(
        "compare",
        *_broadcast_operands(body, operation),
        direction=enumerator(operation, "comparison_direction", directions),
        type=None if kind == "NOTYPE" else enumerator(operation, "compare_type", kinds),
    )


@converts("chlo.broadcast_select")
def broadcast_select(body: Body, operation: Operation) -> Instruction:
    return body.add("select", *_broadcast_operands(body, operation))


def _broadcast_operands(body: Body, operation: Operation) -> list[Instruction]:
    """The operands with the dimensions of them all. Without `broadcast_dimensions`, last dimensions belong together."""
    operands = body.operands(operation)
    rank = max(operand.shape.rank for operand in operands)
    given = integers(operation, "broadcast_dimensions") if "broadcast_dimensions" in operation.attributes else None
    places = [_places(operand, rank, given) for operand in operands]
    sizes = [1] * rank
    for operand, places_of_operand in zip(operands, places, strict=True):
        for size, place in zip(operand.shape.dims, places_of_operand, strict=True):
            if size != 1 and sizes[place] not in (1, size):
                shapes = ", ".join(str(each.shape) for each in operands)
                raise ShapeError(f"{operation.mnemonic}.same-dims", f"{shapes} do not broadcast to one shape")
            sizes[place] = max(sizes[place], size) if size else 0
    return [_expanded(body, operand, tuple(sizes), place) for operand, place in zip(operands, places, strict=True)]


def _places(operand: Instruction, rank: int, given: Sequence[int] | None) -> Sequence[int]:
    """The dimension of the result that each dimension of an operand becomes."""
    own = operand.shape.rank
    if own == rank or given is None:
        return range(rank - own, rank)
    if len(given) != own or not all(0 <= place < rank for place in given):
        raise ParseError(f"broadcast_dimensions {list(given)} do not place {operand.shape} in {rank} dimensions")
    return given


def _expanded(body: Body, operand: Instruction, sizes: Dims, places: Sequence[int]) -> Instruction:
    shape = operand.shape
    if shape.dims == sizes:
        return operand
    kept = [dim for dim, place in enumerate(places) if shape.dims[dim] == sizes[place]]
    if len(kept) != shape.rank:
        operand = body.add("reshape", operand, shape=shape.select_dims(kept))
    target = shape.with_dims(sizes, (False,) * len(sizes))
    return body.add("broadcast", operand, shape=target, dimensions=tuple(places[dim] for dim in kept))


@converts("chlo.constant_like")
def constant_like(body: Body, operation: Operation) -> Instruction:
    """constant_like(x) {value} -> value, in the shape of x"""
    (operand,) = body.operands(operation)
    value = operation.attributes.get("value")
    number = value.scalar() if isinstance(value, Literal) else value
    if not isinstance(number, (bool, int, float, complex)):
        raise ParseError(f"{operation.name} needs the attribute `value`, a number")
    result = body.full(number, operand.shape)
    # A `?` has the size that it has in what the constant is combined with.
    return body.add("select", body.constant(True, bool), result, operand) if operand.shape.is_unbounded else result
