"""A program being recorded, and the program that it becomes."""

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
    "logistic": ops.Logistic,
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
    "min": ops.Min,
    "mul": ops.Mul,
    "sub": ops.Sub,
}


class Program:
    """What `Recorder.compile` gives: a list of arrays in, a list of arrays out."""

    def __init__(self, executable: xlapy.Executable) -> None:
        self._executable = executable

    def __repr__(self) -> str:
        return f"<Program {self._executable.name}, {self.kernels} kernels>"

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

    def hlo_text(self) -> str:
        """The program behind the compiler's passes, to read."""
        return self._executable.hlo_text()


class Recorder:
    """One program being recorded, or the body of a loop in it. Every method but `compile` adds to it and returns a
    handle to the new value."""

    def __init__(self, builder: xlapy.XlaBuilder) -> None:
        self.builder = builder
        self._parameters = 0

    @classmethod
    def of_program(cls, name: str) -> Recorder:
        """A recorder with nothing in it yet."""
        return cls(xlapy.XlaBuilder(name))

    def dims(self, value: Handle) -> Dims:
        return tuple(self.builder.get_shape(value).dims)

    def dtype(self, value: Handle) -> DType:
        dtype: DType = self.builder.get_shape(value).type.dtype
        return dtype

    def parameter(self, dims: Dims, dtype: DType) -> Handle:
        """The next argument of the program."""
        number = self._parameters
        self._parameters += 1
        return ops.Parameter(self.builder, number, xlapy.Shape.array(dtype, dims), f"argument{number}")

    def constant(self, value: Array | np.generic) -> Handle:
        return ops.Constant(self.builder, value)

    def iota(self, dims: Dims, dtype: DType, dimension: int) -> Handle:
        """Every element is its own index along `dimension`."""
        return ops.Iota(self.builder, xlapy.Shape.array(dtype, dims), dimension)

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
        """Products of matrices, which the last two dimensions hold; those before them say which with which."""
        rank = len(self.dims(x))
        batch = tuple(range(rank - 2))
        contract_inner = (((rank - 1,), (rank - 2,)), (batch, batch))
        return ops.DotGeneral(x, y, contract_inner)

    def reduce_sum(self, x: Handle, dimensions: Sequence[int]) -> Handle:
        return self._reduce(x, 0, ops.Add, dimensions)

    def reduce_max(self, x: Handle, dimensions: Sequence[int]) -> Handle:
        return self._reduce(x, -np.inf, ops.Max, dimensions)

    def _reduce(self, x: Handle, start: float, combine: Callable[..., Handle], dimensions: Sequence[int]) -> Handle:
        first = ops.Constant(self.builder, np.array(start, self.dtype(x)))
        return ops.Reduce(self.builder, [x], [first], combine, tuple(dimensions))

    def compile(self, results: Sequence[Handle], in_place: int = 0) -> Program:
        """Ends the recording. The program's results are `results`, in order.

        The first `in_place` of them may take over the memory of the arguments with the same numbers, which callers give
        up with the call."""
        root = ops.Tuple(self.builder, list(results))
        for number in range(in_place):
            self.builder.setup_alias((number,), number)
        return Program(xlapy.compile(self.builder.build(root)))
