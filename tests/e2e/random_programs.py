"""Random programs whose results are exact, so that two ways of running them can be compared bit for bit.

Every op that is generated is correctly rounded or moves data. Sums and dots are made exact by rounding their operands
to small whole numbers first: in whatever order they are added, nothing is lost.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.values import random_array
from xlapy.hlo.attributes import (
    ComparisonDirection,
    ComparisonType,
    DotDimensionNumbers,
    PaddingDimension,
    SliceDimension,
)
from xlapy.hlo.element_types import ALL, ANY, COMPLEX, F32, F64, FLOAT, INTEGER, PRED, S32, S64, U32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape

COMMON_TYPES = (F32, F32, F32, S32, S32, PRED, F64)
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
MAX_ELEMENTS = 4096
MAX_RANK = 4
MAX_DEPTH = 2
SMALL = 8  # sums are taken of whole numbers up to this

UNARY = ("abs", "ceil", "copy", "floor", "is-finite", "negate", "not", "popcnt", "count-leading-zeros", "sign")
UNARY += ("round-nearest-even", "round-nearest-afz", "real", "imag", "opt-barrier", "sqrt")
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor")
BINARY += ("shift-left", "shift-right-arithmetic", "shift-right-logical", "power")
INEXACT_FOR_COMPLEX = frozenset({"abs", "sign", "multiply", "divide", "sqrt"})
EXACT_FOR_INTEGERS = frozenset({"power"})
FOLDS = {"float": ("add", "maximum", "minimum"), "pred": ("and", "or", "xor"), "complex": ("add",)}
INTEGER_FOLDS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


@dataclass(slots=True)
class Program:
    """A module with arguments for it."""

    module: HloModule
    arguments: list[Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """What programs are made of: sizes of dimensions, elements of the largest arrays, steps beside the usual ones."""

    sizes: Sequence[int] = SIZES
    max_elements: int = MAX_ELEMENTS
    steps: Sequence[Callable[[Generator], Instruction | None]] = ()


USUAL = Scope()


@dataclass(slots=True)
class Generator:
    """Writes instructions into one computation, at random. `values` are the arrays there are to work with."""

    random: np.random.Generator
    computation: Computation
    depth: int = 0
    scalars_only: bool = False
    values: list[Instruction] = field(default_factory=list)
    scope: Scope = USUAL

    # -- choices ---------------------------------------------------------------------------------------------------

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def number(self, low: int, high: int) -> int:
        """Low and high included."""
        return int(self.random.integers(low, high + 1))

    def value(self, suits: Callable[[Shape], bool] = lambda shape: True) -> Instruction:
        """A value that suits, late ones more often; a fresh constant if there is none."""
        suitable = [value for value in self.values if suits(value.shape)]
        if not suitable:
            return self.constant(next(shape for shape in iter(self.shape, None) if suits(shape)))
        return suitable[max(self.number(0, len(suitable) - 1), self.number(0, len(suitable) - 1))]

    def shape(self) -> Shape:
        shape = random_shape(self)
        return shape.with_dims(()) if self.scalars_only else shape

    def constant(self, shape: Shape) -> Instruction:
        value = random_array(self.random, shape.type, shape.dims)
        return self.add("constant", literal=Literal(value, shape))

    def add(self, opcode: str, *operands: Instruction, **attributes: Any) -> Instruction:
        return self.computation.add(opcode, operands, **attributes)

    # -- one step --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        makers: list[Callable[[], Instruction | None]] = [self.unary, self.binary, self.binary, self.binary]
        makers += [self.compare, self.select, self.clamp, self.convert, self.iota, self.broadcast, self.broadcast]
        makers += [self.reshape, self.transpose, self.reverse, self.slice, self.pad, self.concatenate, self.reduce]
        makers += [self.reduce, self.dot, self.dynamic_slice, self.dynamic_update_slice, self.argmax, self.map]
        makers += [self.complex_number, self.bitcast_convert, self.reduce_precision]
        makers += [functools.partial(step, self) for step in self.scope.steps]
        if self.depth < MAX_DEPTH:
            makers += [self.loop, self.conditional, self.call]
        made = self.choose(makers)()
        if made is not None:
            self.values.append(made)

    def unary(self) -> Instruction | None:
        opcode = self.choose(UNARY)
        types = _exact_types(opcode)
        return self.add(opcode, self.value(lambda shape: shape.type in types))

    def binary(self) -> Instruction:
        opcode = self.choose(BINARY)
        types = _exact_types(opcode)
        lhs = self.value(lambda shape: shape.type in types)
        return self.add(opcode, lhs, self.partner(lhs))

    def partner(self, value: Instruction) -> Instruction:
        """A value of the shape of another one: some value there is, or one made to fit."""
        same = [other for other in self.values if other.shape == value.shape]
        if same and self.chance(0.7):
            return self.choose(same)
        return self.fitted(self.value(), value.shape)

    def fitted(self, value: Instruction, shape: Shape) -> Instruction:
        """A value with the elements of `value` in another shape, cut or padded."""
        if value.shape.type is not shape.type:
            value = self.add("convert", value, shape=value.shape.with_type(shape.type))
        if value.shape.dims == shape.dims:
            return value
        if not value.shape.dims:
            return self.add("broadcast", value, dimensions=(), shape=shape)
        flat = self.add("reshape", value, shape=Shape.array(shape.type, [value.shape.size]))
        missing = shape.size - value.shape.size
        padding = self.constant(Shape.scalar(shape.type))
        padded = self.add("pad", flat, padding, dimensions=(PaddingDimension(0, missing, 0),)) if missing else flat
        return self.add("reshape", padded, shape=shape.without_layout())

    # -- element by element ----------------------------------------------------------------------------------------

    def compare(self) -> Instruction:
        lhs = self.value()
        direction, rhs = self.choose(list(ComparisonDirection)), self.partner(lhs)
        if lhs.shape.type in FLOAT and self.chance(0.3):
            lhs, rhs = self.without_nan(lhs), self.without_nan(rhs)
            return self.add("compare", lhs, rhs, direction=direction, type=ComparisonType.TOTALORDER)
        return self.add("compare", lhs, rhs, direction=direction)

    def without_nan(self, value: Instruction) -> Instruction:
        """The value, or 1 where it is NaN: the sign and payload of a NaN have no meaning."""
        if value.shape.type not in FLOAT:
            return value
        is_number = self.add("compare", value, value, direction=ComparisonDirection.EQ)
        return self.add("select", is_number, value, self.constant_without_nan(value.shape))

    def constant_without_nan(self, shape: Shape) -> Instruction:
        return self.add("broadcast", self.number_constant(1.0, shape.type), dimensions=(), shape=shape.without_layout())

    def select(self) -> Instruction:
        on_true = self.value()
        pred_shape = on_true.shape.with_type(PRED)
        pred = self.fitted(self.value(), Shape.scalar(PRED) if self.chance(0.2) else pred_shape)
        return self.add("select", pred, on_true, self.partner(on_true))

    def clamp(self) -> Instruction:
        value = self.value()
        bounds = [
            self.constant(Shape.scalar(value.shape.type)) if self.chance(0.5) else self.partner(value) for _ in range(2)
        ]
        return self.add("clamp", bounds[0], value, bounds[1])

    def convert(self) -> Instruction:
        value = self.value()
        return self.add("convert", value, shape=value.shape.with_type(random_type(self)))

    def reduce_precision(self) -> Instruction:
        value = self.value(lambda shape: shape.type in FLOAT)
        bits = {"exponent_bits": self.number(1, 11), "mantissa_bits": self.number(0, 52)}
        return self.add("reduce-precision", value, **bits)

    def complex_number(self) -> Instruction:
        value = self.value(lambda shape: shape.type in (F32, F64))
        return self.add("complex", value, self.partner(value))

    def bitcast_convert(self) -> Instruction:
        """To numbers of the same width, or to parts of numbers where there is room for them."""
        value = self.value(lambda shape: shape.type not in COMPLEX)
        shape = value.shape
        room = self.scope.max_elements // max(shape.size, 1) if shape.rank < MAX_RANK else 1
        targets = [t for t in ALL if t not in COMPLEX and not shape.type.bits % t.bits]
        target = self.choose([t for t in targets if shape.type.bits // t.bits <= room])
        parts = shape.type.bits // target.bits
        dims = (*shape.dims, parts) if parts > 1 else shape.dims
        return self.add("bitcast-convert", self.without_nan(value), shape=Shape.array(target, dims))

    def map(self) -> Instruction:
        value = self.value()
        other = self.partner(value)
        scalar = Shape.scalar(value.shape.type)
        called = self.called(
            "mapped", [scalar, scalar], [Shape.scalar(random_type(self))], 3, as_tuple=False, maps=True
        )
        return self.add("map", value, other, called=[called], dimensions=tuple(range(value.shape.rank)))

    # -- data movement ---------------------------------------------------------------------------------------------

    def iota(self) -> Instruction:
        shape = next(shape for shape in iter(lambda: random_shape(self), None) if shape.rank and shape.type is not PRED)
        return self.add("iota", dimension=self.number(0, shape.rank - 1), shape=shape)

    def broadcast(self) -> Instruction:
        value = self.value(lambda shape: shape.rank < MAX_RANK and shape.size <= self.scope.max_elements // 4)
        dims = list(value.shape.dims)
        room = self.scope.max_elements // max(value.shape.size, 1)
        positions = list(range(len(dims)))
        result = list(dims)
        for _ in range(self.number(0, MAX_RANK - len(dims))):
            size = min(self.choose(self.scope.sizes), room)
            room //= max(size, 1)
            place = self.number(0, len(result))
            result.insert(place, size)
            positions = [position + (position >= place) for position in positions]
        if self.chance(0.1):
            order = self.random.permutation(len(positions))
            positions = [positions[int(p)] for p in order]
            for dim, position in enumerate(positions):
                result[position] = dims[dim]
        return self.add("broadcast", value, dimensions=tuple(positions), shape=value.shape.with_dims(result))

    def reshape(self) -> Instruction:
        value = self.value()
        return self.add("reshape", value, shape=value.shape.with_dims(self.factors(value.shape)))

    def factors(self, shape: Shape) -> list[int]:
        """Other dimensions for as many elements."""
        if not shape.size:
            return list(
                self.random.permutation([0, *(self.choose(self.scope.sizes) for _ in range(self.number(0, 2)))])
            )
        rest, dims = shape.size, []
        while rest > 1 and len(dims) < MAX_RANK - 1 and self.chance(0.8):
            divisors = [d for d in range(1, rest + 1) if rest % d == 0]
            dims.append(self.choose(divisors))
            rest //= dims[-1]
        return [int(size) for size in self.random.permutation([*dims, rest])] if rest > 1 or dims else []

    def transpose(self) -> Instruction:
        value = self.value(lambda shape: shape.rank > 1)
        order = tuple(int(d) for d in self.random.permutation(value.shape.rank))
        return self.add("transpose", value, permutation=order)

    def reverse(self) -> Instruction:
        value = self.value(lambda shape: shape.rank > 0)
        return self.add("reverse", value, dimensions=self.some_dimensions(value.shape))

    def some_dimensions(self, shape: Shape) -> tuple[int, ...]:
        return tuple(dim for dim in range(shape.rank) if self.chance(0.5))

    def slice(self) -> Instruction:
        value = self.value(lambda shape: shape.rank > 0)
        parts = []
        for size in value.shape.dims:
            start = self.number(0, size)
            if self.chance(0.7):
                start //= 2
            limit = size if self.chance(0.5) else self.number(start, size)
            parts.append(SliceDimension(start, limit, self.choose((1, 1, 1, 2, 3))))
        return self.add("slice", value, dimensions=tuple(parts))

    def pad(self) -> Instruction | None:
        value = self.value(lambda shape: shape.rank > 0)
        parts = []
        for size in value.shape.dims:
            interior = self.choose((0, 0, 0, 1, 2))
            inner = size + max(size - 1, 0) * interior
            low = self.choose((0, 0, 1, 3, -1))
            high = self.choose((0, 0, 1, 2, -2))
            parts.append(PaddingDimension(low, max(high, -inner - low), interior))
        sizes = [p.low + p.high + n + max(n - 1, 0) * p.interior for p, n in zip(parts, value.shape.dims, strict=True)]
        if math.prod(sizes) > self.scope.max_elements or min(sizes) < 0:
            return None
        return self.add("pad", value, self.constant(Shape.scalar(value.shape.type)), dimensions=tuple(parts))

    def concatenate(self) -> Instruction:
        value = self.value(lambda shape: shape.rank > 0 and shape.size <= self.scope.max_elements // 4)
        dimension = self.number(0, value.shape.rank - 1)
        parts = [value]
        for _ in range(self.number(0, 3)):
            other = value.shape.with_dim(dimension, self.choose((0, 1, 2, 5)))
            parts.append(self.partner(value) if self.chance(0.3) else self.fitted(self.value(), other))
        order = self.random.permutation(len(parts))
        return self.add("concatenate", *(parts[int(i)] for i in order), dimension=dimension)

    def dynamic_slice(self) -> Instruction:
        value = self.value(lambda shape: shape.rank > 0)
        sizes = tuple(self.number(0 if self.chance(0.1) else min(1, size), size) for size in value.shape.dims)
        return self.add("dynamic-slice", value, *self.starts(value.shape.rank), slice_sizes=sizes)

    def starts(self, count: int) -> list[Instruction]:
        kind = self.choose((S32, S32, S64, U32))
        return [self.fitted(self.value(lambda shape: not shape.rank), Shape.scalar(kind)) for _ in range(count)]

    def dynamic_update_slice(self) -> Instruction:
        value = self.value()
        sizes = [self.number(min(1, size), size) for size in value.shape.dims]
        update = self.fitted(self.value(), value.shape.with_dims(sizes))
        return self.add("dynamic-update-slice", value, update, *self.starts(value.shape.rank))

    # -- folds -----------------------------------------------------------------------------------------------------

    def small(self, value: Instruction) -> Instruction:
        """Whole numbers between -SMALL and SMALL, and NaN, in place of floats: their sums are exact."""
        if value.shape.type in COMPLEX:
            part = self.add("real", value)
            return self.add("convert", self.small(part), shape=value.shape.without_layout())
        if value.shape.type not in FLOAT:
            return value
        limits = [self.number_constant(limit, value.shape.type) for limit in (-SMALL, SMALL)]
        return self.add("round-nearest-even", self.add("clamp", limits[0], value, limits[1]))

    def number_constant(self, number: float, element_type: ElementType) -> Instruction:
        return self.add("constant", literal=Literal(number, Shape.scalar(element_type)))

    def reduce(self) -> Instruction | None:
        value = self.value(lambda shape: shape.type.bits >= 16 or shape.type not in FLOAT)
        kind = value.shape.type.kind
        opcode = self.choose(FOLDS.get(kind, INTEGER_FOLDS))
        if opcode == "add":
            value = self.small(value)
        init = self.small(self.constant(Shape.scalar(value.shape.type)))
        called = binary_computation(opcode, value.shape.type)
        dimensions = self.some_dimensions(value.shape)
        return self.add("reduce", value, init, called=[called], dimensions=dimensions)

    def argmax(self) -> Instruction:
        """Of two inputs: a variadic fold that no order of evaluation changes, since indices break ties."""
        value = self.value(lambda shape: shape.rank > 0 and shape.type in INTEGER and shape.type.bits >= 8)
        index = self.add("iota", dimension=self.number(0, value.shape.rank - 1), shape=value.shape.with_type(S32))
        lowest = self.number_constant(int(np.iinfo(value.shape.type.dtype).min), value.shape.type)
        inits = [lowest, self.number_constant(np.iinfo(np.int32).max, S32)]
        called = argmax_computation(value.shape.type)
        folded = self.add("reduce", value, index, *inits, called=[called], dimensions=self.some_dimensions(value.shape))
        parts = [self.add("get-tuple-element", folded, index=part) for part in range(2)]
        self.values.append(parts[1])
        return parts[0]

    def dot(self, kinds: Sequence[ElementType] = (F32, F32, F64, S32, U32)) -> Instruction | None:
        """Batch, contracting and free dimensions, in any order on both sides."""
        kind = self.choose(kinds)
        batch = [self.choose(self.scope.sizes[:5]) for _ in range(self.choose((0, 0, 0, 1, 2)))]
        contracting = [self.choose(self.scope.sizes[:9]) for _ in range(self.choose((0, 1, 1, 1, 2)))]
        free = [[self.choose(self.scope.sizes[:9]) for _ in range(self.choose((0, 1, 1, 2)))] for _ in range(2)]
        if any(math.prod([*batch, *contracting, *side]) > self.scope.max_elements for side in free):
            return None
        if math.prod([*batch, *free[0], *free[1]]) > self.scope.max_elements:
            return None
        sides, numbers = [], []
        for side in free:
            roles = [*batch, *contracting, *side]
            order = [int(p) for p in self.random.permutation(len(roles))]
            places = [order.index(role) for role in range(len(roles))]
            numbers += [tuple(places[: len(batch)]), tuple(places[len(batch) : len(batch) + len(contracting)])]
            shape = Shape.array(kind, [roles[role] for role in order])
            sides.append(self.small(self.fitted(self.value(), shape)))
        dims = [*batch, *free[0], *free[1]]
        return self.add(
            "dot",
            *sides,
            dimension_numbers=DotDimensionNumbers(numbers[1], numbers[3], numbers[0], numbers[2]),
            shape=Shape.array(kind, dims),
        )

    # -- control flow ----------------------------------------------------------------------------------------------

    def called(
        self,
        name: str,
        parameters: Sequence[Shape],
        results: Sequence[Shape],
        steps: int,
        *,
        as_tuple: bool,
        maps: bool = False,
    ) -> Computation:
        """A computation of parameters (in a tuple, or not) and results of the given shapes."""
        inner = Generator(self.random, Computation(name), self.depth + 1, scalars_only=maps, scope=self.scope)
        if as_tuple:
            state = inner.add("parameter", number=0, shape=Shape.tuple(parameters))
            inner.values = [inner.add("get-tuple-element", state, index=i) for i in range(len(parameters))]
        else:
            inner.values = [inner.add("parameter", number=i, shape=shape) for i, shape in enumerate(parameters)]
        for _ in range(steps):
            if maps:
                inner.scalar_step()
            else:
                inner.step()
        found = [inner.result(shape) for shape in results]
        inner.computation.set_root(found[0] if maps else inner.add("tuple", *found))
        return inner.computation

    def scalar_step(self) -> None:
        """A step of a computation of scalars: what needs an array where there is none is left out."""
        made = self.choose([self.unary, self.binary, self.select, self.compare, self.convert])()
        self.values.append(made)

    def result(self, shape: Shape) -> Instruction:
        same = [value for value in self.values if value.shape.matches(shape)]
        if same and self.chance(0.8):
            return self.choose(same[-3:])
        return self.fitted(self.value(), shape)

    def state(self) -> list[Instruction]:
        return [self.value() for _ in range(self.number(1, 4))]

    def unpack(self, made: Instruction, first: int = 0) -> Instruction:
        parts = [self.add("get-tuple-element", made, index=i) for i in range(first, len(made.shape.parts))]
        self.values += parts[1:]
        return parts[0]

    def loop(self) -> Instruction:
        """Counts to a small number, carrying some values."""
        carried = self.state()
        shapes = [Shape.scalar(S32), *(value.shape for value in carried)]
        body = self.called("body", shapes, shapes[1:], self.number(1, 6), as_tuple=True)
        inner = Generator(self.random, body)
        count = next(i for i in body if i.opcode == "get-tuple-element" and i.attributes["index"] == 0)
        following = inner.add("add", count, inner.number_constant(1, S32))
        body.set_root(inner.add("tuple", following, *body.root.operands))
        condition = Computation("condition")
        within = Generator(self.random, condition)
        state = within.add("parameter", number=0, shape=Shape.tuple(shapes))
        limit = within.number_constant(self.choose((0, 1, 2, 3, 5)), S32)
        counted = within.add("get-tuple-element", state, index=0)
        condition.set_root(within.add("compare", counted, limit, direction=ComparisonDirection.LT))
        start = self.add("tuple", self.number_constant(0, S32), *carried)
        return self.unpack(self.add("while", start, called=[condition, body]), first=1)

    def conditional(self) -> Instruction:
        two_way = self.chance(0.5)
        selector = self.fitted(self.value(lambda shape: not shape.rank), Shape.scalar(PRED if two_way else S32))
        results = [value.shape for value in self.state()]
        branches, operands = [], []
        for number in range(2 if two_way else self.number(1, 4)):
            passed = self.state()
            shapes = [value.shape for value in passed]
            branches.append(self.called(f"branch{number}", shapes, results, self.number(0, 5), as_tuple=True))
            operands.append(self.add("tuple", *passed))
        return self.unpack(self.add("conditional", selector, *operands, called=branches))

    def call(self) -> Instruction:
        passed, results = self.state(), [value.shape for value in self.state()]
        shapes = [value.shape for value in passed]
        callee = self.called("callee", shapes, results, self.number(1, 5), as_tuple=False)
        return self.unpack(self.add("call", *passed, called=[callee]))


def _exact_types(opcode: str) -> frozenset[ElementType]:
    """The element types for which an op is correctly rounded."""
    types = OPS[opcode].options.get("types", ANY)
    if opcode in EXACT_FOR_INTEGERS:
        return types & INTEGER
    return types - COMPLEX if opcode in INEXACT_FOR_COMPLEX else types


def random_type(generator: Generator) -> ElementType:
    return generator.choose(COMMON_TYPES if generator.chance(0.7) else ALL)


def random_shape(generator: Generator) -> Shape:
    """Mostly small; at times a dimension is empty."""
    dims: list[int] = []
    for _ in range(generator.number(0, MAX_RANK)):
        size = 0 if generator.chance(0.02) else generator.choose(generator.scope.sizes)
        if math.prod([*dims, size]) <= generator.scope.max_elements:
            dims.append(size)
    return Shape.array(random_type(generator), dims)


def binary_computation(opcode: str, element_type: ElementType) -> Computation:
    """(T, T) -> T."""
    computation = Computation(opcode)
    operands = [computation.add("parameter", number=i, shape=Shape.scalar(element_type)) for i in range(2)]
    computation.set_root(computation.add(opcode, operands))
    return computation


def argmax_computation(element_type: ElementType) -> Computation:
    """(T, s32, T, s32) -> (T, s32): the larger value; of equal ones, the smaller index."""
    computation = Computation("argmax")
    kinds = (element_type, S32, element_type, S32)
    best, at, value, index = (
        computation.add("parameter", number=i, shape=Shape.scalar(kind)) for i, kind in enumerate(kinds)
    )
    larger = computation.add("compare", (value, best), direction=ComparisonDirection.GT)
    equal = computation.add("compare", (value, best), direction=ComparisonDirection.EQ)
    earlier = computation.add("compare", (index, at), direction=ComparisonDirection.LT)
    chosen = computation.add("or", (larger, computation.add("and", (equal, earlier))))
    results = [computation.add("select", (chosen, *pair)) for pair in ((value, best), (index, at))]
    computation.set_root(computation.add("tuple", results))
    return computation


def random_program(seed: int, steps: int = 20, scope: Scope = USUAL) -> Program:
    """The program of a seed: a few parameters, then `steps` steps; the results are in a tuple."""
    random = np.random.default_rng(seed)
    generator = Generator(random, Computation("main"), scope=scope)
    arguments = []
    for number in range(generator.number(1, 4)):
        shape = random_shape(generator)
        generator.values.append(generator.add("parameter", number=number, shape=shape))
        arguments.append(random_array(random, shape.type, shape.dims))
    for _ in range(steps):
        generator.step()
    roots = generator.values[-generator.number(1, 6) :]
    generator.computation.set_root(generator.add("tuple", *roots))
    return Program(HloModule(f"random_{seed}", generator.computation), arguments)
