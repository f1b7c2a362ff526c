"""The builder of 2017 to 2020, with the objects of that time: computations compile themselves.

c = xla_client.ComputationBuilder("axpy")
x = c.ParameterFromNumpy(np.ones(4, np.float32))
executable = c.Build(c.Add(x, x)).Compile()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlapy import builder as xlapy_builder
from xlapy.builder import XlaOp
from xlapy.xla_client import ops
from xlapy.xla_client.client import cpu_backend
from xlapy.xla_client.computations import XlaComputation
from xlapy.xla_client.executables import LoadedExecutable
from xlapy.xla_client.options import CompileOptions
from xlapy.xla_client.shapes import Shape
from xlapy.xla_client.wrapping import unwrapped


class Computation(XlaComputation):
    """What `ComputationBuilder.Build` returns."""

    __slots__ = ()

    def Compile(
        self, argument_shapes: Sequence[Shape] | None = None, compile_options: Any = None, backend: Any = None
    ) -> LoadedExecutable:
        """An executable of `backend`, by default the one of `get_local_backend`. Parameters know their shapes."""
        options = compile_options if isinstance(compile_options, CompileOptions) else None
        executable: LoadedExecutable = (backend or cpu_backend()).compile(self, options)
        return executable

    def GetReturnValueShape(self) -> Shape:
        return self.program_shape().result_shape()


class ComputationBuilder(xlapy_builder.ComputationBuilder):
    """xlapy's own `ComputationBuilder`, taking and returning the objects of this package."""

    def Build(self, root: XlaOp | None = None, backend: Any = None) -> Computation:  # type: ignore[override]
        return Computation(super().Build(root).module)

    def BuildConstantSubGraph(self, operand: XlaOp) -> Computation:  # type: ignore[override]
        return Computation(super().BuildConstantSubGraph(operand).module)

    def GetShape(self, operand: XlaOp) -> Shape:
        return Shape(super().GetShape(operand))

    def ParameterWithShape(self, shape: Any, name: str | None = "", parameter_num: int | None = None) -> XlaOp:
        return super().ParameterWithShape(unwrapped(shape), name or "", parameter_num)

    def BroadcastedIota(self, dtype: Any, shape: Sequence[int], dimension: int) -> XlaOp:
        return super().BroadcastedIota(unwrapped(dtype), shape, dimension)

    def _function(self, name: str) -> Callable[..., XlaOp]:
        """The op function, taking this package's objects."""
        return getattr(ops, name)  # type: ignore[no-any-return]
