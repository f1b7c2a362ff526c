"""The oldest spelling: a builder whose methods are the operations, as ComputationBuilder had them from 2017 to 2020.

    c = ComputationBuilder("axpy")
    x = c.ParameterFromNumpy(np.ones(4, np.float32))
    computation = c.Build(c.Add(c.Mul(x, c.Constant(np.float32(2))), x))

Every op function is a method, without the builder as an argument. Methods are written out where the old form differs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlapy.builder.builder import XlaBuilder, XlaComputation
from xlapy.builder.op import XlaOp
from xlapy.builder.registry import FUNCTIONS
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError

Integers = Sequence[int]


class ComputationBuilder:
    """Records a computation. `Build` returns what `xlapy.compile` takes."""

    def __init__(self, name: str) -> None:
        self.builder = XlaBuilder(name)
        self._parameters = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"ComputationBuilder has no operation {name!r}")
        first = next(iter(inspect.signature(function).parameters), "")
        return functools.partial(function, self.builder) if first == "builder" else function

    def Build(self, root: XlaOp | None = None) -> XlaComputation:
        return self.builder.build(root)

    def GetShape(self, operand: XlaOp) -> Shape:
        return operand.shape

    # Leaves

    def ParameterWithShape(self, shape: Shape, name: str = "", parameter_num: int | None = None) -> XlaOp:
        """The next parameter, or the one with that number."""
        number = self._parameters if parameter_num is None else parameter_num
        self._parameters = max(self._parameters, number + 1)
        return self._call("Parameter", number, shape, name)

    def ParameterFromNumpy(self, value: Any, name: str = "", parameter_num: int | None = None) -> XlaOp:
        """A parameter of the shape of `value`."""
        return self.ParameterWithShape(Shape.of(value), name, parameter_num)

    def ConstantF32Scalar(self, value: float) -> XlaOp:
        return self._call("Constant", np.float32(value))

    def ConstantF64Scalar(self, value: float) -> XlaOp:
        return self._call("Constant", np.float64(value))

    def ConstantS32Scalar(self, value: int) -> XlaOp:
        return self._call("Constant", np.int32(value))

    def ConstantS64Scalar(self, value: int) -> XlaOp:
        return self._call("Constant", np.int64(value))

    def ConstantPredScalar(self, value: bool) -> XlaOp:
        return self._call("Constant", np.bool_(value))

    def BroadcastedIota(self, dtype: Any, shape: Integers, dimension: int) -> XlaOp:
        return self._call("Iota", Shape.array(dtype, shape), dimension)

    def Tuple(self, *elements: XlaOp) -> XlaOp:
        return self._call("Tuple", elements)

    # Other orders of arguments

    def Clamp(self, *operands: Any, **named: Any) -> XlaOp:
        """`Clamp(operand, min, max)`, the order of 2017; with keywords, any."""
        if named and not operands:
            return self._function("Clamp")(**named)
        if len(operands) != 3 or named:
            raise ArgumentError("Clamp(operand, min, max) takes three values, or all of them by name")
        operand, low, high = operands
        return self._function("Clamp")(low, operand, high)

    def Concatenate(self, operands: Sequence[XlaOp], dimension: int) -> XlaOp:
        return self._call("ConcatInDim", operands, dimension)

    def Reduce(self, operand: XlaOp, init_value: XlaOp, computation_to_apply: Any, dimensions: Integers) -> XlaOp:
        return self._call("Reduce", [operand], [init_value], computation_to_apply, dimensions)

    def Call(self, computation_to_apply: Any, operands: Sequence[XlaOp]) -> XlaOp:
        return self._call("Call", computation_to_apply, operands)

    def Map(self, operands: Sequence[XlaOp], computation_to_apply: Any, dimensions: Integers | None = None) -> XlaOp:
        return self._call("Map", operands, computation_to_apply, dimensions)

    def While(self, cond: Any, body: Any, init: Any) -> XlaOp:
        return self._function("While")(cond, body, init)

    def Trans(self, operand: XlaOp) -> XlaOp:
        """The matrix transposed."""
        return self._function("Transpose")(operand, (1, 0))

    def SliceInDim(self, operand: XlaOp, start_index: int, limit_index: int, stride: int, dimno: int) -> XlaOp:
        return self._function("SliceInDim")(operand, start_index, limit_index, stride, dimno)

    def _function(self, name: str) -> Callable[..., XlaOp]:
        return FUNCTIONS[name]

    def _call(self, name: str, *arguments: Any) -> XlaOp:
        return self._function(name)(self.builder, *arguments)
