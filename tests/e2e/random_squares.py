"""Random programs of arrays all of whose dimensions have one size, or size 1.

Values of rows and of columns then look alike, and so do arrays and what they are when turned: what tells them apart is
where they come from. Results are exact, as every sum is cut to small whole numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection, DotDimensionNumbers, SliceDimension
from xlapy.hlo.element_types import BF16, F32, F64, S32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Dims, Shape

TYPES = (F32, F32, F32, F64, S32, BF16)
SIZES = {2: (16, 24, 32, 64, 100, 256, 300), 3: (8, 12, 16, 24, 40)}
"""By how many dimensions have them in the largest arrays."""

LIMIT = 9  # of absolute values
MOST_DIMENSIONS = 5
FOLDS = ("add", "maximum", "minimum")
EXACT_FOLDS = ("maximum", "minimum")  # also of bf16, where long sums are not


class Squares:
    """Grows one program. `values` are what there is, by dimensions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.type: ElementType = self.random.choice(TYPES)
        self.rank = self.random.choice((2, 2, 2, 3))
        self.size = self.random.choice(SIZES[self.rank])
        self.computation = Computation("main")
        self.folds = {opcode: self._fold(opcode) for opcode in FOLDS}
        self.bounds = [self._number(number) for number in (-LIMIT, LIMIT)]
        self.arguments: list[np.ndarray[Any, Any]] = []
        self.values: dict[Dims, list[Instruction]] = {}

    def program(self) -> HloModule:
        self._add_parameters(np.random.default_rng(self.random.randrange(1 << 30)))
        for _ in range(self.random.randint(5, 20)):
            dims = self.random.choice([*self.values])
            made = self.random.choice(STEPS)(self, dims)
            if made is not None:
                self.values.setdefault(made.shape.dims, []).append(made)
        ends = [value for values in self.values.values() for value in values[-2:]]
        results = [end for end in ends if not end.users or self.random.random() < 0.25]
        self.computation.set_root(self.add("tuple", *results))
        return HloModule("squares", self.computation)

    def _add_parameters(self, numbers: np.random.Generator) -> None:
        ranks = [self.rank] * self.random.choice((1, 1, 2))
        ranks += [self.random.choice((1, self.rank - 1))] * self.random.choice((0, 1, 2))
        for number, rank in enumerate(ranks):
            shape = Shape.array(self.type, self.dims(rank))
            self.arguments.append(numbers.integers(-LIMIT, LIMIT + 1, shape.dims).astype(self.type.dtype))
            self.values.setdefault(shape.dims, []).append(self.add("parameter", shape=shape, number=number))

    def _fold(self, opcode: str) -> Computation:
        region = Computation(opcode)
        parameters = [region.add("parameter", shape=Shape.scalar(self.type), number=number) for number in range(2)]
        region.set_root(region.add(opcode, parameters))
        return region

    def _number(self, number: int) -> Instruction:
        return self.add("constant", literal=Literal(number, Shape.scalar(self.type)))

    def add(self, opcode: str, *operands: Instruction, **attributes: Any) -> Instruction:
        return self.computation.add(opcode, operands, **attributes)

    def dims(self, large: int) -> Dims:
        """So many dimensions of the size, and some of size 1."""
        dims = [self.size] * large
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            dims.insert(self.random.randint(0, len(dims)), 1)
        return tuple(dims) or (1,)

    def value(self, dims: Dims) -> Instruction:
        """A late one, mostly."""
        values = self.values[dims]
        return self.random.choice(values[-4:] if self.random.random() < 0.7 else values)

    def bounded(self, value: Instruction) -> Instruction:
        low, high = self.bounds
        return self.add("clamp", low, value, high)

    # -- steps

    def unary(self, dims: Dims) -> Instruction:
        return self.add(self.random.choice(("abs", "negate", "sign")), self.value(dims))

    def binary(self, dims: Dims) -> Instruction:
        opcode = self.random.choice(("add", "subtract", "multiply", "maximum", "minimum"))
        return self.bounded(self.add(opcode, self.value(dims), self.value(dims)))

    def select(self, dims: Dims) -> Instruction:
        direction = self.random.choice((ComparisonDirection.LT, ComparisonDirection.GE, ComparisonDirection.EQ))
        chosen = self.add("compare", self.value(dims), self.value(dims), direction=direction)
        return self.add("select", chosen, self.value(dims), self.value(dims))

    def reduce(self, dims: Dims) -> Instruction | None:
        if len(dims) < 2:
            return None
        folded = self.random.sample(range(len(dims)), self.random.randint(1, len(dims) - 1))
        opcode = self.random.choice(EXACT_FOLDS if self.type is BF16 else FOLDS)
        identity = identity_literal(self.folds[opcode])
        assert identity is not None
        init = self.add("constant", literal=identity)
        return self.bounded(
            self.add(
                "reduce",
                self.value(dims),
                init,
                called=[self.folds[opcode]],
                dimensions=tuple(sorted(folded)),
            )
        )

    def broadcast(self, dims: Dims) -> Instruction | None:
        missing = self.rank - dims.count(self.size)
        added = [self.size] * self.random.randint(1, missing) if missing else []
        added += [1] * (self.random.random() < 0.3)
        if not added or len(dims) + len(added) > MOST_DIMENSIONS:
            return None
        wide = [(size, dim) for dim, size in enumerate(dims)]
        for size in added:
            wide.insert(self.random.randint(0, len(wide)), (size, -1))
        places = tuple(place for place, (_, dim) in enumerate(wide) if dim >= 0)
        shape = Shape.array(self.type, [size for size, _ in wide])
        return self.add("broadcast", self.value(dims), shape=shape, dimensions=places)

    def reshape(self, dims: Dims) -> Instruction:
        large = dims.count(self.size)
        alike = [other for other in self.values if other.count(self.size) == large]
        wanted = self.random.choice(alike) if self.random.random() < 0.5 else self.dims(large)
        return self.add("reshape", self.value(dims), shape=Shape.array(self.type, wanted))

    def transpose(self, dims: Dims) -> Instruction:
        permutation = tuple(self.random.sample(range(len(dims)), len(dims)))
        return self.add("transpose", self.value(dims), permutation=permutation)

    def reverse(self, dims: Dims) -> Instruction:
        return self.add("reverse", self.value(dims), dimensions=(self.random.randrange(len(dims)),))

    def iota(self, dims: Dims) -> Instruction:
        shape = Shape.array(self.type, dims)
        return self.bounded(self.add("iota", shape=shape, dimension=self.random.randrange(len(dims))))

    def roll(self, dims: Dims) -> Instruction:
        """The end of one array and the beginning of another one."""
        along = self.random.randrange(len(dims))
        joined = self.add("concatenate", self.value(dims), self.value(dims), dimension=along)
        start = self.random.randint(0, dims[along])
        parts = [
            SliceDimension(start, start + size, 1) if dim == along else SliceDimension(0, size, 1)
            for dim, size in enumerate(dims)
        ]
        return self.add("slice", joined, dimensions=tuple(parts))

    def dot(self, dims: Dims) -> Instruction | None:
        if dims != (self.size, self.size) or self.type not in (F32, F64):
            return None
        contracted = [(self.random.randint(0, 1),) for _ in range(2)]
        numbers = DotDimensionNumbers(*contracted)
        shape = Shape.array(self.type, dims)
        return self.bounded(self.add("dot", self.value(dims), self.value(dims), dimension_numbers=numbers, shape=shape))


Step = Callable[[Squares, Dims], Instruction | None]
STEPS: tuple[Step, ...] = (
    *(Squares.unary, Squares.select, Squares.reverse, Squares.iota, Squares.roll, Squares.dot, Squares.transpose),
    *(Squares.reshape,) * 2,
    *(Squares.binary, Squares.reduce, Squares.broadcast) * 3,
)
