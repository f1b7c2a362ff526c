"""What a bitcast means, apart from layouts: a chain of operations on logical arrays.

Its bytes are those of the operand, in the order that the operand has in memory, as elements of the result, in the order
of its memory. An element narrower than a byte is the low bits of a byte whose other bits are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from xlapy.hlo.element_types import PRED, U8, ElementType, element_type_named
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.support.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of the chain, on the result of the one before it."""

    opcode: str
    shape: Shape
    attributes: dict[str, Any] = field(default_factory=dict)


def logical_steps(bitcast: Instruction) -> list[Step]:
    """The chain for a bitcast, without operations that change nothing.

    Raises UnsupportedError for elements whose bits no operation takes apart."""
    operand = bitcast.operands[0].shape
    try:
        return list(_changing(operand.without_layout(), _steps(operand, bitcast.shape)))
    except UnsupportedError as error:
        raise error.add_context(subject=bitcast.name) from None


def _changing(shape: Shape, steps: Iterator[Step]) -> Iterator[Step]:
    """The steps that change something. A transpose does, unless it keeps all dimensions where they are."""
    for step in steps:
        order = step.attributes.get("permutation", ())
        if step.shape != shape or tuple(order) != tuple(sorted(order)):
            yield step
        shape = step.shape


def _steps(operand: Shape, result: Shape) -> Iterator[Step]:
    same_places = operand.dims == result.dims and operand.minor_to_major == result.minor_to_major
    if same_places and operand.type.bits == result.type.bits:
        yield from _retyped(operand.without_layout(), result.type)
        return
    into, out_of = operand.minor_to_major[::-1], result.minor_to_major[::-1]
    row = operand.with_dims((operand.size,))
    yield Step("transpose", operand.select_dims(into), {"permutation": into})
    yield Step("reshape", row)
    yield from _retyped(row, result.type)
    in_memory = result.select_dims(out_of)
    back = tuple(out_of.index(dim) for dim in range(result.rank))
    yield Step("reshape", in_memory)
    yield Step("transpose", in_memory.select_dims(back), {"permutation": back})


def _retyped(array: Shape, target: ElementType) -> Iterator[Step]:
    """The elements, in their order, as elements of another type; unless those have other bits, in the same places."""
    if array.type.is_complex != target.is_complex:
        raise UnsupportedError(f"a bitcast between {array.type} and {target} is not supported")
    for element_type in _route(array.type, target):
        for step in _converted(array, element_type):
            yield step
            array = step.shape


def _route(source: ElementType, target: ElementType) -> list[ElementType]:
    """The types on the way: through unsigned numbers where elements are narrower than bytes."""
    if source.bits == target.bits:
        return [target]
    route = [*_integers(source), U8] if source.bits < U8.bits else []
    route += [U8, *_integers(target)] if target.bits < U8.bits else []
    return [*route, target]


def _integers(narrow: ElementType) -> list[ElementType]:
    """The unsigned type that has the bits of a type narrower than a byte; nothing stands between pred and a byte."""
    if narrow is PRED:
        return []
    try:
        return [element_type_named(f"u{narrow.bits}")]
    except KeyError:
        raise UnsupportedError(f"a bitcast of {narrow} to elements of other widths is not supported") from None


def _converted(array: Shape, target: ElementType) -> Iterator[Step]:
    """One step of the way: to a type of the same bits, from or to a type narrower than a byte, or to other bytes."""
    source = array.type
    if source.bits == target.bits:
        yield Step("bitcast-convert", array.with_type(target))
    elif min(source.bits, target.bits) < U8.bits:
        yield Step("convert", array.with_type(target))
    elif source.bits > target.bits:
        parts = array.with_type(target).with_dims((*array.dims, source.bits // target.bits))
        yield Step("bitcast-convert", parts)
        yield Step("reshape", parts.with_dims((parts.size,)))
    else:
        ratio = target.bits // source.bits
        yield Step("reshape", array.with_dims((array.size // ratio, ratio)))
        yield Step("bitcast-convert", array.with_type(target).with_dims((array.size // ratio,)))
