"""Random programs: small graphs of exact operations, so that a pass must not change a single bit.

Floats use correctly rounded operations only; sums, whose order is free, are over integers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from xlapy.hlo.attributes import ComparisonDirection, DotDimensionNumbers, PaddingDimension, SliceDimension
from xlapy.hlo.element_types import F32, PRED, S32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape

Step = Callable[["ProgramMaker"], Instruction]

UNARY = {F32: ("negate", "abs", "sqrt", "floor", "ceil", "copy"), S32: ("negate", "abs", "not", "copy"), PRED: ("not",)}
BINARY = {
    F32: ("add", "subtract", "multiply", "divide", "maximum", "minimum"),
    S32: ("add", "subtract", "multiply", "maximum", "and", "or", "xor"),
    PRED: ("and", "or", "xor"),
}
NUMBERS = (0, 1, 2, -1, 8)


def random_program(seed: int, size: int = 30) -> HloModule:
    """A module of about `size` instructions with a tuple of several results."""
    return ProgramMaker(seed).program(size)


class ProgramMaker:
    """Grows one computation, choosing operands among all that exists."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.computation = Computation("main")
        self.values: list[Instruction] = []

    def program(self, size: int) -> HloModule:
        for number in range(3):
            shape = Shape.array(self.random.choice((F32, F32, S32)), self.dims())
            self.values.append(self.computation.add("parameter", shape=shape, number=number))
        while len(self.values) < size:
            self.values.append(self.random.choice(STEPS)(self))
        results = self.random.sample(self.values, 4)
        self.computation.set_root(self.computation.add("tuple", results))
        return HloModule("random", self.computation)

    def dims(self) -> tuple[int, ...]:
        return tuple(self.random.choice((1, 2, 3, 4)) for _ in range(self.random.randint(0, 3)))

    def any(self) -> Instruction:
        return self.random.choice(self.values)

    def mate(self, value: Instruction, element_type: ElementType | None = None) -> Instruction:
        """A value of the dimensions of `value`: one that exists, or a number everywhere."""
        wanted = element_type or value.shape.type
        fitting = [v for v in self.values if v.shape.dims == value.shape.dims and v.shape.type is wanted]
        if fitting and self.random.random() < 0.7:
            return self.random.choice(fitting)
        number = self.random.choice(NUMBERS)
        scalar = self.add("constant", literal=Literal(bool(number) if wanted is PRED else number, Shape.scalar(wanted)))
        if value.shape.is_scalar:
            return scalar
        return self.add("broadcast", scalar, shape=Shape.array(wanted, value.shape.dims), dimensions=())

    def scalar(self, element_type: ElementType, number: int) -> Instruction:
        return self.add("constant", literal=Literal(number, Shape.scalar(element_type)))

    def add(self, opcode: str, *operands: Instruction, **arguments: object) -> Instruction:
        return self.computation.add(opcode, operands, **arguments)  # type: ignore[arg-type]


def unary(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    return maker.add(maker.random.choice(UNARY[value.shape.type]), value)


def binary(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    return maker.add(maker.random.choice(BINARY[value.shape.type]), value, maker.mate(value))


def compare(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    direction = maker.random.choice(list(ComparisonDirection))
    return maker.add("compare", value, maker.mate(value), direction=direction)


def select(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    return maker.add("select", maker.mate(value, PRED), value, maker.mate(value))


def convert(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    target = maker.random.choice((F32, S32))
    return maker.add("convert", value, shape=Shape.array(target, value.shape.dims))


def broadcast(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    if value.shape.rank > 3:
        return value
    front = maker.random.random() < 0.5
    dims = (2, *value.shape.dims) if front else (*value.shape.dims, 3)
    kept = tuple(range(front, value.shape.rank + front))
    return maker.add("broadcast", value, shape=Shape.array(value.shape.type, dims), dimensions=kept)


def reshape(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    dims = [size for size in value.shape.dims if size != 1]
    if dims and maker.random.random() < 0.5:
        dims = [dims[0] * dims[1], *dims[2:]] if len(dims) > 1 else [1, *dims]
    return maker.add("reshape", value, shape=value.shape.with_dims(dims))


def transpose(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    order = list(range(value.shape.rank))
    maker.random.shuffle(order)
    return maker.add("transpose", value, permutation=tuple(order))


def reverse(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    return maker.add(
        "reverse", value, dimensions=tuple(d for d in range(value.shape.rank) if maker.random.random() < 0.5)
    )


def slice_(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    parts = []
    for size in value.shape.dims:
        start = maker.random.randint(0, size - 1)
        parts.append(SliceDimension(start, maker.random.randint(start + 1, size), maker.random.choice((1, 1, 2))))
    return maker.add("slice", value, dimensions=tuple(parts))


def pad(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    if value.shape.size > 200 or value.shape.type is PRED:
        return value
    padding = [PaddingDimension(maker.random.randint(0, 1), 1, maker.random.randint(0, 1)) for _ in value.shape.dims]
    return maker.add("pad", value, maker.scalar(value.shape.type, 7), dimensions=tuple(padding))


def concatenate(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    if not value.shape.rank or value.shape.size > 200:
        return value
    return maker.add("concatenate", value, maker.mate(value), dimension=maker.random.randrange(value.shape.rank))


def dynamic_slice(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    starts = [maker.scalar(S32, maker.random.randint(-1, 3)) for _ in value.shape.dims]
    sizes = tuple(maker.random.randint(1, size) for size in value.shape.dims)
    return maker.add("dynamic-slice", value, *starts, slice_sizes=sizes) if starts else value


def reduce(maker: ProgramMaker) -> Instruction:
    """The maximum of floats, the sum of integers."""
    value = maker.any()
    opcode = "add" if value.shape.type is S32 else "maximum"
    region = Computation(opcode)
    scalar = Shape.scalar(value.shape.type)
    pair = [region.add("parameter", shape=scalar, number=number) for number in range(2)]
    region.set_root(region.add(opcode, pair))
    init = maker.add("constant", literal=Literal(False if value.shape.type is PRED else 0, scalar))
    dims = tuple(dim for dim in range(value.shape.rank) if maker.random.random() < 0.6)
    return maker.add("reduce", value, init, called=[region], dimensions=dims)


def dot(maker: ProgramMaker) -> Instruction:
    """The squares of an integer matrix, row by row or column by column."""
    fitting = [value for value in maker.values if value.shape.rank == 2 and value.shape.type is S32]
    if not fitting:
        return maker.any()
    value = maker.random.choice(fitting)
    dim = maker.random.randrange(2)
    numbers = DotDimensionNumbers((dim,), (dim,))
    other = 1 - dim
    size = value.shape.dims[other]
    return maker.add("dot", value, value, shape=Shape.array(S32, (size, size)), dimension_numbers=numbers)


def iota(maker: ProgramMaker) -> Instruction:
    value = maker.any()
    if not value.shape.rank:
        return value
    return maker.add(
        "iota", shape=Shape.array(S32, value.shape.dims), dimension=maker.random.randrange(value.shape.rank)
    )


STEPS: tuple[Step, ...] = (
    *(unary, unary, binary, binary, binary, binary, compare, select, select, convert, broadcast, broadcast, reshape),
    *(transpose, reverse, slice_, pad, concatenate, dynamic_slice, reduce, dot, iota),
)
