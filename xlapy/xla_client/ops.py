"""The op functions, taking and returning the old interface's objects: each is xlapy's own under the same name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.builder.other_names import hint_for_function
from xlapy.xla_client.protos import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    PaddingConfig,
    PrecisionConfig,
    ReplicaGroup,
    ResultAccuracy,
    ScatterDimensionNumbers,
)
from xlapy.xla_client.types import (
    CustomCallApiVersion,
    CustomCallSchedule,
    FftType,
    RandomAlgorithm,
    TriangularSolveOptions_Transpose,
)
from xlapy.xla_client.wrapping import unwrapped

__all__ = [
    "ConvolutionDimensionNumbers",
    "CustomCallApiVersion",
    "CustomCallSchedule",
    "DotDimensionNumbers",
    "FftType",
    "GatherDimensionNumbers",
    "PaddingConfig",
    "PrecisionConfig",
    "RandomAlgorithm",
    "ReplicaGroup",
    "ResultAccuracy",
    "ScatterDimensionNumbers",
    "TriangularSolveOptions_Transpose",
    "XlaOp",
]


def _adapted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, taking wrapped builders, shapes, computations and element types.

    What newer releases say about the accuracy that is wanted is not read."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("result_accuracy", None)
        given = (argument for argument in args if not isinstance(argument, ResultAccuracy))
        return function(*map(unwrapped, given), **{name: unwrapped(value) for name, value in kwargs.items()})

    return call


def ReducePrecision(operand: XlaOp, exponent_bits: int, mantissa_bits: int) -> XlaOp:
    """The operand as floats of so many bits; the order of the two is this interface's."""
    return ops.ReducePrecision(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def __getattr__(name: str) -> Any:
    if name not in ops.__all__:
        raise AttributeError(f"xlapy.xla_client.ops has no {name!r}{hint_for_function(name, ops.__all__)}")
    found = getattr(ops, name)
    value = found if isinstance(found, type) else _adapted(found)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *ops.__all__})
