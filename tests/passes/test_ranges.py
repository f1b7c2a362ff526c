"""What is known of the numbers of random programs holds for every number that the evaluator finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import xlapy
from tests.support.values import random_array
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import S8, S16, S32, U8, U32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.passes.analysis.ranges import value_ranges

DIMS = (6, 5)
TYPES = (S8, S16, S32, S32, S32, U8, U32)
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "and", "or", "xor", "maximum", "minimum")
BINARY += ("shift-left", "shift-right-arithmetic", "shift-right-logical")
STEPS = 25


class Maker:
    """Grows one computation of integers, most of which are known to be small."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.computation = Computation("main")
        self.arguments = [random_array(self.random, type, DIMS) for type in (S32, U8)]
        self.values = [
            self.add("parameter", number=number, shape=Shape.array(type, DIMS)) for number, type in enumerate((S32, U8))
        ]

    def add(self, opcode: str, *operands: Instruction, **attributes: object) -> Instruction:
        return self.computation.add(opcode, operands, **attributes)  # type: ignore[arg-type]

    def below(self, limit: int) -> int:
        return int(self.random.integers(limit))

    def number(self, type: ElementType) -> Instruction:
        low, high = type.integer_range
        number = min(max(int(self.random.integers(-3, 18)), low), high)
        constant = self.add("constant", literal=Literal(number, Shape.scalar(type)))
        return self.add("broadcast", constant, dimensions=(), shape=Shape.array(type, DIMS))

    def of(self, type: ElementType) -> Instruction:
        """A value of a type: one that is there, a number, or one that is cut to a few bits or converted."""
        found = [value for value in self.values if value.shape.type is type]
        choice = self.below(4)
        if choice < 2 and found:
            return found[self.below(len(found))]
        if choice == 2:
            return self.number(type)
        value = self.values[self.below(len(self.values))]
        converted = self.add("convert", value, shape=Shape.array(type, DIMS))
        return self.add("and", converted, self.number(type)) if self.below(2) else converted

    def grow(self) -> None:
        type = TYPES[self.below(len(TYPES))]
        self.values.append(STEPS_OF[self.below(len(STEPS_OF))](self, type))


def binary(maker: Maker, type: ElementType) -> Instruction:
    return maker.add(BINARY[maker.below(len(BINARY))], maker.of(type), maker.of(type))


def unary(maker: Maker, type: ElementType) -> Instruction:
    return maker.add(("negate", "abs")[maker.below(2)] if type.is_signed else "not", maker.of(type))


def clamp(maker: Maker, type: ElementType) -> Instruction:
    return maker.add("clamp", maker.of(type), maker.of(type), maker.of(type))


def compare(maker: Maker, type: ElementType) -> Instruction:
    directions = list(ComparisonDirection)
    return maker.add("compare", maker.of(type), maker.of(type), direction=directions[maker.below(len(directions))])


def select(maker: Maker, type: ElementType) -> Instruction:
    return maker.add("select", compare(maker, type), maker.of(type), maker.of(type))


def iota(maker: Maker, type: ElementType) -> Instruction:
    return maker.add("iota", shape=Shape.array(type, DIMS), dimension=maker.below(2))


def largest(maker: Maker, type: ElementType) -> Instruction:
    found = maker.add("topk", maker.of(type), k=DIMS[1], largest=bool(maker.below(2)))
    return maker.add("get-tuple-element", found, index=maker.below(2))


STEPS_OF: tuple[Callable[[Maker, ElementType], Instruction], ...] = (
    *(binary, binary, binary, binary, unary, clamp, clamp, compare, select, iota, largest),
)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_numbers_lie_where_they_are_known_to(first: int) -> None:
    known_of = 0
    for seed in range(first, first + 20):
        maker = Maker(seed)
        for _ in range(STEPS):
            maker.grow()
        known = value_ranges(maker.computation, {})
        known_of += len(known)
        looked_at = [value for value in maker.values if value in known]
        maker.computation.set_root(maker.add("tuple", *looked_at))
        module = HloModule("ranges", maker.computation)
        with np.errstate(all="ignore"):
            found = xlapy.evaluate(module, *maker.arguments)
        for value, numbers in zip(looked_at, found, strict=True):
            low, high = known[value]
            assert low <= int(numbers.min()) and int(numbers.max()) <= high, f"seed {seed}: {value} in {low} to {high}"
    assert known_of > 20 * STEPS
