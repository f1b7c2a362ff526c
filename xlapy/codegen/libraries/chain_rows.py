"""Chains over rows whose number and length their functions are told: the kernels that programs have for such, with
sizes and constants in a table.

    chain_rows_BODY_TYPE              one row of the result for each row of the arrays
    chain_rows_BODY_TYPE.in_place     the same, in the memory of one of them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.kernels.rows import Extent, emit_rows, plan_rows
from xlapy.codegen.libraries.chain_body import ALONG, FOLD, NUMBER, WHOLE, ChainBody, Node
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType, element_type_named
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import LEAST_ROWS, MOST_ROW_BYTES, SWEPT_ELEMENTS
from xlapy.hlo.shape import Dims, Shape

SIZES = ("rows", "length", "block", "result")
"""What comes first among the numbers of a call, in order: how many rows there are, their elements, how many are taken
together, and the place of the result in the table. Then come the places of the arrays, and the constants."""

NUMBERS_PLACE, SCRATCH_PLACE, FIRST_ARRAY = 0, 2, 3
"""In the table of pointers, which goes on with the context behind the numbers."""

LEAST_LENGTH = 64
MOST_LENGTH = MOST_ROW_BYTES // (8 * LEAST_ROWS)
"""Elements of a row. A stack has room for some rows of what is kept of the widest ones."""

_ROWS = 1 << 20  # what plans take for the number of rows: it has no part in them


@dataclass(frozen=True, slots=True)
class ChainRow(Array):
    """An array of rows of a length that is not known."""

    length: Value | None = None

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        assert self.length is not None
        row, place = ix.split(index)
        return ix.sum(ix.at(ix.k.mul(row.start, self.length)), place)


def emit_chain(name: str, body: ChainBody, type: ElementType, target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    for in_place in (False, True):
        function = in_place_name(name) if in_place else name
        with KernelBuilder(module, function, parameters, None, attributes=attributes, joins_offsets=True) as k:
            _Chain(k, body, type).emit(target, in_place=in_place)
    return module


def rows_together(body: ChainBody) -> int:
    """Rows that the last sweep goes over side by side, where it reads more of arrays that are repeated for all rows
    than of a row itself; a block holds so many, or several times as many."""
    return LEAST_ROWS if sum(node.op == ALONG for node in body.nodes) > 1 else 1


def in_place_name(name: str) -> str:
    return f"{name}.in_place"


@dataclass(frozen=True, slots=True)
class _Chain:
    k: KernelBuilder
    body: ChainBody
    type: ElementType

    def emit(self, target: Target, *, in_place: bool) -> None:
        k, computation = self.k, chain_of(self.body, self.type)
        plan = plan_rows(computation, 0, target, in_place=in_place)
        rows, length, block, place = (self._number(number) for number in range(len(SIZES)))
        most_rows = SWEPT_ELEMENTS // LEAST_LENGTH
        elements = max(SWEPT_ELEMENTS, LEAST_ROWS * MOST_LENGTH)
        extent = Extent(rows, length, block, most_rows, elements, rows_together(self.body))
        arrays = self._inputs(computation, length, in_place=in_place)
        alias = None if in_place else "result"
        result = ChainRow(self._pointer(place), computation.root.shape, alias, read_only=False, length=length)
        emit_rows(
            k, plan, arrays, [result], k.parameters["begin"], k.parameters["end"], in_place=in_place, extent=extent
        )

    def _inputs(self, computation: Computation, length: Value, *, in_place: bool) -> dict[Instruction, Array]:
        """The arrays, and the constants, which are read where they are in the table."""
        arrays: dict[Instruction, Array] = {}
        alias = None if in_place else "operands"
        for number, parameter in enumerate(computation.parameters, start=len(SIZES)):
            shape = parameter.shape
            if shape.is_scalar:
                place = self.k.gep(self._pointer(NUMBERS_PLACE), number, I64.bytes)
                arrays[parameter] = Array(place, shape, "numbers")
            elif shape.rank == 1:
                arrays[parameter] = Array(self._pointer(self._number(number)), shape, alias)
            else:
                pointer = self._pointer(self._number(number))
                arrays[parameter] = ChainRow(
                    pointer, shape, alias, read_only=not in_place, ahead=FETCHED_AHEAD, length=length
                )
        return arrays

    def _number(self, number: int) -> Value:
        k = self.k
        return k.load(k.gep(self._pointer(NUMBERS_PLACE), number, I64.bytes), I64, hoistable=True)

    def _pointer(self, place: Operand) -> Value:
        k = self.k
        return k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)


def chain_of(body: ChainBody, type: ElementType) -> Computation:
    """The computation of a body, for rows of some length: its parameters are the arrays, and behind them the
    numbers."""
    computation = Computation("chain")
    given = [node for node in body.nodes if node.op in (WHOLE, ALONG)]
    numbers = [node for node in body.nodes if node.op == NUMBER]
    dims: dict[str, Dims] = {WHOLE: (_ROWS, MOST_LENGTH), ALONG: (MOST_LENGTH,), NUMBER: ()}
    for place, node in enumerate([*given, *numbers]):
        shape = Shape.array(element_type_named(node.type) if node.type else type, dims[node.op])
        computation.add("parameter", shape=shape, number=place)
    arrays, scalars = iter(computation.parameters[: len(given)]), iter(computation.parameters[len(given) :])
    values: list[Instruction] = []
    for node in body.nodes:
        if node.op in dims:
            values.append(next(scalars if node.op == NUMBER else arrays))
        else:
            values.append(_value(computation, node, [values[place] for place in node.operands], type))
    computation.set_root(values[-1])
    return computation


def _value(computation: Computation, node: Node, operands: Sequence[Instruction], type: ElementType) -> Instruction:
    op, _, operation = node.op.partition(".")
    if op == FOLD:
        region = Computation(operation)
        scalar = Shape.array(operands[0].shape.type, ())
        pair = [region.add("parameter", shape=scalar, name=name, number=number) for number, name in enumerate("ab")]
        region.set_root(region.add(operation, pair))
        return computation.add("reduce", operands, called=[region], dimensions=(1,))
    dims = _common_dims(operands)
    together = [_repeated(computation, operand, dims) for operand in operands]
    if op == "convert":
        shape = together[0].shape.with_type(element_type_named(node.type) if node.type else type)
        return computation.add(op, together, shape=shape)
    return computation.add(op, together)


def _common_dims(operands: Sequence[Instruction]) -> Dims:
    """Those of what is made of all operands: whole, unless all have one value for each row."""
    found = {operand.shape.dims for operand in operands if operand.shape.rank}
    return found.pop() if len(found) == 1 else (_ROWS, MOST_LENGTH) if found else ()


def _repeated(computation: Computation, operand: Instruction, dims: Dims) -> Instruction:
    if operand.shape.dims == dims:
        return operand
    dimensions = tuple(dims.index(size) for size in operand.shape.dims)
    shape = Shape.array(operand.shape.type, dims)
    return computation.add("broadcast", [operand], shape=shape, dimensions=dimensions)
