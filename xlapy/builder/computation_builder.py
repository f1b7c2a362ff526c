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
from xlapy.builder.collectives import as_replica_groups
from xlapy.builder.op import XlaOp
from xlapy.builder.registry import FUNCTIONS
from xlapy.hlo.attributes import Transpose
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError

Integers = Sequence[int]


class ComputationBuilder:
    """Records a computation. `Build` returns what `xlapy.compile` takes."""

    def __init__(self, name: str) -> None:
        self.builder = XlaBuilder(name)
        self._parameters = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in FUNCTIONS:
            raise AttributeError(f"ComputationBuilder has no operation {name!r}")
        function = self._function(name)
        first = next(iter(inspect.signature(function).parameters), "")
        return functools.partial(function, self.builder) if first == "builder" else function

    def Build(self, root: XlaOp | None = None) -> XlaComputation:
        return self.builder.build(root)

    def GetShape(self, operand: XlaOp) -> Any:
        return self.builder.get_shape(operand)

    def IsConstant(self, operand: XlaOp) -> bool:
        return self.builder.is_constant(operand)

    def BuildConstantSubGraph(self, operand: XlaOp) -> XlaComputation:
        return self.builder.build_constant_sub_graph(operand)

    def SetOpMetadata(self, op_metadata: Any) -> None:
        self.builder.set_op_metadata(op_metadata)

    def ClearOpMetadata(self) -> None:
        self.builder.clear_op_metadata()

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

    def Sort(self, *operands: Any, comparator: Any = None, dimension: int = -1, is_stable: bool = False) -> XlaOp:
        """`Sort(operand)` or `Sort(keys, values)`; a number behind these is the dimension."""
        if operands and isinstance(operands[-1], int):
            *operands, dimension = operands  # type: ignore[assignment]
        return self._call("Sort", list(operands), comparator, dimension, is_stable)

    def RngUniform(self, a: XlaOp, b: XlaOp, dims: Any) -> XlaOp:
        """Sizes of the result, whose elements are those of the bounds, or its shape."""
        return self._function("RngUniform")(a, b, _shape_like(a, dims))

    def RngNormal(self, mu: XlaOp, sigma: XlaOp, dims: Any) -> XlaOp:
        return self._function("RngNormal")(mu, sigma, _shape_like(mu, dims))

    def AllToAll(
        self, operand: XlaOp, split_dimension: int, concat_dimension: int, replica_groups: Any = None
    ) -> XlaOp:
        """There are as many parts as a group has members; without groups, one."""
        groups = as_replica_groups(replica_groups)
        count = len(groups.groups[0]) if groups.groups else 1
        return self._function("AllToAll")(operand, split_dimension, concat_dimension, count, groups)

    def TriangularSolve(
        self,
        a: XlaOp,
        b: XlaOp,
        left_side: bool = False,
        lower: bool = False,
        transpose_a: bool = False,
        conjugate_a: bool = False,
        unit_diagonal: bool = False,
    ) -> XlaOp:
        """Solves with `a` as it is, transposed, conjugated, or both."""
        matrix = self._function("Conj")(a) if conjugate_a and not transpose_a else a
        kind = Transpose.NO_TRANSPOSE
        if transpose_a:
            kind = Transpose.ADJOINT if conjugate_a else Transpose.TRANSPOSE
        return self._function("TriangularSolve")(matrix, b, left_side, lower, unit_diagonal, kind)

    def CustomCall(
        self,
        call_target_name: bytes | str,
        operands: Sequence[XlaOp],
        shape_with_layout: Any,
        operand_shapes_with_layout: Sequence[Any] | None = None,
        opaque: bytes | str | None = None,
    ) -> XlaOp:
        """The layouts of the operands may be stated."""
        given = (call_target_name, operands, shape_with_layout)
        if operand_shapes_with_layout is None:
            return self._call("CustomCall", *given, opaque or b"")
        return self._call("CustomCallWithLayout", *given, operand_shapes_with_layout, opaque or b"")

    def Trans(self, operand: XlaOp) -> XlaOp:
        """The matrix transposed."""
        return self._function("Transpose")(operand, (1, 0))

    def SliceInDim(self, operand: XlaOp, start_index: int, limit_index: int, stride: int, dimno: int) -> XlaOp:
        return self._function("SliceInDim")(operand, start_index, limit_index, stride, dimno)

    def _function(self, name: str) -> Callable[..., XlaOp]:
        """The op function of that name; a subclass may adapt it."""
        return FUNCTIONS[name]

    def _call(self, name: str, *arguments: Any) -> XlaOp:
        return self._function(name)(self.builder, *arguments)


def _shape_like(value: XlaOp, dims: Any) -> Any:
    """The shape of so many elements like `value`; what is a shape already, as it is."""
    return Shape.array(value.shape.type, tuple(dims)) if isinstance(dims, (list, tuple)) else dims
