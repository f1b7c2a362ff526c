"""What the functions of the chain libraries are told, and the computations for which they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.libraries import NUMBERS_PLACE
from xlapy.codegen.libraries.chain_body import ACROSS, ALONG, FOLD, NUMBER, TRIANGLE, WHOLE, ChainBody, Node
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import ElementType, element_type_named
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import RowSpace, fusion_roots
from xlapy.hlo.shape import Dims, Shape

NUMBERS_OF_NUMBER = 3  # of a call, for one of the body


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """The numbers and arrays of one call, loaded where they are asked for. First come `sizes`, by name, then the places
    of the results and of the arrays in the table, then three for each number of the body: the place of the memory in
    the table that has it, where in that it is, and itself, if it is a constant. Nothing writes to them."""

    k: KernelBuilder
    sizes: tuple[str, ...]
    computation: Computation

    def __getitem__(self, name: str) -> Value:
        return self._number(self.sizes.index(name))

    def inputs(self, whole: Callable[[Value, Shape], Array], alias: str | None) -> dict[Instruction, Array]:
        """The arrays, those of all elements made from where they are, and the numbers."""
        arrays: dict[Instruction, Array] = {}
        number = len(self.sizes) + len(self.roots)
        for parameter in self.computation.parameters:
            shape, pointer = parameter.shape, self.pointer(self._number(number))
            if shape.is_scalar:
                arrays[parameter] = Array(self.k.gep(pointer, self._number(number + 1)), shape, "numbers")
                number += NUMBERS_OF_NUMBER
            else:
                arrays[parameter] = Array(pointer, shape, alias) if shape.rank == 1 else whole(pointer, shape)
                number += 1
        return arrays

    @property
    def roots(self) -> tuple[Instruction, ...]:
        return fusion_roots(self.computation)

    def outputs(self) -> list[tuple[Instruction, Value]]:
        """The results, and where they are."""
        first = len(self.sizes)
        return [(root, self.pointer(self._number(first + number))) for number, root in enumerate(self.roots)]

    def pointer(self, place: Operand) -> Value:
        k = self.k
        return k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)

    def _number(self, number: int) -> Value:
        k = self.k
        return k.load(k.gep(self.pointer(NUMBERS_PLACE), number, I64.bytes), I64, hoistable=True)


@contextmanager
def chain_function(
    module: Module,
    name: str,
    sizes: tuple[str, ...],
    computation: Computation,
    target: Target,
    *,
    is_light: bool = False,
) -> Iterator[ChainProblem]:
    """Writes a function of a range of units. With `is_light`, LLVM leaves its loops as they are written."""
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    attributes = f"nounwind {target.function_attributes}".rstrip()
    if is_light:
        attributes = f"noinline optnone {attributes}"
    with KernelBuilder(
        module, name, parameters, None, attributes=attributes, hoists_constants=is_light, joins_offsets=True
    ) as k:
        yield ChainProblem(k, sizes, computation)


def chain_of(body: ChainBody, type: ElementType, space: RowSpace) -> Computation:
    """The computation of a body, of arrays as large as the space says: its parameters are the arrays, and behind them
    the numbers. All dimensions of the space are different."""
    computation = Computation("chain")
    given = [node for node in body.nodes if node.op in (WHOLE, ALONG, ACROSS)]
    numbers = [node for node in body.nodes if node.op == NUMBER]
    along = tuple(space.dims[dim] for dim in space.folded)
    dims: dict[str, Dims] = {WHOLE: space.dims, ALONG: along, ACROSS: space.dims[-1:], NUMBER: ()}
    for place, node in enumerate([*given, *numbers]):
        shape = Shape.array(_type(node, type), dims[node.op])
        computation.add("parameter", shape=shape, number=place)
    arrays, scalars = iter(computation.parameters[: len(given)]), iter(computation.parameters[len(given) :])
    values: list[Instruction] = []
    for node in body.nodes:
        if node.op in dims:
            values.append(next(scalars if node.op == NUMBER else arrays))
        else:
            values.append(_value(computation, node, [values[place] for place in node.operands], type, space))
    results = [values[place] for place in body.results]
    computation.set_root(results[0] if len(results) == 1 else computation.add("tuple", results))
    return computation


def _type(node: Node, type: ElementType) -> ElementType:
    return element_type_named(node.type) if node.type else type


def _value(
    computation: Computation, node: Node, operands: Sequence[Instruction], type: ElementType, space: RowSpace
) -> Instruction:
    op, _, operation = node.op.partition(".")
    if op == FOLD:
        region = Computation(operation)
        scalar = Shape.array(operands[0].shape.type, ())
        pair = [region.add("parameter", shape=scalar, name=name, number=number) for number, name in enumerate("ab")]
        region.set_root(region.add(operation, pair))
        return computation.add("reduce", operands, called=[region], dimensions=space.folded)
    if op == TRIANGLE:
        return _triangle(computation, operands[0], space)
    dims = _common_dims(operands, space)
    together = [_repeated(computation, operand, dims) for operand in operands]
    if op == "convert":
        return computation.add(op, together, shape=together[0].shape.with_type(_type(node, type)))
    return computation.add(op, together)


def _triangle(computation: Computation, size: Instruction, space: RowSpace) -> Instruction:
    """Of matrices of so many rows, one behind the other."""
    rows, whole = (Shape.array(size.shape.type, dims) for dims in (space.kept_dims, space.dims))
    row = computation.add("iota", shape=rows, dimension=0)
    row = computation.add("remainder", [row, _repeated(computation, size, rows.dims)])
    place = computation.add("iota", shape=whole, dimension=space.folded[0])
    return computation.add(
        "compare", [_repeated(computation, row, whole.dims), place], direction=ComparisonDirection.GE
    )


def _common_dims(operands: Sequence[Instruction], space: RowSpace) -> Dims:
    """Those of what is made of all operands: whole, unless all have one value for each row. What has one for each of
    the columns side by side has one for each of any group of them."""
    found = {operand.shape.dims for operand in operands if operand.shape.rank}
    if space.is_columns and found <= {space.dims[-1:], space.kept_dims}:
        return max(found, key=len, default=())
    return found.pop() if len(found) == 1 else space.dims if found else ()


def _repeated(computation: Computation, operand: Instruction, dims: Dims) -> Instruction:
    if operand.shape.dims == dims:
        return operand
    dimensions = tuple(dims.index(size) for size in operand.shape.dims)
    shape = Shape.array(operand.shape.type, dims)
    return computation.add("broadcast", [operand], shape=shape, dimensions=dimensions)
