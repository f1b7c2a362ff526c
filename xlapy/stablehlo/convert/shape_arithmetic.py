"""Arithmetic on sizes, as dynamic programs of other front ends spell it: the dialects arith, tensor and shape.

`index` is s64, a shape is a vector of them, and what is asserted about shapes is checked where shapes are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import ComparisonDirection, SliceDimension
from xlapy.hlo.element_types import S64
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.stablehlo.convert.base import (
    Body,
    Converter,
    RegionKind,
    converts,
    enumerator,
    integers,
    packed_parameters,
    packed_root,
)
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError, UnsupportedError

ARITHMETIC = {
    "add": ("addi", "addf"),
    "subtract": ("subi", "subf"),
    "multiply": ("muli", "mulf"),
    "divide": ("divsi", "divf"),
    "remainder": ("remsi", "remf"),
    "maximum": ("maxsi", "maximumf"),
    "minimum": ("minsi", "minimumf"),
    "and": ("andi",),
    "or": ("ori",),
    "xor": ("xori",),
    "select": ("select",),
}
"""The ops of the table by what they are called in the dialect arith."""

DIRECTIONS = {direction.value.lower(): direction for direction in ComparisonDirection}
PREDICATES = {name: DIRECTIONS[name] for name in ("eq", "ne")} | {
    "s" + name: DIRECTIONS[name] for name in ("lt", "le", "gt", "ge")
}
NUMBERED = dict(enumerate(("eq", "ne", "slt", "sle", "sgt", "sge")))
"""Predicates as the generic form has them."""


def _same_op(opcode: str) -> Converter:
    def convert(body: Body, operation: Operation) -> Instruction:
        return body.add(opcode, *body.operands(operation))

    return convert


for _opcode, _names in ARITHMETIC.items():
    converts(*(f"arith.{name}" for name in _names))(_same_op(_opcode))


@converts("arith.cmpi")
def compare(body: Body, operation: Operation) -> Instruction:
    predicate = operation.attributes.get("predicate")
    if isinstance(predicate, int):
        operation.attributes = {**operation.attributes, "predicate": NUMBERED.get(predicate, str(predicate))}
    return body.add("compare", *body.operands(operation), direction=enumerator(operation, "predicate", PREDICATES))


@converts("arith.index_cast", "arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi")
def convert(body: Body, operation: Operation) -> Instruction:
    return body.add("convert", *body.operands(operation), shape=operation.result_types[0])


@converts(
    *("tensor.cast", "shape.to_extent_tensor", "shape.value_as_shape", "shape.value_of"),
    *("shape.size_to_index", "shape.index_to_size"),
)
def same(body: Body, operation: Operation) -> Instruction:
    """Changes only what the type says about sizes."""
    (operand,) = body.operands(operation)
    return operand


@converts("tensor.dim", "shape.dim", by_value=True)
def dimension(body: Body, operation: Operation) -> Instruction:
    """One size of an array. Which one must be a constant."""
    operand, index = body.operands(operation)
    if index.opcode != "constant":
        raise UnsupportedError(f"{operation.name} of a dimension that is computed")
    return _size(body, operand, int(index.attributes["literal"].scalar()))


def _size(body: Body, operand: Instruction, dim: int) -> Instruction:
    size = body.add("get-dimension-size", operand, dimension=dim)
    return body.add("convert", size, shape=Shape.scalar(S64))


@converts("shape.shape_of")
def shape_of(body: Body, operation: Operation) -> Instruction:
    (operand,) = body.operands(operation)
    return _vector(body, [_size(body, operand, dim) for dim in range(operand.shape.rank)])


def _vector(body: Body, scalars: Sequence[Instruction]) -> Instruction:
    if not scalars:
        return body.add("constant", literal=Literal([], Shape.array(S64, (0,))))
    ones = [body.add("reshape", scalar, shape=Shape.array(scalar.shape.type, (1,))) for scalar in scalars]
    return ones[0] if len(ones) == 1 else body.add("concatenate", *ones, dimension=0)


@converts("tensor.from_elements", "shape.from_extents")
def from_elements(body: Body, operation: Operation) -> Instruction:
    vector = _vector(body, body.operands(operation))
    result = operation.result_types[0]
    return vector if result.is_unbounded else body.add("reshape", vector, shape=result)


@converts("tensor.extract", "shape.get_extent")
def extract(body: Body, operation: Operation) -> Instruction:
    operand, *indices = body.operands(operation)
    one = body.add("dynamic-slice", operand, *indices, slice_sizes=(1,) * len(indices))
    return body.add("reshape", one, shape=Shape.scalar(operand.shape.type))


@converts("shape.const_shape")
def const_shape(body: Body, operation: Operation) -> Instruction:
    sizes = integers(operation, "shape")
    return body.add("constant", literal=Literal(list(sizes), Shape.array(S64, (len(sizes),))))


@converts("shape.concat")
def concat(body: Body, operation: Operation) -> Instruction:
    return body.add("concatenate", *body.operands(operation), dimension=0)


@converts("shape.num_elements")
def num_elements(body: Body, operation: Operation) -> Instruction:
    (sizes,) = body.operands(operation)
    product = body.constant(1, S64)
    for size in _elements(body, operation, sizes):
        product = body.add("multiply", product, size)
    return product


def _elements(body: Body, operation: Operation, vector: Instruction) -> list[Instruction]:
    count = _rank(operation, vector)
    scalar = Shape.scalar(vector.shape.type)
    ranges = [(SliceDimension(position, position + 1, 1),) for position in range(count)]
    return [body.add("reshape", body.add("slice", vector, dimensions=part), shape=scalar) for part in ranges]


def _rank(operation: Operation, vector: Instruction) -> int:
    if vector.shape.rank != 1 or vector.shape.dims[0] == UNBOUNDED:
        raise UnsupportedError(f"{operation.name} of an array of unknown rank")
    return vector.shape.dims[0]


@converts("shape.broadcast")
def broadcast(body: Body, operation: Operation) -> Instruction:
    """The sizes that arrays of these sizes broadcast to: the last ones belong together, and 1 gives way."""
    operands = body.operands(operation)
    if not operands:
        raise ParseError(f"{operation.name} has no operand")
    rank = max(_rank(operation, operand) for operand in operands)
    result = None
    for operand in operands:
        sizes = _elements(body, operation, operand)
        row = _vector(body, [body.constant(1, S64) for _ in range(rank - len(sizes))] + sizes)
        if result is None:
            result = row
        else:
            gives_way = body.add("compare", result, body.full(1, result.shape), direction=ComparisonDirection.EQ)
            result = body.add("select", gives_way, row, result)
    assert result is not None
    return result


@converts(
    "shape.cstr_broadcastable", "shape.cstr_eq", "shape.cstr_require", "shape.const_witness", "shape.assuming_all"
)
def witness(body: Body, operation: Operation) -> Instruction:
    """An assertion about shapes. Operations check their own shapes, so what it guards fails if it does not hold."""
    return body.constant(True, bool)


@converts("shape.assuming", regions=RegionKind(packed_parameters, packed_root))
def assuming(body: Body, operation: Operation) -> Instruction:
    """The region, as a call with all that it captures."""
    captured = body.tuple([body.value(value) for value in operation.captures])
    return body.add("call", captured, called=body.called)


@converts("tensor.splat")
def splat(body: Body, operation: Operation) -> Instruction:
    (scalar,) = body.operands(operation)
    return body.splat(scalar, operation.result_types[0])
