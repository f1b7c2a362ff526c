"""Elements of fused computations: from the index of a result to its value.

A kernel asks for the elements of a root at some index. Demand runs against the data flow: each instruction turns an
index of its result into indices of its operands (a transpose permutes, a slice shifts ...), down to the arrays in
memory. Then values flow back up, each computed once per (instruction, index). Nothing recurses, so long chains are no
problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from xlapy.codegen.arrays import Array, zero_element
from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import MOST_REACH, SCALAR, Coordinate, Index, Indexing
from xlapy.codegen.ir import I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.progressions import progression_of
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import (
    Element,
    Pair,
    constant_element,
    memory_type,
    register_type,
    rounded,
    select,
    to_memory,
)
from xlapy.hlo.attributes import GatherDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, Trait
from xlapy.support.errors import InternalError
from xlapy.support.registry import Registry


class Demand(NamedTuple):
    """What one instruction needs for one index: elements of operands, and how they make its value."""

    operands: Sequence[tuple[Instruction, Index]]
    combine: Callable[[Sequence[Element]], Element]


class _Wanted:
    """An element that somebody needs: what it is made from, how, and what it is when it is made."""

    __slots__ = ("combine", "operands", "value")

    combine: Callable[[Sequence[Element]], Element]
    operands: Sequence[_Wanted]
    value: Element


class ElementGraph:
    """Element access to a set of instructions whose inputs are `arrays` in memory (or scalars in registers)."""

    def __init__(
        self, ix: Indexing, arrays: Mapping[Instruction, Array], scalars: Mapping[Instruction, Element] | None = None
    ) -> None:
        self.ix = ix
        self.k = ix.k
        self.arrays = arrays
        self.scalars = scalars or {}

    def is_input(self, instruction: Instruction) -> bool:
        return instruction in self.arrays or instruction in self.scalars

    def values(self, requests: Sequence[tuple[Instruction, Index]]) -> list[Element]:
        """The requested elements. Everything between them and the inputs must be element ops."""
        order, wanted, asked = self._demands(requests)
        for instruction in order:
            for element in wanted[instruction].values():
                element.value = element.combine([operand.value for operand in element.operands])
        return [element.value for element in asked]

    def reads(self, requests: Sequence[tuple[Instruction, Index]], source: Instruction) -> list[Index]:
        """Where `source` is read for the requested elements, of which nothing is computed but places."""
        return list(self._demands(requests)[1].get(source, ()))

    def _demands(
        self, requests: Sequence[tuple[Instruction, Index]]
    ) -> tuple[list[Instruction], dict[Instruction, dict[Index, _Wanted]], list[_Wanted]]:
        """Everything that the requests need, operands first; what of it is wanted at which index; and the elements that
        were requested."""
        order = between([instruction for instruction, _ in requests], self.is_input)
        wanted: dict[Instruction, dict[Index, _Wanted]] = {instruction: {} for instruction in order}
        asked = [wanted[instruction].setdefault(index, _Wanted()) for instruction, index in requests]
        for instruction in reversed(order):
            for index, element in wanted[instruction].items():
                operands, element.combine = self.demand(instruction, index)
                element.operands = [wanted[operand].setdefault(at, _Wanted()) for operand, at in operands]
        return order, wanted, asked

    def scalar(self, instruction: Instruction) -> Element:
        """The value of a rank-0 instruction, needed to work out indices."""
        return self.values([(instruction, SCALAR)])[0]

    def demand(self, instruction: Instruction, index: Index) -> Demand:
        """What an instruction needs for an index."""
        if instruction in self.scalars:
            return Demand((), lambda _: self.scalars[instruction])
        if instruction in self.arrays:
            array = self.arrays[instruction]
            return Demand((), lambda _: array.load(self.ix, index))
        handler = DEMANDS.get(instruction.opcode)
        if handler is None and Trait.ELEMENTWISE in instruction.spec.traits:
            handler = _elementwise
        if handler is None:
            raise InternalError(f"{instruction} is not an element op, but stands inside a kernel")
        return handler(self, instruction, index)


DemandHandler = Callable[[ElementGraph, Instruction, Index], Demand]
DEMANDS: Registry[DemandHandler] = Registry("element demands", OPS)


def between(roots: Sequence[Instruction], is_input: Callable[[Instruction], bool]) -> list[Instruction]:
    """Everything from the inputs (included) to the roots, operands first."""
    order: dict[Instruction, None] = {}
    seen: set[Instruction] = set()
    stack = [*reversed(roots)]
    while stack:
        instruction = stack[-1]
        if instruction in seen:
            order[stack.pop()] = None
            continue
        seen.add(instruction)
        if not is_input(instruction):
            stack.extend([operand for operand in reversed(instruction.operands) if operand not in seen])
    return [*order]


def _sole(values: Sequence[Element]) -> Element:
    return values[0]


@DEMANDS.register("bitcast-convert")  # between types of one width
def _elementwise(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    operands = [(operand, index if operand.shape.rank else SCALAR) for operand in instruction.operands]
    return Demand(operands, lambda values: emit_element(graph.k, instruction, values))


@DEMANDS.register("map")
def _map(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    operands = [(operand, index) for operand in instruction.operands]
    return Demand(operands, lambda values: emit_region(graph.k, instruction.called[0], values)[0])


@DEMANDS.register("constant")
def _constant(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    literal: Literal = instruction.attributes["literal"]
    if not literal.array.size:
        return Demand((), lambda _: zero_element(graph.k, instruction.shape, 1))
    if literal.is_splat:
        return Demand((), lambda _: constant_element(graph.k, literal.shape.type, literal.scalar()))
    array = Array(_table(graph.k, literal), instruction.shape.with_layout(None))
    return Demand((), lambda _: array.load(graph.ix, index))


def _table(k: KernelBuilder, literal: Literal) -> Value:
    """The literal's elements as a constant of the module, row-major; floats as their bits, which NaNs may need."""
    type = literal.shape.type
    scalar = memory_type(type)
    if type.is_float or type.is_complex:
        words = literal.array.reshape(-1).view(f"u{scalar.bytes}")
        return k.table(scalar.integer(), words.tolist())
    numbers = []
    for number in literal.array.reshape(-1):
        element = constant_element(k, type, number)
        assert isinstance(element, Value)
        raw = to_memory(k, element, type)
        if raw.constant is None:
            raise InternalError(f"a constant of type {type} does not fold")
        numbers.append(raw.constant)
    return k.table(scalar, numbers)


@DEMANDS.register("iota")
def _iota(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    dimension: int = instruction.attributes["dimension"]
    coordinate = graph.ix.split(index)[dimension]
    return Demand((), lambda _: _number(graph, instruction, coordinate, instruction.shape.dims[dimension]))


def _number(graph: ElementGraph, instruction: Instruction, coordinate: Coordinate, size: int) -> Element:
    """The position of each lane, below `size`, as an element of the iota's type; converted once, so large ones round
    once. Vectors are made of the numbers that they need, not of 64 bits."""
    k, element_type = graph.k, instruction.shape.type
    type = register_type(element_type)
    if type.is_float:
        is_short = size <= MOST_REACH and not coordinate.is_uniform
        value = k.sitofp(graph.ix.position(coordinate, I32 if is_short else I64), type)
    else:
        value = graph.ix.position(coordinate, type)
    result = rounded(k, value, element_type) if not element_type.is_complex else value
    return _complex(k, result) if element_type.is_complex else result


def _complex(k: KernelBuilder, real: Element) -> Element:
    assert isinstance(real, Value)
    return Pair(real, k.const(real.type, 0.0))


@DEMANDS.register("broadcast")
def _broadcast(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    operand = instruction.operands[0]
    if not operand.shape.rank:
        return Demand([(operand, SCALAR)], _sole)
    dimensions: tuple[int, ...] = instruction.attributes["dimensions"]
    if dimensions == tuple(range(instruction.shape.rank)):
        return Demand([(operand, index)], _sole)
    coordinates = graph.ix.split(index)
    chosen = tuple(coordinates[dim] for dim in dimensions)
    return Demand([(operand, Index(operand.shape.dims, chosen, None, index.mask))], _sole)


@DEMANDS.register("reshape", "bitcast")
def _reshape(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    operand = instruction.operands[0]
    if not operand.shape.rank:
        return Demand([(operand, SCALAR)], _sole)
    return Demand([(operand, graph.ix.reshaped(index, operand.shape.dims))], _sole)


@DEMANDS.register("transpose")
def _transpose(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    operand = instruction.operands[0]
    coordinates = graph.ix.split(index)
    permutation: tuple[int, ...] = instruction.attributes["permutation"]
    moved = tuple(coordinates[permutation.index(dim)] for dim in range(operand.shape.rank))
    return Demand([(operand, Index(operand.shape.dims, moved, None, index.mask))], _sole)


@DEMANDS.register("reverse")
def _reverse(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    ix, operand = graph.ix, instruction.operands[0]
    reversed_dims = instruction.attributes["dimensions"]
    coordinates = tuple(
        ix.add(ix.scale(coordinate, -1), operand.shape.dims[dim] - 1) if dim in reversed_dims else coordinate
        for dim, coordinate in enumerate(ix.split(index))
    )
    return Demand([(operand, Index(operand.shape.dims, coordinates, None, index.mask))], _sole)


@DEMANDS.register("slice")
def _slice(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    ix, operand = graph.ix, instruction.operands[0]
    coordinates = tuple(
        ix.add(ix.scale(coordinate, part.stride), part.start)
        for coordinate, part in zip(ix.split(index), instruction.attributes["dimensions"], strict=True)
    )
    return Demand([(operand, Index(operand.shape.dims, coordinates, None, index.mask))], _sole)


@DEMANDS.register("dynamic-slice")
def _dynamic_slice(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    ix, operand = graph.ix, instruction.operands[0]
    starts = clamped_starts(graph, instruction.operands[1:], operand.shape.dims, instruction.shape.dims)
    coordinates = tuple(ix.add(coordinate, start) for coordinate, start in zip(ix.split(index), starts, strict=True))
    return Demand([(operand, Index(operand.shape.dims, coordinates, None, index.mask))], _sole)


def clamped_starts(
    graph: ElementGraph, starts: Sequence[Instruction], dims: Sequence[int], sizes: Sequence[int]
) -> list[Value]:
    """The start indices of a slice as i64, moved inward until it fits."""
    k = graph.k
    clamped = []
    for start, dim, size in zip(starts, dims, sizes, strict=True):
        value = graph.scalar(start)
        assert isinstance(value, Value)
        clamped.append(clamped_start(k, value, start.shape.type, dim - size))
    return clamped


def clamped_start(k: KernelBuilder, start: Value, element_type: ElementType, limit: int, type: IRType = I64) -> Value:
    """A start index (of each lane) as `type`, which holds both it and `limit`, moved into [0, limit]."""
    if element_type.is_signed:
        return k.smin(k.smax(k.sext(start, type), 0), limit)
    return k.umin(k.zext(start, type), limit)


def _clamped_place(ix: Indexing, start: Value, element_type: ElementType, limit: int) -> Coordinate:
    """Start indices moved into [0, limit]; several in 32 bits, if that is enough."""
    k = ix.k
    if start.type.lanes == 1 or limit >= MOST_REACH:
        return ix.at(clamped_start(k, start, element_type, limit))
    if element_type.bits <= I32.bits:
        return ix.at(clamped_start(k, start, element_type, limit, I32), limit + 1)
    return ix.at(k.trunc(clamped_start(k, start, element_type, limit), I32), limit + 1)


@DEMANDS.register("gather")
def _gather(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    """The operand at the clamped start of the index vector that belongs to the lane, plus the offset in the slice."""
    ix, (operand, indices) = graph.ix, instruction.operands
    numbers: GatherDimensionNumbers = instruction.attributes["dimension_numbers"]
    sizes: tuple[int, ...] = instruction.attributes["slice_sizes"]
    coordinates = ix.split(index)
    batch = [coordinate for dim, coordinate in enumerate(coordinates) if dim not in numbers.offset_dims]
    offsets = iter(coordinates[dim] for dim in numbers.offset_dims)
    places = []
    for dim, size in enumerate(sizes):
        place = ix.constant(0)
        if dim in numbers.start_index_map:
            number = numbers.start_index_map.index(dim)
            component = ix.constant(number)._replace(bounds=range(number, number + 1))
            vector = list(batch)
            vector.insert(numbers.index_vector_dim, component)
            at = Index(indices.shape.dims, tuple(vector[: indices.shape.rank]), None, index.mask)
            limit = operand.shape.dims[dim] - size
            place = _known_place(graph, indices, at, limit) or _computed_place(graph, indices, at, limit)
        elif dim in numbers.operand_batching_dims:
            axis = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(dim)]
            place = batch[axis - (axis > numbers.index_vector_dim)]
        if dim not in numbers.collapsed_slice_dims and dim not in numbers.operand_batching_dims:
            place = ix.sum(place, next(offsets))
        places.append(place)
    return Demand([(operand, Index(operand.shape.dims, tuple(places), None, index.mask))], _sole)


def _computed_place(graph: ElementGraph, indices: Instruction, index: Index, limit: int) -> Coordinate:
    start = graph.values([(indices, index)])[0]
    assert isinstance(start, Value)
    return _clamped_place(graph.ix, start, indices.shape.type, limit)


def _known_place(graph: ElementGraph, indices: Instruction, index: Index, limit: int) -> Coordinate | None:
    """Start indices that follow from where the lanes are, as of windows, none of them beyond `limit`."""
    progression = progression_of(graph, indices, index)
    if progression is None or progression.least < 0 or progression.most > limit:
        return None
    return progression.at


@DEMANDS.register("pad")
def _pad(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    """The operand where an element of it lies, else the padding value: that alone where none can lie."""
    ix, k = graph.ix, graph.k
    operand, padding_value = instruction.operands
    inside: Value | None = None
    coordinates = []
    for dim, (coordinate, padding) in enumerate(
        zip(ix.split(index), instruction.attributes["dimensions"], strict=True)
    ):
        moved = ix.add(coordinate, -padding.low)
        size = operand.shape.dims[dim]
        if moved.lies_outside((size - 1) * (padding.interior + 1) + 1):
            return Demand([(padding_value, SCALAR)], _sole)
        limits: list[Value] = []
        if padding.interior:
            limits.append(k.compare("ge", ix.position(moved), 0))
            moved, rest = ix.divide(_not_negative(ix, moved), padding.interior + 1)
            limits.append(k.compare("eq", ix.position(rest), 0))
            limits.append(k.compare("lt", ix.position(moved), size))
        elif (padding.low > 0 or padding.high > 0) and not moved.lies_in(size):
            limits.append(ix.lies_below(moved, size, abs(padding.low) + size + abs(padding.high)))
        for limit in limits:
            inside = limit if inside is None else ix.masked(Index((), (), None, inside), limit)
        coordinates.append(moved)
    if inside is None:
        return Demand([(operand, Index(operand.shape.dims, tuple(coordinates), None, index.mask))], _sole)
    mask = ix.masked(index, inside)
    condition = inside
    requests = [(operand, Index(operand.shape.dims, tuple(coordinates), None, mask)), (padding_value, SCALAR)]
    return Demand(requests, lambda values: select(k, condition, values[0], values[1]))


def _not_negative(ix: Indexing, coordinate: Coordinate) -> Coordinate:
    return ix.at(ix.k.smax(ix.position(coordinate), 0))


@DEMANDS.register("concatenate")
def _concatenate(graph: ElementGraph, instruction: Instruction, index: Index) -> Demand:
    """Each operand at its own part of the dimension, one chosen per lane. What no lane reaches is left out."""
    ix, k = graph.ix, graph.k
    dimension = instruction.attributes["dimension"]
    coordinates = list(ix.split(index))
    bounds, whole = coordinates[dimension].bounds, instruction.shape.dims[dimension]
    requests: list[tuple[Instruction, Index]] = []
    conditions: list[Value] = []
    start = 0
    for operand in instruction.operands:
        size = operand.shape.dims[dimension]
        moved = ix.add(coordinates[dimension], -start)
        own = (*coordinates[:dimension], moved, *coordinates[dimension + 1 :])
        if moved.lies_in(size):
            return Demand([(operand, Index(operand.shape.dims, own, None, index.mask))], _sole)
        if size and (bounds is None or (bounds.start < start + size and start < bounds.stop)):
            inside = ix.lies_below(moved, size, whole)
            requests.append((operand, Index(operand.shape.dims, own, None, ix.masked(index, inside))))
            conditions.append(inside)
        start += size

    def choose(values: Sequence[Element]) -> Element:
        chosen = values[-1]
        for condition, value in zip(reversed(conditions[:-1]), reversed(values[:-1]), strict=True):
            chosen = select(k, condition, value, chosen)
        return chosen

    return Demand(requests, choose)
