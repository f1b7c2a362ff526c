"""Random programs over s32 arrays with bounded dimensions, loops and branches among them. Their results are exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from xlapy.hlo.attributes import (
    ComparisonDirection,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    PaddingDimension,
    ScatterDimensionNumbers,
    SliceDimension,
    Window,
    WindowDimension,
)
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.reshape_groups import reshaped_flags
from xlapy.hlo.shape import Shape

SIZES = (1, 2, 3, 4, 6)
MAX_RANK = 3
MAX_ELEMENTS = 300
MAX_DEPTH = 2


@dataclass
class Generator:
    """Writes instructions into one computation. `values` are the arrays there are to work with."""

    random: np.random.Generator
    computation: Computation
    depth: int = 0
    values: list[Instruction] = field(default_factory=list)

    def add(self, opcode: str, *operands: Instruction, **arguments: object) -> Instruction:
        return self.computation.add(opcode, list(operands), **arguments)  # type: ignore[arg-type]

    def number(self, value: int) -> Instruction:
        return self.add("constant", literal=Literal(np.int32(value)))

    def below(self, limit: int) -> int:
        return int(self.random.integers(0, limit))

    def pick(self) -> Instruction:
        return self.values[self.below(len(self.values))]

    def array(self) -> Instruction:
        arrays = [value for value in self.values if value.shape.rank]
        return arrays[self.below(len(arrays))]

    def scalar(self) -> Instruction:
        """Some number at run time: a constant, a size, a size and a bit."""
        operand = self.array()
        size = self.add("get-dimension-size", operand, dimension=self.below(operand.shape.rank))
        choice = self.below(3)
        if choice == 0:
            return self.number(self.below(9) - 2)
        return size if choice == 1 else self.add("add", size, self.number(self.below(5) - 2))

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            made = STEPS[self.below(len(STEPS))](self)
            if made is not None and made.shape.size <= MAX_ELEMENTS and made.shape.rank <= MAX_RANK:
                self.values.append(made)

    def shaped(self, shape: Shape) -> Instruction:
        """The latest array of the bounds of `shape`, with just its dimensions bounded."""
        found = [value for value in self.values if value.shape.dims == shape.dims and _fits(value.shape, shape)][-1]
        for dim in range(shape.rank):
            if shape.is_dynamic_dim(dim) and not found.shape.is_dynamic_dim(dim):
                found = self.add("set-dimension-size", found, self.number(self.below(7)), dimension=dim)
        return found


def fold(opcode: str) -> Computation:
    region = Computation(opcode)
    parameters = [region.add("parameter", shape=Shape.scalar(S32), number=number) for number in range(2)]
    region.set_root(region.add(opcode, parameters))
    return region


def less() -> Computation:
    region = Computation("less")
    parameters = [region.add("parameter", shape=Shape.scalar(S32), number=number) for number in range(2)]
    region.set_root(region.add("compare", parameters, direction=ComparisonDirection.LT))
    return region


def resized(g: Generator) -> Instruction:
    operand = g.array()
    return g.add("set-dimension-size", operand, g.scalar(), dimension=g.below(operand.shape.rank))


def combined(g: Generator) -> Instruction:
    """Two arrays of the same bounds; the second may be a broadcast of a scalar."""
    operand = g.array()
    alike = [value for value in g.values if value.shape.dims == operand.shape.dims]
    other = alike[g.below(len(alike))]
    opcode = ("add", "subtract", "maximum", "multiply")[g.below(4)]
    return g.add(opcode, operand, other)


def transposed(g: Generator) -> Instruction:
    operand = g.array()
    return g.add("transpose", operand, permutation=tuple(int(d) for d in g.random.permutation(operand.shape.rank)))


def reshaped(g: Generator) -> Instruction:
    operand = g.array()
    rest, dims = operand.shape.size, []
    while rest > 1 and len(dims) < MAX_RANK - 1:
        divisors = [size for size in range(1, rest + 1) if rest % size == 0]
        dims.append(divisors[g.below(len(divisors))])
        rest //= dims[-1]
    dims.append(rest)
    flags = list(reshaped_flags(operand.shape, dims)) or [False] * len(dims)
    flags[g.below(len(flags))] |= not operand.shape.is_static
    return g.add("reshape", operand, shape=Shape.array(S32, dims, flags))


def folded(g: Generator) -> Instruction:
    operand = g.array()
    dims = tuple(dim for dim in range(operand.shape.rank) if g.below(2))
    region = fold(("add", "maximum", "subtract")[g.below(3)])
    return g.add("reduce", operand, g.number(g.below(7) - 3), called=[region], dimensions=dims)


def ordered(g: Generator) -> Instruction:
    operand = g.array()
    return g.add("sort", operand, called=[less()], dimension=g.below(operand.shape.rank), is_stable=True)


def reversed_(g: Generator) -> Instruction:
    operand = g.array()
    return g.add("reverse", operand, dimensions=tuple(d for d in range(operand.shape.rank) if g.below(2)))


def padded(g: Generator) -> Instruction | None:
    operand = g.array()
    amounts = tuple(PaddingDimension(g.below(4) - 1, g.below(4) - 1, g.below(2)) for _ in operand.shape.dims)
    if any(a.low + a.high + size < 1 for a, size in zip(amounts, operand.shape.dims, strict=True)):
        return None
    return g.add("pad", operand, g.number(5), dimensions=amounts)


def part(g: Generator) -> Instruction:
    operand = g.array()
    ranges = []
    for size in operand.shape.dims:
        start = g.below(size)
        ranges.append(SliceDimension(start, start + 1 + g.below(size - start), 1 + g.below(2)))
    return g.add("slice", operand, dimensions=tuple(ranges))


def part_at(g: Generator) -> Instruction:
    operand = g.array()
    sizes = tuple(1 + g.below(size) for size in operand.shape.dims)
    return g.add("dynamic-slice", operand, *(g.scalar() for _ in sizes), slice_sizes=sizes)


def updated(g: Generator) -> Instruction | None:
    operand = g.array()
    fitting = [
        value
        for value in g.values
        if value.shape.rank == operand.shape.rank
        and all(own <= size for own, size in zip(value.shape.dims, operand.shape.dims, strict=True))
    ]
    update = fitting[g.below(len(fitting))]
    return g.add("dynamic-update-slice", operand, update, *(g.scalar() for _ in operand.shape.dims))


def joined(g: Generator) -> Instruction:
    operand = g.array()
    dim = g.below(operand.shape.rank)
    dims = operand.shape.without(dim).dims
    alike = [v for v in g.values if v.shape.rank == operand.shape.rank and v.shape.without(dim).dims == dims]
    return g.add("concatenate", operand, alike[g.below(len(alike))], dimension=dim)


def product(g: Generator) -> Instruction | None:
    lhs = g.array()
    dim = g.below(lhs.shape.rank)
    partners = [(v, d) for v in g.values for d in range(v.shape.rank) if v.shape.dims[d] == lhs.shape.dims[dim]]
    rhs, other = partners[g.below(len(partners))]
    if lhs.shape.size * rhs.shape.size > MAX_ELEMENTS * lhs.shape.dims[dim] ** 2:
        return None
    numbers = DotDimensionNumbers((dim,), (other,), (), ())
    rank = lhs.shape.rank + rhs.shape.rank - 2
    if rank > MAX_RANK:
        return None
    return g.add("dot", lhs, rhs, dimension_numbers=numbers, shape=Shape.scalar(S32))


def rows(g: Generator) -> Instruction:
    """Rows of one array by the numbers in another."""
    operand, indices = g.array(), g.array()
    vector = indices.shape.rank
    slices = (1, *operand.shape.dims[1:])
    offsets = tuple(range(vector, vector + operand.shape.rank - 1))
    numbers = GatherDimensionNumbers(offsets, (0,), (0,), vector)
    return g.add("gather", operand, indices, dimension_numbers=numbers, slice_sizes=slices)


def spread_rows(g: Generator) -> Instruction | None:
    """Rows added to those of an array, at the numbers in another."""
    operand, indices = g.array(), g.array()
    vector, rank = indices.shape.rank, operand.shape.rank
    dims = (*indices.shape.dims, *operand.shape.dims[1:])
    fitting = [value for value in g.values if value.shape.dims == dims]
    if not fitting:
        return None
    windows = tuple(range(vector, vector + rank - 1))
    numbers = ScatterDimensionNumbers(windows, (0,), (0,), vector)
    update = fitting[g.below(len(fitting))]
    return g.add("scatter", operand, indices, update, called=[fold("add")], dimension_numbers=numbers)


def windowed(g: Generator) -> Instruction | None:
    operand = g.array()
    parts = tuple(
        WindowDimension(1 + g.below(3), 1 + g.below(2), g.below(2), g.below(2), 1 + g.below(2), 1 + g.below(2))
        for _ in operand.shape.dims
    )
    if any(part.positions(size) < 1 for part, size in zip(parts, operand.shape.dims, strict=True)):
        return None
    region = fold(("add", "maximum")[g.below(2)])
    return g.add("reduce-window", operand, g.number(g.below(3)), called=[region], window=Window(parts))


def repeated(g: Generator) -> Instruction:
    operand = g.array()
    size = SIZES[g.below(len(SIZES))]
    shape = operand.shape
    result = Shape.array(S32, (size, *shape.dims), (False, *(shape.dynamic or (False,) * shape.rank)))
    return g.add("broadcast", operand, shape=result, dimensions=tuple(range(1, shape.rank + 1)))


def branched(g: Generator) -> Instruction | None:
    """One of two things done to an array, by a size."""
    if g.depth == MAX_DEPTH:
        return None
    operand = g.array()
    branches = [_function(g, operand.shape, operand.shape.dims) for _ in range(2)]
    return g.add("conditional", g.scalar(), operand, operand, called=branches)


def looped(g: Generator) -> Instruction | None:
    """Something done to an array three times."""
    if g.depth == MAX_DEPTH:
        return None
    operand = g.array()
    shape = operand.shape
    dim = g.below(shape.rank)
    bounded = g.add("set-dimension-size", operand, g.scalar(), dimension=dim)
    state = Shape.tuple([Shape.scalar(S32), bounded.shape])
    condition, body = Computation("condition"), Computation("body")
    count = condition.add("get-tuple-element", [condition.add("parameter", shape=state, number=0)], index=0)
    three = condition.add("constant", literal=Literal(np.int32(3)))
    condition.set_root(condition.add("compare", [count, three], direction=ComparisonDirection.LT))
    inner = Generator(g.random, body, g.depth + 1)
    given = body.add("parameter", shape=state, number=0)
    turn, array = (body.add("get-tuple-element", [given], index=index) for index in range(2))
    inner.values = [array]
    inner.grow(4)
    result = inner.shaped(bounded.shape)
    body.set_root(body.add("tuple", [body.add("add", [turn, inner.number(1)]), result]))
    start = g.add("tuple", g.number(0), bounded)
    return g.add("get-tuple-element", g.add("while", start, called=[condition, body]), index=1)


def _function(g: Generator, parameter: Shape, dims: tuple[int, ...]) -> Computation:
    """Some computation from an array to one of the same bounds."""
    inner = Generator(g.random, Computation("branch"), g.depth + 1)
    inner.values = [inner.add("parameter", shape=parameter, number=0)]
    inner.grow(3)
    alike = [value for value in inner.values if value.shape.dims == dims]
    inner.computation.set_root(alike[-1])
    return inner.computation


def _fits(own: Shape, wanted: Shape) -> bool:
    return all(wanted.is_dynamic_dim(dim) or not own.is_dynamic_dim(dim) for dim in range(own.rank))


STEPS: tuple[Callable[[Generator], Instruction | None], ...] = (
    resized, resized, combined, combined, transposed, reshaped, reshaped, folded, ordered, reversed_, padded, part,
    part_at, updated, joined, product, rows, spread_rows, windowed, repeated, branched, looped,
)  # fmt: skip


def random_program(seed: int, steps: int = 12) -> HloModule:
    """A module whose result is the tuple of all that it computes."""
    generator = Generator(np.random.default_rng(seed), Computation(f"program.{seed}"))
    for number in range(2):
        rank = 1 + generator.below(2)
        dims = [SIZES[generator.below(len(SIZES))] for _ in range(rank)]
        flags = [bool(generator.below(2)) for _ in dims]
        generator.values.append(generator.add("parameter", shape=Shape.array(S32, dims, flags), number=number))
    generator.grow(steps)
    generator.computation.set_root(generator.add("tuple", *generator.values))
    return HloModule(f"random.{seed}", generator.computation)
