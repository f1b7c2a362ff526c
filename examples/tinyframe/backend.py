"""The only file that knows xlapy: records operations into an XlaBuilder, and compiles what was recorded.

Operations here are as strict as HLO: operands agree in shape and type. Broadcasting and Python numbers are the
business of `tensor.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import xlapy
from xlapy import ops

Handle: TypeAlias = "xlapy.XlaOp"
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]
Dims: TypeAlias = tuple[int, ...]

_UNARY: dict[str, Callable[[Handle], Handle]] = {
    "exp": ops.Exp,
    "log": ops.Log,
    "neg": ops.Neg,
    "sqrt": ops.Sqrt,
    "tanh": ops.Tanh,
}
_BINARY: dict[str, Callable[[Handle, Handle], Handle]] = {
    "add": ops.Add,
    "div": ops.Div,
    "eq": ops.Eq,
    "ge": ops.Ge,
    "gt": ops.Gt,
    "max": ops.Max,
    "mul": ops.Mul,
    "sub": ops.Sub,
}


class Program:
    """What `Recorder.compile` gives: a list of arrays in, a list of arrays out."""

    def __init__(self, executable: xlapy.Executable) -> None:
        self._executable = executable

    def __call__(self, arguments: Sequence[Array]) -> Sequence[Array]:
        results: Sequence[Array] = self._executable(*arguments)
        return results

    @property
    def kernels(self) -> int:
        return int(self._executable.compile_stats().kernels)

    @property
    def fusions(self) -> int:
        return int(self._executable.compile_stats().fusions)

    @property
    def compile_ms(self) -> float:
        return float(self._executable.compile_stats().compile_ms)


class Recorder:
    """One program being recorded. Every method but `compile` adds to it and returns a handle to the new value."""

    def __init__(self, name: str) -> None:
        self._builder = xlapy.XlaBuilder(name)
        self._parameters = 0

    def dims(self, value: Handle) -> Dims:
        return tuple(self._builder.get_shape(value).dims)

    def dtype(self, value: Handle) -> DType:
        dtype: DType = self._builder.get_shape(value).type.dtype
        return dtype

    def parameter(self, dims: Dims, dtype: DType) -> Handle:
        """The next argument of the program."""
        number = self._parameters
        self._parameters += 1
        return ops.Parameter(self._builder, number, xlapy.Shape.array(dtype, dims), f"argument{number}")

    def constant(self, value: Array | np.generic) -> Handle:
        return ops.Constant(self._builder, value)

    def iota(self, dims: Dims, dtype: DType, dimension: int) -> Handle:
        """Every element is its own index along `dimension`."""
        return ops.Iota(self._builder, xlapy.Shape.array(dtype, dims), dimension)

    def unary(self, name: str, x: Handle) -> Handle:
        return _UNARY[name](x)

    def binary(self, name: str, x: Handle, y: Handle) -> Handle:
        return _BINARY[name](x, y)

    def select(self, condition: Handle, chosen: Handle, otherwise: Handle) -> Handle:
        return ops.Select(condition, chosen, otherwise)

    def convert(self, x: Handle, dtype: DType) -> Handle:
        return ops.ConvertElementType(x, dtype)

    def broadcast(self, x: Handle, dims: Dims, dimensions: Sequence[int]) -> Handle:
        """`x` laid along `dimensions` of an array of `dims`, repeated along the others."""
        return ops.BroadcastInDim(x, dims, tuple(dimensions))

    def reshape(self, x: Handle, dims: Dims) -> Handle:
        return ops.Reshape(x, dims)

    def transpose(self, x: Handle, permutation: Sequence[int]) -> Handle:
        return ops.Transpose(x, tuple(permutation))

    def matmul(self, x: Handle, y: Handle) -> Handle:
        """The product of two matrices."""
        contract_inner = (((1,), (0,)), ((), ()))
        return ops.DotGeneral(x, y, contract_inner)

    def reduce_sum(self, x: Handle, dimensions: Sequence[int]) -> Handle:
        return self._reduce(x, np.zeros((), self.dtype(x)), "add", dimensions)

    def reduce_max(self, x: Handle, dimensions: Sequence[int]) -> Handle:
        return self._reduce(x, np.array(-np.inf, self.dtype(x)), "max", dimensions)

    def _reduce(self, x: Handle, start: Array, name: str, dimensions: Sequence[int]) -> Handle:
        scalar = xlapy.Shape.array(start.dtype)
        combine = xlapy.XlaBuilder(f"reduce_{name}")
        result = _BINARY[name](
            ops.Parameter(combine, 0, scalar, "accumulated"), ops.Parameter(combine, 1, scalar, "element")
        )
        start_value = ops.Constant(self._builder, start)
        return ops.Reduce(self._builder, [x], [start_value], combine.build(result), tuple(dimensions))

    def compile(self, results: Sequence[Handle]) -> Program:
        """Ends the recording. The program's results are `results`, in order."""
        root = ops.Tuple(self._builder, list(results))
        return Program(xlapy.compile(self._builder.build(root)))
