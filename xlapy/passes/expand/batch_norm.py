"""Batch normalization as reductions and element-wise operations, which fuse.

    ROOT y = f32[8,4] batch-norm-inference(x, gamma, beta, mu, variance), epsilon=0.5, feature_index=1

becomes gamma * ((x - mu) / sqrt(variance + 0.5)) + beta, where each vector is broadcast along the features. What is the
same for all elements of a feature is computed on vectors. Floats narrower than f32 are computed in f32 and rounded at
the end. How many elements a feature has is asked for at run time where it is not known before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import F32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import OPS
from xlapy.hlo.regions import binary_region
from xlapy.hlo.shape import Shape
from xlapy.passes import new
from xlapy.passes.base import Pass
from xlapy.passes.new import Value
from xlapy.support.registry import Registry


@dataclass
class BatchNormExpansion(Pass):
    name: ClassVar[str] = "expand-batch-norm"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = frozenset({"batch-norm-training", "batch-norm-inference", "batch-norm-grad"})

    def run(self, module: HloModule) -> bool:
        sums: dict[ElementType, Computation] = {}
        changed = False
        for computation in module.computations():
            for instruction in computation.post_order():
                expansion = _EXPANSIONS.get(instruction.opcode)
                if expansion is not None:
                    results = expansion(_Expansion(instruction, sums))
                    root = results[0] if len(results) == 1 else new.op("tuple", results)
                    replacement, _ = new.materialize(root, computation, instruction)
                    computation.replace(instruction, replacement)
                    computation.remove([instruction])
                    changed = True
        return changed


class _Expansion:
    """What the formulas are written in: the operands in the type of the computation, and vectors along the features."""

    def __init__(self, instruction: Instruction, sums: dict[ElementType, Computation]) -> None:
        self.instruction = instruction
        self.sums = sums
        self.feature: int = instruction.attributes["feature_index"]
        self.shape = instruction.shape.leaves()[0].without_layout()
        self.wide = self.shape.with_type(F32) if self.shape.type.is_narrow_float else self.shape
        self.sizes = {dim: self._size(dim) for dim in range(self.shape.rank) if self.shape.is_dynamic_dim(dim)}
        self.operands: list[Value] = [
            self._cut(new.converted(operand, self.wide.type)) for operand in instruction.operands
        ]

    def _along(self, operand: Value, dim: int) -> int | None:
        """Which dimension of an operand, an array or a vector of features, `dim` of the arrays is."""
        if operand.shape.rank == self.shape.rank:
            return dim
        return 0 if dim == self.feature else None

    def _size(self, dim: int) -> Value:
        """The smallest run-time size that an operand has along `dim`."""
        places = [(operand, self._along(operand, dim)) for operand in self.instruction.operands]
        size, *others = (
            new.op("get-dimension-size", [operand], dimension=place) for operand, place in places if place is not None
        )
        for other in others:
            size = new.op("minimum", [size, other])
        return size

    def _cut(self, operand: Value) -> Value:
        for dim, size in self.sizes.items():
            place = self._along(operand, dim)
            if place is not None:
                operand = new.op("set-dimension-size", [operand, size], dimension=place)
        return operand

    def spread(self, vector: Value) -> Value:
        """The vector in the shape of the operand."""
        return new.broadcast(vector, shape=self.wide, dimensions=(self.feature,))

    def total(self, array: Value) -> Value:
        """The sum of each feature."""
        zero = new.filled(0, Shape.scalar(self.wide.type))
        others = tuple(dim for dim in range(self.shape.rank) if dim != self.feature)
        if self.wide.type not in self.sums:
            self.sums[self.wide.type] = binary_region("add", self.wide.type)
        return new.op("reduce", [array, zero], called=[self.sums[self.wide.type]], dimensions=others)

    def count(self, like: Value) -> Value:
        """The number of elements of a feature, as far as they exist at run time."""
        others = [dim for dim in range(self.shape.rank) if dim != self.feature]
        known = math.prod(self.shape.dims[dim] for dim in others if not self.shape.is_dynamic_dim(dim))
        count = new.number(known, like)
        for dim, size in self.sizes.items():
            if dim != self.feature:
                number = new.convert(size, shape=Shape.scalar(like.shape.type))
                count = new.multiply(count, new.broadcast(number, shape=like.shape, dimensions=()))
        return count

    def deviation(self, variance: Value) -> Value:
        return new.sqrt(self.stabilized(variance))

    def stabilized(self, variance: Value) -> Value:
        return new.add(variance, new.number(self.instruction.attributes["epsilon"], variance))

    def rounded(self, result: Value) -> Value:
        """The result in the element type of the operand."""
        return new.converted(result, self.shape.type)


_EXPANSIONS: Registry[Callable[[_Expansion], list[Value]]] = Registry("batch norm formulas", OPS)


def _normalized(e: _Expansion, x: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
    scores = new.divide(new.subtract(x, e.spread(mean)), e.spread(e.deviation(variance)))
    return new.add(new.multiply(e.spread(scale), scores), e.spread(offset))


@_EXPANSIONS.register("batch-norm-inference")
def _inference(e: _Expansion) -> list[Value]:
    return [e.rounded(_normalized(e, *e.operands))]


@_EXPANSIONS.register("batch-norm-training")
def _training(e: _Expansion) -> list[Value]:
    x, scale, offset = e.operands
    sums = e.total(x)
    mean = new.divide(sums, e.count(sums))
    centered = new.subtract(x, e.spread(mean))
    variance = new.divide(e.total(new.multiply(centered, centered)), e.count(sums))
    output = _normalized(e, x, scale, offset, mean, variance)
    return [e.rounded(result) for result in (output, mean, variance)]


@_EXPANSIONS.register("batch-norm-grad")
def _gradients(e: _Expansion) -> list[Value]:
    x, scale, mean, variance, gradient = e.operands
    centered = new.subtract(x, e.spread(mean))
    deviation = e.deviation(variance)
    grad_offset = e.total(gradient)
    grad_scale = e.total(new.multiply(gradient, new.divide(centered, e.spread(deviation))))
    projected = new.multiply(e.spread(e.total(new.multiply(gradient, centered))), centered)
    rest = new.subtract(new.multiply(gradient, e.count(gradient)), e.spread(grad_offset))
    rest = new.subtract(rest, new.divide(projected, e.spread(e.stabilized(variance))))
    factor = new.divide(new.divide(scale, deviation), e.count(scale))
    return [e.rounded(result) for result in (new.multiply(e.spread(factor), rest), grad_scale, grad_offset)]
