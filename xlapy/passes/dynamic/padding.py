"""The computation that the padder writes: static arrays, and beside them the run-time sizes of their dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.support.registry import Registry

Path: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = dict[tuple[Path, int], Instruction]
"""The s32 size of a bounded dimension, by path of the leaf in the value and dimension. Others have a static size."""


class Padding:
    """A static copy of one computation in the making. Rules call its methods to add what they need."""

    def __init__(self, name: str) -> None:
        self.computation = Computation(name)
        self.copies: dict[Instruction, Instruction] = {}
        self._sizes: dict[Instruction, Sizes] = {}
        self._constants: dict[int, Instruction] = {}

    # -- what is known ------------------------------------------------------------------------------------------------

    def copy(self, instruction: Instruction) -> Instruction:
        """The static value of an instruction of the original."""
        return self.copies[instruction]

    def sizes(self, instruction: Instruction) -> Sizes:
        """The run-time sizes of an instruction of the original."""
        return self._sizes.get(instruction, {})

    def size(self, instruction: Instruction, dim: int) -> Instruction | None:
        """The run-time size of dimension `dim` of an array, if it is bounded."""
        return self.sizes(instruction).get(((), dim))

    def is_dynamic(self, instruction: Instruction) -> bool:
        return bool(self.sizes(instruction))

    def enter(self, instruction: Instruction, copy: Instruction, sizes: Sizes | None = None) -> None:
        self.copies[instruction] = copy
        if sizes:
            self._sizes[instruction] = sizes

    def enter_array(self, instruction: Instruction, copy: Instruction, sizes: dict[int, Instruction | None]) -> None:
        """Like `enter`, with sizes by dimension; None where the dimension is static."""
        self.enter(instruction, copy, {((), dim): size for dim, size in sizes.items() if size is not None})

    # -- what is added ------------------------------------------------------------------------------------------------

    def add(self, opcode: str, operands: Sequence[Instruction] = (), **arguments: Any) -> Instruction:
        return self.computation.add(opcode, operands, **arguments)

    def same(self, instruction: Instruction, operands: Sequence[Instruction] | None = None) -> Instruction:
        """The static copy of an instruction, on the copies of its operands."""
        used = [self.copies[operand] for operand in instruction.operands] if operands is None else operands
        return self.computation.add_copy(instruction, used, instruction.shape.static())

    def number(self, value: int) -> Instruction:
        if value not in self._constants:
            self._constants[value] = self.add("constant", literal=Literal(np.int32(value)))
        return self._constants[value]

    def zero(self, like: Instruction) -> Instruction:
        return self.add("constant", literal=Literal(0, Shape.scalar(like.shape.type)))

    def bounded(self, size: Instruction, low: int, high: int) -> Instruction:
        """The s32 `size`, moved into [low, high]: what a program claims must never lead outside an array."""
        if size.shape.type is not S32:
            size = self.add("convert", [size], shape=Shape.scalar(S32))
        return self.add("clamp", [self.number(low), size, self.number(high)])

    def spread(self, scalar: Instruction, like: Instruction) -> Instruction:
        return self.add("broadcast", [scalar], shape=scalar.shape.with_dims(like.shape.dims), dimensions=())

    def masked(self, array: Instruction, sizes: dict[int, Instruction | None], filler: Instruction) -> Instruction:
        """`array` with `filler`, a scalar, at every index beyond a size."""
        for dim, size in sizes.items():
            if size is not None:
                inside = self.inside(array, dim, size)
                array = self.add("select", [inside, array, self.spread(filler, array)])
        return array

    def inside(self, array: Instruction, dim: int, size: Instruction) -> Instruction:
        """pred of the dimensions of `array`: the index along `dim` is below `size`."""
        index = self.add("iota", shape=Shape.array(S32, array.shape.dims), dimension=dim)
        return self.add("compare", [index, self.spread(size, index)], direction=ComparisonDirection.LT)

    def array_sizes(self, instruction: Instruction) -> dict[int, Instruction | None]:
        """The sizes of an array of the original, by dimension."""
        return {dim: size for (_, dim), size in self.sizes(instruction).items()}


Rule: TypeAlias = Callable[[Padding, Instruction], None]

RULES: Registry[Rule] = Registry("dynamic padding", OPS)
"""What an op does when an operand, or its result, has a bounded dimension: enters the static copy and its sizes."""
